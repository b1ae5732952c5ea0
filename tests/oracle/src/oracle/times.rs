//! The stretches of time that dates, timestamps and phrases cover (see "Time" in
//! `runtime/docs/reference/query.md`).
//!
//! In: a string, the axis on which it is compared, the query's time zone. Out: a stretch on this axis.

use std::cmp::Ordering;

use jiff::civil::{Date, DateTime, ISOWeekDate, Time, Weekday};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ToSpan as _};
use terrane_compiler::query::DateRange;

use super::kinds::Axis;
use super::labels::micros;

/// A range of microseconds. It includes its first microsecond, and its last one if `is_high_included` is true.
/// `i64::MIN` and `i64::MAX` stand for an unbounded end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Stretch {
    low: i64,
    high: i64,
    is_high_included: bool,
}

impl Stretch {
    /// Returns the first microsecond in the range, if there is one.
    pub(crate) fn first(&self) -> Option<i64> {
        (self.low != i64::MIN).then_some(self.low)
    }

    /// Returns the last microsecond in the range, if there is one.
    pub(crate) fn last(&self) -> Option<i64> {
        (self.high != i64::MAX).then_some(if self.is_high_included { self.high } else { self.high - 1 })
    }

    /// Returns the first and the last microsecond in the range; `None` if an end is unbounded or the range is empty.
    pub(crate) fn ends(&self) -> Option<(i64, i64)> {
        let last = if self.is_high_included { self.high } else { self.high - 1 };
        (self.low != i64::MIN && self.high != i64::MAX && self.low <= last).then_some((self.low, last))
    }

    pub(crate) fn compare(&self, micros: i64) -> Ordering {
        if micros < self.low {
            Ordering::Less
        } else if micros < self.high || (self.is_high_included && micros == self.high) {
            Ordering::Equal
        } else {
            Ordering::Greater
        }
    }
}

/// The distance by which a range is moved back.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shift {
    pub(crate) span: Span,
    /// True if the span is in months, quarters or years.
    pub(crate) is_by_months: bool,
}

/// A time in a query. Days and longer units are periods of local time.
#[derive(Debug, Clone)]
enum TimeLiteral {
    Local(DateTime, Option<DateTime>),
    LocalMoment(DateTime),
    Moment(Timestamp),
}

/// Parses one bound, which may be a period of up to a year.
pub(crate) fn moment(text: &str, axis: Axis, zone: &TimeZone) -> Result<Stretch, ()> {
    placed(&read(text).ok_or(())?, axis, zone)
}

pub(crate) fn range(range: &DateRange, axis: Axis, zone: &TimeZone, now: Timestamp) -> Result<Stretch, ()> {
    let (first, last) = ends(range, zone, now)?;
    between(first, last, axis, zone)
}

/// Returns the range moved back by calendar units. The day of an end is at most the last day of the month, and whole
/// months stay whole months. `None` if an end is unbounded.
pub(crate) fn moved(
    range: &DateRange,
    shift: Shift,
    axis: Axis,
    zone: &TimeZone,
    now: Timestamp,
) -> Result<Option<Stretch>, ()> {
    let (Some(first), Some(last)) = ends(range, zone, now)? else { return Ok(None) };
    let midnight = |day: Date| day.to_datetime(Time::midnight());
    let back = |day: Date| day.checked_sub(shift.span).map_err(drop);
    let whole_days = match (&first, &last) {
        (TimeLiteral::Local(start, _), TimeLiteral::Local(_, Some(end))) => Some((start.date(), day_before(*end)?)),
        _ => None,
    };
    let is_whole_months = |(first, last): (Date, Date)| first.day() == 1 && last == last.last_of_month();
    let moved_first = match first {
        TimeLiteral::Local(start, end) => TimeLiteral::Local(midnight(back(start.date())?), end),
        TimeLiteral::LocalMoment(at) => TimeLiteral::LocalMoment(at.checked_sub(shift.span).map_err(drop)?),
        TimeLiteral::Moment(at) => {
            TimeLiteral::LocalMoment(zone.to_datetime(at).checked_sub(shift.span).map_err(drop)?)
        }
    };
    let moved_last = match last {
        TimeLiteral::Local(_, None) => return Ok(None),
        TimeLiteral::Local(start, Some(end)) => {
            let day = day_before(end)?;
            let moved = match whole_days {
                Some(days) if shift.is_by_months && is_whole_months(days) => {
                    back(day.first_of_month())?.last_of_month()
                }
                _ => back(day)?,
            };
            TimeLiteral::Local(start, Some(midnight(moved.tomorrow().map_err(drop)?)))
        }
        TimeLiteral::LocalMoment(at) => TimeLiteral::LocalMoment(at.checked_sub(shift.span).map_err(drop)?),
        TimeLiteral::Moment(at) => {
            TimeLiteral::LocalMoment(zone.to_datetime(at).checked_sub(shift.span).map_err(drop)?)
        }
    };
    between(Some(moved_first), Some(moved_last), axis, zone).map(Some)
}

