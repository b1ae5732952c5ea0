//! The plan of a query: its facts, which are aggregated separately, their merge, and the caller's protection.
//!
//! In: a [`ResolvedQuery`](crate::query::ResolvedQuery). Out: a [`LogicalPlan`], then a [`SecuredPlan`], which is the
//! only input for SQL. Every measure is aggregated over the rows of its own cube; then the facts are merged on the
//! group-by columns. Not here: SQL and dialects.

mod build;
mod join_path;
mod most_groups;
mod rollup;
mod rules;
mod secure;
mod semi_join;
mod stored_rows;
mod user_values;
mod window;

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
pub(crate) use window::MAX_WINDOWS;

use crate::model::{Aggregate, CubeId, DimensionId, MetricId, Model, RollingWindow, Snippet};
use crate::query::{Axis, Group, GroupShift, Predicate, Test, TypedRowValue};
use crate::types::Value;

/// The computation of a query, in ids and borrowed model nodes.
#[derive(Debug)]
pub struct LogicalPlan<'m> {
    pub model: &'m Model,
    /// Group-by columns, in output order.
    pub groups: Vec<Group>,
    /// The facts, at least one. Several are merged on their groups.
    pub facts: Vec<Fact<'m>>,
    /// Every aggregate that a value needs, each once.
    pub aggregates: Vec<PlannedAggregate<'m>>,
    /// Aggregates that are summed up along the axis, as indexes into `aggregates`.
    pub running: Vec<usize>,
    /// The selected measures and metrics, in output order.
    pub values: Vec<PlannedValue<'m>>,
    /// The filters of finished groups, combined with AND.
    pub group_filters: Vec<GroupPredicate<'m>>,
    pub metric_filters: Vec<(MetricId, Vec<Predicate>)>,
    pub order: Vec<PlannedOrder<'m>>,
    /// The time axis, if rows are added for its steps or values are summed up along it.
    pub axis: Option<Axis>,
    pub fill_gaps: bool,
    /// The shifts of time groups, for the facts that aggregate the compared period.
    pub shifts: Vec<GroupShift>,
    /// True if the result is rows instead of groups.
    pub ungrouped: bool,
    pub limit: u64,
    pub offset: u64,
    pub timezone: TimeZone,
    pub wants_total: bool,
}

/// The rows of one cube with the joins that its dimensions and filters need, grouped once.
#[derive(Debug)]
pub struct Fact<'m> {
    pub tree: JoinTree<'m>,
    pub period: Period,
    /// The dimensions of the plan's groups for this fact.
    pub groups: Vec<DimensionId>,
    /// The filters of the rows, combined with AND.
    pub row_filters: Vec<Predicate>,
    pub segments: Vec<(NodeId, &'m Snippet)>,
    /// The semi-joins, combined with the filters by AND.
    pub semi_joins: Vec<SemiJoin<'m>>,
    /// The key that distinguishes the fact's rows if joins repeat them, so that each row is counted once in a group.
    pub distinct: Option<RowKey>,
    /// True if the fact's groups are groups of the result; false if it is only looked up.
    pub is_selected: bool,
    /// The tables of a pre-aggregation that are read instead of the cube's rows.
    pub stored: Option<Box<StoredRows<'m>>>,
    /// The sample to take of the rows that pass all filters. Only statistics of profiles have one.
    pub sample: Option<FactSample>,
}

/// A sample of a fact's rows. It depends on the rows' keys only, so all statements of a profile get the same rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactSample {
    /// The number of rows to take.
    pub rows: u64,
    /// The number of rows to sample from, at least `rows`.
    pub total: u64,
    /// The primary key of the fact's cube, which is not empty.
    pub keys: Vec<DimensionId>,
    pub method: SampleMethod,
}

/// The order of the rows that a sample is taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleMethod {
    /// The first rows in the order of a hash of their keys.
    Random,
    /// Every n-th row in the order of the keys.
    Systematic,
    /// Rows at equal distances in the order of a dimension, then of the hash of their keys. Each value of the dimension
    /// has its share of the sample.
    Stratified(DimensionId),
}

/// The range of time of a fact's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Period {
    /// True for the period that the query's range is compared with.
    pub is_previous: bool,
    /// True if rows before the range are included in the first step.
    pub has_history: bool,
    /// True if rows without a time are left out, as for totals of a running total.
    pub is_dated: bool,
    /// True if a row counts only in the first step in which it has a joined row, as for running totals along a time
    /// behind a to-many join. The sum of the steps then has each row once.
    pub is_first: bool,
    /// The range of time around each step whose rows are aggregated. The query's range does not restrict them.
    pub window: Option<RollingWindow>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowKey {
    PrimaryKey(Vec<DimensionId>),
    /// A row number: the cube has no key, and none of its groups is behind a to-many join.
    RowNumber,
}

