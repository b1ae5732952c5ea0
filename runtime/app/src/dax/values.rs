//! Converts values between Arrow and DAX.
//!
//! In: finished rows of a semantic query. Out: the values that an evaluation computes with. In the other direction, the
//! values of a result become Arrow columns. Instants become local times in the zone of the query.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray as _, BooleanArray, Decimal128Array, Float64Array, Int64Array, RecordBatch,
    RecordBatchOptions, Scalar, StringArray, TimestampMicrosecondArray,
};
use arrow::compute::kernels::cmp::eq;
use arrow::compute::{CastOptions, cast_with_options, nullif};
use arrow::datatypes::{DataType, Decimal128Type, Field, Float64Type, Schema, TimeUnit, TimestampMicrosecondType};
use arrow::error::ArrowError;
use jiff::tz::TimeZone;
use terrane_compiler::sql::ColumnFormat;
use terrane_compiler::types::DimensionType;
use terrane_dax::Type;
use terrane_dax::evaluate::{Datum, Decimal, FetchedRows, TimeForm};

use crate::query::Answer;

pub(super) fn fetched(answer: &Answer) -> Result<FetchedRows, ArrowError> {
    let mut rows = Vec::with_capacity(answer.returned_rows as usize);
    for batch in &answer.batches {
        let columns = answer
            .columns
            .iter()
            .zip(batch.columns())
            .map(|(column, array)| data(array, &column.format))
            .collect::<Result<Vec<Vec<Datum>>, ArrowError>>()?;
        for at in 0..batch.num_rows() {
            rows.push(columns.iter().map(|column| column[at].clone()).collect());
        }
    }
    Ok(FetchedRows { rows })
}

fn data(array: &ArrayRef, format: &ColumnFormat) -> Result<Vec<Datum>, ArrowError> {
    fn all<T>(values: impl Iterator<Item = Option<T>>, datum: impl Fn(T) -> Datum) -> Vec<Datum> {
        values.map(|value| value.map_or(Datum::Blank, &datum)).collect()
    }
    Ok(match array.data_type() {
        DataType::Boolean => all(array.as_boolean().iter(), Datum::Boolean),
        DataType::Float16 | DataType::Float32 | DataType::Float64 => {
            let doubles = cast(array, &DataType::Float64)?;
            all(doubles.as_primitive::<Float64Type>().iter(), Datum::Double)
        }
        DataType::Decimal128(_, scale) if (0..=30).contains(scale) => {
            let scale = *scale as u8;
            all(array.as_primitive::<Decimal128Type>().iter(), |digits| number(digits, scale))
        }
        DataType::Decimal256(_, scale) => {
            // A decimal with more than 38 digits is converted to a double.
            let narrow = cast(array, &DataType::Decimal128(38, *scale));
            return data(&narrow.or_else(|_| cast(array, &DataType::Float64))?, format);
        }
        DataType::Decimal128(..) => {
            let doubles = cast(array, &DataType::Float64)?;
            all(doubles.as_primitive::<Float64Type>().iter(), Datum::Double)
        }
        DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => {
            let zone = match format {
                ColumnFormat::Instant(zone) | ColumnFormat::InstantBucket(_, zone) => Some(zone),
                _ => None,
            };
            let micros = cast(array, &DataType::Timestamp(TimeUnit::Microsecond, None))?;
            let local = |micros: Option<i64>| match (micros, zone) {
                (Some(micros), Some(zone)) => local(micros, zone).map(Datum::DateTime),
                (micros, _) => Ok(micros.map_or(Datum::Blank, Datum::DateTime)),
            };
            micros.as_primitive::<TimestampMicrosecondType>().iter().map(local).collect::<Result<_, ArrowError>>()?
        }
        kind if kind.is_integer() => {
            let wide = cast(array, &DataType::Decimal128(20, 0))?;
            all(wide.as_primitive::<Decimal128Type>().iter(), |digits| number(digits, 0))
        }
        _ => {
            let texts = cast(array, &DataType::LargeUtf8)?;
            all(texts.as_string::<i64>().iter(), |text| Datum::Text(text.into()))
        }
    })
}

fn number(digits: i128, scale: u8) -> Datum {
    match i64::try_from(digits) {
        Ok(integer) if scale == 0 => Datum::Integer(integer),
        _ => Datum::Decimal(Decimal::new(digits, scale)),
    }
}

