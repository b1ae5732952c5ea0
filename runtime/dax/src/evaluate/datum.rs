//! Values during evaluation: their order, their equality, and their conversions.
//!
//! In: values of rows and constants. Out: [`Datum`]. Here BLANK equals only BLANK. The comparisons of DAX, in which
//! BLANK equals a zero, are in `operators`.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use jiff::SignedDuration;
use jiff::civil::DateTime;
use terrane_compiler::types::Value;

use super::decimal::Decimal;
use crate::types::Type;

/// The date whose number is 0.
const DAY_ZERO: DateTime = jiff::civil::datetime(1899, 12, 30, 0, 0, 0, 0);
const EPOCH: DateTime = jiff::civil::datetime(1970, 1, 1, 0, 0, 0, 0);
const MICROS_OF_DAY: f64 = 86_400_000_000.0;
/// The number of microseconds from 1899-12-30 to 1970-01-01.
const ZERO_TO_EPOCH: i64 = 25_569 * 86_400 * 1_000_000;

/// A value. Two numbers of different types are equal if their numeric values are.
#[derive(Debug, Clone)]
pub enum Datum {
    Blank,
    Boolean(bool),
    Integer(i64),
    Decimal(Decimal),
    Double(f64),
    Text(Arc<str>),
    /// A time without a zone, in microseconds since 1970-01-01T00:00:00.
    DateTime(i64),
}

impl Datum {
    pub fn is_blank(&self) -> bool {
        matches!(self, Datum::Blank)
    }

    pub(super) fn of_value(value: &Value) -> Datum {
        match value {
            Value::Null => Datum::Blank,
            Value::Boolean(value) => Datum::Boolean(*value),
            Value::Integer(value) => Datum::Integer(*value),
            Value::Float(value) => Datum::Double(*value),
            Value::Decimal(digits) => Datum::of_digits(digits),
            Value::Text(text) => Datum::Text(Arc::clone(text)),
            Value::Date(days) => Datum::DateTime(i64::from(*days) * 86_400_000_000),
            Value::Timestamp(micros) | Value::TimestampTz(micros) => Datum::DateTime(*micros),
        }
    }

    fn of_digits(digits: &str) -> Datum {
        match digits.parse() {
            Ok(decimal) => Datum::Decimal(decimal),
            Err(_) => digits.parse().map_or(Datum::Blank, Datum::Double),
        }
    }

    /// Converts the value to a value of a semantic query's filter, in which times are text.
    pub(super) fn to_value(&self) -> Option<Value> {
        Some(match self {
            Datum::Blank => Value::Null,
            Datum::Boolean(value) => Value::Boolean(*value),
            Datum::Integer(value) => Value::Integer(*value),
            Datum::Decimal(value) => Value::Decimal(value.to_string().into()),
            Datum::Double(value) if value.is_finite() => Value::Float(*value),
            Datum::Double(_) => return None,
            Datum::Text(text) => Value::Text(Arc::clone(text)),
            Datum::DateTime(micros) => Value::Text(moment(*micros)?.to_string().into()),
        })
    }

    pub(super) fn ty(&self) -> Type {
        match self {
            Datum::Blank => Type::Blank,
            Datum::Boolean(_) => Type::Boolean,
            Datum::Integer(_) => Type::Integer,
            Datum::Decimal(_) => Type::Decimal,
            Datum::Double(_) => Type::Double,
            Datum::Text(_) => Type::Text,
            Datum::DateTime(_) => Type::DateTime,
        }
    }

    /// Returns the value as a number, or `None` for a string. BLANK is 0, and a date is its number of days.
    pub(super) fn number(&self) -> Option<f64> {
        Some(match self {
            Datum::Blank => 0.0,
            Datum::Boolean(value) => f64::from(u8::from(*value)),
            Datum::Integer(value) => *value as f64,
            Datum::Decimal(value) => value.to_f64(),
            Datum::Double(value) => *value,
            Datum::DateTime(micros) => (*micros as f64 + ZERO_TO_EPOCH as f64) / MICROS_OF_DAY,
            Datum::Text(_) => return None,
        })
    }

    /// Returns the date that is this number of days after 1899-12-30, or `None` if it is out of range.
    pub(super) fn of_days(days: f64) -> Option<Datum> {
        let micros = (days * MICROS_OF_DAY).round() - ZERO_TO_EPOCH as f64;
        let is_date = micros.is_finite() && micros.abs() < 9.2e18 && moment(micros as i64).is_some_and(is_in_range);
        is_date.then_some(Datum::DateTime(micros as i64))
    }

    pub(super) fn of_moment(moment: DateTime) -> Datum {
        Datum::DateTime(moment.duration_since(EPOCH).as_micros() as i64)
    }

    /// Returns the date and time of a date or of a number of days. BLANK is day 0.
    pub(super) fn moment(&self) -> Option<DateTime> {
        match self {
            Datum::Blank => Some(DAY_ZERO),
            Datum::DateTime(micros) => moment(*micros),
            Datum::Text(text) => text.parse().ok(),
            other => match Datum::of_days(other.number()?)? {
                Datum::DateTime(micros) => moment(micros),
                _ => None,
            },
        }
    }

