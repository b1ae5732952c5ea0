//! JSON numbers as values that keep every digit.

use serde_json::Number;
use terrane_compiler::types::Value;

/// The number of digits of the widest decimal, Arrow's Decimal256.
const MAX_DIGITS: usize = 76;

/// Reads a number: as an integer if it fits 64 bits, else as a decimal, or as a float if its plain form has more
/// digits than a decimal. Returns `None` for a number that is not finite.
pub(crate) fn from_wire(number: &Number) -> Option<Value> {
    let text = number.as_str();
    if let Ok(integer) = text.parse::<i64>() {
        return Some(Value::Integer(integer));
    }
    if let Some(plain) = plain_digits(text) {
        return Some(match plain.parse::<i64>() {
            Ok(integer) => Value::Integer(integer),
            Err(_) => Value::Decimal(plain.into()),
        });
    }
    text.parse::<f64>().ok().filter(|float| float.is_finite()).map(Value::Float)
}

/// Returns a number without an exponent, such as `-1250` for `-1.25e3`; `None` if it has more than [`MAX_DIGITS`]
/// digits.
fn plain_digits(text: &str) -> Option<String> {
    let (sign, unsigned) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (unsigned, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.len() + fraction.len() > MAX_DIGITS || exponent.unsigned_abs() as usize > MAX_DIGITS {
        return None;
    }
    // The position of the point among the digits; it may be before or after all of them.
    let digits = format!("{whole}{fraction}");
    let point = whole.len() as i32 + exponent;
    let (whole, fraction) = if point <= 0 {
        ("0".to_owned(), format!("{}{digits}", "0".repeat(point.unsigned_abs() as usize)))
    } else if point as usize >= digits.len() {
        (format!("{digits}{}", "0".repeat(point as usize - digits.len())), String::new())
    } else {
        (digits[..point as usize].to_owned(), digits[point as usize..].to_owned())
    };
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    if whole.len() + fraction.len() > MAX_DIGITS {
        return None;
    }
    Some(if fraction.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Value> {
        from_wire(&serde_json::from_str::<Number>(text).unwrap())
    }

    fn decimal(text: &str) -> Option<Value> {
        Some(Value::Decimal(text.into()))
    }

    #[test]
    fn digits_are_preserved() {
        assert_eq!(read("42"), Some(Value::Integer(42)));
        assert_eq!(read("-0"), Some(Value::Integer(0)));
        assert_eq!(read("9223372036854775807"), Some(Value::Integer(i64::MAX)));
        assert_eq!(read("9223372036854775808"), decimal("9223372036854775808"));
        assert_eq!(read("0.1"), decimal("0.1"));
        assert_eq!(read("12345678901234567890.123456789"), decimal("12345678901234567890.123456789"));
    }

    #[test]
    fn exponents_become_plain_digits() {
        assert_eq!(read("1e3"), Some(Value::Integer(1_000)));
        assert_eq!(read("-1.25e3"), Some(Value::Integer(-1_250)));
        assert_eq!(read("1.25e1"), decimal("12.5"));
        assert_eq!(read("125e-5"), decimal("0.00125"));
        assert_eq!(read("0e9"), Some(Value::Integer(0)));
        assert_eq!(read("1E2"), Some(Value::Integer(100)));
    }

    #[test]
    fn numbers_beyond_decimals_become_floats_or_are_rejected() {
        assert_eq!(read("1e300"), Some(Value::Float(1e300)));
        assert_eq!(read("1e-300"), Some(Value::Float(1e-300)));
        assert_eq!(read("1e999"), None);
        assert_eq!(read("1e99999999999"), None);
        assert!(matches!(read(&"9".repeat(80)), Some(Value::Float(_))));
    }
}
