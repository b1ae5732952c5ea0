//! Generates data with few distinct values, so that groups have several rows. The values include nulls, extremes and
//! values that are easily confused.

use jiff::civil::{DateTime, date};
use jiff::tz::TimeZone;

use super::Generator;
use crate::world::{Cell, ColumnType};

/// Strings that differ in case, trailing spaces or combining marks, and code points whose order differs in UTF-16.
pub(super) const TEXTS: &[&str] = &[
    "a",
    "A",
    "a ",
    "",
    "é",
    "e\u{301}",
    "😀",
    "\u{FB01}",
    "%",
    "_",
    "a%b",
    "a_b",
    "O'Hara",
    "\"q\"",
    "null",
    "\\",
    "ß",
    "ab",
    "B",
    "0",
    " ",
    "\u{10FFFF}",
    "{a}",
    "{{ a }}",
    "$1",
    "line\nbreak",
];

const BIGS: &[i64] = &[0, 1, -1, 7, i64::MAX, i64::MIN, i64::MAX - 1, 9_007_199_254_740_993, -9_007_199_254_740_993];
const CENTS: &[i64] = &[0, 1, -1, 50, 1_250, -999, 10, 999_999_999_999_999_999, -999_999_999_999_999_999, 100];
const DOUBLES: &[f64] = &[0.0, 0.25, -1.5, 3.75, 1_048_576.0, 2.0, -0.125];

/// The ends of days, weeks, months and years, and the hours that clocks skip or repeat.
const MOMENTS: &[(i16, i8, i8, i8, i8, i8)] = &[
    (2024, 1, 31, 23, 59, 59),
    (2024, 2, 1, 0, 0, 0),
    (2024, 2, 29, 12, 0, 0),
    (2024, 12, 30, 0, 0, 0),
    (2021, 1, 3, 23, 30, 0),
    (2020, 12, 31, 22, 30, 0),
    (2021, 1, 1, 0, 0, 0),
    (2024, 10, 27, 0, 30, 0),
    (2024, 10, 27, 1, 30, 0),
    (2024, 3, 31, 0, 59, 59),
    (2024, 3, 31, 1, 0, 0),
    (2024, 11, 3, 5, 15, 0),
    (2024, 11, 3, 6, 15, 0),
    (2024, 3, 10, 7, 0, 0),
    (2018, 11, 4, 3, 0, 0),
    (2018, 2, 18, 1, 30, 0),
    (2018, 2, 18, 2, 30, 0),
    (2024, 3, 9, 12, 0, 0),
    (2024, 3, 10, 2, 0, 0),
    (1970, 1, 1, 0, 0, 0),
    (1999, 12, 31, 23, 0, 0),
];

pub(super) fn micros(at: DateTime) -> i64 {
    TimeZone::UTC.to_timestamp(at).map_or(0, |instant| instant.as_microsecond())
}

impl Generator {
    pub(super) fn moment(&mut self) -> DateTime {
        let (year, month, day, hour, minute, second) = *self.random.of(MOMENTS);
        let nanos = if self.random.chance(10) { 123_456_000 } else { 0 };
        date(year, month, day).at(hour, minute, second, nanos)
    }

    pub(super) fn cell(&mut self, ty: ColumnType) -> Cell {
        if self.random.chance(15) {
            return Cell::Null;
        }
        match ty {
            ColumnType::Text => {
                // Most columns should repeat the same few strings.
                let few = if self.random.chance(60) { 4 } else { TEXTS.len() };
                Cell::Text((*self.random.of(&TEXTS[..few])).to_owned())
            }
            ColumnType::Small => Cell::Int(self.random.between(-3, 5)),
            ColumnType::Big => Cell::Int(*self.random.of(BIGS)),
            ColumnType::Decimal => Cell::Cents(*self.random.of(CENTS)),
            ColumnType::Double => Cell::Double(*self.random.of(DOUBLES)),
            ColumnType::Boolean => Cell::Bool(self.random.chance(50)),
            ColumnType::Date => {
                let extremes = [date(1, 1, 1), date(9999, 12, 31), date(1969, 12, 31)];
                let day = if self.random.chance(8) { *self.random.of(&extremes) } else { self.moment().date() };
                Cell::Day(date(1970, 1, 1).until(day).map_or(0, |span| span.get_days()))
            }
            ColumnType::Timestamp | ColumnType::TimestampTz => Cell::Micros(micros(self.moment())),
        }
    }
}
