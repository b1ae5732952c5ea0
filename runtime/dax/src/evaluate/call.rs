//! Functions of scalars: logic, mathematics, strings and dates.
//!
//! In: a function and its arguments. Out: its value. An argument that cannot change the value is not evaluated.

use jiff::civil::{Date, DateTime};
use terrane_compiler::types::Value;

use super::datum::is_in_range;
use super::environment::Environment;
use super::operators::{compare_as_zero, divide, negate, to_boolean, to_number, to_text};
use super::{Datum, Decimal, Evaluator, Halt, Result, collected, invalid_value, not_supported};
use crate::bound::Scalar;
use crate::functions::{Aggregation, Function, Operation};
use crate::place::Place;

type Arguments<'q> = &'q [Option<Scalar>];

impl<'q> Evaluator<'q> {
    pub(super) fn call(
        &self,
        function: &'static Function,
        arguments: Arguments<'q>,
        words: &[&'static str],
        environment: &Environment,
        place: Place,
    ) -> Result<Datum> {
        let argument = |at: usize| match arguments.get(at) {
            Some(Some(scalar)) => self.scalar(scalar, environment),
            _ => Ok(Datum::Blank),
        };
        match function.operation {
            Operation::If => match to_boolean(&argument(0)?, place)? {
                true => argument(1),
                false => argument(2),
            },
            Operation::Switch => self.switch(arguments, environment),
            Operation::Coalesce => self.coalesce(arguments, environment),
            Operation::IsBlank => Ok(Datum::Boolean(argument(0)?.is_blank())),
            Operation::IsError => match argument(0) {
                value if is_error(&value) => Ok(Datum::Boolean(true)),
                value => value.map(|_| Datum::Boolean(false)),
            },
            Operation::IfError => match argument(0) {
                value if is_error(&value) => argument(1),
                value => value,
            },
            Operation::Divide => {
                let values = collected([0, 1].into_iter().map(argument))?;
                match to_number(&values[1], place)? {
                    0.0 => argument(2),
                    _ => divide(&values[0], &values[1], place),
                }
            }
            Operation::Today => Ok(Datum::of_moment(self.now.date().to_datetime(jiff::civil::Time::midnight()))),
            Operation::Now => Ok(Datum::of_moment(self.now)),
            _ => {
                let values = collected((0..arguments.len()).map(argument))?;
                if function.operation == Operation::Substitute {
                    self.check_substitution(&values, place)?;
                }
                of_values(function, &values, words, place)
            }
        }
    }

    /// Checks the length of the result of SUBSTITUTE before it is created.
    fn check_substitution(&self, values: &[Datum], place: Place) -> Result<()> {
        let [text, old, new, ..] = values else { return Ok(()) };
        let (text, old, new) = (to_text(text, place)?, to_text(old, place)?, to_text(new, place)?);
        let occurrences = if old.is_empty() { 0 } else { text.matches(&*old).count() };
        self.string_of(text.len().saturating_add(occurrences.saturating_mul(new.len())), place)
    }

    fn switch(&self, arguments: Arguments<'q>, environment: &Environment) -> Result<Datum> {
        let value = |scalar: &'q Option<Scalar>| match scalar {
            Some(scalar) => self.scalar(scalar, environment),
            None => Ok(Datum::Blank),
        };
        let Some((expression, rest)) = arguments.split_first() else { return Ok(Datum::Blank) };
        let wanted = value(expression)?;
        let mut pairs = rest.chunks_exact(2);
        for pair in &mut pairs {
            let found = value(&pair[0])?;
            if wanted.is_blank() == found.is_blank() && compare_as_zero(&wanted, &found).is_eq() {
                return value(&pair[1]);
            }
        }
        pairs.remainder().first().map_or(Ok(Datum::Blank), value)
    }

    fn coalesce(&self, arguments: Arguments<'q>, environment: &Environment) -> Result<Datum> {
        for scalar in arguments.iter().flatten() {
            let value = self.scalar(scalar, environment)?;
            if !value.is_blank() {
                return Ok(value);
            }
        }
        Ok(Datum::Blank)
    }
}

/// Returns whether IFERROR and ISERROR detect a value as an error: a failed conversion, or the infinite or undefined
/// result of a division by 0.
fn is_error(value: &Result<Datum>) -> bool {
    match value {
        Ok(Datum::Double(number)) => !number.is_finite(),
        Ok(_) => false,
        Err(error) => matches!(error, Halt::Value { .. }),
    }
}

