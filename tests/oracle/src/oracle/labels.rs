//! Buckets of time, and the rendering of values.
//!
//! In: a time and a time zone. Out: the start of its bucket, and the label. A finished answer contains only strings,
//! numbers, booleans and nulls.

use jiff::civil::{Date, DateTime, ISOWeekDate, Weekday};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use terrane_compiler::types::Granularity;

use crate::value::Value;

const DAY: i64 = 86_400_000_000;

/// Returns the local time of microseconds since 1970, limited to the years of the calendar.
pub(crate) fn clock(micros: i64) -> DateTime {
    let days = micros.div_euclid(DAY);
    let rest = micros.rem_euclid(DAY);
    let date = jiff::civil::date(1970, 1, 1).saturating_add(days.days());
    let seconds = rest / 1_000_000;
    date.at((seconds / 3_600) as i8, (seconds / 60 % 60) as i8, (seconds % 60) as i8, (rest % 1_000_000 * 1_000) as i32)
}

pub(crate) fn micros(at: DateTime) -> i64 {
    let days = jiff::civil::date(1970, 1, 1).until(at.date()).map_or(0, |span| i64::from(span.get_days()));
    let time = at.time();
    let seconds = i64::from(time.hour()) * 3_600 + i64::from(time.minute()) * 60 + i64::from(time.second());
    days * DAY + seconds * 1_000_000 + i64::from(time.subsec_nanosecond()) / 1_000
}

/// Returns the first moment of the bucket that contains a local time.
pub(crate) fn start(at: DateTime, granularity: Granularity) -> DateTime {
    let midnight = |date: Date| date.at(0, 0, 0, 0);
    match granularity {
        Granularity::Second => at.date().at(at.hour(), at.minute(), at.second(), 0),
        Granularity::Minute => at.date().at(at.hour(), at.minute(), 0, 0),
        Granularity::Hour => at.date().at(at.hour(), 0, 0, 0),
        Granularity::Day => midnight(at.date()),
        Granularity::Week => {
            let week = at.date().iso_week_date();
            let monday = ISOWeekDate::new(week.year(), week.week(), Weekday::Monday);
            midnight(monday.map_or(at.date(), ISOWeekDate::date))
        }
        Granularity::Month => midnight(at.date().first_of_month()),
        Granularity::Quarter => {
            let first = (at.month() - 1) / 3 * 3 + 1;
            midnight(jiff::civil::date(at.year(), first, 1))
        }
        Granularity::Year => midnight(jiff::civil::date(at.year(), 1, 1)),
    }
}

/// Returns the bucket of a time. Null and values of other types do not change.
pub(crate) fn bucket(value: &Value, granularity: Granularity, zone: &TimeZone) -> Value {
    let Some(at) = value.micros() else { return Value::Null };
    let Value::Instant(_) = value else {
        let from = start(clock(at), granularity);
        return Value::Bucket(micros(from), label(from, granularity));
    };
    let Ok(instant) = Timestamp::from_microsecond(at) else { return Value::Null };
    let from = start(zone.to_datetime(instant), granularity);
    if granularity >= Granularity::Day {
        return Value::Bucket(micros(from), label(from, granularity));
    }
    // The hour that occurs twice in autumn makes two buckets, each with its own offset.
    let offset = zone.to_offset(instant);
    let start = micros(from) - i64::from(offset.seconds()) * 1_000_000;
    let offset = if *zone == TimeZone::UTC { String::new() } else { offset_text(offset.seconds()) };
    Value::Bucket(start, label(from, granularity) + &offset)
}

/// Returns the start of a bucket as a value of the same kind as `value`: an instant for instants. Filters on rows
/// compare this start.
pub(crate) fn bucket_start(value: &Value, granularity: Granularity, zone: &TimeZone) -> Value {
    match (bucket(value, granularity, zone), value) {
        (Value::Bucket(from, _), Value::Instant(_)) if granularity >= Granularity::Day => {
            let first = zone.to_ambiguous_timestamp(clock(from)).compatible();
            first.map_or(Value::Null, |first| Value::Instant(first.as_microsecond()))
        }
        (bucket, _) => bucket,
    }
}

/// Returns the local time of an instant or a local time, in microseconds.
pub(crate) fn local(value: &Value, zone: &TimeZone) -> Option<i64> {
    let at = value.micros()?;
    match value {
        Value::Instant(_) => Some(micros(zone.to_datetime(Timestamp::from_microsecond(at).ok()?))),
        _ => Some(at),
    }
}

