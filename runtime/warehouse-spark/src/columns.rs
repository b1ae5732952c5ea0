//! The Arrow types of columns, which are those that the other adapters return for the corresponding values.
//!
//! In: Spark's types from a description, or the Arrow types of batches. Out: one schema without the server's metadata:
//! integers have 64 bits, text and bytes have 32-bit offsets, times have microseconds, and instants are in UTC.
//! Decimals have their declared scale. A column whose type has no Arrow type is refused, with the column's name.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::cast;
use arrow::datatypes::{DataType as ArrowType, Field, FieldRef, Fields, IntervalUnit, Schema, SchemaRef, TimeUnit};
use terrane_app::ports::warehouse::WarehouseError;

use crate::failure::{refused, unsupported_type};
use crate::protocol::{DataType, DataTypeKind, StructType};

const UTC: &str = "UTC";
/// The largest precision of Spark's decimals. A decimal without a declared scale has [`DEFAULT_SCALE`].
const MAX_PRECISION: u8 = 38;
const DEFAULT_SCALE: i8 = 18;

/// Returns the schema of a description, which is a structure with a field for each column.
///
/// # Errors
/// A column has a type without an Arrow type.
pub(crate) fn described(described: &DataType) -> Result<SchemaRef, WarehouseError> {
    match &described.kind {
        Some(DataTypeKind::Struct(columns)) => Ok(Arc::new(Schema::new(fields(columns)?))),
        _ => Err(refused("the server described no columns".to_owned())),
    }
}

/// Returns the schema to which batches are converted.
///
/// # Errors
/// Returns the same errors as [`described`].
pub(crate) fn of_batches(schema: &Schema) -> Result<SchemaRef, WarehouseError> {
    let fields: Vec<Field> = schema
        .fields()
        .iter()
        .map(|field| {
            let ty = normal(field.data_type()).ok_or_else(|| unsupported(field.name()))?;
            Ok(Field::new(field.name(), ty, true))
        })
        .collect::<Result<_, WarehouseError>>()?;
    Ok(Arc::new(Schema::new(fields)))
}

/// Converts a batch to the schema of [`of_batches`].
///
/// # Errors
/// The columns of the batch differ from those of the first batch.
pub(crate) fn convert(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, WarehouseError> {
    let broken = |error: arrow::error::ArrowError| refused(error.to_string());
    let columns = batch.columns().iter().zip(schema.fields()).map(|(column, field)| {
        if column.data_type() == field.data_type() { Ok(Arc::clone(column)) } else { cast(column, field.data_type()) }
    });
    let columns: Vec<ArrayRef> = columns.collect::<Result<_, _>>().map_err(broken)?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options).map_err(broken)
}

fn fields(columns: &StructType) -> Result<Vec<Field>, WarehouseError> {
    let field = |column: &crate::protocol::StructField| {
        let ty = column.data_type.as_ref().and_then(arrow_type).ok_or_else(|| unsupported(&column.name))?;
        Ok(Field::new(&column.name, ty, true))
    };
    columns.fields.iter().map(field).collect()
}

fn unsupported(column: &str) -> WarehouseError {
    unsupported_type(format!("column `{column}` is of a type that has no Arrow type: cast it to STRING"))
}

