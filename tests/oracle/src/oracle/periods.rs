//! The periods of a query: its ranges, the time before them, and the periods with which they are compared.
//!
//! In: the ranges as they were sent. Out: row filters for one cube, and the groups of the compared period. These groups
//! are moved to the groups of the query with which they are compared.

use terrane_compiler::query::{CompareRange, DateRange, Operator};
use terrane_compiler::types::Granularity;

use jiff::ToSpan as _;

use super::facts::Grouped;
use super::filters::RowFilter;
use super::kinds::Axis;
use super::names::Named;
use super::steps::Along;
use super::times::{self, Shift, Stretch};
use super::{Code, Construct, Evaluation, Group, labels};
use crate::value::Value;

/// The period from which rows are taken.
#[derive(Clone, Copy)]
pub(crate) enum Period<'a> {
    Now,
    /// The period with which the query compares its range.
    Previous,
    /// The time before the range of the axis.
    History(&'a Along),
    /// All steps of the axis, for rolling windows.
    Windows(&'a Along),
}

/// A range and its time dimension. `None` means the primary time of each cube.
struct Ranged<'q> {
    of: Option<(String, String)>,
    range: &'q DateRange,
}

impl Period<'_> {
    pub(crate) fn is_history(&self, test: impl Fn(usize) -> bool) -> bool {
        matches!(self, Period::History(along) if test(along.column()))
    }
}

fn ranged<'q>(evaluation: &Evaluation<'q>) -> Vec<Ranged<'q>> {
    let mut found = Vec::new();
    let mut add = |member, range| match evaluation.named(member) {
        Some(Named::Dimension { cube, name }) => found.push(Ranged { of: Some((cube, name)), range }),
        Some(Named::MetricTime) => found.push(Ranged { of: None, range }),
        _ => evaluation.unknown(member, Code::InvalidDimension),
    };
    for time in &evaluation.query.time_dimensions {
        if let Some(range) = &time.range {
            add(&time.member, range);
        }
    }
    if let Some(range) = &evaluation.query.time_range {
        match &range.member {
            Some(member) => add(member, &range.range),
            None => found.push(Ranged { of: None, range: &range.range }),
        }
    }
    found
}

/// Reports problems of the ranges that do not depend on the restricted cubes.
pub(crate) fn note(evaluation: &Evaluation<'_>) {
    for ranged in ranged(evaluation) {
        if let Some((cube, name)) = &ranged.of {
            match evaluation.axis_of(cube, name) {
                Some(axis) => drop(now(evaluation, ranged.range, axis)),
                None => evaluation.refuse(Code::InvalidQuery),
            }
        }
    }
}

/// Returns the ranges as filters on the rows of one cube.
pub(crate) fn filters(evaluation: &Evaluation<'_>, fact: &str, period: Period<'_>) -> Vec<RowFilter> {
    let one = |ranged: &Ranged<'_>| {
        let (cube, name) = ranged.on(evaluation, fact)?;
        let Some(axis) = evaluation.axis_of(&cube, &name) else {
            evaluation.refuse(Code::InvalidQuery);
            return None;
        };
        let (operator, stretch) = match period {
            Period::Previous => (Operator::InDateRange, previous(evaluation, ranged.range, axis)?),
            Period::History(along) if ranged.narrows(along.group(), &cube, &name) => {
                (Operator::Lt, now(evaluation, ranged.range, axis)?)
            }
            _ => (Operator::InDateRange, now(evaluation, ranged.range, axis)?),
        };
        Some(RowFilter::along(evaluation, &cube, &name, operator, stretch))
    };
    let ranges = ranged(evaluation);
    let ranges = ranges.iter().filter(|ranged| !ranged.is_left_out(evaluation, fact, period));
    ranges.map(|ranged| one(ranged).unwrap_or(RowFilter::Broken)).collect()
}

fn now(evaluation: &Evaluation<'_>, range: &DateRange, axis: Axis) -> Option<Stretch> {
    let stretch = times::range(range, axis, &evaluation.zone, evaluation.now);
    stretch.map_err(|()| evaluation.refuse(Code::InvalidFilter)).ok()
}

fn previous(evaluation: &Evaluation<'_>, range: &DateRange, axis: Axis) -> Option<Stretch> {
    match evaluation.query.compare.as_ref()? {
        CompareRange::Range(given) => now(evaluation, given, axis),
        CompareRange::Shift(text) => {
            let moved = times::moved(range, shift(evaluation, text)?, axis, &evaluation.zone, evaluation.now);
            let Ok(Some(stretch)) = moved else {
                evaluation.refuse(Code::InvalidQuery);
                return None;
            };
            Some(stretch)
        }
    }
}

/// Parses the length of a shift, such as `1 year` or `4 weeks`.
fn shift(evaluation: &Evaluation<'_>, text: &str) -> Option<Shift> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [count, unit] = words[..] else {
        evaluation.refuse(Code::InvalidQuery);
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
        evaluation.refuse(Code::InvalidQuery);
        return None;
    };
    Some(Shift { span, is_by_months })
}

