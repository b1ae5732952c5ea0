//! Reads times: dates, timestamps, labels and phrases as bounds on a dimension (`runtime/docs/reference/query.md`,
//! "Time").
//!
//! In: text, the query's time zone, the current time. Out: [`Test`]s whose bounds have the type of the compared column,
//! so that the column itself is never converted.

use std::sync::Arc;

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ToSpan};

use crate::model::TimeKind;
use crate::query::resolved::{Bound, Test};
use crate::query::{DateRange, QueryError};
use crate::types::{Granularity, LogicalType, Value};

/// The column that a time is compared with.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimeAxis<'a> {
    /// The member as sent, for errors.
    pub member: &'a str,
    pub kind: TimeKind,
    pub column_type: LogicalType,
    /// The size of the buckets whose starts are tested; `None` if the value itself is tested.
    pub granularity: Option<Granularity>,
    pub zone: &'a TimeZone,
    pub now: Timestamp,
}

/// A point or a period of local or absolute time, as the user wrote it.
#[derive(Debug, Clone, PartialEq)]
enum Moment {
    /// A day, week, month, …, or the label of an hour, with an exclusive end. An end after year 9999 is unbounded.
    Stretch {
        start: DateTime,
        end: Option<DateTime>,
    },
    Local(DateTime),
    Instant(Timestamp),
    /// A label of less than a day with an offset: from an instant to an exclusive end.
    InstantStretch {
        start: Timestamp,
        end: Timestamp,
    },
}

const WHAT_FITS: &str = "a date (2024-01-31), a timestamp (2024-01-31T15:00:00, with an offset only on \
                         instants), or a period (2024, 2024-Q1, 2024-02, 2024-W09)";

