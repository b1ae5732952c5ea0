//! The comparison of the totals of a new table with those of the rows that it was built from, for all adapters.
//!
//! In: one row of totals computed from the cube's rows, and one computed from the table. Out: an error if they differ.

use arrow::array::{Array as _, AsArray as _, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use terrane_compiler::rollup::TotalColumn;

use super::rollup_tables::RollupTableError;
use super::warehouse::ResultSet;

/// The largest relative difference of two sums of doubles that have the same terms in a different order.
const TOLERANCE: f64 = 1e-9;

/// Compares the totals of a table with the totals of the rows that it was built from.
///
/// # Errors
/// `NotVerified` names the first total that differs.
pub fn compare(columns: &[TotalColumn], base: &ResultSet, stored: &ResultSet) -> Result<(), RollupTableError> {
    let rows = total(base, 0).as_number();
    for (index, column) in columns.iter().enumerate() {
        let (base, stored) = (total(base, index), total(stored, index));
        let is_equal = match column.is_exact {
            true => base == stored && base != Total::Missing,
            false => base.is_close(&stored, rows),
        };
        if !is_equal {
            let (column, base, stored) = (column.name.clone(), base.to_string(), stored.to_string());
            return Err(RollupTableError::NotVerified { column, base, stored });
        }
    }
    Ok(())
}

/// Compares the totals of a table with those of the rows before and after the table was built, for warehouses without a
/// snapshot of several statements. Returns false if the rows changed.
///
/// # Errors
/// `NotVerified` names the first total that differs, if the rows did not change.
pub fn compare_unchanged(
    columns: &[TotalColumn],
    before: &ResultSet,
    after: &ResultSet,
    stored: &ResultSet,
) -> Result<bool, RollupTableError> {
    if compare(columns, before, after).is_err() {
        return Ok(false);
    }
    compare(columns, after, stored)?;
    Ok(true)
}

/// A total, independent of the type in which the engine returned it.
#[derive(Debug, Clone, PartialEq)]
enum Total {
    /// The result has no such column, or no row.
    Missing,
    Null,
    /// The digits of a number, without trailing zeros after the point.
    Number(String),
}

fn total(rows: &ResultSet, index: usize) -> Total {
    let batch = rows.batches.iter().find(|batch: &&RecordBatch| batch.num_rows() > 0);
    let Some(column) = batch.and_then(|batch| batch.columns().get(index)) else { return Total::Missing };
    if column.is_null(0) {
        return Total::Null;
    }
    // Arrow would format a double in its shortest form, which can have an exponent. `to_string` writes all digits.
    if column.data_type().is_floating()
        && let Ok(doubles) = cast(column, &DataType::Float64)
        && let Some(doubles) = doubles.as_primitive_opt::<Float64Type>()
    {
        return Total::Number(without_zeros(&doubles.value(0).to_string()));
    }
    let options = FormatOptions::default();
    match ArrayFormatter::try_new(column, &options) {
        Ok(texts) => Total::Number(without_zeros(&texts.value(0).to_string())),
        Err(_) => Total::Missing,
    }
}

/// Removes the zeros at the end of a number's fraction, which depend on its type.
fn without_zeros(text: &str) -> String {
    match text.contains('.') {
        true => match text.trim_end_matches('0').trim_end_matches('.') {
            "-0" => "0".to_owned(),
            digits => digits.to_owned(),
        },
        false => text.to_owned(),
    }
}

impl Total {
    fn as_number(&self) -> f64 {
        match self {
            Total::Number(text) => text.parse().unwrap_or(f64::NAN),
            Total::Missing | Total::Null => 0.0,
        }
    }

    /// Returns whether two sums of doubles differ only as much as the order of their terms can explain.
    fn is_close(&self, other: &Total, rows: f64) -> bool {
        match (self, other) {
            (Total::Number(_), Total::Number(_)) => {
                let (one, other) = (self.as_number(), other.as_number());
                let is_same = one == other || (one.is_nan() && other.is_nan());
                is_same || (one - other).abs() <= TOLERANCE * one.abs().max(other.abs()).max(rows)
            }
            (one, other) => one == other && *one != Total::Missing,
        }
    }
}

impl std::fmt::Display for Total {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Total::Missing => f.write_str("no value"),
            Total::Null => f.write_str("null"),
            Total::Number(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at its first fault")]

    use std::sync::Arc;

    use arrow::array::{ArrayRef, Decimal128Array, Float64Array, Int64Array};

    use super::*;

    fn rows(columns: Vec<ArrayRef>) -> ResultSet {
        let named = columns.into_iter().enumerate().map(|(index, column)| (format!("a{index}"), column, true));
        let batch = RecordBatch::try_from_iter_with_nullable(named).unwrap();
        ResultSet { schema: batch.schema(), batches: vec![batch] }
    }

    fn integers(values: &[Option<i64>]) -> ResultSet {
        rows(values.iter().map(|value| Arc::new(Int64Array::from(vec![*value])) as ArrayRef).collect())
    }

    fn exact(names: &[&str]) -> Vec<TotalColumn> {
        names.iter().map(|name| TotalColumn { name: (*name).to_owned(), is_exact: true }).collect()
    }

    #[test]
    fn equal_totals_of_other_types_are_equal() {
        let decimal = Decimal128Array::from(vec![1_200_i128]).with_precision_and_scale(38, 2).unwrap();
        compare(&exact(&["a0"]), &integers(&[Some(12)]), &rows(vec![Arc::new(decimal)])).unwrap();
        compare(&exact(&["a0", "a1"]), &integers(&[Some(0), None]), &integers(&[Some(0), None])).unwrap();
    }

    #[test]
    fn total_that_differs_is_named() {
        let columns = exact(&["a0", "a1"]);
        for (base, stored) in [(Some(7), Some(8)), (Some(0), None), (None, Some(0))] {
            let compared = compare(&columns, &integers(&[Some(3), base]), &integers(&[Some(3), stored]));
            let RollupTableError::NotVerified { column, .. } = compared.unwrap_err() else { panic!() };
            assert_eq!(column, "a1", "{base:?} {stored:?}");
        }
        // A result without a row proves nothing.
        let empty = ResultSet { schema: integers(&[Some(1)]).schema, batches: Vec::new() };
        assert!(compare(&columns, &integers(&[Some(0), Some(0)]), &empty).is_err());
        assert!(compare(&columns, &empty, &empty).is_err());
    }

    #[test]
    fn sums_of_doubles_may_differ_by_their_order() {
        let column = |is_exact| vec![TotalColumn { name: "a0".to_owned(), is_exact }];
        let double = |value: f64| rows(vec![Arc::new(Float64Array::from(vec![value]))]);
        compare(&column(false), &double(1e12), &double(1e12 + 1.0)).unwrap();
        assert!(compare(&column(true), &double(1e12), &double(1e12 + 1.0)).is_err());
        assert!(compare(&column(false), &double(1e12), &double(1e12 + 1e4)).is_err());
    }
}
