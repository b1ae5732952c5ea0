//! Tests the rules with numbers that were computed by hand.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use terrane_sdk::check::{Request, Scalar};

use super::*;

const NOW_MS: i64 = 1_704_067_200_000;

fn context(config: &str) -> CallContext {
    let extra = vec![("profile-config".to_owned(), config.to_owned())];
    CallContext { now_unix_ms: NOW_MS, extra, ..CallContext::for_tests() }
}

fn key(member: &str, ty: LogicalType) -> Column {
    Column { is_primary_key: true, ..Column::for_tests(member, ty) }
}

/// Evaluates the plan; `says` returns the numbers that answer a request.
fn assess(config: &str, columns: &[Column], says: impl Fn(&str, &Aggregate) -> Vec<f64>) -> Vec<Finding> {
    let context = context(config);
    let plan = Standard::make_plan(&context, columns).unwrap();
    let answer = |(index, request): (usize, &Request)| Answer {
        request: index as u32,
        values: says(&columns[request.column as usize].member, &request.agg).into_iter().map(Scalar::from).collect(),
        counts: Vec::new(),
    };
    let answers: Vec<Answer> = plan.requests.iter().enumerate().map(answer).collect();
    Standard::evaluate(&context, columns, &answers).unwrap()
}

fn found<'a>(findings: &'a [Finding], code: &str) -> Option<&'a Finding> {
    findings.iter().find(|finding| finding.code == code)
}

