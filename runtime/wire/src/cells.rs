//! Cells of rows as plain text, for formats that put markup around them.
//!
//! In: the columns of a result, and a batch. Out: the text of one cell after another: numbers with all their digits,
//! times as in JSON. A number that is not finite is `INF`, `-INF` or `NaN`, as in XML Schema. Not here: escaping.

use arrow::array::RecordBatch;
use terrane_compiler::sql::ResultColumn;

use crate::json::{Column, Numbers, Scratch};

/// The cells of a batch.
pub struct TextCells<'a> {
    columns: Vec<Column<'a>>,
    scratch: Scratch,
}

impl<'a> TextCells<'a> {
    /// Creates the reader of a batch. Columns of the batch after `columns` are ignored.
    pub fn new(columns: &'a [ResultColumn], batch: &'a RecordBatch) -> Self {
        let columns = columns.iter().zip(batch.columns());
        let columns = columns.map(|(column, array)| Column::new(array, &column.format, Numbers::Plain)).collect();
        TextCells { columns, scratch: Scratch::default() }
    }

    /// Appends a cell, and returns whether it has a value.
    ///
    /// # Panics
    /// If the row or the column does not exist.
    pub fn write(&mut self, row: usize, column: usize, out: &mut Vec<u8>) -> bool {
        let column = &self.columns[column];
        match column.not_finite(row) {
            Some(text) => out.extend_from_slice(text.as_bytes()),
            None => return column.write_unquoted(row, out, &mut self.scratch),
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Float32Array, Float64Array, StringArray};
    use terrane_compiler::model::DimensionType;
    use terrane_compiler::sql::ColumnFormat;

    use super::*;

    #[test]
    fn non_finite_numbers_are_written_as_words() {
        let doubles = [Some(f64::INFINITY), Some(f64::NEG_INFINITY), Some(f64::NAN), Some(0.5), None];
        let floats = doubles.map(|value| value.map(|value| value as f32));
        let texts = ["a", "b", "c", "d", "\"e\""];
        let arrays: [(&str, ArrayRef); 3] = [
            ("double", Arc::new(Float64Array::from(doubles.to_vec()))),
            ("float", Arc::new(Float32Array::from(floats.to_vec()))),
            ("text", Arc::new(StringArray::from(texts.to_vec()))),
        ];
        let batch = RecordBatch::try_from_iter(arrays).unwrap();
        let column = |ty| ResultColumn { key: "c".into(), is_measure: true, ty, format: ColumnFormat::Plain };
        let columns = [DimensionType::Number, DimensionType::Number, DimensionType::String].map(column);
        let mut cells = TextCells::new(&columns, &batch);
        let mut cell = |row, column| {
            let mut out = Vec::new();
            cells.write(row, column, &mut out).then(|| String::from_utf8(out).unwrap())
        };
        for column in [0, 1] {
            let found: Vec<_> = (0..5).map(|row| cell(row, column)).collect();
            let expected = [Some("INF"), Some("-INF"), Some("NaN"), Some("0.5"), None];
            assert_eq!(found, expected.map(|text| text.map(str::to_owned)));
        }
        assert_eq!(cell(4, 2).unwrap(), "\"e\"");
    }
}
