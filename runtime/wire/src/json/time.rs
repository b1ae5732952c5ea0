//! Writes times in the form of the interface, which is described under "Time" in `runtime/docs/reference/query.md`.
//!
//! In: microseconds since the Unix epoch, as an instant or a wall-clock time, and a [`ColumnFormat`]. Out: a quoted
//! label. Weeks follow ISO 8601, so 2021-01-03 belongs to `2020-W53`.

use arrow::datatypes::IntervalMonthDayNano;
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};
use jiff::{Span, Timestamp, ToSpan as _};
use terrane_compiler::sql::ColumnFormat;
use terrane_compiler::types::{Granularity, is_utc};

/// The kind of a stored time, by its Arrow type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stored {
    Date,
    Timestamp,
    TimestampTz,
}

/// Appends a quoted time. An infinite time of an engine is not in the calendar and is written by its name.
pub(super) fn write_time(micros: i64, stored: Stored, format: &ColumnFormat, out: &mut Vec<u8>) {
    let start = out.len();
    out.push(b'"');
    let written = match format {
        ColumnFormat::Date(granularity) => civil(micros).map(|at| write_label(at, *granularity, out)),
        ColumnFormat::Clock(granularity) => civil(micros).map(|at| write_clock(at, *granularity, out)),
        ColumnFormat::InstantBucket(granularity, zone) => bucket(micros, *granularity, zone).map(|(at, offset)| {
            write_clock(at, *granularity, out);
            write_offset(offset, out);
        }),
        ColumnFormat::Instant(zone) => write_instant(micros, zone, out),
        ColumnFormat::WallClock | ColumnFormat::Plain => match stored {
            Stored::Date => civil(micros).map(|at| write_label(at, Granularity::Day, out)),
            Stored::Timestamp => civil(micros).map(|at| write_moment(at, out)),
            Stored::TimestampTz => write_instant(micros, &TimeZone::UTC, out),
        },
    };
    if written.is_none() {
        out.truncate(start);
        out.extend_from_slice(if micros < 0 { b"\"-infinity" } else { b"\"infinity" });
    }
    out.push(b'"');
}

/// Appends a quoted ISO 8601 duration: `P14M3DT1.5S`. Months, days and seconds are not converted into one another.
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

/// Returns a wall-clock time. It is counted in days from 1970, since an instant cannot reach the calendar's last day.
fn civil(micros: i64) -> Option<DateTime> {
    const DAY: i64 = 86_400_000_000;
    let days = i32::try_from(micros.div_euclid(DAY)).ok()?;
    let date = jiff::civil::date(1970, 1, 1).checked_add(Span::new().try_days(days).ok()?).ok()?;
    date.to_datetime(jiff::civil::Time::midnight()).checked_add(micros.rem_euclid(DAY).microseconds()).ok()
}

/// Returns an instant in a zone. Beyond the first or last instant of the calendar, the offset of that instant applies.
fn local(micros: i64, zone: &TimeZone) -> Option<(DateTime, Offset)> {
    let offset = match Timestamp::from_microsecond(micros) {
        Ok(instant) => zone.to_offset(instant),
        Err(_) if micros > 0 => zone.to_offset(Timestamp::MAX),
        Err(_) => zone.to_offset(Timestamp::MIN),
    };
    Some((civil(micros.checked_add(i64::from(offset.seconds()) * 1_000_000)?)?, offset))
}

/// Returns the local start of a bucket, with the offset of the bucket's values. If the clock changes by less than an
/// hour within a bucket, the bucket may not start at a full hour or minute of the old offset. Then the offset at the
/// end of the bucket applies.
fn bucket(micros: i64, granularity: Granularity, zone: &TimeZone) -> Option<(DateTime, Offset)> {
    let (at, offset) = local(micros, zone)?;
    let (is_start, length) = match granularity {
        Granularity::Hour => (at.minute() == 0 && at.second() == 0, 3_600_000_000),
        Granularity::Minute => (at.second() == 0, 60_000_000),
        _ => (true, 0),
    };
    if is_start {
        return Some((at, offset));
    }
    let (_, later) = local(micros.checked_add(length - 1)?, zone)?;
    Some((civil(micros.checked_add(i64::from(later.seconds()) * 1_000_000)?)?, later))
}

fn write_instant(micros: i64, zone: &TimeZone, out: &mut Vec<u8>) -> Option<()> {
    if is_utc(zone) {
        write_moment(civil(micros)?, out);
        out.push(b'Z');
        return Some(());
    }
    let (at, offset) = local(micros, zone)?;
    write_moment(at, out);
    write_offset(offset, out);
    Some(())
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

/// Writes a time, with a fraction if it has one, without trailing zeros.
fn write_moment(at: DateTime, out: &mut Vec<u8>) {
    write_clock(at, Granularity::Second, out);
    write_fraction(i64::from(at.subsec_nanosecond() / 1_000), out);
}

/// Writes microseconds after a point, or nothing if there are none.
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

/// Writes at least `width` digits. Years before 0 keep their sign.
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
