//! Converts the compiler's days and microseconds to the calendar types that sqlx binds, and back.

use chrono::{DateTime, Days, NaiveDate, NaiveDateTime};
use jiff::civil;

/// A time outside the range of the calendar type.
#[derive(Debug, thiserror::Error)]
#[error("{0} is outside of the range of dates and times")]
pub(crate) struct BeyondCalendar(i64);

/// Converts days since 1970-01-01 to a date.
pub(crate) fn date(days: i32) -> Result<NaiveDate, BeyondCalendar> {
    let (epoch, distance) = (NaiveDate::default(), Days::new(days.unsigned_abs().into()));
    let date = if days < 0 { epoch.checked_sub_days(distance) } else { epoch.checked_add_days(distance) };
    date.ok_or(BeyondCalendar(days.into()))
}

/// Converts microseconds since 1970-01-01T00:00:00 on a wall clock.
pub(crate) fn clock(micros: i64) -> Result<NaiveDateTime, BeyondCalendar> {
    DateTime::from_timestamp_micros(micros).map(|instant| instant.naive_utc()).ok_or(BeyondCalendar(micros))
}

/// Returns the microseconds since 1970-01-01T00:00:00 on a wall clock. The time is not converted to an instant, because
/// the range of instants is smaller than that of the calendar.
pub(crate) fn clock_micros(clock: civil::DateTime) -> i64 {
    const EPOCH: civil::DateTime = civil::DateTime::constant(1970, 1, 1, 0, 0, 0, 0);
    let distance = clock.duration_since(EPOCH);
    distance.as_secs() * 1_000_000 + i64::from(distance.subsec_micros())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calendar_bounds_convert_to_microseconds() {
        assert_eq!(clock_micros(civil::DateTime::constant(1969, 12, 31, 23, 59, 59, 999_999_000)), -1);
        let last = clock_micros(civil::DateTime::constant(9999, 12, 31, 23, 59, 59, 999_999_000));
        assert_eq!(clock(last).unwrap().to_string(), "9999-12-31 23:59:59.999999");
    }

    #[test]
    fn dates_before_and_after_1970_are_converted() {
        assert_eq!(date(-1).unwrap().to_string(), "1969-12-31");
        assert_eq!(date(19_753).unwrap().to_string(), "2024-01-31");
        assert_eq!(clock(-1).unwrap().to_string(), "1969-12-31 23:59:59.999999");
        assert!(date(i32::MAX).is_err() && clock(i64::MIN).is_err());
    }
}
