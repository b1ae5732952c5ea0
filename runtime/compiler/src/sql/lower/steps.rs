//! Adds rows for steps of time without rows (`fill_gaps`), and sums values up along the steps (running totals).
//!
//! The branches are stacked as the named query `parts`. The steps are made from numbers; they cover the query's range,
//! or lead from the first to the last step in `parts`. Each combination of the groups outside the axis gets a row of
//! nulls for each of its steps, and the merge adds the values of the facts.

use super::{ADDED, GROUPED, IS_SELECTED, Lowering, MERGED, Name, Query, Select, Source, SqlExpr};
use crate::model::Dimension;
use crate::plan::Fact;
use crate::query::{Axis, AxisBounds, Group, MAX_STEPS};
use crate::sql::ast::{JoinClause, JoinKind};
use crate::sql::dialect_profile::Op;
use crate::sql::expression::added;
use crate::types::LogicalType;

pub(super) const PARTS: &str = "terrane_parts";
/// The part of `parts` that is known before the steps, if some facts have windows.
const OWN_PARTS: &str = "terrane_own_parts";
pub(super) const STEPS: &str = "terrane_steps";
const KEYS: &str = "step_keys";
const DIGITS: &str = "terrane_digits";
const NUMBERS: &str = "numbers";
const BOUNDS: &str = "bounds";
const STEP: &str = "step";
const FIRST: &str = "first_step";
const LAST: &str = "last_step";
/// The aliases of [`DIGITS`] in `numbers`, one for each decimal place.
const PLACES: [&str; 5] = ["d0", "d1", "d2", "d3", "d4"];

