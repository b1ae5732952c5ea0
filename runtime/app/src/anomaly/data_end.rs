//! The step in which the data ends before the step does.
//!
//! In: the times with rows in finer units, such as the days of months. Out: the first incomplete step. Data may end
//! before a step for two reasons: its last rows have not arrived, or the data is sparse, such as one row on the first
//! of each month. A step counts as incomplete only if it lacks more units at its end than earlier steps do. Not here:
//! running the query (`anomaly`), the step that contains the current time (`anomaly`).

use arrow::array::RecordBatch;
use jiff::tz::TimeZone;
use terrane_compiler::query::{DateRange, MemberRef, OrderBy, QueryError, SemanticQuery, TimeDimension};
use terrane_compiler::types::Granularity;

use super::bucket::{Bucket, step_ms};
use super::series::{Unreadable, of_batches};
use crate::domain::SeriesValue;

/// The largest number of units that are read, the newest ones.
const MAX_UNITS: u64 = 2_000;
/// The smallest number of earlier steps that show how many units a complete step lacks.
const MIN_EARLIER: usize = 3;

/// Returns the finer granularity in which the end of a step is measured; `None` for seconds.
fn unit(granularity: Granularity) -> Option<Granularity> {
    match granularity {
        Granularity::Second => None,
        Granularity::Minute => Some(Granularity::Second),
        Granularity::Hour => Some(Granularity::Minute),
        Granularity::Day => Some(Granularity::Hour),
        Granularity::Week | Granularity::Month | Granularity::Quarter | Granularity::Year => Some(Granularity::Day),
    }
}

/// Returns the query of the newest units in which the value has rows; `None` for seconds.
///
/// # Errors
/// [`QueryError`] for a name that is not a member.
pub(super) fn query(
    value: &SeriesValue,
    time: &str,
    granularity: Granularity,
    range: Option<DateRange>,
    max_rows: u64,
) -> Result<Option<SemanticQuery>, QueryError> {
    let Some(unit) = unit(granularity) else { return Ok(None) };
    let key: MemberRef = format!("{time}.{unit}").parse()?;
    let axis = TimeDimension { member: time.parse()?, granularity: Some(unit), range };
    let query = value.query(axis, &[])?;
    Ok(Some(SemanticQuery {
        order: vec![OrderBy { member: key, descending: true }],
        limit: Some(MAX_UNITS.min(max_rows)),
        skip_total: true,
        // The range of days is in the zone of the query, so that of their hours is too.
        timezone: query.timezone.filter(|_| granularity.is_sub_day()),
        ..query
    }))
}

/// Returns the first step that is incomplete because the data ends; `None` if no rows are known.
///
/// # Errors
/// [`Unreadable`] if a column cannot be cast.
pub(super) fn first_incomplete(
    batches: &[RecordBatch],
    granularity: Granularity,
    zone: &TimeZone,
) -> Result<Option<Bucket>, Unreadable> {
    let units = of_batches(batches, 0)?.into_iter().flat_map(|series| series.points);
    let times = units.filter(|(_, value)| !value.is_nan()).filter_map(|(at, _)| match granularity {
        // Hours are instants; days are those of the zone.
        Granularity::Day => {
            let instant = jiff::Timestamp::from_millisecond(at).ok()?;
            Some(Bucket::of(zone.to_datetime(instant), Granularity::Hour))
        }
        _ => Bucket::at_ms(at),
    });
    let mut times: Vec<Bucket> = times.collect();
    times.sort_unstable();
    Ok(end_of(&times, granularity))
}

/// Returns the first incomplete step for ordered units.
fn end_of(units: &[Bucket], granularity: Granularity) -> Option<Bucket> {
    let length = i64::try_from(unit(granularity).and_then(step_ms)?).ok()?;
    let mut steps: Vec<(Bucket, i64)> = Vec::new();
    for at in units {
        let step = at.within(granularity);
        let missing = (step.next(granularity).ms() - at.ms()) / length - 1;
        match steps.last_mut() {
            Some(last) if last.0 == step => last.1 = missing,
            _ => steps.push((step, missing)),
        }
    }
    let ((last, missing), earlier) = steps.split_last()?;
    let usual = earlier.iter().map(|(_, missing)| *missing).max().unwrap_or_default();
    let is_incomplete = earlier.len() >= MIN_EARLIER && *missing > 2 * usual;
    Some(if is_incomplete { *last } else { last.next(granularity) })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

    use super::*;

    fn days(texts: &[&str]) -> Vec<Bucket> {
        texts.iter().map(|text| Bucket::holding(text, Granularity::Day).unwrap()).collect()
    }

    #[test]
    fn step_that_lacks_more_than_earlier_steps_is_incomplete() {
        let dense = ["2024-01-31", "2024-02-29", "2024-03-31", "2024-04-12"];
        let sparse = ["2024-01-01", "2024-02-01", "2024-03-01", "2024-04-01"];
        // Earlier months lack up to two days.
        let few = ["2024-01-29", "2024-02-29", "2024-03-30", "2024-04-26"];
        let fewer = ["2024-01-29", "2024-02-29", "2024-03-30", "2024-04-25"];
        for (texts, expected) in [
            (&dense[..], "2024-04-01"),
            (&sparse, "2024-05-01"),
            (&few, "2024-05-01"),
            (&fewer, "2024-04-01"),
            // Two earlier months are too few to compare with.
            (&dense[1..], "2024-05-01"),
        ] {
            let found = end_of(&days(texts), Granularity::Month);
            assert_eq!(found, Bucket::holding(expected, Granularity::Day), "{texts:?}");
        }
        assert_eq!(end_of(&[], Granularity::Month), None);
        assert_eq!(end_of(&days(&["2024-01-01"]), Granularity::Second), None);
    }
}