/// Returns the value of a function from the values of all its arguments.
fn of_values(function: &'static Function, values: &[Datum], words: &[&str], place: Place) -> Result<Datum> {
    match function.operation {
        Operation::Round | Operation::Int | Operation::Abs => mathematics(function.operation, values, place),
        Operation::Left
        | Operation::Right
        | Operation::Len
        | Operation::Upper
        | Operation::Lower
        | Operation::Substitute => text(function.operation, values, place),
        Operation::Year | Operation::Month | Operation::Day => {
            let date = moment(&values[0], place)?.date();
            Ok(Datum::Integer(match function.operation {
                Operation::Year => i64::from(date.year()),
                Operation::Month => i64::from(date.month()),
                _ => i64::from(date.day()),
            }))
        }
        Operation::Aggregate(aggregation) if values.len() == 2 => {
            let is_first = match aggregation {
                Aggregation::Max => compare_as_zero(&values[0], &values[1]).is_ge(),
                _ => compare_as_zero(&values[0], &values[1]).is_le(),
            };
            let found = &values[usize::from(!is_first)];
            // A BLANK that is compared with a number counts as 0.
            let is_zero = found.is_blank() && values.iter().any(|value| value.ty().is_number());
            Ok(if is_zero { Datum::Integer(0) } else { found.clone() })
        }
        Operation::Date => date(values, place),
        Operation::Format => Ok(Datum::Text(super::format::format(&values[0], &to_text(&values[1], place)?).into())),
        Operation::DateDiff => {
            if values.iter().any(Datum::is_blank) {
                return Ok(Datum::Blank);
            }
            let (start, end) = (moment(&values[0], place)?, moment(&values[1], place)?);
            let unit = words.first().copied().unwrap_or("DAY");
            Ok(Datum::Integer(boundaries(end, unit) - boundaries(start, unit)))
        }
        _ => Err(not_supported(function.name, place)),
    }
}

fn mathematics(operation: Operation, values: &[Datum], place: Place) -> Result<Datum> {
    let value = &values[0];
    if value.is_blank() {
        return Ok(Datum::Blank);
    }
    let number = to_number(value, place)?;
    match (operation, value) {
        (Operation::Abs, _) if number < 0.0 => negate(value, place),
        (Operation::Abs, _) | (Operation::Int, Datum::Integer(_)) => Ok(value.clone()),
        (Operation::Int, Datum::Decimal(value)) => Ok(of_integer(value.floor())),
        (Operation::Int, _) => Ok(whole(number.floor())),
        _ => {
            let digits = to_number(&values[1], place)?.trunc().clamp(-300.0, 300.0) as i32;
            Ok(rounded(value, number, digits))
        }
    }
}

/// Rounds half away from zero. A double is rounded as its shortest decimal text, so that `ROUND(1.005, 2)` is 1.01.
fn rounded(value: &Datum, number: f64, digits: i32) -> Datum {
    let exact = match value {
        Datum::Integer(_) | Datum::Decimal(_) => value.exact(),
        _ => number.to_string().parse().ok(),
    };
    match (exact.and_then(|exact| exact.rounded(digits)), value) {
        (Some(rounded), Datum::Integer(_)) => of_integer(rounded),
        (Some(rounded), Datum::Decimal(_)) => Datum::Decimal(rounded),
        (Some(rounded), _) => Datum::Double(rounded.to_f64()),
        (None, _) => {
            let factor = 10_f64.powi(digits);
            let scaled = number * factor;
            Datum::Double(if scaled.is_finite() { scaled.round() / factor } else { number })
        }
    }
}

/// Converts a decimal without a fraction to an integer, if it fits.
fn of_integer(value: Decimal) -> Datum {
    value.to_integer().map_or(Datum::Decimal(value), Datum::Integer)
}

/// Converts a double without a fraction to an integer, if it is small enough.
fn whole(number: f64) -> Datum {
    if number.abs() < 9.0e15 { Datum::Integer(number as i64) } else { Datum::Double(number) }
}

