//! Times as the interface renders them (semantics, rules 16 and 18).
//!
//! In: microseconds since 1970, as an instant or a wall clock, and a [`ColumnFormat`]. Out: a quoted
//! label. Weeks follow ISO 8601, so 2021-01-03 belongs to `2020-W53`.

use arrow::datatypes::IntervalMonthDayNano;
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, tz};
use terrane_compiler::sql::ColumnFormat;
use terrane_compiler::types::Granularity;

/// What a stored time is, by its Arrow type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stored {
    Date,
    Timestamp,
    TimestampTz,
}

/// Appends a quoted time. What no calendar holds (the engines' infinities) is written by name.
pub(super) fn write_time(micros: i64, stored: Stored, format: &ColumnFormat, out: &mut Vec<u8>) {
    let Ok(instant) = Timestamp::from_microsecond(micros) else {
        out.extend_from_slice(if micros < 0 { b"\"-infinity\"" } else { b"\"infinity\"" });
        return;
    };
    out.push(b'"');
    match format {
        ColumnFormat::Date(granularity) => write_label(utc(instant), *granularity, out),
        ColumnFormat::Clock(granularity) => write_clock(utc(instant), *granularity, out),
        ColumnFormat::InstantBucket(granularity, zone) => {
            let offset = zone.to_offset(instant);
            write_clock(offset.to_datetime(instant), *granularity, out);
            write_offset(offset, out);
        }
        ColumnFormat::Instant(zone) => write_instant(instant, zone, out),
        ColumnFormat::WallClock | ColumnFormat::Plain => match stored {
            Stored::Date => write_label(utc(instant), Granularity::Day, out),
            Stored::Timestamp => write_moment(utc(instant), out),
            Stored::TimestampTz => write_instant(instant, &TimeZone::UTC, out),
        },
    }
    out.push(b'"');
}

/// Appends a quoted ISO 8601 duration: `P14M3DT1.5S`. Months, days and seconds don't make up one another.
pub(super) fn write_interval(interval: IntervalMonthDayNano, out: &mut Vec<u8>) {
    out.extend_from_slice(b"\"P");
    for (number, unit) in [(interval.months, b'M'), (interval.days, b'D')] {
        if number != 0 {
            digits(number.into(), 1, out);
            out.push(unit);
        }
    }
    let nanos = interval.nanoseconds;
    if nanos != 0 || (interval.months, interval.days) == (0, 0) {
        out.extend_from_slice(if nanos < 0 { b"T-" } else { b"T" });
        let micros = (nanos.unsigned_abs() / 1_000) as i64;
        digits(micros / 1_000_000, 1, out);
        write_fraction(micros % 1_000_000, out);
        out.push(b'S');
    }
    out.push(b'"');
}

fn utc(instant: Timestamp) -> DateTime {
    Offset::UTC.to_datetime(instant)
}

fn write_instant(instant: Timestamp, zone: &tz::TimeZone, out: &mut Vec<u8>) {
    if *zone == TimeZone::UTC || zone.iana_name() == Some("UTC") {
        write_moment(utc(instant), out);
        out.push(b'Z');
        return;
    }
    let offset = zone.to_offset(instant);
    write_moment(offset.to_datetime(instant), out);
    write_offset(offset, out);
}

fn write_label(at: DateTime, granularity: Granularity, out: &mut Vec<u8>) {
    match granularity {
        Granularity::Year => digits(at.year().into(), 4, out),
        Granularity::Quarter => {
            digits(at.year().into(), 4, out);
            out.extend_from_slice(b"-Q");
            digits(((at.month() - 1) / 3 + 1).into(), 1, out);
        }
        Granularity::Month => {
            digits(at.year().into(), 4, out);
            out.push(b'-');
            digits(at.month().into(), 2, out);
        }
        Granularity::Week => {
            let week = at.date().iso_week_date();
            digits(week.year().into(), 4, out);
            out.extend_from_slice(b"-W");
            digits(week.week().into(), 2, out);
        }
        _ => write_date(at, out),
    }
}

fn write_date(at: DateTime, out: &mut Vec<u8>) {
    digits(at.year().into(), 4, out);
    out.push(b'-');
    digits(at.month().into(), 2, out);
    out.push(b'-');
    digits(at.day().into(), 2, out);
}

fn write_clock(at: DateTime, granularity: Granularity, out: &mut Vec<u8>) {
    write_date(at, out);
    out.push(b'T');
    digits(at.hour().into(), 2, out);
    if granularity <= Granularity::Minute {
        out.push(b':');
        digits(at.minute().into(), 2, out);
    }
    if granularity == Granularity::Second {
        out.push(b':');
        digits(at.second().into(), 2, out);
    }
}

/// With a fraction only where there is one, without trailing zeros.
fn write_moment(at: DateTime, out: &mut Vec<u8>) {
    write_clock(at, Granularity::Second, out);
    write_fraction(i64::from(at.subsec_nanosecond() / 1_000), out);
}

/// Microseconds behind a point; nothing where there are none.
fn write_fraction(micros: i64, out: &mut Vec<u8>) {
    if micros > 0 {
        out.push(b'.');
        digits(micros, 6, out);
        while out.last() == Some(&b'0') {
            out.pop();
        }
    }
}

fn write_offset(offset: Offset, out: &mut Vec<u8>) {
    let seconds = offset.seconds();
    out.push(if seconds < 0 { b'-' } else { b'+' });
    let minutes = seconds.abs() / 60;
    digits(i64::from(minutes / 60), 2, out);
    out.push(b':');
    digits(i64::from(minutes % 60), 2, out);
}

/// At least `width` digits; years before 0 keep their sign.
fn digits(number: i64, width: usize, out: &mut Vec<u8>) {
    if number < 0 {
        out.push(b'-');
    }
    let mut buffer = [b'0'; 20];
    let (mut rest, mut at) = (number.unsigned_abs(), buffer.len());
    while rest > 0 {
        at -= 1;
        buffer[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    out.extend_from_slice(&buffer[at.min(buffer.len() - width)..]);
}
