//! The rows of a query as series.
//!
//! In: batches whose columns are dimensions, one time, one measure. Out: one series for each combination of the
//! dimensions' values. The series are sorted by these values, and the points of each by time; a missing value is NaN.
//! Column types differ between engines, so columns are cast. A column that cannot be cast is an error: leaving it out
//! would silently change the result.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, AsArray as _, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, TimeUnit, TimestampMillisecondType};

use super::bucket::Bucket;

type Key = Vec<Option<Arc<str>>>;

/// The points of one combination of dimension values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Series {
    pub(crate) key: Key,
    /// The points: times in milliseconds, and values.
    pub(crate) points: Vec<(i64, f64)>,
}

/// A column that cannot be cast to the type that the query requested. The error prevents rows from being left out
/// silently.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the warehouse's column {column} has the type {found}, which cannot be read as {wanted}")]
pub struct Unreadable {
    /// The number of the column, from 1.
    pub column: usize,
    pub found: String,
    pub wanted: &'static str,
}

/// Reads the series of a result.
///
/// # Errors
/// [`Unreadable`] for the first column that cannot be cast.
pub(crate) fn of_batches(batches: &[RecordBatch], dimensions: usize) -> Result<Vec<Series>, Unreadable> {
    let mut series: BTreeMap<Key, Vec<(i64, f64)>> = BTreeMap::new();
    for batch in batches {
        let keys = (0..dimensions).map(|column| read(batch, column, "text", text));
        let keys = keys.collect::<Result<Vec<ArrayRef>, _>>()?;
        let times = read(batch, dimensions, "a time", times)?;
        let values = read(batch, dimensions + 1, "a number", numbers)?;
        let (times, values) = (times.as_primitive::<TimestampMillisecondType>(), values.as_primitive::<Float64Type>());
        // Rows without a time lie outside every step.
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
    Ok(series.into_iter().map(ordered).collect())
}

/// Returns the latest time in the first column of a result, in milliseconds; `None` if the result has no times.
///
/// # Errors
/// [`Unreadable`] if the first column cannot be cast to a time.
pub(crate) fn newest_time(batches: &[RecordBatch]) -> Result<Option<i64>, Unreadable> {
    let mut newest = None;
    for batch in batches {
        let times = read(batch, 0, "a time", times)?;
        newest = newest.max(times.as_primitive::<TimestampMillisecondType>().iter().flatten().max());
    }
    Ok(newest)
}

/// Removes the steps before the first step in which any series has a value other than 0. A count is 0 in every step of
/// the query's range, even before the first row of data. If these zeros counted as history, the first real days would
/// be anomalies.
pub(super) fn begun(mut all: Vec<Series>) -> Vec<Series> {
    let first_of = |series: &Series| {
        let begun = series.points.iter().find(|(_, value)| !value.is_nan() && *value != 0.0);
        begun.map(|(at, _)| *at)
    };
    let Some(first) = all.iter().filter_map(first_of).min() else { return all };
    all.iter_mut().for_each(|series| series.points.retain(|(at, _)| *at >= first));
    all
}

/// Removes the given step and all later ones.
pub(super) fn end_before(all: &mut [Series], step: Bucket) {
    all.iter_mut().for_each(|series| series.points.retain(|(at, _)| *at < step.ms()));
}

fn read(
    batch: &RecordBatch,
    index: usize,
    wanted: &'static str,
    as_wanted: impl Fn(&ArrayRef) -> Option<ArrayRef>,
) -> Result<ArrayRef, Unreadable> {
    let column = batch.columns().get(index);
    let found = || column.map_or_else(|| "nothing".to_owned(), |column| column.data_type().to_string());
    column.and_then(as_wanted).ok_or_else(|| Unreadable { column: index + 1, found: found(), wanted })
}

fn text(column: &ArrayRef) -> Option<ArrayRef> {
    cast(column, &DataType::Utf8).ok()
}

fn numbers(column: &ArrayRef) -> Option<ArrayRef> {
    cast(column, &DataType::Float64).ok()
}

/// Converts the starts of buckets to local timestamps in milliseconds. Buckets of a day or more are dates or local
/// times; finer ones are instants.
fn times(column: &ArrayRef) -> Option<ArrayRef> {
    let plain = DataType::Timestamp(TimeUnit::Millisecond, None);
    match column.data_type() {
        // Reads the zoned column as UTC first: a direct cast would add the offset of its zone.
        DataType::Timestamp(_, Some(_)) => {
            let instants = cast(column, &DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()))).ok()?;
            cast(&cast(&instants, &DataType::Int64).ok()?, &plain).ok()
        }
        _ => cast(column, &plain).ok(),
    }
}
