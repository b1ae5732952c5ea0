//! Uniqueness: for a column that is the whole key, the number of distinct values divided by the number of values.
//!
//! Two kinds of columns have no score. Columns outside the key are not expected to have distinct values. For a key of
//! several columns, no aggregate of the contract counts the distinct combinations.
//!
//! If the cube has no key, a column of strings or integers whose values are all different is reported as a possible key.

use terrane_sdk::LogicalType;
use terrane_sdk::check::{Aggregate, Column, Finding, Planner, QualityDimension, Severity};

use crate::{Look, shown};

/// The smallest number of rows in which a column is proposed as a key. In fewer rows, values are often different by
/// chance.
const MIN_ROWS: f64 = 100.0;

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
    let what = "keys are duplicates";
    let mut finding = look.scored(QualityDimension::Uniqueness, "uniqueness", repeated, values, what)?;
    if repeated > 0.0 {
        finding.severity = finding.severity.max(Severity::High);
    }
    Some(finding)
}

pub(crate) fn possible_key(look: &Look<'_>) -> Option<Finding> {
    let is_type_of_keys = matches!(look.column.ty, LogicalType::Text | LogicalType::Integer);
    if look.has_key || look.column.is_measure || !is_type_of_keys || look.rows < MIN_ROWS {
        return None;
    }
    let (values, distinct) = (look.values()?, look.number(&Aggregate::DistinctCount)?);
    if values < look.rows || distinct < look.rows {
        return None;
    }
    let name = &look.column.member;
    let message = format!(
        "`{name}` has distinct values in all {} rows; the cube has no key, and this column may be one",
        shown(look.rows)
    );
    Some(Finding::new(look.index, QualityDimension::Other, Severity::Info, "possible_key", &message))
}
