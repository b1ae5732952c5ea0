//! Converts types, values and severities between the contract and the host.

use terrane_app::ports::severity::FindingSeverity;
use terrane_compiler::types::{LogicalType, Value};

use crate::bindings::common::{LogicalType as WireType, Severity as WireSeverity};
use crate::bindings::ir::Scalar;

pub(crate) fn logical_type(ty: LogicalType) -> WireType {
    match ty {
        LogicalType::Text => WireType::Text,
        LogicalType::Integer => WireType::Integer,
        LogicalType::Decimal => WireType::Decimal,
        LogicalType::Float => WireType::Float,
        LogicalType::Boolean => WireType::Boolean,
        LogicalType::Date => WireType::Date,
        LogicalType::Timestamp => WireType::Timestamp,
        LogicalType::TimestampTz => WireType::TimestampTz,
        LogicalType::Geo => WireType::Geo,
        LogicalType::Binary => WireType::Binary,
        LogicalType::Unknown => WireType::Unknown,
    }
}

pub(crate) fn logical_type_of(ty: WireType) -> LogicalType {
    match ty {
        WireType::Text => LogicalType::Text,
        WireType::Integer => LogicalType::Integer,
        WireType::Decimal => LogicalType::Decimal,
        WireType::Float => LogicalType::Float,
        WireType::Boolean => LogicalType::Boolean,
        WireType::Date => LogicalType::Date,
        WireType::Timestamp => LogicalType::Timestamp,
        WireType::TimestampTz => LogicalType::TimestampTz,
        WireType::Geo => LogicalType::Geo,
        WireType::Binary => LogicalType::Binary,
        WireType::Unknown => LogicalType::Unknown,
    }
}

/// Converts a value to the contract's type. All NaNs become the same NaN.
pub(crate) fn scalar(value: &Value) -> Scalar {
    match value {
        Value::Null => Scalar::Null,
        Value::Boolean(value) => Scalar::Boolean(*value),
        Value::Integer(value) => Scalar::Integer(*value),
        Value::Float(value) if value.is_nan() => Scalar::Float(f64::NAN),
        Value::Float(value) => Scalar::Float(*value),
        Value::Decimal(digits) => Scalar::Decimal(digits.to_string()),
        Value::Text(text) => Scalar::Text(text.to_string()),
        Value::Date(days) => Scalar::DateDays(*days),
        Value::Timestamp(micros) | Value::TimestampTz(micros) => Scalar::TimestampUs(*micros),
    }
}

/// Returns the number of bytes of a value that count towards the limit of literals.
pub(crate) fn scalar_bytes(scalar: &Scalar) -> usize {
    match scalar {
        Scalar::Text(text) | Scalar::Decimal(text) => text.len(),
        _ => 8,
    }
}

pub(crate) fn severity(severity: WireSeverity) -> FindingSeverity {
    match severity {
        WireSeverity::Info => FindingSeverity::Info,
        WireSeverity::Low => FindingSeverity::Low,
        WireSeverity::Medium => FindingSeverity::Medium,
        WireSeverity::High => FindingSeverity::High,
        WireSeverity::Critical => FindingSeverity::Critical,
    }
}
