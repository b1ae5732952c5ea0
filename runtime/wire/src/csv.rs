//! Rows as CSV (RFC 4180).
//!
//! In: the columns of a query, and record batches. Out: a header row of the keys, then one record for each row, each
//! ended by CRLF. Null is empty, an empty string is `""`; numbers, times and labels are written as in JSON; lists and
//! objects are JSON. Not here: an escape for strings that begin with `=`, which spreadsheets take for formulas, because
//! an escape would change the data.

use arrow::array::RecordBatch;
use terrane_compiler::sql::ResultColumn;

use crate::json::{Column, Numbers, Scratch};

/// Writes batches as records.
#[derive(Debug)]
pub(crate) struct CsvRows {
    columns: Vec<ResultColumn>,
    numbers: Numbers,
}

impl CsvRows {
    pub(crate) fn new(columns: Vec<ResultColumn>, numbers: Numbers) -> Self {
        CsvRows { columns, numbers }
    }

    pub(crate) fn write_head(&self, out: &mut Vec<u8>) {
        for (index, column) in self.columns.iter().enumerate() {
            separate(index, out);
            let start = out.len();
            out.extend_from_slice(column.key.as_bytes());
            quote(start, out);
        }
        out.extend_from_slice(b"\r\n");
    }

    pub(crate) fn write(&self, batch: &RecordBatch, out: &mut Vec<u8>) {
        let cells: Vec<Column<'_>> = self
            .columns
            .iter()
            .zip(batch.columns())
            .map(|(column, array)| Column::new(array, &column.format, self.numbers.unquoted()))
            .collect();
        let mut scratch = Scratch::default();
        out.reserve(batch.num_rows() * cells.len() * 8);
        for row in 0..batch.num_rows() {
            for (index, cell) in cells.iter().enumerate() {
                separate(index, out);
                let start = out.len();
                if cell.write_unquoted(row, out, &mut scratch) {
                    quote(start, out);
                }
            }
            out.extend_from_slice(b"\r\n");
        }
    }
}

fn separate(index: usize, out: &mut Vec<u8>) {
    if index > 0 {
        out.push(b',');
    }
}

/// Quotes the field that begins at `start`, if it needs quotes.
fn quote(start: usize, out: &mut Vec<u8>) {
    let field = &out[start..];
    let is_plain = !field.is_empty() && !field.iter().any(|byte| matches!(byte, b',' | b'"' | b'\r' | b'\n'));
    if is_plain {
        return;
    }
    let field = out.split_off(start);
    out.push(b'"');
    for byte in field {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    out.push(b'"');
}
