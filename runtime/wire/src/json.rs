//! Rows as JSON, written straight from Arrow columns: no row object in between.
//!
//! In: the columns of a query, and record batches. Out: the bytes of a JSON array of objects keyed by member reference.
//! Keys are escaped once, each batch's columns are downcast once. Not here: the body around the rows, CSV and Arrow.

mod column;
mod text;
mod time;
mod unquoted;
mod value;

use std::sync::Arc;

use arrow::array::RecordBatch;
use terrane_app::ports::result_cache::StoredResult;
use terrane_compiler::sql::ResultColumn;

pub(crate) use column::{Column, Scratch};
pub use text::write_string;
pub use value::write_value;

/// The form of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Numbers {
    /// Decimals and large integers are JSON numbers with all their digits.
    #[default]
    Plain,
    /// Decimals and large integers are JSON strings, for clients whose numbers are doubles.
    Strings,
    /// All numbers are doubles, rounded if necessary.
    Doubles,
    /// Numbers that a double holds exactly as JSON numbers; decimals, and integers beyond 2^53, as JSON strings.
    Exact,
}

impl Numbers {
    /// Returns the form for a format without quoted numbers.
    pub(crate) fn unquoted(self) -> Self {
        if matches!(self, Numbers::Strings | Numbers::Exact) { Numbers::Plain } else { self }
    }

    /// Returns the number of the form, which is part of the key of encoded rows in a stored result.
    pub fn form(self) -> u8 {
        match self {
            Numbers::Plain => 0,
            Numbers::Strings => 1,
            Numbers::Doubles => 2,
            Numbers::Exact => 3,
        }
    }
}

/// Appends the rows as a JSON array. Columns of the batches after `columns` are not written. A value of an unknown
/// Arrow type is written as a string.
pub fn write_rows(columns: &[ResultColumn], batches: &[RecordBatch], numbers: Numbers, out: &mut Vec<u8>) {
    out.push(b'[');
    write_objects(columns, batches, numbers, out);
    out.push(b']');
}

/// Returns the objects of a stored result's rows, with commas between them. The bytes of a small result are stored with
/// it, so that all queries with the same columns and form share them.
pub fn shared_rows(stored: &StoredResult, columns: &[ResultColumn], numbers: Numbers) -> Arc<[u8]> {
    if let Some(rows) = stored.encoded.get(numbers.form(), columns) {
        return rows;
    }
    let mut out = Vec::new();
    write_objects(columns, &stored.rows.batches, numbers, &mut out);
    let rows: Arc<[u8]> = out.into();
    stored.encode_rows(numbers.form(), columns, &rows);
    rows
}

/// Appends the rows as objects with commas between them, without the brackets of a list.
pub fn write_objects(columns: &[ResultColumn], batches: &[RecordBatch], numbers: Numbers, out: &mut Vec<u8>) {
    let rows = JsonRows::new(columns.to_vec(), numbers);
    let mut is_first = true;
    for batch in batches {
        rows.write(batch, is_first, out);
        is_first &= batch.num_rows() == 0;
    }
}

/// Appends the only row as an object; null if there is none.
pub fn write_row(columns: &[ResultColumn], batches: &[RecordBatch], numbers: Numbers, out: &mut Vec<u8>) {
    let start = out.len();
    write_objects(columns, batches, numbers, out);
    if out.len() == start {
        out.extend_from_slice(b"null");
    }
}

/// Appends the rows as lists of values with commas between them, without the brackets of the outer list.
pub fn write_lists(columns: &[ResultColumn], batches: &[RecordBatch], numbers: Numbers, out: &mut Vec<u8>) {
    let mut is_first = true;
    let mut scratch = Scratch::default();
    for batch in batches {
        let cells = cells(columns, batch, numbers);
        for row in 0..batch.num_rows() {
            if !is_first {
                out.push(b',');
            }
            is_first = false;
            out.push(b'[');
            for (index, cell) in cells.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                cell.write(row, out, &mut scratch);
            }
            out.push(b']');
        }
    }
}

fn cells<'a>(columns: &'a [ResultColumn], batch: &'a RecordBatch, numbers: Numbers) -> Vec<Column<'a>> {
    let cells = columns.iter().zip(batch.columns());
    cells.map(|(column, array)| Column::new(array, &column.format, numbers)).collect()
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

    /// Appends the rows of a batch. `is_first` is true if no row was written before.
    pub(crate) fn write(&self, batch: &RecordBatch, mut is_first: bool, out: &mut Vec<u8>) {
        let cells = cells(&self.columns, batch, self.numbers);
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
