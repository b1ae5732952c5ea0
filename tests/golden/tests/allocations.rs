//! Tests that the memory that a query allocates depends on the query, not on the size of the model.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use terrane_compiler::model::Model;
use terrane_compiler::query::SemanticQuery;
use terrane_compiler::sql::dialect_profile::DialectProfile;
use terrane_compiler::{Authorized, SecurityContext, compile};
use terrane_golden_tests::case::environment;
use terrane_golden_tests::duckdb_profile;
use terrane_golden_tests::large::{
    forty_metrics, large_model, over_facts, over_time, thousand_values, three_way_fan_out,
};

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

/// Returns the numbers of blocks and bytes that one compilation allocates. The query is compiled once before, so that
/// values that are computed once do not count.
fn allocated(model: &Model, profile: &DialectProfile, query: &SemanticQuery) -> (u64, u64) {
    let (caller, environment) = (SecurityContext::default(), environment());
    let authorized = Authorized::without_hooks(model, &caller);
    compile(profile, query, &authorized, &environment).unwrap();
    let before = dhat::HeapStats::get();
    compile(profile, query, &authorized, &environment).unwrap();
    let after = dhat::HeapStats::get();
    (after.total_blocks - before.total_blocks, after.total_bytes - before.total_bytes)
}

#[test]
fn allocations_do_not_grow_with_the_model() {
    let (small, large, profile) = (large_model(10), large_model(1_000), duckdb_profile());
    let queries = [
        ("one cube", over_time(3)),
        ("three cubes", over_facts(&[2, 5, 7])),
        ("three-way fan-out", three_way_fan_out()),
        ("forty metrics", forty_metrics()),
        ("a thousand values", thousand_values()),
    ];
    let _profiler = dhat::Profiler::builder().testing().build();
    for (name, query) in queries {
        let of_ten = allocated(&small, &profile, &query);
        let of_thousand = allocated(&large, &profile, &query);
        assert_eq!(of_ten, of_thousand, "{name}: blocks and bytes of 10 cubes and of 1,000");
    }
}
