//! The plan: which facts are aggregated on their own, how they merge, and who may see what.
//!
//! In: a [`ResolvedQuery`](crate::query::ResolvedQuery). Out: a [`LogicalPlan`], then a
//! [`SecuredPlan`], which alone leads to SQL. Every measure is aggregated over the rows of its own
//! cube, then facts are merged on the group-by columns. Not here: SQL and dialects.

mod build;
mod join_path;
mod secure;

use std::sync::Arc;

use jiff::tz::TimeZone;

pub use build::plan;
pub(crate) use join_path::joins_for;
pub use secure::{SecuredPlan, secure};

use crate::model::{Aggregate, CubeId, Join, MetricId, Model, Snippet};
use crate::query::{Group, Predicate, Test};

/// What will be computed, in ids and borrowed model nodes.
#[derive(Debug)]
pub struct LogicalPlan<'m> {
    pub model: &'m Model,
    /// Group-by columns, in output order.
    pub groups: Vec<Group>,
    /// At least one. Several are merged on the groups.
    pub facts: Vec<Fact<'m>>,
    /// Every aggregate that some value needs, each once.
    pub aggregates: Vec<PlannedAggregate<'m>>,
    /// The selected measures and metrics, in output order.
    pub values: Vec<PlannedValue<'m>>,
    /// ANDed, evaluated on finished groups.
    pub group_filters: Vec<GroupPredicate<'m>>,
    pub metric_filters: Vec<(MetricId, Vec<Predicate>)>,
    pub order: Vec<PlannedOrder<'m>>,
    pub limit: u64,
    pub offset: u64,
    pub timezone: TimeZone,
    pub wants_total: bool,
}

/// One cube's rows, joined to what its dimensions and filters need, grouped once.
#[derive(Debug)]
pub struct Fact<'m> {
    pub cube: CubeId,
    /// In dependency order; a join's `from` stands before it.
    pub joins: Vec<PlannedJoin<'m>>,
    /// ANDed.
    pub row_filters: Vec<Predicate>,
    pub segments: Vec<&'m Snippet>,
    /// Its groups are groups of the answer; else it is only looked up.
    pub is_selected: bool,
}

#[derive(Debug, Clone, Copy)]
pub struct PlannedJoin<'m> {
    pub from: CubeId,
    pub join: &'m Join,
}

/// An aggregate over one fact's rows.
#[derive(Debug)]
pub struct PlannedAggregate<'m> {
    /// Index into `facts`.
    pub fact: usize,
    pub aggregate: &'m Aggregate,
    /// Metrics whose filters narrow it further, outermost first.
    pub metrics: Vec<MetricId>,
}

#[derive(Debug)]
pub struct PlannedValue<'m> {
    pub key: Arc<str>,
    pub expression: ValueExpr<'m>,
}

/// Arithmetic over finished aggregates.
#[derive(Debug, Clone)]
pub enum ValueExpr<'m> {
    /// Index into `aggregates`.
    Aggregate(usize),
    Text(&'m str),
    Sequence {
        parts: Vec<ValueExpr<'m>>,
        is_atomic: bool,
    },
    /// Real division, null where the divisor is zero.
    Divide(Box<ValueExpr<'m>>, Box<ValueExpr<'m>>),
}

/// A filter tree over groups and values.
#[derive(Debug)]
pub enum GroupPredicate<'m> {
    Test { operand: GroupOperand<'m>, test: Test },
    And(Vec<GroupPredicate<'m>>),
    Or(Vec<GroupPredicate<'m>>),
    Not(Box<GroupPredicate<'m>>),
}

#[derive(Debug)]
pub enum GroupOperand<'m> {
    /// Index into `groups`.
    Group(usize),
    Value(ValueExpr<'m>),
}

#[derive(Debug)]
pub struct PlannedOrder<'m> {
    pub target: PlannedTarget<'m>,
    pub descending: bool,
}

#[derive(Debug)]
pub enum PlannedTarget<'m> {
    /// Index into `groups`.
    Group(usize),
    /// Index into `values`.
    Value(usize),
    Expression(ValueExpr<'m>),
}

impl GroupPredicate<'_> {
    /// Whether some test is on a group-by column.
    pub fn reads_groups(&self) -> bool {
        match self {
            GroupPredicate::Test { operand, .. } => matches!(operand, GroupOperand::Group(_)),
            GroupPredicate::And(all) | GroupPredicate::Or(all) => all.iter().any(GroupPredicate::reads_groups),
            GroupPredicate::Not(inner) => inner.reads_groups(),
        }
    }
}
