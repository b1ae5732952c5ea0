//! A caller's values, converted to the types that a policy compares them with.
//!
//! In: attributes from claims, and the type of the compared expression. Out: values of this type, or nothing if one of
//! them does not fit; the row filter is then false. An engine that casts silently would take `'5 or so' = 5` for true.
//! Not here: the identity of the caller.

use crate::model::{Compared, DimensionType, Model, SqlPart};
use crate::resolve::{number, time_point};
use crate::security::attribute_value;
use crate::types::{LogicalType, Value};

/// Returns the type of the expression that a caller's value is compared with: the column type of the warehouse, or else
/// the dimension's type.
pub(crate) fn type_of(model: &Model, compared: &Compared) -> LogicalType {
    match &compared.sql.parts[..] {
        [SqlPart::Dimension(id)] if compared.ty == LogicalType::Unknown => {
            let dimension = model.dimension(*id);
            match (dimension.converted_from.unwrap_or(dimension.column_type), dimension.ty) {
                (LogicalType::Unknown, DimensionType::String) => LogicalType::Text,
                (LogicalType::Unknown, DimensionType::Number) => LogicalType::Decimal,
                (LogicalType::Unknown, DimensionType::Boolean) => LogicalType::Boolean,
                (column_type, _) => column_type,
            }
        }
        _ => compared.ty,
    }
}

/// Converts all values of a caller to a type; `None` if one cannot be converted.
pub(super) fn fitted(values: Vec<Value>, ty: LogicalType) -> Option<Vec<Value>> {
    values.into_iter().map(|value| fit_attribute(value, ty)).collect()
}

/// Converts a caller's value to a type by the rules for attributes; `None` if it cannot be converted.
fn fit_attribute(value: Value, ty: LogicalType) -> Option<Value> {
    match ty {
        LogicalType::Text => attribute_value::text(&value).map(Value::Text),
        LogicalType::Integer | LogicalType::Decimal | LogicalType::Float => attribute_value::number(&value),
        LogicalType::Boolean => attribute_value::boolean(&value).map(Value::Boolean),
        ty => fit(value, ty),
    }
}

/// Converts a value to a type; `None` if it cannot be converted.
pub(crate) fn fit(value: Value, ty: LogicalType) -> Option<Value> {
    match (ty, value) {
        (LogicalType::Text, Value::Text(text)) => Some(Value::Text(text)),
        (LogicalType::Text, Value::Integer(number)) => Some(Value::Text(number.to_string().into())),
        (LogicalType::Integer | LogicalType::Decimal | LogicalType::Float, value) => match value {
            Value::Integer(_) | Value::Decimal(_) | Value::Float(_) => Some(value),
            Value::Text(text) => number(&text),
            _ => None,
        },
        (LogicalType::Boolean, Value::Boolean(is_true)) => Some(Value::Boolean(is_true)),
        (LogicalType::Boolean, Value::Text(text)) => match &*text {
            "true" => Some(Value::Boolean(true)),
            "false" => Some(Value::Boolean(false)),
            _ => None,
        },
        (ty, Value::Text(text)) if ty.is_temporal() => time_point(&text, ty),
        (LogicalType::Unknown | LogicalType::Geo | LogicalType::Binary, value) => Some(value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::Text(text.into())
    }

    #[test]
    fn values_become_the_type_that_they_meet() {
        for (value, ty, expected) in [
            (text("5"), LogicalType::Integer, Some(Value::Integer(5))),
            (text("5.50"), LogicalType::Decimal, Some(Value::Decimal("5.50".into()))),
            (text("5 or so"), LogicalType::Integer, None),
            (text(""), LogicalType::Float, None),
            (Value::Boolean(true), LogicalType::Integer, None),
            (Value::Integer(5), LogicalType::Text, Some(text("5"))),
            (Value::Float(5.0), LogicalType::Text, None),
            (Value::Boolean(true), LogicalType::Text, None),
            (text("true"), LogicalType::Boolean, Some(Value::Boolean(true))),
            (Value::Integer(1), LogicalType::Boolean, None),
            (text("1970-01-03"), LogicalType::Date, Some(Value::Date(2))),
            (text("1970-01-01T00:00:01"), LogicalType::Date, None),
            (text("1970-01-01"), LogicalType::Timestamp, Some(Value::Timestamp(0))),
            (text("1970-01-01T00:00:01"), LogicalType::Timestamp, Some(Value::Timestamp(1_000_000))),
            (text("1970-01-01T00:00:01Z"), LogicalType::Timestamp, None),
            (text("1970-01-01T01:00:00+01:00"), LogicalType::TimestampTz, Some(Value::TimestampTz(0))),
            (text("yesterday"), LogicalType::TimestampTz, None),
            (Value::Integer(7), LogicalType::Date, None),
            (Value::Integer(7), LogicalType::Unknown, Some(Value::Integer(7))),
        ] {
            assert_eq!(fit(value.clone(), ty), expected, "{value:?} as {ty:?}");
        }
    }

    #[test]
    fn attributes_become_the_type_that_they_meet() {
        for (value, ty, expected) in [
            (text("5"), LogicalType::Integer, Some(Value::Integer(5))),
            (text("5.50"), LogicalType::Decimal, Some(Value::Decimal("5.5".into()))),
            (text("5.0"), LogicalType::Integer, Some(Value::Integer(5))),
            (text("007"), LogicalType::Integer, None),
            (text("1e3"), LogicalType::Float, None),
            (text(" 5"), LogicalType::Integer, None),
            (Value::Decimal("1e3".into()), LogicalType::Integer, Some(Value::Integer(1_000))),
            (Value::Boolean(true), LogicalType::Integer, None),
            (text("007"), LogicalType::Text, Some(text("007"))),
            (Value::Integer(5), LogicalType::Text, Some(text("5"))),
            (Value::Float(5.0), LogicalType::Text, Some(text("5"))),
            (Value::Decimal("5.50".into()), LogicalType::Text, Some(text("5.5"))),
            (Value::Boolean(true), LogicalType::Text, Some(text("true"))),
            (text("TRUE"), LogicalType::Boolean, Some(Value::Boolean(true))),
            (Value::Integer(1), LogicalType::Boolean, None),
            (text("1970-01-03"), LogicalType::Date, Some(Value::Date(2))),
            (Value::Integer(7), LogicalType::Date, None),
            (Value::Integer(7), LogicalType::Unknown, Some(Value::Integer(7))),
        ] {
            assert_eq!(fit_attribute(value.clone(), ty), expected, "{value:?} as {ty:?}");
        }
    }

    #[test]
    fn list_with_an_invalid_value_is_rejected() {
        assert_eq!(fitted(vec![text("5"), text("five")], LogicalType::Integer), None);
    }
}
