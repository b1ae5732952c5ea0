//! The time buckets of a pre-aggregation, as ranges of its time column.
//!
//! In: a rollup's time. Out: the edges of buckets, as times and as values of the column. A bucket of a day or more is a
//! period of local time. If a time zone's clock goes back over midnight, the instants of a day are not one range. The
//! edge between such days is never used, so that a range of buckets and a range of instants contain the same rows. Not
//! here: SQL.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::model::{Model, RollupTime};
use crate::ready_rollups::{BucketRange, Stretch, TimeSteps};
use crate::resolve::{bucket_start, micros_of, span_of};
use crate::types::{Granularity, LogicalType, Value, is_utc};

/// The largest number of consecutive buckets whose edges are tried. No zone's clock goes back on so many days in
/// succession.
const MAX_TRIES: usize = 4;

/// The calendar of a rollup's time buckets.
#[derive(Debug, Clone)]
pub(crate) struct Calendar<'m> {
    step: Granularity,
    /// The time zone of local buckets; `None` if buckets are those of the column's own values.
    zone: Option<&'m TimeZone>,
    column_type: LogicalType,
    stored_type: LogicalType,
}

impl<'m> Calendar<'m> {
    pub(crate) fn new(model: &Model, time: &'m RollupTime) -> Self {
        Calendar {
            step: time.step(model),
            zone: Some(&time.zone).filter(|zone| time.is_local(model) && !is_utc(zone)),
            column_type: model.dimension(time.dimension).column_type,
            stored_type: time.stored_type(model),
        }
    }

    /// Returns whether bucket edges are local times that the zone may repeat or skip.
    pub(crate) fn has_zone(&self) -> bool {
        self.zone.is_some()
    }

    pub(crate) fn steps(&self) -> TimeSteps<'m> {
        TimeSteps { step: self.step, zone: self.zone }
    }

    /// Returns the moments of a range of buckets; `None` if an end is not an edge.
    pub(crate) fn moments(&self, range: BucketRange) -> Option<Stretch> {
        Some(Stretch { start: Some(self.moment(range.start)?), end: Some(self.moment(range.end)?) })
    }

    pub(crate) fn local(&self, micros: i64) -> Option<DateTime> {
        let instant = Timestamp::from_microsecond(micros).ok()?;
        Some(self.zone.unwrap_or(&TimeZone::UTC).to_datetime(instant))
    }

    /// Returns the moment of the column at which a bucket begins, in microseconds. `None` if a clock change mixes
    /// moments of this bucket with moments of earlier buckets.
    fn edge(&self, bucket: DateTime) -> Option<i64> {
        let Some(zone) = self.zone else { return Some(micros_of(bucket)) };
        let ambiguous = zone.to_ambiguous_timestamp(bucket);
        let instant = ambiguous.earlier().ok()?;
        // If the clock skips the bucket's local start, the earlier interpretation of this local time is before the
        // gap. The bucket then begins at the clock change.
        let instant = match zone.to_datetime(instant) < bucket {
            true => zone.following(instant).next().map(|change| change.timestamp())?,
            false => instant,
        };
        self.is_clean(zone, instant, bucket).then(|| instant.as_microsecond())
    }

    /// Returns whether every moment before `instant` is in an earlier bucket and every later moment is not. A clock
    /// change is assumed to be at most a day.
    fn is_clean(&self, zone: &TimeZone, instant: Timestamp, bucket: DateTime) -> bool {
        let window = SignedDuration::from_hours(50);
        let Ok(from) = instant.checked_sub(window) else { return false };
        for change in zone.following(from).take_while(|change| change.timestamp() <= instant + window) {
            let at = change.timestamp();
            let after = zone.to_datetime(at);
            let Ok(last) = at.checked_sub(SignedDuration::from_nanos(1)) else { return false };
            let before = zone.to_datetime(last);
            if (at <= instant && before >= bucket) || (at >= instant && after < bucket) {
                return false;
            }
        }
        true
    }

    fn next(&self, bucket: DateTime) -> Option<DateTime> {
        bucket.checked_add(span_of(self.step, 1)?).ok()
    }

    fn previous(&self, bucket: DateTime) -> Option<DateTime> {
        bucket.checked_sub(span_of(self.step, 1)?).ok()
    }

    /// Returns the first bucket that has an edge at or after `micros`, with its edge. Both are in microseconds.
    pub(crate) fn ceil(&self, micros: i64) -> Option<(i64, i64)> {
        let mut bucket = bucket_start(self.local(micros)?, self.step);
        for _ in 0..MAX_TRIES {
            if let Some(edge) = self.edge(bucket).filter(|edge| *edge >= micros) {
                return Some((micros_of(bucket), edge));
            }
            bucket = self.next(bucket)?;
        }
        None
    }

    /// Returns the last bucket that has an edge at or before `micros`, with its edge. Both are in microseconds.
    pub(crate) fn floor(&self, micros: i64) -> Option<(i64, i64)> {
        let mut bucket = bucket_start(self.local(micros)?, self.step);
        for _ in 0..MAX_TRIES {
            if let Some(edge) = self.edge(bucket).filter(|edge| *edge <= micros) {
                return Some((micros_of(bucket), edge));
            }
            bucket = self.previous(bucket)?;
        }
        None
    }

    /// Returns the first moment of the column that belongs to the bucket that starts at `bucket`. Both are in
    /// microseconds.
    pub(crate) fn moment(&self, bucket: i64) -> Option<i64> {
        let wall = TimeZone::UTC.to_datetime(Timestamp::from_microsecond(bucket).ok()?);
        if bucket_start(wall, self.step) != wall {
            return None;
        }
        self.edge(wall)
    }

    /// Returns a range of buckets as values of the column; `None` if an end is not an edge.
    pub(crate) fn column_values(&self, range: BucketRange) -> Option<[Value; 2]> {
        let value = |bucket| Some(value_of(self.moment(bucket)?, self.column_type));
        Some([value(range.start)?, value(range.end)?])
    }

    /// Returns a moment as a value of the column.
    pub(crate) fn column_value(&self, micros: i64) -> Value {
        value_of(micros, self.column_type)
    }

    /// Returns the start of a bucket as a value of the stored column.
    pub(crate) fn stored_value(&self, bucket: i64) -> Value {
        value_of(bucket, self.stored_type)
    }

    /// Returns the first edge at or after a local time.
    pub(crate) fn edge_from(&self, local: DateTime) -> Option<i64> {
        let mut bucket = bucket_start(local, self.step);
        for _ in 0..MAX_TRIES {
            if bucket >= local && self.edge(bucket).is_some() {
                return Some(micros_of(bucket));
            }
            bucket = self.next(bucket)?;
        }
        None
    }
}

fn value_of(micros: i64, ty: LogicalType) -> Value {
    const DAY: i64 = 86_400_000_000;
    match ty {
        LogicalType::Date => Value::Date(i32::try_from(micros.div_euclid(DAY)).unwrap_or(i32::MAX)),
        LogicalType::TimestampTz => Value::TimestampTz(micros),
        _ => Value::Timestamp(micros),
    }
}