fn day_before(end: DateTime) -> Result<Date, ()> {
    end.date().yesterday().map_err(drop)
}

/// Returns the start and the end of a range. A phrase such as `last 7 days` has both.
fn ends(range: &DateRange, zone: &TimeZone, now: Timestamp) -> Result<(Option<TimeLiteral>, Option<TimeLiteral>), ()> {
    let one = |text: &str| read(text).ok_or(());
    match range {
        DateRange::Between(start, end) => {
            Ok((start.as_deref().map(one).transpose()?, end.as_deref().map(one).transpose()?))
        }
        DateRange::Words(words) => {
            let lower = words.trim().to_lowercase();
            if let Some((start, end)) = lower.strip_prefix("from ").and_then(|rest| rest.split_once(" to ")) {
                return Ok((Some(one(&start.trim().to_uppercase())?), Some(one(&end.trim().to_uppercase())?)));
            }
            let today = zone.to_datetime(now).date();
            let midnight = |date: Date| date.to_datetime(Time::midnight());
            let written = match phrase(&lower, today).filter(|(start, _)| start.year() >= 1) {
                Some((start, end)) => TimeLiteral::Local(midnight(start), end.map(midnight)),
                None => one(words.trim()).and_then(|written| match written {
                    TimeLiteral::Local(..) => Ok(written),
                    _ => Err(()),
                })?,
            };
            Ok((Some(written.clone()), Some(written)))
        }
    }
}

fn between(start: Option<TimeLiteral>, end: Option<TimeLiteral>, axis: Axis, zone: &TimeZone) -> Result<Stretch, ()> {
    let (has_start, has_end) = (start.is_some(), end.is_some());
    let first = start.map(|written| placed(&written, axis, zone)).transpose()?;
    let last = end.map(|written| placed(&written, axis, zone)).transpose()?;
    let low = first.map_or(i64::MIN, |first| first.low);
    let (high, is_high_included) = last.map_or((i64::MAX, true), |last| (last.high, last.is_high_included));
    let is_reversed = has_start && has_end && (low > high || (low == high && !is_high_included));
    if is_reversed { Err(()) } else { Ok(Stretch { low, high, is_high_included }) }
}

fn placed(written: &TimeLiteral, axis: Axis, zone: &TimeZone) -> Result<Stretch, ()> {
    let place = |at: DateTime| match axis {
        Axis::Local => micros(at),
        Axis::Instant => first_moment(at, zone),
    };
    Ok(match written {
        TimeLiteral::Local(start, end) => {
            Stretch { low: place(*start), high: end.map_or(i64::MAX, place), is_high_included: end.is_none() }
        }
        TimeLiteral::LocalMoment(at) => Stretch { low: place(*at), high: place(*at), is_high_included: true },
        TimeLiteral::Moment(at) if axis == Axis::Instant => {
            Stretch { low: at.as_microsecond(), high: at.as_microsecond(), is_high_included: true }
        }
        // A local time must not have an offset.
        TimeLiteral::Moment(_) => return Err(()),
    })
}

/// Returns the first instant of a local time, which may be missing or occur twice.
fn first_moment(at: DateTime, zone: &TimeZone) -> i64 {
    zone.to_ambiguous_timestamp(at).compatible().map_or(i64::MAX, |instant| instant.as_microsecond())
}

