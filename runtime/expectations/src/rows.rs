//! Rows as JSON values in the order of their columns.
//!
//! In: Arrow batches and the meaning of their columns. Out: the values that the server sends, because the server's
//! writer makes them. Not here: comparing rows (`compare`), drawing tables (cli).

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, SchemaRef};
use jiff::tz::TimeZone;
use serde_json::{Map, Value};
use terrane_app::query::Answer;
use terrane_compiler::model::DimensionType;
use terrane_compiler::sql::{ColumnFormat, ResultColumn};
use terrane_wire::json::{Numbers, write_rows};

/// The rows that a client receives.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    pub columns: Vec<String>,
    /// For each column, true if its values are doubles. The last digits of doubles are not compared.
    pub is_double: Vec<bool>,
    pub rows: Vec<Vec<Value>>,
}

impl Rows {
    /// Returns the rows of a query's answer.
    ///
    /// # Errors
    /// The server's writer wrote invalid JSON, which is a bug.
    pub fn of_answer(answer: &Answer) -> Result<Self, serde_json::Error> {
        Rows::of_batches(&answer.columns, &answer.batches)
    }

    /// Returns the rows of batches with the columns of a query.
    ///
    /// # Errors
    /// Returns the same errors as [`Rows::of_answer`].
    pub fn of_batches(columns: &[ResultColumn], batches: &[RecordBatch]) -> Result<Self, serde_json::Error> {
        Rows::render(columns, batches, batches.first().map(RecordBatch::schema).as_ref())
    }

    /// Returns the rows of a statement that an author wrote. Its columns must be named like the keys of a query's
    /// result.
    ///
    /// # Errors
    /// Returns the same errors as [`Rows::of_answer`].
    pub fn of_statement(schema: &SchemaRef, batches: &[RecordBatch]) -> Result<Self, serde_json::Error> {
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

    fn render(
        columns: &[ResultColumn],
        batches: &[RecordBatch],
        schema: Option<&SchemaRef>,
    ) -> Result<Self, serde_json::Error> {
        let mut bytes = Vec::new();
        write_rows(columns, batches, Numbers::Plain, &mut bytes);
        let objects: Vec<Map<String, Value>> = serde_json::from_slice(&bytes)?;
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
}
