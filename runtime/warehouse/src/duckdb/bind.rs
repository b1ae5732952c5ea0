//! Bound values of the compiler as DuckDB's.

use duckdb::ToSql;
use duckdb::types::{Decimal, TimeUnit, ToSqlOutput, Value as DuckValue, ValueRef};
use terrane_compiler::types::Value;

/// A value that knows how to be bound.
pub(super) struct Bound<'a>(pub(super) &'a Value);

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> duckdb::Result<ToSqlOutput<'_>> {
        let borrowed = |value| Ok(ToSqlOutput::Borrowed(value));
        match self.0 {
            Value::Null => borrowed(ValueRef::Null),
            Value::Boolean(value) => borrowed(ValueRef::Boolean(*value)),
            Value::Integer(value) => borrowed(ValueRef::BigInt(*value)),
            Value::Float(value) => borrowed(ValueRef::Double(*value)),
            Value::Text(text) => borrowed(ValueRef::Text(text.as_bytes())),
            Value::Date(days) => borrowed(ValueRef::Date32(*days)),
            // The session's zone is UTC, so an instant compares as the same wall clock.
            Value::Timestamp(micros) | Value::TimestampTz(micros) => {
                borrowed(ValueRef::Timestamp(TimeUnit::Microsecond, *micros))
            }
            Value::Decimal(digits) => Ok(ToSqlOutput::Owned(match decimal(digits) {
                Some(decimal) => DuckValue::Decimal(decimal),
                // More digits than any DECIMAL holds: nothing equals it, everything compares with it.
                None => DuckValue::Double(digits.parse().unwrap_or(f64::NAN)),
            })),
        }
    }
}

/// Digits with at most one point, exactly; `None` beyond 38 digits.
fn decimal(digits: &str) -> Option<Decimal> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let fraction = fraction.trim_end_matches('0');
    let value: i128 = format!("{whole}{fraction}").parse().ok()?;
    let scale = u8::try_from(fraction.len()).ok()?;
    Decimal::new(38, scale, value).ok()
}
