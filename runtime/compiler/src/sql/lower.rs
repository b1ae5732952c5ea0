//! A secured plan to a SQL tree (semantics, "Shape of the SQL").
//!
//! One fact becomes one flat SELECT … GROUP BY that a person would have written. Several facts are
//! each grouped on their own; their groups are stacked by UNION ALL, with nulls for the others'
//! aggregates, and merged by an outer GROUP BY. Joins are what the plan says, nothing more.

use super::ast::{JoinClause, Name, OrderBy, OrderItem, Page, Query, Select, Source, SqlExpr};
use super::expression::Expressions;
use super::predicate::{connect, lower_test};
use super::profile::{DialectProfile, Op};
use crate::model::AggregateFunction;
use crate::plan::{Fact, GroupOperand, GroupPredicate, LogicalPlan, PlannedTarget, SecuredPlan, ValueExpr};
use crate::types::LogicalType;

/// The column that holds the number of groups before paging.
const TOTAL: &str = "total_rows";
/// In the merge: 1 for groups of selected facts, 0 for groups that are only looked up.
const IS_SELECTED: &str = "is_selected";
const MERGED: &str = "merged";
const GROUPED: &str = "grouped";

/// A lowered statement.
#[derive(Debug)]
pub struct Lowered<'a> {
    pub(super) query: Query<'a>,
    pub(crate) total_column: Option<usize>,
}

/// Lowers a plan for the page that was asked for.
pub fn lower<'a>(secured: &'a SecuredPlan<'a>, profile: &DialectProfile) -> Lowered<'a> {
    let plan = secured.plan();
    let lowering = Lowering { plan, expressions: Expressions::new(plan, profile) };
    let mut select = lowering.answer();
    lowering.order(&mut select);
    // Without groups there is one row, and its number is known.
    let total_column = (plan.wants_total && !plan.groups.is_empty()).then_some(select.items.len());
    if total_column.is_some() {
        select.items.push((SqlExpr::CountOverAll, Name::Fixed(TOTAL)));
    }
    select.page = Some(Page { limit: plan.limit, offset: plan.offset });
    Lowered { query: Query::Select(Box::new(select)), total_column }
}

/// Lowers a plan to the number of its groups: for a page that came back empty and so carries no total.
pub fn lower_count<'a>(secured: &'a SecuredPlan<'a>, profile: &DialectProfile) -> Lowered<'a> {
    let plan = secured.plan();
    let lowering = Lowering { plan, expressions: Expressions::new(plan, profile) };
    let groups = Query::Select(Box::new(lowering.answer()));
    let select = Select {
        items: vec![(SqlExpr::CountRows, Name::Fixed(TOTAL))],
        from: Source::Derived(Box::new(groups), GROUPED),
        joins: Vec::new(),
        filters: Vec::new(),
        group_by: 0,
        having: Vec::new(),
        order: Vec::new(),
        page: None,
    };
    Lowered { query: Query::Select(Box::new(select)), total_column: Some(0) }
}

struct Lowering<'a> {
    plan: &'a LogicalPlan<'a>,
    expressions: Expressions<'a>,
}

/// How a finished aggregate is written at the level where values are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    /// The aggregate call itself.
    Flat,
    /// A column of the derived table that holds one row a group.
    Grouped,
    /// The one branch that is not null.
    Merged,
}

