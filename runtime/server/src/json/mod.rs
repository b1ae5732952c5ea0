//! Rows as JSON, written straight from Arrow columns: no row object in between.
//!
//! In: what the compiler says of the columns, and record batches. Out: the bytes of a JSON array of
//! objects keyed by member reference. Keys are escaped once, each batch's columns are downcast once.
//! Not here: the body around the rows, CSV and Arrow.

mod column;
mod text;
mod time;
mod value;

use arrow::array::RecordBatch;
use terrane_compiler::sql::ResultColumn;

use column::{Column, Scratch};
pub use text::write_string;
pub use value::write_value;

/// How numbers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Numbers {
    /// As JSON numbers, decimals and large integers with all their digits.
    #[default]
    Plain,
    /// As JSON strings, for clients whose numbers are doubles.
    Strings,
}

/// Appends the rows as a JSON array. The batches may have further columns behind `columns`; they are
/// not written. An Arrow type that no engine here returns is written as its text.
pub fn write_rows(columns: &[ResultColumn], batches: &[RecordBatch], numbers: Numbers, out: &mut Vec<u8>) {
    let keys: Vec<Vec<u8>> = columns.iter().enumerate().map(|(index, column)| key(index, column)).collect();
    let mut scratch = Scratch::default();
    let mut is_first = true;
    out.push(b'[');
    for batch in batches {
        let cells: Vec<Column<'_>> = columns
            .iter()
            .zip(batch.columns())
            .map(|(column, array)| Column::new(array, &column.format, numbers))
            .collect();
        out.reserve(batch.num_rows() * keys.iter().map(|key| key.len() + 8).sum::<usize>());
        for row in 0..batch.num_rows() {
            if !is_first {
                out.push(b',');
            }
            is_first = false;
            for (key, cell) in keys.iter().zip(&cells) {
                out.extend_from_slice(key);
                cell.write(row, out, &mut scratch);
            }
            out.extend_from_slice(if keys.is_empty() { b"{}" } else { b"}" });
        }
    }
    out.push(b']');
}

/// `{"flights.count":` for the first column, `,"flights.count":` for the others.
fn key(index: usize, column: &ResultColumn) -> Vec<u8> {
    let mut key = vec![if index == 0 { b'{' } else { b',' }];
    write_string(&column.key, &mut key);
    key.push(b':');
    key
}
