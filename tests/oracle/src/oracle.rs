//! The oracle: evaluates a query row by row, by the definition of its result.
//!
//! In: a [`World`] and a [`SemanticQuery`] as data. Out: the rendered rows, the allowed errors, or the statement that
//! the semantics leave the result open. The semantics of queries, projects and policies are described in `query.md`,
//! `project.md` and `policies.md` in `runtime/docs/reference`. The oracle shares no code with the planner, uses no SQL,
//! and is slow on purpose.

mod calc;
mod facts;
mod filters;
mod kinds;
mod labels;
mod masking;
mod names;
mod operators;
mod order;
mod outcome;
mod paths;
mod periods;
mod rows;
mod steps;
mod times;
mod windows;

use std::collections::BTreeSet;

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use terrane_compiler::query::{SemanticQuery, TimeDimension};
use terrane_compiler::types::Granularity;

use crate::value::Value;
use crate::world::World;
use calc::Calculation;
use facts::{Facts, Windows};
use names::Named;
pub use outcome::{Answer, Code, Construct, Outcome, Settings, Verdict};
pub use paths::Paths;
use periods::Period;

/// One group-by column.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    pub(crate) key: String,
    pub(crate) cube: String,
    pub(crate) dimension: String,
    pub(crate) granularity: Option<Granularity>,
    /// True for `metric_time`: the primary time of each cube. `cube` and `dimension` then have no meaning.
    pub(crate) is_metric_time: bool,
}

impl Group {
    pub(crate) fn named(&self) -> Named {
        match self.is_metric_time {
            true => Named::MetricTime,
            false => Named::Dimension { cube: self.cube.clone(), name: self.dimension.clone() },
        }
    }

    /// Returns the group in one cube. Reports a dimension that the cube lacks.
    pub(crate) fn of_fact(&self, evaluation: &Evaluation<'_>, fact: &str) -> Option<Group> {
        if !self.is_metric_time {
            return Some(self.clone());
        }
        let dimension = evaluation.primary_time(fact)?.to_owned();
        Some(Group { cube: fact.to_owned(), dimension, ..self.clone() })
    }
}

/// A query with the world in which it is evaluated, and the problems found by the evaluation.
pub(crate) struct Evaluation<'w> {
    pub(crate) world: &'w World,
    pub(crate) paths: &'w Paths<'w>,
    pub(crate) query: &'w SemanticQuery,
    pub(crate) zone: TimeZone,
    pub(crate) now: Timestamp,
    pub(crate) problems: std::cell::RefCell<BTreeSet<Code>>,
    pub(crate) constructs: std::cell::RefCell<BTreeSet<Construct>>,
    pub(crate) open: std::cell::Cell<Option<&'static str>>,
}

impl Evaluation<'_> {
    pub(crate) fn refuse(&self, code: Code) {
        self.problems.borrow_mut().insert(code);
    }

    pub(crate) fn uses(&self, construct: Construct) {
        self.constructs.borrow_mut().insert(construct);
    }

    pub(crate) fn leave_open(&self, why: &'static str) {
        self.open.set(self.open.get().or(Some(why)));
    }
}

/// Answers a query.
pub fn answer<'w>(world: &'w World, paths: &'w Paths<'w>, query: &'w SemanticQuery, settings: &Settings) -> Verdict {
    let zones = TimeZoneDatabase::bundled();
    let zone = query.timezone.as_deref().map_or(Ok(TimeZone::UTC), |name| zones.get(name));
    let is_zone = zone.is_ok();
    let evaluation = Evaluation {
        world,
        paths,
        query,
        zone: zone.unwrap_or(TimeZone::UTC),
        now: settings.now,
        problems: Default::default(),
        constructs: Default::default(),
        open: Default::default(),
    };
    if !is_zone || query.limit.is_some_and(|limit| limit > settings.max_limit) {
        evaluation.refuse(Code::InvalidQuery);
    }
    let answer = evaluate(&evaluation, settings);
    let problems = evaluation.problems.take();
    let outcome = match (evaluation.open.get(), answer) {
        (Some(why), _) => Outcome::Open(why),
        (None, Some(answer)) if problems.is_empty() => Outcome::Rows(answer),
        _ => Outcome::Refused(problems),
    };
    Verdict { outcome, constructs: evaluation.constructs.take() }
}

