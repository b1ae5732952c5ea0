//! Converts bound values to DuckDB's types.
//!
//! Dates and times are bound as numbers, and decimals as scaled integers. None of them is bound as text. An instant is
//! bound as a TIMESTAMP in UTC, which is the session's time zone. Where it is compared with a TIMESTAMP WITH TIME ZONE,
//! DuckDB converts it to that type.

use duckdb::ToSql;
use duckdb::types::{Decimal, TimeUnit, ToSqlOutput, Value as Duck};
use terrane_compiler::types::Value;

/// The largest number of digits of a DuckDB decimal.
const MAX_DIGITS: usize = 38;

/// A value to bind to a placeholder.
pub(super) struct Bound<'a>(pub(super) &'a Value);

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> duckdb::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Owned(match self.0 {
            Value::Null => Duck::Null,
            Value::Boolean(value) => Duck::Boolean(*value),
            Value::Integer(value) => Duck::BigInt(*value),
            Value::Float(value) => Duck::Double(*value),
            Value::Decimal(digits) => decimal(digits)?,
            Value::Text(text) => Duck::Text(text.to_string()),
            Value::Date(days) => Duck::Date32(*days),
            Value::Timestamp(micros) | Value::TimestampTz(micros) => Duck::Timestamp(TimeUnit::Microsecond, *micros),
        }))
    }
}

/// Converts a decimal. Up to 38 digits, the conversion is exact; otherwise the result is the nearest double. Compared
/// with a column, the double behaves like the number itself, except for its last digits.
fn decimal(text: &str) -> duckdb::Result<Duck> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let whole = whole.trim_start_matches('0');
    let fraction = fraction.trim_end_matches('0');
    let malformed = || duckdb::Error::ToSqlConversionFailure(format!("`{text}` is not a decimal").into());
    if whole.len() + fraction.len() > MAX_DIGITS {
        return text.parse().map(Duck::Double).map_err(|_| malformed());
    }
    let scaled = format!("0{whole}{fraction}").parse::<i128>().map_err(|_| malformed())?;
    // The type needs at least one digit before the point, as in the types that DuckDB itself gives to literals.
    let width = (whole.len().max(1) + fraction.len()).min(MAX_DIGITS) as u8;
    let decimal = Decimal::new(width, fraction.len() as u8, sign * scaled).map_err(|_| malformed())?;
    Ok(Duck::Decimal(decimal))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(text: &str) -> (u8, u8, i128) {
        match decimal(text).expect("a decimal") {
            Duck::Decimal(d) => (d.width(), d.scale(), d.value()),
            other => panic!("{text} became {other:?}"),
        }
    }

    #[test]
    fn decimals_keep_every_digit() {
        assert_eq!(exact("12.50"), (3, 1, 125));
        assert_eq!(exact("-0.001"), (4, 3, -1));
        assert_eq!(exact("0"), (1, 0, 0));
        assert_eq!(exact("99999999999999999999999999999999999999").2, 10_i128.pow(38) - 1);
    }

    #[test]
    fn decimal_wider_than_the_engine_type_becomes_a_double() {
        assert_eq!(decimal(&"9".repeat(40)).ok(), Some(Duck::Double(1e40)));
    }

    #[test]
    fn malformed_decimals_are_rejected() {
        assert!(decimal("1e5").is_err());
        assert!(decimal("--1").is_err());
    }
}