/// Parses a time in the years 0001 to 9999.
fn read(text: &str) -> Option<TimeLiteral> {
    read_any_year(text).filter(|written| match written {
        TimeLiteral::Local(start, _) | TimeLiteral::LocalMoment(start) => start.year() >= 1,
        TimeLiteral::Moment(_) => !text.starts_with("0000"),
    })
}

fn read_any_year(text: &str) -> Option<TimeLiteral> {
    let stretch = |start: Date, size: Span| {
        let end = start.checked_add(size).ok();
        TimeLiteral::Local(start.to_datetime(Time::midnight()), end.map(|end| end.to_datetime(Time::midnight())))
    };
    if let Some((day, clock)) = text.split_once(['T', ' ']) {
        let (clock, offset) = match clock.find(['Z', 'z', '+', '-']) {
            Some(at) => (&clock[..at], Some(&clock[at..])),
            None => (clock, None),
        };
        let at: DateTime = format!("{}T{clock}", date(day)?).parse().ok()?;
        return match offset {
            None => Some(TimeLiteral::LocalMoment(at)),
            Some(offset) => format!("{at}{}", offset.to_uppercase()).parse().ok().map(TimeLiteral::Moment),
        };
    }
    if let Some(day) = date(text) {
        return Some(stretch(day, 1.day()));
    }
    let year: i16 = text.get(..4)?.parse().ok()?;
    let number = |from: usize| text.get(from..).and_then(|rest| rest.parse::<i8>().ok());
    match (text.len(), text.get(4..6).unwrap_or_default()) {
        (4, _) => Some(stretch(Date::new(year, 1, 1).ok()?, 1.year())),
        (7, "-Q" | "-q") => {
            let quarter = number(6).filter(|quarter| (1..=4).contains(quarter))?;
            Some(stretch(Date::new(year, quarter * 3 - 2, 1).ok()?, 3.months()))
        }
        (8, "-W" | "-w") => Some(stretch(ISOWeekDate::new(year, number(6)?, Weekday::Monday).ok()?.date(), 1.week())),
        (7, _) => Some(stretch(Date::new(year, number(5)?, 1).ok()?, 1.month())),
        _ => None,
    }
}

fn date(text: &str) -> Option<Date> {
    (text.len() == 10).then(|| text.parse().ok())?
}

/// Returns the first day of a phrase such as `today`, `this month` or `last 7 days`, and the first day after it.
fn phrase(words: &str, today: Date) -> Option<(Date, Option<Date>)> {
    let words: Vec<&str> = words.split_whitespace().collect();
    let of = |unit: &str, count: i64| -> Option<Span> {
        Some(match unit.strip_suffix('s').unwrap_or(unit) {
            "day" => count.days(),
            "week" => count.weeks(),
            "month" => count.months(),
            "quarter" => (3 * count).months(),
            "year" => count.years(),
            _ => return None,
        })
    };
    let first = |unit: &str| -> Option<Date> {
        Some(match unit.strip_suffix('s').unwrap_or(unit) {
            "day" => today,
            "week" => today.checked_sub(i64::from(today.weekday().to_monday_zero_offset()).days()).ok()?,
            "month" => today.first_of_month(),
            "quarter" => Date::new(today.year(), (today.month() - 1) / 3 * 3 + 1, 1).ok()?,
            "year" => today.first_of_year(),
            _ => return None,
        })
    };
    match words.as_slice() {
        ["today"] => Some((today, today.tomorrow().ok())),
        ["yesterday"] => Some((today.yesterday().ok()?, Some(today))),
        ["this", unit] => Some((first(unit)?, first(unit)?.checked_add(of(unit, 1)?).ok())),
        ["last", unit] => Some((first(unit)?.checked_sub(of(unit, 1)?).ok()?, Some(first(unit)?))),
        ["last", count, unit] => {
            let count = count.parse().ok()?;
            Some((first(unit)?.checked_sub(of(unit, count)?).ok()?, Some(first(unit)?)))
        }
        _ => None,
    }
}
