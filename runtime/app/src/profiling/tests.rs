//! Tests of moments, fences, bins and the quality score. The expected values are computed by hand.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch};
use terrane_compiler::model::Governed;
use terrane_compiler::types::{LogicalType, Value};

use super::*;
use crate::ports::checks::CheckAnswer;

fn column(ty: LogicalType, is_measure: bool) -> StatisticsColumn {
    StatisticsColumn {
        name: "x".into(),
        title: "X".into(),
        ty,
        mismatch: None,
        is_measure,
        is_primary_key: false,
        governed: Governed::default(),
    }
}

/// Returns answers to these statistics; each value is a double.
fn answered(wishes: Vec<(Option<usize>, Statistic)>, values: &[f64]) -> Answers {
    let mut answers = Answers::new(&[column(LogicalType::Float, false)], true);
    let columns = values.iter().map(|value| Arc::new(Float64Array::from(vec![*value])) as ArrayRef);
    let names = (0..values.len()).map(|index| format!("v{index}"));
    let batch = RecordBatch::try_from_iter(names.zip(columns)).unwrap();
    answers.add(wishes, &[batch]);
    answers
}

fn of_column(statistics: Vec<Statistic>) -> Vec<(Option<usize>, Statistic)> {
    statistics.into_iter().map(|statistic| (Some(0), statistic)).collect()
}

fn answer(answers: &Answers, aggregate: CheckAggregate) -> CheckAnswer {
    answers.answer(&CheckRequest { column: 0, aggregate })
}

#[test]
fn deviation_and_skewness_come_from_central_moments() {
    // 1, 1, 1, 5: mean 2, second moment 3, third moment 6, so a skewness of 6 / 3^1.5.
    let wishes = of_column(vec![
        Statistic::Mean,
        Statistic::Moment { about: 2.0, power: 2 },
        Statistic::Moment { about: 2.0, power: 3 },
    ]);
    let answers = answered(wishes.clone(), &[2.0, 3.0, 6.0]);
    assert_eq!(answer(&answers, CheckAggregate::Deviation).values, [Value::Float(3.0_f64.sqrt())]);
    let Value::Float(skewness) = answer(&answers, CheckAggregate::Skewness).values[0] else { panic!("a double") };
    assert!((skewness - 1.154_700_538_379_251_5).abs() < 1e-15);
    // If all values are equal, the deviation is defined and the skewness is not.
    let flat = answered(wishes, &[2.0, 0.0, 0.0]);
    assert_eq!(answer(&flat, CheckAggregate::Deviation).values, [Value::Float(0.0)]);
    assert_eq!(answer(&flat, CheckAggregate::Skewness), CheckAnswer::default());
}

#[test]
fn bins_are_differences_of_counts_below_their_edges() {
    let wishes = of_column(vec![
        Statistic::Min,
        Statistic::Max,
        Statistic::Values,
        statistics::below(2.5),
        statistics::below(5.0),
        statistics::below(7.5),
    ]);
    let answers = answered(wishes, &[0.0, 10.0, 20.0, 3.0, 11.0, 19.0]);
    let found = answer(&answers, CheckAggregate::Histogram(4));
    assert_eq!(found.values, [0.0, 2.5, 5.0, 7.5, 10.0].map(Value::Float));
    assert_eq!(found.counts, [3, 8, 8, 1]);
    // If all values are equal, the histogram has one bin.
    let one = answered(of_column(vec![Statistic::Min, Statistic::Max, Statistic::Values]), &[4.0, 4.0, 9.0]);
    assert_eq!(answer(&one, CheckAggregate::Histogram(4)).counts, [9]);
}

#[test]
fn fences_are_reported_when_the_quartiles_are_known() {
    let quartiles = of_column(vec![Statistic::Quantile(0.25), Statistic::Quantile(0.75)]);
    let answers = answered(quartiles, &[10.0, 20.0]);
    assert_eq!(answers.fences(0, 1.5), Some((-5.0, 35.0)));
    let wish = CheckRequest { column: 0, aggregate: CheckAggregate::OutsideFences(1.5) };
    let following = statistics::following(&answers, [&wish].into_iter());
    assert_eq!(following, of_column(vec![statistics::outside(-5.0, 35.0)]));
    assert_eq!(answers.answer(&wish), CheckAnswer::default());
}

