//! Operators over values as DAX defines them for BLANK, numbers, strings and dates.
//!
//! In: values. Out: values. Results of integers and decimals are exact as long as they fit, and doubles otherwise.

use std::cmp::Ordering;

use super::{Datum, Result, invalid_value};
use crate::bound::BlankRule;
use crate::place::Place;
use crate::tree::Operator;
use crate::types::Type;

/// Converts a value to a number. A string must contain a number.
pub(super) fn to_number(value: &Datum, place: Place) -> Result<f64> {
    match value {
        Datum::Text(text) => {
            let number = text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
            number.ok_or_else(|| invalid_value(format!("cannot convert \"{text}\" to a number"), place))
        }
        other => Ok(other.number().unwrap_or(0.0)),
    }
}

/// Converts a string to the number that it contains. Other values are unchanged.
fn numeric(value: &Datum, place: Place) -> Result<Datum> {
    match value {
        Datum::Text(text) => match text.trim().parse::<i64>() {
            Ok(number) => Ok(Datum::Integer(number)),
            Err(_) => to_number(value, place).map(Datum::Double),
        },
        Datum::Boolean(value) => Ok(Datum::Integer(i64::from(*value))),
        other => Ok(other.clone()),
    }
}

pub(super) fn to_text(value: &Datum, place: Place) -> Result<String> {
    value.text().ok_or_else(|| invalid_value("date out of range", place))
}

/// Converts a value to a Boolean. BLANK and 0 are FALSE.
pub(super) fn to_boolean(value: &Datum, place: Place) -> Result<bool> {
    match value {
        Datum::Boolean(value) => Ok(*value),
        Datum::Text(text) if text.eq_ignore_ascii_case("true") => Ok(true),
        Datum::Text(text) if text.eq_ignore_ascii_case("false") => Ok(false),
        Datum::Text(text) => Err(invalid_value(format!("cannot convert \"{text}\" to TRUE or FALSE"), place)),
        other => Ok(other.number().is_some_and(|number| number != 0.0)),
    }
}

pub(super) fn arithmetic(operator: Operator, left: &Datum, right: &Datum, place: Place) -> Result<Datum> {
    let (left, right) = (numeric(left, place)?, numeric(right, place)?);
    match operator {
        Operator::Add => add(&left, &right, place),
        Operator::Subtract => {
            add(&left, &negate(&right, place)?, place).and_then(|sum| difference(&left, &right, sum, place))
        }
        Operator::Multiply => multiply(&left, &right, place),
        Operator::Divide => divide(&left, &right, place),
        _ => power(&left, &right, place),
    }
}

/// Converts the result of an operation with a BLANK date to the type of the operation: a date to its number of days, or
/// a number of days to its date.
pub(super) fn typed(value: Datum, ty: Type, place: Place) -> Result<Datum> {
    match (&value, ty) {
        (Datum::Integer(_) | Datum::Decimal(_) | Datum::Double(_), Type::DateTime) => {
            Datum::of_days(to_number(&value, place)?).ok_or_else(|| invalid_value("date out of range", place))
        }
        (Datum::DateTime(_), ty) if ty.is_number() => Ok(Datum::Double(to_number(&value, place)?)),
        _ => Ok(value),
    }
}

/// Subtracts two values. The difference of two dates is a number of days, and a date minus a number is a date.
fn difference(left: &Datum, right: &Datum, sum: Datum, place: Place) -> Result<Datum> {
    match (left, right) {
        (Datum::DateTime(_), Datum::DateTime(_)) => {
            Ok(Datum::Double(to_number(left, place)? - to_number(right, place)?))
        }
        _ => Ok(sum),
    }
}

pub(super) fn negate(value: &Datum, place: Place) -> Result<Datum> {
    Ok(match numeric(value, place)? {
        Datum::Blank => Datum::Blank,
        Datum::Integer(value) => value.checked_neg().map_or(Datum::Double(-(value as f64)), Datum::Integer),
        Datum::Decimal(value) => Datum::Decimal(value.negated()),
        other => Datum::Double(-to_number(&other, place)?),
    })
}

