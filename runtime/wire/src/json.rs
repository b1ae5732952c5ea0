//! Rows as JSON, written straight from Arrow columns: no row object in between.
//!
//! In: the columns of a query, and record batches. Out: the bytes of a JSON array of objects keyed by member
//! reference. Keys are escaped once, each batch's columns are downcast once. Absent on purpose: the body around the
//! rows, CSV and Arrow.

mod column;
mod text;
mod time;
mod unquoted;
mod value;

use arrow::array::RecordBatch;
use terrane_compiler::sql::ResultColumn;

pub(crate) use column::{Column, Scratch};
pub use text::write_string;
pub use value::write_value;

/// The form of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Numbers {
    /// As JSON numbers, decimals and large integers with all their digits.
    #[default]
    Plain,
    /// As JSON strings, for clients whose numbers are doubles.
    Strings,
    /// As doubles: rounded where a double has fewer digits.
    Doubles,
}

impl Numbers {
    /// Returns the form for a format without quoted numbers.
    pub(crate) fn unquoted(self) -> Self {
        if self == Numbers::Strings { Numbers::Plain } else { self }
    }
}

/// Appends the rows as a JSON array. Further columns of the batches, behind `columns`, are not written. A value of an
/// unknown Arrow type is written as its text.
pub fn write_rows(columns: &[ResultColumn], batches: &[RecordBatch], numbers: Numbers, out: &mut Vec<u8>) {
    let rows = JsonRows::new(columns.to_vec(), numbers);
    let mut is_first = true;
    out.push(b'[');
    for batch in batches {
        rows.write(batch, is_first, out);
        is_first &= batch.num_rows() == 0;
    }
    out.push(b']');
}

/// Writes the objects of batches, with commas between them.
#[derive(Debug)]
pub(crate) struct JsonRows {
    columns: Vec<ResultColumn>,
    keys: Vec<Vec<u8>>,
    numbers: Numbers,
}

impl JsonRows {
    pub(crate) fn new(columns: Vec<ResultColumn>, numbers: Numbers) -> Self {
        let keys = columns.iter().enumerate().map(|(index, column)| key(index, column)).collect();
        JsonRows { columns, keys, numbers }
    }

    /// Appends the rows of a batch. `is_first`: no row was written before.
    pub(crate) fn write(&self, batch: &RecordBatch, mut is_first: bool, out: &mut Vec<u8>) {
        let cells: Vec<Column<'_>> = self
            .columns
            .iter()
            .zip(batch.columns())
            .map(|(column, array)| Column::new(array, &column.format, self.numbers))
            .collect();
        let mut scratch = Scratch::default();
        out.reserve(batch.num_rows() * self.keys.iter().map(|key| key.len() + 8).sum::<usize>());
        for row in 0..batch.num_rows() {
            if !is_first {
                out.push(b',');
            }
            is_first = false;
            for (key, cell) in self.keys.iter().zip(&cells) {
                out.extend_from_slice(key);
                cell.write(row, out, &mut scratch);
            }
            out.extend_from_slice(if self.keys.is_empty() { b"{}" } else { b"}" });
        }
    }
}

/// Returns `{"flights.count":` for the first column, `,"flights.count":` for the others.
fn key(index: usize, column: &ResultColumn) -> Vec<u8> {
    let mut key = vec![if index == 0 { b'{' } else { b',' }];
    write_string(&column.key, &mut key);
    key.push(b':');
    key
}
