//! Rows as JSON values in columns' order, and as a table for a person.
//!
//! In: Arrow batches and what their columns mean. Out: the values that the server would send, because
//! they come from its writer. Not here: comparing them (`expectations`).

use anyhow::{Context as _, Result};
use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, SchemaRef};
use comfy_table::{Cell, CellAlignment, Table, presets};
use jiff::tz::TimeZone;
use serde_json::{Map, Value};
use terrane_app::query::Answer;
use terrane_compiler::model::DimensionType;
use terrane_compiler::sql::{ColumnFormat, ResultColumn};
use terrane_wire::json::{Numbers, write_rows};

/// The rows of an answer as a client would see them.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    pub columns: Vec<String>,
    /// Which columns hold doubles, whose last digits mean nothing.
    pub is_double: Vec<bool>,
    pub rows: Vec<Vec<Value>>,
}

impl Rows {
    /// The rows of a query.
    ///
    /// # Errors
    /// What the writer wrote is no JSON: a fault of the program.
    pub fn of_answer(answer: &Answer) -> Result<Self> {
        let types = answer.batches.first().map(|batch| batch.schema());
        Rows::render(&answer.columns, &answer.batches, types.as_ref())
    }

    /// The rows of a statement written by hand, whose columns are named like the query's.
    ///
    /// # Errors
    /// As [`Rows::of_answer`].
    pub fn of_statement(schema: &SchemaRef, batches: &[RecordBatch]) -> Result<Self> {
        let column = |field: &arrow::datatypes::FieldRef| ResultColumn {
            key: field.name().as_str().into(),
            is_measure: false,
            ty: DimensionType::Number,
            format: match field.data_type() {
                DataType::Timestamp(_, Some(_)) => ColumnFormat::Instant(TimeZone::UTC),
                DataType::Timestamp(_, None) | DataType::Date32 | DataType::Date64 => ColumnFormat::WallClock,
                _ => ColumnFormat::Plain,
            },
        };
        let columns: Vec<ResultColumn> = schema.fields().iter().map(column).collect();
        Rows::render(&columns, batches, Some(schema))
    }

    fn render(columns: &[ResultColumn], batches: &[RecordBatch], schema: Option<&SchemaRef>) -> Result<Self> {
        let mut bytes = Vec::new();
        write_rows(columns, batches, Numbers::Plain, &mut bytes);
        let objects: Vec<Map<String, Value>> =
            serde_json::from_slice(&bytes).context("reading the rows just written")?;
        let is_double = |index: usize| {
            let ty = schema.and_then(|schema| schema.fields().get(index)).map(|field| field.data_type());
            matches!(ty, Some(DataType::Float16 | DataType::Float32 | DataType::Float64))
        };
        Ok(Rows {
            columns: columns.iter().map(|column| column.key.to_string()).collect(),
            is_double: (0..columns.len()).map(is_double).collect(),
            rows: objects.into_iter().map(|object| object.into_iter().map(|(_, value)| value).collect()).collect(),
        })
    }

    /// A table with a line a row; numbers stand at the right.
    pub fn table(&self, width: Option<u16>) -> String {
        let mut table = Table::new();
        table.load_style(presets::UTF8_FULL_CONDENSED);
        match width {
            Some(width) => table.set_content_arrangement(comfy_table::ContentArrangement::Dynamic).set_width(width),
            None => table.set_content_arrangement(comfy_table::ContentArrangement::Disabled),
        };
        let alignment = |column: usize| {
            let is_number =
                |row: &Vec<Value>| row.get(column).is_some_and(|value| value.is_number() || value.is_null());
            let has_number = self.rows.iter().any(|row| row.get(column).is_some_and(Value::is_number));
            if has_number && self.rows.iter().all(is_number) { CellAlignment::Right } else { CellAlignment::Left }
        };
        let alignments: Vec<CellAlignment> = (0..self.columns.len()).map(alignment).collect();
        let cells = |texts: Vec<String>| {
            texts
                .into_iter()
                .zip(&alignments)
                .map(|(text, side)| Cell::new(text).set_alignment(*side))
                .collect::<Vec<_>>()
        };
        table.set_header(cells(self.columns.iter().map(|name| printable(name)).collect()));
        for row in &self.rows {
            table.add_row(cells(row.iter().map(shown).collect()));
        }
        table.to_string()
    }
}

/// A value in a table: a text without quotes, and `null` for what is missing.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => printable(text),
        other => other.to_string(),
    }
}

/// Data may hold escape codes; a terminal must not obey them.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