fn text(operation: Operation, values: &[Datum], place: Place) -> Result<Datum> {
    let text = to_text(&values[0], place)?;
    let length = |at: usize| match values.get(at) {
        None => Ok(1),
        Some(value) => match to_number(value, place)? {
            number if number < 0.0 => Err(invalid_value("negative number of characters", place)),
            number => Ok(number as usize),
        },
    };
    let result = match operation {
        Operation::Len => return Ok(Datum::Integer(text.chars().count() as i64)),
        Operation::Upper => text.to_uppercase(),
        Operation::Lower => text.to_lowercase(),
        Operation::Left => text.chars().take(length(1)?).collect(),
        Operation::Right => {
            let skipped = text.chars().count().saturating_sub(length(1)?);
            text.chars().skip(skipped).collect()
        }
        _ => substitute(&text, values, place)?,
    };
    Ok(Datum::Text(result.into()))
}

/// Replaces all occurrences of a string, or only the one with the given number.
fn substitute(text: &str, values: &[Datum], place: Place) -> Result<String> {
    let (old, new) = (to_text(&values[1], place)?, to_text(&values[2], place)?);
    if old.is_empty() {
        return Ok(text.to_owned());
    }
    let Some(instance) = values.get(3).filter(|value| !value.is_blank()) else { return Ok(text.replace(&old, &new)) };
    let instance = to_number(instance, place)?;
    if instance < 1.0 {
        return Err(invalid_value("the occurrence to replace counts from 1", place));
    }
    Ok(match text.match_indices(&old).nth(instance as usize - 1) {
        Some((at, _)) => format!("{}{new}{}", &text[..at], &text[at + old.len()..]),
        None => text.to_owned(),
    })
}

fn moment(value: &Datum, place: Place) -> Result<DateTime> {
    value.moment().ok_or_else(|| invalid_value("not a date", place))
}

/// Returns the date of a year, a month and a day. A month or a day out of its range continues in the next or previous
/// year or month.
fn date(values: &[Datum], place: Place) -> Result<Datum> {
    let part = |at: usize| to_number(values.get(at).unwrap_or(&Datum::Blank), place).map(|number| number as i64);
    let (year, month, day) = (part(0)?, part(1)?, part(2)?);
    let year = if (0..1900).contains(&year) { year + 1900 } else { year };
    let months = year.saturating_mul(12).saturating_add(month.saturating_sub(1));
    let out_of_range = || invalid_value("date out of range", place);
    let first = i16::try_from(months.div_euclid(12)).ok();
    let first = first.and_then(|year| Date::new(year, months.rem_euclid(12) as i8 + 1, 1).ok());
    let days = jiff::SignedDuration::from_hours(24 * day.clamp(-4_000_000, 4_000_000).saturating_sub(1));
    let date = first.and_then(|first| first.checked_add(days).ok()).ok_or_else(out_of_range)?;
    let moment = date.to_datetime(jiff::civil::Time::midnight());
    if is_in_range(moment) { Ok(Datum::of_moment(moment)) } else { Err(out_of_range()) }
}

/// Returns the date of three constants, as a value of a semantic query's filter.
pub(crate) fn constant_date(parts: &[Value], place: Place) -> Option<Value> {
    let parts: Vec<Datum> = parts.iter().map(Datum::of_value).collect();
    match (parts.len(), date(&parts, place)) {
        (3, Ok(Datum::DateTime(micros))) => Some(Value::Timestamp(micros)),
        _ => None,
    }
}

/// Returns the number of starts of a unit, such as a week, between a fixed day and a moment. The difference of two such
/// numbers is a DATEDIFF. Weeks start on Sunday.
fn boundaries(moment: DateTime, unit: &str) -> i64 {
    let date = moment.date();
    let days = date.duration_since(jiff::civil::date(1970, 1, 4)).as_hours() / 24;
    let months = i64::from(date.year()) * 12 + i64::from(date.month()) - 1;
    match unit {
        "YEAR" => i64::from(date.year()),
        "QUARTER" => months.div_euclid(3),
        "MONTH" => months,
        "WEEK" => days.div_euclid(7),
        "DAY" => days,
        "HOUR" => days * 24 + i64::from(moment.hour()),
        "MINUTE" => (days * 24 + i64::from(moment.hour())) * 60 + i64::from(moment.minute()),
        _ => {
            ((days * 24 + i64::from(moment.hour())) * 60 + i64::from(moment.minute())) * 60 + i64::from(moment.second())
        }
    }
}
