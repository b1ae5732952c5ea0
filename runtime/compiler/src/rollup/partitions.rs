//! The partitions of a rollup.
//!
//! In: the stretch of time that its data covers. Out: ranges of whole buckets. Not here: which of them are built.

use jiff::civil::{Date, Time};

use super::{BucketRange, RollupOf};
use crate::calendar::Calendar;
use crate::resolve::{bucket_start, span_of};

/// The largest number of partitions of a rollup.
pub const MAX_PARTITIONS: usize = 1_000;

/// The error for a rollup that would have more than [`MAX_PARTITIONS`] partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the pre-aggregation has more than {MAX_PARTITIONS} partitions")]
pub struct TooManyPartitions;

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
