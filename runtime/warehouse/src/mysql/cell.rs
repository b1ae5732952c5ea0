//! Decodes MySQL's binary cells (the protocol's "binary protocol value").
//!
//! TINYINT(1) is an integer, unless the query expects a boolean. A TIME stays text, because it can be a duration as
//! well as a time of day. A date of zeros becomes null.

use std::fmt::Write as _;

use jiff::civil::{Date, DateTime, Time};
use sqlx::error::BoxDynError;
use sqlx::mysql::{MySqlColumn, MySqlValueRef};
use sqlx::{Column as _, Decode, MySql, Type, TypeInfo as _, ValueRef as _};

use crate::columns::{Cell, Column, Kind};
use crate::instants::clock_micros;
use crate::sessions::CellError;

const SECONDS_PER_DAY: i64 = 86_400;

pub(super) fn kind_of(column: &MySqlColumn) -> Option<Kind> {
    let ty = column.type_info();
    Some(match ty.name() {
        "BOOLEAN" | "TINYINT" | "SMALLINT" | "MEDIUMINT" | "INT" | "BIGINT" | "YEAR" => Kind::Integer,
        "BIT" => Kind::Unsigned,
        name if name.ends_with(" UNSIGNED") => Kind::Unsigned,
        "FLOAT" => Kind::Single,
        "DOUBLE" => Kind::Double,
        "DECIMAL" => Kind::Decimal,
        "DATE" => Kind::Date,
        "DATETIME" => Kind::Timestamp,
        "TIMESTAMP" => Kind::Instant,
        "TIME" | "JSON" | "ENUM" | "SET" => Kind::Text,
        "NULL" => Kind::Dynamic,
        // The names of types distinguish BLOB from TEXT by a flag that a binary collation sets as well, so they are not
        // used here.
        _ if <str as Type<MySql>>::compatible(ty) => Kind::Text,
        _ => Kind::Binary,
    })
}

pub(super) fn append(column: &mut Column, value: MySqlValueRef<'_>) -> Result<(), CellError> {
    let is = |name: &str| value.type_info().name() == name;
    let (is_bits, is_time) = (is("BIT"), is("TIME"));
    let bytes = <&[u8] as Decode<MySql>>::decode(value).map_err(|error: BoxDynError| CellError::Database(error))?;
    match column {
        Column::Boolean(builder) => builder.append_value(bytes.iter().any(|byte| *byte != 0)),
        Column::Integer(builder) => builder.append_value(integer(bytes)?),
        Column::Unsigned(builder) => builder.append_value(unsigned(bytes, is_bits)?),
        Column::Single(builder) => builder.append_value(f32::from_le_bytes(fixed(bytes)?)),
        Column::Double(builder) => builder.append_value(f64::from_le_bytes(fixed(bytes)?)),
        Column::Decimal(decimals) => {
            let pushed = decimals.push_text(std::str::from_utf8(bytes)?);
            pushed.map_err(|error| CellError::Value(error.to_string()))?;
        }
        Column::Text(builder) if is_time => builder.append_value(time_text(bytes)?),
        Column::Text(builder) => builder.append_value(std::str::from_utf8(bytes)?),
        Column::Binary(builder) => builder.append_value(bytes),
        Column::Date(builder) => {
            let days = moment(bytes)?.map(|micros| micros.div_euclid(SECONDS_PER_DAY * 1_000_000));
            builder.append_option(days.and_then(|days| i32::try_from(days).ok()));
        }
        Column::Timestamp(builder) => builder.append_option(moment(bytes)?),
        Column::Dynamic(cells) => cells.push(Cell::Text(std::str::from_utf8(bytes)?.to_owned())),
        Column::Time(_) | Column::Interval(_) => return Err(CellError::Type),
    }
    Ok(())
}

fn fixed<const N: usize>(bytes: &[u8]) -> Result<[u8; N], CellError> {
    bytes.try_into().map_err(|_| CellError::Length(bytes.len()))
}

fn integer(bytes: &[u8]) -> Result<i64, CellError> {
    Ok(match bytes.len() {
        1 => i8::from_le_bytes(fixed(bytes)?).into(),
        2 => i16::from_le_bytes(fixed(bytes)?).into(),
        4 => i32::from_le_bytes(fixed(bytes)?).into(),
        _ => i64::from_le_bytes(fixed(bytes)?),
    })
}

