//! The time axis of a query: the groups along it, its steps, and the period that a range is compared with.
//!
//! In: groups, and the tests that ranges became. Out: an [`Axis`], moved tests, [`GroupShift`]s. Not here: reading
//! dates (`time`), SQL.

use std::sync::Arc;

use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ToSpan};

use super::time::{Units, bucket_start, has_year, micros_of, span_of, units_of};
use crate::model::TimeKind;
use crate::query::resolved::{Axis, AxisBounds, Bound, Group, GroupShift, RangeFilter, Test};
use crate::query::{GroupBy, MAX_STEPS, QueryError};
use crate::types::{Granularity, Value};

/// The start of a range without a start, when offsets of a time zone are checked: 1990-01-01. Older changes are ignored,
/// because they would affect zones, such as `Asia/Singapore`, whose data is newer.
const EARLIEST_UNBOUNDED: Timestamp = Timestamp::constant(631_152_000, 0);
/// The end of a range without an end, when offsets are checked: 2100-01-01.
const LATEST_UNBOUNDED: Timestamp = Timestamp::constant(4_102_444_800, 0);

/// The start and the exclusive end of a range, in microseconds: of UTC for instants, otherwise of the wall clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stretch {
    start: i64,
    end: i64,
}

impl Stretch {
    /// Returns the range of a test; `None` if one side has no bound.
    pub(super) fn of(test: &Test) -> Option<Stretch> {
        let OpenStretch { start, end } = OpenStretch::of(test);
        Some(Stretch { start: start?, end: end? })
    }
}

/// The ends of a range that may be unbounded on a side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OpenStretch {
    start: Option<i64>,
    end: Option<i64>,
}

impl OpenStretch {
    fn of(test: &Test) -> OpenStretch {
        match test {
            Test::Range { low, high } => {
                OpenStretch { start: low.as_ref().and_then(first), end: high.as_ref().and_then(after) }
            }
            Test::Equals(value) => {
                let bound = Bound { value: value.clone(), inclusive: true };
                OpenStretch { start: first(&bound), end: after(&bound) }
            }
            _ => OpenStretch { start: None, end: None },
        }
    }

    fn intersect(self, other: OpenStretch) -> OpenStretch {
        OpenStretch { start: self.start.max(other.start), end: [self.end, other.end].into_iter().flatten().min() }
    }
}

/// Returns the first microsecond that meets a lower bound.
pub(crate) fn first(bound: &Bound) -> Option<i64> {
    let (micros, size) = micros(&bound.value)?;
    if bound.inclusive { Some(micros) } else { micros.checked_add(size) }
}

/// Returns the first microsecond after an upper bound.
pub(crate) fn after(bound: &Bound) -> Option<i64> {
    let (micros, size) = micros(&bound.value)?;
    if bound.inclusive { micros.checked_add(size) } else { Some(micros) }
}

/// Returns the first microsecond of a time, and its length in microseconds.
fn micros(value: &Value) -> Option<(i64, i64)> {
    const DAY: i64 = 86_400_000_000;
    match value {
        Value::Date(days) => Some((i64::from(*days) * DAY, DAY)),
        Value::Timestamp(micros) | Value::TimestampTz(micros) => Some((*micros, 1)),
        _ => None,
    }
}

/// The meaning of microseconds: the kind of the time dimension and the query's time zone.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock<'a> {
    pub kind: TimeKind,
    pub zone: &'a TimeZone,
}

