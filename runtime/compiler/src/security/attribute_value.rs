//! Compares the values of callers' attributes, in `when` and with columns.
//!
//! In: two values, or a value and the type of the column that it is compared with. Out: whether they are equal, or the
//! value converted to that type. The identity provider decides the type of a claim, not the author, so
//! the same number may arrive as `1`, `1.0` or `"1"`. The rules:
//!
//! - Numbers are equal by numeric value, in any notation: `1`, `1.0` and `1e0`.
//! - A number equals a string that is a plain decimal number of that value: `"1"` and `"1.0"`, but not
//!   `"01"`, `"+1"`, `" 1"` or `"1e0"`.
//! - A boolean equals itself and its name as a string in any ASCII case: `"true"`, `"TRUE"`. It never equals a
//!   number.
//! - Two strings are equal if they have the same characters: `"1"` and `"1.0"` differ.
//! - Null equals nothing, not even null.
//!
//! Two strings are never read as numbers, because `unless_attributes` would then exempt callers of `"1.10"`
//! where the author wrote `"1.1"`. The rule is therefore not transitive.

use std::sync::Arc;

use crate::types::Value;

/// The largest number of digits of an exact decimal that all engines support.
const MAX_DIGITS: usize = 38;

/// Returns whether two values of attributes are equal.
pub(crate) fn are_equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Null, _) | (_, Value::Null) => false,
        (Value::Text(left), Value::Text(right)) => left == right,
        (Value::Boolean(_), _) | (_, Value::Boolean(_)) => boolean(left) == boolean(right),
        _ => match (Number::of(left), Number::of(right)) {
            (Some(left), Some(right)) => left == right,
            _ => left == right,
        },
    }
}

/// Converts a value to a string: a number in its shortest plain notation, without leading or trailing zeros. `None`
/// for null and for a number whose plain notation is too long.
pub(crate) fn text(value: &Value) -> Option<Arc<str>> {
    match value {
        Value::Text(text) => Some(text.clone()),
        Value::Boolean(is_true) => Some(if *is_true { "true" } else { "false" }.into()),
        number if is_number(number) => Number::of(number)?.plain().map(Into::into),
        _ => None,
    }
}

/// Converts a value to a number; `None` for a string that is not a plain decimal number.
pub(crate) fn number(value: &Value) -> Option<Value> {
    match value {
        Value::Integer(_) | Value::Float(_) => Some(value.clone()),
        Value::Decimal(_) | Value::Text(_) => {
            let plain = Number::of(value)?.plain()?;
            Some(plain.parse().map_or_else(|_| Value::Decimal(plain.into()), Value::Integer))
        }
        _ => None,
    }
}

