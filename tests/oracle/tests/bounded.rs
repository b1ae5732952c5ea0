//! A bounded run of the fuzz: a thousand queries, another seed each day would be no test, so the seed
//! stands here and is printed. Long runs: `cargo xtask fuzz --cases N --seed S`.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use terrane_oracle_tests::fuzz::{Run, run};
use terrane_oracle_tests::generate::Features;

const SEED: u64 = 20_240_310;
const QUERIES: usize = 1_000;

#[test]
fn a_thousand_queries_are_answered_as_the_oracle_says() {
    println!("seed {SEED}");
    let wanted = Run { cases: QUERIES, seed: SEED, features: Features::default(), max_differences: 3, flaw: None };
    let report = run(&wanted, |_| {}).unwrap();
    for case in &report.differences {
        println!("seed {}: {}\n  {}", case.seed, case.about, case.query);
    }
    assert!(report.differences.is_empty(), "{} differences, see above", report.differences.len());
    // A run in which everything is refused proves nothing.
    assert!(report.answered * 10 > QUERIES * 6, "only {} of {QUERIES} were answered", report.answered);
    assert!(report.with_rows * 10 > QUERIES * 3, "only {} of {QUERIES} have rows", report.with_rows);
}
