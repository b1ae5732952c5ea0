//! Completeness: (total − nulls) / total.

use terrane_sdk::check::{Aggregate, Finding, Planner, QualityDimension, Severity};

use crate::Look;

pub(crate) fn ask(planner: &mut Planner, index: usize) {
    planner.ask(index, Aggregate::NullCount);
}

pub(crate) fn assess(look: &Look<'_>) -> Option<Finding> {
    let nulls = look.number(&Aggregate::NullCount)?;
    let mut finding =
        look.scored(QualityDimension::Completeness, "completeness", nulls, look.rows, "rows have no value")?;
    // A row without a key cannot be distinguished from other rows.
    if look.column.is_primary_key && nulls > 0.0 {
        finding.severity = Severity::Critical;
    }
    Some(finding)
}