/// Converts an instant to the local time of a zone, both in microseconds.
fn local(micros: i64, zone: &TimeZone) -> Result<i64, ArrowError> {
    let instant = jiff::Timestamp::from_microsecond(micros);
    let instant = instant.map_err(|_| ArrowError::ComputeError("time out of range".to_owned()))?;
    Ok(micros + i64::from(zone.to_offset(instant).seconds()) * 1_000_000)
}

/// Converts local times of a zone to instants. A local time that occurs twice becomes its first instant.
fn instants(array: &ArrayRef, zone: &TimeZone) -> Result<ArrayRef, ArrowError> {
    let out_of_range = || ArrowError::ComputeError("time out of range".to_owned());
    let instant = |micros: i64| {
        let local = jiff::Timestamp::from_microsecond(micros).map(|utc| TimeZone::UTC.to_datetime(utc));
        let instant = local.and_then(|local| zone.to_timestamp(local));
        instant.map(|instant| instant.as_microsecond()).map_err(|_| out_of_range())
    };
    let local = array.as_primitive::<TimestampMicrosecondType>();
    let instants: TimestampMicrosecondArray = local.try_unary(instant)?;
    Ok(Arc::new(instants.with_timezone("UTC")))
}

/// Converts an array. A value that does not fit is an error.
fn cast(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    cast_with_options(array, to, &CastOptions { safe: false, ..CastOptions::default() })
}

/// Returns a batch in which zeros are null in the columns that count rows, as DAX returns BLANK for them.
pub(super) fn without_zeros(batch: &RecordBatch, counts: &[bool]) -> Result<RecordBatch, ArrowError> {
    let column = |(array, is_count): (&ArrayRef, &bool)| {
        if !is_count {
            return Ok(Arc::clone(array));
        }
        let zero = cast(&(Arc::new(Int64Array::from(vec![0])) as ArrayRef), array.data_type())?;
        nullif(array, &eq(array, &Scalar::new(zero))?)
    };
    let arrays = batch.columns().iter().zip(counts).map(column).collect::<Result<Vec<ArrayRef>, ArrowError>>()?;
    let fields = batch
        .schema()
        .fields()
        .iter()
        .zip(counts)
        .map(|(field, is_count)| match is_count {
            true => field.as_ref().clone().with_nullable(true),
            false => field.as_ref().clone(),
        })
        .collect::<Vec<Field>>();
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)
}

/// Changes the type of integer columns whose values do not fit into 64 bits or have fractions.
pub(super) fn widen(types: &mut [Type], batches: &[RecordBatch]) {
    for (at, ty) in types.iter_mut().enumerate().filter(|(_, ty)| **ty == Type::Integer) {
        for array in batches.iter().filter_map(|batch| batch.columns().get(at)) {
            *ty = match array.data_type() {
                DataType::Float16 | DataType::Float32 | DataType::Float64 => Type::Double,
                DataType::Decimal128(_, 0) => {
                    let mut digits = array.as_primitive::<Decimal128Type>().iter().flatten();
                    if digits.any(|digits| i64::try_from(digits).is_err()) { Type::Decimal } else { *ty }
                }
                DataType::Decimal128(..) | DataType::Decimal256(..) => Type::Decimal,
                _ => *ty,
            };
        }
    }
}

/// Creates the batch of a result. A column of an open type gets the type of its values. Times become dates or, if they
/// are local times of `zone`, instants, by the form of their column.
pub(super) fn batch(
    types: &[Type],
    times: &[TimeForm],
    zone: &TimeZone,
    rows: &[Vec<Datum>],
) -> Result<(RecordBatch, Vec<DimensionType>), ArrowError> {
    let (mut fields, mut arrays, mut kinds) = (Vec::new(), Vec::new(), Vec::new());
    for (at, ty) in types.iter().enumerate() {
        let values: Vec<&Datum> = rows.iter().map(|row| &row[at]).collect();
        let (mut array, kind) = column(*ty, &values)?;
        array = match (kind, times[at]) {
            (DimensionType::Time, TimeForm::Date) => cast(&array, &DataType::Date32)?,
            (DimensionType::Time, TimeForm::Instant) => instants(&array, zone)?,
            _ => array,
        };
        fields.push(Field::new(format!("c{at}"), array.data_type().clone(), true));
        arrays.push(array);
        kinds.push(kind);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    let batch = RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)?;
    Ok((batch, kinds))
}