/// Decodes an integer with the lowest byte first, or bits with the highest byte first.
fn unsigned(bytes: &[u8], is_bits: bool) -> Result<u64, CellError> {
    if bytes.len() > 8 {
        return Err(CellError::Length(bytes.len()));
    }
    let add = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
    Ok(if is_bits { bytes.iter().fold(0, add) } else { bytes.iter().rev().fold(0, add) })
}

/// Decodes a time to microseconds since the Unix epoch. The bytes are a length, then year, month and day, then hour,
/// minute and second, then microseconds. Trailing parts that are 0 are left out.
fn moment(bytes: &[u8]) -> Result<Option<i64>, CellError> {
    let wrong = || CellError::Length(bytes.len());
    let (year, month, day) = match bytes {
        [_, y0, y1, month, day, ..] => (u16::from_le_bytes([*y0, *y1]), *month, *day),
        [0] => return Ok(None),
        _ => return Err(wrong()),
    };
    if (year, month, day) == (0, 0, 0) {
        return Ok(None);
    }
    let clock = match &bytes[5..] {
        [] => Time::midnight(),
        [hour, minute, second, rest @ ..] => {
            let micros = if rest.is_empty() { 0 } else { u32::from_le_bytes(fixed(rest)?) };
            let nanos = micros.checked_mul(1_000).and_then(|nanos| i32::try_from(nanos).ok()).ok_or_else(wrong)?;
            Time::new(*hour as i8, *minute as i8, *second as i8, nanos).map_err(|e| CellError::Value(e.to_string()))?
        }
        _ => return Err(wrong()),
    };
    let date = Date::new(year as i16, month as i8, day as i8).map_err(|e| CellError::Value(e.to_string()))?;
    Ok(Some(clock_micros(DateTime::from_parts(date, clock))))
}

/// Decodes a time to text such as `-838:59:59.000001`. The bytes are a length, then a sign, days, hours, minutes and
/// seconds, then microseconds.
fn time_text(bytes: &[u8]) -> Result<String, CellError> {
    let [_, is_negative, d0, d1, d2, d3, hour, minute, second, rest @ ..] = bytes else {
        return if matches!(bytes, [0]) { Ok("00:00:00".to_owned()) } else { Err(CellError::Length(bytes.len())) };
    };
    let hours = u32::from_le_bytes([*d0, *d1, *d2, *d3]) * 24 + u32::from(*hour);
    let sign = if *is_negative == 0 { "" } else { "-" };
    let mut text = format!("{sign}{hours:02}:{minute:02}:{second:02}");
    if !rest.is_empty() {
        // Writing to a String does not fail.
        let _ = write!(text, ".{:06}", u32::from_le_bytes(fixed(rest)?));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_of_every_length_are_read() {
        assert_eq!(moment(&[4, 0xb2, 0x07, 1, 2]).unwrap(), Some(86_400_000_000));
        assert_eq!(moment(&[7, 0xb2, 0x07, 1, 1, 0, 0, 1]).unwrap(), Some(1_000_000));
        assert_eq!(moment(&[11, 0xb2, 0x07, 1, 1, 0, 0, 1, 5, 0, 0, 0]).unwrap(), Some(1_000_005));
        assert_eq!(moment(&[0]).unwrap(), None);
        assert!(moment(&[4, 0x0f, 0x27, 12, 31]).unwrap().is_some());
        assert!(moment(&[4, 0xb2, 0x07, 13, 1]).is_err() && moment(&[1, 2]).is_err());
    }

    #[test]
    fn times_may_be_negative_and_longer_than_a_day() {
        assert_eq!(time_text(&[0]).unwrap(), "00:00:00");
        assert_eq!(time_text(&[8, 1, 1, 0, 0, 0, 2, 3, 4]).unwrap(), "-26:03:04");
        assert_eq!(time_text(&[12, 0, 0, 0, 0, 0, 2, 3, 4, 5, 0, 0, 0]).unwrap(), "02:03:04.000005");
    }

    #[test]
    fn integers_of_every_width_are_read() {
        assert_eq!(integer(&[0xff]).unwrap(), -1);
        assert_eq!(unsigned(&[0xff; 8], false).unwrap(), u64::MAX);
        assert_eq!(unsigned(&[1, 2], true).unwrap(), 258);
        assert_eq!(unsigned(&[1, 2], false).unwrap(), 513);
    }
}
