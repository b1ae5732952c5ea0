//! Aggregates rows over a range of time around each step.
//!
//! The rows of each fact with a window are a named query, which comes before the steps, so that no table of the project
//! can be mistaken for the steps. If the ends of windows are ends of steps, counts, sums and extremes are first
//! computed for each step. The rows, or these values, are joined with the steps whose window contains their time. A
//! window frame over groups is never used, because a distinct count is not a sum of distinct counts, and groups have
//! gaps.

use super::fact::any_of_row;
use super::steps::{PARTS, STEPS, chosen, named};
use super::{IS_SELECTED, Lowering, Name, Query, ROWS, Select, Source, SqlExpr};
use crate::model::{AggregateFunction, DimensionId};
use crate::plan::{Fact, MAX_WINDOWS, RowKey};
use crate::sql::ast::{JoinClause, JoinKind};
use crate::sql::dialect_profile::Op;
use crate::sql::expression::added;
use crate::types::{Granularity, LogicalType, WindowLength, WindowOffset};

/// One name for each fact with a window.
const NAMES: [&str; MAX_WINDOWS] = [
    "terrane_rows_1",
    "terrane_rows_2",
    "terrane_rows_3",
    "terrane_rows_4",
    "terrane_rows_5",
    "terrane_rows_6",
    "terrane_rows_7",
    "terrane_rows_8",
];
/// The names of all stacks of groups but the last.
const STACKS: [&str; MAX_WINDOWS - 1] = [
    "terrane_parts_1",
    "terrane_parts_2",
    "terrane_parts_3",
    "terrane_parts_4",
    "terrane_parts_5",
    "terrane_parts_6",
    "terrane_parts_7",
];
/// The column with the time of a row.
const TIME: &str = "row_time";

impl<'a> Lowering<'a> {
    /// Returns the facts with windows, each with its index in the plan and the name of the query with its rows.
    pub(super) fn windowed(&self) -> impl Iterator<Item = (usize, &'a Fact<'a>, &'static str)> {
        let facts = self.plan.facts.iter().enumerate().filter(|(_, fact)| fact.period.window.is_some());
        facts.zip(NAMES).map(|((index, fact), name)| (index, fact, name))
    }

    /// Returns the named queries with the rows of facts that have windows.
    pub(super) fn window_rows(&self) -> impl Iterator<Item = (&'static str, Query<'a>)> {
        self.windowed().map(|(_, fact, name)| {
            let others = (0..self.plan.groups.len()).filter(|index| !self.is_on_axis(*index));
            let mut groups: Vec<_> = others.map(|index| self.row_group(fact, index)).collect();
            let sums_buckets = self.sums_buckets(fact);
            let finest = self.starting_groups()[0];
            groups.push(match sums_buckets {
                true => (self.expressions.group(fact, finest), Name::Fixed(TIME)),
                false => (self.expressions.row_time(fact, finest), Name::Fixed(TIME)),
            });
            let rows = match sums_buckets {
                true => self.bucket_sums(fact, groups),
                false => self.fact_rows(fact, groups, fact.distinct.as_ref()),
            };
            (name, Query::Select(Box::new(rows)))
        })
    }

    /// Returns whether the rows of a fact with a window are summed up by step before they are joined with the steps.
    /// Otherwise each row would be joined with many steps. The ends of windows must then be ends of steps, and the
    /// values of steps must combine to the value of a window.
    pub(super) fn sums_buckets(&self, fact: &'a Fact<'a>) -> bool {
        let Some(window) = fact.period.window else { return false };
        let [only] = self.starting_groups() else { return false };
        let Some(step) = self.plan.groups[*only].granularity else { return false };
        let is_nested = |length: WindowLength| match length {
            WindowLength::Units { unit, .. } => step.nests_in(unit),
            WindowLength::Zero | WindowLength::Unbounded => true,
        };
        let own = self.plan.aggregates.iter().filter(|planned| std::ptr::eq(&self.plan.facts[planned.fact], fact));
        fact.distinct.is_none()
            && !step.is_sub_day()
            && window.sides().into_iter().all(is_nested)
            && own.into_iter().all(|planned| is_additive(planned.aggregate.function))
    }