impl<'a> Lowering<'a> {
    fn axis(&self) -> Option<&'a Axis> {
        self.plan.axis.as_ref()
    }

    pub(super) fn is_on_axis(&self, group: usize) -> bool {
        self.axis().is_some_and(|axis| axis.groups.contains(&group))
    }

    /// Returns the named queries: `parts`, `digits` and `steps`.
    pub(super) fn named_queries(&self) -> Vec<(&'static str, Query<'a>)> {
        let digit = |digit| Select::new(vec![(SqlExpr::Integer(digit), Name::Fixed("d"))], None);
        let digits = (DIGITS, Query::UnionAll((0..10).map(digit).collect()));
        let steps = self.axis().map(|axis| (STEPS, Query::Select(Box::new(self.steps(axis)))));
        let own = self.branches();
        if self.windowed().next().is_none() {
            return [(PARTS, Query::UnionAll(own)), digits].into_iter().chain(steps).collect();
        }
        let mut named: Vec<_> = self.window_rows().collect();
        let base = (!own.is_empty()).then_some(OWN_PARTS);
        named.extend(base.map(|name| (name, Query::UnionAll(own))));
        named.extend(std::iter::once(digits).chain(steps));
        named.extend(self.window_parts(base));
        named
    }

    /// Returns the name of the query from which the steps are computed.
    fn base(&self) -> &'static str {
        if self.windowed().next().is_some() { OWN_PARTS } else { PARTS }
    }

    /// Selects the merged groups with the values that are summed up along the axis.
    pub(super) fn carried(&self) -> Select<'a> {
        let column = |name| SqlExpr::Derived(GROUPED, name);
        let axis = self.axis().map_or(&[][..], |axis| &axis.groups);
        let is_dated =
            || axis.iter().map(|g| SqlExpr::op(Op::IsNotNull, vec![column(Name::Numbered('g', *g))])).collect();
        // Rows without a time are in no window.
        let item = |name| match name {
            Name::Numbered('a', index) if self.has_window(index) => SqlExpr::when(is_dated(), column(name), None),
            name => column(name),
        };
        let mut items: Vec<_> = self.names().map(|name| (item(name), name)).collect();
        let others = || (0..self.plan.groups.len()).filter(|g| !axis.contains(g));
        for (index, aggregate) in self.plan.running.iter().enumerate() {
            // Groups without a time are in no step, and have no running total.
            let value = SqlExpr::when(is_dated(), column(Name::Numbered('a', *aggregate)), None);
            let total = SqlExpr::SumOver {
                argument: Box::new(value),
                partition: others().map(|g| column(Name::Numbered('g', g))).collect(),
                order: axis.iter().map(|g| column(Name::Numbered('g', *g))).collect(),
            };
            let fact = &self.plan.facts[self.plan.aggregates[*aggregate].fact];
            let mut shown: Vec<_> = is_dated();
            shown.extend(self.step_of_period(fact, GROUPED));
            items.push((SqlExpr::when(shown, total, None), Name::Numbered('r', index)));
        }
        let added = SqlExpr::SumOver {
            argument: Box::new(column(Name::Fixed(ADDED))),
            partition: Vec::new(),
            order: Vec::new(),
        };
        items.push((added, Name::Fixed(ADDED)));
        if self.has_lookups() {
            items.push((column(Name::Fixed(IS_SELECTED)), Name::Fixed(IS_SELECTED)));
        }
        Select::new(items, Source::Derived(Box::new(Query::Select(Box::new(self.with_steps()))), GROUPED))
    }

    /// Returns the condition that a step is in the period of a fact, if the other period has more steps.
    pub(super) fn step_of_period(&self, fact: &'a Fact<'a>, table: &'static str) -> Option<SqlExpr<'a>> {
        let axis = self.axis()?;
        let shift = self.plan.step_shift()?;
        let own = if fact.period.is_previous { shift.compared } else { shift.own };
        if own >= shift.own.max(shift.compared) {
            return None;
        }
        let ty = self.expressions.bucket_type(axis.step, self.axis_dimension(axis));
        let first = self.expressions.step(axis.bounds.as_ref()?.first, ty);
        let last = added(axis.step, first, SqlExpr::Integer(own - 1), ty);
        Some(SqlExpr::op(Op::Le, vec![SqlExpr::Derived(table, Name::Numbered('g', shift.group)), last]))
    }

    pub(super) fn has_window(&self, aggregate: usize) -> bool {
        self.plan.facts[self.plan.aggregates[aggregate].fact].period.window.is_some()
    }

    /// Returns the names of the columns of groups and aggregates.
    fn names(&self) -> impl Iterator<Item = Name<'a>> {
        let groups = (0..self.plan.groups.len()).map(|index| Name::Numbered('g', index));
        groups.chain((0..self.plan.aggregates.len()).map(|index| Name::Numbered('a', index)))
    }

    /// Selects one row per group: the groups of the facts and those of the steps.
    fn with_steps(&self) -> Select<'a> {
        let column = |name| SqlExpr::Derived(MERGED, name);
        let groups = (0..self.plan.groups.len()).map(|index| Name::Numbered('g', index));
        let mut items: Vec<_> = groups.map(|name| (column(name), name)).collect();
        for index in 0..self.plan.aggregates.len() {
            items.push((self.merged(index), Name::Numbered('a', index)));
        }
        // A group counts as added only if no fact has it. If the axis was cut, the number in every row exceeds the
        // limit.
        let extreme = |op| SqlExpr::op(op, vec![column(Name::Fixed(ADDED))]);
        let was_there = SqlExpr::op(Op::Eq, vec![extreme(Op::Min), SqlExpr::Integer(0)]);
        let is_whole = SqlExpr::op(Op::Le, vec![extreme(Op::Max), SqlExpr::Integer(1)]);
        let count = SqlExpr::when(vec![was_there, is_whole], SqlExpr::Integer(0), Some(extreme(Op::Max)));
        items.push((count, Name::Fixed(ADDED)));
        if self.has_lookups() {
            items.push((self.selected(), Name::Fixed(IS_SELECTED)));
        }
        let mut stacked = Select::new(self.stacked(PARTS, SqlExpr::Integer(0)), named(PARTS));
        if self.has_lookups() {
            stacked.items.push((SqlExpr::Derived(PARTS, Name::Fixed(IS_SELECTED)), Name::Fixed(IS_SELECTED)));
        }
        let rows = Query::UnionAll(vec![stacked, self.added_rows()]);
        let mut select = Select::new(items, Source::Derived(Box::new(rows), MERGED));
        select.group_by = self.plan.groups.len();
        select
    }

    fn stacked(&self, table: &'static str, added: SqlExpr<'a>) -> Vec<(SqlExpr<'a>, Name<'a>)> {
        let columns = self.names().map(|name| (SqlExpr::Derived(table, name), name));
        columns.chain([(added, Name::Fixed(ADDED))]).collect()
    }

    /// Selects the steps of each combination that `keys` returns: all steps, or those from the combination's first
    /// step.
    fn added_rows(&self) -> Select<'a> {
        let mut items = Vec::new();
        for index in 0..self.plan.groups.len() {
            let table = if self.is_on_axis(index) { STEPS } else { KEYS };
            items.push((SqlExpr::Derived(table, Name::Numbered('g', index)), Name::Numbered('g', index)));
        }
        for (index, planned) in self.plan.aggregates.iter().enumerate() {
            items.push((self.null_of(planned.aggregate), Name::Numbered('a', index)));
        }
        items.push((SqlExpr::Derived(STEPS, Name::Fixed(ADDED)), Name::Fixed(ADDED)));
        if self.has_lookups() {
            let is_shown = SqlExpr::Integer(i64::from(self.plan.shows_steps()));
            items.push((is_shown, Name::Fixed(IS_SELECTED)));
        }
        let mut select = Select::new(items, named(STEPS));
        let has_others = (0..self.plan.groups.len()).any(|index| !self.is_on_axis(index));
        if !has_others && self.plan.has_all_steps() {
            return select;
        }
        let keys = Query::Select(Box::new(self.keys()));
        select.joins.push(JoinClause {
            source: Source::Derived(Box::new(keys), KEYS),
            kind: JoinKind::Cross,
            on: Vec::new(),
        });
        if !self.plan.has_all_steps() {
            select.filters.extend(self.starting_groups().iter().map(|group| {
                let step = SqlExpr::Derived(STEPS, Name::Numbered('g', *group));
                let start = SqlExpr::Derived(KEYS, Name::Numbered('f', *group));
                SqlExpr::op(Op::Ge, vec![step, start])
            }));
        }
        select
    }

    /// Returns the groups of the axis that order its steps: the finest group, or all groups if the finest does not nest
    /// in the others, such as weeks in months.
    pub(super) fn starting_groups(&self) -> &'a [usize] {
        let Some(axis) = self.axis() else { return &[] };
        match &axis.groups[..] {
            [finest, _, ..] if self.group_at(*finest).granularity == Some(axis.step) => &axis.groups[..1],
            groups => groups,
        }
    }

    /// Selects the combinations of the groups outside the axis, each with its first step.
    fn keys(&self) -> Select<'a> {
        let others = (0..self.plan.groups.len()).filter(|index| !self.is_on_axis(*index));
        let mut items: Vec<_> = others
            .map(|index| (SqlExpr::Derived(PARTS, Name::Numbered('g', index)), Name::Numbered('g', index)))
            .collect();
        let group_by = items.len();
        let mut filters = self.selected_parts(PARTS);
        let starting = if self.plan.has_all_steps() { &[] } else { self.starting_groups() };
        for group in starting {
            let step = SqlExpr::Derived(PARTS, Name::Numbered('g', *group));
            items.push((SqlExpr::op(Op::Min, vec![step]), Name::Numbered('f', *group)));
        }
        // The groups of the axis are buckets of the same time, so they are null in the same rows.
        filters.extend(
            starting
                .first()
                .map(|group| SqlExpr::op(Op::IsNotNull, vec![SqlExpr::Derived(PARTS, Name::Numbered('g', *group))])),
        );
        let mut select = Select::new(items, named(PARTS));
        select.filters = filters;
        select.group_by = group_by;
        select
    }

    fn selected_parts(&self, table: &'static str) -> Vec<SqlExpr<'a>> {
        let is_selected = || {
            let flag = SqlExpr::Derived(table, Name::Fixed(IS_SELECTED));
            SqlExpr::op(Op::Eq, vec![flag, SqlExpr::Integer(1)])
        };
        self.has_lookups().then(is_selected).into_iter().collect()
    }

    /// Returns the dimension of the axis in the first fact whose buckets have the type of the merged groups.
    pub(super) fn axis_dimension(&self, axis: &Axis) -> &'a Dimension {
        let all = || self.plan.facts.iter().map(|fact| self.plan.model.dimension(fact.groups[axis.groups[0]]));
        let is_widest = |d: &&Dimension| self.expressions.bucket_type(axis.step, d) != LogicalType::Date;
        all().find(is_widest).unwrap_or_else(|| self.plan.model.dimension(self.plan.facts[0].groups[axis.groups[0]]))
    }

    /// Selects a row for each step, with a column for each group of the axis.
    fn steps(&self, axis: &'a Axis) -> Select<'a> {
        let dimension = self.axis_dimension(axis);
        let ty = self.expressions.bucket_type(axis.step, dimension);
        let base = match &axis.bounds {
            Some(bounds) => self.known_steps(axis, bounds, ty),
            None => self.steps_of_parts(axis, ty),
        };
        let step = SqlExpr::Derived(STEPS, Name::Fixed(STEP));
        let mut items = Vec::new();
        let mut has_step = false;
        for index in &axis.groups {
            let Some(granularity) = self.group_at(*index).granularity else { continue };
            let bucket = match granularity == axis.step {
                true => step.clone(),
                false => self.expressions.bucket_of_step(step.clone(), granularity, axis, dimension),
            };
            has_step |= granularity == axis.step;
            items.push((bucket, Name::Numbered('g', *index)));
        }
        let groups = items.len();
        let added = SqlExpr::Derived(STEPS, Name::Fixed(ADDED));
        let mut select = Select::new(items, Source::Derived(Box::new(Query::Select(Box::new(base))), STEPS));
        if has_step {
            select.items.push((added, Name::Fixed(ADDED)));
        } else {
            select.items.push((SqlExpr::op(Op::Max, vec![added]), Name::Fixed(ADDED)));
            select.group_by = groups;
        }
        select
    }

    fn group_at(&self, index: usize) -> &'a Group {
        &self.plan.groups[index]
    }

    fn known_steps(&self, axis: &Axis, bounds: &AxisBounds, ty: LogicalType) -> Select<'a> {
        let places =
            (1..PLACES.len()).find(|places| bounds.steps <= 10_u64.pow(*places as u32)).unwrap_or(PLACES.len());
        let number = || SqlExpr::Derived(NUMBERS, Name::Fixed("n"));
        let step = added(axis.step, self.expressions.step(bounds.first, ty), number(), ty);
        let items = vec![(step, Name::Fixed(STEP)), (SqlExpr::Integer(1), Name::Fixed(ADDED))];
        let mut select = Select::new(items, Source::Derived(Box::new(numbers(places)), NUMBERS));
        let steps = i64::try_from(bounds.steps).unwrap_or(i64::MAX);
        select.filters = vec![SqlExpr::op(Op::Lt, vec![number(), SqlExpr::Integer(steps)])];
        select
    }

    /// Returns the first step of a group's first bucket and the last step of its last bucket. A bucket can contain
    /// several steps.
    fn ends_of_parts(&self, axis: &Axis, group: usize, ty: LogicalType) -> (SqlExpr<'a>, SqlExpr<'a>) {
        let extreme = |op| SqlExpr::op(op, vec![SqlExpr::Derived(self.base(), Name::Numbered('g', group))]);
        let granularity = self.group_at(group).granularity.unwrap_or(axis.step);
        let mut last = extreme(Op::Max);
        if granularity != axis.step {
            last = added(granularity, last, SqlExpr::Integer(1), ty);
            last = added(axis.step, last, SqlExpr::Integer(-1), ty);
        }
        (extreme(Op::Min), last)
    }

    /// Selects the steps from the first to the last one of a selected fact. If a range has only an end, running totals
    /// continue to that end.
    fn steps_of_parts(&self, axis: &Axis, ty: LogicalType) -> Select<'a> {
        // The first and the last step are within the first and the last bucket of each granularity.
        let (mut first, mut last) = self.ends_of_parts(axis, axis.groups[0], ty);
        for group in self.starting_groups().iter().skip(1) {
            let (start, end) = self.ends_of_parts(axis, *group, ty);
            first = chosen(Op::Gt, start, first);
            last = chosen(Op::Lt, end, last);
        }
        let is_along = !self.plan.running.is_empty() || self.windowed().next().is_some();
        if let Some(end) = axis.last.filter(|_| is_along) {
            last = self.expressions.step(end, ty);
        }
        let base = self.base();
        let mut bounds = Select::new(vec![(first, Name::Fixed(FIRST)), (last, Name::Fixed(LAST))], named(base));
        bounds.filters = self.selected_parts(base);
        let column = |name| SqlExpr::Derived(BOUNDS, Name::Fixed(name));
        let number = || SqlExpr::Derived(NUMBERS, Name::Fixed("n"));
        let step = |count| added(axis.step, column(FIRST), count, ty);
        let limit = i64::try_from(MAX_STEPS).unwrap_or(i64::MAX);
        let is_cut = SqlExpr::op(Op::Lt, vec![step(SqlExpr::Integer(limit - 1)), column(LAST)]);
        let added = SqlExpr::when(vec![is_cut], SqlExpr::Integer(limit + 1), Some(SqlExpr::Integer(1)));
        let items = vec![(step(number()), Name::Fixed(STEP)), (added, Name::Fixed(ADDED))];
        let mut select = Select::new(items, Source::Derived(Box::new(numbers(PLACES.len())), NUMBERS));
        select.joins.push(JoinClause {
            source: Source::Derived(Box::new(Query::Select(Box::new(bounds))), BOUNDS),
            kind: JoinKind::Cross,
            on: Vec::new(),
        });
        select.filters = vec![SqlExpr::op(Op::Le, vec![step(number()), column(LAST)])];
        select
    }
}

