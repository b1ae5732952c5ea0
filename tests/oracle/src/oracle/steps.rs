//! Adds the periods without data, and computes running totals over all periods (see `fill_gaps` in
//! `runtime/docs/reference/query.md`).
//!
//! In: the groups that have data. Out: these groups and the added ones, with running totals instead of sums. Periods
//! shorter than a day are not supported.

use std::collections::{BTreeMap, BTreeSet};

use jiff::ToSpan as _;
use jiff::tz::TimeZone;
use terrane_compiler::types::Granularity;

use super::facts::{Grouped, Measured};
use super::{Code, Construct, Evaluation, Group, labels, times};
use crate::value::{Number, Value};

/// The largest number of rows that are added.
const MAX_ADDED: usize = 100_000;

/// The time axis: the group-by columns that are one time dimension with different granularities.
pub(crate) struct Along {
    group: Group,
    columns: Vec<(usize, Granularity)>,
    /// The unit of the axis. Each bucket of a column consists of whole steps.
    step: Granularity,
    /// The start of the range, and the last step of the range; `None` for an end that the range lacks.
    first: Option<Value>,
    last: Option<i64>,
    fills: bool,
    zone: TimeZone,
}

/// The first and the last step of an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    first: i64,
    last: i64,
}

/// Returns the time axis; `None` if the query has no axis or a problem was reported.
pub(crate) fn along(
    evaluation: &Evaluation<'_>,
    facts: &[String],
    groups: &[Group],
    runs: bool,
    has_windows: bool,
) -> Option<Along> {
    if !runs && !evaluation.query.fill_gaps {
        return None;
    }
    evaluation.uses(Construct::Steps);
    let is_along = |(_, group): &(usize, &Group)| group.granularity.is_some() && evaluation.is_time(group);
    let timed: Vec<(usize, &Group)> = groups.iter().enumerate().filter(is_along).collect();
    let axes: BTreeSet<(&str, &str)> = timed.iter().map(|(_, group)| (&*group.cube, &*group.dimension)).collect();
    if axes.len() != 1 {
        evaluation.refuse(Code::InvalidQuery);
        return None;
    }
    let columns: Vec<(usize, Granularity)> =
        timed.iter().filter_map(|(column, group)| Some((*column, group.granularity?))).collect();
    let finest = columns.iter().map(|(_, granularity)| *granularity).min()?;
    if finest < Granularity::Day {
        evaluation.leave_open("steps finer than a day");
        return None;
    }
    if columns.len() > 1 {
        evaluation.uses(Construct::TwoGranularities);
    }
    // Weeks do not divide months, so days are the common step of both.
    let nests = finest != Granularity::Week || columns.iter().all(|(_, granularity)| *granularity == finest);
    let step = if nests { finest } else { Granularity::Day };
    let group = timed.first()?.1.clone();
    let (first, last) = range(evaluation, facts, &group).unwrap_or_default();
    let last = last.and_then(|last| labels::bucket(&last, step, &evaluation.zone).micros());
    let zone = evaluation.zone.clone();
    // With rolling windows, every step of a range has a value.
    let fills = evaluation.query.fill_gaps || (has_windows && first.is_some() && last.is_some());
    Some(Along { group, columns, step, first, last, fills, zone })
}

/// Returns the first and the last moment of the range on the axis, if it has these ends.
fn range(evaluation: &Evaluation<'_>, facts: &[String], group: &Group) -> Option<(Option<Value>, Option<Value>)> {
    let own = group.of_fact(evaluation, facts.first()?)?;
    let axis = evaluation.axis_of(&own.cube, &own.dimension)?;
    let is_axis = |member: &terrane_compiler::query::MemberRef| {
        evaluation.named(member).is_some_and(|named| named == group.named())
    };
    let of_dimensions = evaluation.query.time_dimensions.iter().filter(|time| is_axis(&time.member));
    let mut ranges: Vec<_> = of_dimensions.filter_map(|time| time.range.as_ref()).collect();
    if let Some(range) = &evaluation.query.time_range {
        match &range.member {
            Some(member) if is_axis(member) => ranges.push(&range.range),
            Some(_) => {}
            None if group.is_metric_time => ranges.push(&range.range),
            None => match facts {
                [fact] if *fact == group.cube && evaluation.primary_time(fact) == Some(&*group.dimension) => {
                    ranges.push(&range.range);
                }
                [_] => {}
                _ => evaluation.leave_open("steps within each cube's own range"),
            },
        }
    }
    if ranges.len() > 1 {
        evaluation.leave_open("several ranges on one axis");
    }
    let stretch = times::range(ranges.first()?, axis, &evaluation.zone, evaluation.now).ok()?;
    Some((stretch.first().map(|first| axis.value(first)), stretch.last().map(|last| axis.value(last))))
}