impl TimeAxis<'_> {
    fn invalid_value(&self, text: &str, expected: &'static str) -> QueryError {
        QueryError::ValueDoesNotFit { member: self.member.into(), value: text.to_owned(), expected }
    }

    fn moment(&self, text: &str) -> Result<Moment, QueryError> {
        let moment = parse_moment(text, self.granularity).ok_or_else(|| self.invalid_value(text, WHAT_FITS))?;
        let has_offset = matches!(moment, Moment::Instant(_) | Moment::InstantStretch { .. });
        if has_offset && self.kind == TimeKind::WallClock {
            return Err(self.invalid_value(text, "a local date or timestamp without an offset"));
        }
        Ok(moment)
    }

    /// Returns the test of the operator `equals`.
    pub(super) fn equals(&self, text: &str) -> Result<Test, QueryError> {
        let moment = self.moment(text)?;
        let (low, high) = (self.low(&moment), self.high(&moment));
        Ok(match (low, high) {
            // No bucket of the calendar starts at or after this moment.
            (None, _) => Test::Never,
            (Some(Bound { value, inclusive: true }), Some(Bound { value: end, inclusive: true })) if value == end => {
                Test::Equals(value)
            }
            (low, high) => range(low, high),
        })
    }

    /// Returns the test of `gt`, `gte`, `lt` or `lte`. A date as a bound stands for the whole day.
    pub(super) fn after(&self, text: &str, or_within: bool) -> Result<Test, QueryError> {
        let moment = self.moment(text)?;
        if or_within {
            return Ok(self.low(&moment).map_or(Test::Never, |low| range(Some(low), None)));
        }
        Ok(match self.high(&moment) {
            Some(end) => range(Some(Bound { inclusive: !end.inclusive, ..end }), None),
            None => Test::Never,
        })
    }

    pub(super) fn before(&self, text: &str, or_within: bool) -> Result<Test, QueryError> {
        let moment = self.moment(text)?;
        if or_within {
            return Ok(range(None, self.high(&moment)));
        }
        let start = self.low(&moment);
        Ok(range(None, start.map(|start| Bound { inclusive: !start.inclusive, ..start })))
    }

    /// Returns the test of a range: `date_range`, `time_range`, `between` or `inDateRange`.
    pub(super) fn within(&self, given: &DateRange) -> Result<Test, QueryError> {
        let (start, end) = match given {
            DateRange::Between(start, end) => (start.clone(), end.clone()),
            DateRange::Words(words) => match self.phrase(words)? {
                Phrase::Stretch(start, end) => {
                    let moment = Moment::Stretch { start, end };
                    return Ok(range(self.low(&moment), self.high(&moment)));
                }
                Phrase::FromTo(start, end) => (Some(start), Some(end)),
            },
        };
        let low = match &start {
            Some(text) => self.low(&self.moment(text)?),
            None => None,
        };
        let high = match &end {
            Some(text) => self.high(&self.moment(text)?),
            None => None,
        };
        // The ends are compared as written, because rounding to buckets may leave nothing between two valid ends.
        let plain = TimeAxis { granularity: None, ..*self };
        let end_of = |text: &Arc<str>| plain.moment(text).map(|moment| plain.high(&moment));
        let start_of = |text: &Arc<str>| plain.moment(text).map(|moment| plain.low(&moment));
        if let (Some(first), Some(last)) = (&start, &end)
            && let (Some(first), Some(last)) = (start_of(first)?, end_of(last)?)
            && is_reversed(&first, &last)
        {
            return Err(QueryError::ReversedRange {
                member: self.member.into(),
                start: start.as_deref().unwrap_or_default().to_owned(),
                end: end.as_deref().unwrap_or_default().to_owned(),
            });
        }
        // No bucket of the calendar starts at or after this moment.
        if start.is_some() && low.is_none() {
            return Ok(Test::Never);
        }
        Ok(range(low, high))
    }

    /// Returns the test for a half-open range of local time.
    pub(super) fn between(&self, start: DateTime, end: DateTime) -> Test {
        let moment = Moment::Stretch { start, end: Some(end) };
        range(self.low(&moment), self.high(&moment))
    }

    fn low(&self, moment: &Moment) -> Option<Bound> {
        let value = match moment {
            Moment::Stretch { start, .. } | Moment::Local(start) => self.local(self.ceiling(*start)?),
            Moment::Instant(start) | Moment::InstantStretch { start, .. } => self.instant_ceiling(*start)?,
        };
        Some(Bound { value, inclusive: true })
    }

    fn high(&self, moment: &Moment) -> Option<Bound> {
        Some(match moment {
            Moment::Stretch { end, .. } => Bound { value: self.local(self.ceiling((*end)?)?), inclusive: false },
            Moment::Local(point) => match self.granularity {
                // A value's bucket starts at or before the point if the value is before the first bucket start after
                // the point.
                Some(_) => {
                    let after = point.checked_add(1.microsecond()).ok()?;
                    Bound { value: self.local(self.ceiling(after)?), inclusive: false }
                }
                None => Bound { value: self.local(*point), inclusive: true },
            },
            Moment::Instant(point) => match self.granularity {
                Some(_) => {
                    let after = point.checked_add(1.microsecond()).ok()?;
                    Bound { value: self.instant_ceiling(after)?, inclusive: false }
                }
                None => Bound { value: self.instant(*point), inclusive: true },
            },
            Moment::InstantStretch { end, .. } => Bound { value: self.instant_ceiling(*end)?, inclusive: false },
        })
    }

    /// Returns the first bucket start at or after an instant, as an instant.
    fn instant_ceiling(&self, point: Timestamp) -> Option<Value> {
        let Some(granularity) = self.granularity else { return Some(self.instant(point)) };
        let local = self.zone.to_datetime(point);
        let start = bucket_start(local, granularity);
        if start == local {
            return Some(self.instant(point));
        }
        if !granularity.is_sub_day() {
            return Some(self.local(bucket_end(start, granularity)?));
        }
        // Buckets finer than a day are intervals of instants, even where the local clock jumps.
        let begun = point.checked_sub(local.since(start).ok()?).ok()?;
        Some(self.instant(begun.checked_add(span_of(granularity, 1)?).ok()?))
    }

    /// Returns the first bucket start at or after `point`. A bucket passes `>= point` if all its values are at or after
    /// `point`.
    fn ceiling(&self, point: DateTime) -> Option<DateTime> {
        let Some(granularity) = self.granularity else { return Some(point) };
        let start = bucket_start(point, granularity);
        if start == point { Some(point) } else { bucket_end(start, granularity) }
    }

    fn local(&self, point: DateTime) -> Value {
        match self.kind {
            TimeKind::WallClock if self.column_type == LogicalType::Date && point.time() == Time::midnight() => {
                Value::Date(days_of(point.date()))
            }
            TimeKind::WallClock => Value::Timestamp(micros_of(point)),
            // A local time in a gap means the moment after the gap. A repeated local time means the first of the two
            // moments. A day therefore starts at its first moment.
            TimeKind::Utc => match self.zone.to_ambiguous_timestamp(point).compatible() {
                Ok(instant) => self.instant(instant),
                Err(_) => self.instant(if point.year() < 0 { Timestamp::MIN } else { Timestamp::MAX }),
            },
        }
    }

    fn instant(&self, point: Timestamp) -> Value {
        match self.column_type {
            LogicalType::TimestampTz => Value::TimestampTz(point.as_microsecond()),
            _ => Value::Timestamp(point.as_microsecond()),
        }
    }

    fn phrase(&self, words: &str) -> Result<Phrase, QueryError> {
        let lower = words.trim().to_lowercase();
        if let Some((start, end)) = lower.strip_prefix("from ").and_then(|rest| rest.split_once(" to ")) {
            let (start, end) = (start.trim().to_uppercase(), end.trim().to_uppercase());
            return Ok(Phrase::FromTo(start.into(), end.into()));
        }
        let today = self.zone.to_datetime(self.now).date();
        if let Some((start, end)) = relative(&lower, today).filter(|(start, _)| has_year(*start)) {
            let end = end.map(|end| end.to_datetime(Time::midnight()));
            return Ok(Phrase::Stretch(start.to_datetime(Time::midnight()), end));
        }
        match parse_moment(words.trim(), None) {
            Some(Moment::Stretch { start, end }) => Ok(Phrase::Stretch(start, end)),
            _ => Err(self.invalid_value(
                words,
                "`today`, `yesterday`, `this month`, `last quarter`, `last 7 days`, `2024`, `2024-Q3`, `2024-W09`, \
                 `2024-02`, a date, or `from 2024-01-01 to 2024-03-31`",
            )),
        }
    }
}

