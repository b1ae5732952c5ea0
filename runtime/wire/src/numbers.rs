//! Columns of numbers in types that clients compute with.
//!
//! In: the columns of a query, and arrays. Out: integers of 64 bits for decimals without a fraction, doubles for any
//! number. Engines return the sum of integers as a decimal of 38 digits. Not here: the choice between integers and
//! doubles (`arrow_stream`, `json`).

use arrow::array::{Array, ArrayRef, AsArray as _, Float64Array};
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{DataType, Decimal128Type, Decimal256Type, Float64Type, i256};
use arrow::error::ArrowError;
use terrane_compiler::sql::ResultColumn;

/// Returns an array of numbers as doubles, or `None` for an array of anything else.
pub(crate) fn to_doubles(array: &dyn Array) -> Option<Float64Array> {
    if !array.data_type().is_numeric() {
        return None;
    }
    // Every number has a nearest double.
    let doubles = cast(array, &DataType::Float64).ok()?;
    Some(doubles.as_primitive::<Float64Type>().clone())
}

/// Returns whether a column is a measure whose values are decimals without a fraction, like a sum of integers.
pub(crate) fn is_integral(column: &ResultColumn, stored: &DataType) -> bool {
    column.is_measure && matches!(stored, DataType::Decimal128(_, 0) | DataType::Decimal256(_, 0))
}

/// Returns whether each value of an integral column fits 64 bits.
pub(crate) fn fits_int64(array: &ArrayRef) -> bool {
    match array.data_type() {
        DataType::Decimal128(_, 0) => {
            array.as_primitive::<Decimal128Type>().iter().flatten().all(|value| i64::try_from(value).is_ok())
        }
        DataType::Decimal256(_, 0) => {
            let (min, max) = (i256::from(i64::MIN), i256::from(i64::MAX));
            array.as_primitive::<Decimal256Type>().iter().flatten().all(|value| (min..=max).contains(&value))
        }
        _ => false,
    }
}

/// Returns an integral column as integers of 64 bits.
///
/// # Errors
/// A value does not fit.
pub(crate) fn to_int64(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    cast_with_options(array, &DataType::Int64, &CastOptions { safe: false, ..CastOptions::default() })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Decimal128Array, Int64Array, StringArray};
    use arrow::datatypes::Int64Type;

    use super::*;

    fn decimals(values: Vec<Option<i128>>, scale: i8) -> ArrayRef {
        let array = Decimal128Array::from(values).with_precision_and_scale(38, scale);
        Arc::new(array.expect("38 digits"))
    }

    #[test]
    fn integers_that_fit_become_int64() {
        let edges = [i64::MIN, -1, 0, i64::MAX].map(|value| Some(i128::from(value)));
        let array = decimals([&edges[..], &[None]].concat(), 0);
        assert!(fits_int64(&array));
        let converted = to_int64(&array).expect("integers");
        let converted = converted.as_primitive::<Int64Type>();
        assert_eq!(converted.iter().collect::<Vec<_>>(), [Some(i64::MIN), Some(-1), Some(0), Some(i64::MAX), None]);
    }

    #[test]
    fn integer_beyond_64_bits_does_not_fit() {
        let array = decimals(vec![Some(1), Some(i128::from(i64::MAX) + 1)], 0);
        assert!(!fits_int64(&array));
        assert!(to_int64(&array).is_err());
    }

    #[test]
    fn only_numbers_become_doubles() {
        let doubles = |array: &dyn Array| to_doubles(array).map(|array| array.iter().collect::<Vec<_>>());
        assert_eq!(doubles(&decimals(vec![Some(1_250), None], 2)), Some(vec![Some(12.5), None]));
        assert_eq!(doubles(&Int64Array::from(vec![1, 2])), Some(vec![Some(1.0), Some(2.0)]));
        assert_eq!(doubles(&Float64Array::from(vec![0.5])), Some(vec![Some(0.5)]));
        assert_eq!(doubles(&StringArray::from(vec!["1"])), None);
    }
}