/// Returns the earlier or the later of two points in time.
pub(super) fn chosen<'a>(op: Op, one: SqlExpr<'a>, other: SqlExpr<'a>) -> SqlExpr<'a> {
    let is_one = SqlExpr::op(op, vec![one.clone(), other.clone()]);
    SqlExpr::when(vec![is_one], one, Some(other))
}

pub(super) fn named<'a>(name: &'static str) -> Source<'a> {
    Source::Named { name, alias: name }
}

/// Selects the numbers from 0 with at most `places` decimal digits.
fn numbers<'a>(places: usize) -> Query<'a> {
    let digit = |place: usize| SqlExpr::Derived(PLACES[place], Name::Fixed("d"));
    let number = (1..places).fold(digit(0), |sum, place| {
        let weight = SqlExpr::Integer(10_i64.pow(place as u32));
        SqlExpr::op(Op::Add, vec![sum, SqlExpr::op(Op::Mul, vec![weight, digit(place)])])
    });
    let source = |place: usize| Source::Named { name: DIGITS, alias: PLACES[place] };
    let mut select = Select::new(vec![(number, Name::Fixed("n"))], source(0));
    select.joins =
        (1..places).map(|place| JoinClause { source: source(place), kind: JoinKind::Cross, on: Vec::new() }).collect();
    Query::Select(Box::new(select))
}
