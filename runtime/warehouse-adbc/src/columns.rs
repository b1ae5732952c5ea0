//! The Arrow types of columns, which are those that the other adapters return for the corresponding values.
//!
//! In: the columns of a driver. Out: columns without the driver's metadata: integers have 64 bits, text and bytes have
//! 32-bit offsets, times have microseconds, and instants are in UTC. The names of extension types are the only metadata
//! that is used. Decimals that a driver sends as text are converted after the last row, because their scale is that of
//! the rows. A column whose type has no Arrow type is refused, with the column's name.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, AsArray as _, RecordBatch, RecordBatchOptions, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, IntervalUnit, Schema, SchemaRef, TimeUnit};
use arrow::error::ArrowError;
use terrane_app::ports::warehouse::WarehouseError;

use crate::decimals;
use crate::failure::Failures;

const UTC: &str = "UTC";
const EXTENSION_NAME: &str = "ARROW:extension:name";
const EXTENSION_METADATA: &str = "ARROW:extension:metadata";
/// The length of a UUID in bytes.
const UUID_BYTES: i32 = 16;

/// The way in which a column is converted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Conversion {
    Same,
    Cast,
    /// Bytes become the digits and hyphens of a UUID.
    Uuid,
    /// Text becomes decimals when all rows are known.
    Decimals,
}

/// The columns of one statement.
#[derive(Debug)]
pub(crate) struct Columns {
    /// The schema of the rows. Decimals that arrive as text have a nominal type.
    pub(crate) schema: SchemaRef,
    conversions: Vec<Conversion>,
    failures: Failures,
}

impl Columns {
    /// Returns the columns for the schema of a driver.
    ///
    /// # Errors
    /// A column has a type without an Arrow type.
    pub(crate) fn new(schema: &Schema, failures: &Failures) -> Result<Columns, WarehouseError> {
        let (mut fields, mut conversions) = (Vec::new(), Vec::new());
        for field in schema.fields() {
            let (ty, conversion) = target(field).ok_or_else(|| failures.unsupported_type(field.name()))?;
            fields.push(Field::new(field.name(), ty, true));
            conversions.push(conversion);
        }
        Ok(Columns { schema: Arc::new(Schema::new(fields)), conversions, failures: failures.clone() })
    }

    /// Returns true if the types of some columns are known only after the last row.
    pub(crate) fn need_all_rows(&self) -> bool {
        self.conversions.contains(&Conversion::Decimals)
    }

    /// Converts a batch to the columns' schema.
    ///
    /// # Errors
    /// The batch has different columns, or a column is known only after the last row.
    pub(crate) fn convert(&self, batch: &RecordBatch) -> Result<RecordBatch, WarehouseError> {
        record_batch(&self.schema, self.converted(batch)?, batch.num_rows()).map_err(|error| self.broken(&error))
    }

    /// Converts all rows of a statement, with decimals of the narrowest type.
    ///
    /// # Errors
    /// A value is not a decimal.
    pub(crate) fn convert_all(&self, batches: &[RecordBatch]) -> Result<(SchemaRef, Vec<RecordBatch>), WarehouseError> {
        let mut parts: Vec<Vec<ArrayRef>> =
            batches.iter().map(|batch| self.converted(batch)).collect::<Result<_, _>>()?;
        let mut fields: Vec<FieldRef> = self.schema.fields().iter().cloned().collect();
        let of_text =
            self.conversions.iter().enumerate().filter(|(_, conversion)| **conversion == Conversion::Decimals);
        for (index, _) in of_text {
            let texts: Vec<&StringArray> = parts.iter().filter_map(|part| part[index].as_string_opt()).collect();
            let arrays = decimals::convert(&texts).map_err(|error| self.failures.refused(error.to_string()))?;
            let ty = arrays.first().map_or(decimals::NOMINAL, |array| array.data_type().clone());
            fields[index] = Arc::new(Field::new(self.schema.field(index).name(), ty, true));
            for (part, array) in parts.iter_mut().zip(arrays) {
                part[index] = array;
            }
        }
        let schema = Arc::new(Schema::new(fields));
        let rows = parts.into_iter().zip(batches).map(|(part, batch)| record_batch(&schema, part, batch.num_rows()));
        let batches = rows.collect::<Result<_, _>>().map_err(|error| self.broken(&error))?;
        Ok((schema, batches))
    }