impl Clock<'_> {
    fn local(&self, micros: i64) -> Option<DateTime> {
        let instant = Timestamp::from_microsecond(micros).ok()?;
        Some(match self.kind {
            TimeKind::Utc => self.zone.to_datetime(instant),
            TimeKind::WallClock => TimeZone::UTC.to_datetime(instant),
        })
    }

    /// Returns the start of the bucket that contains a moment: in local time for buckets of a day or more, else as
    /// stored.
    fn bucket(&self, micros: i64, granularity: Granularity) -> Option<i64> {
        let local = self.local(micros)?;
        let start = micros_of(bucket_start(local, granularity));
        if self.kind == TimeKind::Utc && granularity.is_sub_day() {
            return Some(micros - (micros_of(local) - start));
        }
        Some(start)
    }

    /// Returns the number of the bucket that contains a moment. Adjacent buckets have adjacent numbers.
    fn position(&self, micros: i64, granularity: Granularity) -> Option<i64> {
        let start = self.bucket(micros, granularity)?;
        Some(match units_of(granularity) {
            Units::Micros(size) => start.div_euclid(size),
            Units::Months(size) => {
                let date = TimeZone::UTC.to_datetime(Timestamp::from_microsecond(start).ok()?).date();
                (i64::from(date.year()) * 12 + i64::from(date.month()) - 1).div_euclid(size)
            }
        })
    }

    /// Returns an error if the zone's offset changes within a range by a fraction of `step`. If an offset changes by
    /// half an hour, the hours before and after the change are not a multiple of an hour apart, so they cannot be
    /// numbered. A range without a start begins at [`EARLIEST_UNBOUNDED`].
    fn check_even(&self, step: Granularity, range: OpenStretch) -> Result<(), QueryError> {
        let Units::Micros(size) = units_of(step) else { return Ok(()) };
        if self.kind != TimeKind::Utc || !step.is_sub_day() {
            return Ok(());
        }
        let instant = |micros| Timestamp::from_microsecond(micros).ok();
        let first = range.start.map_or(Some(EARLIEST_UNBOUNDED), instant).unwrap_or(Timestamp::MIN);
        let end = range.end.map_or(Some(LATEST_UNBOUNDED), instant).unwrap_or(Timestamp::MAX);
        let mut offset = self.zone.to_offset(first).seconds();
        for change in self.zone.following(first).take_while(|change| change.timestamp() < end) {
            let next = change.offset().seconds();
            if i64::from(next - offset) * 1_000_000 % size != 0 {
                let zone = self.zone.iana_name().unwrap_or_default().into();
                return Err(QueryError::UnevenSteps { zone, step, at: change.timestamp() });
            }
            offset = next;
        }
        Ok(())
    }

    /// Returns a range in local time with an exclusive end. The first moment of a day counts as its midnight, because
    /// some days have no midnight.
    fn local_range(&self, stretch: Stretch) -> Option<(DateTime, DateTime)> {
        let local = |micros| {
            let local = self.local(micros)?;
            let midnight = local.date().to_datetime(Time::midnight());
            let is_first = self.kind == TimeKind::Utc
                && self.zone.to_ambiguous_timestamp(midnight).compatible().is_ok_and(|t| t.as_microsecond() == micros);
            Some(if is_first { midnight } else { local })
        };
        Some((local(stretch.start)?, local(stretch.end)?))
    }
}

/// Returns the axis along the only time dimension that the query groups by a granularity. `what` is the feature that
/// needs the axis.
///
/// # Errors
/// The query has no such dimension or several, the axis has more than [`MAX_STEPS`] steps, or the offset of the time
/// zone changes by a fraction of a step.
pub(super) fn axis(
    what: &str,
    groups: &[Group],
    is_time: impl Fn(&Group) -> bool,
    ranges: &[RangeFilter],
    clock: Clock<'_>,
) -> Result<Axis, QueryError> {
    let mut along: Vec<usize> =
        (0..groups.len()).filter(|i| groups[*i].granularity.is_some() && is_time(&groups[*i])).collect();
    let mut axes: Vec<GroupBy> = Vec::new();
    for index in &along {
        if !axes.contains(&groups[*index].by) {
            axes.push(groups[*index].by);
        }
    }
    let [by] = axes[..] else {
        return Err(QueryError::NeedsOneAxis { what: what.into(), found: axes.len() });
    };
    along.sort_by_key(|index| groups[*index].granularity);
    let granularities: Vec<Granularity> = along.iter().filter_map(|index| groups[*index].granularity).collect();
    let step = step(&granularities);
    let range = stretch_along(by, ranges);
    clock.check_even(step, range)?;
    let OpenStretch { start, end } = range;
    let first_buckets = start.and_then(|start| granularities.iter().map(|g| clock.bucket(start, *g)).collect());
    let last = end.and_then(|end| clock.bucket(end - 1, step));
    let bounds = start.zip(end).and_then(|(start, end)| {
        let steps = match start < end {
            true => clock.position(end - 1, step)? - clock.position(start, step)? + 1,
            false => 0,
        };
        Some(AxisBounds { first: clock.bucket(start, step)?, steps: u64::try_from(steps).ok()? })
    });
    match bounds {
        Some(AxisBounds { steps, .. }) if steps > MAX_STEPS => Err(QueryError::TooManySteps { limit: MAX_STEPS }),
        bounds => Ok(Axis { groups: along, step, bounds, first_buckets, last }),
    }
}

/// Returns the finest granularity, or a day if weeks occur together with longer buckets, in which weeks do not nest.
fn step(granularities: &[Granularity]) -> Granularity {
    let finest = granularities[0];
    let nests = finest != Granularity::Week || granularities.iter().all(|g| *g == Granularity::Week);
    if nests { finest } else { Granularity::Day }
}

/// Returns the intersection of all ranges on an axis. If several facts have ranges of their own, the first counts.
fn stretch_along(by: GroupBy, ranges: &[RangeFilter]) -> OpenStretch {
    let of_axis = |range: &&RangeFilter| match by {
        GroupBy::Dimension(id) => range.dimension == id,
        GroupBy::MetricTime => range.fact.is_some(),
    };
    let mut stretches = ranges.iter().filter(of_axis).map(|range| OpenStretch::of(&range.test));
    let first = stretches.next().unwrap_or(OpenStretch { start: None, end: None });
    match by {
        GroupBy::Dimension(_) => stretches.fold(first, OpenStretch::intersect),
        GroupBy::MetricTime => first,
    }
}

