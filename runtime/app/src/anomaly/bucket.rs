//! Steps of time on the wall clock of a query's time zone.
//!
//! In: dates and timestamps as users write them. Out: the step that contains a date or timestamp, and earlier steps.
//! Not here: time zones. This module returns strings, which the compiler interprets in the zone of the query.

use std::sync::Arc;

use jiff::civil::{Date, DateTime};
use jiff::{Span, ToSpan as _};
use terrane_compiler::types::Granularity;

/// The start of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Bucket(DateTime);

impl Bucket {
    /// Returns the step that contains a date or timestamp.
    pub(crate) fn holding(text: &str, granularity: Granularity) -> Option<Bucket> {
        let moment: DateTime = match text.parse::<Date>() {
            Ok(date) if text.len() == 10 => date.at(0, 0, 0, 0),
            _ => text.parse().ok()?,
        };
        Bucket::containing(moment, granularity)
    }

    /// Returns the step that contains a local time.
    pub(crate) fn of(moment: DateTime, granularity: Granularity) -> Bucket {
        Bucket::containing(moment, granularity).unwrap_or(Bucket(moment))
    }

    /// Returns the coarser step that contains this one.
    pub(crate) fn within(self, granularity: Granularity) -> Bucket {
        Bucket::of(self.0, granularity)
    }

    fn containing(moment: DateTime, granularity: Granularity) -> Option<Bucket> {
        let (date, time) = (moment.date(), moment.time());
        let day = |date: Date| Some(Bucket(date.at(0, 0, 0, 0)));
        match granularity {
            Granularity::Second => Some(Bucket(date.at(time.hour(), time.minute(), time.second(), 0))),
            Granularity::Minute => Some(Bucket(date.at(time.hour(), time.minute(), 0, 0))),
            Granularity::Hour => Some(Bucket(date.at(time.hour(), 0, 0, 0))),
            Granularity::Day => day(date),
            Granularity::Week => {
                day(date.checked_sub(i32::from(date.weekday().to_monday_zero_offset()).days()).ok()?)
            }
            Granularity::Month => day(date.first_of_month()),
            Granularity::Quarter => day(Date::new(date.year(), (date.month() - 1) / 3 * 3 + 1, 1).ok()?),
            Granularity::Year => day(date.first_of_year()),
        }
    }

    /// Returns the start of the step that is `steps` steps before this one; `None` if it is before the beginning of the
    /// calendar.
    pub(crate) fn earlier(self, steps: u32, granularity: Granularity) -> Option<Bucket> {
        let steps = i64::from(steps);
        let span = Span::new();
        let span = match granularity {
            Granularity::Second => span.try_seconds(steps),
            Granularity::Minute => span.try_minutes(steps),
            Granularity::Hour => span.try_hours(steps),
            Granularity::Day => span.try_days(steps),
            Granularity::Week => span.try_weeks(steps),
            Granularity::Month => span.try_months(steps),
            Granularity::Quarter => span.try_months(steps * 3),
            Granularity::Year => span.try_years(steps),
        };
        self.0.checked_sub(span.ok()?).ok().map(Bucket)
    }

    /// Returns the step that starts at a time, in milliseconds since 1970-01-01T00:00:00.
    pub(crate) fn at_ms(ms: i64) -> Option<Bucket> {
        let instant = jiff::Timestamp::from_millisecond(ms).ok()?;
        Some(Bucket(jiff::tz::TimeZone::UTC.to_datetime(instant)))
    }

    /// Returns the start of the following step.
    pub(crate) fn next(self, granularity: Granularity) -> Bucket {
        let span = Span::new();
        let next = match granularity {
            Granularity::Second => span.seconds(1),
            Granularity::Minute => span.minutes(1),
            Granularity::Hour => span.hours(1),
            Granularity::Day => span.days(1),
            Granularity::Week => span.weeks(1),
            Granularity::Month => span.months(1),
            Granularity::Quarter => span.months(3),
            Granularity::Year => span.years(1),
        };
        Bucket(self.0.checked_add(next).unwrap_or(DateTime::MAX))
    }

    /// Returns the last date of the step, or its last second if the step is shorter than a day, in the form that
    /// queries accept.
    pub(crate) fn end_text(self, granularity: Granularity) -> Arc<str> {
        let last = self.next(granularity).0.checked_sub(Span::new().seconds(1)).unwrap_or(self.0);
        if granularity.is_sub_day() { last.to_string().into() } else { last.date().to_string().into() }
    }

    /// Returns the start of the step in milliseconds since 1970-01-01T00:00:00, on the same wall clock.
    pub(crate) fn ms(self) -> i64 {
        let instant = jiff::tz::TimeZone::UTC.to_timestamp(self.0);
        instant.map_or(i64::MIN, |instant| instant.as_millisecond())
    }

    /// Returns the start of the step, in the form that queries accept.
    pub(crate) fn text(self) -> Arc<str> {
        self.0.to_string().into()
    }
}

/// Returns the length of a step in milliseconds; `None` if the steps of the granularity differ in length.
pub(crate) fn step_ms(granularity: Granularity) -> Option<u64> {
    match granularity {
        Granularity::Second => Some(1_000),
        Granularity::Minute => Some(60_000),
        Granularity::Hour => Some(3_600_000),
        Granularity::Day => Some(86_400_000),
        Granularity::Week => Some(604_800_000),
        Granularity::Month | Granularity::Quarter | Granularity::Year => None,
    }
}

/// Returns the default number of steps in a season; `None` for years, which have no season.
pub(crate) fn season(granularity: Granularity) -> Option<u32> {
    match granularity {
        Granularity::Second | Granularity::Minute => Some(60),
        Granularity::Hour => Some(24),
        Granularity::Day => Some(7),
        Granularity::Week => Some(52),
        Granularity::Month => Some(12),
        Granularity::Quarter => Some(4),
        Granularity::Year => None,
    }
}
