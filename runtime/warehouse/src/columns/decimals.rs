//! Exact decimals whose scale depends on the rows.
//!
//! In: digits as text, or an integer with its scale. Out: an array of the narrowest type that represents every digit of
//! every row: `Decimal128(38, s)`, `Decimal256(76, s)` or text. `s` is the largest scale of the rows, so a sum of
//! integers has no fraction. A conversion to text is logged.

use std::sync::Arc;

use arrow::array::{ArrayRef, Decimal128Array, Decimal256Array, StringArray};
use arrow::datatypes::i256;
use arrow::error::ArrowError;

const DIGITS_128: usize = 38;
const DIGITS_256: usize = 76;

#[derive(Debug)]
enum Number {
    Null,
    /// A number with at most 38 digits: the digits as an integer, and the scale.
    Small(i128, u16),
    /// A number with more digits, as text with a sign and a point.
    Wide(Box<str>),
}

/// An error for a string that is not a decimal.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a decimal")]
pub(crate) struct NotADecimal(String);

/// One column of decimals.
#[derive(Debug, Default)]
pub(crate) struct Decimals {
    numbers: Vec<Number>,
    /// The largest number of digits before the point in any row. `scale` is the largest number after the point.
    whole: usize,
    scale: usize,
}

impl Decimals {
    pub(crate) fn push_null(&mut self) {
        self.numbers.push(Number::Null);
    }

    /// Adds the number `unscaled` · 10^-`scale`. `unscaled` must have at most 38 digits.
    pub(crate) fn push(&mut self, unscaled: i128, scale: u16) {
        let digits = unscaled.unsigned_abs().checked_ilog10().map_or(0, |log| log as usize + 1);
        self.whole = self.whole.max(digits.saturating_sub(scale.into()));
        self.scale = self.scale.max(scale.into());
        self.numbers.push(Number::Small(unscaled, scale));
    }

    /// Adds a number in text form: an optional sign, and digits with at most one point.
    ///
    /// # Errors
    /// The text has a different form.
    pub(crate) fn push_text(&mut self, text: &str) -> Result<(), NotADecimal> {
        let (whole, fraction) = split(text).ok_or_else(|| NotADecimal(text.to_owned()))?;
        if whole.len() + fraction.len() <= DIGITS_128 {
            let digits = format!("0{whole}{fraction}");
            let unscaled: i128 = digits.parse().map_err(|_| NotADecimal(text.to_owned()))?;
            self.push(if text.starts_with('-') { -unscaled } else { unscaled }, fraction.len() as u16);
        } else {
            self.whole = self.whole.max(whole.len());
            self.scale = self.scale.max(fraction.len());
            let sign = if text.starts_with('-') { "-" } else { "" };
            let whole = if whole.is_empty() { "0" } else { whole };
            let point = if fraction.is_empty() { "" } else { "." };
            self.numbers.push(Number::Wide(format!("{sign}{whole}{point}{fraction}").into()));
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Result<ArrayRef, ArrowError> {
        let digits = self.whole + self.scale;
        let scale = self.scale;
        if digits <= DIGITS_128 {
            let values = self.numbers.iter().map(|number| match number {
                Number::Small(unscaled, own) => Some(unscaled * 10_i128.pow((scale - usize::from(*own)) as u32)),
                Number::Null | Number::Wide(_) => None,
            });
            let array: Decimal128Array = values.collect();
            return Ok(Arc::new(array.with_precision_and_scale(DIGITS_128 as u8, scale as i8)?));
        }
        let texts = self.numbers.iter().map(Number::text);
        if digits <= DIGITS_256 {
            let array: Decimal256Array = texts.map(|text| unscaled_256(&text?, scale)).collect();
            return Ok(Arc::new(array.with_precision_and_scale(DIGITS_256 as u8, scale as i8)?));
        }
        tracing::warn!(
            event = "decimals_as_text",
            digits,
            "decimals with more than {DIGITS_256} digits are returned as strings"
        );
        Ok(Arc::new(texts.collect::<StringArray>()))
    }
}

impl Number {
    fn text(&self) -> Option<String> {
        match self {
            Number::Null => None,
            Number::Wide(text) => Some(text.to_string()),
            Number::Small(unscaled, scale) => Some(plain(*unscaled, usize::from(*scale))),
        }
    }
}

/// Splits a number into the digits before the point, without leading zeros, and the digits after it. Returns `None` for
/// other text.
fn split(text: &str) -> Option<(&str, &str)> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = digits.bytes().any(|b| b.is_ascii_digit());
    let all_digits = [whole, fraction].iter().all(|part| part.bytes().all(|b| b.is_ascii_digit()));
    (is_number && all_digits).then(|| (whole.trim_start_matches('0'), fraction))
}

fn plain(unscaled: i128, scale: usize) -> String {
    let sign = if unscaled < 0 { "-" } else { "" };
    let digits = format!("{:0>width$}", unscaled.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{whole}{point}{fraction}")
}

fn unscaled_256(text: &str, scale: usize) -> Option<i256> {
    let (whole, fraction) = split(text)?;
    let sign = if text.starts_with('-') { "-" } else { "" };
    i256::from_string(&format!("{sign}0{whole}{fraction:0<scale$}"))
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array as _, AsArray as _};
    use arrow::datatypes::{DataType, Decimal128Type, Decimal256Type};

    use super::*;

    fn column(texts: &[&str]) -> ArrayRef {
        let mut decimals = Decimals::default();
        texts.iter().for_each(|text| decimals.push_text(text).unwrap());
        decimals.push_null();
        decimals.finish().unwrap()
    }

    #[test]
    fn integers_have_scale_zero() {
        let array = column(&["5", "-0", "99999999999999999999999999999999999999"]);
        assert_eq!(array.data_type(), &DataType::Decimal128(38, 0));
        assert_eq!(array.as_primitive::<Decimal128Type>().value(2), 10_i128.pow(38) - 1);
        assert!(array.is_null(3));
    }

    #[test]
    fn largest_scale_applies_to_all_values() {
        let array = column(&["10.10", "-0.05", "7", ".5"]);
        assert_eq!(array.data_type(), &DataType::Decimal128(38, 2));
        assert_eq!(array.as_primitive::<Decimal128Type>().values()[..4], [1010, -5, 700, 50]);
    }

    #[test]
    fn wide_decimals_keep_every_digit() {
        let wide = format!("-{}.25", "9".repeat(60));
        let array = column(&[&wide, "0.5"]);
        assert_eq!(array.data_type(), &DataType::Decimal256(76, 2));
        assert_eq!(array.as_primitive::<Decimal256Type>().value_as_string(0), wide);
        assert_eq!(array.as_primitive::<Decimal256Type>().value_as_string(1), "0.50");
        // Each number has at most 38 digits, but a common scale needs more.
        let array = column(&[&"1".repeat(38), "0.01"]);
        assert_eq!(array.as_primitive::<Decimal256Type>().value_as_string(1), "0.01");
    }

    #[test]
    fn decimals_over_76_digits_become_strings() {
        let wide = "8".repeat(77);
        let array = column(&[&format!("000{wide}."), "-0.05", "3"]);
        let texts: Vec<Option<&str>> = array.as_string::<i32>().iter().collect();
        assert_eq!(texts, [Some(wide.as_str()), Some("-0.05"), Some("3"), None]);
    }

    #[test]
    fn non_numeric_strings_are_rejected() {
        for text in ["", "-", ".", "1e5", "NaN", "1.2.3", "--1"] {
            assert!(Decimals::default().push_text(text).is_err(), "{text}");
        }
    }
}
