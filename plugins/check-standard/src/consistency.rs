//! Consistency: the share of consistent strings among the strings that are not null.
//!
//! A string is inconsistent if it begins or ends with a space: it looks like the string without the space, but the two
//! are not equal.

use terrane_sdk::LogicalType;
use terrane_sdk::check::{Column, Finding, QualityDimension};
use terrane_sdk::filter::{Filter, any, column};

use crate::{Counted, Look};

pub(crate) fn condition(tested: &Column) -> Option<Filter> {
    let is_text = tested.ty == LogicalType::Text && !tested.is_measure;
    is_text.then(|| any([column(&tested.member).starts_with(" "), column(&tested.member).ends_with(" ")]))
}

pub(crate) fn assess(look: &Look<'_>) -> Option<Finding> {
    let padded = look.counted(Counted::Inconsistent)?;
    let what = "strings begin or end with a space";
    look.scored(QualityDimension::Consistency, "consistency", padded, look.values()?, what)
}
