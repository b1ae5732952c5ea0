//! Converts bound values to SQLite's types. A time becomes ISO 8601 text in the form of SQLite's own functions, so that
//! the order of strings is the order of times. A decimal becomes an integer or the nearest double.

use sqlx::Arguments as _;
use sqlx::error::BoxDynError;
use sqlx::sqlite::SqliteArguments;
use terrane_compiler::types::Value;

use crate::instants;

/// Returns the arguments of a statement.
///
/// # Errors
/// A time is outside the calendar.
pub(super) fn arguments(params: &[Value]) -> Result<SqliteArguments, BoxDynError> {
    let mut arguments = SqliteArguments::default();
    for value in params {
        match value {
            Value::Null => arguments.add(None::<i64>)?,
            Value::Boolean(value) => arguments.add(*value)?,
            Value::Integer(value) => arguments.add(*value)?,
            Value::Float(value) => arguments.add(*value)?,
            Value::Decimal(digits) => match digits.parse::<i64>() {
                Ok(integer) => arguments.add(integer)?,
                Err(_) => arguments.add(digits.parse::<f64>()?)?,
            },
            Value::Text(text) => arguments.add(text.to_string())?,
            Value::Date(days) => arguments.add(instants::date(*days)?.to_string())?,
            Value::Timestamp(micros) | Value::TimestampTz(micros) => arguments.add(clock_text(*micros)?)?,
        }
    }
    Ok(arguments)
}

/// Returns a time as `2024-01-31 15:00:00`. A fraction is added without trailing zeros if it is not 0.
fn clock_text(micros: i64) -> Result<String, BoxDynError> {
    let text = instants::clock(micros)?.format("%Y-%m-%d %H:%M:%S%.f").to_string();
    Ok(if text.contains('.') { text.trim_end_matches('0').to_owned() } else { text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_they_are_stored() {
        assert_eq!(clock_text(0).unwrap(), "1970-01-01 00:00:00");
        assert_eq!(clock_text(500_000).unwrap(), "1970-01-01 00:00:00.5");
    }
}
