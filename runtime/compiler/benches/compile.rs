//! Measures the compilation of a query to SQL with the real DuckDB profile.
//!
//! Budget on a quiet core: one cube under 50 µs, three cubes and a three-way fan-out under 200 µs, 40
//! metrics by 10 dimensions under 2 ms, a list of 1,000 values under 1 ms. A query of a model with 1,000 cubes takes at
//! most 10 % longer than the same query of a model with 10.

#![allow(clippy::unwrap_used, reason = "a benchmark stops at its first fault")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use terrane_compiler::{Authorized, SecurityContext, compile};
use terrane_golden_tests::case::environment;
use terrane_golden_tests::duckdb_profile;
use terrane_golden_tests::large::{
    forty_metrics, large_model, over_facts, over_time, thousand_values, three_way_fan_out,
};

fn benchmark(c: &mut Criterion) {
    let profile = duckdb_profile();
    let caller = SecurityContext::default();
    let environment = environment();
    for facts in [10, 1_000] {
        let model = large_model(facts);
        let authorized = Authorized::without_hooks(&model, &caller);
        let queries = [
            ("one_cube", over_time(3)),
            ("three_cubes", over_facts(&[2, 5, 7])),
            ("three_way_fan_out", three_way_fan_out()),
            ("forty_metrics_by_ten", forty_metrics()),
            ("thousand_values", thousand_values()),
        ];
        for (name, query) in queries {
            c.bench_function(&format!("{name}/of_{facts}"), |b| {
                b.iter(|| compile(&profile, black_box(&query), black_box(&authorized), &environment).unwrap());
            });
        }
    }
}

criterion_group!(benches, benchmark);
criterion_main!(benches);
