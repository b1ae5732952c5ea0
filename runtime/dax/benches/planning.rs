//! Measures the planning of DAX queries to SQL with the real DuckDB profile.
//!
//! Budget on a quiet core: 100 µs for a usual SUMMARIZECOLUMNS, and 5 ms for a query of 200 lines with 40 measures. For
//! the query with 40 measures, the time is measured until the SQL statements of the first round of its evaluation are
//! planned.

#![allow(clippy::unwrap_used, reason = "a benchmark stops at its first fault")]

use std::fmt::Write as _;
use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use terrane_compiler::query::SemanticQuery;
use terrane_compiler::{Access, Authorized, Environment, SecurityContext, compile};
use terrane_dax::evaluate::{Budget, FetchedData, MAX_STEPS, Step, evaluate};
use terrane_dax::plan::{Parameters, plan};
use terrane_dax::read;
use terrane_golden_tests::case::{environment, models};
use terrane_golden_tests::duckdb_profile;

const USUAL: &str = "EVALUATE SUMMARIZECOLUMNS(customers[region], orders[status], \
    FILTER(ALL(orders[status]), orders[status] <> \"new\"), \"Revenue\", [revenue], \"Orders\", orders[count]) \
    ORDER BY [Revenue] DESC";

/// Returns a query of 200 lines with 40 measures, each of which uses others.
fn forty_measures() -> String {
    let mut text = "DEFINE\n".to_owned();
    for at in 0..40 {
        let before = if at == 0 { "[revenue]".to_owned() } else { format!("[m{}]", at - 1) };
        writeln!(text, "  MEASURE orders[m{at}] =\n    VAR share = DIVIDE(\n      CALCULATE([revenue], orders[id] > {at}),\n      CALCULATE([revenue], ALL(orders[status])))\n    RETURN IF(ISBLANK(share), BLANK(), share * {at} + {before})").unwrap();
    }
    text.push_str("EVALUATE\nSUMMARIZECOLUMNS(\n  orders[status]");
    (0..40).for_each(|at| write!(text, ",\n  \"v{at}\", [m{at}]").unwrap());
    text + ")\nORDER BY orders[status]"
}

fn benchmark(c: &mut Criterion) {
    let model = models().remove("shop").unwrap();
    let (profile, environment) = (duckdb_profile(), environment());
    let caller = SecurityContext { roles: vec!["analyst".into()], ..SecurityContext::default() };
    let authorized = Authorized::without_hooks(&model, &caller);
    let access = Access::of(&model, &caller);
    let sql = |query: &SemanticQuery, environment: &Environment| {
        black_box(compile(&profile, query, &authorized, environment).unwrap());
    };
    let parameters = Parameters::new();
    c.bench_function("summarizecolumns", |b| {
        b.iter(|| {
            let bound = read(black_box(USUAL), &access);
            let plan = plan(&bound.query, &bound.query.evaluations[0], &access, &parameters).unwrap();
            sql(&plan.query, &environment);
        });
    });
    let (text, now) = (forty_measures(), jiff::civil::datetime(2024, 3, 10, 12, 0, 0, 0));
    assert!(text.lines().count() >= 200, "{}", text.lines().count());
    c.bench_function("forty_measures", |b| {
        b.iter(|| {
            let bound = read(black_box(&text), &access);
            assert_eq!(bound.problems, []);
            let evaluation = &bound.query.evaluations[0];
            let data = FetchedData::default();
            let budget = Budget::new(MAX_STEPS);
            let Step::Needs(queries) =
                evaluate(&bound.query, evaluation, &access, &parameters, now, &data, &budget).unwrap()
            else {
                panic!("no statements")
            };
            queries.iter().for_each(|query| sql(query, &environment));
        });
    });
}

criterion_group!(benches, benchmark);
criterion_main!(benches);
