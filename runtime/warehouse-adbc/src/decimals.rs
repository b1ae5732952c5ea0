//! Converts decimals that a driver sends as text.
//!
//! In: all rows of one column, in parts. Out: arrays of the narrowest type that represents every digit of every row:
//! `Decimal128(38, s)`, `Decimal256(76, s)` or text. `s` is the largest scale of the rows. `NaN` and the infinities
//! become null, as in JSON, because Arrow's decimals cannot represent them. These are the rules of the PostgreSQL
//! adapter, whose server sends decimals without a declared scale too.

use std::sync::Arc;

use arrow::array::{ArrayRef, Decimal128Array, Decimal256Array, StringArray};
use arrow::datatypes::{DataType, i256};
use arrow::error::ArrowError;

const DIGITS_128: usize = 38;
const DIGITS_256: usize = 76;

/// The type of a decimal column in a description, which has no rows. The scale is not 0, because the values may have a
/// fraction.
pub(crate) const NOMINAL: DataType = DataType::Decimal128(38, 9);

/// An error for a string that is not a decimal.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a decimal")]
pub(crate) struct NotADecimal(String);

/// Converts the parts of a column to one type.
///
/// # Errors
/// A value is not a decimal.
pub(crate) fn convert(parts: &[&StringArray]) -> Result<Vec<ArrayRef>, NotADecimal> {
    let (mut whole, mut scale) = (0, 0);
    for text in parts.iter().flat_map(|part| part.iter().flatten()) {
        if let Some(number) = Number::parse(text)? {
            whole = whole.max(number.whole.len());
            scale = scale.max(number.fraction.len());
        }
    }
    let digits = whole + scale;
    if digits > DIGITS_256 {
        tracing::warn!(
            event = "decimals_as_text",
            digits,
            "decimals with more than {DIGITS_256} digits are returned as strings"
        );
    }
    let array = |part: &&StringArray| -> Result<ArrayRef, ArrowError> {
        let numbers = part.iter().map(|text| text.and_then(|text| Number::parse(text).ok().flatten()));
        Ok(if digits <= DIGITS_128 {
            let array: Decimal128Array = numbers.map(|number| number.and_then(|n| n.unscaled_128(scale))).collect();
            Arc::new(array.with_precision_and_scale(DIGITS_128 as u8, scale as i8)?)
        } else if digits <= DIGITS_256 {
            let array: Decimal256Array = numbers.map(|number| number.and_then(|n| n.unscaled_256(scale))).collect();
            Arc::new(array.with_precision_and_scale(DIGITS_256 as u8, scale as i8)?)
        } else {
            Arc::new(numbers.map(|number| number.map(|n| n.plain())).collect::<StringArray>())
        })
    };
    parts.iter().map(array).collect::<Result<_, _>>().map_err(|error| NotADecimal(error.to_string()))
}

/// The digits of a decimal.
struct Number<'a> {
    is_negative: bool,
    /// The digits before the point, without leading zeros.
    whole: &'a str,
    fraction: &'a str,
}

impl<'a> Number<'a> {
    /// Parses an optional sign and digits with at most one point. Returns `None` for `NaN` and the infinities.
    fn parse(text: &'a str) -> Result<Option<Self>, NotADecimal> {
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        if ["nan", "inf", "infinity"].iter().any(|word| digits.eq_ignore_ascii_case(word)) {
            return Ok(None);
        }
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let is_number = digits.bytes().any(|byte| byte.is_ascii_digit());
        let all_digits = [whole, fraction].iter().all(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
        if !is_number || !all_digits {
            return Err(NotADecimal(text.to_owned()));
        }
        Ok(Some(Number { is_negative: text.starts_with('-'), whole: whole.trim_start_matches('0'), fraction }))
    }

    fn unscaled_128(&self, scale: usize) -> Option<i128> {
        let digits = self.whole.bytes().chain(self.fraction.bytes()).map(|byte| i128::from(byte - b'0'));
        let zeros = (self.fraction.len()..scale).map(|_| 0);
        let number =
            digits.chain(zeros).try_fold(0_i128, |number, digit| number.checked_mul(10)?.checked_add(digit))?;
        Some(if self.is_negative { -number } else { number })
    }

    fn unscaled_256(&self, scale: usize) -> Option<i256> {
        let sign = if self.is_negative { "-" } else { "" };
        i256::from_string(&format!("{sign}0{}{:0<scale$}", self.whole, self.fraction))
    }

    fn plain(&self) -> String {
        let sign = if self.is_negative { "-" } else { "" };
        let whole = if self.whole.is_empty() { "0" } else { self.whole };
        let point = if self.fraction.is_empty() { "" } else { "." };
        format!("{sign}{whole}{point}{}", self.fraction)
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array as _, AsArray as _};
    use arrow::datatypes::{Decimal128Type, Decimal256Type};

    use super::*;

    fn column(texts: &[&str]) -> ArrayRef {
        let part: StringArray = texts.iter().map(Some).chain([None]).collect();
        convert(&[&part]).unwrap().remove(0)
    }

    #[test]
    fn largest_scale_holds_for_all_parts() {
        let (first, second) = (StringArray::from(vec!["10.10", "-0.05", "7"]), StringArray::from(vec![".5", "1.250"]));
        let arrays = convert(&[&first, &second]).unwrap();
        assert_eq!(arrays[0].data_type(), &DataType::Decimal128(38, 3));
        assert_eq!(arrays[0].as_primitive::<Decimal128Type>().values()[..], [10_100, -50, 7_000]);
        assert_eq!(arrays[1].as_primitive::<Decimal128Type>().values()[..], [500, 1_250]);
    }

    #[test]
    fn integers_have_scale_zero() {
        let array = column(&["5", "-0", "99999999999999999999999999999999999999"]);
        assert_eq!(array.data_type(), &DataType::Decimal128(38, 0));
        assert_eq!(array.as_primitive::<Decimal128Type>().value(2), 10_i128.pow(38) - 1);
        assert!(array.is_null(3));
    }

    #[test]
    fn wide_decimals_lose_no_digit() {
        let wide = format!("-{}.25", "9".repeat(60));
        let array = column(&[&wide, "0.5"]);
        assert_eq!(array.data_type(), &DataType::Decimal256(76, 2));
        assert_eq!(array.as_primitive::<Decimal256Type>().value_as_string(0), wide);
        let wide = "8".repeat(77);
        let array = column(&[&format!("000{wide}."), "-0.05", "NaN"]);
        assert_eq!(array.as_string::<i32>().iter().collect::<Vec<_>>(), [Some(&*wide), Some("-0.05"), None, None]);
    }

    #[test]
    fn special_values_are_null() {
        let array = column(&["nan", "NaN", "inf", "-inf", "Infinity", "-Infinity", "1"]);
        assert_eq!((array.null_count(), array.data_type()), (7, &DataType::Decimal128(38, 0)));
    }

    #[test]
    fn other_text_is_rejected() {
        for text in ["", "-", ".", "1e5", "1.2.3", "--1", "١"] {
            let part = StringArray::from(vec![text]);
            assert_eq!(convert(&[&part]).unwrap_err(), NotADecimal(text.to_owned()), "{text}");
        }
    }
}