impl<'a> Lowering<'a> {
    /// All groups with their values, unordered.
    fn answer(&self) -> Select<'a> {
        match &self.plan.facts[..] {
            [fact] if self.is_flat() => self.flat(fact),
            [fact] => self.outer(Query::Select(Box::new(self.branch(fact, None))), Level::Grouped),
            facts => {
                let has_lookups = facts.iter().any(|f| !f.is_selected);
                let branch = |(index, fact)| self.branch(fact, Some((index, has_lookups)));
                self.outer(Query::UnionAll(facts.iter().enumerate().map(branch).collect()), Level::Merged)
            }
        }
    }

    /// A filter that reads a group column would have to repeat its expression in HAVING.
    fn is_flat(&self) -> bool {
        !self.plan.group_filters.iter().any(GroupPredicate::reads_groups)
    }

    fn level(&self) -> Level {
        match (self.plan.facts.len(), self.is_flat()) {
            (1, true) => Level::Flat,
            (1, false) => Level::Grouped,
            _ => Level::Merged,
        }
    }

    fn flat(&self, fact: &'a Fact<'a>) -> Select<'a> {
        let mut items: Vec<_> =
            self.plan.groups.iter().map(|g| (self.expressions.group(g), Name::Key(&g.key))).collect();
        for value in &self.plan.values {
            items.push((self.value(&value.expression, Level::Flat), Name::Key(&value.key)));
        }
        let having = self.plan.group_filters.iter().map(|p| self.group_predicate(p, false, Level::Flat)).collect();
        self.select(fact, items, having)
    }

    /// One fact's groups and aggregates. In a merge it has a column for every aggregate of the plan,
    /// and one that tells whether its groups are selected, if some are not.
    fn branch(&self, fact: &'a Fact<'a>, merge: Option<(usize, bool)>) -> Select<'a> {
        let mut items: Vec<_> = self.plan.groups.iter().map(|g| self.expressions.group(g)).enumerate().collect();
        let mut items: Vec<_> = items.drain(..).map(|(i, expr)| (expr, Name::Numbered('g', i))).collect();
        for (index, planned) in self.plan.aggregates.iter().enumerate() {
            let expr = match merge {
                Some((own, _)) if planned.fact != own => SqlExpr::Null(result_type(planned.aggregate)),
                _ => self.expressions.aggregate(planned),
            };
            items.push((expr, Name::Numbered('a', index)));
        }
        if let Some((_, true)) = merge {
            items.push((SqlExpr::Integer(u64::from(fact.is_selected)), Name::Fixed(IS_SELECTED)));
        }
        if items.is_empty() {
            items.push((SqlExpr::Integer(1), Name::Fixed(IS_SELECTED)));
        }
        self.select(fact, items, Vec::new())
    }

    fn select(&self, fact: &'a Fact<'a>, items: Vec<(SqlExpr<'a>, Name<'a>)>, having: Vec<SqlExpr<'a>>) -> Select<'a> {
        let model = self.plan.model;
        // Behind a left join even a key that never misses can be null, and an inner join would drop the row.
        let mut kept = vec![fact.cube];
        let mut joins = Vec::with_capacity(fact.joins.len());
        for planned in &fact.joins {
            let is_inner = planned.join.always && kept.contains(&planned.from);
            if is_inner {
                kept.push(planned.join.target);
            }
            let on = vec![self.expressions.snippet(&planned.join.on)];
            joins.push(JoinClause { cube: model.cube(planned.join.target), is_inner, on });
        }
        let segments = fact.segments.iter().map(|segment| self.expressions.snippet(segment));
        let filters = fact.row_filters.iter().map(|filter| self.expressions.row_predicate(filter));
        Select {
            items,
            from: Source::Cube(model.cube(fact.cube)),
            joins,
            filters: segments.chain(filters).collect(),
            group_by: self.plan.groups.len(),
            having,
            order: Vec::new(),
            page: None,
        }
    }

    /// Values over a derived table of groups.
    fn outer(&self, groups: Query<'a>, level: Level) -> Select<'a> {
        let table = if level == Level::Merged { MERGED } else { GROUPED };
        let column = |name| SqlExpr::Derived(table, name);
        let mut items: Vec<_> = self
            .plan
            .groups
            .iter()
            .enumerate()
            .map(|(i, g)| (column(Name::Numbered('g', i)), Name::Key(&g.key)))
            .collect();
        for value in &self.plan.values {
            items.push((self.value(&value.expression, level), Name::Key(&value.key)));
        }
        let mut conditions: Vec<_> =
            self.plan.group_filters.iter().map(|p| self.group_predicate(p, false, level)).collect();
        let is_merged = level == Level::Merged;
        if is_merged && self.plan.facts.iter().any(|f| !f.is_selected) && !self.plan.groups.is_empty() {
            let selected = SqlExpr::op(Op::Max, vec![column(Name::Fixed(IS_SELECTED))]);
            conditions.insert(0, SqlExpr::op(Op::Eq, vec![selected, SqlExpr::Integer(1)]));
        }
        let (filters, having) = if is_merged { (Vec::new(), conditions) } else { (conditions, Vec::new()) };
        Select {
            items,
            from: Source::Derived(Box::new(groups), table),
            joins: Vec::new(),
            filters,
            group_by: if is_merged { self.plan.groups.len() } else { 0 },
            having,
            order: Vec::new(),
            page: None,
        }
    }

    fn value(&self, expression: &'a ValueExpr<'a>, level: Level) -> SqlExpr<'a> {
        match expression {
            ValueExpr::Text(text) => SqlExpr::Text(text),
            ValueExpr::Sequence { parts, is_atomic } => SqlExpr::Sequence {
                parts: parts.iter().map(|part| self.value(part, level)).collect(),
                is_atomic: *is_atomic,
            },
            ValueExpr::Divide(left, right) => {
                SqlExpr::op(Op::Div, vec![self.value(left, level), self.value(right, level)])
            }
            ValueExpr::Aggregate(index) => {
                let planned = &self.plan.aggregates[*index];
                let name = Name::Numbered('a', *index);
                match level {
                    Level::Flat => self.expressions.aggregate(planned),
                    Level::Grouped => SqlExpr::Derived(GROUPED, name),
                    Level::Merged => {
                        let merged = SqlExpr::op(Op::Max, vec![SqlExpr::Derived(MERGED, name)]);
                        // Rule 4: a group that one side lacks has 0 for counts, null for the rest.
                        if counts(planned.aggregate.function) {
                            SqlExpr::op(Op::Coalesce, vec![merged, SqlExpr::Integer(0)])
                        } else {
                            merged
                        }
                    }
                }
            }
        }
    }

    fn group_predicate(&self, predicate: &'a GroupPredicate<'a>, is_negated: bool, level: Level) -> SqlExpr<'a> {
        let all = |inner: &'a [GroupPredicate<'a>]| {
            inner.iter().map(|p| self.group_predicate(p, is_negated, level)).collect::<Vec<_>>()
        };
        match predicate {
            GroupPredicate::Not(inner) => self.group_predicate(inner, !is_negated, level),
            GroupPredicate::And(inner) => connect(!is_negated, all(inner)),
            GroupPredicate::Or(inner) => connect(is_negated, all(inner)),
            GroupPredicate::Test { operand, test } => {
                let table = if level == Level::Merged { MERGED } else { GROUPED };
                let on = match operand {
                    GroupOperand::Group(index) => SqlExpr::Derived(table, Name::Numbered('g', *index)),
                    GroupOperand::Value(value) => self.value(value, level),
                };
                lower_test(&on, test, is_negated)
            }
        }
    }

    fn order(&self, select: &mut Select<'a>) {
        let groups = self.plan.groups.len();
        // One row has no order.
        if groups == 0 {
            return;
        }
        select.order = self
            .plan
            .order
            .iter()
            .map(|order| OrderItem {
                by: match &order.target {
                    PlannedTarget::Group(index) => OrderBy::Item(index + 1),
                    PlannedTarget::Value(index) => OrderBy::Item(groups + index + 1),
                    PlannedTarget::Expression(value) => OrderBy::Expression(self.value(value, self.level())),
                },
                descending: order.descending,
            })
            .collect();
    }
}

fn counts(function: AggregateFunction) -> bool {
    use AggregateFunction::{Count, CountDistinct, CountDistinctApprox};
    matches!(function, Count | CountDistinct | CountDistinctApprox)
}

/// The type of a null that stands for another fact's aggregate; decimals are left to the engine,
/// which knows their scale.
fn result_type(aggregate: &crate::model::Aggregate) -> Option<LogicalType> {
    match aggregate.function {
        function if counts(function) => Some(LogicalType::Integer),
        AggregateFunction::Avg => Some(LogicalType::Float),
        AggregateFunction::Sum if aggregate.argument_type == LogicalType::Integer => None,
        _ => Some(aggregate.argument_type).filter(|ty| !matches!(ty, LogicalType::Decimal | LogicalType::Unknown)),
    }
}
