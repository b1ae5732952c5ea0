//! The rows that rolling windows need, and the windows that a query cannot have.
//!
//! In: a window, the axis of a query and the range along it. Out: a wider range that contains every window and limits
//! the rows that are read, or the reason why the query cannot have the window. Not here: the exact ends of each window
//! (`sql::lower`).

use std::sync::Arc;

use crate::model::{DimensionId, Model, TimeKind};
use crate::query::{Axis, Bound, Group, QueryError, Test, WindowMismatch};
use crate::types::{Granularity, LogicalType, RollingWindow, Value, WindowLength, is_utc};

/// The largest number of cubes and windows in one query whose rows are joined with its steps.
pub(crate) const MAX_WINDOWS: usize = 8;

const DAY: i64 = 86_400_000_000;
/// The supported times, from 0001-01-01 to before 10000-01-01, in microseconds since 1970.
const CALENDAR: std::ops::Range<i64> = -62_135_596_800_000_000..253_402_300_800_000_000;

/// The windows of one query.
pub(super) struct Windows<'q> {
    pub(super) axis: &'q Axis,
    pub(super) groups: &'q [Group],
    pub(super) timezone: &'q jiff::tz::TimeZone,
}

impl Windows<'_> {
    /// Returns the finest granularity along the axis. A step of the axis lies within one bucket of this granularity.
    fn finest(&self) -> Granularity {
        let granularities = self.axis.groups.iter().filter_map(|index| self.groups[*index].granularity);
        granularities.min().unwrap_or(self.axis.step)
    }

    /// Returns whether the rows of the range must be read for their groups, because some rows may be in no window.
    pub(super) fn needs_own_rows(&self, window: RollingWindow) -> bool {
        let has_others = self.groups.len() > self.axis.groups.len();
        self.axis.bounds.is_none() || (has_others && !window.covers_step(self.finest()))
    }

    /// Checks that the lengths of a window can be measured along the axis of a fact.
    ///
    /// # Errors
    /// [`QueryError::WindowDoesNotFit`].
    pub(super) fn check(
        &self,
        model: &Model,
        what: &Arc<str>,
        window: RollingWindow,
        time: DimensionId,
    ) -> Result<(), QueryError> {
        let (Some(finest), Some(coarsest)) = (window.finest_unit(), window.coarsest_unit()) else { return Ok(()) };
        let dimension = model.dimension(time);
        let is_instant = dimension.time == TimeKind::Utc && !is_utc(self.timezone);
        let refused = |reason| Err(QueryError::WindowDoesNotFit { what: Arc::clone(what), reason });
        if finest.is_sub_day() && dimension.column_type == LogicalType::Date {
            return refused(WindowMismatch::HoursOfDates);
        }
        if self.axis.step.is_sub_day() && is_instant && !coarsest.is_sub_day() {
            return refused(WindowMismatch::DaysOfInstants);
        }
        Ok(())
    }

    /// Returns a test that accepts every time in a window of a step of the range. If neither side limits these times,
    /// the test only excludes null.
    pub(super) fn widened(&self, test: &Test, window: RollingWindow) -> Test {
        let slack = self.coarsest_bucket() + 2 * DAY;
        let low =
            start_of(test).and_then(|bound| moved(&bound.value, -slack.saturating_add(longest(window.trailing)?)));
        let high = end_of(test).and_then(|bound| moved(&bound.value, slack.saturating_add(longest(window.leading)?)));
        match (low, high) {
            (None, None) => Test::Not(Box::new(Test::IsNull)),
            (low, high) => {
                let bound = |value| Bound { value, inclusive: true };
                Test::Range { low: low.map(bound), high: high.map(bound) }
            }
        }
    }

    fn coarsest_bucket(&self) -> i64 {
        let granularities = self.axis.groups.iter().filter_map(|index| self.groups[*index].granularity);
        granularities.max().map_or(DAY, longest_unit)
    }
}

fn start_of(test: &Test) -> Option<Bound> {
    match test {
        Test::Range { low, .. } => low.clone(),
        Test::Equals(value) => Some(Bound { value: value.clone(), inclusive: true }),
        _ => None,
    }
}

fn end_of(test: &Test) -> Option<Bound> {
    match test {
        Test::Range { high, .. } => high.clone(),
        test => start_of(test),
    }
}

/// Returns the longest duration of one side in microseconds; `None` if it is unbounded.
fn longest(length: WindowLength) -> Option<i64> {
    match length {
        WindowLength::Zero => Some(0),
        WindowLength::Units { count, unit } => Some(longest_unit(unit).saturating_mul(i64::from(count))),
        WindowLength::Unbounded => None,
    }
}

fn longest_unit(unit: Granularity) -> i64 {
    match unit {
        Granularity::Second => 1_000_000,
        Granularity::Minute => 60_000_000,
        Granularity::Hour => DAY / 24,
        Granularity::Day => DAY,
        Granularity::Week => 7 * DAY,
        Granularity::Month => 31 * DAY,
        Granularity::Quarter => 92 * DAY,
        Granularity::Year => 366 * DAY,
    }
}

/// Returns a time moved by microseconds; `None` if it leaves the calendar.
fn moved(value: &Value, by: i64) -> Option<Value> {
    let within = |micros: i64| micros.checked_add(by).filter(|moved| CALENDAR.contains(moved));
    Some(match value {
        Value::Date(days) => {
            let moved = within(i64::from(*days).checked_mul(DAY)?)?;
            Value::Date(i32::try_from(moved.div_euclid(DAY)).ok()?)
        }
        Value::Timestamp(micros) => Value::Timestamp(within(*micros)?),
        Value::TimestampTz(micros) => Value::TimestampTz(within(*micros)?),
        _ => return None,
    })
}
