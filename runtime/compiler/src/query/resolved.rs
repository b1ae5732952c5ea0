//! A query whose names are ids and whose values have the types of their members.
//!
//! In: nothing; made by [`super::resolve`]. Out: what `plan` reads. Not here: joins, facts, SQL.

use std::sync::Arc;

use jiff::tz::TimeZone;

use super::QueryError;
use crate::model::{CubeId, DimensionId, MeasureId, MetricId, Model, SegmentId};
use crate::types::{Granularity, Value};

/// A query that names only what exists.
#[derive(Debug, Clone)]
pub struct ResolvedQuery {
    /// Group-by columns in output order: dimensions, then time dimensions.
    pub groups: Vec<Group>,
    /// Measures and metrics in output order, behind the groups.
    pub values: Vec<SelectedValue>,
    /// Conjuncts without a measure: evaluated on rows.
    pub row_filters: Vec<RowFilter>,
    /// The ranges of `time_dimensions` and `time_range`, ANDed like the row filters.
    pub ranges: Vec<RangeFilter>,
    /// Conjuncts with a measure: evaluated on finished groups.
    pub group_filters: Vec<Predicate>,
    pub segments: Vec<SegmentId>,
    /// The filters of each metric that is computed, for each of its aggregates.
    pub metric_filters: Vec<(MetricId, Vec<Predicate>)>,
    /// Complete: the caller's keys, or the default, then the ties.
    pub order: Vec<OrderKey>,
    /// The cube that a query of dimensions alone is asked of.
    pub cube: Option<CubeId>,
    /// The steps of time that rows are added for or that values run along, where something asks for it.
    pub axis: Option<Axis>,
    /// The time that running totals run along. Their totals leave out rows without it. `None` also where a mask
    /// hides which rows these are.
    pub running_time: Option<GroupBy>,
    pub fill_gaps: bool,
    /// The shift of each time group if the query compares with another range.
    pub comparison: Option<Vec<GroupShift>>,
    /// True if rows are returned without grouping, in the order of the primary key.
    pub ungrouped: bool,
    pub limit: u64,
    pub offset: u64,
    pub timezone: TimeZone,
    pub wants_total: bool,
}

/// One group-by column.
#[derive(Debug, Clone)]
pub struct Group {
    /// The key in result rows.
    pub key: Arc<str>,
    pub by: GroupBy,
    pub granularity: Option<Granularity>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupBy {
    Dimension(DimensionId),
    /// Each fact's own primary time.
    MetricTime,
}

/// A condition on the rows of every fact, or of one.
#[derive(Debug, Clone)]
pub struct RowFilter {
    /// `metric_time` means another column in each fact, so such a filter is resolved once for each.
    pub fact: Option<CubeId>,
    pub predicate: Predicate,
}

/// A range of a time dimension.
#[derive(Debug, Clone)]
pub struct RangeFilter {
    /// As for [`RowFilter`].
    pub fact: Option<CubeId>,
    pub dimension: DimensionId,
    pub test: Test,
    /// The stretch that it is compared with.
    pub previous: Option<Test>,
}

/// The query's one time dimension with granularities.
#[derive(Debug, Clone)]
pub struct Axis {
    /// Indexes into `groups`, the finest first.
    pub groups: Vec<usize>,
    /// The granularity of one step; each group's bucket is made of whole steps.
    pub step: Granularity,
    /// The bounds, if the query limits both sides.
    pub bounds: Option<AxisBounds>,
    /// The first bucket of each of the axis' groups, if the query limits the start.
    pub first_buckets: Option<Vec<i64>>,
    /// The last step, if the query limits the end.
    pub last: Option<i64>,
}

/// The steps of a limited axis, in microseconds: local time for days and more and for wall clocks,
/// instants for what is finer.
#[derive(Debug, Clone)]
pub struct AxisBounds {
    pub first: i64,
    pub steps: u64,
}

/// A time group of the other stretch is moved by so many of its buckets, so that positions meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupShift {
    pub group: usize,
    pub buckets: i64,
}

#[derive(Debug, Clone)]
pub struct SelectedValue {
    pub key: Arc<str>,
    pub value: ValueId,
}

/// Something computed per group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ValueId {
    Measure(MeasureId),
    Metric(MetricId),
}

impl ValueId {
    /// For errors about a value that has no key of its own in the answer.
    pub(crate) fn name(self, model: &Model) -> Arc<str> {
        match self {
            ValueId::Measure(id) => format!("{}.{}", model.cube(id.cube).name, model.measure(id).name).into(),
            ValueId::Metric(id) => model.metric(id).name.clone(),
        }
    }
}

