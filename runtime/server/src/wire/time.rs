//! Time dimensions and ranges.

use serde_json::Value as Json;
use terrane_compiler::query::{CompareRange, DateRange, MemberRef, TimeDimension, TimeRange};
use terrane_compiler::types::Granularity;

use super::fields::{Fields, Misfit, Path};
use super::query::member;

pub(super) const DIMENSION: &[&str] = &["dimension", "granularity", "date_range"];
const DIMENSION_FITS: &str = "an object like {\"dimension\": …, \"granularity\": …, \"date_range\": […, …]}";
const RANGE_FITS: &str = "words like \"last 7 days\" or an object like {\"start\": …, \"end\": …}";
const DATES_FITS: &str = "words like \"last 7 days\" or a list of a start and an end";
const COMPARE_FITS: &str =
    "an object like {\"shift\": \"1 year\"}, words like \"2023\" or a list of a start and an end";
const DATE_FITS: &str = "a date or timestamp, like \"2024-01-31\",";
const MEMBER_FITS: &str = "a time dimension, like \"orders.created_at\",";

pub(super) fn dimension(value: &Json, path: &Path<'_>) -> Result<TimeDimension, Misfit> {
    let fields = Fields::new(value, path, DIMENSION_FITS, DIMENSION)?;
    let member = member(fields.required_text("dimension", MEMBER_FITS)?, &path.field("dimension"))?;
    let range = match fields.get("date_range") {
        None => None,
        Some(range) => Some(dates(range, &path.field("date_range"))?),
    };
    Ok(TimeDimension { granularity: granularity(&fields, path, &member)?, member, range })
}

pub(super) fn range(value: &Json, path: &Path<'_>) -> Result<TimeRange, Misfit> {
    if let Json::String(words) = value {
        return Ok(TimeRange { member: None, granularity: None, range: DateRange::Words(words.as_str().into()) });
    }
    let fields = Fields::new(value, path, RANGE_FITS, &["dimension", "start", "end", "granularity"])?;
    let (start, end) = (fields.text("start", DATE_FITS)?, fields.text("end", DATE_FITS)?);
    if start.is_none() && end.is_none() {
        return Err(path.missing("start"));
    }
    let member = match fields.text("dimension", MEMBER_FITS)? {
        None => None,
        Some(text) => Some(member(text, &path.field("dimension"))?),
    };
    let granularity = match &member {
        Some(member) => granularity(&fields, path, member)?,
        None => granularity_of(&fields, path, "time_range")?,
    };
    Ok(TimeRange { member, granularity, range: DateRange::Between(start.map(Into::into), end.map(Into::into)) })
}

/// What a range is compared with: `{"shift": "1 year"}`, or a range of its own.
pub(super) fn compare(value: &Json, path: &Path<'_>) -> Result<CompareRange, Misfit> {
    match value {
        Json::Object(_) => {
            let fields = Fields::new(value, path, COMPARE_FITS, &["shift"])?;
            let shift = fields.required_text("shift", "a stretch of time, like \"1 year\",")?;
            Ok(CompareRange::Shift(shift.into()))
        }
        range => dates_or(range, path, COMPARE_FITS).map(CompareRange::Range),
    }
}

fn dates(value: &Json, path: &Path<'_>) -> Result<DateRange, Misfit> {
    dates_or(value, path, DATES_FITS)
}

fn dates_or(value: &Json, path: &Path<'_>, fits: &'static str) -> Result<DateRange, Misfit> {
    match value {
        Json::String(words) => Ok(DateRange::Words(words.as_str().into())),
        Json::Array(ends) => match ends.as_slice() {
            [start, end] if !(start.is_null() && end.is_null()) => {
                Ok(DateRange::Between(date(start, &path.item(0))?, date(end, &path.item(1))?))
            }
            _ => Err(path.wrong_word(&format!("a list of {}", ends.len()), fits)),
        },
        other => Err(path.wrong_type(other, fits)),
    }
}

/// Null is an open end.
fn date(value: &Json, path: &Path<'_>) -> Result<Option<std::sync::Arc<str>>, Misfit> {
    match value {
        Json::Null => Ok(None),
        Json::String(text) => Ok(Some(text.as_str().into())),
        other => Err(path.wrong_type(other, DATE_FITS)),
    }
}

fn granularity(fields: &Fields<'_>, path: &Path<'_>, member: &MemberRef) -> Result<Option<Granularity>, Misfit> {
    granularity_of(fields, path, &member.text)
}

fn granularity_of(fields: &Fields<'_>, path: &Path<'_>, member: &str) -> Result<Option<Granularity>, Misfit> {
    let Some(word) = fields.text("granularity", "a granularity, like \"month\",")? else { return Ok(None) };
    let unknown =
        |_| terrane_compiler::query::QueryError::UnknownGranularity { member: member.into(), granularity: word.into() };
    word.parse().map(Some).map_err(|error| path.field("granularity").refused(unknown(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comparison_is_a_shift_words_or_two_ends() {
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