/// Evaluates a query. Returns `None` if a problem was reported.
fn evaluate(evaluation: &Evaluation<'_>, settings: &Settings) -> Option<Answer> {
    let query = evaluation.query;
    if let Some(cube) = &query.cube
        && evaluation.world.behind(cube).is_none()
    {
        evaluation.refuse(Code::InvalidQuery);
        return None;
    }
    if query.ungrouped {
        return ungrouped(evaluation, settings);
    }
    let groups = names::groups(evaluation);
    let values = names::values(evaluation);
    if query.values.is_empty() && groups.is_empty() {
        evaluation.refuse(Code::InvalidQuery);
        return None;
    }
    let (row_filters, group_filters) = filters::split(evaluation);
    names::segments(evaluation);
    periods::note(evaluation);
    let mut calculation = Calculation::new(evaluation);
    let selected: Vec<calc::Calc> = values.iter().map(|(_, value)| calculation.value(value)).collect();
    let mut facts = calculation.facts();
    if values.is_empty() && query.values.is_empty() {
        facts = facts::owner_of_dimensions(evaluation, &groups).into_iter().collect();
        if query.cube.is_none() && query.time_range.as_ref().is_some_and(|range| range.member.is_none()) {
            evaluation.leave_open("a time range of no measure");
        }
    }
    let selected_facts = facts.clone();
    let with_history = calculation.with_history.len();
    let selected_rolling = calculation.rolling.len();
    let shows_steps = query.fill_gaps || calculation.runs();
    let group_tests = filters::group_tests(evaluation, &group_filters, &groups, &mut calculation);
    let order = order::keys(evaluation, &groups, &values, &mut calculation);
    // Groups come only from the cubes of selected values. Cubes of values that only filters or sort keys name must
    // still reach the group-by columns.
    for fact in calculation.facts() {
        if !facts.contains(&fact) {
            facts.push(fact);
        }
    }
    let mut asked: Vec<usize> = order.iter().filter_map(order::Key::asked_group).collect();
    group_tests.iter().for_each(|test| test.groups(&mut asked));
    masking::check_groups(evaluation, &facts, &groups, &asked);
    if groups.iter().any(|group| group.is_metric_time) {
        evaluation.uses(Construct::MetricTime);
        note_mixed_times(evaluation, &facts, &groups);
    }
    let along = steps::along(evaluation, &facts, &groups, calculation.runs(), !calculation.rolling.is_empty());
    if let Some(along) = &along {
        windows::check(evaluation, along, &calculation);
    }
    if query.compare.is_some() {
        periods::check_compared(evaluation, &facts, &groups, !values.is_empty(), calculation.runs());
    }
    let of = |fact: &String, period| facts::grouped(evaluation, fact, &groups, &row_filters, period, &calculation);
    let finished: Facts = facts.iter().map(|fact| (fact.clone(), of(fact, Period::Now))).collect();
    let mut history = Facts::new();
    let mut previous = Facts::new();
    for fact in &selected_facts {
        if query.compare.is_some() {
            let moved = periods::shifted(evaluation, fact, &selected_facts, &groups, of(fact, Period::Previous));
            previous.insert(fact.clone(), moved);
        }
        let has_history = |index: &usize| calculation.wanted[*index].cube == *fact;
        if let Some(along) = along.as_ref().filter(|along| along.has_start())
            && calculation.with_history.iter().any(has_history)
        {
            evaluation.uses(Construct::History);
            history.insert(fact.clone(), along.at_start(of(fact, Period::History(along))));
        }
    }
    if calculation.with_history.len() > with_history && along.as_ref().is_some_and(steps::Along::has_start) {
        evaluation.leave_open("history of a total that is only looked up");
    }
    if !evaluation.problems.borrow().is_empty() || evaluation.open.get().is_some() {
        return None;
    }
    let mut keys: BTreeSet<Vec<Value>> = BTreeSet::new();
    for fact in &selected_facts {
        let all = [&finished, &history, &previous].into_iter().filter_map(|facts| facts.get(fact));
        keys.extend(all.flat_map(|fact| fact.groups.keys().cloned()));
    }
    if groups.is_empty() {
        // Without groups, the result is one row, even if no row passes.
        keys = BTreeSet::from([Vec::new()]);
    }
    let mut windows = Windows::default();
    // Values along the axis are computed from all groups and steps, also those that are only looked up.
    let mut looked_up: BTreeSet<Vec<Value>> = BTreeSet::new();
    if let Some(along) = &along {
        let span = along.span(&keys, calculation.runs());
        if !calculation.rolling.is_empty() {
            let placed = |fact: &String| {
                let rows = facts::placed(evaluation, fact, &groups, &row_filters, Period::Windows(along), &calculation);
                (fact.clone(), rows)
            };
            windows = windows::windows(evaluation, along, span, &calculation, &facts.iter().map(placed).collect());
        }
        for (index, _) in &calculation.rolling[..selected_rolling] {
            keys.extend(windows.keys(*index).cloned());
        }
        let steps_of = |mut keys: BTreeSet<Vec<Value>>| {
            along.add(evaluation, groups.len(), span, &mut keys);
            keys
        };
        let of_facts = finished.values().flat_map(|fact| fact.groups.keys().cloned());
        looked_up = steps_of(keys.iter().cloned().chain(of_facts).collect());
        if shows_steps {
            keys = steps_of(keys);
        }
    }
    looked_up.extend(keys.iter().cloned());
    let firsts: Facts = match &along {
        Some(along) => finished.iter().map(|(fact, rows)| (fact.clone(), along.first_places(rows))).collect(),
        None => Facts::new(),
    };
    let mut computed: Vec<(Vec<Value>, Vec<Value>)> = Vec::with_capacity(looked_up.len());
    for key in looked_up {
        let mut aggregates = calculation.aggregates(&key, &finished, &history, &windows);
        let first = calculation.aggregates(&key, &firsts, &history, &windows);
        for running in calculation.running.iter().filter(|_| along.is_some()) {
            aggregates[*running] = first[*running].clone();
        }
        computed.push((key, aggregates));
    }
    for (along, aggregate) in along.iter().flat_map(|along| calculation.running.iter().map(move |a| (along, *a))) {
        along.run(&mut computed, aggregate);
    }
    let mut rows: Vec<order::Row> = Vec::new();
    let has_deviation = calculation.has_deviation();
    for (key, aggregates) in computed.into_iter().filter(|(key, _)| keys.contains(key)) {
        if group_tests.iter().any(|test| test.depends_on_rounding(&aggregates, has_deviation)) {
            evaluation.leave_open("a filter at the last digits of a double");
        }
        if !group_tests.iter().all(|test| test.passes(&key, &aggregates)) {
            continue;
        }
        let mut values: Vec<Value> = selected.iter().map(|value| value.of(&aggregates)).collect();
        let sort = order.iter().map(|by| by.value(&key, &values, &aggregates)).collect();
        if query.compare.is_some() {
            let aggregates = calculation.aggregates(&key, &previous, &history, &windows);
            values.extend(selected.iter().map(|value| value.of(&aggregates)));
        }
        rows.push(order::Row { cells: key.into_iter().chain(values).collect(), sort });
    }
    order::sort(&mut rows, &order);
    if order::depends_on_rounding(&rows, has_deviation) {
        evaluation.leave_open("an order at the last digits of a double");
    }
    let total_rows = rows.len();
    let limit = query.limit.unwrap_or(settings.default_limit) as usize;
    let page = rows.into_iter().skip(query.offset as usize).take(limit);
    let rendered = page.map(|row| row.cells.into_iter().map(|cell| labels::rendered(cell, &evaluation.zone)).collect());
    let totals =
        if query.totals && !values.is_empty() { Some(totals(evaluation, &calculation, settings)?) } else { None };
    let times = if query.compare.is_some() { 2 } else { 1 };
    let approximate: Vec<bool> = selected.iter().map(|value| calculation.is_approximate(value)).collect();
    let previous = values.iter().filter(|_| times == 2).map(|(key, _)| format!("{key}.previous"));
    let keys = groups.iter().map(|group| group.key.clone()).chain(values.iter().map(|(key, _)| key.clone()));
    Some(Answer {
        keys: keys.chain(previous).collect(),
        rows: rendered.collect(),
        total_rows,
        approximate: groups.iter().map(|_| false).chain(approximate.repeat(times)).collect(),
        totals,
    })
}