/// A filter tree in two-valued logic: every test is true or false, null included.
#[derive(Debug, Clone, PartialEq)]
pub enum Predicate {
    Test { operand: Operand, test: Test },
    And(Vec<Predicate>),
    Or(Vec<Predicate>),
    Not(Box<Predicate>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operand {
    /// On rows: the dimension's own value, and a granularity has been folded into the test's bounds.
    /// On groups: the group-by column of that granularity.
    Dimension {
        id: DimensionId,
        granularity: Option<Granularity>,
    },
    /// On groups only: the group-by column of that granularity.
    MetricTime {
        granularity: Option<Granularity>,
    },
    Value(ValueId),
}

/// A test of one value. Values have the operand's type; `Null` stands nowhere inside.
#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    /// Holds for no row (`inList []`).
    Never,
    IsNull,
    Equals(Value),
    /// `text` is a [`Value::Text`].
    Match {
        kind: TextMatch,
        text: Value,
    },
    /// Members of the list, and null if `or_null`.
    InList {
        values: Vec<Value>,
        or_null: bool,
    },
    /// At least one end is given.
    Range {
        low: Option<Bound>,
        high: Option<Bound>,
    },
    /// Any of them (several days, say).
    AnyOf(Vec<Test>),
    /// The plain complement: null passes where the test fails on null.
    Not(Box<Test>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextMatch {
    Contains,
    /// The text is in lower case; the operand is compared in lower case.
    ContainsAnyCase,
    StartsWith,
    EndsWith,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    pub value: Value,
    pub inclusive: bool,
}

/// One key of the order.
#[derive(Debug, Clone, PartialEq)]
pub struct OrderKey {
    pub target: OrderTarget,
    pub descending: bool,
    /// The caller asked for it.
    pub is_explicit: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderTarget {
    /// Index into `groups`.
    Group(usize),
    /// Index into `values`.
    Selected(usize),
    /// A value that is looked up only for the order.
    Value(ValueId),
}

impl ResolvedQuery {
    /// The same measures over the same rows, in one row. Conditions on groups do not apply to it.
    #[must_use]
    pub fn into_totals(mut self) -> Self {
        self.groups.clear();
        self.group_filters.clear();
        self.order.clear();
        self.axis = None;
        self.comparison = self.comparison.map(|_| Vec::new());
        self.limit = 1;
        self.offset = 0;
        self.wants_total = false;
        self
    }
}

impl Group {
    /// The dimension that a fact is grouped by.
    ///
    /// # Errors
    /// `metric_time` of a cube without a primary time.
    pub fn dimension(&self, model: &Model, fact: CubeId) -> Result<DimensionId, QueryError> {
        self.by.dimension(model, fact)
    }
}

impl GroupBy {
    /// The dimension that it means for a fact.
    ///
    /// # Errors
    /// `metric_time` of a cube without a primary time.
    pub fn dimension(self, model: &Model, fact: CubeId) -> Result<DimensionId, QueryError> {
        match self {
            GroupBy::Dimension(id) => Ok(id),
            GroupBy::MetricTime => primary_time(model, fact),
        }
    }
}

/// The dimension that `metric_time`, and `time_range` without a dimension, mean for a fact.
pub(crate) fn primary_time(model: &Model, fact: CubeId) -> Result<DimensionId, QueryError> {
    let cube = model.cube(fact);
    let index = cube.primary_time.ok_or_else(|| QueryError::NoPrimaryTime { cube: cube.name.clone() })?;
    Ok(DimensionId { cube: fact, index })
}

impl Operand {
    /// Returns whether it stands for the group-by column.
    pub fn is_group(&self, group: &Group) -> bool {
        match *self {
            Operand::Dimension { id, granularity } => {
                group.by == GroupBy::Dimension(id) && group.granularity == granularity
            }
            Operand::MetricTime { granularity } => group.by == GroupBy::MetricTime && group.granularity == granularity,
            Operand::Value(_) => false,
        }
    }
}

impl Predicate {
    /// Visits every operand.
    pub fn for_each_operand(&self, visit: &mut impl FnMut(&Operand)) {
        match self {
            Predicate::Test { operand, .. } => visit(operand),
            Predicate::And(all) | Predicate::Or(all) => all.iter().for_each(|p| p.for_each_operand(visit)),
            Predicate::Not(inner) => inner.for_each_operand(visit),
        }
    }
}
