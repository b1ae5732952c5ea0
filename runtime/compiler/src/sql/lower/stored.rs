//! Lowers a fact that is read from the tables of a pre-aggregation (`runtime/architecture/caching.md`,
//! "Pre-aggregations").
//!
//! In: a fact with its stored rows. Out: a SELECT over the UNION ALL of its parts, one for each table and one for the
//! rows that no table covers. A part has the columns of the groups, `g0`, `g1` …, and of the states, `v0`, `v1` …; a
//! mean also has a count, `w0` …. Masks and row filters of policies apply in each part. Not here: the choice of the
//! tables.

use super::rollup::total_of;
use super::{Lowering, Name, Query, ROWS, Select, Source, SqlExpr};
use crate::model::{AggregateFunction, state_type};
use crate::plan::{Fact, PlannedAggregate, RowGuard, StateSource, StoredRows, StoredSegment, StoredState, StoredTable};
use crate::sql::aggregate_call::{AggregateTemplates, op_of};
use crate::sql::dialect_profile::Op;
use crate::sql::expression::Expressions;
use crate::sql::scope::STORED;
use crate::types::LogicalType;

/// The derived table of groups and states that are merged.
pub(super) const STATES: &str = "states";

/// Returns an aggregate of the states of its groups.
pub(super) fn merged<'a>(
    templates: AggregateTemplates,
    planned: &'a PlannedAggregate<'a>,
    state: Option<StoredState>,
    index: usize,
) -> SqlExpr<'a> {
    use AggregateFunction::{Count, CountDistinct, CountDistinctApprox, Sum};
    let part = |letter| SqlExpr::Derived(STATES, Name::Numbered(letter, index));
    let aggregate = planned.aggregate;
    match (state.map(|state| state.source), aggregate.function) {
        (Some(StateSource::Mean { .. }), _) => {
            let sum = SqlExpr::op(Op::Sum, vec![part('v')]).cast(LogicalType::Float);
            SqlExpr::op(Op::Div, vec![sum, total_of(part('w'), LogicalType::Integer)])
        }
        (Some(StateSource::Distinct), CountDistinct | CountDistinctApprox) => templates.call(planned, Some(part('v'))),
        // Each group has one stored row.
        (_, function) if function.is_of_distribution() => SqlExpr::op(Op::Max, vec![part('v')]),
        (_, CountDistinct | CountDistinctApprox) => {
            let value = SqlExpr::op(Op::Max, vec![part('v')]);
            SqlExpr::op(Op::Coalesce, vec![value, SqlExpr::Integer(0)]).cast(LogicalType::Integer)
        }
        (_, Count) => total_of(part('v'), LogicalType::Integer),
        (_, Sum) => total_of(part('v'), state_type(aggregate)),
        (_, _) => templates.call(planned, Some(part('v'))),
    }
}