#[test]
fn aggregates_are_requested_once_for_suitable_columns() {
    let requests = [
        CheckAggregate::Mean,
        CheckAggregate::Deviation,
        CheckAggregate::Nulls,
        CheckAggregate::Quantiles(vec![0.25, 0.5]),
        CheckAggregate::OutsideFences(3.0),
        CheckAggregate::Distinct,
    ]
    .map(|aggregate| CheckRequest { column: 0, aggregate });
    let wishes = |ty, has_quantiles| {
        let answers = Answers::new(&[column(ty, false)], has_quantiles);
        statistics::plain(&answers, requests.iter()).into_iter().map(|(_, statistic)| statistic).collect::<Vec<_>>()
    };
    use Statistic::{Distinct, Mean, Quantile, Rows, Values};
    let quantiles = [Quantile(0.25), Quantile(0.5), Quantile(0.75)];
    let expected: Vec<Statistic> = [Rows, Mean, Values].into_iter().chain(quantiles).chain([Distinct]).collect();
    assert_eq!(wishes(LogicalType::Decimal, true), expected);
    assert_eq!(wishes(LogicalType::Decimal, false), [Rows, Mean, Values, Distinct]);
    assert_eq!(wishes(LogicalType::Text, true), [Rows, Values, Distinct]);
    assert_eq!(wishes(LogicalType::Geo, true), [Rows, Values]);
}

#[test]
fn statements_have_at_most_a_hundred_columns() {
    let wishes: Vec<(Option<usize>, Statistic)> = (0..250).map(|column| (Some(column), Statistic::Min)).collect();
    let parts = statistics::split(wishes.clone());
    assert_eq!(parts.iter().map(Vec::len).collect::<Vec<_>>(), [100, 100, 50]);
    assert_eq!(parts.concat(), wishes);
}

#[test]
fn frequent_values_are_cut_to_the_requested_number() {
    let mut answers = Answers::new(&[column(LogicalType::Text, false), column(LogicalType::Float, true)], true);
    let values: ArrayRef = Arc::new(arrow::array::StringArray::from(vec!["a", "b", "c"]));
    let counts: ArrayRef = Arc::new(Int64Array::from(vec![9, 5, 1]));
    answers.add_top(0, 3, &[RecordBatch::try_from_iter([("value", values), ("v0", counts)]).unwrap()]);
    let found = answer(&answers, CheckAggregate::Top(2));
    assert_eq!((found.values, found.counts), (vec![Value::Text("a".into()), Value::Text("b".into())], vec![9, 5]));
    assert_eq!(answer(&answers, CheckAggregate::Top(4)), CheckAnswer::default());
    let requests =
        [(0, 2), (1, 5), (0, 7)].map(|(column, most)| CheckRequest { column, aggregate: CheckAggregate::Top(most) });
    assert_eq!(statistics::most_frequent(&answers, requests.iter()), [(0, 7)]);
}

fn finding(dimension: QualityDimension, score: Option<f64>) -> Finding {
    Finding {
        component: "check-test".into(),
        column: Some(0),
        dimension,
        severity: FindingSeverity::Info,
        score,
        code: "test".into(),
        message: "test".into(),
        evidence: Vec::new(),
    }
}

#[test]
fn quality_score_is_the_weighted_sum_of_the_means() {
    use QualityDimension::{Accuracy, Completeness, Consistency, Other, Uniqueness, Validity};
    let mut findings = vec![
        finding(Completeness, Some(1.0)),
        finding(Completeness, Some(0.5)),
        finding(Validity, Some(0.8)),
        finding(Uniqueness, Some(0.9)),
        finding(Consistency, Some(1.0)),
        finding(Accuracy, Some(0.2)),
        finding(Other, Some(0.0)),
        finding(Validity, None),
    ];
    // 0.3 · 0.75 + 0.25 · 0.8 + 0.2 · 0.9 + 0.15 · 1 + 0.1 · 0.2
    let overall = |findings: &[Finding]| quality::overall(&quality::sides(findings));
    assert!((overall(&findings).unwrap() - 0.775).abs() < 1e-12);
    // Without a score for uniqueness, the sum is 0.595 of the remaining weight 0.8.
    findings.remove(3);
    assert!((overall(&findings).unwrap() - 0.74375).abs() < 1e-12);
    assert_eq!(overall(&[finding(Other, Some(1.0))]), None);
}
