//! Orders finished rows by the rules of DAX.
//!
//! In: rows and keys. Out: the rows in order, or the first of them. BLANK comes before every string; among numbers it
//! comes between the negative ones and 0. A date is the number of days since 1899-12-30. The orders of warehouses
//! differ from this one, because they put nulls first or last.

use std::cmp::Ordering;

use arrow::array::{Array, ArrayRef, AsArray as _, LargeStringArray, RecordBatch, UInt32Array};
use arrow::compute::{cast, take_record_batch};
use arrow::datatypes::{
    DataType, Decimal128Type, Decimal256Type, Float64Type, Int64Type, TimeUnit, TimestampMicrosecondType, i256,
};
use arrow::error::ArrowError;
use terrane_dax::plan::{OrderKey, Top};

use super::keys;

/// The date 1899-12-30 in microseconds since 1970-01-01.
const DAY_ZERO_MICROS: i64 = -25_569 * 86_400 * 1_000_000;

/// A number, with BLANK between the negative ones and 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Number<T> {
    Negative(T),
    Blank,
    Positive(T),
}

/// The values of a column in a form that can be compared.
enum Values {
    Integers(Vec<Number<i64>>),
    Decimals(Vec<Number<i128>>),
    WideDecimals(Vec<Number<i256>>),
    Texts(LargeStringArray),
}

impl Values {
    fn of(column: &ArrayRef) -> Result<Values, ArrowError> {
        Ok(match column.data_type() {
            DataType::Decimal128(..) => Values::Decimals(numbers(column.as_primitive::<Decimal128Type>().iter(), 0)),
            DataType::Decimal256(..) => {
                Values::WideDecimals(numbers(column.as_primitive::<Decimal256Type>().iter(), i256::ZERO))
            }
            DataType::UInt64 => {
                let wide = cast(column, &DataType::Decimal128(20, 0))?;
                Values::Decimals(numbers(wide.as_primitive::<Decimal128Type>().iter(), 0))
            }
            DataType::Float16 | DataType::Float32 | DataType::Float64 => {
                let doubles = cast(column, &DataType::Float64)?;
                Values::Integers(numbers(doubles.as_primitive::<Float64Type>().iter().map(|v| v.map(bits_in_order)), 0))
            }
            DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => {
                let zone = match column.data_type() {
                    DataType::Timestamp(_, zone) => zone.clone(),
                    _ => None,
                };
                let micros = cast(column, &DataType::Timestamp(TimeUnit::Microsecond, zone))?;
                let values = micros.as_primitive::<TimestampMicrosecondType>().iter();
                Values::Integers(numbers(values, DAY_ZERO_MICROS))
            }
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                Values::Texts(cast(column, &DataType::LargeUtf8)?.as_string::<i64>().clone())
            }
            // Integers and Booleans.
            _ => {
                let integers = cast(column, &DataType::Int64)?;
                Values::Integers(numbers(integers.as_primitive::<Int64Type>().iter(), 0))
            }
        })
    }

    fn compare(&self, one: usize, other: usize) -> Ordering {
        match self {
            Values::Integers(values) => values[one].cmp(&values[other]),
            Values::Decimals(values) => values[one].cmp(&values[other]),
            Values::WideDecimals(values) => values[one].cmp(&values[other]),
            Values::Texts(values) => {
                let text = |row: usize| values.is_valid(row).then(|| values.value(row));
                text(one).cmp(&text(other))
            }
        }
    }
}

fn numbers<T: Ord>(values: impl Iterator<Item = Option<T>>, zero: T) -> Vec<Number<T>> {
    let number = |value: Option<T>| match value {
        None => Number::Blank,
        Some(value) if value < zero => Number::Negative(value),
        Some(value) => Number::Positive(value),
    };
    values.map(number).collect()
}

