//! Validity: the share of valid values among the values that are not null.
//!
//! Two kinds of values are invalid: strings that users write for a missing value, and dates before 1900 or more than a
//! hundred years ahead, which sources use for "never".

use terrane_sdk::check::{Column, Finding, QualityDimension, Scalar};
use terrane_sdk::filter::{Filter, any, column};
use terrane_sdk::{CallContext, LogicalType};

use crate::{Counted, Look};

/// Strings that mean a missing value. `NA` and `None` are not listed: `NA` is the country code of Namibia, and a person
/// may be called None.
const PLACEHOLDERS: [&str; 13] =
    ["", " ", "-", "--", "?", "N/A", "n/a", "#N/A", "NULL", "null", "(null)", "NaN", "nan"];
/// The earliest plausible date, 1900-01-01, in days since 1970-01-01.
const EARLIEST_DAYS: i32 = -25_567;
const DAY_MS: i64 = 86_400_000;
const CENTURY_DAYS: i32 = 36_525;

pub(crate) fn condition(context: &CallContext, tested: &Column) -> Option<Filter> {
    if tested.is_measure {
        return None;
    }
    let name = || column(&tested.member);
    match tested.ty {
        LogicalType::Text => Some(name().in_list(PLACEHOLDERS)),
        LogicalType::Date | LogicalType::Timestamp | LogicalType::TimestampTz => {
            let today = i32::try_from(context.now_unix_ms.div_euclid(DAY_MS)).ok()?;
            let latest = Scalar::DateDays(today.checked_add(CENTURY_DAYS)?);
            Some(any([name().lt(Scalar::DateDays(EARLIEST_DAYS)), name().gt(latest)]))
        }
        _ => None,
    }
}

pub(crate) fn assess(look: &Look<'_>) -> Option<Finding> {
    let invalid = look.counted(Counted::Invalid)?;
    let what = if look.column.ty == LogicalType::Text {
        "values are placeholders for a missing value (empty, -, N/A, null …)"
    } else {
        "dates are before 1900 or more than a century ahead"
    };
    look.scored(QualityDimension::Validity, "validity", invalid, look.values()?, what)
}
