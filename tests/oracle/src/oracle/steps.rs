//! Steps of time without data, and totals that run along them (rule 8, and `fill_gaps` of the
//! decisions).
//!
//! In: the groups that have data. Out: the groups with those that are added, and running totals in
//! place of sums. Days and more only: finer steps are left open.

use std::collections::{BTreeMap, BTreeSet};

use jiff::ToSpan as _;
use jiff::tz::TimeZone;
use terrane_compiler::types::Granularity;

use super::facts::{Grouped, Measured};
use super::{Code, Construct, Group, Reading, labels, times};
use crate::value::{Number, Value};

/// Rows that may be added.
const MAX_ADDED: usize = 100_000;

/// The group-by column that time runs along.
pub(crate) struct Along {
    group: Group,
    column: usize,
    granularity: Granularity,
    /// First and last step of the range, where it has those ends.
    first: Option<Value>,
    last: Option<Value>,
    fills: bool,
}

/// `None` where nothing runs, or a problem was noted.
pub(crate) fn along(reading: &Reading<'_>, facts: &[String], groups: &[Group], runs: bool) -> Option<Along> {
    if !runs && !reading.query.fill_gaps {
        return None;
    }
    reading.uses(Construct::Steps);
    let columns: Vec<usize> = (0..groups.len())
        .filter(|index| groups[*index].granularity.is_some() && reading.is_time(&groups[*index]))
        .collect();
    let axes: BTreeSet<(&str, &str)> = columns.iter().map(|c| (&*groups[*c].cube, &*groups[*c].dimension)).collect();
    if axes.len() != 1 {
        reading.refuse(Code::InvalidQuery);
        return None;
    }
    let [column] = columns[..] else {
        reading.leave_open("several granularities of one axis");
        return None;
    };
    let granularity = groups[column].granularity?;
    if granularity < Granularity::Day {
        reading.leave_open("steps finer than a day");
        return None;
    }
    let (first, last) = range(reading, facts, &groups[column], granularity).unwrap_or_default();
    Some(Along { group: groups[column].clone(), column, granularity, first, last, fills: reading.query.fill_gaps })
}

fn range(
    reading: &Reading<'_>,
    facts: &[String],
    group: &Group,
    granularity: Granularity,
) -> Option<(Option<Value>, Option<Value>)> {
    let own = group.of_fact(reading, facts.first()?)?;
    let axis = reading.axis_of(&own.cube, &own.dimension)?;
    let is_axis =
        |member: &terrane_compiler::query::MemberRef| reading.named(member).is_some_and(|named| named == group.named());
    let of_dimensions = reading.query.time_dimensions.iter().filter(|time| is_axis(&time.member));
    let mut ranges: Vec<_> = of_dimensions.filter_map(|time| time.range.as_ref()).collect();
    if let Some(range) = &reading.query.time_range {
        match &range.member {
            Some(member) if is_axis(member) => ranges.push(&range.range),
            Some(_) => {}
            None if group.is_metric_time => ranges.push(&range.range),
            None => reading.leave_open("steps within each cube's own range"),
        }
    }
    if ranges.len() > 1 {
        reading.leave_open("several ranges on one axis");
    }
    let stretch = times::range(ranges.first()?, axis, &reading.zone, reading.now).ok()?;
    let bucket = |micros| labels::bucket(&axis.value(micros), granularity, &reading.zone);
    Some((stretch.first().map(bucket), stretch.last().map(bucket)))
}

impl Along {
    pub(crate) fn column(&self) -> usize {
        self.column
    }

    pub(crate) fn group(&self) -> &Group {
        &self.group
    }

    /// Whether something can be before the range.
    pub(crate) fn has_start(&self) -> bool {
        self.first.is_some()
    }

    /// What was before the range counts in its first step.
    pub(crate) fn at_start(&self, grouped: Grouped) -> Grouped {
        let Some(first) = &self.first else { return grouped };
        let mut groups: BTreeMap<Vec<Value>, Vec<Measured>> = BTreeMap::new();
        for (mut key, rows) in grouped.groups {
            key[self.column] = first.clone();
            groups.entry(key).or_default().extend(rows);
        }
        Grouped { groups }
    }

    /// Adds the steps without data.
    pub(crate) fn add(&self, reading: &Reading<'_>, groups: usize, keys: &mut BTreeSet<Vec<Value>>) {
        let had = keys.len();
        let times: Vec<&Value> = keys.iter().map(|key| &key[self.column]).filter(|time| !time.is_null()).collect();
        let seen = times.iter().min().zip(times.iter().max()).map(|(a, b)| ((*a).clone(), (*b).clone()));
        let range = self.first.clone().zip(self.last.clone());
        let Some((first, mut last)) = range.or(seen) else { return };
        // Totals run to the end of the range, also where it has no start.
        if let (false, Some(end)) = (self.fills, &self.last) {
            last = end.clone();
        }
        let mut partitions: BTreeMap<Vec<Value>, Option<Value>> = BTreeMap::new();
        for key in keys.iter() {
            let time = Some(key[self.column].clone()).filter(|time| !time.is_null());
            let earliest = partitions.entry(self.others(key)).or_insert_with(|| time.clone());
            if let Some(time) = time
                && earliest.as_ref().is_none_or(|known| time < *known)
            {
                *earliest = Some(time);
            }
        }
        if self.fills && groups == 1 {
            partitions.entry(Vec::new()).or_default();
        }
        for (others, earliest) in partitions {
            // Filled from the start; running from the partition's own first step with data.
            let start = if self.fills { Some(first.clone()) } else { earliest };
            let Some(mut step) = start else { continue };
            while step <= last {
                let mut key = others.clone();
                key.insert(self.column, step.clone());
                keys.insert(key);
                if keys.len() > had + MAX_ADDED {
                    reading.refuse(Code::InvalidQuery);
                    reading.uses(Construct::ManySteps);
                    return;
                }
                let Some(next) = self.next(&step) else { break };
                step = next;
            }
        }
    }

    fn others(&self, key: &[Value]) -> Vec<Value> {
        key.iter().enumerate().filter(|(index, _)| *index != self.column).map(|(_, value)| value.clone()).collect()
    }

    fn next(&self, step: &Value) -> Option<Value> {
        let span = match self.granularity {
            Granularity::Week => 1.week(),
            Granularity::Month => 1.month(),
            Granularity::Quarter => 3.months(),
            Granularity::Year => 1.year(),
            _ => 1.day(),
        };
        let next = labels::clock(step.micros()?).checked_add(span).ok()?;
        Some(labels::bucket(&Value::Local(labels::micros(next)), self.granularity, &TimeZone::UTC))
    }

    /// Turns the sums of one aggregate into running totals. Keys come in order of the axis within
    /// each partition.
    pub(crate) fn run(&self, rows: &mut [(Vec<Value>, Vec<Value>)], aggregate: usize) {
        let mut totals: BTreeMap<Vec<Value>, Option<Number>> = BTreeMap::new();
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by(|a, b| rows[*a].0[self.column].cmp(&rows[*b].0[self.column]));
        for index in order {
            let (key, aggregates) = &mut rows[index];
            if key[self.column].is_null() {
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
