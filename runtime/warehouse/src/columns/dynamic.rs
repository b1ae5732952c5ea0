//! Columns in which each cell has its own type. All cells together decide the type of the column.
//!
//! In: cells, and the type that the query expects. Out: one Arrow array without loss of information. Integers stay
//! integers. A mixture of integers and reals becomes doubles if each value is exact as a double. Any other mixture
//! becomes text. Strings become times only if the query expects a time.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Float64Array, Int64Array, NullArray, StringArray,
    TimestampMicrosecondArray,
};
use arrow::error::ArrowError;
use terrane_compiler::model::DimensionType;

use super::Meaning;
use super::times::{self, Parsed};

/// The largest bound up to which a double represents every integer exactly.
const EXACT_IN_DOUBLE: u64 = 1 << 53;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
    Binary(Vec<u8>),
}

#[derive(Debug)]
pub(crate) struct DynamicCells {
    cells: Vec<Cell>,
    meaning: Option<Meaning>,
}

impl DynamicCells {
    pub(super) fn new(meaning: Option<Meaning>) -> Self {
        DynamicCells { cells: Vec::new(), meaning }
    }

    pub(crate) fn push(&mut self, cell: Cell) {
        self.cells.push(cell);
    }

    pub(super) fn finish(self) -> Result<ArrayRef, ArrowError> {
        let by_meaning = match self.meaning {
            Some(DimensionType::Time) => times(&self.cells),
            Some(DimensionType::Boolean) => booleans(&self.cells),
            _ => None,
        };
        Ok(by_meaning.unwrap_or_else(|| by_values(self.cells)))
    }
}

/// Returns the cells as dates, timestamps or instants. Returns `None` if a cell is not a time.
fn times(cells: &[Cell]) -> Option<ArrayRef> {
    let parse = |cell: &Cell| match cell {
        Cell::Null => Some(None),
        Cell::Text(text) => times::of_text(text).map(Some),
        Cell::Integer(seconds) => times::of_seconds(*seconds).map(Some),
        Cell::Real(_) | Cell::Binary(_) => None,
    };
    let parsed: Vec<Option<Parsed>> = cells.iter().map(parse).collect::<Option<_>>()?;
    let mut present = parsed.iter().flatten();
    if present.clone().all(|time| matches!(time, Parsed::Date(_))) {
        let days = parsed.iter().map(|time| match time {
            Some(Parsed::Date(days)) => Some(*days),
            _ => None,
        });
        return Some(Arc::new(days.collect::<Date32Array>()));
    }
    let micros: TimestampMicrosecondArray = parsed.iter().map(|time| time.map(Parsed::micros)).collect();
    let is_instant = present.any(|time| matches!(time, Parsed::Instant(_)));
    Some(if is_instant { Arc::new(micros.with_timezone("UTC")) } else { Arc::new(micros) })
}

/// Returns the cells as booleans. Returns `None` if a cell is neither 0 nor 1.
fn booleans(cells: &[Cell]) -> Option<ArrayRef> {
    let read = |cell: &Cell| match cell {
        Cell::Null => Some(None),
        Cell::Integer(0) => Some(Some(false)),
        Cell::Integer(1) => Some(Some(true)),
        _ => None,
    };
    let values: Vec<Option<bool>> = cells.iter().map(read).collect::<Option<_>>()?;
    Some(Arc::new(BooleanArray::from(values)))
}

fn by_values(cells: Vec<Cell>) -> ArrayRef {
    let has = |is: fn(&Cell) -> bool| cells.iter().any(is);
    let (integers, reals) = (has(|c| matches!(c, Cell::Integer(_))), has(|c| matches!(c, Cell::Real(_))));
    let (texts, binaries) = (has(|c| matches!(c, Cell::Text(_))), has(|c| matches!(c, Cell::Binary(_))));
    match (integers, reals, texts, binaries) {
        (false, false, false, false) => Arc::new(NullArray::new(cells.len())),
        (true, false, false, false) => Arc::new(cells.iter().map(integer).collect::<Int64Array>()),
        (_, true, false, false) if cells.iter().all(fits_double) => {
            Arc::new(cells.iter().map(double).collect::<Float64Array>())
        }
        (false, false, false, true) => Arc::new(cells.iter().map(binary).collect::<BinaryArray>()),
        _ => Arc::new(cells.into_iter().map(text).collect::<StringArray>()),
    }
}

