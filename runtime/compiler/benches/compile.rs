//! From a request struct to SQL text, by the real DuckDB profile.
//!
//! Budget on a quiet core: one cube under 50 µs, three cubes under 200 µs, and 1,000 cubes in the
//! model within 10 % of 10.

#![allow(clippy::unwrap_used, reason = "a benchmark stops at its first fault")]

use std::fmt::Write;
use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use terrane_compiler::model::{self, Model};
use terrane_compiler::project::{self, Inputs, SourceTree};
use terrane_compiler::query::{DateRange, Filter, MemberRef, Operator, OrderBy, SemanticQuery, TimeDimension};
use terrane_compiler::types::{Granularity, Value};
use terrane_compiler::{Environment, SecurityContext, compile};
use terrane_golden_tests::duckdb_profile;

/// `cubes` facts with 30 members each; every one joins `regions`.
fn model(cubes: usize) -> Model {
    let mut tree = SourceTree::default();
    tree.files.insert("service_project.yml".into(), "name: bench\n".into());
    let mut yaml = String::from(
        "cubes:\n  - name: regions\n    sql_table: raw.regions\n    dimensions:\n      \
         - {name: id, type: number, sql: id, primary_key: true}\n      - {name: name, type: string, sql: name}\n",
    );
    for cube in 0..cubes {
        write!(
            yaml,
            "  - name: fact_{cube}\n    sql_table: raw.fact_{cube}\n    joins:\n      - {{name: regions, relationship: \
             many_to_one, sql: \"{{fact_{cube}}}.region_id = {{regions}}.id\"}}\n    dimensions:\n      - {{name: id, \
             type: number, sql: id, primary_key: true}}\n      - {{name: at, type: time, sql: at, primary_time: true}}\n"
        )
        .unwrap();
        for dimension in 0..13 {
            writeln!(yaml, "      - {{name: dimension_{dimension}, type: string, sql: column_{dimension}}}").unwrap();
        }
        yaml.push_str("    measures:\n      - {name: count, type: count}\n");
        for measure in 0..13 {
            writeln!(yaml, "      - {{name: sum_{measure}, type: sum, sql: amount_{measure}}}").unwrap();
        }
        yaml.push_str("      - {name: average, type: number, sql: \"{sum_0} / {count}\"}\n");
    }
    tree.files.insert("cubes/all.yml".into(), yaml.into());
    let inputs = Inputs { warehouse: "duckdb".into(), ..Inputs::default() };
    let (definitions, problems) = project::read(&tree, &inputs);
    let (model, more) = model::build(&definitions);
    assert!(problems.is_empty() && more.is_empty(), "{problems:?} {more:?}");
    model
}

fn member(text: &str) -> MemberRef {
    text.parse().unwrap()
}

/// A dashboard's query over the named facts, by region and month, filtered, ordered, paged.
fn query(facts: &[usize]) -> SemanticQuery {
    let values = facts.iter().flat_map(|fact| [format!("fact_{fact}.sum_1"), format!("fact_{fact}.average")]);
    SemanticQuery {
        values: values.map(|name| member(&name)).collect(),
        dimensions: vec![member("regions.name")],
        order: vec![OrderBy { member: member(&format!("fact_{}.sum_1", facts[0])), descending: true }],
        filters: vec![Filter::Condition {
            member: member("regions.name"),
            operator: Operator::InList,
            values: ["north", "south", "west"].map(|name| Value::Text(name.into())).to_vec(),
        }],
        limit: Some(100),
        ..SemanticQuery::default()
    }
}

/// One fact's query also has a time axis.
fn query_with_time(fact: usize) -> SemanticQuery {
    let time = TimeDimension {
        member: member(&format!("fact_{fact}.at")),
        granularity: Some(Granularity::Month),
        range: Some(DateRange::Between(Some("2024-01-01".into()), Some("2024-12-31".into()))),
    };
    SemanticQuery { time_dimensions: vec![time], ..query(&[fact]) }
}

fn benchmark(c: &mut Criterion) {
    let profile = duckdb_profile();
    let caller = SecurityContext::default();
    let environment = Environment {
        now: Timestamp::from_second(1_700_000_000).unwrap(),
        zones: TimeZoneDatabase::bundled(),
        default_timezone: TimeZone::UTC,
        default_limit: 1_000,
        max_limit: 50_000,
    };
    for cubes in [10, 1_000] {
        let model = model(cubes);
        for (name, query) in [("one_cube", query_with_time(3)), ("three_cubes", query(&[2, 5, 7]))] {
            c.bench_function(&format!("{name}/of_{cubes}"), |b| {
                b.iter(|| compile(black_box(&model), &profile, black_box(&query), &caller, &environment).unwrap());
            });
        }
    }
}

criterion_group!(benches, benchmark);
criterion_main!(benches);
