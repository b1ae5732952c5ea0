//! Parses times that are sent as text or as numbers.
//!
//! In: a cell. Out: days or microseconds since the Unix epoch. Text is ISO 8601 with `T` or a space between date and
//! time. It may lack the time and the offset. An integer counts seconds since the Unix epoch, as in SQLite's own
//! functions.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time};

use crate::instants::clock_micros;

const MICROS_PER_SECOND: i64 = 1_000_000;
const DAY_LENGTH: usize = "2024-01-31".len();

/// A parsed time: a date, a time without an offset, or a time with one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Parsed {
    /// Days since 1970-01-01.
    Date(i32),
    /// Microseconds since 1970-01-01 on a wall clock.
    Clock(i64),
    /// Microseconds of an instant since the Unix epoch.
    Instant(i64),
}

impl Parsed {
    pub(super) fn micros(self) -> i64 {
        match self {
            Parsed::Date(days) => i64::from(days) * 86_400 * MICROS_PER_SECOND,
            Parsed::Clock(micros) | Parsed::Instant(micros) => micros,
        }
    }
}

pub(super) fn of_text(text: &str) -> Option<Parsed> {
    let text = text.trim();
    // Eight digits without hyphens may be a key, so only text with hyphens is a date.
    if !matches!(text.as_bytes(), [_, _, _, _, b'-', _, _, b'-', _, _, ..]) {
        return None;
    }
    if text.len() == DAY_LENGTH {
        let date: Date = text.parse().ok()?;
        let micros = clock_micros(date.to_datetime(Time::midnight()));
        return i32::try_from(micros.div_euclid(86_400 * MICROS_PER_SECOND)).ok().map(Parsed::Date);
    }
    // Instants are tried first, because the parser of wall clock times would ignore an offset.
    if let Ok(instant) = text.parse::<Timestamp>() {
        return Some(Parsed::Instant(instant.as_microsecond()));
    }
    text.parse::<DateTime>().ok().map(clock_micros).map(Parsed::Clock)
}

pub(super) fn of_seconds(seconds: i64) -> Option<Parsed> {
    seconds.checked_mul(MICROS_PER_SECOND).map(Parsed::Clock)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_clock_times_and_instants_are_parsed() {
        assert_eq!(of_text("1970-01-02"), Some(Parsed::Date(1)));
        assert_eq!(of_text("1969-12-31"), Some(Parsed::Date(-1)));
        assert_eq!(of_text("9999-12-31"), Some(Parsed::Date(2_932_896)));
        assert_eq!(of_text("1970-01-01 00:00:01.5"), Some(Parsed::Clock(1_500_000)));
        assert_eq!(of_text("1970-01-01T00:00:01"), Some(Parsed::Clock(1_000_000)));
        assert_eq!(of_text("1970-01-01 00:01"), Some(Parsed::Clock(60_000_000)));
        assert_eq!(of_text("1970-01-01T01:00:00+01:00"), Some(Parsed::Instant(0)));
        assert_eq!(of_text("1970-01-01 00:00:00Z"), Some(Parsed::Instant(0)));
        assert_eq!(of_seconds(2), Some(Parsed::Clock(2_000_000)));
    }

    #[test]
    fn other_strings_are_not_times() {
        for text in ["", "2024-W05", "soon", "2024-02-30", "20240131", "12:00:00"] {
            assert_eq!(of_text(text), None, "{text}");
        }
    }
}
