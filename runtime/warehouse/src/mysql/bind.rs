//! Converts bound values to MySQL's types, in binary form.

use bigdecimal::BigDecimal;
use sqlx::Arguments as _;
use sqlx::error::BoxDynError;
use sqlx::mysql::MySqlArguments;
use terrane_compiler::types::Value;

use crate::instants;

/// Returns the arguments of a statement.
///
/// # Errors
/// No type of MySQL can represent a number or a time.
pub(super) fn arguments(params: &[Value]) -> Result<MySqlArguments, BoxDynError> {
    let mut arguments = MySqlArguments::default();
    for value in params {
        match value {
            Value::Null => arguments.add(None::<i64>)?,
            Value::Boolean(value) => arguments.add(*value)?,
            Value::Integer(value) => arguments.add(*value)?,
            Value::Float(value) => arguments.add(*value)?,
            Value::Decimal(digits) => arguments.add(digits.parse::<BigDecimal>()?)?,
            Value::Text(text) => arguments.add(&**text)?,
            Value::Date(days) => arguments.add(instants::date(*days)?)?,
            // The session is in UTC, so the session's wall clock shows an instant in UTC.
            Value::Timestamp(micros) | Value::TimestampTz(micros) => arguments.add(instants::clock(*micros)?)?,
        }
    }
    Ok(arguments)
}