#[test]
fn completeness_is_rows_without_nulls_by_rows() {
    let columns = [Column::for_tests("status", LogicalType::Boolean)];
    let with_nulls = |nulls: f64| {
        move |_: &str, agg: &Aggregate| match agg {
            Aggregate::RowCount => vec![200.0],
            Aggregate::NullCount => vec![nulls],
            _ => vec![],
        }
    };
    for (nulls, score, severity) in [
        (0.0, 1.0, Severity::Info),
        (10.0, 0.95, Severity::Info),
        (11.0, 0.945, Severity::Medium),
        (101.0, 0.495, Severity::High),
    ] {
        let findings = assess("", &columns, with_nulls(nulls));
        let [finding] = &findings[..] else { panic!("{findings:?}") };
        assert_eq!((finding.code.as_str(), finding.severity), ("completeness", severity), "{nulls}");
        assert_eq!(finding.score, Some(score));
    }
    let strict = assess(r#"{"quality_thresholds": {"completeness_warning": 1}}"#, &columns, with_nulls(1.0));
    assert_eq!(strict[0].severity, Severity::Medium);
    let of_key = assess("", &[key("id", LogicalType::Boolean)], with_nulls(1.0));
    assert_eq!(of_key[0].severity, Severity::Critical);
}

#[test]
fn single_column_key_must_be_unique() {
    let says = |_: &str, agg: &Aggregate| match agg {
        Aggregate::RowCount => vec![1_000.0],
        Aggregate::NullCount => vec![0.0],
        Aggregate::DistinctCount => vec![990.0],
        Aggregate::CountWhere(_) => vec![0.0],
        _ => vec![],
    };
    let findings = assess("", &[key("id", LogicalType::Text)], says);
    let finding = found(&findings, "uniqueness").unwrap();
    assert_eq!((finding.score, finding.severity), (Some(0.99), Severity::High));
    assert!(found(&findings, "high_cardinality").is_none());
    let two = [key("id", LogicalType::Text), key("line", LogicalType::Text)];
    assert!(found(&assess("", &two, says), "uniqueness").is_none());
    let plain = assess("", &[Column::for_tests("note", LogicalType::Text)], says);
    assert!(found(&plain, "uniqueness").is_none());
    assert!(found(&plain, "high_cardinality").is_some());
}

#[test]
fn distinct_column_is_suggested_as_the_missing_key() {
    let says = |rows: f64, nulls: f64, distinct: f64| {
        move |_: &str, agg: &Aggregate| match agg {
            Aggregate::RowCount => vec![rows],
            Aggregate::NullCount => vec![nulls],
            Aggregate::DistinctCount => vec![distinct],
            _ => vec![],
        }
    };
    let code = Column::for_tests("code", LogicalType::Integer);
    let is_reported = |columns: &[Column], says: &dyn Fn(&str, &Aggregate) -> Vec<f64>| {
        found(&assess("", columns, says), "possible_key").is_some()
    };
    assert!(is_reported(std::slice::from_ref(&code), &says(100.0, 0.0, 100.0)));
    assert!(!is_reported(std::slice::from_ref(&code), &says(99.0, 0.0, 99.0)));
    assert!(!is_reported(std::slice::from_ref(&code), &says(100.0, 0.0, 99.0)));
    assert!(!is_reported(std::slice::from_ref(&code), &says(100.0, 1.0, 99.0)));
    assert!(!is_reported(&[Column::for_tests("code", LogicalType::Float)], &says(100.0, 0.0, 100.0)));
    assert!(!is_reported(&[code, key("id", LogicalType::Integer)], &says(100.0, 0.0, 100.0)));
}

#[test]
fn booleans_with_one_value_or_a_rare_one_are_reported() {
    let columns = [Column::for_tests("paid", LogicalType::Boolean)];
    for (yes, nulls, expected) in [
        (0.0, 0.0, Some(("constant", "`paid` is false in all 10000 rows with a value"))),
        (9_000.0, 1_000.0, Some(("constant", "`paid` is true in all 9000 rows with a value"))),
        (9.0, 0.0, Some(("rare_value", "`paid` is true in only 9 of 10000 rows with a value"))),
        (9_991.0, 0.0, Some(("rare_value", "`paid` is false in only 9 of 10000 rows with a value"))),
        (10.0, 0.0, None),
        (5_000.0, 0.0, None),
        (1.0, 9_999.0, None),
    ] {
        let findings = assess("", &columns, |_, agg| match agg {
            Aggregate::RowCount => vec![10_000.0],
            Aggregate::NullCount => vec![nulls],
            Aggregate::CountWhere(_) => vec![yes],
            _ => vec![],
        });
        let other = findings.iter().find(|finding| finding.dimension == QualityDimension::Other);
        let shown = other.map(|finding| (finding.code.as_str(), finding.message.as_str()));
        assert_eq!(shown, expected, "{yes} {nulls}");
    }
}

#[test]
fn cardinality_is_flagged_only_beyond_its_bounds() {
    let columns = [Column::for_tests("code", LogicalType::Integer)];
    for (distinct, code) in
        [(900.0, None), (901.0, Some("high_cardinality")), (1.0, None), (0.0, Some("very_low_cardinality"))]
    {
        let findings = assess("", &columns, |_, agg| match agg {
            Aggregate::RowCount => vec![1_000.0],
            Aggregate::DistinctCount => vec![distinct],
            _ => vec![],
        });
        assert_eq!(findings.first().map(|finding| finding.code.as_str()), code, "{distinct}");
    }
}

#[test]
fn placeholders_and_padding_are_counted_by_values() {
    let columns = [Column::for_tests("name", LogicalType::Text)];
    let plan = Standard::make_plan(&context(""), &columns).unwrap();
    let findings = assess("", &columns, |_, agg| match agg {
        Aggregate::RowCount => vec![100.0],
        Aggregate::NullCount => vec![20.0],
        Aggregate::CountWhere(0) => vec![16.0],
        Aggregate::CountWhere(1) => vec![4.0],
        _ => vec![],
    });
    assert_eq!(plan.predicates.roots.len(), 2);
    let validity = found(&findings, "validity").unwrap();
    assert_eq!((validity.score, validity.severity), (Some(0.8), Severity::Medium));
    assert_eq!(found(&findings, "consistency").unwrap().score, Some(0.95));
}

#[test]
fn dates_are_valid_from_1900_to_a_century_ahead() {
    let columns = [Column::for_tests("day", LogicalType::Date)];
    let plan = Standard::make_plan(&context(""), &columns).unwrap();
    // 2024-01-01 is day 19,723, and 1900-01-01 lies 25,567 days before the epoch.
    let bounds = [Scalar::DateDays(-25_567), Scalar::DateDays(19_723 + 36_525)];
    assert_eq!(plan.predicates.literals, bounds);
}

fn numbers(quartiles: [f64; 2], inner: f64, outer: f64, skewness: f64) -> impl Fn(&str, &Aggregate) -> Vec<f64> {
    move |_: &str, agg: &Aggregate| match agg {
        Aggregate::RowCount => vec![1_000.0],
        Aggregate::NullCount => vec![0.0],
        Aggregate::DistinctCount => vec![500.0],
        Aggregate::Quantiles(_) => quartiles.to_vec(),
        Aggregate::CountOutsideFences(k) => vec![if *k == 1.5 { inner } else { outer }],
        Aggregate::Skewness => vec![skewness],
        _ => vec![],
    }
}

#[test]
fn outliers_use_the_inner_fences_and_accuracy_the_outer_fences() {
    let columns = [Column::for_tests("amount", LogicalType::Float)];
    for (inner, severity) in [(5.0, Severity::Info), (11.0, Severity::Low), (51.0, Severity::Medium)] {
        let findings = assess("", &columns, numbers([10.0, 20.0], inner, 2.0, 0.0));
        let outliers = found(&findings, "outliers").unwrap();
        assert_eq!((outliers.severity, outliers.score), (severity, None));
        let evidence = |name: &str| outliers.evidence.iter().find(|(found, _)| found == name).unwrap().1.clone();
        assert_eq!((evidence("lower_fence"), evidence("upper_fence")), ("-5".to_owned(), "35".to_owned()));
        assert_eq!(found(&findings, "accuracy").unwrap().score, Some(0.998));
    }
    let none = assess("", &columns, numbers([10.0, 20.0], 0.0, 0.0, 0.0));
    assert!(found(&none, "outliers").is_none());
    // Without spread there are no fences.
    let flat = assess("", &columns, numbers([10.0, 10.0], 400.0, 400.0, 0.0));
    assert!(found(&flat, "outliers").is_none() && found(&flat, "accuracy").is_none());
    let of_key = assess("", &[key("id", LogicalType::Float)], numbers([10.0, 20.0], 90.0, 9.0, 9.0));
    assert!(found(&of_key, "outliers").is_none() && found(&of_key, "highly_skewed").is_none());
}

#[test]
fn skewness_is_high_above_two_on_either_side() {
    let columns = [Column::for_tests("amount", LogicalType::Decimal)];
    for (skewness, is_high) in [(2.0, false), (2.01, true), (-2.0, false), (-2.5, true)] {
        let findings = assess("", &columns, numbers([1.0, 2.0], 0.0, 0.0, skewness));
        assert_eq!(found(&findings, "highly_skewed").is_some(), is_high, "{skewness}");
    }
}

#[test]
fn missing_aggregates_cause_no_finding() {
    let columns = [Column::for_tests("amount", LogicalType::Float), Column::for_tests("name", LogicalType::Text)];
    let findings = assess("", &columns, |_, agg| match agg {
        Aggregate::RowCount => vec![10.0],
        _ => vec![],
    });
    assert_eq!(findings, []);
}

#[test]
fn empty_cube_has_one_finding() {
    let columns = [Column::for_tests("amount", LogicalType::Float)];
    let findings = assess("", &columns, |_, _| vec![0.0]);
    assert_eq!(findings.len(), 1);
    assert_eq!((findings[0].code.as_str(), findings[0].column), ("no_rows", None));
}

#[test]
fn settings_that_cannot_be_read_are_refused() {
    let columns = [Column::for_tests("amount", LogicalType::Float)];
    for config in ["[]", "{", r#"{"quality_thresholds": {"validity_warning": 2}}"#] {
        assert!(Standard::make_plan(&context(config), &columns).is_err(), "{config}");
    }
}

#[test]
fn manifest_matches_the_component() {
    terrane_sdk::manifest::check(Standard::INFO, include_str!("../plugin.toml"));
}