impl Along {
    /// Returns the index of one column of the axis. All columns of the axis have the same time dimension.
    pub(crate) fn column(&self) -> usize {
        self.columns[0].0
    }

    pub(crate) fn group(&self) -> &Group {
        &self.group
    }

    /// Returns whether the range has a start, so that rows may be before it.
    pub(crate) fn has_start(&self) -> bool {
        self.first.is_some()
    }

    /// Adds the rows before the range to the first step of the range.
    pub(crate) fn at_start(&self, grouped: Grouped) -> Grouped {
        let Some(first) = &self.first else { return grouped };
        let mut groups: BTreeMap<Vec<Value>, Vec<Measured>> = BTreeMap::new();
        for (mut key, rows) in grouped.groups {
            for (column, granularity) in &self.columns {
                key[*column] = labels::bucket(first, *granularity, &self.zone);
            }
            groups.entry(key).or_default().extend(rows);
        }
        Grouped { groups }
    }

    /// Returns the indexes of the columns of the axis.
    pub(crate) fn columns(&self) -> Vec<usize> {
        self.columns.iter().map(|(column, _)| *column).collect()
    }

    /// Returns the first and the last step of an answer that has these keys. `runs` is true if values are computed along
    /// the axis.
    pub(crate) fn span(&self, keys: &BTreeSet<Vec<Value>>, runs: bool) -> Option<Span> {
        let times: Vec<i64> = keys.iter().filter_map(|key| self.time(key)).collect();
        let seen = times.iter().min().zip(times.iter().max()).map(|(first, last)| (*first, *last));
        let start = self.first.as_ref().and_then(|first| labels::bucket(first, self.step, &self.zone).micros());
        let (first, mut last) = start.zip(self.last).or(seen)?;
        // Values along the axis continue to the end of the range, even if the range has no start.
        if let Some(end) = self.last.filter(|_| runs) {
            last = end;
        }
        Some(Span { first, last })
    }

    /// Returns the start and the end of each step, which is the time that the buckets of its columns have in common.
    pub(crate) fn steps(&self, span: Span) -> Vec<(i64, i64)> {
        let mut found: Vec<(i64, i64)> = Vec::new();
        let mut step = span.first;
        while step <= span.last && found.len() <= MAX_ADDED {
            let start = |granularity| labels::bucket(&Value::Local(step), granularity, &TimeZone::UTC).micros();
            let starts: Vec<(i64, Granularity)> =
                self.columns.iter().filter_map(|(_, granularity)| Some((start(*granularity)?, *granularity))).collect();
            let ends = starts.iter().map(|(start, granularity)| labels::moved(*start, 1, *granularity));
            let shared = (starts.iter().map(|(start, _)| *start).max().unwrap_or(step), ends.min().unwrap_or(step));
            if found.last() != Some(&shared) {
                found.push(shared);
            }
            let Some(next) = self.next(step) else { break };
            step = next;
        }
        found
    }