/// An aggregate over one fact's rows.
#[derive(Debug)]
pub struct PlannedAggregate<'m> {
    /// The index of the fact in `facts`.
    pub fact: usize,
    pub aggregate: &'m Aggregate,
    /// The metrics whose filters restrict the aggregate, outermost first.
    pub metrics: Vec<MetricId>,
    pub shape: ArgumentForm,
}

/// The form of an aggregate's argument.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum ArgumentForm {
    /// The argument of a measure, unchanged.
    #[default]
    Measure,
    /// A statistic of a column (`column_statistics`). It discloses values, so all of them must be open to the caller.
    Statistic,
    /// The distance of the argument from a number, raised to a power. Only statistics use it.
    Moment { about: Value, power: u32 },
    /// The argument of a quantile, whose fraction is written in decimal digits. Only statistics use it.
    Quantile { fraction: Box<str> },
    /// The values that pass a test, compared as doubles. Only statistics use it.
    Passing(Test),
    /// The rows that meet a condition. Only statistics use it.
    Where(Predicate),
    /// A value that is computed for each row. The aggregate's own argument is empty. Like a statistic, it can disclose
    /// values.
    Row(TypedRowValue),
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
    /// Exact division; null if the divisor is zero.
    Divide(Box<ValueExpr<'m>>, Box<ValueExpr<'m>>),
}

impl ValueExpr<'_> {
    /// Returns the indexes of the aggregates that the value itself reads. Running totals are not included.
    pub(crate) fn aggregates(&self) -> Vec<usize> {
        match self {
            ValueExpr::Aggregate(index) => vec![*index],
            ValueExpr::Running(_) | ValueExpr::Text(_) => Vec::new(),
            ValueExpr::Sequence { parts, .. } => parts.iter().flat_map(ValueExpr::aggregates).collect(),
            ValueExpr::Divide(left, right) => left.aggregates().into_iter().chain(right.aggregates()).collect(),
        }
    }

    /// Returns whether the value is a running total, or has an aggregate for which `is_along` returns true.
    fn is_along_axis(&self, is_along: &impl Fn(&usize) -> bool) -> bool {
        match self {
            ValueExpr::Aggregate(index) => is_along(index),
            ValueExpr::Running(_) => true,
            ValueExpr::Text(_) => false,
            ValueExpr::Sequence { parts, .. } => parts.iter().any(|part| part.is_along_axis(is_along)),
            ValueExpr::Divide(left, right) => left.is_along_axis(is_along) || right.is_along_axis(is_along),
        }
    }
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
    /// True if the caller requested this order.
    pub is_explicit: bool,
}

#[derive(Debug)]
pub enum PlannedTarget<'m> {
    /// Index into `groups`.
    Group(usize),
    /// Index into `values`.
    Value(usize),
    Expression(ValueExpr<'m>),
    /// A dimension of the only fact's rows, in a query without groups.
    Dimension(DimensionId),
}

impl LogicalPlan<'_> {
    /// Returns whether each combination of the groups outside the axis has a row for every step of the axis. If not,
    /// the rows of each combination begin at the first step of that combination.
    pub fn has_all_steps(&self) -> bool {
        let is_bounded = self.axis.as_ref().is_some_and(|axis| axis.bounds.is_some());
        self.fill_gaps || (is_bounded && self.facts.iter().any(|fact| fact.period.window.is_some()))
    }

    /// Returns whether the answer has a row for each step of the axis. If not, the steps are only needed for a value that
    /// a filter or the order looks up.
    pub fn shows_steps(&self) -> bool {
        let is_along = |index: &usize| self.facts[self.aggregates[*index].fact].period.window.is_some();
        self.fill_gaps || self.values.iter().any(|value| value.expression.is_along_axis(&is_along))
    }

    /// Returns the shift of the group that identifies the steps of the axis; `None` if the query compares no periods.
    pub fn step_shift(&self) -> Option<&GroupShift> {
        let axis = self.axis.as_ref()?;
        self.shifts
            .iter()
            .find(|shift| axis.groups.contains(&shift.group) && self.groups[shift.group].granularity == Some(axis.step))
    }

    /// Returns a warning for each pair of equally good paths between cubes, naming the path that is used, and one if the
    /// compared period has more buckets than the range.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings: Vec<String> = self.shifts.iter().filter_map(|shift| self.excess_warning(shift)).collect();
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

    fn excess_warning(&self, shift: &GroupShift) -> Option<String> {
        let granularity = self.groups[shift.group].granularity.filter(|_| shift.excess() > 0)?;
        Some(format!(
            "the compared period is longer than the range by {} x {granularity}: rows after the range contain only \
             values of this period",
            shift.excess()
        ))
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
    /// Returns whether the filter tests a group-by column.
    pub fn reads_groups(&self) -> bool {
        match self {
            GroupPredicate::Test { operand, .. } => matches!(operand, GroupOperand::Group(_)),
            GroupPredicate::And(all) | GroupPredicate::Or(all) => all.iter().any(GroupPredicate::reads_groups),
            GroupPredicate::Not(inner) => inner.reads_groups(),
        }
    }
}
