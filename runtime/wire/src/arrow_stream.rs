//! Rows as an Arrow IPC stream.
//!
//! In: the columns of a query, and record batches. Out: the messages of a stream, one batch at a time, so that several
//! can be encoded at once. Columns are named by their keys. Time buckets are strings, with the labels of the JSON
//! format; other times have Arrow's own types, and instants are in the query's zone. A measure without a fraction
//! becomes an integer of 64 bits if all values that are known before the schema is written fit. Other decimals keep
//! their scale.

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
use crate::numbers::{fits_int64, is_integral, to_doubles, to_int64};

/// The end of a stream: a continuation marker, and the length of an empty message.
const END: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];

/// Encodes batches as messages.
#[derive(Debug)]
pub(crate) struct ArrowRows {
    columns: Vec<ResultColumn>,
    /// The form of each column.
    forms: Vec<NumberForm>,
    schema: SchemaRef,
    options: IpcWriteOptions,
}

impl ArrowRows {
    /// Creates the encoder. `stored` is the schema of the batches, which may have more columns after `columns`.
    pub(crate) fn new(columns: Vec<ResultColumn>, stored: &Schema, numbers: Numbers) -> Self {
        let form = |column: &ResultColumn, stored: &DataType| {
            if numbers == Numbers::Doubles && stored.is_numeric() {
                NumberForm::Double
            } else if is_integral(column, stored) {
                NumberForm::Int64
            } else {
                NumberForm::Stored
            }
        };
        let forms: Vec<NumberForm> =
            columns.iter().zip(stored.fields()).map(|(column, field)| form(column, field.data_type())).collect();
        let schema = schema(&columns, &forms, stored);
        ArrowRows { columns, forms, schema, options: IpcWriteOptions::default() }
    }

    /// Keeps the stored type of integral columns with values that do not fit 64 bits. Must be called before the head is
    /// encoded, with the batches that are known by then.
    pub(crate) fn widen(&mut self, batches: &[RecordBatch]) {
        let Some(first) = batches.first() else { return };
        for (index, form) in self.forms.iter_mut().enumerate() {
            let fits = |batch: &RecordBatch| batch.columns().get(index).is_none_or(fits_int64);
            if *form == NumberForm::Int64 && !batches.iter().all(fits) {
                *form = NumberForm::Stored;
            }
        }
        self.schema = schema(&self.columns, &self.forms, &first.schema());
    }

    pub(crate) fn head(&self) -> Result<Vec<Bytes>, ArrowError> {
        let schema = self.schema_message(&mut DictionaryTracker::new(false));
        message(schema, &self.options).map(|parts| parts.into())
    }

    pub(crate) fn batch(&self, batch: &RecordBatch) -> Result<Vec<Bytes>, ArrowError> {
        let columns = self.columns.iter().zip(&self.forms).zip(batch.columns());
        let shown: Result<Vec<ArrayRef>, ArrowError> =
            columns.map(|((column, form), array)| shown(&form.convert(array)?, &column.format)).collect();
        let shown = RecordBatch::try_new(self.schema.clone(), shown?)?;
        let mut tracker = DictionaryTracker::new(false);
        // Gives the dictionaries the same ids as the head does. Each batch repeats its dictionaries.
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

/// Returns the head of a message, and its data without a copy.
fn message(mut encoded: EncodedData, options: &IpcWriteOptions) -> Result<[Bytes; 2], ArrowError> {
    let data = std::mem::take(&mut encoded.arrow_data);
    let mut head = Vec::with_capacity(encoded.ipc_message.len() + 64);
    write_message(&mut head, encoded, options)?;
    Ok([head.into(), data.into()])
}

/// The form of a column's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NumberForm {
    Stored,
    Int64,
    Double,
}

impl NumberForm {
    fn ty(self, stored: &DataType) -> DataType {
        match self {
            NumberForm::Stored => stored.clone(),
            NumberForm::Int64 => DataType::Int64,
            NumberForm::Double => DataType::Float64,
        }
    }

