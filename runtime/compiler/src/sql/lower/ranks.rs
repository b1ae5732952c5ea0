//! Percentiles of dialects that have no aggregate for them.
//!
//! In: the rows of a fact with the arguments of its aggregates. Out: the same rows with the rank of each value in its
//! group, and the number of values of the group. From these, the dialect's template [`RANKED_PERCENTILE`] interpolates
//! between the two values next to a share. Nulls have ranks of their own, so they do not move the ranks of values. Not
//! here: the choice between this template and an aggregate (`aggregate_call`).
//!
//! [`RANKED_PERCENTILE`]: crate::sql::aggregate_call::RANKED_PERCENTILE

use super::{Lowering, Name, Query, ROWS, Select, Source, SqlExpr};
use crate::plan::{Fact, PlannedAggregate};
use crate::sql::dialect_profile::Op;

/// The letters of the columns with the value, its rank from 1, and the number of values.
const VALUE: char = 'v';
const RANK: char = 'n';
const COUNT: char = 'c';

impl<'a> Lowering<'a> {
    /// Returns whether some percentiles of a fact are computed from the ranks of its values.
    pub(super) fn has_ranks(&self, fact: &'a Fact<'a>) -> bool {
        self.ranked(fact).next().is_some()
    }

    /// Returns the fact's percentiles that are computed from ranks, by their positions in the plan.
    fn ranked<'s>(&'s self, fact: &'a Fact<'a>) -> impl Iterator<Item = (usize, &'a PlannedAggregate<'a>)> + 's {
        let is_ranked = move |planned: &PlannedAggregate<'_>| {
            std::ptr::eq(&self.plan.facts[planned.fact], fact) && self.expressions.aggregates.needs_ranks(planned)
        };
        self.plan.aggregates.iter().enumerate().filter(move |(_, planned)| is_ranked(planned))
    }

    /// Returns the first percentile with the same values as another one. They share the columns of this one.
    fn with_same_values(&self, fact: &'a Fact<'a>, planned: &PlannedAggregate<'_>) -> Option<usize> {
        self.ranked(fact).find(|(_, other)| have_same_values(other, planned)).map(|(index, _)| index)
    }

    /// Returns a percentile that is computed from the ranks of its values.
    pub(super) fn ranked_percentile(&self, planned: &'a PlannedAggregate<'a>, index: usize) -> SqlExpr<'a> {
        let own = self.with_same_values(&self.plan.facts[planned.fact], planned).unwrap_or(index);
        let columns = [VALUE, RANK, COUNT].map(|letter| SqlExpr::Derived(ROWS, Name::Numbered(letter, own)));
        self.expressions.aggregates.of_ranks(planned, columns)
    }

    /// Adds the ranks that a fact's percentiles need to its rows, which have the columns `groups`.
    pub(super) fn with_ranks(&self, fact: &'a Fact<'a>, rows: Select<'a>, groups: &[Name<'a>]) -> Select<'a> {
        let column = |name| SqlExpr::Derived(ROWS, name);
        let mut items: Vec<_> = rows.items.iter().map(|(_, name)| (column(*name), *name)).collect();
        let columns = items.len();
        for (index, planned) in self.ranked(fact) {
            if self.with_same_values(fact, planned) != Some(index) {
                continue;
            }
            let value = column(Name::Numbered(VALUE, index));
            let mut partition: Vec<_> = groups.iter().map(|name| column(*name)).collect();
            partition.push(SqlExpr::op(Op::IsNull, vec![value.clone()]));
            let one = Box::new(SqlExpr::Integer(1));
            let count = SqlExpr::SumOver { argument: one, partition: partition.clone(), order: Vec::new() };
            items.push((SqlExpr::RowNumber { partition, order: vec![value] }, Name::Numbered(RANK, index)));
            items.push((count, Name::Numbered(COUNT, index)));
        }
        if items.len() == columns {
            return rows;
        }
        Select::new(items, Source::Derived(Box::new(Query::Select(Box::new(rows))), ROWS))
    }

    /// Selects `items` over a fact's rows, which become the derived table [`ROWS`].
    pub(super) fn over_rows(
        &self,
        fact: &'a Fact<'a>,
        rows: Select<'a>,
        items: Vec<(SqlExpr<'a>, Name<'a>)>,
    ) -> Select<'a> {
        let groups: Vec<_> = (0..self.plan.groups.len()).map(|index| Name::Numbered('g', index)).collect();
        let rows = self.with_ranks(fact, rows, &groups);
        Select::new(items, Source::Derived(Box::new(Query::Select(Box::new(rows))), ROWS))
    }
}

/// Returns whether two aggregates of one fact aggregate the same values.
fn have_same_values(left: &PlannedAggregate<'_>, right: &PlannedAggregate<'_>) -> bool {
    let (own, other) = (left.aggregate, right.aggregate);
    own.argument == other.argument
        && own.filters == other.filters
        && own.is_converted == other.is_converted
        && left.metrics == right.metrics
}