    fn converted(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>, WarehouseError> {
        let columns = batch.columns().iter().zip(&self.conversions).zip(self.schema.fields());
        let converted = columns.map(|((column, conversion), field)| match conversion {
            Conversion::Same => Ok(Arc::clone(column)),
            Conversion::Cast => cast(column, field.data_type()),
            Conversion::Uuid => Ok(uuids(column)),
            Conversion::Decimals => cast(column, &DataType::Utf8),
        });
        converted.collect::<Result<_, _>>().map_err(|error| self.broken(&error))
    }

    pub(crate) fn broken(&self, error: &ArrowError) -> WarehouseError {
        self.failures.refused(format!("the driver returned rows that cannot be read: {error}"))
    }
}

fn record_batch(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch, ArrowError> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
}

/// Returns the type of a column and its conversion. Returns `None` if no adapter returns a corresponding type.
fn target(field: &Field) -> Option<(DataType, Conversion)> {
    let ty = field.data_type();
    let is_text = matches!(ty, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    let extension = field.metadata().get(EXTENSION_NAME).map(String::as_str);
    match (extension, ty) {
        (Some("arrow.uuid"), DataType::FixedSizeBinary(UUID_BYTES)) => return Some((DataType::Utf8, Conversion::Uuid)),
        (Some("arrow.opaque"), _) => match opaque_type(field.metadata()).as_str() {
            "numeric" | "decimal" if is_text => return Some((decimals::NOMINAL, Conversion::Decimals)),
            "xml" => return Some((DataType::Utf8, Conversion::Cast)),
            // The format of the bytes is specific to the database.
            _ if !is_text => return None,
            _ => {}
        },
        _ => {}
    }
    let target = normal(ty)?;
    let conversion = if target == *ty { Conversion::Same } else { Conversion::Cast };
    Some((target, conversion))
}

/// Returns the database's name of a type that Arrow does not have, in lower case.
fn opaque_type(metadata: &HashMap<String, String>) -> String {
    let metadata = metadata.get(EXTENSION_METADATA).map_or("", String::as_str);
    let metadata: serde_json::Value = serde_json::from_str(metadata).unwrap_or_default();
    metadata["type_name"].as_str().unwrap_or_default().to_lowercase()
}

/// Returns the type to which columns of an Arrow type are converted. Returns `None` if no adapter returns a
/// corresponding type.
fn normal(ty: &DataType) -> Option<DataType> {
    Some(match ty {
        DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::UInt8
        | DataType::UInt16
        | DataType::UInt32 => DataType::Int64,
        DataType::Float16 => DataType::Float32,
        DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
            DataType::Decimal128(*precision, *scale)
        }
        DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => DataType::Binary,
        DataType::Date64 => DataType::Date32,
        DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Microsecond, zone.as_ref().map(|_| UTC.into())),
        DataType::Time32(_) | DataType::Time64(_) => DataType::Time64(TimeUnit::Microsecond),
        DataType::Duration(_) | DataType::Interval(_) => DataType::Interval(IntervalUnit::MonthDayNano),
        DataType::Dictionary(_, value) => normal(value)?,
        DataType::List(element) | DataType::LargeList(element) => {
            DataType::List(Arc::new(Field::new("item", target_of_part(element)?, true)))
        }
        DataType::Struct(fields) => {
            let field = |field: &FieldRef| Some(Field::new(field.name(), target_of_part(field)?, true));
            DataType::Struct(fields.iter().map(field).collect::<Option<Fields>>()?)
        }
        DataType::Null
        | DataType::Boolean
        | DataType::UInt64
        | DataType::Float32
        | DataType::Float64
        | DataType::Utf8
        | DataType::Binary
        | DataType::Date32
        | DataType::Decimal128(..)
        | DataType::Decimal256(..) => ty.clone(),
        _ => return None,
    })
}

/// Returns the type of a part of a list or structure. Extension types inside other types are refused, because their
/// values cannot be converted there.
fn target_of_part(field: &FieldRef) -> Option<DataType> {
    if field.metadata().contains_key(EXTENSION_NAME) { None } else { normal(field.data_type()) }
}

fn uuids(column: &ArrayRef) -> ArrayRef {
    let bytes = column.as_fixed_size_binary();
    let text = |bytes: &[u8]| {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
    };
    Arc::new(bytes.iter().map(|bytes| bytes.map(text)).collect::<StringArray>())
}

