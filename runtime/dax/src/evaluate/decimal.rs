//! Exact decimal numbers of at most 38 digits.
//!
//! In: digits and integers. Out: [`Decimal`]. A sum, a difference or a product is exact, or `None` if it has too many
//! digits.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// The largest number of digits after the point.
const MAX_SCALE: u8 = 30;

/// A decimal number: `digits / 10^scale`, without trailing zeros after the point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decimal {
    digits: i128,
    scale: u8,
}

impl Decimal {
    pub fn new(digits: i128, scale: u8) -> Decimal {
        let (mut digits, mut scale) = (digits, scale);
        while scale > 0 && digits % 10 == 0 {
            digits /= 10;
            scale -= 1;
        }
        Decimal { digits, scale }
    }

    /// Returns the number of digits after the point.
    pub fn scale(self) -> u8 {
        self.scale
    }

    /// Returns the number times `10^scale` as an integer, or `None` if the number has more digits after the point or
    /// the integer does not fit.
    pub fn at_scale(self, scale: u8) -> Option<i128> {
        let factor = 10_i128.checked_pow(u32::from(scale.checked_sub(self.scale)?))?;
        self.digits.checked_mul(factor)
    }

    pub(super) fn to_f64(self) -> f64 {
        if self.scale == 0 {
            return self.digits as f64;
        }
        // Parsing the text finds the nearest double. A division of two doubles may miss it.
        self.to_string().parse().unwrap_or(f64::NAN)
    }

    /// Returns the number rounded to a number of digits after the point, half away from zero. A negative number of digits
    /// rounds to tens, hundreds and so on. Returns `None` if the result has too many digits.
    pub(super) fn rounded(self, digits: i32) -> Option<Decimal> {
        let dropped = i32::from(self.scale) - digits;
        if dropped <= 0 {
            return Some(self);
        }
        let Some(unit) = 10_i128.checked_pow(dropped.unsigned_abs()) else { return Some(Decimal::from(0)) };
        let (whole, rest) = (self.digits / unit, self.digits % unit);
        let is_up = rest.unsigned_abs() >= unit.unsigned_abs().div_ceil(2);
        let whole = if is_up { whole + self.digits.signum() } else { whole };
        match u8::try_from(digits) {
            Ok(scale) => Some(Decimal::new(whole, scale)),
            Err(_) => Some(Decimal::new(whole.checked_mul(10_i128.checked_pow(digits.unsigned_abs())?)?, 0)),
        }
    }

    /// Returns the largest integer that is not greater than the number.
    pub(super) fn floor(self) -> Decimal {
        let unit = 10_i128.pow(u32::from(self.scale));
        Decimal { digits: self.digits.div_euclid(unit), scale: 0 }
    }

    fn aligned(self, other: Decimal) -> Option<(i128, i128, u8)> {
        let scale = self.scale.max(other.scale);
        Some((self.at_scale(scale)?, other.at_scale(scale)?, scale))
    }

    pub(super) fn plus(self, other: Decimal) -> Option<Decimal> {
        let (one, two, scale) = self.aligned(other)?;
        Some(Decimal::new(one.checked_add(two)?, scale))
    }

    pub(super) fn times(self, other: Decimal) -> Option<Decimal> {
        let scale = self.scale + other.scale;
        (scale <= MAX_SCALE).then_some(())?;
        Some(Decimal::new(self.digits.checked_mul(other.digits)?, scale))
    }

    pub(super) fn negated(self) -> Decimal {
        Decimal { digits: self.digits.wrapping_neg(), scale: self.scale }
    }

    pub(super) fn compare(self, other: Decimal) -> Ordering {
        match self.aligned(other) {
            Some((one, two, _)) => one.cmp(&two),
            None => self.to_f64().total_cmp(&other.to_f64()),
        }
    }

    pub(super) fn to_integer(self) -> Option<i64> {
        if self.scale == 0 { i64::try_from(self.digits).ok() } else { None }
    }
}

impl From<i64> for Decimal {
    fn from(value: i64) -> Decimal {
        Decimal { digits: i128::from(value), scale: 0 }
    }
}

impl FromStr for Decimal {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Decimal, Self::Err> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let fraction = &fraction[..fraction.len().min(usize::from(MAX_SCALE))];
        let digits = format!("{whole}{fraction}").parse()?;
        Ok(Decimal::new(digits, fraction.len() as u8))
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.scale == 0 {
            return write!(f, "{}", self.digits);
        }
        let sign = if self.digits < 0 { "-" } else { "" };
        let (digits, scale) = (self.digits.unsigned_abs().to_string(), usize::from(self.scale));
        let padded = format!("{digits:0>width$}", width = scale + 1);
        let (whole, fraction) = padded.split_at(padded.len() - scale);
        write!(f, "{sign}{whole}.{fraction}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact() {
        let of = |text: &str| text.parse::<Decimal>().expect("a decimal");
        assert_eq!(of("0.1").plus(of("0.2")), Some(of("0.3")));
        assert_eq!(of("-1.50").times(of("2")), Some(of("-3")));
        assert_eq!(of("-0.05").to_string(), "-0.05");
        assert_eq!(of("12.340").to_string(), "12.34");
        assert_eq!(of("0.10").compare(of("0.1")), Ordering::Equal);
        assert_eq!(of(&"9".repeat(38)).times(of("10")), None);
    }

    #[test]
    fn decimals_round_half_away_from_zero() {
        let of = |text: &str| text.parse::<Decimal>().expect("a decimal");
        for (value, digits, rounded) in [
            ("1.005", 2, "1.01"),
            ("-1.005", 2, "-1.01"),
            ("0.285", 2, "0.29"),
            ("1.0049999", 2, "1"),
            ("2.5", 0, "3"),
            ("-2.5", 0, "-3"),
            ("1250", -2, "1300"),
            ("49", -2, "0"),
            ("7", -300, "0"),
            ("1.5", 300, "1.5"),
        ] {
            assert_eq!(of(value).rounded(digits), Some(of(rounded)), "{value}, {digits}");
        }
        assert_eq!(of("-0.5").floor(), of("-1"));
        assert_eq!(of("0.99999999999999999999").floor(), of("0"));
    }
}