/// Returns the Arrow type of a Spark type, or `None` if no Arrow type corresponds to it.
fn arrow_type(ty: &DataType) -> Option<ArrowType> {
    Some(match ty.kind.as_ref()? {
        DataTypeKind::Null(_) => ArrowType::Null,
        DataTypeKind::Boolean(_) => ArrowType::Boolean,
        DataTypeKind::Byte(_) | DataTypeKind::Short(_) | DataTypeKind::Integer(_) | DataTypeKind::Long(_) => {
            ArrowType::Int64
        }
        DataTypeKind::Float(_) => ArrowType::Float32,
        DataTypeKind::Double(_) => ArrowType::Float64,
        DataTypeKind::Decimal(decimal) => {
            let precision = decimal.precision.map_or(Some(MAX_PRECISION), |n| u8::try_from(n).ok())?;
            let scale = decimal.scale.map_or(Some(DEFAULT_SCALE), |n| i8::try_from(n).ok())?;
            (precision <= MAX_PRECISION).then_some(ArrowType::Decimal128(precision, scale))?
        }
        DataTypeKind::String(_) | DataTypeKind::Char(_) | DataTypeKind::VarChar(_) => ArrowType::Utf8,
        DataTypeKind::Binary(_) => ArrowType::Binary,
        DataTypeKind::Date(_) => ArrowType::Date32,
        DataTypeKind::Timestamp(_) => ArrowType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())),
        DataTypeKind::TimestampNtz(_) => ArrowType::Timestamp(TimeUnit::Microsecond, None),
        DataTypeKind::Time(_) => ArrowType::Time64(TimeUnit::Microsecond),
        DataTypeKind::CalendarInterval(_) | DataTypeKind::YearMonthInterval(_) | DataTypeKind::DayTimeInterval(_) => {
            ArrowType::Interval(IntervalUnit::MonthDayNano)
        }
        DataTypeKind::Array(array) => ArrowType::List(item("item", arrow_type(array.element_type.as_deref()?)?)),
        DataTypeKind::Struct(columns) => ArrowType::Struct(fields(columns).ok()?.into()),
        DataTypeKind::Map(map) => {
            map_of(arrow_type(map.key_type.as_deref()?)?, arrow_type(map.value_type.as_deref()?)?)
        }
        DataTypeKind::UserDefined(_) | DataTypeKind::Unparsed(_) | DataTypeKind::Variant(_) => return None,
    })
}

/// Returns the type to which columns of an Arrow type are converted. Returns `None` if no adapter returns a
/// corresponding type.
fn normal(ty: &ArrowType) -> Option<ArrowType> {
    Some(match ty {
        ArrowType::Int8
        | ArrowType::Int16
        | ArrowType::Int32
        | ArrowType::Int64
        | ArrowType::UInt8
        | ArrowType::UInt16
        | ArrowType::UInt32 => ArrowType::Int64,
        ArrowType::LargeUtf8 | ArrowType::Utf8View => ArrowType::Utf8,
        ArrowType::LargeBinary | ArrowType::BinaryView | ArrowType::FixedSizeBinary(_) => ArrowType::Binary,
        ArrowType::Date64 => ArrowType::Date32,
        ArrowType::Timestamp(_, zone) => ArrowType::Timestamp(TimeUnit::Microsecond, zone.as_ref().map(|_| UTC.into())),
        ArrowType::Time32(_) | ArrowType::Time64(_) => ArrowType::Time64(TimeUnit::Microsecond),
        ArrowType::Duration(_) | ArrowType::Interval(_) => ArrowType::Interval(IntervalUnit::MonthDayNano),
        ArrowType::Dictionary(_, value) => normal(value)?,
        ArrowType::List(element) | ArrowType::LargeList(element) => {
            ArrowType::List(item("item", normal(element.data_type())?))
        }
        ArrowType::Struct(fields) => {
            let field = |field: &FieldRef| Some(Field::new(field.name(), normal(field.data_type())?, true));
            ArrowType::Struct(fields.iter().map(field).collect::<Option<Fields>>()?)
        }
        ArrowType::Map(entries, _) => match entries.data_type() {
            ArrowType::Struct(fields) if fields.len() == 2 => {
                map_of(normal(fields[0].data_type())?, normal(fields[1].data_type())?)
            }
            _ => return None,
        },
        ArrowType::Null
        | ArrowType::Boolean
        | ArrowType::UInt64
        | ArrowType::Float32
        | ArrowType::Float64
        | ArrowType::Utf8
        | ArrowType::Binary
        | ArrowType::Date32
        | ArrowType::Decimal128(..)
        | ArrowType::Decimal256(..) => ty.clone(),
        _ => return None,
    })
}

