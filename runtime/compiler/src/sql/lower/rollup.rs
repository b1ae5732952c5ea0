//! Statements that build and check the tables of pre-aggregations.
//!
//! In: the plan of a rollup's rows. Out: one flat SELECT: its groups under the names `t0`, `d0` …, `s0` …, its states
//! under `a0` …. If an engine does not compare strings by code point, strings are grouped by their comparable forms,
//! `k0` …. Their values are stored as well, because authors' conditions compare them by the rules of the engine. Not
//! here: reading the tables for a query.

use super::{Lowered, Lowering, Name, Query, ROWS, Select, Source, SqlExpr};
use crate::model::{ColumnName, Rollup, state_type};
use crate::plan::{Fact, SecuredPlan};
use crate::sql::dialect_profile::{DialectProfile, Op};
use crate::sql::scope::STORED;
use crate::types::LogicalType;

/// Lowers a plan of rollup rows. If `segments` is true, the rows are also grouped by whether they pass the rollup's
/// segments.
pub(crate) fn lower_rollup<'a>(
    secured: &'a SecuredPlan<'a>,
    profile: &DialectProfile,
    rollup: &'a Rollup,
    segments: bool,
) -> Lowered<'a> {
    let lowering = Lowering::new(secured, profile);
    let (plan, fact) = (lowering.plan, &lowering.plan.facts[0]);
    let mut items = Vec::new();
    let mut texts = Vec::new();
    let mut dimensions = 0;
    for (index, group) in plan.groups.iter().enumerate() {
        let expr = lowering.expressions.group(fact, index);
        match &rollup.time {
            Some(time) if group.granularity.is_some() => {
                items.push((expr.cast(time.stored_type(plan.model)), Name::Numbered('t', 0)));
            }
            _ => {
                let id = fact.groups[index];
                let is_key = lowering.expressions.stores_key(plan.model.dimension(id));
                if is_key {
                    let text = lowering.scope(&fact.tree).dimension(0, id);
                    texts.push((text, Name::Numbered('d', dimensions)));
                }
                items.push((expr, Name::Numbered(if is_key { 'k' } else { 'd' }, dimensions)));
                dimensions += 1;
            }
        }
    }
    if segments {
        for (index, id) in rollup.segments.iter().enumerate() {
            let node = fact.tree.find(plan.model, 0, id.cube).unwrap_or(0);
            let passes = lowering.expressions.snippet(fact, node, &plan.model.segment(*id).sql);
            let flag = SqlExpr::when(vec![passes], SqlExpr::Integer(1), Some(SqlExpr::Integer(0)));
            items.push((flag, Name::Numbered('s', index)));
        }
    }
    let select = lowering.stored_groups(fact, items, texts);
    Lowered { query: Query::Select(Box::new(select)), total_column: None, added_column: None }
}

impl<'a> Lowering<'a> {
    /// Selects the groups of a fact with one string for each of `texts` and all aggregates of the plan.
    fn stored_groups(
        &self,
        fact: &'a Fact<'a>,
        mut groups: Vec<(SqlExpr<'a>, Name<'a>)>,
        mut texts: Vec<(SqlExpr<'a>, Name<'a>)>,
    ) -> Select<'a> {
        let group_by = groups.len();
        let mut ranked = None;
        if self.has_ranks(fact) {
            let names: Vec<_> = groups.iter().map(|(_, name)| *name).collect();
            let of_rows = |columns: &[(SqlExpr<'a>, Name<'a>)]| {
                columns.iter().map(|(_, name)| (SqlExpr::Derived(ROWS, *name), *name)).collect()
            };
            let outer = (of_rows(&groups), of_rows(&texts));
            let rows = self.fact_rows(fact, groups.into_iter().chain(texts).collect(), None);
            ranked = Some(self.with_ranks(fact, rows, &names));
            (groups, texts) = outer;
        }
        let least = |text| SqlExpr::Op { op: Op::Min, ty: Some(LogicalType::Text), args: vec![text] };
        let mut items = groups;
        items.extend(texts.into_iter().map(|(text, name)| (least(text), name)));
        let aggregates = 0..self.plan.aggregates.len();
        items.extend(aggregates.map(|index| (self.aggregate_of_rows(index), Name::Numbered('a', index))));
        let mut select = match ranked {
            Some(rows) => Select::new(items, Source::Derived(Box::new(Query::Select(Box::new(rows))), ROWS)),
            None => self.rows(fact, items),
        };
        select.group_by = group_by;
        select
    }
}

/// Lowers the totals of a table's additive states: `a0`, `a1`, … in the order of `states`, which are positions.
pub(crate) fn lower_stored_totals<'a>(rollup: &'a Rollup, states: &[usize], table: &'a [ColumnName]) -> Lowered<'a> {
    let total = |(position, index): (usize, &usize)| {
        let state = &rollup.states[*index];
        let column = SqlExpr::Derived(STORED, Name::Numbered('a', *index));
        (total_of(column, state_type(state)), Name::Numbered('a', position))
    };
    let source = Source::Table { name: table, alias: STORED };
    let select = Select::new(states.iter().enumerate().map(total).collect(), source);
    Lowered { query: Query::Select(Box::new(select)), total_column: None, added_column: None }
}

/// Returns the sum of a column of counts or sums; for counts, 0 without rows.
pub(super) fn total_of(column: SqlExpr<'_>, ty: LogicalType) -> SqlExpr<'_> {
    let sum = SqlExpr::Op { op: Op::Sum, ty: Some(ty).filter(|ty| *ty != LogicalType::Unknown), args: vec![column] };
    match ty {
        LogicalType::Integer => SqlExpr::op(Op::Coalesce, vec![sum, SqlExpr::Integer(0)]).cast(LogicalType::Integer),
        _ => sum,
    }
}
