//! Runs the fuzzer for a thousand queries. The seed is fixed and printed, so that each run tests the same queries. For
//! long runs: `cargo xtask fuzz --cases N --seed S`.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use terrane_oracle_tests::case::settings;
use terrane_oracle_tests::fuzz::{Run, run, run_on};
use terrane_oracle_tests::generate::Features;
use terrane_oracle_tests::invariants::cached::DataReport;
use terrane_oracle_tests::product::Product;

const SEED: u64 = 20_240_310;
const QUERIES: usize = 1_000;

fn wanted(cases: usize, report: DataReport) -> Run {
    Run { cases, seed: SEED, features: Features::default(), max_differences: 3, flaw: None, report, spark: None }
}

#[test]
fn results_of_a_thousand_queries_equal_the_oracle() {
    println!("seed {SEED}");
    let report = run(&wanted(QUERIES, DataReport::Sent), |_| {}).unwrap();
    for case in &report.differences {
        println!("seed {}: {}\n  {}", case.seed, case.about, case.query);
    }
    assert!(report.differences.is_empty(), "{} differences, see above", report.differences.len());
    // A run in which the product refuses everything proves nothing.
    assert!(report.answered * 10 > QUERIES * 6, "only {} of {QUERIES} were answered", report.answered);
    assert!(report.with_rows * 10 > QUERIES * 3, "only {} of {QUERIES} have rows", report.with_rows);
}

#[test]
fn percentiles_from_ranks_equal_the_oracle() {
    println!("seed {SEED}");
    let product = Product::with_ranked_percentiles(settings()).unwrap();
    let report = run_on(product, &wanted(QUERIES / 2, DataReport::Sent), |_| {}).unwrap();
    for case in &report.differences {
        println!("seed {}: {}\n  {}", case.seed, case.about, case.query);
    }
    assert!(report.differences.is_empty(), "{} differences, see above", report.differences.len());
    // A run in which the product refuses everything proves nothing.
    assert!(report.answered * 2 > QUERIES / 2, "only {} were answered", report.answered);
}

#[test]
fn results_of_changed_data_are_found() {
    let report = run(&wanted(300, DataReport::Forgotten), |_| {}).unwrap();
    assert!(report.differences.iter().all(|case| case.about.starts_with("I4")), "{:?}", report.differences);
    assert!(!report.differences.is_empty(), "{:?}", report.invariants);
}
