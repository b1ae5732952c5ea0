//! Converts instants to the query's time zone in SQL: by the zone's name if the engine knows zones, else by a CASE over
//! its offsets.
//!
//! In: an instant, and its range if filters define one. Out: the wall-clock time in the zone. The changes of a zone's
//! offset come from the compiler's own tables, so the engine needs none. The CASE is a tree, in which a row is compared
//! with few changes and not with all of them. This is eight times faster for the 360 changes of New York. If no filter
//! sets an end, changes up to [`HORIZON`] are included. The offset after the last change applies to all later times.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::ast::{SqlExpr, TimeFunction};
use super::dialect_profile::{DialectProfile, Op};
use super::expression::micros_as;
use crate::model::DimensionId;
use crate::plan::{Fact, LogicalPlan};
use crate::query::{AxisBounds, Operand, Predicate, Test};
use crate::types::{Granularity, LogicalType, Value, is_utc};

/// The last time up to which changes of offsets are listed, 2100-01-01, in seconds since the Unix epoch.
const HORIZON: i64 = 4_102_444_800;
/// The largest number of changes of a zone's offset in one statement, for any range of filters.
const MAX_CHANGES: usize = 1_000;

/// The form in which the engine receives a zone other than UTC: its name, or its offsets.
#[derive(Debug, Clone, Copy)]
pub(super) enum Zone<'a> {
    Named(&'a str),
    Offsets(&'a TimeZone),
}

/// The range of a value, in microseconds since the Unix epoch; `None` for an unbounded side.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct InstantRange {
    pub(super) from: Option<i64>,
    pub(super) to: Option<i64>,
}

impl InstantRange {
    /// Returns a range that contains all steps, each of which lasts at most an hour.
    pub(super) fn of_steps(bounds: &AxisBounds) -> Self {
        const HOUR: i64 = 3_600_000_000;
        let length = i64::try_from(bounds.steps).unwrap_or(i64::MAX).saturating_mul(HOUR);
        InstantRange { from: Some(bounds.first), to: Some(bounds.first.saturating_add(length)) }
    }
}

impl<'a> Zone<'a> {
    /// Returns the time zone of a plan; `None` for UTC.
    pub(super) fn of(plan: &'a LogicalPlan<'a>, profile: &DialectProfile) -> Option<Self> {
        let name = plan.timezone.iana_name().filter(|_| !is_utc(&plan.timezone))?;
        Some(if has_zones(profile) { Zone::Named(name) } else { Zone::Offsets(&plan.timezone) })
    }

