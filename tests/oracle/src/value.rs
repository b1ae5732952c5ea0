//! The values of the oracle: exact numbers, times on their own axis, labels.
//!
//! In: cells of a [`World`](crate::world::World). Out: values with a total order and equality. Not here: rendering
//! (`oracle::labels`) and the comparison with the product's answers (`compare`).

use std::cmp::Ordering;

/// A value. Null is the smallest value here, although answers have it last (see `oracle::order`).
#[derive(Debug, Clone)]
pub enum Value {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    /// Days since 1970.
    Day(i32),
    /// A local time, in microseconds since 1970.
    Local(i64),
    /// An instant, in microseconds since 1970 in UTC.
    Instant(i64),
    /// A bucket of time: its start on its axis, and its label.
    Bucket(i64, String),
}

/// A number that is exact until it is divided or combined with a double.
#[derive(Debug, Clone, Copy)]
pub enum Number {
    /// `unscaled / 10^scale`
    Exact(i128, u32),
    Double(f64),
}

impl Value {
    pub fn int(value: i128) -> Value {
        Value::Number(Number::Exact(value, 0))
    }

    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    fn rank(&self) -> u8 {
        match self {
            Value::Null => 0,
            Value::Bool(_) => 1,
            Value::Number(_) => 2,
            Value::Text(_) => 3,
            Value::Day(_) => 4,
            Value::Local(_) => 5,
            Value::Instant(_) => 6,
            Value::Bucket(..) => 7,
        }
    }

    /// Returns whether a double and another number differ at most in the digits that depend on the order of additions.
    pub fn is_near(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Number(Number::Exact(..)), Value::Number(Number::Exact(..))) => false,
            (Value::Number(a), Value::Number(b)) => is_near(a.as_f64(), b.as_f64(), 1e-9),
            _ => false,
        }
    }

    /// Returns whether rounding decides which of two numbers is larger. Equal deviations count as well, except zero,
    /// because a warehouse adds their squares in any order.
    pub fn is_rounded_apart(&self, other: &Value, has_deviation: bool) -> bool {
        let is_zero = || *self == Value::int(0);
        self.is_near(other) && (self != other || (has_deviation && !is_zero()))
    }

    /// Returns the position of a time on its axis, in microseconds.
    pub fn micros(&self) -> Option<i64> {
        match self {
            Value::Day(days) => Some(i64::from(*days) * 86_400_000_000),
            Value::Local(micros) | Value::Instant(micros) | Value::Bucket(micros, _) => Some(*micros),
            _ => None,
        }
    }
}

impl Number {
    pub fn as_f64(self) -> f64 {
        match self {
            Number::Exact(value, 0) => value as f64,
            Number::Exact(value, scale) => value as f64 / 10f64.powi(scale as i32),
            Number::Double(value) => value,
        }
    }

    /// Parses a number such as `12.50` or `-3`; `None` for any other form.
    pub fn parse(text: &str) -> Option<Number> {
        let (sign, digits) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let all = format!("{whole}{fraction}");
        if all.is_empty() || !all.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        Some(Number::Exact(sign * all.parse::<i128>().ok()?, fraction.len() as u32))
    }

    /// Returns both numbers with a common scale; `None` if one of them is a double.
    fn aligned(self, other: Number) -> Option<(i128, i128, u32)> {
        let (Number::Exact(a, left), Number::Exact(b, right)) = (self, other) else { return None };
        let scale = left.max(right);
        Some((a * 10i128.pow(scale - left), b * 10i128.pow(scale - right), scale))
    }

    pub fn plus(self, other: Number) -> Number {
        match self.aligned(other) {
            Some((a, b, scale)) => Number::Exact(a + b, scale),
            None => Number::Double(self.as_f64() + other.as_f64()),
        }
    }

    pub fn minus(self, other: Number) -> Number {
        match self.aligned(other) {
            Some((a, b, scale)) => Number::Exact(a - b, scale),
            None => Number::Double(self.as_f64() - other.as_f64()),
        }
    }

    pub fn times(self, other: Number) -> Number {
        match (self, other) {
            (Number::Exact(a, left), Number::Exact(b, right)) => Number::Exact(a * b, left + right),
            _ => Number::Double(self.as_f64() * other.as_f64()),
        }
    }

    /// Divides as doubles; `None` if the divisor is zero.
    pub fn divide(self, other: Number) -> Option<Number> {
        let divisor = other.as_f64();
        (divisor != 0.0).then(|| Number::Double(self.as_f64() / divisor))
    }
}

/// Returns whether two numbers are equal within a relative tolerance. Numbers within 1e-12 of each other are equal.
pub fn is_near(a: f64, b: f64, tolerance: f64) -> bool {
    a == b || (a - b).abs() <= (tolerance * a.abs().max(b.abs())).max(1e-12)
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        match self.aligned(*other) {
            Some((a, b, _)) => a.cmp(&b),
            // Adding 0.0 turns -0.0 into 0.0, because both zeros are equal.
            None => (self.as_f64() + 0.0).total_cmp(&(other.as_f64() + 0.0)),
        }
    }
}

impl Ord for Value {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
            (Value::Number(a), Value::Number(b)) => a.cmp(b),
            // The byte order of UTF-8 is the order of code points.
            (Value::Text(a), Value::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
            (Value::Day(a), Value::Day(b)) => a.cmp(b),
            (Value::Local(a), Value::Local(b)) | (Value::Instant(a), Value::Instant(b)) => a.cmp(b),
            (Value::Bucket(a, label), Value::Bucket(b, other)) => a.cmp(b).then_with(|| label.cmp(other)),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

macro_rules! by_order {
    ($($ty:ty)*) => {$(
        impl PartialOrd for $ty {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }
        impl PartialEq for $ty {
            fn eq(&self, other: &Self) -> bool {
                self.cmp(other).is_eq()
            }
        }
        impl Eq for $ty {}
    )*};
}

by_order!(Number Value);