/// Returns whether each value is BLANK or satisfies `is_it`.
fn are_all(values: &[&Datum], is_it: impl Fn(&Datum) -> bool) -> bool {
    values.iter().all(|value| value.is_blank() || is_it(value))
}

fn column(ty: Type, values: &[&Datum]) -> Result<(ArrayRef, DimensionType), ArrowError> {
    let is_number =
        |value: &Datum| matches!(value, Datum::Integer(_) | Datum::Decimal(_) | Datum::Double(_) | Datum::Boolean(_));
    if ty != Type::Text
        && are_all(values, |value| matches!(value, Datum::Boolean(_)))
        && !ty.is_number()
        && ty != Type::DateTime
    {
        let found = values.iter().map(|value| match value {
            Datum::Boolean(value) => Some(*value),
            _ => None,
        });
        return Ok((Arc::new(found.collect::<BooleanArray>()), DimensionType::Boolean));
    }
    if are_all(values, |value| matches!(value, Datum::DateTime(_))) && ty != Type::Text && !ty.is_number() {
        let found = values.iter().map(|value| match value {
            Datum::DateTime(micros) => Some(*micros),
            _ => None,
        });
        return Ok((Arc::new(found.collect::<TimestampMicrosecondArray>()), DimensionType::Time));
    }
    if are_all(values, is_number) && ty != Type::Text {
        return Ok((numbers(ty, values)?, DimensionType::Number));
    }
    let found = values.iter().map(|value| value.to_text());
    Ok((Arc::new(found.collect::<StringArray>()), DimensionType::String))
}

/// Returns numbers as integers, decimals or doubles: the narrowest that holds all of them.
fn numbers(ty: Type, values: &[&Datum]) -> Result<ArrayRef, ArrowError> {
    if ty != Type::Double && are_all(values, |value| matches!(value, Datum::Integer(_) | Datum::Boolean(_))) {
        let found = values.iter().map(|value| match value {
            Datum::Integer(value) => Some(*value),
            Datum::Boolean(value) => Some(i64::from(*value)),
            _ => None,
        });
        return Ok(Arc::new(found.collect::<Int64Array>()));
    }
    let exact: Option<Vec<Option<Decimal>>> = values.iter().map(|value| value.to_decimal()).collect();
    if let Some(exact) = exact.filter(|_| ty != Type::Double) {
        let scale = exact.iter().flatten().map(|value| value.scale()).max().unwrap_or(0);
        let digits: Option<Vec<Option<i128>>> =
            exact.iter().map(|value| value.map_or(Some(None), |value| value.at_scale(scale).map(Some))).collect();
        if let Some(digits) = digits {
            return Ok(Arc::new(Decimal128Array::from(digits).with_precision_and_scale(38, scale as i8)?));
        }
    }
    Ok(Arc::new(values.iter().map(|value| value.to_double()).collect::<Float64Array>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_form_of_their_column() {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let forms = [TimeForm::Instant, TimeForm::WallClock, TimeForm::Date];
        // 2024-07-01T10:00:00, and 2024-10-27T02:30:00, which occurs twice in Berlin.
        let rows: Vec<Vec<Datum>> = [Some(1_719_828_000), Some(1_729_996_200), None]
            .map(|seconds: Option<i64>| seconds.map_or(Datum::Blank, |seconds| Datum::DateTime(seconds * 1_000_000)))
            .map(|time| vec![time; 3])
            .to_vec();
        let (batch, kinds) = batch(&[Type::DateTime; 3], &forms, &zone, &rows).unwrap();
        assert_eq!(kinds, [DimensionType::Time; 3]);
        let utc = batch.column(0).as_primitive::<TimestampMicrosecondType>();
        assert_eq!(utc.timezone(), Some("UTC"));
        let seconds: Vec<Option<i64>> = utc.iter().map(|micros| micros.map(|micros| micros / 1_000_000)).collect();
        assert_eq!(seconds, [Some(1_719_820_800), Some(1_729_989_000), None]);
        assert_eq!(batch.column(1).data_type(), &DataType::Timestamp(TimeUnit::Microsecond, None));
        assert_eq!(batch.column(2).data_type(), &DataType::Date32);
    }
}