/// Marks the result of a query as undefined if its axis mixes instants and local times in steps shorter than a day.
fn note_mixed_times(evaluation: &Evaluation<'_>, facts: &[String], groups: &[Group]) {
    let axes: Vec<_> =
        facts.iter().filter_map(|fact| evaluation.axis_of(fact, evaluation.primary_time(fact)?)).collect();
    let is_fine = |group: &Group| {
        group.is_metric_time && group.granularity.is_none_or(|granularity| granularity < Granularity::Day)
    };
    if axes.windows(2).any(|pair| pair[0] != pair[1]) && groups.iter().any(is_fine) {
        evaluation.leave_open("instants and wall clocks on one axis finer than a day");
    }
}

/// Returns the measures over all rows as one group. Filters on measures do not apply, because they restrict groups.
fn totals(evaluation: &Evaluation<'_>, calculation: &Calculation<'_, '_>, settings: &Settings) -> Option<Vec<Value>> {
    if calculation.runs() {
        evaluation.leave_open("a running total or a window without an axis");
        return None;
    }
    let query = evaluation.query;
    let ranges = query.time_dimensions.iter().filter(|time| time.range.is_some());
    let alone = SemanticQuery {
        dimensions: Vec::new(),
        time_dimensions: ranges.map(|time| TimeDimension { granularity: None, ..time.clone() }).collect(),
        filters: filters::on_rows(evaluation),
        order: Vec::new(),
        limit: None,
        offset: 0,
        totals: false,
        fill_gaps: false,
        ..query.clone()
    };
    match answer(evaluation.world, evaluation.paths, &alone, settings).outcome {
        Outcome::Rows(answer) => answer.rows.into_iter().next(),
        _ => {
            evaluation.leave_open("totals that have no answer");
            None
        }
    }
}

