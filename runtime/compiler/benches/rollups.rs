//! Measures the matching of pre-aggregations: a query is compiled with matching (`auto`) and without it (`off`).
//!
//! The difference between `auto` and `off` is the cost of a match. The cost consists of the SQL over the seven tables
//! that the query reads, and of the choice among several pre-aggregations. The case with one pre-aggregation has no
//! choice. Budget of the choice on a quiet core: 5 µs among 10 pre-aggregations of one cube and 20 µs among 100, in a
//! model of 10 or 1,000 cubes. All pre-aggregations are ready. In the cases `first` and `last` all of them match, and
//! each costs more (`first`) or less (`last`) than the one defined before it. In the case `none`, no pre-aggregation
//! stores a dimension of the query.

#![allow(clippy::unwrap_used, reason = "a benchmark stops at its first fault")]

use std::fmt::Write as _;
use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use terrane_compiler::model::Model;
use terrane_compiler::query::PreAggregations;
use terrane_compiler::rollup::{BucketRange, ReadyPartition, ReadyRollup, ReadyRollups, RollupOf};
use terrane_compiler::sql::dialect_profile::DialectProfile;
use terrane_compiler::{Authorized, Environment, SecurityContext, compile};
use terrane_golden_tests::case::{environment, model, read_query};
use terrane_golden_tests::duckdb_profile;

const DAY: i64 = 86_400_000_000;
/// The first day, 2024-01-01.
const START: i64 = 19_723 * DAY;
const PARTITIONS: i64 = 12;

fn project(rollups: usize, cubes: usize) -> Model {
    let mut text = "cubes:\n".to_owned();
    for cube in 0..cubes {
        write!(
            text,
            "  - name: orders{cube}\n    sql_table: raw.orders{cube}\n    dimensions:\n      \
             - {{name: created_at, type: time, sql: created_at, primary_time: true}}\n"
        )
        .unwrap();
        text.push_str("      - {name: missing, type: string, sql: missing}\n");
        for dimension in 0..12 {
            writeln!(text, "      - {{name: d{dimension}, type: string, sql: d{dimension}}}").unwrap();
        }
        text.push_str(
            "    measures:\n      - {name: count, type: count}\n      - {name: revenue, type: sum, sql: amount}\n",
        );
        if cube > 0 {
            continue;
        }
        text.push_str("    pre_aggregations:\n");
        for rollup in 0..rollups {
            let more = (rollup % 9) + 2;
            writeln!(
                text,
                "      - {{name: r{rollup}, measures: [count, revenue], dimensions: [d0, d1, d{more}], \
                 time_dimension: created_at, granularity: day, partition_granularity: month}}"
            )
            .unwrap();
        }
    }
    model(&text, "orders0.created_at: timestamp\norders0.revenue: decimal\n")
}

fn ready(model: &Model, profile: &DialectProfile, is_cheapest_first: bool) -> Environment {
    let environment = environment();
    let mut all = ReadyRollups::default();
    for (index, of) in RollupOf::all(model).enumerate() {
        let partition = |month: i64| ReadyPartition {
            relation: ReadyPartition::relation_of(["terrane_rollups", "table"]),
            range: Some(BucketRange { start: START + month * 30 * DAY, end: START + (month + 1) * 30 * DAY }),
            rows: if is_cheapest_first { 1_000 + index as u64 } else { 2_000 - index as u64 },
            built_at: environment.now,
        };
        let fingerprint = of.fingerprint(profile).unwrap();
        let partitions = (0..PARTITIONS).map(partition).collect();
        let built = ReadyRollup { fingerprint, generation: 1, extent: None, partitions };
        all.insert(of.cube.name.clone(), of.rollup.name.clone(), built);
    }
    Environment { rollups: Arc::new(all), ..environment }
}

fn benchmark(c: &mut Criterion) {
    let profile = duckdb_profile();
    let caller = SecurityContext::default();
    let query = |dimension: &str| {
        serde_json::json!({
            "measures": ["orders0.revenue"], "dimensions": [dimension],
            "time_dimensions": [{"dimension": "orders0.created_at", "granularity": "month",
                                 "date_range": ["2024-01-01", "2024-06-30"]}],
            "filters": [{"member": "orders0.d1", "operator": "equals", "value": "a"}],
        })
    };
    let cases = [
        (1, 10, "first"),
        (10, 10, "first"),
        (10, 10, "last"),
        (10, 10, "none"),
        (100, 10, "first"),
        (100, 10, "last"),
        (100, 10, "none"),
        (100, 1_000, "first"),
    ];
    for (rollups, cubes, cheapest) in cases {
        let model = project(rollups, cubes);
        let environment = ready(&model, &profile, cheapest == "first");
        let authorized = Authorized::without_hooks(&model, &caller);
        for mode in [PreAggregations::Off, PreAggregations::Auto] {
            let dimension = if cheapest == "none" { "orders0.missing" } else { "orders0.d0" };
            let mut query = read_query(&query(dimension)).unwrap();
            query.pre_aggregations = mode;
            c.bench_function(&format!("{rollups}_rollups/of_{cubes}/{cheapest}/{}", mode.as_str()), |b| {
                b.iter(|| compile(&profile, black_box(&query), black_box(&authorized), &environment).unwrap());
            });
        }
    }
}

criterion_group!(benches, benchmark);
criterion_main!(benches);
