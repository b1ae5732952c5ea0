//! Converts bound values to PostgreSQL's types, in binary form.

use bigdecimal::BigDecimal;
use chrono::{DateTime, NaiveDate, NaiveDateTime, Utc};
use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::types::Oid;
use sqlx::postgres::{PgArgumentBuffer, PgArguments, PgTypeInfo};
use sqlx::{Arguments as _, Encode, Postgres, Type};
use terrane_compiler::types::Value;

use crate::instants;

/// Returns the arguments of a statement.
///
/// # Errors
/// No type of PostgreSQL can represent a number or a time.
pub(super) fn arguments(params: &[Value]) -> Result<PgArguments, BoxDynError> {
    let mut arguments = PgArguments::default();
    for value in params {
        match value {
            Value::Null => arguments.add(Untyped)?,
            Value::Boolean(value) => arguments.add(*value)?,
            Value::Integer(value) => arguments.add(*value)?,
            Value::Float(value) => arguments.add(*value)?,
            Value::Decimal(digits) => arguments.add(digits.parse::<BigDecimal>()?)?,
            Value::Text(text) => arguments.add(&**text)?,
            Value::Date(days) => arguments.add(instants::date(*days)?)?,
            Value::Timestamp(micros) => arguments.add(instants::clock(*micros)?)?,
            Value::TimestampTz(micros) => arguments.add(instants::clock(*micros)?.and_utc())?,
        }
    }
    Ok(arguments)
}

/// Returns the types that [`arguments`] sends.
pub(super) fn types(params: &[Value]) -> Vec<PgTypeInfo> {
    let ty = |value: &Value| match value {
        Value::Null => Untyped::type_info(),
        Value::Boolean(_) => <bool as Type<Postgres>>::type_info(),
        Value::Integer(_) => <i64 as Type<Postgres>>::type_info(),
        Value::Float(_) => <f64 as Type<Postgres>>::type_info(),
        Value::Decimal(_) => <BigDecimal as Type<Postgres>>::type_info(),
        Value::Text(_) => <str as Type<Postgres>>::type_info(),
        Value::Date(_) => <NaiveDate as Type<Postgres>>::type_info(),
        Value::Timestamp(_) => <NaiveDateTime as Type<Postgres>>::type_info(),
        Value::TimestampTz(_) => <DateTime<Utc> as Type<Postgres>>::type_info(),
    };
    params.iter().map(ty).collect()
}

/// A null value whose type the server infers from the context.
struct Untyped;

impl Type<Postgres> for Untyped {
    fn type_info() -> PgTypeInfo {
        /// The OID of the type `unknown` in `pg_type`.
        const UNKNOWN: Oid = Oid(705);
        PgTypeInfo::with_oid(UNKNOWN)
    }
}

impl Encode<'_, Postgres> for Untyped {
    fn encode_by_ref(&self, _: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        Ok(IsNull::Yes)
    }
}
