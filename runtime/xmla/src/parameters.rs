//! Converts parameters of Execute to values of DAX.
//!
//! In: the text of a value, and the name of its type in XML Schema. Out: a value that is bound to the statement and
//! never becomes part of the statement's text.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use terrane_app::dax::Parameters;
use terrane_compiler::types::Value;

use crate::fault::Fault;
use crate::request::Parameter;

/// Returns the values of parameters by their names.
///
/// # Errors
/// A value does not fit its type, or the type is unknown.
pub fn values(parameters: &[Parameter]) -> Result<Parameters, Fault> {
    parameters.iter().map(|parameter| Ok((parameter.name.as_str().into(), value(parameter)?))).collect()
}

fn value(parameter: &Parameter) -> Result<Value, Fault> {
    let Parameter { name, ty, value } = parameter;
    let Some(text) = value.as_deref() else { return Ok(Value::Null) };
    let trimmed = text.trim();
    let found = match ty.as_str() {
        "" | "string" | "normalizedString" | "token" | "anyType" => Some(Value::Text(text.into())),
        "byte" | "short" | "int" | "long" | "integer" | "unsignedByte" | "unsignedShort" | "unsignedInt"
        | "unsignedLong" | "nonNegativeInteger" | "positiveInteger" => integer(trimmed),
        "decimal" => decimal(trimmed),
        "float" | "double" => trimmed.parse().ok().filter(|double: &f64| double.is_finite()).map(Value::Float),
        "boolean" => boolean(trimmed),
        "dateTime" | "date" => time(trimmed),
        _ => return Err(Fault::argument(format!("parameter `{name}`: unknown type `{ty}`"))),
    };
    found.ok_or_else(|| {
        let text: String = text.chars().take(100).collect();
        Fault::argument(format!("parameter `{name}`: `{text}` is not a value of the type `{ty}`"))
    })
}

fn integer(text: &str) -> Option<Value> {
    text.parse().ok().map(Value::Integer).or_else(|| decimal(text).filter(|_| !text.contains('.')))
}

/// Parses a decimal number of digits with at most one point and an optional sign.
fn decimal(text: &str) -> Option<Value> {
    const MAX_DIGITS: usize = 76;
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let count = whole.len() + fraction.len();
    let is_plain = whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit());
    if !is_plain || count == 0 || count > MAX_DIGITS {
        return None;
    }
    let whole = if whole.is_empty() { "0" } else { whole };
    let point = if fraction.is_empty() { "" } else { "." };
    Some(Value::Decimal(format!("{sign}{whole}{point}{fraction}").into()))
}

fn boolean(text: &str) -> Option<Value> {
    match text {
        "true" | "1" => Some(Value::Boolean(true)),
        "false" | "0" => Some(Value::Boolean(false)),
        _ => None,
    }
}

/// Parses a time. A time with an offset is converted to the wall clock of UTC.
fn time(text: &str) -> Option<Value> {
    let wall_clock = match text.parse::<Timestamp>() {
        Ok(instant) => TimeZone::UTC.to_datetime(instant),
        Err(_) => match text.parse::<Date>() {
            Ok(date) if !text.contains('T') => date.into(),
            _ => text.parse::<DateTime>().ok()?,
        },
    };
    let since = TimeZone::UTC.to_timestamp(wall_clock).ok()?;
    Some(Value::Timestamp(since.as_microsecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(ty: &str, text: &str) -> Result<Value, Fault> {
        value(&Parameter { name: "p".to_owned(), ty: ty.to_owned(), value: Some(text.to_owned()) })
    }

    #[test]
    fn values_have_the_type_that_is_named() {
        const NOON: i64 = 1_707_912_000_000_000;
        for (ty, text, expected) in [
            ("", " a ", Value::Text(" a ".into())),
            ("string", "1", Value::Text("1".into())),
            ("int", " 1 ", Value::Integer(1)),
            ("unsignedLong", "18446744073709551615", Value::Decimal("18446744073709551615".into())),
            ("decimal", "-1.50", Value::Decimal("-1.50".into())),
            ("double", "1e3", Value::Float(1_000.0)),
            ("boolean", "1", Value::Boolean(true)),
            ("dateTime", "2024-02-14T12:00:00", Value::Timestamp(NOON)),
            ("dateTime", "2024-02-14T13:00:00+01:00", Value::Timestamp(NOON)),
            ("date", "2024-02-14", Value::Timestamp(NOON - 43_200_000_000)),
        ] {
            assert_eq!(read(ty, text), Ok(expected), "{ty} {text}");
        }
        let null = Parameter { name: "p".to_owned(), ty: "int".to_owned(), value: None };
        assert_eq!(value(&null), Ok(Value::Null));
    }

    #[test]
    fn values_of_other_types_are_faults() {
        for (ty, text) in [
            ("int", "a"),
            ("int", "1.5"),
            ("decimal", "1e3"),
            ("decimal", "."),
            ("double", "INF"),
            ("boolean", "yes"),
            ("dateTime", "soon"),
            ("base64Binary", ""),
        ] {
            assert!(read(ty, text).is_err(), "{ty} {text}");
        }
    }
}
