//! Reports boolean columns in which one of the two values is missing or rare. Such a column hardly distinguishes rows.
//! Often its source no longer writes the value.
//!
//! Nulls are not counted. Columns of measures are not checked.

use terrane_sdk::LogicalType;
use terrane_sdk::check::{Column, Finding, QualityDimension, Severity};
use terrane_sdk::filter::{Filter, column};

use crate::{Counted, Look, shown};

/// The share of the rarer value below which it is reported.
const RARE: f64 = 0.001;

pub(crate) fn condition(tested: &Column) -> Option<Filter> {
    let is_boolean = tested.ty == LogicalType::Boolean && !tested.is_measure;
    is_boolean.then(|| column(&tested.member).eq(true))
}

pub(crate) fn assess(look: &Look<'_>) -> Option<Finding> {
    let (yes, values) = (look.counted(Counted::True)?, look.values()?);
    let no = values - yes;
    if values < 2.0 || no < 0.0 {
        return None;
    }
    let (rare, word, other) = if yes <= no { (yes, "true", "false") } else { (no, "false", "true") };
    let name = &look.column.member;
    let (code, message) = match rare {
        0.0 => ("constant", format!("`{name}` is {other} in all {} rows with a value", shown(values))),
        rare if rare / values < RARE => {
            ("rare_value", format!("`{name}` is {word} in only {} of {} rows with a value", shown(rare), shown(values)))
        }
        _ => return None,
    };
    let finding = Finding::new(look.index, QualityDimension::Other, Severity::Info, code, &message);
    Some(finding.with_evidence("count", &shown(rare)).with_evidence("of", &shown(values)))
}
