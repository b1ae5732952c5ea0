//! Checks the language of comments, messages and names.
//!
//! In: all Rust sources. Out: a failure for each crate above its budget, each budget above its count, and each finding
//! in a file that is listed as clean. Not here: a way to raise a budget. Remove the finding instead.

use terrane_structure_tests::language::{budget, differences};
use terrane_structure_tests::report::{self, BUDGET, CLEAN};
use terrane_structure_tests::sources::{assert_none, list, read, root};

#[test]
fn every_crate_is_within_its_budget() {
    let budget = budget(&read(&root().join(BUDGET))).unwrap_or_else(|error| panic!("{BUDGET}: {error}"));
    assert_none(&differences(&budget, &report::counts(&report::all())));
}

#[test]
fn clean_files_have_no_findings() {
    let clean = read(&root().join(CLEAN));
    let paths = list(&clean);
    let missing = paths.iter().filter(|path| !root().join(path).exists()).map(|path| format!("{path} does not exist"));
    assert_none(&missing.collect::<Vec<_>>());
    let is_clean = |line: &str| paths.iter().any(|path| is_below(line, path));
    let reports = report::all();
    let found = reports.iter().flat_map(|report| &report.lines).filter(|line| is_clean(line)).cloned();
    assert_none(&found.collect::<Vec<_>>());
}

/// Returns whether a finding is in a file below a path. A finding begins with its file and a colon.
fn is_below(finding: &str, path: &str) -> bool {
    finding.strip_prefix(path).is_some_and(|rest| rest.starts_with(['/', ':']))
}

#[test]
fn folder_name_does_not_match_a_longer_name() {
    assert!(is_below("tests/structure/src/lib.rs:1: found", "tests/structure"));
    assert!(is_below("tests/structure/src/lib.rs:1: found", "tests/structure/src/lib.rs"));
    assert!(!is_below("tests/structures/src/lib.rs:1: found", "tests/structure"));
}
