//! The stretches of time that a query speaks of: its ranges, what was before them, and what they are
//! compared with (rules 8, 17 and 19).
//!
//! In: the ranges as sent. Out: row filters for one cube, and the groups of the other stretch moved to
//! where they are shown.

use terrane_compiler::query::{CompareRange, DateRange, Operator};
use terrane_compiler::types::Granularity;

use jiff::ToSpan as _;

use super::facts::Grouped;
use super::filters::RowFilter;
use super::kinds::Axis;
use super::names::Named;
use super::steps::Along;
use super::times::{self, Shift, Stretch};
use super::{Code, Construct, Group, Reading, labels};
use crate::value::Value;

/// Which stretch rows are taken from.
#[derive(Clone, Copy)]
pub(crate) enum Period<'a> {
    Now,
    /// What the range is compared with.
    Previous,
    /// Before the range of the axis.
    History(&'a Along),
}

/// A range, and what it is on; `None`: each cube's own primary time.
struct Ranged<'q> {
    of: Option<(String, String)>,
    range: &'q DateRange,
}

impl Period<'_> {
    pub(crate) fn is_history(&self, test: impl Fn(usize) -> bool) -> bool {
        matches!(self, Period::History(along) if test(along.column()))
    }
}

fn ranged<'q>(reading: &Reading<'q>) -> Vec<Ranged<'q>> {
    let mut found = Vec::new();
    let mut add = |member, range| match reading.named(member) {
        Some(Named::Dimension { cube, name }) => found.push(Ranged { of: Some((cube, name)), range }),
        Some(Named::MetricTime) => found.push(Ranged { of: None, range }),
        _ => reading.unknown(member, Code::InvalidDimension),
    };
    for time in &reading.query.time_dimensions {
        if let Some(range) = &time.range {
            add(&time.member, range);
        }
    }
    if let Some(range) = &reading.query.time_range {
        match &range.member {
            Some(member) => add(member, &range.range),
            None => found.push(Ranged { of: None, range: &range.range }),
        }
    }
    found
}

/// Notes what is wrong with the ranges, whichever cubes they will narrow.
pub(crate) fn note(reading: &Reading<'_>) {
    for ranged in ranged(reading) {
        if let Some((cube, name)) = &ranged.of {
            match reading.axis_of(cube, name) {
                Some(axis) => drop(now(reading, ranged.range, axis)),
                None => reading.refuse(Code::InvalidQuery),
            }
        }
    }
}

/// The ranges as filters on the rows of one cube.
pub(crate) fn filters(reading: &Reading<'_>, fact: &str, period: Period<'_>) -> Vec<RowFilter> {
    let one = |ranged: &Ranged<'_>| {
        let (cube, name) = ranged.on(reading, fact)?;
        let Some(axis) = reading.axis_of(&cube, &name) else {
            reading.refuse(Code::InvalidQuery);
            return None;
        };
        let (operator, stretch) = match period {
            Period::Previous => (Operator::InDateRange, previous(reading, ranged.range, axis)?),
            Period::History(along) if ranged.narrows(along.group(), &cube, &name) => {
                (Operator::Lt, now(reading, ranged.range, axis)?)
            }
            _ => (Operator::InDateRange, now(reading, ranged.range, axis)?),
        };
        Some(RowFilter::along(reading, &cube, &name, operator, stretch))
    };
    ranged(reading).iter().map(|ranged| one(ranged).unwrap_or(RowFilter::Broken)).collect()
}

fn now(reading: &Reading<'_>, range: &DateRange, axis: Axis) -> Option<Stretch> {
    let stretch = times::range(range, axis, &reading.zone, reading.now);
    stretch.map_err(|()| reading.refuse(Code::InvalidFilter)).ok()
}

fn previous(reading: &Reading<'_>, range: &DateRange, axis: Axis) -> Option<Stretch> {
    match reading.query.compare.as_ref()? {
        CompareRange::Range(given) => now(reading, given, axis),
        CompareRange::Shift(text) => {
            let moved = times::moved(range, shift(reading, text)?, axis, &reading.zone, reading.now);
            let Ok(Some(stretch)) = moved else {
                reading.refuse(Code::InvalidQuery);
                return None;
            };
            Some(stretch)
        }
    }
}

/// `1 year`, `4 weeks`.
fn shift(reading: &Reading<'_>, text: &str) -> Option<Shift> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [count, unit] = words[..] else {
        reading.refuse(Code::InvalidQuery);
        return None;
    };
    let count = count.parse::<i64>().ok().filter(|count| (1..1_000).contains(count));
    let by = |count: i64| match unit.strip_suffix('s').unwrap_or(unit) {
        "day" => Some((count.days(), false)),
        "week" => Some((count.weeks(), false)),
        "month" => Some((count.months(), true)),
        "quarter" => Some(((3 * count).months(), true)),
        "year" => Some((count.years(), true)),
        _ => None,
    };
    let Some((span, is_by_months)) = count.and_then(by) else {
        reading.refuse(Code::InvalidQuery);
        return None;
    };
    Some(Shift { span, is_by_months })
}