/// Returns a local time moved by calendar units. The day is at most the last day of the month.
pub(crate) fn moved(at: i64, count: i64, unit: Granularity) -> i64 {
    let span = match unit {
        Granularity::Second => count.seconds(),
        Granularity::Minute => count.minutes(),
        Granularity::Hour => count.hours(),
        Granularity::Day => count.days(),
        Granularity::Week => count.weeks(),
        Granularity::Month => count.months(),
        Granularity::Quarter => (3 * count).months(),
        Granularity::Year => count.years(),
    };
    micros(clock(at).saturating_add(span))
}

/// Returns the number of a bucket. The numbers of adjacent buckets differ by one.
pub(crate) fn number(start: i64, granularity: Granularity) -> i64 {
    let (day, date) = (start.div_euclid(DAY), clock(start).date());
    let (year, month) = (i64::from(date.year()), i64::from(date.month()) - 1);
    match granularity {
        Granularity::Year => year,
        Granularity::Quarter => year * 4 + month / 3,
        Granularity::Month => year * 12 + month,
        // 1970 began on a Thursday.
        Granularity::Week => (day + 3).div_euclid(7),
        Granularity::Day => day,
        finer => start.div_euclid(size(finer)),
    }
}

/// Returns the duration of an hour or a shorter granularity, in microseconds.
pub(crate) fn size(granularity: Granularity) -> i64 {
    match granularity {
        Granularity::Second => 1_000_000,
        Granularity::Minute => 60_000_000,
        Granularity::Hour => 3_600_000_000,
        _ => DAY,
    }
}

/// Returns the bucket with a given number, for buckets of a day or more.
pub(crate) fn numbered(number: i64, granularity: Granularity) -> Value {
    let first = |year: i64, month: i64| jiff::civil::date(year as i16, month as i8 + 1, 1).at(0, 0, 0, 0);
    let from = match granularity {
        Granularity::Year => first(number, 0),
        Granularity::Quarter => first(number.div_euclid(4), number.rem_euclid(4) * 3),
        Granularity::Month => first(number.div_euclid(12), number.rem_euclid(12)),
        Granularity::Week => clock((number * 7 - 3) * DAY),
        _ => clock(number * DAY),
    };
    Value::Bucket(micros(from), label(from, granularity))
}

fn label(at: DateTime, granularity: Granularity) -> String {
    let day = || format!("{:04}-{:02}-{:02}", at.year(), at.month(), at.day());
    match granularity {
        Granularity::Second => format!("{}T{:02}:{:02}:{:02}", day(), at.hour(), at.minute(), at.second()),
        Granularity::Minute => format!("{}T{:02}:{:02}", day(), at.hour(), at.minute()),
        Granularity::Hour => format!("{}T{:02}", day(), at.hour()),
        Granularity::Day => day(),
        Granularity::Week => {
            let week = at.date().iso_week_date();
            format!("{:04}-W{:02}", week.year(), week.week())
        }
        Granularity::Month => format!("{:04}-{:02}", at.year(), at.month()),
        Granularity::Quarter => format!("{:04}-Q{}", at.year(), (at.month() - 1) / 3 + 1),
        Granularity::Year => format!("{:04}", at.year()),
    }
}

fn offset_text(seconds: i32) -> String {
    let sign = if seconds < 0 { '-' } else { '+' };
    let minutes = seconds.abs() / 60;
    format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
}

/// Returns a value in the form that clients receive.
pub(crate) fn rendered(value: Value, zone: &TimeZone) -> Value {
    let moment = |at: DateTime| {
        let fraction = at.subsec_nanosecond() / 1_000;
        let fraction = if fraction == 0 { String::new() } else { format!(".{fraction:06}") };
        label(at, Granularity::Second) + fraction.trim_end_matches('0')
    };
    Value::Text(match value {
        Value::Day(days) => label(clock(i64::from(days) * DAY), Granularity::Day),
        Value::Local(micros) => moment(clock(micros)),
        Value::Instant(micros) => match Timestamp::from_microsecond(micros) {
            Ok(instant) if *zone == TimeZone::UTC => moment(zone.to_datetime(instant)) + "Z",
            Ok(instant) => moment(zone.to_datetime(instant)) + &offset_text(zone.to_offset(instant).seconds()),
            Err(_) => "out of the calendar".to_owned(),
        },
        Value::Bucket(_, label) => label,
        other => return other,
    })
}
