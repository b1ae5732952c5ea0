//! The rows of a cube at the time of a build: their extent in time, and marks that differ if the rows have changed.
//!
//! In: the answers of the statements of `terrane_compiler::rollup`. Out: microseconds since 1970, and a digest for each
//! partition. Not here: running statements.

use arrow::array::{Array as _, ArrayRef, AsArray as _, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, TimeUnit, TimestampMicrosecondType};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use sha2::{Digest as _, Sha256};
use terrane_compiler::rollup::BucketRange;

use crate::ports::warehouse::ResultSet;

/// An answer that does not have the expected form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the warehouse returned {found} for the {expected} of a pre-aggregation")]
pub(super) struct UnexpectedAnswer {
    expected: &'static str,
    found: String,
}

/// The change marks of a rollup's rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Marks {
    /// The start of the step, and the other columns of the row as text. The start is `None` for rows without a time,
    /// and for all rows if the rollup has no steps.
    rows: Vec<(Option<i64>, String)>,
}

/// Reads the smallest and the largest value of a time column; `None` if the column has no values.
pub(super) fn extent(answer: &ResultSet) -> Result<Option<[i64; 2]>, UnexpectedAnswer> {
    let Some(batch) = answer.batches.iter().find(|batch| batch.num_rows() > 0) else { return Ok(None) };
    let end = |index: usize| match batch.columns().get(index) {
        Some(column) => moments(column, "extent").map(|moments| moments[0]),
        None => Err(UnexpectedAnswer { expected: "extent", found: "too few columns".to_owned() }),
    };
    Ok(end(0)?.zip(end(1)?).map(|(start, end)| [start, end]))
}

impl Marks {
    /// Reads the answer to the statement of change marks.
    pub(super) fn of(answer: &ResultSet, has_step: bool) -> Result<Marks, UnexpectedAnswer> {
        let mut rows = Vec::new();
        for batch in &answer.batches {
            let steps = match (has_step, batch.columns().first()) {
                (true, Some(column)) => moments(column, "change marks")?,
                _ => vec![None; batch.num_rows()],
            };
            let texts = texts(batch, usize::from(has_step))?;
            rows.extend(steps.into_iter().zip(texts));
        }
        rows.sort();
        Ok(Marks { rows })
    }

    /// Returns a digest of the rows of a partition, or of all rows if `range` is `None`.
    pub(super) fn digest(&self, range: Option<BucketRange>) -> String {
        let is_within = |step: Option<i64>| match (range, step) {
            (None, _) => true,
            (Some(range), Some(step)) => range.start <= step && step < range.end,
            (Some(_), None) => false,
        };
        let mut hash = Sha256::new();
        for (step, text) in self.rows.iter().filter(|(step, _)| is_within(*step)) {
            hash.update(step.unwrap_or(i64::MIN).to_le_bytes());
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text.as_bytes());
        }
        hex::encode(&hash.finalize()[..16])
    }
}

/// Returns the values of a column of dates or timestamps in microseconds since 1970.
fn moments(column: &ArrayRef, expected: &'static str) -> Result<Vec<Option<i64>>, UnexpectedAnswer> {
    let unexpected = || UnexpectedAnswer { expected, found: format!("{}", column.data_type()) };
    // The values of an instant are in UTC, whatever zone the type names.
    let utc = match column.data_type() {
        DataType::Timestamp(unit, Some(_)) => cast(column, &DataType::Timestamp(*unit, Some("UTC".into()))),
        DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 | DataType::Null => Ok(column.clone()),
        _ => return Err(unexpected()),
    };
    let micros = utc.and_then(|column| cast(&column, &DataType::Timestamp(TimeUnit::Microsecond, None)));
    let micros = micros.map_err(|_| unexpected())?;
    let micros = micros.as_primitive_opt::<TimestampMicrosecondType>().ok_or_else(unexpected)?;
    Ok((0..micros.len()).map(|row| micros.is_valid(row).then(|| micros.value(row))).collect())
}

/// Returns the columns from index `from` on, joined to one string per row.
fn texts(batch: &RecordBatch, from: usize) -> Result<Vec<String>, UnexpectedAnswer> {
    let options = FormatOptions::default().with_null("\0");
    let columns = batch.columns().iter().skip(from).map(|column| ArrayFormatter::try_new(column, &options));
    let columns = columns.collect::<Result<Vec<_>, _>>();
    let columns = columns.map_err(|error| UnexpectedAnswer { expected: "change marks", found: error.to_string() })?;
    let text = |row: usize| columns.iter().map(|column| column.value(row).to_string()).collect::<Vec<_>>().join("|");
    Ok((0..batch.num_rows()).map(text).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at its first fault")]

    use std::sync::Arc;

    use arrow::array::{Date32Array, Int64Array, StringArray, TimestampMillisecondArray};

    use super::*;

    const DAY: i64 = 86_400_000_000;

    fn answer(columns: Vec<ArrayRef>) -> ResultSet {
        let named = columns.into_iter().enumerate().map(|(index, column)| (format!("c{index}"), column, true));
        let batch = RecordBatch::try_from_iter_with_nullable(named).unwrap();
        ResultSet { schema: batch.schema(), batches: vec![batch] }
    }

    #[test]
    fn times_of_any_type_are_microseconds() {
        let dates = || Arc::new(Date32Array::from(vec![2])) as ArrayRef;
        assert_eq!(extent(&answer(vec![dates(), dates()])), Ok(Some([2 * DAY, 2 * DAY])));
        let instants = TimestampMillisecondArray::from(vec![1_500]).with_timezone("Asia/Tokyo");
        let instants: ArrayRef = Arc::new(instants);
        assert_eq!(extent(&answer(vec![instants.clone(), instants])), Ok(Some([1_500_000, 1_500_000])));
        let none: ArrayRef = Arc::new(Date32Array::from(vec![None]));
        assert_eq!(extent(&answer(vec![none.clone(), none])), Ok(None));
        let text: ArrayRef = Arc::new(StringArray::from(vec!["2026-01-01"]));
        assert!(extent(&answer(vec![text.clone(), text])).is_err());
    }

    #[test]
    fn fingerprint_of_a_partition_changes_only_with_its_rows() {
        let marks = |first: i64, second: i64, undated: i64| {
            let steps: ArrayRef = Arc::new(Date32Array::from(vec![Some(0), Some(1), None]));
            let counts: ArrayRef = Arc::new(Int64Array::from(vec![first, second, undated]));
            Marks::of(&answer(vec![steps, counts]), true).unwrap()
        };
        let range = |start: i64| Some(BucketRange { start: start * DAY, end: (start + 1) * DAY });
        let (old, new) = (marks(5, 6, 1), marks(5, 7, 2));
        assert_eq!(old.digest(range(0)), new.digest(range(0)));
        assert_ne!(old.digest(range(1)), new.digest(range(1)));
        assert_ne!(old.digest(None), marks(5, 6, 2).digest(None));
        assert_ne!(old.digest(range(0)), old.digest(range(2)));
    }
}
