//! Runs the attack for 500 cases. The seed is fixed, so that each run tests the same cases. For long runs:
//! `cargo xtask attack --cases N --seed S`.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::path::Path;

use terrane_attack_tests::attack::{Report, Run, run};
use terrane_attack_tests::scenario::{Constructs, Sabotage};
use terrane_attack_tests::server::Stage;

const SEED: u64 = 20_261_123;
const CASES: usize = 500;

fn attacked(cases: usize, sabotage: Sabotage, max_faults: usize) -> Report {
    let stage = Stage::new(Path::new(env!("CARGO_BIN_EXE_terrane-attack"))).unwrap();
    let constructs = Constructs::default();
    run(&stage, &Run { cases, seed: SEED, only: None, constructs, sabotage, max_faults }, |_| {}).unwrap()
}

#[test]
fn hidden_rows_and_masked_values_change_no_answer() {
    let report = attacked(CASES, Sabotage::None, 3);
    for case in &report.faults {
        let [left, right] = &case.answers;
        println!("seed {SEED}, case {}: {}\n{:#?}\n{left}\n\n{right}", case.index, case.about, case.requests);
    }
    assert!(report.faults.is_empty(), "{} faults, see above", report.faults.len());
    assert!(report.unserved.is_empty(), "{:#?}", report.unserved);
    // A run in which the server refuses everything, or in which nothing is hidden, proves nothing.
    let answered = report.statuses.get(&200).copied().unwrap_or_default();
    assert!(answered * 5 > report.requests * 2, "only {answered} of {} were answered", report.requests);
    assert!(report.registrations.get("accepted").copied().unwrap_or_default() > 0, "{:?}", report.registrations);
    let (rows, values) = report.differences;
    assert!(rows > 0 && values > 0, "{rows} hidden rows, {values} masked values that differ");
}

#[test]
fn missing_policies_are_found() {
    let report = attacked(CASES, Sabotage::NoPolicies, 1);
    assert!(!report.faults.is_empty(), "{report:?}");
}

#[test]
fn differences_in_visible_values_are_found() {
    let report = attacked(CASES, Sabotage::VisibleValues, 1);
    assert!(!report.faults.is_empty(), "{report:?}");
}
