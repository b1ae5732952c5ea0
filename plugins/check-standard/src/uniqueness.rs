//! Uniqueness: the number of distinct values divided by the number of values, of a column that is the whole key.
//!
//! Two kinds of columns have no score. Columns outside the key are not expected to have distinct values. For a key of
//! several columns, no aggregate of the contract counts the distinct combinations.

use terrane_sdk::check::{Aggregate, Column, Finding, Planner, QualityDimension, Severity};

use crate::Look;

pub(crate) fn ask(planner: &mut Planner, index: usize, column: &Column) {
    if column.is_primary_key {
        planner.ask(index, Aggregate::DistinctCount);
    }
}

pub(crate) fn assess(look: &Look<'_>) -> Option<Finding> {
    if !look.is_key {
        return None;
    }
    let (values, distinct) = (look.values()?, look.number(&Aggregate::DistinctCount)?);
    let repeated = (values - distinct).max(0.0);
    let what = "keys are there already";
    let mut finding = look.scored(QualityDimension::Uniqueness, "uniqueness", repeated, values, what)?;
    if repeated > 0.0 {
        finding.severity = finding.severity.max(Severity::High);
    }
    Some(finding)
}