/// Returns the rows of one cube without grouping, in the order of its key.
fn ungrouped(evaluation: &Evaluation<'_>, settings: &Settings) -> Option<Answer> {
    let query = evaluation.query;
    let groups = names::groups(evaluation);
    names::values(evaluation);
    let (row_filters, group_filters) = filters::split(evaluation);
    names::segments(evaluation);
    periods::note(evaluation);
    if !query.values.is_empty() || groups.is_empty() {
        evaluation.refuse(Code::InvalidQuery);
    }
    if !group_filters.is_empty() || !query.order.is_empty() || query.time_range.is_some() {
        evaluation.leave_open("rows ungrouped, by measures");
    }
    let fact = facts::owner_of_dimensions(evaluation, &groups)?;
    masking::check_groups(evaluation, std::slice::from_ref(&fact), &groups, &[]);
    if query.compare.is_some() {
        evaluation.leave_open("a comparison of rows ungrouped");
    }
    let rows = facts::listed(evaluation, &fact, &groups, &row_filters)?;
    if !evaluation.problems.borrow().is_empty() {
        return None;
    }
    let total_rows = rows.len();
    let limit = query.limit.unwrap_or(settings.default_limit) as usize;
    let page = rows.into_iter().skip(query.offset as usize).take(limit);
    let rendered = page.map(|row| row.into_iter().map(|cell| labels::rendered(cell, &evaluation.zone)).collect());
    Some(Answer {
        keys: groups.iter().map(|group| group.key.clone()).collect(),
        rows: rendered.collect(),
        total_rows,
        approximate: groups.iter().map(|_| false).collect(),
        totals: None,
    })
}
