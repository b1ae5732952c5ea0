//! Tests the suite without a warehouse: its statements, and its comparison of answers.

use std::collections::HashSet;

use super::*;
use crate::dialect::{Op, ProfileBuilder};

#[test]
fn cells_are_compared_by_value() {
    for (expected, cell) in [
        (Expected::number("2.5"), "2.500000000"),
        (Expected::number("0"), "-0.00"),
        (Expected::number("0.3"), ".3"),
        (Expected::number(i128::from(i64::MAX) * 2), "18446744073709551614"),
        (Expected::Float(1.0 / 3.0), "0.33333333333"),
        (Expected::Boolean(true), "t"),
        (Expected::Boolean(false), "0"),
        (Expected::Time("2024-01-01"), "2024-01-01T00:00:00.000Z"),
        (Expected::Time("2024-01-01 10:00:00.5"), "2024-01-01 10:00:00.500000+00:00"),
    ] {
        assert!(expected.matches(Some(cell)), "{expected:?} {cell}");
        assert!(!expected.matches(None), "{expected:?}");
    }
    for (expected, cell) in [
        (Expected::number(i128::from(i64::MAX) * 2), "18446744073709552000"),
        (Expected::number(100), "1"),
        (Expected::Float(1.0 / 3.0), "0.3333"),
        (Expected::text("a"), "a "),
        (Expected::Time("2024-01-01"), "2024-01-01 00:00:01"),
        (Expected::Null, ""),
    ] {
        assert!(!expected.matches(Some(cell)), "{expected:?} {cell}");
    }
}

#[test]
fn every_case_has_a_name_of_its_own() {
    let profile = ProfileBuilder::ansi("quack").build();
    let mut seen = HashSet::new();
    for case in cases(&profile) {
        assert!(seen.insert((case.group, case.name.clone())), "{}: {}", case.group, case.name);
    }
    assert!(seen.len() > 800, "{}", seen.len());
}

#[test]
fn every_standard_operator_has_a_case() {
    let profile = ProfileBuilder::ansi("quack").build();
    let whole = cases(&profile).len();
    for op in profile.ops.iter().map(|template| template.op).filter(|op| *op != Op::CurrentTimestamp) {
        let mut poorer = profile.clone();
        poorer.ops.retain(|template| template.op != op);
        let spoilt = cases(&poorer);
        let is_asked = spoilt.len() < whole || spoilt.iter().zip(cases(&profile)).any(|(a, b)| a.sql != b.sql);
        assert!(is_asked, "{op:?}");
    }
}

#[test]
fn rows_and_the_error_of_a_failure_are_reported() {
    let profile = ProfileBuilder::ansi("quack").build();
    let failures = run(&profile, |_| Ok(vec![vec![None, Some("7".to_owned())]]));
    assert!(failures.iter().all(|failure| failure.found == "found null | 7"), "{:?}", failures.first());
    let failures = run(&profile, |_| Err("no such thing".to_owned()));
    assert_eq!(failures.len(), cases(&profile).len());
    assert!(failures.iter().all(|failure| failure.found == "no such thing"));
}