fn integer(cell: &Cell) -> Option<i64> {
    if let Cell::Integer(value) = cell { Some(*value) } else { None }
}

fn fits_double(cell: &Cell) -> bool {
    integer(cell).is_none_or(|value| value.unsigned_abs() <= EXACT_IN_DOUBLE)
}

fn double(cell: &Cell) -> Option<f64> {
    match cell {
        Cell::Integer(value) => Some(*value as f64),
        Cell::Real(value) => Some(*value),
        _ => None,
    }
}

fn binary(cell: &Cell) -> Option<&[u8]> {
    if let Cell::Binary(bytes) = cell { Some(bytes) } else { None }
}

/// Returns a cell as text: numbers in the form of SQLite's cast, bytes in the form of SQLite's hexadecimal literals.
fn text(cell: Cell) -> Option<String> {
    match cell {
        Cell::Null => None,
        Cell::Integer(value) => Some(value.to_string()),
        Cell::Real(value) => Some(format!("{value:?}")),
        Cell::Text(text) => Some(text),
        Cell::Binary(bytes) => Some(format!("X'{}'", hex::encode_upper(bytes))),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array as _, AsArray as _};
    use arrow::datatypes::{DataType, TimeUnit};

    use super::*;

    fn column(meaning: Option<Meaning>, cells: &[Cell]) -> ArrayRef {
        let mut column = DynamicCells::new(meaning);
        cells.iter().for_each(|cell| column.push(cell.clone()));
        column.finish().unwrap()
    }

    fn text_cell(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }

    #[test]
    fn undeclared_type_is_derived_from_the_values() {
        let ty = |cells: &[Cell]| column(None, cells).data_type().clone();
        assert_eq!(ty(&[Cell::Null, Cell::Integer(1)]), DataType::Int64);
        assert_eq!(ty(&[Cell::Integer(1), Cell::Real(0.5)]), DataType::Float64);
        assert_eq!(ty(&[Cell::Integer(i64::MAX), Cell::Real(0.5)]), DataType::Utf8);
        assert_eq!(ty(&[Cell::Integer(1), text_cell("2024-01-31")]), DataType::Utf8);
        assert_eq!(ty(&[Cell::Binary(vec![0])]), DataType::Binary);
        assert_eq!(ty(&[Cell::Null]), DataType::Null);
        assert_eq!(ty(&[]), DataType::Null);
    }

    #[test]
    fn strings_become_times_only_in_time_columns() {
        let day = text_cell("2024-01-31");
        let clock = text_cell("2024-01-31 12:00:00");
        let micros = |zone: Option<&str>| DataType::Timestamp(TimeUnit::Microsecond, zone.map(Into::into));
        let ty = |cells: &[Cell]| column(Some(DimensionType::Time), cells).data_type().clone();
        assert_eq!(column(Some(DimensionType::String), std::slice::from_ref(&day)).data_type(), &DataType::Utf8);
        assert_eq!(ty(&[day.clone(), Cell::Null]), DataType::Date32);
        assert_eq!(ty(&[day.clone(), clock.clone()]), micros(None));
        assert_eq!(ty(&[clock.clone(), text_cell("2024-01-31T12:00:00Z")]), micros(Some("UTC")));
        assert_eq!(ty(&[Cell::Integer(0)]), micros(None));
        assert_eq!(ty(&[day, text_cell("soon")]), DataType::Utf8);
    }

    #[test]
    fn zero_and_one_become_booleans_only_in_boolean_columns() {
        let cells = [Cell::Integer(1), Cell::Null, Cell::Integer(0)];
        let array = column(Some(DimensionType::Boolean), &cells);
        let values: Vec<Option<bool>> = array.as_boolean().iter().collect();
        assert_eq!(values, [Some(true), None, Some(false)]);
        assert_eq!(column(Some(DimensionType::Boolean), &[Cell::Integer(2)]).data_type(), &DataType::Int64);
        assert_eq!(column(None, &cells).data_type(), &DataType::Int64);
    }
}