/// Returns an integer with the order of a double; both zeros are 0.
fn bits_in_order(value: f64) -> i64 {
    let bits = (value + 0.0).to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

/// The keys of an order.
struct Keys(Vec<(Values, bool)>);

impl Keys {
    fn of(rows: &RecordBatch, order: &[OrderKey]) -> Result<Keys, ArrowError> {
        let key = |(column, descending): (usize, bool)| Ok((Values::of(rows.column(column))?, descending));
        keys(order).map(key).collect::<Result<Vec<_>, ArrowError>>().map(Keys)
    }

    fn compare(&self, one: u32, other: u32) -> Ordering {
        let compare = |(values, descending): &(Values, bool)| {
            let ordering = values.compare(one as usize, other as usize);
            if *descending { ordering.reverse() } else { ordering }
        };
        self.0.iter().map(compare).find(|ordering| ordering.is_ne()).unwrap_or(Ordering::Equal)
    }

    /// Returns the indices of the rows in order. Equal rows stay in their original order.
    fn sorted(&self, rows: usize) -> Vec<u32> {
        let mut indices: Vec<u32> = (0..rows as u32).collect();
        indices.sort_by(|one, other| self.compare(*one, *other));
        indices
    }
}

pub(super) fn sorted(rows: &RecordBatch, order: &[OrderKey]) -> Result<RecordBatch, ArrowError> {
    let indices = Keys::of(rows, order)?.sorted(rows.num_rows());
    take_record_batch(rows, &UInt32Array::from(indices))
}

/// Returns the first rows of an order, and all further rows that equal the last of them. Without keys, returns the
/// first rows of the batch.
pub(super) fn first_rows(rows: &RecordBatch, top: &Top) -> Result<RecordBatch, ArrowError> {
    let wanted = usize::try_from(top.rows).unwrap_or(usize::MAX);
    if wanted >= rows.num_rows() {
        return Ok(rows.clone());
    }
    let keys = Keys::of(rows, &top.order)?;
    let mut indices = keys.sorted(rows.num_rows());
    let mut end = wanted;
    if let (Some(last), false) = (wanted.checked_sub(1).map(|at| indices[at]), top.order.is_empty()) {
        end += indices[wanted..].iter().take_while(|row| keys.compare(last, **row).is_eq()).count();
    }
    indices.truncate(end);
    take_record_batch(rows, &UInt32Array::from(indices))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Date32Array, Decimal128Array, Float64Array, Int32Array, StringArray};

    use super::*;

    fn order_of(column: ArrayRef, descending: bool) -> Vec<u32> {
        let rows = RecordBatch::try_from_iter([("a", column)]).unwrap();
        Keys::of(&rows, &[OrderKey { column: 0, descending }]).unwrap().sorted(rows.num_rows())
    }

    #[test]
    fn blank_sorts_before_zero_and_strings() {
        let integers = Int32Array::from(vec![Some(1), None, Some(0), Some(-1)]);
        assert_eq!(order_of(Arc::new(integers.clone()), false), [3, 1, 2, 0]);
        assert_eq!(order_of(Arc::new(integers), true), [0, 2, 1, 3]);
        let doubles = Float64Array::from(vec![Some(0.5), None, Some(-0.0), Some(-0.5), Some(0.0), Some(f64::INFINITY)]);
        assert_eq!(order_of(Arc::new(doubles), false), [3, 1, 2, 4, 0, 5]);
        let decimals = Decimal128Array::from(vec![Some(150), None, Some(-1)]).with_precision_and_scale(10, 2).unwrap();
        assert_eq!(order_of(Arc::new(decimals), false), [2, 1, 0]);
        let texts = StringArray::from(vec![Some("b"), Some(""), None, Some("B")]);
        assert_eq!(order_of(Arc::new(texts), false), [2, 1, 3, 0]);
        // 1899-12-29, BLANK, 1899-12-30.
        let dates = Date32Array::from(vec![Some(0), Some(-25_569), None, Some(-25_570)]);
        assert_eq!(order_of(Arc::new(dates), false), [3, 2, 1, 0]);
    }

    #[test]
    fn rows_tied_for_the_last_place_are_included() {
        let column: ArrayRef = Arc::new(Int32Array::from(vec![5, 9, 5, 7, 5]));
        let rows = RecordBatch::try_from_iter([("a", column)]).unwrap();
        let order = vec![OrderKey { column: 0, descending: true }];
        let count = |rows_wanted: u64, order: &[OrderKey]| {
            first_rows(&rows, &Top { rows: rows_wanted, order: order.to_vec() }).unwrap().num_rows()
        };
        assert_eq!([0, 1, 2, 3, 4, 9].map(|wanted| count(wanted, &order)), [0, 1, 2, 5, 5, 5]);
        assert_eq!(count(3, &[]), 3);
    }
}
