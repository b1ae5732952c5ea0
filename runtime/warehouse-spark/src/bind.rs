//! Converts bound values to typed literals of the protocol.
//!
//! A decimal with more digits than Spark's decimals have is sent as the nearest double, as in the DuckDB adapter.

use terrane_compiler::types::Value;

use crate::protocol::{
    DataType, DataTypeKind, DecimalLiteral, Empty, Expression, ExpressionKind, Literal, LiteralKind,
};

/// The largest number of digits of a decimal.
const MAX_DIGITS: usize = 38;

/// An error for a string that is not a decimal.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a decimal")]
pub(crate) struct NotADecimal(String);

/// Returns the literals of a statement's placeholders.
///
/// # Errors
/// A decimal is malformed.
pub(crate) fn arguments(params: &[Value]) -> Result<Vec<Expression>, NotADecimal> {
    params.iter().map(|value| literal(value).map(expression)).collect()
}

fn expression(kind: LiteralKind) -> Expression {
    Expression { expr_type: Some(ExpressionKind::Literal(Literal { literal_type: Some(kind) })) }
}

fn literal(value: &Value) -> Result<LiteralKind, NotADecimal> {
    Ok(match value {
        Value::Null => LiteralKind::Null(DataType { kind: Some(DataTypeKind::Null(Empty {})) }),
        Value::Boolean(value) => LiteralKind::Boolean(*value),
        Value::Integer(value) => LiteralKind::Long(*value),
        Value::Float(value) => LiteralKind::Double(*value),
        Value::Decimal(digits) => decimal(digits)?,
        Value::Text(text) => LiteralKind::String((**text).to_owned()),
        Value::Date(days) => LiteralKind::Date(*days),
        Value::Timestamp(micros) => LiteralKind::TimestampNtz(*micros),
        Value::TimestampTz(micros) => LiteralKind::Timestamp(*micros),
    })
}

fn decimal(digits: &str) -> Result<LiteralKind, NotADecimal> {
    let wrong = || NotADecimal(digits.to_owned());
    let unsigned = digits.strip_prefix(['-', '+']).unwrap_or(digits);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let is_number = unsigned.bytes().any(|b| b.is_ascii_digit());
    if !is_number || ![whole, fraction].iter().all(|part| part.bytes().all(|b| b.is_ascii_digit())) {
        return Err(wrong());
    }
    let count = whole.trim_start_matches('0').len() + fraction.len();
    if count > MAX_DIGITS {
        return digits.parse().map(LiteralKind::Double).map_err(|_| wrong());
    }
    let (precision, scale) = (count.max(1) as i32, fraction.len() as i32);
    Ok(LiteralKind::Decimal(DecimalLiteral {
        value: digits.to_owned(),
        precision: Some(precision),
        scale: Some(scale),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_has_its_own_precision_and_scale() {
        for (digits, precision, scale) in [("12.50", 4, 2), ("-0.05", 2, 2), ("0", 1, 0), ("007", 1, 0)] {
            let Ok(LiteralKind::Decimal(literal)) = decimal(digits) else { panic!("{digits}") };
            assert_eq!((literal.precision, literal.scale), (Some(precision), Some(scale)), "{digits}");
        }
    }

    #[test]
    fn decimal_of_too_many_digits_is_a_double() {
        assert!(matches!(decimal(&"9".repeat(38)), Ok(LiteralKind::Decimal(_))));
        assert_eq!(decimal(&"9".repeat(39)), Ok(LiteralKind::Double(1e39)));
    }

    #[test]
    fn other_text_is_rejected() {
        for digits in ["", ".", "1e5", "--1", "1.2.3", "NaN"] {
            assert_eq!(decimal(digits), Err(NotADecimal(digits.to_owned())), "{digits}");
        }
    }
}