    /// Adds keys for the steps that have no data.
    pub(crate) fn add(
        &self,
        evaluation: &Evaluation<'_>,
        groups: usize,
        span: Option<Span>,
        keys: &mut BTreeSet<Vec<Value>>,
    ) {
        let had = keys.len();
        let Some(Span { first, last }) = span else { return };
        let mut partitions: BTreeMap<Vec<Value>, Option<i64>> = BTreeMap::new();
        for key in keys.iter() {
            let time = self.time(key);
            let earliest = partitions.entry(self.others(key)).or_insert(time);
            *earliest = [*earliest, time].into_iter().flatten().min();
        }
        if self.fills && groups == self.columns.len() {
            partitions.entry(Vec::new()).or_default();
        }
        for (others, earliest) in partitions {
            // Gaps are filled from the first step of the range. Running totals begin with a partition's first data.
            let Some(mut step) = (if self.fills { Some(first) } else { earliest }) else { continue };
            while step <= last {
                keys.insert(self.key(&others, step));
                if keys.len() > had + MAX_ADDED {
                    evaluation.refuse(Code::InvalidQuery);
                    evaluation.uses(Construct::ManySteps);
                    return;
                }
                let Some(next) = self.next(step) else { break };
                step = next;
            }
        }
    }

    /// Returns the start of a key's step, which is the latest start of its buckets.
    fn time(&self, key: &[Value]) -> Option<i64> {
        self.columns.iter().map(|(column, _)| key[*column].micros()).collect::<Option<Vec<i64>>>()?.into_iter().max()
    }

    fn others(&self, key: &[Value]) -> Vec<Value> {
        let is_other = |(index, _): &(usize, &Value)| self.columns.iter().all(|(column, _)| column != index);
        key.iter().enumerate().filter(is_other).map(|(_, value)| value.clone()).collect()
    }

    pub(crate) fn key(&self, others: &[Value], step: i64) -> Vec<Value> {
        let size = others.len() + self.columns.len();
        let mut others = others.iter();
        let bucket = |granularity| labels::bucket(&Value::Local(step), granularity, &TimeZone::UTC);
        let of = |index| match self.columns.iter().find(|(column, _)| *column == index) {
            Some((_, granularity)) => Some(bucket(*granularity)),
            None => others.next().cloned(),
        };
        (0..size).filter_map(of).collect()
    }

    fn next(&self, step: i64) -> Option<i64> {
        let span = match self.step {
            Granularity::Week => 1.week(),
            Granularity::Month => 1.month(),
            Granularity::Quarter => 3.months(),
            Granularity::Year => 1.year(),
            _ => 1.day(),
        };
        labels::clock(step).checked_add(span).ok().map(labels::micros)
    }

    /// Removes each row from all steps of a partition except the first, in which a running total counts it.
    pub(crate) fn first_places(&self, grouped: &Grouped) -> Grouped {
        let mut first: BTreeMap<(Vec<Value>, usize), i64> = BTreeMap::new();
        for (key, rows) in &grouped.groups {
            let Some(time) = self.time(key) else { continue };
            for row in rows {
                let earliest = first.entry((self.others(key), row.row)).or_insert(time);
                *earliest = time.min(*earliest);
            }
        }
        let is_first = |key: &[Value], row: &Measured| {
            self.time(key).is_none_or(|time| first.get(&(self.others(key), row.row)) == Some(&time))
        };
        let groups = grouped.groups.iter().map(|(key, rows)| {
            (key.clone(), rows.iter().filter(|row| is_first(key, row)).cloned().collect::<Vec<_>>())
        });
        Grouped { groups: groups.collect() }
    }

    /// Turns the sums of one aggregate into running totals.
    pub(crate) fn run(&self, rows: &mut [(Vec<Value>, Vec<Value>)], aggregate: usize) {
        let mut totals: BTreeMap<Vec<Value>, Option<Number>> = BTreeMap::new();
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by_key(|index| self.time(&rows[*index].0));
        for index in order {
            let (key, aggregates) = &mut rows[index];
            if self.time(key).is_none() {
                aggregates[aggregate] = Value::Null;
                continue;
            }
            let total = totals.entry(self.others(key)).or_default();
            if let Value::Number(sum) = aggregates[aggregate] {
                *total = Some(total.map_or(sum, |total| total.plus(sum)));
            }
            aggregates[aggregate] = total.map_or(Value::Null, Value::Number);
        }
    }
}