impl<'a> Lowering<'a> {
    /// Selects `items` over the states of a fact.
    pub(super) fn of_states(&self, fact: &'a Fact<'a>, items: Vec<(SqlExpr<'a>, Name<'a>)>) -> Select<'a> {
        let mut parts = Vec::new();
        if let Some(stored) = &fact.stored {
            parts.extend(stored.tables.iter().map(|table| self.stored_part(fact, stored, table)));
            parts.extend(stored.remainder.as_ref().map(|_| self.remainder(fact, stored)));
        }
        Select::new(items, Source::Derived(Box::new(Query::UnionAll(parts)), STATES))
    }

    fn group_items(&self, group: impl Fn(usize) -> SqlExpr<'a>) -> Vec<(SqlExpr<'a>, Name<'a>)> {
        (0..self.plan.groups.len()).map(|index| (group(index), Name::Numbered('g', index))).collect()
    }

    /// Returns the SELECT of the rows of one table.
    fn stored_part(&self, fact: &'a Fact<'a>, stored: &'a StoredRows<'a>, table: &'a StoredTable) -> Select<'a> {
        let over = self.expressions.over(stored.rollup);
        let mut items = self.group_items(|index| over.group(fact, index));
        for (index, planned, state) in self.states(stored) {
            let conditions = match state.applies_filters {
                true => over.conditions(fact, planned),
                false => over.further_conditions(fact, planned),
            };
            let when = |value| match conditions.is_empty() {
                true => value,
                false => SqlExpr::when(conditions.clone(), value, None),
            };
            let column = |position| SqlExpr::Derived(STORED, Name::Numbered('a', position));
            let value = match state.source {
                StateSource::Merged(position) | StateSource::Single(position) => {
                    by_code_point(&over, planned, column(position))
                }
                StateSource::Mean { sum, .. } => column(sum),
                StateSource::Distinct => over.argument(fact, planned).unwrap_or(SqlExpr::Integer(1)),
            };
            items.push((when(value), Name::Numbered('v', index)));
            if let StateSource::Mean { count, .. } = state.source {
                items.push((when(column(count)), Name::Numbered('w', index)));
            }
        }
        if items.is_empty() {
            items.push((SqlExpr::Integer(1), Name::Numbered('v', 0)));
        }
        let mut select = Select::new(items, Source::Table { name: &table.relation, alias: STORED });
        select.filters = self.stored_filters(fact, stored, table);
        select
    }

    /// Returns the conditions that stored rows must meet.
    fn stored_filters(
        &self,
        fact: &'a Fact<'a>,
        stored: &'a StoredRows<'a>,
        table: &'a StoredTable,
    ) -> Vec<SqlExpr<'a>> {
        let over = self.expressions.over(stored.rollup);
        let mut filters = Vec::new();
        if let Some([low, high]) = &table.cut {
            let bucket = || SqlExpr::Derived(STORED, Name::Numbered('t', 0));
            let end = |op, value: &'a Option<_>| {
                value.as_ref().map(|value| SqlExpr::op(op, vec![bucket(), SqlExpr::Param(value)]))
            };
            filters.extend([end(Op::Ge, low), end(Op::Lt, high)].into_iter().flatten());
        }
        match self.protection.rows(fact.tree.cube) {
            None => {}
            // Matching does not use a pre-aggregation if its stored columns cannot decide a row filter.
            Some(RowGuard::Filters { tree, all, predicates }) if tree.joins.is_empty() => {
                filters.extend(over.scope(tree).judging(Some(STORED)).row_filters(all, predicates));
            }
            Some(_) => filters.push(SqlExpr::Boolean(false)),
        }
        for ((owner, segment), stored) in fact.segments.iter().zip(&stored.segments) {
            match stored {
                StoredSegment::Passed => {}
                StoredSegment::Flag(index) => {
                    let flag = SqlExpr::Derived(STORED, Name::Numbered('s', *index));
                    filters.push(SqlExpr::op(Op::Eq, vec![flag, SqlExpr::Integer(1)]));
                }
                StoredSegment::Computed => filters.push(over.snippet(fact, *owner, segment)),
            }
        }
        filters.extend(stored.filters.iter().map(|index| over.predicate(&fact.tree, &fact.row_filters[*index])));
        filters
    }

    /// Selects the states of the rows that no table covers.
    fn remainder(&self, fact: &'a Fact<'a>, stored: &'a StoredRows<'a>) -> Select<'a> {
        let mut items = self.group_items(|index| self.expressions.group(fact, index));
        let groups = items.len();
        for (index, _, state) in self.states(stored) {
            if let StateSource::Mean { .. } = state.source {
                for (function, letter) in [(AggregateFunction::Sum, 'v'), (AggregateFunction::Count, 'w')] {
                    items.push((self.part_of_mean(fact, index, function), Name::Numbered(letter, index)));
                }
            } else {
                items.push((self.aggregate_of_rows(index), Name::Numbered('v', index)));
            }
        }
        if items.is_empty() {
            items.push((SqlExpr::Integer(1), Name::Numbered('v', 0)));
        }
        let rest = stored.remainder.iter().map(|predicate| self.expressions.predicate(&fact.tree, predicate));
        if self.has_ranks(fact) {
            let own = self.group_items(|index| self.expressions.group(fact, index));
            let mut rows = self.fact_rows(fact, own, None);
            rows.filters.extend(rest);
            for (item, name) in items.iter_mut().take(groups) {
                *item = SqlExpr::Derived(ROWS, *name);
            }
            let mut select = self.over_rows(fact, rows, items);
            select.group_by = groups;
            return select;
        }
        let mut select = self.rows(fact, items);
        select.filters.extend(rest);
        select.group_by = groups;
        select
    }

    /// Returns the sum or the count of the values of a mean.
    fn part_of_mean(&self, fact: &'a Fact<'a>, index: usize, function: AggregateFunction) -> SqlExpr<'a> {
        let planned = &self.plan.aggregates[index];
        let ty = Some(planned.aggregate.argument_type).filter(|ty| *ty != LogicalType::Unknown);
        if self.has_ranks(fact) {
            let value = SqlExpr::Derived(ROWS, Name::Numbered('v', index));
            return SqlExpr::Op { op: op_of(function), ty, args: vec![value] };
        }
        let conditions = self.expressions.conditions(fact, planned);
        let mut value = self.expressions.argument(fact, planned).unwrap_or(SqlExpr::Integer(1));
        if !conditions.is_empty() {
            value = SqlExpr::when(conditions, value, None);
        }
        SqlExpr::Op { op: op_of(function), ty, args: vec![value] }
    }

    /// Returns the fact's own aggregates, by their positions in the plan.
    fn states(
        &self,
        stored: &'a StoredRows<'a>,
    ) -> impl Iterator<Item = (usize, &'a PlannedAggregate<'a>, StoredState)> {
        let states = self.plan.aggregates.iter().zip(&stored.states).enumerate();
        states.filter_map(|(index, (planned, state))| Some((index, planned, (*state)?)))
    }
}

/// Returns a stored column. A minimum or maximum of strings is converted to the form that compares by code point.
fn by_code_point<'a>(over: &Expressions<'a>, planned: &PlannedAggregate<'_>, column: SqlExpr<'a>) -> SqlExpr<'a> {
    let is_extreme = matches!(planned.aggregate.function, AggregateFunction::Min | AggregateFunction::Max);
    match is_extreme && planned.aggregate.argument_type == LogicalType::Text {
        true => over.comparable_text(column),
        false => column,
    }
}
