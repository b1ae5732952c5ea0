//! The plan: which facts are aggregated on their own, how they merge, and who may see what.
//!
//! In: a [`ResolvedQuery`](crate::query::ResolvedQuery). Out: a [`LogicalPlan`], then a
//! [`SecuredPlan`], which alone leads to SQL. Every measure is aggregated over the rows of its own
//! cube, then facts are merged on the group-by columns. Not here: SQL and dialects.

mod build;
mod join_path;
mod most_groups;
mod rollup;
mod rules;
mod secure;
mod semi_join;
mod stored_rows;
mod user_values;

use std::sync::Arc;

use jiff::tz::TimeZone;

pub use build::plan;
pub(crate) use build::plan_statistics;
pub use join_path::{JoinTree, NodeId, PlannedJoin};
pub(crate) use join_path::{joins_for, joins_over, path};
pub(crate) use rollup::{RollupRows, plan_rollup};
pub(crate) use secure::without_policies;
pub use secure::{Protection, RowGuard, SecuredPlan, secure};
pub use semi_join::SemiJoin;
pub use stored_rows::{StateSource, StoredRows, StoredSegment, StoredState, StoredTable};
pub(crate) use user_values::{fit, type_of};

use crate::model::{Aggregate, CubeId, DimensionId, MetricId, Model, Snippet};
use crate::query::{Axis, Group, GroupShift, Predicate, Test};
use crate::types::Value;

/// The computation of a query, in ids and borrowed model nodes.
#[derive(Debug)]
pub struct LogicalPlan<'m> {
    pub model: &'m Model,
    /// Group-by columns, in output order.
    pub groups: Vec<Group>,
    /// At least one. Several are merged on the groups.
    pub facts: Vec<Fact<'m>>,
    /// Every aggregate that some value needs, each once.
    pub aggregates: Vec<PlannedAggregate<'m>>,
    /// Aggregates that are summed up along the axis, as indexes into `aggregates`.
    pub running: Vec<usize>,
    /// The selected measures and metrics, in output order.
    pub values: Vec<PlannedValue<'m>>,
    /// ANDed, evaluated on finished groups.
    pub group_filters: Vec<GroupPredicate<'m>>,
    pub metric_filters: Vec<(MetricId, Vec<Predicate>)>,
    pub order: Vec<PlannedOrder<'m>>,
    /// Rows are added for its steps, or values run along it.
    pub axis: Option<Axis>,
    pub fill_gaps: bool,
    /// The shifts of the groups of facts over the other stretch.
    pub shifts: Vec<GroupShift>,
    /// Rows as they are.
    pub ungrouped: bool,
    pub limit: u64,
    pub offset: u64,
    pub timezone: TimeZone,
    pub wants_total: bool,
}

/// One cube's rows, joined to what its dimensions and filters need, grouped once.
#[derive(Debug)]
pub struct Fact<'m> {
    pub tree: JoinTree<'m>,
    pub period: Period,
    /// The dimensions of the plan's groups for this fact.
    pub groups: Vec<DimensionId>,
    /// ANDed.
    pub row_filters: Vec<Predicate>,
    pub segments: Vec<(NodeId, &'m Snippet)>,
    /// ANDed with the filters.
    pub semi_joins: Vec<SemiJoin<'m>>,
    /// Joins repeat its rows: what tells them apart, so that each counts once in a group.
    pub distinct: Option<RowKey>,
    /// Its groups are groups of the answer; else it is only looked up.
    pub is_selected: bool,
    /// The tables that are read instead of the cube's rows.
    pub stored: Option<Box<StoredRows<'m>>>,
}

/// Which rows of time a fact speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Period {
    /// The stretch that the query's range is compared with.
    pub is_previous: bool,
    /// Also what was before the range, as part of its first step.
    pub has_history: bool,
    /// Only rows with a time: of totals of a running total.
    pub is_dated: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowKey {
    PrimaryKey(Vec<DimensionId>),
    /// The cube has none, and none of its groups is behind a to-many join.
    RowNumber,
}

/// An aggregate over one fact's rows.
#[derive(Debug)]
pub struct PlannedAggregate<'m> {
    /// Index into `facts`.
    pub fact: usize,
    pub aggregate: &'m Aggregate,
    /// Metrics whose filters narrow it further, outermost first.
    pub metrics: Vec<MetricId>,
    pub shape: Shape,
}

/// The form of an aggregate's argument.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Shape {
    /// A measure's: the argument as it is.
    #[default]
    Measure,
    /// A statistic of a profile: of values themselves, so nothing of it may be closed to the caller.
    Statistic,
    /// For profiles: the power of the argument's distance from a number.
    Moment { about: Value, power: u32 },
    /// For profiles: a quantile, with its fraction in digits.
    Quantile { fraction: Box<str> },
    /// For profiles: an aggregate of the values that pass a test, as doubles.
    Passing(Test),
    /// For profiles: an aggregate of the rows that meet a condition.
    Where(Predicate),
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
    /// Index into `running`.
    Running(usize),
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
    /// The caller asked for it.
    pub is_explicit: bool,
}

#[derive(Debug)]
pub enum PlannedTarget<'m> {
    /// Index into `groups`.
    Group(usize),
    /// Index into `values`.
    Value(usize),
    Expression(ValueExpr<'m>),
    /// A dimension of the only fact's rows, if they are not grouped.
    Dimension(DimensionId),
}

impl LogicalPlan<'_> {
    /// Returns a warning for each pair of equally good paths between cubes, naming the path that is used.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        for fact in self.facts.iter().filter(|fact| !fact.tree.joins.is_empty()) {
            let joined: Vec<CubeId> = fact.tree.joins.iter().map(|join| join.join.target).collect();
            for tie in self.model.ties(fact.tree.cube).iter().filter(|tie| joined.contains(&tie.to)) {
                let warning = tie.text(self.model);
                if !warnings.contains(&warning) {
                    warnings.push(warning);
                }
            }
        }
        warnings
    }

    /// Returns every cube that the plan reads; a cube can occur several times.
    pub fn cubes(&self) -> impl Iterator<Item = CubeId> {
        let trees = |fact: &Fact<'_>| -> Vec<CubeId> {
            let inside = fact.semi_joins.iter().flat_map(|semi_join| semi_join.tree.cubes());
            fact.tree.cubes().chain(inside).collect()
        };
        self.facts.iter().flat_map(trees)
    }
}

impl GroupPredicate<'_> {
    /// Returns whether some test is on a group-by column.
    pub fn reads_groups(&self) -> bool {
        match self {
            GroupPredicate::Test { operand, .. } => matches!(operand, GroupOperand::Group(_)),
            GroupPredicate::And(all) | GroupPredicate::Or(all) => all.iter().any(GroupPredicate::reads_groups),
            GroupPredicate::Not(inner) => inner.reads_groups(),
        }
    }
}