enum Phrase {
    Stretch(DateTime, Option<DateTime>),
    FromTo(Arc<str>, Arc<str>),
}

fn range(low: Option<Bound>, high: Option<Bound>) -> Test {
    match (low, high) {
        // If both ends are open, every time passes, but null does not.
        (None, None) => Test::Not(Box::new(Test::IsNull)),
        (low, high) => Test::Range { low, high },
    }
}

fn is_reversed(low: &Bound, high: &Bound) -> bool {
    let of = |value: &Value| match value {
        Value::Date(days) => i64::from(*days) * 86_400_000_000,
        Value::Timestamp(micros) | Value::TimestampTz(micros) => *micros,
        _ => 0,
    };
    match of(&low.value).cmp(&of(&high.value)) {
        std::cmp::Ordering::Greater => true,
        std::cmp::Ordering::Equal => !high.inclusive,
        std::cmp::Ordering::Less => false,
    }
}

/// Reads a phrase such as `today`, `this week` or `last 7 days` (the whole days before today) as local dates with an
/// exclusive end.
fn relative(words: &str, today: Date) -> Option<(Date, Option<Date>)> {
    let day = |offset: i64| today.checked_add(offset.days()).ok();
    match words {
        "today" => return Some((today, day(1))),
        "yesterday" => return Some((day(-1)?, Some(today))),
        _ => {}
    }
    let mut parts = words.split_whitespace();
    let (direction, second, third) = (parts.next()?, parts.next()?, parts.next());
    if parts.next().is_some() {
        return None;
    }
    let (count, unit) = match third {
        Some(unit) => (second.parse::<i64>().ok().filter(|n| (1..=100_000).contains(n))?, unit),
        None => (1, second),
    };
    let granularity: Granularity = unit.strip_suffix('s').unwrap_or(unit).parse().ok()?;
    if granularity.is_sub_day() {
        return None;
    }
    let current = bucket_start(today.to_datetime(Time::midnight()), granularity).date();
    match direction {
        "this" if third.is_none() => Some((current, current.checked_add(span_of(granularity, 1)?).ok())),
        "last" => Some((current.checked_sub(span_of(granularity, count)?).ok()?, Some(current))),
        _ => None,
    }
}

/// Returns the length of a number of buckets; `None` if the calendar cannot represent it.
pub(crate) fn span_of(granularity: Granularity, count: i64) -> Option<Span> {
    let span = Span::new();
    let span = match granularity {
        Granularity::Second => span.try_seconds(count),
        Granularity::Minute => span.try_minutes(count),
        Granularity::Hour => span.try_hours(count),
        Granularity::Day => span.try_days(count),
        Granularity::Week => span.try_weeks(count),
        Granularity::Month => span.try_months(count),
        Granularity::Quarter => span.try_months(count.checked_mul(3)?),
        Granularity::Year => span.try_years(count),
    };
    span.ok()
}

/// The unit of buckets.
pub(super) enum Units {
    /// Buckets of one length, in microseconds.
    Micros(i64),
    Months(i64),
}

pub(super) fn units_of(granularity: Granularity) -> Units {
    const SECOND: i64 = 1_000_000;
    match granularity {
        Granularity::Second => Units::Micros(SECOND),
        Granularity::Minute => Units::Micros(60 * SECOND),
        Granularity::Hour => Units::Micros(3_600 * SECOND),
        Granularity::Day => Units::Micros(86_400 * SECOND),
        Granularity::Week => Units::Micros(7 * 86_400 * SECOND),
        Granularity::Month => Units::Months(1),
        Granularity::Quarter => Units::Months(3),
        Granularity::Year => Units::Months(12),
    }
}

