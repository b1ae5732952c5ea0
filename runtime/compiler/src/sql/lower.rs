//! Lowers a secured plan to a SQL tree (`runtime/architecture/compiler.md`, "How measures become SQL").
//!
//! One fact becomes one flat SELECT … GROUP BY, as a person would write it. Several facts are grouped separately; their
//! groups are stacked by UNION ALL, with nulls for the aggregates of all other facts, and merged by an outer GROUP BY.
//! If rows are added for steps of time, the stack is a named query from which the steps are made. Joins are exactly
//! those of the plan.

mod fact;
mod protected_rows;
mod ranks;
mod rollup;
mod sample;
mod steps;
mod stored;
mod windows;

pub(crate) use rollup::{lower_rollup, lower_stored_totals};
pub(crate) use sample::SAMPLE_ORDER;

use super::ast::{Name, OrderBy, OrderItem, Page, Query, Select, Source, SqlExpr};
use super::dialect_profile::{DialectProfile, Op};
use super::expression::Expressions;
use super::predicate::{Connective, Tested, lower_test};
use crate::model::{Aggregate, AggregateFunction};
use crate::plan::{Fact, GroupOperand, GroupPredicate, LogicalPlan, PlannedTarget, Protection, SecuredPlan, ValueExpr};
use crate::types::LogicalType;

/// The column that contains the number of groups before paging.
const TOTAL: &str = "total_rows";
/// The largest number of rows of an answer that is read as a whole. A larger answer is a stream, which begins with the
/// number of groups. Therefore only pages with fewer rows count as known to contain all groups.
pub const MAX_WHOLE_ROWS: u64 = 10_000;
/// The column that contains the number of rows that gap filling added.
const ADDED: &str = "added_rows";
/// A column of the merge: 1 for groups of selected facts, 0 for groups that are only looked up.
const IS_SELECTED: &str = "is_selected";
const MERGED: &str = "merged";
/// The derived table with one row for each group and row of a fact.
const ROWS: &str = "fact_rows";
const GROUPED: &str = "grouped";
const CARRIED: &str = "carried";

/// A lowered statement.
#[derive(Debug)]
pub struct Lowered<'a> {
    pub(super) query: Query<'a>,
    pub(crate) total_column: Option<usize>,
    pub(crate) added_column: Option<usize>,
}

/// Lowers a plan for the requested page.
pub fn lower<'a>(secured: &'a SecuredPlan<'a>, profile: &DialectProfile) -> Lowered<'a> {
    let plan = secured.plan();
    let lowering = Lowering::new(secured, profile);
    let mut select = lowering.answer();
    lowering.order(&mut select);
    let has_total = plan.wants_total && !holds_all_groups(secured);
    if orders_by_unselected(&select) && (has_total || !select.having.is_empty()) {
        select = group_below(select);
    }
    let total_column = has_total.then_some(select.items.len());
    if total_column.is_some() {
        select.items.push((SqlExpr::CountOverAll, Name::Fixed(TOTAL)));
    }
    let added_column = plan.axis.is_some().then_some(select.items.len());
    if added_column.is_some() {
        select.items.push((SqlExpr::Derived(CARRIED, Name::Fixed(ADDED)), Name::Fixed(ADDED)));
    }
    select.page = Some(Page { limit: plan.limit, offset: plan.offset });
    Lowered { query: Query::Select(Box::new(select)), total_column, added_column }
}

/// Returns whether groups are ordered by an aggregate that is not selected.
fn orders_by_unselected(select: &Select<'_>) -> bool {
    select.group_by > 0 && select.order.iter().any(|item| matches!(item.by, OrderBy::Expression(_)))
}

/// Moves the grouping into a derived table that has the aggregates of the order as columns. If a select has a window or
/// HAVING, Spark cannot order it by an aggregate that it does not select.
fn group_below<'a>(mut select: Select<'a>) -> Select<'a> {
    let column = |index| Name::Numbered('v', index);
    let mut items = Vec::with_capacity(select.items.len());
    for (index, (_, name)) in select.items.iter_mut().enumerate() {
        items.push((SqlExpr::Derived(GROUPED, column(index)), std::mem::replace(name, column(index))));
    }
    let mut order = std::mem::take(&mut select.order);
    for item in &mut order {
        if let OrderBy::Expression(expression) = &mut item.by {
            let column = column(select.items.len());
            let value = std::mem::replace(expression, SqlExpr::Derived(GROUPED, column));
            select.items.push((value, column));
        }
    }
    let with = std::mem::take(&mut select.with);
    let groups = Query::Select(Box::new(select));
    Select { with, order, ..Select::new(items, Source::Derived(Box::new(groups), GROUPED)) }
}

