//! Bound values as JSON, for clients that run the statement themselves.

use std::io::Write as _;

use terrane_compiler::sql::ColumnFormat;
use terrane_compiler::types::{Granularity, Value};

use super::text::write_string;
use super::time::{Stored, write_time};

const MICROS_PER_DAY: i64 = 86_400_000_000;

/// Appends one value: numbers with all digits, times as ISO 8601.
pub fn write_value(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Boolean(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
        Value::Integer(value) => out.extend_from_slice(itoa::Buffer::new().format(*value).as_bytes()),
        Value::Float(value) if value.is_finite() => out.extend_from_slice(ryu::Buffer::new().format(*value).as_bytes()),
        Value::Float(_) => out.extend_from_slice(b"null"),
        Value::Decimal(digits) => {
            // Writing to a Vec does not fail.
            let _ = write!(out, "{digits}");
        }
        Value::Text(text) => write_string(text, out),
        Value::Date(days) => {
            let micros = i64::from(*days).saturating_mul(MICROS_PER_DAY);
            write_time(micros, Stored::Date, &ColumnFormat::Date(Granularity::Day), out);
        }
        Value::Timestamp(micros) => write_time(*micros, Stored::Timestamp, &ColumnFormat::Plain, out),
        Value::TimestampTz(micros) => write_time(*micros, Stored::TimestampTz, &ColumnFormat::Plain, out),
    }
}