pub(crate) fn bucket_start(point: DateTime, granularity: Granularity) -> DateTime {
    let (date, time) = (point.date(), point.time());
    let midnight = |date: Date| date.to_datetime(Time::midnight());
    match granularity {
        Granularity::Second => date.at(time.hour(), time.minute(), time.second(), 0),
        Granularity::Minute => date.at(time.hour(), time.minute(), 0, 0),
        Granularity::Hour => date.at(time.hour(), 0, 0, 0),
        Granularity::Day => midnight(date),
        Granularity::Week => {
            let back = i64::from(date.weekday().to_monday_zero_offset());
            midnight(date.checked_sub(back.days()).unwrap_or(date))
        }
        Granularity::Month => midnight(date.first_of_month()),
        Granularity::Quarter => {
            let month = (date.month() - 1) / 3 * 3 + 1;
            midnight(Date::new(date.year(), month, 1).unwrap_or(date))
        }
        Granularity::Year => midnight(date.first_of_year()),
    }
}

fn bucket_end(start: DateTime, granularity: Granularity) -> Option<DateTime> {
    start.checked_add(span_of(granularity, 1)?).ok()
}

fn days_of(date: Date) -> i32 {
    let epoch = jiff::civil::date(1970, 1, 1);
    epoch.until(date).map_or(0, |span| span.get_days())
}

pub(crate) fn micros_of(point: DateTime) -> i64 {
    const SECOND: i64 = 1_000_000;
    let time = point.time();
    let seconds = i64::from(time.hour()) * 3_600 + i64::from(time.minute()) * 60 + i64::from(time.second());
    i64::from(days_of(point.date())) * 86_400 * SECOND + seconds * SECOND + i64::from(time.subsec_nanosecond()) / 1_000
}

/// Reads one moment as a value of a temporal type: a date, a local time, or an instant. An instant without an offset is
/// in UTC.
pub(crate) fn time_point(text: &str, ty: LogicalType) -> Option<Value> {
    if ty == LogicalType::Date {
        return parse_date(text).map(|date| Value::Date(days_of(date)));
    }
    let instant = |instant: jiff::Timestamp| Value::TimestampTz(instant.as_microsecond());
    let local = |point: DateTime| match ty {
        LogicalType::TimestampTz => Value::TimestampTz(micros_of(point)),
        _ => Value::Timestamp(micros_of(point)),
    };
    match parse_moment(text, None)? {
        Moment::Local(point) | Moment::Stretch { start: point, .. } => Some(local(point)),
        Moment::Instant(start) | Moment::InstantStretch { start, .. } => {
            (ty == LogicalType::TimestampTz).then(|| instant(start))
        }
    }
}

/// Reads a time in any supported notation. `granularity` decides whether `…T15:00` is a label or a moment.
fn parse_moment(text: &str, granularity: Option<Granularity>) -> Option<Moment> {
    if text.len() > 64 || !text.is_ascii() {
        return None;
    }
    let Some((date, clock)) = text.split_once(['T', ' ']) else {
        return parse_period(text)
            .filter(|moment| !matches!(moment, Moment::Stretch { start, .. } if !has_year(start.date())));
    };
    let date = parse_date(date).filter(|date| has_year(*date))?;
    let (clock, offset) = split_offset(clock)?;
    let (time, unit) = parse_clock(clock)?;
    let point = date.to_datetime(time);
    let label = granularity.filter(|g| *g == unit && g.is_sub_day()).or((unit == Granularity::Hour).then_some(unit));
    match (offset, label) {
        (None, None) => Some(Moment::Local(point)),
        (None, Some(size)) => Some(Moment::Stretch { start: point, end: bucket_end(point, size) }),
        (Some(offset), label) => {
            let start = offset.to_timestamp(point).ok()?;
            match label {
                None => Some(Moment::Instant(start)),
                Some(size) => Some(Moment::InstantStretch { start, end: start.checked_add(span_of(size, 1)?).ok()? }),
            }
        }
    }
}

/// Returns the first local moment of a time, or of a period as results name it: `2024`, `2024-Q3`, `2024-07`, `2024-W31`,
/// `2024-07-31` or `2024-07-31T08`. Returns `None` for other text, and for a time with an offset.
pub(crate) fn first_moment(text: &str) -> Option<DateTime> {
    match parse_moment(text, None)? {
        Moment::Local(point) => Some(point),
        Moment::Stretch { start, .. } => Some(start),
        Moment::Instant(_) | Moment::InstantStretch { .. } => None,
    }
}