/// Returns whether the page contains all groups, whatever the data is. Its number of rows is then the number of groups.
fn holds_all_groups(secured: &SecuredPlan<'_>) -> bool {
    let plan = secured.plan();
    let is_first_page = plan.offset == 0 && plan.limit > 0;
    // Without groups there is one row.
    plan.groups.is_empty()
        || is_first_page && secured.most_groups().is_some_and(|most| most < plan.limit.min(MAX_WHOLE_ROWS))
}

/// Lowers a plan to the number of its groups, and of rows added for steps of time. It is needed after an empty page,
/// which contains neither number.
pub fn lower_count<'a>(secured: &'a SecuredPlan<'a>, profile: &DialectProfile) -> Lowered<'a> {
    let lowering = Lowering::new(secured, profile);
    let mut answer = lowering.answer();
    let mut total = SqlExpr::CountRows;
    let mut added_column = None;
    if lowering.level() == Level::Carried {
        // Added rows are counted whether or not they pass the filters.
        if !answer.filters.is_empty() {
            let passing = SqlExpr::when(std::mem::take(&mut answer.filters), SqlExpr::Integer(1), None);
            total = SqlExpr::op(Op::Count, vec![passing]);
        }
        let added = SqlExpr::op(Op::Max, vec![SqlExpr::Derived(CARRIED, Name::Fixed(ADDED))]);
        answer.items = vec![(total, Name::Fixed(TOTAL)), (added, Name::Fixed(ADDED))];
        added_column = Some(1);
    } else {
        let groups = Query::Select(Box::new(answer));
        answer = Select::new(vec![(total, Name::Fixed(TOTAL))], Source::Derived(Box::new(groups), GROUPED));
    }
    Lowered { query: Query::Select(Box::new(answer)), total_column: Some(0), added_column }
}

struct Lowering<'a> {
    plan: &'a LogicalPlan<'a>,
    protection: &'a Protection<'a>,
    expressions: Expressions<'a>,
}

/// The level at which values are computed from finished aggregates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    /// The aggregate call itself.
    Flat,
    /// Reads a column of the derived table, which has one row per group.
    Grouped,
    /// Selects the only branch that is not null.
    Merged,
    /// Reads a column of the derived table in which steps were added and values summed up along them.
    Carried,
}

impl Level {
    fn table(self) -> &'static str {
        match self {
            Level::Flat | Level::Grouped => GROUPED,
            Level::Merged => MERGED,
            Level::Carried => CARRIED,
        }
    }
}

impl<'a> Lowering<'a> {
    fn new(secured: &'a SecuredPlan<'a>, profile: &DialectProfile) -> Self {
        let expressions = Expressions::new(secured, profile);
        Lowering { plan: secured.plan(), protection: secured.protection(), expressions }
    }

