//! The partitions of a rollup.
//!
//! In: the stretch of time that its data covers. Out: ranges of whole buckets. Not here: which of them are built.

use jiff::civil::{Date, Time};

use super::{BucketRange, RollupOf};
use crate::calendar::Calendar;
use crate::resolve::{bucket_start, first_moment, micros_of, span_of};

/// The largest number of partitions of a rollup.
pub const MAX_PARTITIONS: usize = 1_000;

/// The error for a rollup that would have more than [`MAX_PARTITIONS`] partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the pre-aggregation has more than {MAX_PARTITIONS} partitions")]
pub struct TooManyPartitions;

/// Returns the first moment of a date, a time or a period such as `2026-Q1`, in microseconds since 1970 in the zone of
/// the rollup. Returns `None` for other text.
pub fn moment_in_partition(name: &str) -> Option<i64> {
    first_moment(name).map(micros_of)
}

impl RollupOf<'_> {
    /// Divides the rollup's range of time into half-open partitions without gaps. A rollup without partitions has a
    /// single table of all rows: `None`.
    ///
    /// `extent` is the smallest and the largest value of the time column, in microseconds since 1970. If it is `None`,
    /// the table has no rows, and there are no partitions unless the build range has both ends.
    ///
    /// # Errors
    /// [`TooManyPartitions`].
    pub fn partitions(&self, extent: Option<[i64; 2]>) -> Result<Vec<Option<BucketRange>>, TooManyPartitions> {
        let Some((time, partition)) = self.rollup.time.as_ref().and_then(|time| Some((time, time.partition?))) else {
            return Ok(vec![None]);
        };
        let calendar = Calendar::new(self.model, time);
        let midnight = |date: Date| date.to_datetime(Time::midnight());
        let [first, last] = self.rollup.build_range;
        let data = extent.map(|ends| ends.map(|micros| calendar.local(micros)));
        let start = first.map(midnight).or_else(|| data.and_then(|[start, _]| start));
        let after = |date: Date| date.tomorrow().ok().map(midnight);
        let end = last.and_then(after).or_else(|| data.and_then(|[_, end]| end));
        let (Some(start), Some(end)) = (start, end) else { return Ok(Vec::new()) };
        let is_data_end = last.is_none();
        let partition = partition.max(time.step(self.model));
        let mut edges = Vec::new();
        let mut at = if first.is_some() { start } else { bucket_start(start, partition) };
        while at < end || (is_data_end && at <= end) {
            edges.extend(calendar.edge_from(at));
            if edges.len() > MAX_PARTITIONS {
                return Err(TooManyPartitions);
            }
            let next = span_of(partition, 1).and_then(|span| bucket_start(at, partition).checked_add(span).ok());
            match next {
                Some(next) => at = next,
                None => break,
            }
        }
        let close = if is_data_end { at } else { end };
        edges.extend(calendar.edge_from(close));
        let ranges = edges.windows(2).map(|edges| BucketRange { start: edges[0], end: edges[1] });
        Ok(ranges.filter(|range| !range.is_empty()).map(Some).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_named_by_a_time_in_them() {
        const DAY: i64 = 86_400_000_000;
        for (text, micros) in [
            ("1970", 0),
            ("1970-02", 31 * DAY),
            ("1970-Q2", 90 * DAY),
            ("1970-q4", 273 * DAY),
            ("1970-W02", 4 * DAY),
            ("1970-01-02", DAY),
            ("1970-01-01T01", DAY / 24),
            ("1970-01-01T00:30", DAY / 48),
            ("1970-01-01T00:30:00", DAY / 48),
        ] {
            assert_eq!(moment_in_partition(text), Some(micros), "{text}");
        }
        for text in ["", "soon", "1970-13", "1970-Q5", "1970-W54", "01.01.1970", "1970-01-01T00:00Z"] {
            assert_eq!(moment_in_partition(text), None, "{text}");
        }
    }
}