/// Returns whether a date's year is between 0001 and 9999. The calendar library also has earlier years.
pub(super) fn has_year(date: Date) -> bool {
    date.year() >= 1
}

fn parse_period(text: &str) -> Option<Moment> {
    let digits =
        |s: &str, n: usize| (s.len() == n && s.bytes().all(|b| b.is_ascii_digit())).then(|| s.parse::<i16>().ok())?;
    let (start, size) = match text.split_once('-') {
        None => (Date::new(digits(text, 4)?, 1, 1).ok()?, Granularity::Year),
        Some((year, rest)) => {
            let year = digits(year, 4)?;
            if let Some(quarter) = rest.strip_prefix(['Q', 'q']) {
                let quarter = digits(quarter, 1).filter(|q| (1..=4).contains(q))?;
                (Date::new(year, (quarter as i8 - 1) * 3 + 1, 1).ok()?, Granularity::Quarter)
            } else if let Some(week) = rest.strip_prefix(['W', 'w']) {
                let week = digits(week, 2)? as i8;
                let monday = jiff::civil::ISOWeekDate::new(year, week, jiff::civil::Weekday::Monday).ok()?;
                (monday.date(), Granularity::Week)
            } else if rest.len() == 2 {
                (Date::new(year, digits(rest, 2)? as i8, 1).ok()?, Granularity::Month)
            } else {
                (parse_date(text)?, Granularity::Day)
            }
        }
    };
    let start = start.to_datetime(Time::midnight());
    Some(Moment::Stretch { start, end: bucket_end(start, size) })
}

fn parse_date(text: &str) -> Option<Date> {
    let bytes = text.as_bytes();
    let shape = bytes.len() == 10 && bytes[4] == b'-' && bytes[7] == b'-';
    let digits = |from: usize, to: usize| -> Option<i16> {
        bytes[from..to].iter().all(u8::is_ascii_digit).then(|| text[from..to].parse().ok())?
    };
    if !shape {
        return None;
    }
    Date::new(digits(0, 4)?, digits(5, 7)? as i8, digits(8, 10)? as i8).ok()
}

/// Splits `Z`, `+HH:MM`, `-HH`, … off the end of a time.
fn split_offset(clock: &str) -> Option<(&str, Option<jiff::tz::Offset>)> {
    if let Some(rest) = clock.strip_suffix(['Z', 'z']) {
        return Some((rest, Some(jiff::tz::Offset::UTC)));
    }
    let Some(at) = clock.find(['+', '-']) else { return Some((clock, None)) };
    let (rest, offset) = clock.split_at(at);
    let sign = if offset.starts_with('-') { -1 } else { 1 };
    let (hours, minutes) = match (offset[1..].split_once(':'), offset.len()) {
        (Some((hours, minutes)), 6) => (hours, minutes),
        (None, 5) => offset[1..].split_at(2),
        (None, 3) => (&offset[1..], "0"),
        _ => return None,
    };
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    let seconds = (hours * 60 + minutes) * 60;
    let fits = (0..=15).contains(&hours) && (0..60).contains(&minutes);
    let offset = jiff::tz::Offset::from_seconds(sign * seconds).ok().filter(|_| fits)?;
    Some((rest, Some(offset)))
}

/// Reads `HH`, `HH:MM`, `HH:MM:SS`, or the last with a fraction. Also returns the finest unit in the text.
fn parse_clock(text: &str) -> Option<(Time, Granularity)> {
    let two = |s: &str| (s.len() == 2 && s.bytes().all(|b| b.is_ascii_digit())).then(|| s.parse::<i8>().ok())?;
    let mut parts = text.splitn(3, ':');
    let hour = two(parts.next()?)?;
    let Some(minute) = parts.next() else {
        return Some((Time::new(hour, 0, 0, 0).ok()?, Granularity::Hour));
    };
    let minute = two(minute)?;
    let Some(seconds) = parts.next() else {
        return Some((Time::new(hour, minute, 0, 0).ok()?, Granularity::Minute));
    };
    let (second, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
    if fraction.len() > 9
        || !fraction.bytes().all(|b| b.is_ascii_digit())
        || (fraction.is_empty() && seconds.ends_with('.'))
    {
        return None;
    }
    let nanos: i32 = format!("{fraction:0<9}").parse().ok()?;
    Some((Time::new(hour, minute, two(second)?, nanos).ok()?, Granularity::Second))
}