    /// Returns the SELECT of all groups with their values, unordered.
    fn answer(&self) -> Select<'a> {
        match (self.level(), &self.plan.facts[..]) {
            (Level::Flat, [fact]) => self.flat(fact),
            (level @ Level::Grouped, [fact]) => self.outer(Query::Select(Box::new(self.branch(fact, None))), level),
            (level @ Level::Carried, _) => {
                let mut answer = self.outer(Query::Select(Box::new(self.carried())), level);
                answer.with = self.named_queries();
                answer
            }
            (level, _) => self.outer(Query::UnionAll(self.branches()), level),
        }
    }

    fn level(&self) -> Level {
        // A filter that reads a group column would have to repeat its expression in HAVING.
        let is_flat = || !self.plan.group_filters.iter().any(GroupPredicate::reads_groups);
        match self.plan.facts.len() {
            _ if self.plan.axis.is_some() => Level::Carried,
            1 if is_flat() => Level::Flat,
            1 => Level::Grouped,
            _ => Level::Merged,
        }
    }

    fn flat(&self, fact: &'a Fact<'a>) -> Select<'a> {
        let groups = self.plan.groups.iter().enumerate();
        let mut items: Vec<_> = groups.map(|(i, g)| (self.group(fact, i), Name::Key(&g.key))).collect();
        for value in &self.plan.values {
            items.push((self.value(&value.expression, Level::Flat), Name::Key(&value.key)));
        }
        let mut select = self.grouped(fact, items);
        select.having = self.plan.group_filters.iter().map(|p| self.group_predicate(p, false, Level::Flat)).collect();
        if self.plan.ungrouped {
            select.group_by = 0;
        }
        select
    }

    /// Returns whether some groups or steps are only looked up, and not in the answer.
    fn has_lookups(&self) -> bool {
        self.plan.facts.iter().any(|f| !f.is_selected) || (self.plan.axis.is_some() && !self.plan.shows_steps())
    }

    /// Returns the branches of facts without windows. Facts with aggregates of unknown types come first, because
    /// PostgreSQL takes a column that is null in the first two branches for a string.
    fn branches(&self) -> Vec<Select<'a>> {
        let is_untyped = |fact: usize| {
            let mut own = self.plan.aggregates.iter().filter(|planned| planned.fact == fact);
            own.any(|planned| matches!(self.null_of(planned.aggregate), SqlExpr::Null(None)))
        };
        let facts = self.plan.facts.iter().enumerate().filter(|(_, fact)| fact.period.window.is_none());
        let mut facts: Vec<_> = facts.collect();
        if facts.len() > 2 {
            facts.sort_by_key(|(index, _)| !is_untyped(*index));
        }
        facts.into_iter().map(|(index, fact)| self.branch(fact, Some(index))).collect()
    }

    /// Selects the groups and aggregates of one fact. In a merge, the select has a column for every aggregate of the
    /// plan. If some facts are only looked up, another column shows whether the fact's groups are selected.
    fn branch(&self, fact: &'a Fact<'a>, merge: Option<usize>) -> Select<'a> {
        let groups = 0..self.plan.groups.len();
        let mut items: Vec<_> = groups.map(|i| (self.group(fact, i), Name::Numbered('g', i))).collect();
        for (index, planned) in self.plan.aggregates.iter().enumerate() {
            let expr = match merge {
                // The aggregate is known only after the steps, which are computed from the groups of this fact.
                Some(_) if self.has_window(index) && fact.period.window.is_none() => continue,
                Some(own) if planned.fact != own => self.null_of(planned.aggregate),
                _ => self.aggregate(index),
            };
            items.push((expr, Name::Numbered('a', index)));
        }
        if merge.is_some() && self.has_lookups() {
            items.push((SqlExpr::Integer(i64::from(fact.is_selected)), Name::Fixed(IS_SELECTED)));
        }
        if items.is_empty() {
            items.push((SqlExpr::Integer(1), Name::Fixed(IS_SELECTED)));
        }
        self.grouped(fact, items)
    }

    /// Selects the values from a derived table of groups.
    fn outer(&self, groups: Query<'a>, level: Level) -> Select<'a> {
        let table = level.table();
        let column = |name| SqlExpr::Derived(table, name);
        let groups_of_plan = self.plan.groups.iter().enumerate();
        let mut items: Vec<_> =
            groups_of_plan.map(|(i, g)| (column(Name::Numbered('g', i)), Name::Key(&g.key))).collect();
        for value in &self.plan.values {
            items.push((self.value(&value.expression, level), Name::Key(&value.key)));
        }
        let mut conditions: Vec<_> =
            self.plan.group_filters.iter().map(|p| self.group_predicate(p, false, level)).collect();
        let mut select = Select::new(items, Source::Derived(Box::new(groups), table));
        // A group of facts that are only looked up is not in the answer.
        let is_selected = |flag| SqlExpr::op(Op::Eq, vec![flag, SqlExpr::Integer(1)]);
        let has_flag = self.has_lookups() && !self.plan.groups.is_empty();
        if level == Level::Merged {
            conditions.splice(..0, has_flag.then(|| is_selected(self.selected())));
            select.having = conditions;
            select.group_by = self.plan.groups.len();
        } else {
            let flag = || is_selected(column(Name::Fixed(IS_SELECTED)));
            conditions.splice(..0, (has_flag && level == Level::Carried).then(flag));
            select.filters = conditions;
        }
        select
    }

    /// Returns 1 for a merged group that is in the answer, and 0 for one that is only looked up.
    fn selected(&self) -> SqlExpr<'a> {
        SqlExpr::op(Op::Max, vec![SqlExpr::Derived(MERGED, Name::Fixed(IS_SELECTED))])
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
            ValueExpr::Running(index) => SqlExpr::Derived(level.table(), Name::Numbered('r', *index)),
            ValueExpr::Aggregate(index) => match level {
                Level::Flat => self.aggregate(*index),
                Level::Merged => self.merged(*index),
                Level::Grouped | Level::Carried => SqlExpr::Derived(level.table(), Name::Numbered('a', *index)),
            },
        }
    }

    /// Returns an aggregate of the stacked branches.
    fn merged(&self, index: usize) -> SqlExpr<'a> {
        let aggregate = self.plan.aggregates[index].aggregate;
        let is_extreme = matches!(aggregate.function, AggregateFunction::Min | AggregateFunction::Max);
        let ty = Some(aggregate.argument_type).filter(|ty| is_extreme && *ty == LogicalType::Boolean);
        let part = SqlExpr::Derived(MERGED, Name::Numbered('a', index));
        let merged = SqlExpr::Op { op: Op::Max, ty, args: vec![part] };
        // If one fact lacks a group, the fact's counts are 0 in the group, and its other values are null.
        if counts(aggregate.function) { SqlExpr::op(Op::Coalesce, vec![merged, SqlExpr::Integer(0)]) } else { merged }
    }

    /// Returns the null that fills the column of another fact's aggregate, in the aggregate's type. The engine infers
    /// the type if it is unknown, or if it is a decimal and the engine's decimals have a fixed scale.
    fn null_of(&self, aggregate: &Aggregate) -> SqlExpr<'a> {
        let ty = match aggregate.function {
            function if counts(function) => LogicalType::Integer,
            AggregateFunction::Avg => LogicalType::Float,
            function if function.is_of_distribution() => LogicalType::Float,
            // A double in another branch makes the column a double.
            AggregateFunction::Sum
                if matches!(aggregate.argument_type, LogicalType::Integer | LogicalType::Unknown) =>
            {
                LogicalType::Decimal
            }
            _ => aggregate.argument_type,
        };
        SqlExpr::Null(match ty {
            LogicalType::Decimal if !self.expressions.has_unbounded_decimals => None,
            LogicalType::Unknown => None,
            ty => Some(ty),
        })
    }

    fn group_predicate(&self, predicate: &'a GroupPredicate<'a>, is_negated: bool, level: Level) -> SqlExpr<'a> {
        let all = |inner: &'a [GroupPredicate<'a>]| {
            inner.iter().map(|p| self.group_predicate(p, is_negated, level)).collect::<Vec<_>>()
        };
        match predicate {
            GroupPredicate::Not(inner) => self.group_predicate(inner, !is_negated, level),
            GroupPredicate::And(inner) => Connective::And.negated(is_negated).join(all(inner)),
            GroupPredicate::Or(inner) => Connective::Or.negated(is_negated).join(all(inner)),
            GroupPredicate::Test { operand, test } => {
                let on = match operand {
                    GroupOperand::Group(index) => SqlExpr::Derived(level.table(), Name::Numbered('g', *index)),
                    GroupOperand::Value(value) => self.value(value, level),
                };
                lower_test(&Tested::plain(on), test, is_negated)
            }
        }
    }

    fn order(&self, select: &mut Select<'a>) {
        let groups = self.plan.groups.len();
        // One row has no order.
        if groups == 0 {
            return;
        }
        let by = |target: &'a PlannedTarget<'a>| match target {
            PlannedTarget::Group(index) => OrderBy::Item(index + 1),
            PlannedTarget::Value(index) => OrderBy::Item(groups + index + 1),
            PlannedTarget::Expression(value) => OrderBy::Expression(self.value(value, self.level())),
            PlannedTarget::Dimension(id) => OrderBy::Expression(self.row_dimension(&self.plan.facts[0], *id)),
        };
        let order = self.plan.order.iter();
        select.order = order.map(|o| OrderItem { by: by(&o.target), descending: o.descending }).collect();
    }
}

fn counts(function: AggregateFunction) -> bool {
    use AggregateFunction::{Count, CountDistinct, CountDistinctApprox};
    matches!(function, Count | CountDistinct | CountDistinctApprox)
}