    /// Returns the value as a string, or `None` for BLANK and for a date out of range.
    pub fn to_text(&self) -> Option<String> {
        if self.is_blank() { None } else { self.text() }
    }

    /// Returns the value as a string, or `None` for a date out of range. BLANK is the empty string.
    pub(super) fn text(&self) -> Option<String> {
        Some(match self {
            Datum::Blank => String::new(),
            Datum::Boolean(true) => "TRUE".to_owned(),
            Datum::Boolean(false) => "FALSE".to_owned(),
            Datum::Integer(value) => value.to_string(),
            Datum::Decimal(value) => value.to_string(),
            Datum::Double(value) => value.to_string(),
            Datum::Text(text) => text.to_string(),
            Datum::DateTime(_) => match self.moment()? {
                moment if moment.time() == jiff::civil::Time::midnight() => moment.date().to_string(),
                moment => moment.strftime("%Y-%m-%d %H:%M:%S").to_string(),
            },
        })
    }

    /// Returns the exact number of the value, or `None` if it has none. BLANK is `Some(None)`.
    pub fn to_decimal(&self) -> Option<Option<Decimal>> {
        if self.is_blank() { Some(None) } else { self.exact().map(Some) }
    }

    /// Returns the value as a number, or `None` for BLANK and strings.
    pub fn to_double(&self) -> Option<f64> {
        if self.is_blank() { None } else { self.number() }
    }

    fn is_number(&self) -> bool {
        matches!(self, Datum::Integer(_) | Datum::Decimal(_) | Datum::Double(_))
    }

    /// Compares values for ORDER BY. BLANK comes before strings and Booleans, and between the negative numbers and 0.
    pub(super) fn order(&self, other: &Datum) -> Ordering {
        match (self, other) {
            (Datum::Blank, Datum::Blank) => Ordering::Equal,
            (Datum::Blank, other) => other.order_of_blank(),
            (one, Datum::Blank) => one.order_of_blank().reverse(),
            (one, other) => one.compare(other),
        }
    }

    /// Compares BLANK with this value for ORDER BY.
    fn order_of_blank(&self) -> Ordering {
        match self.number() {
            Some(number) if number < 0.0 && !matches!(self, Datum::Boolean(_)) => Ordering::Greater,
            _ => Ordering::Less,
        }
    }

    /// Compares two values that are not BLANK. Numbers, dates and Booleans compare as numbers and precede strings.
    pub(super) fn compare(&self, other: &Datum) -> Ordering {
        match (self, other) {
            (Datum::Text(one), Datum::Text(two)) => one.cmp(two),
            (Datum::Text(_), _) => Ordering::Greater,
            (_, Datum::Text(_)) => Ordering::Less,
            (Datum::Integer(one), Datum::Integer(two)) | (Datum::DateTime(one), Datum::DateTime(two)) => one.cmp(two),
            (Datum::Boolean(one), Datum::Boolean(two)) => one.cmp(two),
            (one, two) => match (one.exact(), two.exact()) {
                (Some(one), Some(two)) => one.compare(two),
                _ => {
                    let (one, two) = (one.number().unwrap_or(0.0) + 0.0, two.number().unwrap_or(0.0) + 0.0);
                    one.total_cmp(&two)
                }
            },
        }
    }

    /// Returns the exact value of an integer, a Boolean or a decimal, or `None` for other values.
    pub(super) fn exact(&self) -> Option<Decimal> {
        match self {
            Datum::Integer(value) => Some(Decimal::from(*value)),
            Datum::Boolean(value) => Some(Decimal::from(i64::from(*value))),
            Datum::Decimal(value) => Some(*value),
            _ => None,
        }
    }
}

fn moment(micros: i64) -> Option<DateTime> {
    EPOCH.checked_add(SignedDuration::from_micros(micros)).ok()
}

/// Returns whether a result may be a date. Dates of clients have years from 1 to 9999.
pub(super) fn is_in_range(moment: DateTime) -> bool {
    (1..=9999).contains(&moment.year())
}

impl PartialEq for Datum {
    fn eq(&self, other: &Datum) -> bool {
        match (self, other) {
            (Datum::Blank, Datum::Blank) => true,
            (Datum::Boolean(one), Datum::Boolean(two)) => one == two,
            (Datum::Text(one), Datum::Text(two)) => one == two,
            (Datum::DateTime(one), Datum::DateTime(two)) => one == two,
            (one, two) => one.is_number() && two.is_number() && one.compare(two).is_eq(),
        }
    }
}

impl Eq for Datum {}

impl Hash for Datum {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Datum::Blank => 0_u8.hash(state),
            Datum::Boolean(value) => value.hash(state),
            Datum::Text(text) => text.hash(state),
            Datum::DateTime(micros) => micros.hash(state),
            number => (number.number().unwrap_or(0.0) + 0.0).to_bits().hash(state),
        }
    }
}