pub(super) fn add(left: &Datum, right: &Datum, place: Place) -> Result<Datum> {
    if left.is_blank() && right.is_blank() {
        return Ok(Datum::Blank);
    }
    let zero = Datum::Integer(0);
    let fill = |value: &'_ Datum| if value.is_blank() { zero.clone() } else { value.clone() };
    let (left, right) = (fill(left), fill(right));
    if matches!((&left, &right), (Datum::DateTime(_), _) | (_, Datum::DateTime(_))) {
        let days = to_number(&left, place)? + to_number(&right, place)?;
        return Datum::of_days(days).ok_or_else(|| invalid_value("date out of range", place));
    }
    if let (Some(one), Some(two)) = (left.exact(), right.exact())
        && let Some(sum) = one.plus(two)
    {
        return Ok(exact(sum, &left, &right));
    }
    Ok(Datum::Double(to_number(&left, place)? + to_number(&right, place)?))
}

/// Returns an exact result. It is an integer if no operand is a decimal and the result fits, and otherwise a decimal.
fn exact(value: super::Decimal, left: &Datum, right: &Datum) -> Datum {
    let is_decimal = [left, right].iter().any(|operand| matches!(operand, Datum::Decimal(_)));
    match value.to_integer() {
        Some(integer) if !is_decimal => Datum::Integer(integer),
        _ => Datum::Decimal(value),
    }
}

pub(super) fn multiply(left: &Datum, right: &Datum, place: Place) -> Result<Datum> {
    if left.is_blank() || right.is_blank() {
        return Ok(Datum::Blank);
    }
    if let (Some(one), Some(two)) = (left.exact(), right.exact())
        && let Some(product) = one.times(two)
    {
        return Ok(exact(product, left, right));
    }
    Ok(Datum::Double(to_number(left, place)? * to_number(right, place)?))
}

pub(super) fn divide(left: &Datum, right: &Datum, place: Place) -> Result<Datum> {
    if left.is_blank() {
        return Ok(Datum::Blank);
    }
    Ok(Datum::Double(to_number(left, place)? / to_number(right, place)?))
}

fn power(left: &Datum, right: &Datum, place: Place) -> Result<Datum> {
    if left.is_blank() && right.is_blank() {
        return Ok(Datum::Blank);
    }
    Ok(Datum::Double(to_number(left, place)?.powf(to_number(right, place)?)))
}

/// Returns the value that replaces BLANK in a comparison with another value.
fn zero_beside(other: &Datum) -> Datum {
    match other {
        Datum::Text(_) => Datum::Text("".into()),
        Datum::Boolean(_) => Datum::Boolean(false),
        _ => Datum::Integer(0),
    }
}

/// Compares two values. BLANK is replaced by the zero of the other value's type.
pub(super) fn compare_as_zero(left: &Datum, right: &Datum) -> Ordering {
    match (left, right) {
        (Datum::Blank, Datum::Blank) => Ordering::Equal,
        (Datum::Blank, other) => zero_beside(other).compare(other),
        (other, Datum::Blank) => other.compare(&zero_beside(other)),
        (left, right) => left.compare(right),
    }
}

pub(super) fn compare(operator: Operator, rule: BlankRule, left: &Datum, right: &Datum, place: Place) -> Result<bool> {
    if rule == BlankRule::Strict {
        return Ok(left.is_blank() == right.is_blank() && compare_as_zero(left, right).is_eq());
    }
    let is_text = |value: &Datum| matches!(value, Datum::Text(_));
    if !left.is_blank() && !right.is_blank() && is_text(left) != is_text(right) {
        return Err(invalid_value("cannot compare a string with another value", place));
    }
    let ordering = compare_as_zero(left, right);
    Ok(match operator {
        Operator::Equal => ordering.is_eq(),
        Operator::NotEqual => ordering.is_ne(),
        Operator::Less => ordering.is_lt(),
        Operator::LessOrEqual => ordering.is_le(),
        Operator::Greater => ordering.is_gt(),
        _ => ordering.is_ge(),
    })
}