    /// Selects a row for each step of each group, with the aggregates over its rows.
    fn bucket_sums(&self, fact: &'a Fact<'a>, groups: Vec<(SqlExpr<'a>, Name<'a>)>) -> Select<'a> {
        let mut items = groups;
        let group_by = items.len();
        for (index, planned) in self.plan.aggregates.iter().enumerate() {
            if std::ptr::eq(&self.plan.facts[planned.fact], fact) {
                items.push((self.call_over_rows(fact, planned), Name::Numbered('v', index)));
            }
        }
        let mut select = self.rows(fact, items);
        select.group_by = group_by;
        select
    }

    /// Returns the named queries that add the groups of each fact with a window to those of `base`; the last is
    /// `parts`. Each stacks two selects, so that a null always meets a typed value: PostgreSQL treats two nulls as
    /// strings.
    pub(super) fn window_parts(&self, base: Option<&'static str>) -> Vec<(&'static str, Query<'a>)> {
        let facts: Vec<_> = self.windowed().collect();
        let mut parts = Vec::with_capacity(facts.len());
        let mut known: Vec<usize> = (0..self.plan.aggregates.len()).filter(|index| !self.has_window(*index)).collect();
        let mut previous = base;
        for (position, (own, fact, _)) in facts.iter().enumerate() {
            let is_own = |index: &usize| self.plan.aggregates[*index].fact == *own;
            let columns: Vec<usize> =
                (0..self.plan.aggregates.len()).filter(|index| is_own(index) || known.contains(index)).collect();
            let earlier = previous.map(|table| self.earlier_parts(table, &columns, &known));
            let selects = earlier.into_iter().chain([self.window_part(fact, &columns, &known)]).collect();
            let name = if position + 1 == facts.len() { PARTS } else { STACKS[position] };
            parts.push((name, Query::UnionAll(selects)));
            (previous, known) = (Some(name), columns);
        }
        parts
    }

    /// Selects the groups of a stack, with nulls for the aggregates that it lacks.
    fn earlier_parts(&self, table: &'static str, columns: &[usize], known: &[usize]) -> Select<'a> {
        let column = |name| (SqlExpr::Derived(table, name), name);
        let groups = (0..self.plan.groups.len()).map(|index| column(Name::Numbered('g', index)));
        let aggregates = columns.iter().map(|index| match known.contains(index) {
            true => column(Name::Numbered('a', *index)),
            false => self.null_column(*index),
        });
        let flag = self.has_lookups().then_some(column(Name::Fixed(IS_SELECTED)));
        Select::new(groups.chain(aggregates).chain(flag).collect(), named(table))
    }

    /// Selects the groups of a fact with a window. The aggregates in `known` belong to other facts, so they are null.
    fn window_part(&self, fact: &'a Fact<'a>, columns: &[usize], known: &[usize]) -> Select<'a> {
        let groups = (0..self.plan.groups.len()).map(|index| (self.group(fact, index), Name::Numbered('g', index)));
        let aggregates = columns.iter().map(|index| match known.contains(index) {
            true => self.null_column(*index),
            false => (self.aggregate(*index), Name::Numbered('a', *index)),
        });
        let flag = (SqlExpr::Integer(i64::from(fact.is_selected)), Name::Fixed(IS_SELECTED));
        let flag = self.has_lookups().then_some(flag);
        self.grouped(fact, groups.chain(aggregates).chain(flag).collect())
    }

    fn null_column(&self, aggregate: usize) -> (SqlExpr<'a>, Name<'a>) {
        (self.null_of(self.plan.aggregates[aggregate].aggregate), Name::Numbered('a', aggregate))
    }

    /// Returns a group-by column of rows that are joined with steps.
    pub(super) fn window_group(&self, index: usize) -> SqlExpr<'a> {
        let table = if self.is_on_axis(index) { STEPS } else { ROWS };
        SqlExpr::Derived(table, Name::Numbered('g', index))
    }

    /// Selects `items` over the rows in each window. Rows that joins repeat count once in each.
    pub(super) fn in_windows(&self, fact: &'a Fact<'a>, items: Vec<(SqlExpr<'a>, Name<'a>)>) -> Select<'a> {
        let Some(key) = &fact.distinct else { return self.joined_with_steps(fact, items) };
        let groups = 0..self.plan.groups.len();
        let mut inner: Vec<_> = groups.map(|i| (self.window_group(i), Name::Numbered('g', i))).collect();
        let keys = match key {
            RowKey::PrimaryKey(keys) => keys.len(),
            RowKey::RowNumber => 1,
        };
        inner.extend((0..keys).map(|key| {
            let name = Name::Numbered('k', key);
            (SqlExpr::Derived(ROWS, name), name)
        }));
        let group_by = inner.len();
        for (index, planned) in self.plan.aggregates.iter().enumerate() {
            let has_value =
                planned.aggregate.argument.is_some() || !self.expressions.conditions(fact, planned).is_empty();
            if has_value && std::ptr::eq(&self.plan.facts[planned.fact], fact) {
                let name = Name::Numbered('v', index);
                inner.push((any_of_row(planned, SqlExpr::Derived(ROWS, name)), name));
            }
        }
        let mut rows = self.joined_with_steps(fact, inner);
        rows.group_by = group_by;
        Select::new(items, Source::Derived(Box::new(Query::Select(Box::new(rows))), ROWS))
    }

    /// Selects `items` over the pairs of a row and a step whose window contains the row.
    fn joined_with_steps(&self, fact: &'a Fact<'a>, items: Vec<(SqlExpr<'a>, Name<'a>)>) -> Select<'a> {
        let is_it = |(_, other, _): &(usize, &Fact<'_>, &str)| std::ptr::eq(*other, fact);
        let name = self.windowed().find(is_it).map_or(NAMES[0], |(_, _, name)| name);
        let mut select = Select::new(items, Source::Named { name, alias: ROWS });
        select.joins.push(JoinClause { source: named(STEPS), kind: JoinKind::Cross, on: Vec::new() });
        select.filters = self.in_window(fact);
        select
    }

    /// Returns the conditions by which a row's time is in the window of a step.
    fn in_window(&self, fact: &'a Fact<'a>) -> Vec<SqlExpr<'a>> {
        let Some(window) = fact.period.window else { return Vec::new() };
        let (start, end, ty) = self.ends_of_step(fact);
        let anchor = if window.offset == WindowOffset::Start { start } else { end };
        let time = || {
            let column = SqlExpr::Derived(ROWS, Name::Fixed(TIME));
            column.cast_from(self.own_bucket_type(fact), ty)
        };
        let edge = |length: WindowLength, sign: i64| match length {
            WindowLength::Zero => Some(anchor.clone()),
            WindowLength::Units { count, unit } => {
                Some(added(unit, anchor.clone(), SqlExpr::Integer(sign * i64::from(count)), ty))
            }
            WindowLength::Unbounded => None,
        };
        let from = edge(window.trailing, -1).map(|from| SqlExpr::op(Op::Ge, vec![time(), from]));
        let to = edge(window.leading, 1).map(|to| SqlExpr::op(Op::Lt, vec![time(), to]));
        let mut conditions: Vec<_> = from.into_iter().chain(to).collect();
        if conditions.is_empty() {
            conditions.push(SqlExpr::op(Op::IsNotNull, vec![time()]));
        }
        conditions.extend(self.step_of_period(fact, STEPS));
        conditions
    }

    /// Returns the start of a step, the start of the next step, and their type. For a fact of the compared period, the
    /// step is moved back into that period. The result shows the value beside the step that was not moved.
    fn ends_of_step(&self, fact: &'a Fact<'a>) -> (SqlExpr<'a>, SqlExpr<'a>, LogicalType) {
        let steps = self.axis_granularity();
        let own = self.own_bucket_type(fact);
        let shown = self.shown_bucket_type();
        let ty = if own == shown { own } else { LogicalType::Timestamp };
        let ends = |group: usize| {
            let granularity = self.plan.groups[group].granularity.unwrap_or(steps);
            let mut start = SqlExpr::Derived(STEPS, Name::Numbered('g', group));
            if own != shown {
                start = start.cast_from(shown, ty);
            }
            let shift = self.plan.shifts.iter().find(|shift| shift.group == group && fact.period.is_previous);
            if let Some(shift) = shift.filter(|shift| shift.buckets != 0) {
                start = added(granularity, start, SqlExpr::Integer(-shift.buckets), ty);
            }
            (start.clone(), added(granularity, start, SqlExpr::Integer(1), ty))
        };
        let groups = self.starting_groups();
        let (mut start, mut end) = ends(groups[0]);
        for group in &groups[1..] {
            let (other_start, other_end) = ends(*group);
            start = chosen(Op::Gt, other_start, start);
            end = chosen(Op::Lt, other_end, end);
        }
        (start, end, ty)
    }

    /// Returns the granularity of the group that identifies a step.
    fn axis_granularity(&self) -> Granularity {
        let group = self.starting_groups().first().and_then(|group| self.plan.groups[*group].granularity);
        group.unwrap_or(Granularity::Day)
    }

    fn axis_time_of(&self, fact: &'a Fact<'a>) -> DimensionId {
        fact.groups[self.starting_groups()[0]]
    }

    /// Returns the type of the steps.
    fn shown_bucket_type(&self) -> LogicalType {
        let mut types = self.plan.facts.iter().map(|fact| self.own_bucket_type(fact));
        types.find(|ty| *ty != LogicalType::Date).unwrap_or(LogicalType::Date)
    }

    fn own_bucket_type(&self, fact: &'a Fact<'a>) -> LogicalType {
        let dimension = self.plan.model.dimension(self.axis_time_of(fact));
        self.expressions.bucket_type(self.axis_granularity(), dimension)
    }
}

fn is_additive(function: AggregateFunction) -> bool {
    use AggregateFunction::{Count, Max, Min, Sum};
    matches!(function, Count | Sum | Min | Max)
}
