//! Lowers one fact: its rows, joins, groups and aggregates.
//!
//! If joins repeat the fact's rows, an inner select first reduces each row to one per group, and an outer select
//! aggregates.

use super::rollup::total_of;
use super::stored::{STATES, merged};
use super::{Lowering, Name, Query, ROWS, Select, Source, SqlExpr};
use crate::model::{DimensionId, state_type};
use crate::plan::{Fact, PlannedAggregate, RowKey, SemiJoin};
use crate::snippet::AggregateFunction;
use crate::sql::aggregate_call::is_single_call;
use crate::sql::dialect_profile::Op;
use crate::types::LogicalType;

/// The column that numbers rows of a cube without a primary key.
const ROW_NUMBER: &str = "terrane_row";

impl<'a> Lowering<'a> {
    /// Returns the n-th group-by column of a fact, at the level of its aggregation.
    pub(super) fn group(&self, fact: &'a Fact<'a>, index: usize) -> SqlExpr<'a> {
        match fact.distinct {
            _ if fact.stored.is_some() => SqlExpr::Derived(STATES, Name::Numbered('g', index)),
            _ if fact.sample.is_some() => SqlExpr::Derived(ROWS, Name::Numbered('g', index)),
            None if fact.period.window.is_some() => self.window_group(index),
            None if self.has_ranks(fact) => SqlExpr::Derived(ROWS, Name::Numbered('g', index)),
            Some(_) => SqlExpr::Derived(ROWS, Name::Numbered('g', index)),
            None => self.expressions.group(fact, index),
        }
    }

    /// Returns a dimension of rows that are not grouped.
    pub(super) fn row_dimension(&self, fact: &'a Fact<'a>, id: DimensionId) -> SqlExpr<'a> {
        match &fact.distinct {
            Some(RowKey::PrimaryKey(keys)) => {
                let position = keys.iter().position(|key| *key == id).unwrap_or(0);
                SqlExpr::Derived(ROWS, Name::Numbered('k', position))
            }
            _ => self.expressions.shown(fact, id),
        }
    }

    /// Returns an aggregate over its fact's rows, or over stored states of them.
    pub(super) fn aggregate(&self, index: usize) -> SqlExpr<'a> {
        let planned = &self.plan.aggregates[index];
        match &self.plan.facts[planned.fact].stored {
            Some(stored) => merged(self.expressions.aggregates, planned, stored.states[index], index),
            None => self.aggregate_of_rows(index),
        }
    }

    /// Returns the aggregate call over its fact's rows.
    pub(super) fn aggregate_of_rows(&self, index: usize) -> SqlExpr<'a> {
        let planned = &self.plan.aggregates[index];
        let fact = &self.plan.facts[planned.fact];
        if self.sums_buckets(fact) {
            return self.bucket_total(planned, index);
        }
        if self.expressions.aggregates.needs_ranks(planned) {
            return self.ranked_percentile(planned, index);
        }
        let is_derived = fact.distinct.is_some() || fact.period.window.is_some() || fact.sample.is_some();
        if is_derived || self.has_ranks(fact) {
            let has_value =
                planned.aggregate.argument.is_some() || !self.expressions.conditions(fact, planned).is_empty();
            return self
                .expressions
                .aggregates
                .call(planned, has_value.then_some(SqlExpr::Derived(ROWS, Name::Numbered('v', index))));
        }
        self.call_over_rows(fact, planned)
    }

    /// Combines the values that an aggregate has in several steps of time to one value.
    fn bucket_total(&self, planned: &'a PlannedAggregate<'a>, index: usize) -> SqlExpr<'a> {
        let part = SqlExpr::Derived(ROWS, Name::Numbered('v', index));
        match planned.aggregate.function {
            AggregateFunction::Count => total_of(part, LogicalType::Integer),
            AggregateFunction::Sum => total_of(part, state_type(planned.aggregate)),
            _ => self.expressions.aggregates.call(planned, Some(part)),
        }
    }

    /// Returns the aggregate call over the fact's joined rows, without an inner select.
    pub(super) fn call_over_rows(&self, fact: &'a Fact<'a>, planned: &'a PlannedAggregate<'a>) -> SqlExpr<'a> {
        let conditions = self.expressions.conditions(fact, planned);
        let argument = self.expressions.argument(fact, planned);
        if conditions.is_empty() {
            return self.expressions.aggregates.call(planned, argument);
        }
        if self.expressions.has_filter_clause && is_single_call(planned.aggregate.function) {
            let call = Box::new(self.expressions.aggregates.call(planned, argument));
            return SqlExpr::FilteredAggregate { call, filters: conditions };
        }
        let value = argument.unwrap_or(SqlExpr::Integer(1));
        self.expressions.aggregates.call(planned, Some(SqlExpr::when(conditions, value, None)))
    }

    /// Selects `items` over a fact's rows, grouped by the plan's groups.
    pub(super) fn grouped(&self, fact: &'a Fact<'a>, items: Vec<(SqlExpr<'a>, Name<'a>)>) -> Select<'a> {
        let mut select = match &fact.distinct {
            _ if let Some(sample) = &fact.sample => self.of_sample(fact, sample, items),
            _ if fact.stored.is_some() => self.of_states(fact, items),
            _ if fact.period.window.is_some() => self.in_windows(fact, items),
            None if self.has_ranks(fact) => {
                let groups = (0..self.plan.groups.len()).map(|group| self.row_group(fact, group)).collect();
                self.over_rows(fact, self.fact_rows(fact, groups, None), items)
            }
            None => self.rows(fact, items),
            Some(key) => {
                let is_first = |group: &usize| fact.period.is_first && self.is_on_axis(*group);
                let (steps, others): (Vec<_>, Vec<_>) = (0..self.plan.groups.len()).partition(is_first);
                let groups = others.into_iter().map(|group| self.row_group(fact, group)).collect();
                let mut rows = self.fact_rows(fact, groups, Some(key));
                rows.items.extend(steps.into_iter().map(|group| {
                    let (step, name) = self.row_group(fact, group);
                    (SqlExpr::op(Op::Min, vec![step]), name)
                }));
                self.over_rows(fact, rows, items)
            }
        };
        select.group_by = self.plan.groups.len();
        select
    }

    pub(super) fn row_group(&self, fact: &'a Fact<'a>, index: usize) -> (SqlExpr<'a>, Name<'a>) {
        (self.expressions.group(fact, index), Name::Numbered('g', index))
    }

    /// Selects the fact's rows with the arguments of each aggregate. With a key, the select has one row for each group
    /// and row of the fact. A row passes the filters of a metric behind a to-many join if any of its joined rows does,
    /// so the select takes the `max` of the filters.
    pub(super) fn fact_rows(
        &self,
        fact: &'a Fact<'a>,
        groups: Vec<(SqlExpr<'a>, Name<'a>)>,
        key: Option<&'a RowKey>,
    ) -> Select<'a> {
        let mut items = groups;
        match key {
            Some(RowKey::PrimaryKey(keys)) => {
                let keys = keys.iter().enumerate();
                items.extend(keys.map(|(i, id)| (self.expressions.dimension(fact, *id), Name::Numbered('k', i))));
            }
            Some(RowKey::RowNumber) => {
                let alias = self.scope(&fact.tree).alias(0);
                items.push((SqlExpr::Added { alias, column: ROW_NUMBER }, Name::Numbered('k', 0)));
            }
            None => {}
        }
        let keys = items.len();
        for (index, planned) in self.plan.aggregates.iter().enumerate() {
            if !std::ptr::eq(&self.plan.facts[planned.fact], fact) {
                continue;
            }
            let conditions = self.expressions.conditions(fact, planned);
            let argument = self.expressions.argument(fact, planned);
            let value = match (argument, conditions.is_empty()) {
                (None, true) => continue,
                (Some(argument), true) => argument,
                (argument, false) => SqlExpr::when(conditions, argument.unwrap_or(SqlExpr::Integer(1)), None),
            };
            let value = if key.is_some() { any_of_row(planned, value) } else { value };
            items.push((value, Name::Numbered('v', index)));
        }
        let mut select = self.rows(fact, items);
        if key.is_some() {
            select.group_by = keys;
        }
        select
    }

    /// Selects the fact's rows with their joins and filters.
    pub(super) fn rows(&self, fact: &'a Fact<'a>, items: Vec<(SqlExpr<'a>, Name<'a>)>) -> Select<'a> {
        let scope = self.scope(&fact.tree);
        let (from, own_guards) = self.guarded(fact.tree.cube, scope.alias(0));
        let from = match fact.distinct {
            Some(RowKey::RowNumber) => {
                Source::Numbered { source: Box::new(from), alias: scope.alias(0), column: ROW_NUMBER }
            }
            _ => from,
        };
        let segments = fact.segments.iter().map(|(owner, segment)| self.expressions.snippet(fact, *owner, segment));
        let filters = fact.row_filters.iter().map(|filter| self.expressions.predicate(&fact.tree, filter));
        let mut select = Select::new(items, from);
        let semi_joins = fact.semi_joins.iter().map(|semi_join| self.semi_join(fact, semi_join));
        select.filters = own_guards.into_iter().chain(segments).chain(filters).chain(semi_joins).collect();
        select.joins = self.joins(scope);
        select
    }

    /// Returns the condition that a row has a joined row that passes.
    fn semi_join(&self, fact: &'a Fact<'a>, semi_join: &'a SemiJoin<'a>) -> SqlExpr<'a> {
        let SemiJoin { from, outer, inner, tree, filters } = semi_join;
        let alias = self.scope(tree).alias(0);
        let (source, guards) = self.guarded(tree.cube, alias);
        let column = SqlExpr::Column { alias, name: inner };
        let mut query = Select::new(vec![(column, Name::Numbered('k', 0))], source);
        let filters = filters.iter().map(|filter| self.expressions.predicate(tree, filter));
        query.filters = guards.into_iter().chain(filters).collect();
        query.joins = self.joins(self.scope(tree));
        let operand = SqlExpr::Column { alias: self.scope(&fact.tree).alias(*from), name: outer };
        SqlExpr::InQuery { operand: Box::new(operand), query: Box::new(Query::Select(Box::new(query))) }
    }
}

/// Returns an aggregate's argument for one row of the fact. In the joined rows of this row, the argument has one value,
/// or is null.
pub(super) fn any_of_row<'a>(planned: &PlannedAggregate<'_>, value: SqlExpr<'a>) -> SqlExpr<'a> {
    let ty = Some(planned.aggregate.argument_type).filter(|_| planned.aggregate.argument.is_some());
    SqlExpr::Op { op: Op::Max, ty, args: vec![value] }
}