    /// Returns the local time of `instant`.
    pub(super) fn local(self, instant: SqlExpr<'a>, column_type: LogicalType, instants: InstantRange) -> SqlExpr<'a> {
        match self {
            Zone::Named(name) => in_zone(instant, name, column_type),
            Zone::Offsets(zone) => {
                let (first, changes) = changes(zone, instants);
                let offset = offset(&instant, column_type, first, &changes);
                SqlExpr::Time {
                    granularity: Granularity::Second,
                    function: TimeFunction::Add,
                    args: vec![instant, offset],
                }
            }
        }
    }
}

pub(super) fn has_zones(profile: &DialectProfile) -> bool {
    profile.op(Op::ToTimeZone, 2, Some(LogicalType::Timestamp)).is_some()
}

/// Returns the wall-clock time of an instant, for an engine that supports the time zone.
pub(super) fn in_zone<'a>(instant: SqlExpr<'a>, zone: &'a str, column_type: LogicalType) -> SqlExpr<'a> {
    let ty = if column_type == LogicalType::TimestampTz { column_type } else { LogicalType::Timestamp };
    SqlExpr::Op { op: Op::ToTimeZone, ty: Some(ty), args: vec![instant, SqlExpr::String(zone)] }
}

/// Returns the range of a time dimension that the fact's filters allow.
pub(super) fn instant_range(fact: &Fact<'_>, id: DimensionId) -> InstantRange {
    let mut instants = InstantRange::default();
    fact.row_filters.iter().for_each(|filter| narrow(filter, id, &mut instants));
    instants
}

fn narrow(predicate: &Predicate, id: DimensionId, instants: &mut InstantRange) {
    let ends = match predicate {
        Predicate::And(all) => return all.iter().for_each(|each| narrow(each, id, instants)),
        Predicate::Test { operand: Operand::Dimension { id: of, .. }, test } if *of == id => match test {
            Test::Range { low, high } => [low, high].map(|end| end.as_ref().and_then(|end| micros(&end.value))),
            Test::Equals(value) => [micros(value); 2],
            _ => return,
        },
        _ => return,
    };
    instants.from = instants.from.max(ends[0]);
    instants.to = [instants.to, ends[1]].into_iter().flatten().min();
}

fn micros(value: &Value) -> Option<i64> {
    match value {
        Value::Timestamp(micros) | Value::TimestampTz(micros) => Some(*micros),
        _ => None,
    }
}

/// Returns the first offset, then the instant and the offset of each change. Offsets are in seconds.
fn changes(zone: &TimeZone, instants: InstantRange) -> (i32, Vec<(Timestamp, i32)>) {
    let edge = |micros: i64| if micros < 0 { Timestamp::MIN } else { Timestamp::MAX };
    let instant = |micros: i64| Timestamp::from_microsecond(micros).unwrap_or(edge(micros));
    let from = instants.from.map_or(Timestamp::MIN, instant);
    let horizon = Timestamp::from_second(HORIZON).unwrap_or(Timestamp::MAX);
    let to = instants.to.map_or(horizon.max(from), instant);
    let first = zone.to_offset(from).seconds();
    let mut last = first;
    let mut changes = Vec::new();
    // Some changes affect only the name of the local time.
    for change in zone.following(from).take_while(|change| change.timestamp() <= to) {
        let offset = change.offset().seconds();
        if offset != last {
            changes.push((change.timestamp(), offset));
            last = offset;
        }
        if changes.len() == MAX_CHANGES {
            break;
        }
    }
    (first, changes)
}

fn offset<'a>(instant: &SqlExpr<'a>, ty: LogicalType, first: i32, changes: &[(Timestamp, i32)]) -> SqlExpr<'a> {
    let (before, after) = changes.split_at(changes.len() / 2);
    let [(at, then), after @ ..] = after else { return SqlExpr::Integer(first.into()) };
    let at = SqlExpr::Value(micros_as(at.as_microsecond(), ty));
    let is_before = SqlExpr::op(Op::Lt, vec![instant.clone(), at]);
    SqlExpr::when(vec![is_before], offset(instant, ty, first, before), Some(offset(instant, ty, *then, after)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros_of(text: &str) -> Option<i64> {
        text.parse::<Timestamp>().ok().map(Timestamp::as_microsecond)
    }

    fn new_york() -> TimeZone {
        jiff::tz::TimeZoneDatabase::bundled().get("America/New_York").unwrap()
    }

    #[test]
    fn range_includes_only_its_own_offset_changes() {
        let instants = InstantRange { from: micros_of("2024-03-10T05:00:00Z"), to: micros_of("2024-11-03T07:00:00Z") };
        let (first, changes) = changes(&new_york(), instants);
        let changes: Vec<_> = changes.iter().map(|(at, offset)| (at.to_string(), *offset)).collect();
        assert_eq!(first, -5 * 3600);
        let expected = [("2024-03-10T07:00:00Z", -4 * 3600), ("2024-11-03T06:00:00Z", -5 * 3600)];
        assert_eq!(changes, expected.map(|(at, offset)| (at.to_owned(), offset)));
    }

    #[test]
    fn all_offset_changes_are_included_without_a_range() {
        let (first, all) = changes(&new_york(), InstantRange::default());
        assert_eq!(first, -17_762);
        assert!((300..400).contains(&all.len()), "{}", all.len());
        assert_eq!(all.last().map(|(at, _)| at.to_string()).as_deref(), Some("2099-11-01T06:00:00Z"));
    }

    #[test]
    fn range_beyond_the_horizon_includes_its_offset_changes() {
        let instants = InstantRange { from: micros_of("2150-01-01T00:00:00Z"), to: micros_of("2151-01-01T00:00:00Z") };
        assert_eq!(changes(&new_york(), instants).1.len(), 2);
        let endless =
            InstantRange { from: micros_of("2150-01-01T00:00:00Z"), to: Some(Timestamp::MAX.as_microsecond()) };
        assert_eq!(changes(&new_york(), endless).1.len(), MAX_CHANGES);
        let open = InstantRange { from: micros_of("2150-01-01T00:00:00Z"), to: None };
        assert_eq!(changes(&new_york(), open), (-18_000, Vec::new()));
    }
}