fn item(name: &str, ty: ArrowType) -> FieldRef {
    Arc::new(Field::new(name, ty, true))
}

fn map_of(key: ArrowType, value: ArrowType) -> ArrowType {
    let entries = Fields::from(vec![Field::new("key", key, false), Field::new("value", value, true)]);
    ArrowType::Map(Arc::new(Field::new("entries", ArrowType::Struct(entries), false)), false)
}

#[cfg(test)]
mod tests {
    use arrow::array::{AsArray as _, Int8Array, LargeStringArray, TimestampMillisecondArray};
    use arrow::datatypes::{Int64Type, TimestampMicrosecondType};
    use terrane_app::ports::warehouse::RefusalCause;

    use super::*;
    use crate::protocol::{Empty, StructField};

    fn column(name: &str, kind: DataTypeKind) -> StructField {
        StructField { name: name.to_owned(), data_type: Some(DataType { kind: Some(kind) }) }
    }

    fn structure(fields: Vec<StructField>) -> DataType {
        DataType { kind: Some(DataTypeKind::Struct(StructType { fields })) }
    }

    #[test]
    fn batches_are_converted_to_the_types_of_all_adapters() {
        let moments = TimestampMillisecondArray::from(vec![Some(1_500), None]).with_timezone("Etc/UTC");
        let batch = RecordBatch::try_from_iter([
            ("n", Arc::new(Int8Array::from(vec![Some(-7), None])) as ArrayRef),
            ("t", Arc::new(LargeStringArray::from(vec![Some("a"), None]))),
            ("at", Arc::new(moments)),
        ])
        .unwrap();
        let schema = of_batches(&batch.schema()).unwrap();
        let converted = convert(&batch, &schema).unwrap();
        assert_eq!(converted.column(0).as_primitive::<Int64Type>().iter().collect::<Vec<_>>(), [Some(-7), None]);
        assert_eq!(converted.column(1).as_string::<i32>().iter().collect::<Vec<_>>(), [Some("a"), None]);
        assert_eq!(converted.column(2).as_primitive::<TimestampMicrosecondType>().value(0), 1_500_000);
        let instant = ArrowType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        assert_eq!(schema.field(2).data_type(), &instant);
    }

    #[test]
    fn column_without_an_arrow_type_is_refused_by_name() {
        let described_error = described(&structure(vec![
            column("n", DataTypeKind::Long(Empty {})),
            column("v", DataTypeKind::Variant(Empty {})),
        ]))
        .unwrap_err();
        assert_eq!(described_error.cause, RefusalCause::UnsupportedType);
        assert!(described_error.message.contains("`v`"), "{described_error}");
        let unknown = StructField { name: "new".to_owned(), data_type: Some(DataType { kind: None }) };
        assert_eq!(described(&structure(vec![unknown])).unwrap_err().cause, RefusalCause::UnsupportedType);
    }

    #[test]
    fn description_without_columns_is_refused() {
        assert!(described(&DataType { kind: Some(DataTypeKind::Long(Empty {})) }).is_err());
        assert!(described(&DataType { kind: None }).is_err());
        assert_eq!(described(&structure(Vec::new())).unwrap().fields().len(), 0);
    }

    #[test]
    fn nested_types_are_converted_inside() {
        let small = |name| Field::new(name, ArrowType::Int32, false);
        let entries = ArrowType::Struct(vec![small("k"), small("v")].into());
        let map = ArrowType::Map(Arc::new(Field::new("m", entries, false)), false);
        assert_eq!(normal(&map), Some(map_of(ArrowType::Int64, ArrowType::Int64)));
        let list = ArrowType::LargeList(Arc::new(small("element")));
        assert_eq!(normal(&list), Some(ArrowType::List(item("item", ArrowType::Int64))));
        assert_eq!(
            normal(&ArrowType::List(item(
                "u",
                ArrowType::RunEndEncoded(item("r", ArrowType::Int32), item("v", ArrowType::Int32))
            ))),
            None
        );
    }
}