    fn convert(self, array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
        match self {
            NumberForm::Stored => Ok(array.clone()),
            NumberForm::Int64 => to_int64(array),
            NumberForm::Double => Ok(to_doubles(array).map_or_else(|| array.clone(), |doubles| Arc::new(doubles) as _)),
        }
    }
}

fn schema(columns: &[ResultColumn], forms: &[NumberForm], stored: &Schema) -> SchemaRef {
    let fields = columns.iter().zip(forms).zip(stored.fields()).map(|((column, form), field)| {
        Field::new(&*column.key, shown_type(&form.ty(field.data_type()), &column.format), true)
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
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

/// Clears the bytes under nulls. An engine may leave any value there, even one that the caller must not see.
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
        // Labels consist of digits and signs, so they are UTF-8.
        labels.append_option(std::str::from_utf8(&label).ok().filter(|_| is_value));
    }
    Arc::new(labels.finish())
}

#[cfg(test)]
mod tests {
    use arrow::array::{AsArray as _, Decimal128Array, Int64Array, StringArray};
    use arrow::buffer::{NullBuffer, ScalarBuffer};
    use arrow::datatypes::{Float64Type, Int64Type};
    use arrow_ipc::reader::StreamReader;
    use terrane_compiler::model::DimensionType;

    use super::*;

    fn decimals(values: Vec<i128>, scale: i8) -> ArrayRef {
        let array = Decimal128Array::from(values).with_precision_and_scale(38, scale);
        Arc::new(array.expect("38 digits"))
    }

    /// Returns a measure without a fraction, a measure with one, and a dimension.
    fn batch(total: i128) -> RecordBatch {
        let columns =
            [("total", decimals(vec![total], 0)), ("price", decimals(vec![1_250], 2)), ("id", decimals(vec![7], 0))];
        RecordBatch::try_from_iter(columns).expect("columns of one length")
    }

    fn columns() -> Vec<ResultColumn> {
        let column = |key: &str| ResultColumn {
            key: key.into(),
            is_measure: key != "id",
            ty: DimensionType::Number,
            format: ColumnFormat::Plain,
        };
        ["total", "price", "id"].map(column).to_vec()
    }

    /// Returns the Arrow stream of a first batch, and of a later one that is unknown when the head is written.
    fn stream(first: &RecordBatch, later: Option<&RecordBatch>, numbers: Numbers) -> Result<Vec<u8>, ArrowError> {
        let mut rows = ArrowRows::new(columns(), &first.schema(), numbers);
        rows.widen(std::slice::from_ref(first));
        let mut bytes = rows.head()?.concat();
        for batch in [first].into_iter().chain(later) {
            bytes.extend(rows.batch(batch)?.concat());
        }
        bytes.extend_from_slice(&rows.end());
        Ok(bytes)
    }

    fn read(bytes: &[u8]) -> RecordBatch {
        StreamReader::try_new(bytes, None).expect("a stream").next().expect("a batch").expect("a batch")
    }

    #[test]
    fn sum_that_fits_is_int64_and_decimals_keep_their_scale() {
        let sent = read(&stream(&batch(42), None, Numbers::Plain).expect("a stream"));
        assert_eq!(sent.column(0).as_primitive::<Int64Type>().value(0), 42);
        assert_eq!(*sent.column(1).data_type(), DataType::Decimal128(38, 2));
        assert_eq!(*sent.column(2).data_type(), DataType::Decimal128(38, 0));
    }

    #[test]
    fn sum_beyond_64_bits_keeps_its_digits() {
        let sent = read(&stream(&batch(i128::from(i64::MAX) + 1), None, Numbers::Plain).expect("a stream"));
        assert_eq!(*sent.column(0).data_type(), DataType::Decimal128(38, 0));
    }

    #[test]
    fn sum_beyond_64_bits_after_the_head_is_an_error() {
        let (first, later) = (batch(42), batch(i128::from(i64::MAX) + 1));
        assert!(stream(&first, Some(&later), Numbers::Plain).is_err());
        assert!(stream(&first, Some(&later), Numbers::Doubles).is_ok());
    }

    #[test]
    fn doubles_are_sent_for_every_number() {
        let sent = read(&stream(&batch(42), None, Numbers::Doubles).expect("a stream"));
        let doubles = sent.columns().iter().map(|column| column.as_primitive::<Float64Type>().value(0));
        assert_eq!(doubles.collect::<Vec<_>>(), [42.0, 12.5, 7.0]);
    }

    #[test]
    fn bytes_under_nulls_are_cleared() {
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
