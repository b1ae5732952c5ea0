//! Rows as CSV (RFC 4180).
//!
//! In: what the compiler says of the columns, and record batches. Out: a header row of the keys, then
//! a record a row, each ended by CRLF. Null is empty, an empty text is `""`; numbers, times and labels
//! read as in JSON; lists and objects are JSON. Not here: guarding spreadsheets against texts that
//! begin with `=`, which would change the data; whoever opens a file in one has to import it as text.

use arrow::array::RecordBatch;
use terrane_compiler::sql::ResultColumn;

use crate::json::{Column, Numbers, Scratch};

/// Writes the records of batches.
#[derive(Debug)]
pub(crate) struct CsvRows {
    columns: Vec<ResultColumn>,
}

impl CsvRows {
    pub(crate) fn new(columns: Vec<ResultColumn>) -> Self {
        CsvRows { columns }
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
            .map(|(column, array)| Column::new(array, &column.format, Numbers::Plain))
            .collect();
        let mut scratch = Scratch::default();
        out.reserve(batch.num_rows() * cells.len() * 8);
        for row in 0..batch.num_rows() {
            for (index, cell) in cells.iter().enumerate() {
                separate(index, out);
                let start = out.len();
                if cell.write_bare(row, out, &mut scratch) {
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

/// Puts quotes around the field that begins at `start`, where it needs them.
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
