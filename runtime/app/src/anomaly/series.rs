//! The rows of a query as series.
//!
//! In: an answer whose columns are dimensions, one time, one measure. Out: one series a combination of the
//! dimensions' values, sorted by them, each ascending in time; NaN where there is no value. Engines have
//! types of their own for all of these, so columns are cast.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, AsArray as _, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, TimeUnit, TimestampMillisecondType};

use crate::query::Answer;

type Key = Vec<Option<Arc<str>>>;

/// One series.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Series {
    pub(super) key: Key,
    /// Milliseconds and values.
    pub(super) points: Vec<(i64, f64)>,
}

pub(super) fn of_answer(answer: &Answer, dimensions: usize) -> Vec<Series> {
    let mut series: BTreeMap<Key, Vec<(i64, f64)>> = BTreeMap::new();
    for batch in &answer.batches {
        let keys: Vec<ArrayRef> = (0..dimensions).filter_map(|column| text(batch, column)).collect();
        let (Some(times), Some(values)) = (times(batch, dimensions), numbers(batch, dimensions + 1)) else { continue };
        let (times, values) = (times.as_primitive::<TimestampMillisecondType>(), values.as_primitive::<Float64Type>());
        // Rows without a time lie outside of every step.
        for row in (0..batch.num_rows()).filter(|row| times.is_valid(*row)) {
            let part = |column: &ArrayRef| column.is_valid(row).then(|| column.as_string::<i32>().value(row).into());
            let value = if values.is_valid(row) { values.value(row) } else { f64::NAN };
            let value = if value.is_finite() { value } else { f64::NAN };
            series.entry(keys.iter().map(part).collect()).or_default().push((times.value(row), value));
        }
    }
    let ordered = |(key, mut points): (Key, Vec<(i64, f64)>)| {
        points.sort_by_key(|(at, _)| *at);
        Series { key, points }
    };
    series.into_iter().map(ordered).collect()
}

/// Without the steps before anything happened anywhere. A query with both ends counts 0 there too, where the
/// data had not begun; taken for history, these zeros would make the first real days an anomaly.
pub(super) fn begun(mut all: Vec<Series>) -> Vec<Series> {
    let first_of = |series: &Series| {
        let begun = series.points.iter().find(|(_, value)| !value.is_nan() && *value != 0.0);
        begun.map(|(at, _)| *at)
    };
    let Some(first) = all.iter().filter_map(first_of).min() else { return all };
    all.iter_mut().for_each(|series| series.points.retain(|(at, _)| *at >= first));
    all
}

fn text(batch: &RecordBatch, column: usize) -> Option<ArrayRef> {
    cast(batch.columns().get(column)?, &DataType::Utf8).ok()
}

fn numbers(batch: &RecordBatch, column: usize) -> Option<ArrayRef> {
    cast(batch.columns().get(column)?, &DataType::Float64).ok()
}

/// Buckets of a day and more come as dates or wall clocks, finer ones as instants.
fn times(batch: &RecordBatch, column: usize) -> Option<ArrayRef> {
    let column = batch.columns().get(column)?;
    let plain = DataType::Timestamp(TimeUnit::Millisecond, None);
    match column.data_type() {
        // Without this cast a zone's offset would be added.
        DataType::Timestamp(_, Some(_)) => {
            let instants = cast(column, &DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()))).ok()?;
            cast(&cast(&instants, &DataType::Int64).ok()?, &plain).ok()
        }
        _ => cast(column, &plain).ok(),
    }
}
