//! Decodes PostgreSQL's binary cells in the encoding of its types' `send` functions.

use arrow::datatypes::IntervalMonthDayNano;
use sqlx::postgres::{PgColumn, PgTypeKind, PgValueRef};
use sqlx::{Column as _, TypeInfo as _, ValueRef as _};

use super::numeric;
use crate::columns::{Cell, Column, Kind};
use crate::sessions::CellError;

/// The epoch of PostgreSQL, 2000-01-01, in days since 1970-01-01.
const EPOCH_DAYS: i32 = 10_957;
const EPOCH_MICROS: i64 = 946_684_800_000_000;

pub(super) fn kind_of(column: &PgColumn) -> Option<Kind> {
    let ty = column.type_info();
    Some(match ty.name() {
        "BOOL" => Kind::Boolean,
        "INT2" | "INT4" | "INT8" => Kind::Integer,
        "OID" => Kind::Unsigned,
        "FLOAT4" => Kind::Single,
        "FLOAT8" => Kind::Double,
        "NUMERIC" => Kind::Decimal,
        "TEXT" | "VARCHAR" | "CHAR" | "\"CHAR\"" | "NAME" | "UNKNOWN" | "UUID" | "JSON" | "JSONB" | "citext"
        | "XML" | "xml" => Kind::Text,
        "BYTEA" => Kind::Binary,
        "DATE" => Kind::Date,
        "TIMESTAMP" => Kind::Timestamp,
        "TIMESTAMPTZ" => Kind::Instant,
        "TIME" => Kind::Time,
        "INTERVAL" => Kind::Interval,
        _ if matches!(ty.kind(), PgTypeKind::Enum(_)) => Kind::Text,
        _ => return None,
    })
}

pub(super) fn append(column: &mut Column, value: PgValueRef<'_>) -> Result<(), CellError> {
    let bytes = value.as_bytes()?;
    match column {
        Column::Boolean(builder) => builder.append_value(bytes.iter().any(|byte| *byte != 0)),
        Column::Integer(builder) => builder.append_value(integer(bytes)?),
        Column::Unsigned(builder) => builder.append_value(u32::from_be_bytes(fixed(bytes)?).into()),
        Column::Single(builder) => builder.append_value(f32::from_be_bytes(fixed(bytes)?)),
        Column::Double(builder) => builder.append_value(f64::from_be_bytes(fixed(bytes)?)),
        Column::Decimal(decimals) => numeric::append(decimals, bytes)?,
        Column::Text(builder) => match value.type_info().name() {
            "UUID" => builder.append_value(uuid(fixed(bytes)?)),
            // The first byte is a version number.
            "JSONB" => builder.append_value(std::str::from_utf8(bytes.get(1..).unwrap_or_default())?),
            _ => builder.append_value(std::str::from_utf8(bytes)?),
        },
        Column::Binary(builder) => builder.append_value(bytes),
        Column::Date(builder) => builder.append_value(i32::from_be_bytes(fixed(bytes)?).saturating_add(EPOCH_DAYS)),
        Column::Timestamp(builder) => {
            builder.append_value(i64::from_be_bytes(fixed(bytes)?).saturating_add(EPOCH_MICROS));
        }
        Column::Time(builder) => builder.append_value(i64::from_be_bytes(fixed(bytes)?)),
        Column::Interval(builder) => builder.append_value(interval(fixed(bytes)?)?),
        Column::Dynamic(cells) => cells.push(Cell::Text(std::str::from_utf8(bytes)?.to_owned())),
    }
    Ok(())
}

fn fixed<const N: usize>(bytes: &[u8]) -> Result<[u8; N], CellError> {
    bytes.try_into().map_err(|_| CellError::Length(bytes.len()))
}

fn integer(bytes: &[u8]) -> Result<i64, CellError> {
    Ok(match bytes.len() {
        2 => i16::from_be_bytes(fixed(bytes)?).into(),
        4 => i32::from_be_bytes(fixed(bytes)?).into(),
        _ => i64::from_be_bytes(fixed(bytes)?),
    })
}

fn uuid(bytes: [u8; 16]) -> String {
    let hex = hex::encode(bytes);
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

/// Decodes an interval from microseconds, days and months.
fn interval(bytes: [u8; 16]) -> Result<IntervalMonthDayNano, CellError> {
    let micros = i64::from_be_bytes(fixed(&bytes[..8])?);
    let days = i32::from_be_bytes(fixed(&bytes[8..12])?);
    let months = i32::from_be_bytes(fixed(&bytes[12..])?);
    let nanos = micros.checked_mul(1_000).ok_or_else(|| CellError::Value(format!("{micros} microseconds")))?;
    Ok(IntervalMonthDayNano::new(months, days, nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_and_intervals_are_read_as_written() {
        let bytes: Vec<u8> = (0..16).collect();
        assert_eq!(uuid(fixed(&bytes).unwrap()), "00010203-0405-0607-0809-0a0b0c0d0e0f");
        let mut bytes = [0_u8; 16];
        (bytes[7], bytes[11], bytes[15]) = (5, 3, 14);
        assert_eq!(interval(bytes).unwrap(), IntervalMonthDayNano::new(14, 3, 5_000));
    }

    #[test]
    fn integers_of_every_width_keep_their_sign() {
        assert_eq!(integer(&[0xff, 0xfe]).unwrap(), -2);
        assert_eq!(integer(&[0xff; 4]).unwrap(), -1);
        assert_eq!(integer(&i64::MIN.to_be_bytes()).unwrap(), i64::MIN);
        assert!(integer(&[1]).is_err());
    }
}
