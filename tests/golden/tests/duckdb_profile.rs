//! Tests that the DuckDB dialect passes the host's checks and has the properties on which the planner relies.

use terrane_compiler::sql::dialect_profile::{DialectProfile, Op};
use terrane_compiler::sql::template::{Segment, Template};
use terrane_compiler::types::{Granularity, LogicalType};
use terrane_golden_tests::duckdb_profile;

fn text(template: &Template) -> String {
    let segments = template.segments.iter().map(|segment| match segment {
        Segment::Text(text) => text.to_string(),
        Segment::Hole(hole) => format!("{{{hole}}}"),
        Segment::AllArguments => "{*}".to_owned(),
    });
    segments.collect()
}

fn op(profile: &DialectProfile, op: Op, arity: usize, ty: Option<LogicalType>) -> String {
    text(profile.op(op, arity, ty).expect("the profile has the operator"))
}

#[test]
fn operators_resolve_to_the_most_particular_overload() {
    let profile = duckdb_profile();
    assert_eq!(op(&profile, Op::Count, 0, None), "count(*)");
    assert_eq!(op(&profile, Op::Count, 1, Some(LogicalType::Text)), "count({0})");
    assert_eq!(op(&profile, Op::Coalesce, 7, None), "COALESCE({*})");
    assert_eq!(op(&profile, Op::ToTimeZone, 2, Some(LogicalType::TimestampTz)), "{0} AT TIME ZONE {1}");
    let stored_in_utc = "({0} AT TIME ZONE 'UTC') AT TIME ZONE {1}";
    assert_eq!(op(&profile, Op::ToTimeZone, 2, Some(LogicalType::Timestamp)), stored_in_utc);
    assert!(profile.op(Op::ToTimeZone, 2, Some(LogicalType::Text)).is_none());
}

#[test]
fn every_granularity_truncates_and_fine_ones_preserve_the_instant() {
    let profile = duckdb_profile();
    for granularity in Granularity::ALL {
        let time = profile.time(granularity);
        assert_eq!(text(&time.trunc), format!("date_trunc('{granularity}', {{0}})"));
        assert_eq!(time.trunc_instant.is_some(), granularity.is_sub_day());
    }
    let hour = profile.time(Granularity::Hour).trunc_instant.as_ref().map(text);
    assert_eq!(hour.as_deref(), Some("{0} - ({1} - date_trunc('hour', {1}))"));
}

#[test]
fn names_are_quoted_if_necessary_and_never_end_early() {
    let quoting = duckdb_profile().quoting;
    for (name, expected) in [
        ("orders", "orders"),
        ("OrderId", "OrderId"),
        ("order", "\"order\""),
        ("Select", "\"Select\""),
        ("", "\"\""),
        ("1st", "\"1st\""),
        ("two words", "\"two words\""),
        ("a\"b", "\"a\"\"b\""),
        ("a'; DROP TABLE t --", "\"a'; DROP TABLE t --\""),
        ("größe", "\"größe\""),
        ("a\\\"", "\"a\\\"\"\""),
    ] {
        let mut written = String::new();
        quoting.write_name(&mut written, name);
        assert_eq!(written, expected);
    }
    let mut written = String::new();
    quoting.write_text(&mut written, "it's \\");
    assert_eq!(written, "'it''s \\'");
}
