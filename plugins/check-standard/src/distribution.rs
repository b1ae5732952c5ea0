//! The distribution of numbers: accuracy, outliers, skewness.
//!
//! Outliers are below Q1 − 1.5 · IQR or above Q3 + 1.5 · IQR, and a skewness with an absolute value above 2 is high.
//! Accuracy is the share of values within John Tukey's outer fences, Q1 − 3 · IQR and Q3 + 3 · IQR: values outside
//! these fences are more likely wrong than rare. A column whose quartiles are equal has no fences. Keys are not
//! checked: a numeric key is an identifier, not a quantity.

use terrane_sdk::check::{Aggregate, Column, Finding, Planner, QualityDimension, Severity};

use crate::{Look, is_number, shown};

const INNER: f64 = 1.5;
const OUTER: f64 = 3.0;
const HIGHLY_SKEWED: f64 = 2.0;
/// The shares of outliers at which the severity rises.
const SOME: f64 = 0.01;
const MANY: f64 = 0.05;

fn quartiles() -> Aggregate {
    Aggregate::Quantiles(vec![0.25, 0.75])
}

pub(crate) fn ask(planner: &mut Planner, index: usize, column: &Column) {
    if is_number(column.ty) && !column.is_primary_key {
        planner.ask(index, quartiles());
        planner.ask(index, Aggregate::CountOutsideFences(INNER));
        planner.ask(index, Aggregate::CountOutsideFences(OUTER));
        planner.ask(index, Aggregate::Skewness);
    }
}

pub(crate) fn assess(look: &Look<'_>) -> Vec<Finding> {
    if !is_number(look.column.ty) || look.column.is_primary_key {
        return Vec::new();
    }
    [accuracy(look), outliers(look), skewness(look)].into_iter().flatten().collect()
}

/// Returns the first and the third quartile; `None` if they are equal or missing.
fn spread(look: &Look<'_>) -> Option<(f64, f64)> {
    let answer = look.answers.get(look.index, &quartiles())?;
    let number = |at: usize| terrane_sdk::check::number(answer.values.get(at)?);
    let (first, third) = (number(0)?, number(1)?);
    (third > first).then_some((first, third))
}

fn accuracy(look: &Look<'_>) -> Option<Finding> {
    spread(look)?;
    let far = look.number(&Aggregate::CountOutsideFences(OUTER))?;
    let what = "values lie beyond three times the interquartile range";
    look.scored(QualityDimension::Accuracy, "accuracy", far, look.values()?, what)
}

fn outliers(look: &Look<'_>) -> Option<Finding> {
    let (first, third) = spread(look)?;
    let (count, values) = (look.number(&Aggregate::CountOutsideFences(INNER))?, look.values()?);
    if count == 0.0 || values == 0.0 {
        return None;
    }
    let severity = match count / values {
        share if share > MANY => Severity::Medium,
        share if share > SOME => Severity::Low,
        _ => Severity::Info,
    };
    let reach = INNER * (third - first);
    let (low, high) = (shown(first - reach), shown(third + reach));
    let name = &look.column.member;
    let message =
        format!("`{name}`: {} of {} values are outliers, outside {low} to {high}", shown(count), shown(values));
    let finding = Finding::new(look.index, QualityDimension::Other, severity, "outliers", &message);
    let finding = finding.with_evidence("count", &shown(count)).with_evidence("of", &shown(values));
    Some(finding.with_evidence("lower_fence", &low).with_evidence("upper_fence", &high))
}

fn skewness(look: &Look<'_>) -> Option<Finding> {
    let skewness = look.number(&Aggregate::Skewness)?;
    if skewness.abs() <= HIGHLY_SKEWED {
        return None;
    }
    let (side, name) = (if skewness > 0.0 { "right" } else { "left" }, &look.column.member);
    let message = format!("`{name}` is highly skewed: its tail is on the {side} (skewness {})", shown(skewness));
    let finding = Finding::new(look.index, QualityDimension::Other, Severity::Low, "highly_skewed", &message);
    Some(finding.with_evidence("skewness", &shown(skewness)))
}