/// Returns the number of buckets by which each group over the compared dimension is moved.
///
/// # Errors
/// One of the two periods is unbounded on a side, or the offset of the time zone changes between them by a fraction of a
/// bucket.
pub(super) fn shifts(
    groups: &[Group],
    range: &RangeFilter,
    previous: &Test,
    clock: Clock<'_>,
) -> Result<Vec<GroupShift>, QueryError> {
    let current = Stretch::of(&range.test).ok_or(QueryError::CompareNeedsRange)?;
    let previous = Stretch::of(previous).ok_or(QueryError::CompareNeedsRange)?;
    let is_moved = |group: &Group| match group.by {
        GroupBy::Dimension(id) => id == range.dimension,
        GroupBy::MetricTime => range.fact.is_some(),
    };
    let both = OpenStretch { start: Some(current.start.min(previous.start)), end: Some(current.end.max(previous.end)) };
    let mut shifts = Vec::new();
    for (index, group) in groups.iter().enumerate().filter(|(_, group)| is_moved(group)) {
        let Some(granularity) = group.granularity else { return Err(QueryError::CompareNeedsRange) };
        clock.check_even(granularity, both)?;
        let position = |micros| clock.position(micros, granularity).ok_or(QueryError::CompareNeedsRange);
        let ends = |range: Stretch| Ok((position(range.start)?, position(range.end.max(range.start + 1) - 1)?));
        let ((first, last), (previous_first, previous_last)) = (ends(current)?, ends(previous)?);
        let (own, compared) = (last - first + 1, previous_last - previous_first + 1);
        shifts.push(GroupShift { group: index, buckets: first - previous_first, own, compared });
    }
    Ok(shifts)
}

/// An interval to move back by, such as `1 year` or `4 weeks`.
struct Shift {
    count: i64,
    unit: Granularity,
}

fn parse_shift(text: &Arc<str>) -> Result<Shift, QueryError> {
    let malformed = || QueryError::MalformedShift { text: text.clone() };
    let lower = text.trim().to_lowercase();
    let (count, unit) = lower.split_once(char::is_whitespace).ok_or_else(malformed)?;
    let count: i64 = count.parse().map_err(|_| malformed())?;
    let unit = unit.trim();
    let unit = unit.strip_suffix('s').unwrap_or(unit).parse().map_err(|_| malformed())?;
    if !(1..=100_000).contains(&count) {
        return Err(malformed());
    }
    Ok(Shift { count, unit })
}

/// Returns a range moved back, in local time with an exclusive end. The ends are moved by calendar units and limited to
/// the end of the month; whole months stay whole months.
pub(super) fn moved_back(test: &Test, shift: &Arc<str>, clock: Clock<'_>) -> Result<(DateTime, DateTime), QueryError> {
    let Shift { count, unit } = parse_shift(shift)?;
    let stretch = Stretch::of(test).ok_or(QueryError::CompareNeedsRange)?;
    let leaves = || QueryError::ShiftLeavesCalendar { text: shift.clone() };
    let (start, end) = clock.local_range(stretch).ok_or_else(leaves)?;
    let span = span_of(unit, count).ok_or_else(leaves)?;
    let moved = back(start, end, span, unit);
    moved.filter(|(start, _)| has_year(start.date())).ok_or_else(leaves)
}

fn back(start: DateTime, end: DateTime, span: Span, unit: Granularity) -> Option<(DateTime, DateTime)> {
    let is_midnight = |point: DateTime| point.time() == Time::midnight();
    let by_months = matches!(units_of(unit), Units::Months(_));
    // Dates have no hours, so a move by hours would not change them.
    if unit.is_sub_day() || !is_midnight(start) || !is_midnight(end) {
        let last = end.checked_sub(1.microsecond()).ok()?.checked_sub(span).ok()?;
        return Some((start.checked_sub(span).ok()?, last.checked_add(1.microsecond()).ok()?));
    }
    let (first, last) = (start.date(), end.date().yesterday().ok()?);
    let is_whole_months = by_months && first.day() == 1 && last == last.last_of_month();
    let new_first = first.checked_sub(span).ok()?;
    let new_last = match is_whole_months {
        true => last.first_of_month().checked_sub(span).ok()?.last_of_month(),
        false => last.checked_sub(span).ok()?,
    };
    let midnight = Time::midnight();
    Some((new_first.to_datetime(midnight), new_last.tomorrow().ok()?.to_datetime(midnight)))
}
