//! Rows as an Arrow IPC stream.
//!
//! In: what the compiler says of the columns, and record batches. Out: the messages of a stream, each
//! batch on its own, so that several can be written at once. Columns are named by their keys. Time
//! buckets are the labels that JSON has; other times stay Arrow's own, instants in the query's zone.

use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, RecordBatch, Scalar, StringBuilder, make_array, new_null_array};
use arrow::compute::is_not_null;
use arrow::compute::kernels::zip::zip;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow_ipc::writer::{DictionaryTracker, EncodedData, IpcDataGenerator, IpcWriteOptions, write_message};
use bytes::Bytes;
use terrane_compiler::sql::{ColumnFormat, ResultColumn};

use crate::json::{Column, Numbers, Scratch};

/// The end of a stream: a continuation marker, and a message of no bytes.
const END: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];

/// Writes batches as messages.
#[derive(Debug)]
pub(crate) struct ArrowRows {
    columns: Vec<ResultColumn>,
    schema: SchemaRef,
    options: IpcWriteOptions,
}

impl ArrowRows {
    /// `stored`: the schema of the batches, which may have further columns behind `columns`.
    pub(crate) fn new(columns: Vec<ResultColumn>, stored: &Schema) -> Self {
        let fields = columns
            .iter()
            .zip(stored.fields())
            .map(|(column, field)| Field::new(&*column.key, shown_type(field.data_type(), &column.format), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        ArrowRows { columns, schema, options: IpcWriteOptions::default() }
    }

    pub(crate) fn head(&self) -> Result<Vec<Bytes>, ArrowError> {
        let schema = self.schema_message(&mut DictionaryTracker::new(false));
        message(schema, &self.options).map(|parts| parts.into())
    }

    pub(crate) fn batch(&self, batch: &RecordBatch) -> Result<Vec<Bytes>, ArrowError> {
        let shown: Result<Vec<ArrayRef>, ArrowError> =
            self.columns.iter().zip(batch.columns()).map(|(column, array)| shown(array, &column.format)).collect();
        let shown = RecordBatch::try_new(self.schema.clone(), shown?)?;
        let mut tracker = DictionaryTracker::new(false);
        // Numbers the dictionaries as the head did; each batch brings its own along.
        self.schema_message(&mut tracker);
        let generator = IpcDataGenerator::default();
        let (dictionaries, rows) = generator.encode(&shown, &mut tracker, &self.options, &mut Default::default())?;
        let mut out = Vec::with_capacity(2 * (dictionaries.len() + 1));
        for encoded in dictionaries.into_iter().chain([rows]) {
            out.extend(message(encoded, &self.options)?);
        }
        Ok(out)
    }

    pub(crate) fn end(&self) -> Bytes {
        Bytes::from_static(&END)
    }

    fn schema_message(&self, tracker: &mut DictionaryTracker) -> EncodedData {
        IpcDataGenerator::default().schema_to_bytes_with_dictionary_tracker(&self.schema, tracker, &self.options)
    }
}

/// The head of a message, and its data as they are: they are most of it, and need no copy.
fn message(mut encoded: EncodedData, options: &IpcWriteOptions) -> Result<[Bytes; 2], ArrowError> {
    let data = std::mem::take(&mut encoded.arrow_data);
    let mut head = Vec::with_capacity(encoded.ipc_message.len() + 64);
    write_message(&mut head, encoded, options)?;
    Ok([head.into(), data.into()])
}

fn is_bucket(format: &ColumnFormat) -> bool {
    matches!(format, ColumnFormat::Date(_) | ColumnFormat::Clock(_) | ColumnFormat::InstantBucket(..))
}

fn shown_type(stored: &DataType, format: &ColumnFormat) -> DataType {
    match (stored, format) {
        (DataType::Date32 | DataType::Date64 | DataType::Timestamp(..), format) if is_bucket(format) => DataType::Utf8,
        (DataType::Timestamp(unit, _), ColumnFormat::Instant(zone)) => {
            DataType::Timestamp(*unit, Some(zone.iana_name().unwrap_or("UTC").into()))
        }
        (other, _) => other.clone(),
    }
}

fn shown(array: &ArrayRef, format: &ColumnFormat) -> Result<ArrayRef, ArrowError> {
    let ty = shown_type(array.data_type(), format);
    if ty == *array.data_type() {
        return without_bytes_under_nulls(array);
    }
    if ty == DataType::Utf8 {
        return Ok(labels(array, format));
    }
    without_bytes_under_nulls(&array.to_data().into_builder().data_type(ty).build().map(make_array)?)
}

/// What an engine leaves under a null may be anything, a value that somebody must not see too.
fn without_bytes_under_nulls(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    if array.null_count() == 0 {
        return Ok(array.clone());
    }
    let null = new_null_array(array.data_type(), 1);
    zip(&is_not_null(array)?, array, &Scalar::new(null))
}

fn labels(array: &ArrayRef, format: &ColumnFormat) -> ArrayRef {
    let column = Column::new(array, format, Numbers::Plain);
    let mut labels = StringBuilder::with_capacity(array.len(), array.len() * 10);
    let (mut scratch, mut label) = (Scratch::default(), Vec::new());
    for row in 0..array.len() {
        label.clear();
        let is_value = column.write_unquoted(row, &mut label, &mut scratch);
        // Labels are digits and signs.
        labels.append_option(std::str::from_utf8(&label).ok().filter(|_| is_value));
    }
    Arc::new(labels.finish())
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int64Array, StringArray};
    use arrow::buffer::{NullBuffer, ScalarBuffer};

    use super::*;

    #[test]
    fn nothing_lies_under_a_null() {
        let nulls = NullBuffer::from(vec![true, false, true]);
        let numbers = Int64Array::new(ScalarBuffer::from(vec![1, 0x5ec2e7, 3]), Some(nulls.clone()));
        let sent = without_bytes_under_nulls(&(Arc::new(numbers) as ArrayRef)).expect("numbers");
        assert_eq!(sent.to_data().buffers()[0].typed_data::<i64>(), [1, 0, 3]);
        assert_eq!(sent.null_count(), 1);
        let hidden = StringArray::from(vec!["a", "secret", "b"]);
        let texts = StringArray::new(hidden.offsets().clone(), hidden.values().clone(), Some(nulls));
        let sent = without_bytes_under_nulls(&(Arc::new(texts) as ArrayRef)).expect("texts");
        assert_eq!(sent.to_data().buffers()[1].as_slice(), b"ab");
    }
}