impl Ranged<'_> {
    /// The dimension that a cube's rows are narrowed by.
    fn on(&self, reading: &Reading<'_>, fact: &str) -> Option<(String, String)> {
        self.of.clone().or_else(|| Some((fact.to_owned(), reading.primary_time(fact)?.to_owned())))
    }

    /// Whether it is the range of an axis; each cube's own may be that of the one dimension by its name.
    fn narrows(&self, group: &Group, cube: &str, name: &str) -> bool {
        self.is_along(group) || (self.of.is_none() && group.cube == cube && group.dimension == name)
    }

    fn is_along(&self, group: &Group) -> bool {
        match (&self.of, group.named()) {
            (None, Named::MetricTime) => true,
            (Some((cube, name)), Named::Dimension { cube: of, name: dimension }) => *cube == of && *name == dimension,
            _ => false,
        }
    }
}

/// Notes what of a comparison is refused or left open.
pub(crate) fn check_compared(reading: &Reading<'_>, facts: &[String], groups: &[Group], has_values: bool, runs: bool) {
    reading.uses(Construct::Compare);
    if !has_values || runs || reading.query.fill_gaps {
        reading.leave_open("a comparison of dimensions alone, or along steps");
    }
    let ranges = ranged(reading);
    let [ranged] = ranges.as_slice() else {
        match ranges.is_empty() {
            true => reading.refuse(Code::InvalidQuery),
            false => reading.leave_open("a comparison of several ranges"),
        }
        return;
    };
    for fact in facts {
        let Some(axis) = ranged.on(reading, fact).and_then(|(cube, name)| reading.axis_of(&cube, &name)) else {
            return;
        };
        let (Some(now), Some(previous)) = (now(reading, ranged.range, axis), previous(reading, ranged.range, axis))
        else {
            return;
        };
        if now.ends().is_none() || previous.ends().is_none() {
            reading.refuse(Code::InvalidQuery);
        }
    }
    let moved: Vec<&Group> = groups.iter().filter(|group| is_moved(reading, ranged, facts, group)).collect();
    if moved.len() > 1 {
        reading.leave_open("several granularities of one axis");
    }
    if moved.iter().any(|group| group.granularity.is_none()) {
        reading.leave_open("a comparison by moments");
    }
}

/// A group along the compared time, under whichever of its names.
fn is_moved(reading: &Reading<'_>, ranged: &Ranged<'_>, facts: &[String], group: &Group) -> bool {
    let is_own = |fact: &String, cube: &str, name: &str| *fact == cube && reading.primary_time(fact) == Some(name);
    match (&ranged.of, group.named()) {
        (None, Named::Dimension { cube, name }) => {
            let is_one = facts.iter().any(|fact| is_own(fact, &cube, &name));
            if is_one && facts.len() > 1 {
                reading.leave_open("one cube's time beside a comparison of each cube's own");
            }
            is_one
        }
        (Some((cube, name)), Named::MetricTime) => {
            if facts.iter().any(|fact| is_own(fact, cube, name)) {
                reading.leave_open("the common time beside a comparison of one cube's");
            }
            false
        }
        _ => ranged.is_along(group),
    }
}

/// Steps of the other stretch stand where those of the same position in the range stand (rule 19).
pub(crate) fn shifted(
    reading: &Reading<'_>,
    fact: &str,
    facts: &[String],
    groups: &[Group],
    grouped: Grouped,
) -> Grouped {
    let ranges = ranged(reading);
    let Some(ranged) = ranges.first() else { return grouped };
    let along = groups.iter().position(|group| is_moved(reading, ranged, facts, group));
    let axis = ranged.on(reading, fact).and_then(|(cube, name)| reading.axis_of(&cube, &name));
    let (Some(column), Some(axis)) = (along, axis) else { return grouped };
    let Some(granularity) = groups[column].granularity else { return grouped };
    let first = |stretch: Option<Stretch>| {
        let first = axis.value(stretch?.first()?);
        Some(labels::number(labels::bucket(&first, granularity, &reading.zone).micros()?, granularity))
    };

    let ends = first(now(reading, ranged.range, axis)).zip(first(previous(reading, ranged.range, axis)));
    let Some((now, previous)) = ends else { return grouped };
    let moved = |mut key: Vec<Value>| {
        if let Some(start) = key[column].micros() {
            key[column] = match granularity < Granularity::Day {
                // Hours and finer are stretches of the axis itself.
                true => {
                    let start = start + (now - previous) * labels::size(granularity);
                    labels::bucket(&axis.value(start), granularity, &reading.zone)
                }
                false => labels::numbered(labels::number(start, granularity) - previous + now, granularity),
            };
        }
        key
    };
    Grouped { groups: grouped.groups.into_iter().map(|(key, rows)| (moved(key), rows)).collect() }
}