/// Converts a value to a boolean; `None` unless it is a boolean or the name of one.
pub(crate) fn boolean(value: &Value) -> Option<bool> {
    match value {
        Value::Boolean(is_true) => Some(*is_true),
        Value::Text(text) if text.eq_ignore_ascii_case("true") => Some(true),
        Value::Text(text) if text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

/// Returns whether an unquoted number in a project file is not a plain decimal number, such as `+7` or `1e2`. In a
/// claim, the same characters may be a string, so the author's meaning is unclear.
pub(crate) fn is_ambiguous(source: &str) -> bool {
    !is_plain_number(source)
}

fn is_number(value: &Value) -> bool {
    matches!(value, Value::Integer(_) | Value::Decimal(_) | Value::Float(_))
}

/// Returns whether a string matches `-?(0|[1-9][0-9]*)(\.[0-9]+)?`: a number of JSON without an exponent.
fn is_plain_number(text: &str) -> bool {
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = match digits.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (digits, None),
    };
    is_digits(whole) && (whole == "0" || !whole.starts_with('0')) && fraction.is_none_or(is_digits)
}

/// A number as `0.digits * 10^exponent`. The digits have no zeros at either end; zero has no digits.
#[derive(Debug, PartialEq, Eq)]
struct Number {
    is_negative: bool,
    digits: String,
    exponent: i64,
}

impl Number {
    fn of(value: &Value) -> Option<Number> {
        match value {
            Value::Integer(number) => Number::read(&number.to_string()),
            Value::Float(number) => Number::read(&number.to_string()),
            Value::Decimal(digits) => Number::read(digits),
            Value::Text(text) if is_plain_number(text) => Number::read(text),
            _ => None,
        }
    }

    fn read(text: &str) -> Option<Number> {
        let unsigned = text.strip_prefix('-').unwrap_or(text);
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{whole}{fraction}");
        if all.is_empty() || !all.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let digits = all.trim_start_matches('0');
        if digits.is_empty() {
            return Some(Number { is_negative: false, digits: String::new(), exponent: 0 });
        }
        // The position of the point, counted from the first digit that is not zero.
        let point = i64::try_from(whole.len()).ok()? - i64::try_from(all.len() - digits.len()).ok()?;
        let digits = digits.trim_end_matches('0').to_owned();
        Some(Number { is_negative: text.starts_with('-'), digits, exponent: point.checked_add(exponent)? })
    }

    /// Returns the number without an exponent; `None` if it has more than [`MAX_DIGITS`] digits.
    fn plain(&self) -> Option<String> {
        if self.digits.is_empty() {
            return Some("0".to_owned());
        }
        let width = usize::try_from(self.exponent.unsigned_abs()).ok().filter(|width| *width <= MAX_DIGITS)?;
        let (whole, fraction) = if self.exponent <= 0 {
            ("0".to_owned(), format!("{}{}", "0".repeat(width), self.digits))
        } else if width >= self.digits.len() {
            (format!("{}{}", self.digits, "0".repeat(width - self.digits.len())), String::new())
        } else {
            let (whole, fraction) = self.digits.split_at(width);
            (whole.to_owned(), fraction.to_owned())
        };
        let sign = if self.is_negative { "-" } else { "" };
        let point = if fraction.is_empty() { "" } else { "." };
        (whole.len() + fraction.len() <= MAX_DIGITS).then(|| format!("{sign}{whole}{point}{fraction}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(digits: &str) -> Value {
        Value::Decimal(digits.into())
    }

    fn word(text: &str) -> Value {
        Value::Text(text.into())
    }

    const fn integer(number: i64) -> Value {
        Value::Integer(number)
    }

    #[test]
    fn values_are_equal_by_canonical_value() {
        let big = "123456789012345678901234567890";
        for (left, right, expected) in [
            (integer(1), integer(1), true),
            (integer(1), word("1"), true),
            (integer(1), word("1.0"), true),
            (integer(1), Value::Float(1.0), true),
            (integer(1), decimal("1.0"), true),
            (integer(1), decimal("1e0"), true),
            (integer(100), decimal("1e2"), true),
            (integer(100), decimal("1E+2"), true),
            (decimal("0.015"), decimal("1.5e-2"), true),
            (decimal(".5"), word("0.50"), true),
            (Value::Float(0.1), decimal("0.1"), true),
            (Value::Float(1e300), decimal("1e300"), true),
            (Value::Float(1.5e-7), decimal("1.5e-7"), true),
            (integer(0), decimal("-0.0"), true),
            (integer(0), word("-0"), true),
            (integer(-1), word("-1"), true),
            (integer(-1), word("1"), false),
            (integer(1), word("2"), false),
            (integer(1), integer(10), false),
            (integer(i64::MAX), decimal("9223372036854775807"), true),
            (integer(i64::MAX), decimal("9223372036854775808"), false),
            (decimal(big), word(big), true),
            (decimal(big), word("123456789012345678901234567891"), false),
            (decimal("1e999999999999"), decimal("1e999999999999"), true),
            (decimal("1e999999999999"), decimal("1e999999999998"), false),
            (integer(7), word("007"), false),
            (integer(7), word("+7"), false),
            (integer(7), word(" 7"), false),
            (integer(7), word("7 "), false),
            (integer(7), word("7."), false),
            (integer(7), word(""), false),
            (integer(7), word("\u{667}"), false),
            (integer(100), word("1e2"), false),
            (integer(0), word("0e5"), false),
            (integer(0), word(""), false),
            (Value::Boolean(true), Value::Boolean(true), true),
            (Value::Boolean(true), Value::Boolean(false), false),
            (Value::Boolean(true), word("true"), true),
            (Value::Boolean(true), word("TRUE"), true),
            (Value::Boolean(false), word("False"), true),
            (Value::Boolean(true), word("true "), false),
            (Value::Boolean(true), word("yes"), false),
            (Value::Boolean(true), word("1"), false),
            (Value::Boolean(true), integer(1), false),
            (Value::Boolean(false), integer(0), false),
            (word("a"), word("a"), true),
            (word("a"), word("A"), false),
            (word("1"), word("1.0"), false),
            (word("1.1"), word("1.10"), false),
            (word("0e1"), word("0e2"), false),
            (word("true"), word("TRUE"), false),
            (word(""), word(""), true),
            (Value::Null, Value::Null, false),
            (Value::Null, word(""), false),
            (Value::Null, word("null"), false),
            (Value::Null, integer(0), false),
            (Value::Null, Value::Boolean(false), false),
        ] {
            assert_eq!(are_equal(&left, &right), expected, "{left:?} and {right:?}");
            assert_eq!(are_equal(&right, &left), expected, "{right:?} and {left:?}");
        }
    }

    #[test]
    fn values_have_a_canonical_text() {
        for (value, expected) in [
            (word("007"), Some("007")),
            (integer(-5), Some("-5")),
            (Value::Float(5.0), Some("5")),
            (decimal("5.50"), Some("5.5")),
            (decimal("-0.0"), Some("0")),
            (decimal("1e3"), Some("1000")),
            (decimal("1.5e-3"), Some("0.0015")),
            (decimal("123.45"), Some("123.45")),
            (decimal("18446744073709551615"), Some("18446744073709551615")),
            (decimal("1e39"), None),
            (decimal("1e-39"), None),
            (decimal("1e999999999999"), None),
            (Value::Boolean(true), Some("true")),
            (Value::Null, None),
        ] {
            assert_eq!(text(&value).as_deref(), expected, "{value:?}");
        }
    }

    #[test]
    fn numbers_in_other_notations_are_ambiguous() {
        for (source, expected) in [
            ("7", false),
            ("-7", false),
            ("0", false),
            ("0.70", false),
            ("+7", true),
            ("1e2", true),
            (".5", true),
            ("5.", true),
        ] {
            assert_eq!(is_ambiguous(source), expected, "{source}");
        }
    }
}
