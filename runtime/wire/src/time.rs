//! Time dimensions and ranges of time.

use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::Value as Json;
use terrane_compiler::query::{CompareRange, DateRange, MemberRef, QueryError, TimeDimension, TimeRange};
use terrane_compiler::types::Granularity;

use crate::fields::{FieldError, Fields, Path};
use crate::query::{GranularityName, Member, member};

/// A time dimension with its granularity and its range.
#[derive(Debug, JsonSchema)]
#[schemars(rename = "TimeDimension", deny_unknown_fields)]
pub struct TimeDimensionBody {
    pub dimension: Member,
    pub granularity: Option<GranularityName>,
    pub date_range: Option<DateRangeBody>,
}

/// A range of time in words, like `last 7 days`, or a start and an end of which one may be null.
#[derive(Debug, JsonSchema)]
#[schemars(rename = "DateRange", untagged)]
pub enum DateRangeBody {
    Words(String),
    Ends(#[schemars(schema_with = "ends")] Vec<Option<String>>),
}

/// A range of time in words, like `last 7 days`, or as an object.
#[derive(Debug, JsonSchema)]
#[schemars(rename = "TimeRange", untagged)]
pub enum TimeRangeBody {
    Words(String),
    Range(TimeRangeObject),
}

/// A range of time: `{"start": "2024-01-01", "end": "2024-03-31"}`.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TimeRangeObject {
    pub dimension: Option<Member>,
    pub start: Option<String>,
    pub end: Option<String>,
    pub granularity: Option<GranularityName>,
}

/// The range that a query is compared with.
#[derive(Debug, JsonSchema)]
#[schemars(rename = "CompareRange", untagged)]
pub enum CompareRangeBody {
    Words(String),
    Ends(#[schemars(schema_with = "ends")] Vec<Option<String>>),
    Shift(CompareShift),
}

/// The same range at an earlier time: `{"shift": "1 year"}` moves it back by a year.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct CompareShift {
    pub shift: String,
}

fn ends(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": { "type": ["string", "null"] }, "minItems": 2, "maxItems": 2 })
}

pub(crate) const RANGE: &[&str] = &["dimension", "start", "end", "granularity"];
pub(crate) const SHIFT: &[&str] = &["shift"];
pub(crate) const DIMENSION: &[&str] = &["dimension", "granularity", "date_range"];
const EXPECTED_DIMENSION: &str = "an object like {\"dimension\": …, \"granularity\": …, \"date_range\": […, …]}";
const EXPECTED_RANGE: &str = "words like \"last 7 days\" or an object like {\"start\": …, \"end\": …}";
const EXPECTED_DATES: &str = "words like \"last 7 days\" or a list of a start and an end";
const EXPECTED_COMPARE: &str =
    "an object like {\"shift\": \"1 year\"}, words like \"2023\" or a list of a start and an end";
const EXPECTED_DATE: &str = "a date or timestamp, like \"2024-01-31\",";
const EXPECTED_MEMBER: &str = "a time dimension, like \"orders.created_at\",";

pub(crate) fn dimension(value: &Json, path: &Path<'_>) -> Result<TimeDimension, FieldError> {
    let fields = Fields::new(value, path, EXPECTED_DIMENSION, DIMENSION)?;
    let member = member(fields.required_string("dimension", EXPECTED_MEMBER)?, &path.field("dimension"))?;
    let range = match fields.get("date_range") {
        None => None,
        Some(range) => Some(dates(range, &path.field("date_range"))?),
    };
    Ok(TimeDimension { granularity: granularity(&fields, path, &member)?, member, range })
}