impl Ranged<'_> {
    /// Returns the time dimension by which the range restricts a cube's rows.
    fn on(&self, evaluation: &Evaluation<'_>, fact: &str) -> Option<(String, String)> {
        self.of.clone().or_else(|| Some((fact.to_owned(), evaluation.primary_time(fact)?.to_owned())))
    }

    /// Returns whether the range is ignored for windows. It is ignored if it restricts the axis of the windows, because
    /// windows read rows outside the range.
    fn is_left_out(&self, evaluation: &Evaluation<'_>, fact: &str, period: Period<'_>) -> bool {
        let Period::Windows(along) = period else { return false };
        self.on(evaluation, fact).is_some_and(|(cube, name)| self.narrows(along.group(), &cube, &name))
    }

    /// Returns whether the range restricts the time of a group, either as the range of its axis or as the range of the
    /// cube's primary time.
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

/// Reports the problems of a comparison, and records whether the semantics leave its result open.
pub(crate) fn check_compared(
    evaluation: &Evaluation<'_>,
    facts: &[String],
    groups: &[Group],
    has_values: bool,
    runs: bool,
) {
    evaluation.uses(Construct::Compare);
    if !has_values || runs || evaluation.query.fill_gaps {
        evaluation.leave_open("a comparison of dimensions alone, or along steps");
    }
    let ranges = ranged(evaluation);
    let [ranged] = ranges.as_slice() else {
        match ranges.is_empty() {
            true => evaluation.refuse(Code::InvalidQuery),
            false => evaluation.leave_open("a comparison of several ranges"),
        }
        return;
    };
    for fact in facts {
        let Some(axis) = ranged.on(evaluation, fact).and_then(|(cube, name)| evaluation.axis_of(&cube, &name)) else {
            return;
        };
        let (Some(now), Some(previous)) =
            (now(evaluation, ranged.range, axis), previous(evaluation, ranged.range, axis))
        else {
            return;
        };
        if now.ends().is_none() || previous.ends().is_none() {
            evaluation.refuse(Code::InvalidQuery);
        }
    }
    let moved: Vec<&Group> = groups.iter().filter(|group| is_moved(evaluation, ranged, facts, group)).collect();
    if moved.len() > 1 {
        evaluation.leave_open("several granularities of one axis");
    }
    if moved.iter().any(|group| group.granularity.is_none()) {
        evaluation.leave_open("a comparison by moments");
    }
}

/// Returns whether a group is a bucket of the compared time, which may have several names.
fn is_moved(evaluation: &Evaluation<'_>, ranged: &Ranged<'_>, facts: &[String], group: &Group) -> bool {
    let is_own = |fact: &String, cube: &str, name: &str| *fact == cube && evaluation.primary_time(fact) == Some(name);
    match (&ranged.of, group.named()) {
        (None, Named::Dimension { cube, name }) => {
            let is_one = facts.iter().any(|fact| is_own(fact, &cube, &name));
            if is_one && facts.len() > 1 {
                evaluation.leave_open("one cube's time beside a comparison of each cube's own");
            }
            is_one
        }
        (Some((cube, name)), Named::MetricTime) => {
            if facts.iter().any(|fact| is_own(fact, cube, name)) {
                evaluation.leave_open("the common time beside a comparison of one cube's");
            }
            false
        }
        _ => ranged.is_along(group),
    }
}

/// Moves the steps of the compared period to the steps with the same position in the range.
pub(crate) fn shifted(
    evaluation: &Evaluation<'_>,
    fact: &str,
    facts: &[String],
    groups: &[Group],
    grouped: Grouped,
) -> Grouped {
    let ranges = ranged(evaluation);
    let Some(ranged) = ranges.first() else { return grouped };
    let along = groups.iter().position(|group| is_moved(evaluation, ranged, facts, group));
    let axis = ranged.on(evaluation, fact).and_then(|(cube, name)| evaluation.axis_of(&cube, &name));
    let (Some(column), Some(axis)) = (along, axis) else { return grouped };
    let Some(granularity) = groups[column].granularity else { return grouped };
    let first = |stretch: Option<Stretch>| {
        let first = axis.value(stretch?.first()?);
        Some(labels::number(labels::bucket(&first, granularity, &evaluation.zone).micros()?, granularity))
    };

    let ends = first(now(evaluation, ranged.range, axis)).zip(first(previous(evaluation, ranged.range, axis)));
    let Some((now, previous)) = ends else { return grouped };
    let moved = |mut key: Vec<Value>| {
        if let Some(start) = key[column].micros() {
            key[column] = match granularity < Granularity::Day {
                // Hours and shorter units are durations on the axis itself.
                true => {
                    let start = start + (now - previous) * labels::size(granularity);
                    labels::bucket(&axis.value(start), granularity, &evaluation.zone)
                }
                false => labels::numbered(labels::number(start, granularity) - previous + now, granularity),
            };
        }
        key
    };
    Grouped { groups: grouped.groups.into_iter().map(|(key, rows)| (moved(key), rows)).collect() }
}