#[cfg(test)]
mod tests {
    use arrow::array::{FixedSizeBinaryArray, Int16Array};
    use arrow::datatypes::Int64Type;

    use super::*;

    fn failures() -> Failures {
        Failures { warehouse: "postgres".into() }
    }

    fn extension(name: &str, ty: DataType, extension: &str, metadata: &str) -> Field {
        let metadata = [(EXTENSION_NAME, extension), (EXTENSION_METADATA, metadata)];
        let metadata = metadata.map(|(key, value)| (key.to_owned(), value.to_owned()));
        Field::new(name, ty, true).with_metadata(metadata.into_iter().collect())
    }

    fn numeric(name: &str) -> Field {
        let metadata = r#"{"type_name": "numeric", "vendor_name": "PostgreSQL"}"#;
        extension(name, DataType::Utf8, "arrow.opaque", metadata)
    }

    #[test]
    fn foreign_metadata_is_removed() {
        let own = [("POSTGRESQL:type".to_owned(), "int2".to_owned())];
        let field = Field::new("a", DataType::Int16, false).with_metadata(own.into_iter().collect());
        let schema = Schema::new_with_metadata(vec![field], [("k".to_owned(), "v".to_owned())].into_iter().collect());
        let columns = Columns::new(&schema, &failures()).unwrap();
        assert_eq!(*columns.schema, Schema::new(vec![Field::new("a", DataType::Int64, true)]));
        let batch = RecordBatch::try_new(Arc::new(schema), vec![Arc::new(Int16Array::from(vec![-1, 7]))]).unwrap();
        let batch = columns.convert(&batch).unwrap();
        assert_eq!(batch.column(0).as_primitive::<Int64Type>().values()[..], [-1, 7]);
        assert!(batch.schema().metadata().is_empty() && batch.schema().field(0).metadata().is_empty());
    }

    #[test]
    fn decimals_as_text_have_one_type_in_all_batches() {
        let schema = Arc::new(Schema::new(vec![numeric("n")]));
        let columns = Columns::new(&schema, &failures()).unwrap();
        assert!(columns.need_all_rows());
        assert_eq!(columns.schema.field(0).data_type(), &decimals::NOMINAL);
        let batch = |texts: Vec<&str>| {
            RecordBatch::try_new(schema.clone(), vec![Arc::new(StringArray::from(texts)) as ArrayRef]).unwrap()
        };
        let (schema, batches) = columns.convert_all(&[batch(vec!["1"]), batch(vec!["0.25", "nan"])]).unwrap();
        assert_eq!(schema.field(0).data_type(), &DataType::Decimal128(38, 2));
        assert!(batches.iter().all(|batch| batch.schema() == schema));
        let error = columns.convert_all(&[batch(vec!["one"])]).unwrap_err();
        assert!(error.message.contains("`one`"), "{}", error.message);
        let (schema, batches) = columns.convert_all(&[]).unwrap();
        assert_eq!((schema.field(0).data_type(), batches.len()), (&decimals::NOMINAL, 0));
    }

    #[test]
    fn uuid_is_written_as_text() {
        let schema = Schema::new(vec![extension("u", DataType::FixedSizeBinary(16), "arrow.uuid", "")]);
        let columns = Columns::new(&schema, &failures()).unwrap();
        let bytes: Vec<u8> = (0..16).collect();
        let array = FixedSizeBinaryArray::try_from_iter([bytes].into_iter()).unwrap();
        let batch = RecordBatch::try_new(Arc::new(schema), vec![Arc::new(array)]).unwrap();
        let batch = columns.convert(&batch).unwrap();
        assert_eq!(batch.column(0).as_string::<i32>().value(0), "00010203-0405-0607-0809-0a0b0c0d0e0f");
    }

    #[test]
    fn type_that_only_the_database_knows_is_refused() {
        let inet = extension("address", DataType::Binary, "arrow.opaque", r#"{"type_name": "inet"}"#);
        let list = DataType::List(Arc::new(numeric("item")));
        for field in [inet, Field::new("address", list, true)] {
            let error = Columns::new(&Schema::new(vec![field]), &failures()).unwrap_err();
            assert!(error.message.contains("`address`"), "{error}");
            assert_eq!(error.cause, terrane_app::ports::warehouse::RefusalCause::UnsupportedType);
        }
    }
}