pub(crate) fn range(value: &Json, path: &Path<'_>) -> Result<TimeRange, FieldError> {
    if let Json::String(words) = value {
        return Ok(TimeRange { member: None, granularity: None, range: DateRange::Words(words.as_str().into()) });
    }
    let fields = Fields::new(value, path, EXPECTED_RANGE, RANGE)?;
    let (start, end) = (fields.string("start", EXPECTED_DATE)?, fields.string("end", EXPECTED_DATE)?);
    if start.is_none() && end.is_none() {
        return Err(path.missing("start"));
    }
    let member = match fields.string("dimension", EXPECTED_MEMBER)? {
        None => None,
        Some(text) => Some(member(text, &path.field("dimension"))?),
    };
    let granularity = match &member {
        Some(member) => granularity(&fields, path, member)?,
        None => granularity_of(&fields, path, "time_range")?,
    };
    Ok(TimeRange { member, granularity, range: DateRange::Between(start.map(Into::into), end.map(Into::into)) })
}

/// Reads the range of a comparison: `{"shift": "1 year"}`, or a range of its own.
pub(crate) fn compare(value: &Json, path: &Path<'_>) -> Result<CompareRange, FieldError> {
    match value {
        Json::Object(_) => {
            let fields = Fields::new(value, path, EXPECTED_COMPARE, SHIFT)?;
            let shift = fields.required_string("shift", "a stretch of time, like \"1 year\",")?;
            Ok(CompareRange::Shift(shift.into()))
        }
        range => dates_or(range, path, EXPECTED_COMPARE).map(CompareRange::Range),
    }
}

fn dates(value: &Json, path: &Path<'_>) -> Result<DateRange, FieldError> {
    dates_or(value, path, EXPECTED_DATES)
}

fn dates_or(value: &Json, path: &Path<'_>, expected: &'static str) -> Result<DateRange, FieldError> {
    match value {
        Json::String(words) => Ok(DateRange::Words(words.as_str().into())),
        Json::Array(ends) => match ends.as_slice() {
            [start, end] if !(start.is_null() && end.is_null()) => {
                Ok(DateRange::Between(date(start, &path.item(0))?, date(end, &path.item(1))?))
            }
            _ => Err(path.invalid_value(&format!("a list of {}", ends.len()), expected)),
        },
        other => Err(path.invalid_type(other, expected)),
    }
}

/// Reads one end of a range; null is an open end.
fn date(value: &Json, path: &Path<'_>) -> Result<Option<Arc<str>>, FieldError> {
    match value {
        Json::Null => Ok(None),
        Json::String(text) => Ok(Some(text.as_str().into())),
        other => Err(path.invalid_type(other, EXPECTED_DATE)),
    }
}

fn granularity(fields: &Fields<'_>, path: &Path<'_>, member: &MemberRef) -> Result<Option<Granularity>, FieldError> {
    granularity_of(fields, path, &member.text)
}

fn granularity_of(fields: &Fields<'_>, path: &Path<'_>, member: &str) -> Result<Option<Granularity>, FieldError> {
    let Some(word) = fields.string("granularity", "a granularity, like \"month\",")? else { return Ok(None) };
    let unknown = |_| QueryError::UnknownGranularity { member: member.into(), granularity: word.into() };
    word.parse().map(Some).map_err(|error| path.field("granularity").rejected(unknown(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shifts_words_and_ranges_are_comparisons() {
        let read = |text: &str| compare(&serde_json::from_str(text).unwrap(), &Path::ROOT).unwrap();
        let between = |start: Option<&str>, end: Option<&str>| {
            CompareRange::Range(DateRange::Between(start.map(Into::into), end.map(Into::into)))
        };
        assert_eq!(read(r#"{"shift": "1 year"}"#), CompareRange::Shift("1 year".into()));
        assert_eq!(read(r#""2023""#), CompareRange::Range(DateRange::Words("2023".into())));
        assert_eq!(read(r#"["2023-01-01", "2023-12-31"]"#), between(Some("2023-01-01"), Some("2023-12-31")));
        assert_eq!(read(r#"["2023-01-01", null]"#), between(Some("2023-01-01"), None));
    }
}
