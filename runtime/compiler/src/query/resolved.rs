//! A query with ids instead of names, and values of their members' types.
//!
//! In: a request, which [`super::resolve`] converts. Out: the input of `plan`. Not here: joins, facts, SQL.

use std::sync::Arc;

use jiff::tz::TimeZone;

use super::QueryError;
use super::resolved_row::ResolvedRowAggregate;
use crate::model::{CubeId, DimensionId, MeasureId, MetricId, Model, SegmentId};
use crate::types::{Granularity, Value};

/// A query in which all names are resolved.
#[derive(Debug, Clone)]
pub struct ResolvedQuery {
    /// Group-by columns in output order: dimensions, then time dimensions.
    pub groups: Vec<Group>,
    /// Measures and metrics in output order, after the groups.
    pub values: Vec<SelectedValue>,
    /// Aggregates of values of rows, after the values.
    pub computed: Vec<ResolvedRowAggregate>,
    /// Conditions without a measure, which are evaluated on rows.
    pub row_filters: Vec<RowFilter>,
    /// The ranges of `time_dimensions` and `time_range`, ANDed like the row filters.
    pub ranges: Vec<RangeFilter>,
    /// Conditions with a measure, which are evaluated on finished groups.
    pub group_filters: Vec<Predicate>,
    pub segments: Vec<SegmentId>,
    /// The filters of each computed metric, which apply to each of its aggregates.
    pub metric_filters: Vec<(MetricId, Vec<Predicate>)>,
    /// The complete order: the caller's keys or the default, then the remaining groups.
    pub order: Vec<OrderKey>,
    /// The cube of a query without measures.
    pub cube: Option<CubeId>,
    /// The time axis, if rows are added for its steps or values are summed up along it.
    pub axis: Option<Axis>,
    /// The time along which running totals are summed up, or rolling windows move. Totals of these measures leave out
    /// rows without the time. `None` if no measure needs a time, and also if the time is masked, because the totals
    /// would disclose which rows have one.
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

/// A condition on the rows of every fact, or of one fact.
#[derive(Debug, Clone)]
pub struct RowFilter {
    /// The fact of a filter on `metric_time`, which is resolved once for each fact because each has its own column.
    pub fact: Option<CubeId>,
    pub predicate: Predicate,
}

/// A range of a time dimension.
#[derive(Debug, Clone)]
pub struct RangeFilter {
    /// The only fact that the filter applies to, as in [`RowFilter`].
    pub fact: Option<CubeId>,
    pub dimension: DimensionId,
    pub test: Test,
    /// The range of the period that the query compares with.
    pub previous: Option<Test>,
}

/// The only time dimension of the query that has granularities.
#[derive(Debug, Clone)]
pub struct Axis {
    /// Indexes into `groups`, the finest first.
    pub groups: Vec<usize>,
    /// The granularity of one step. The bucket of each group consists of whole steps.
    pub step: Granularity,
    /// The bounds, if the query limits both sides.
    pub bounds: Option<AxisBounds>,
    /// The first bucket of each of the axis' groups, if the query limits the start.
    pub first_buckets: Option<Vec<i64>>,
    /// The last step, if the query limits the end.
    pub last: Option<i64>,
}

/// The steps of a bounded axis, in microseconds: local time for steps of a day or more and for wall-clock times,
/// instants for shorter steps.
#[derive(Debug, Clone)]
pub struct AxisBounds {
    pub first: i64,
    pub steps: u64,
}

/// The number of buckets by which a time group of the compared period is moved, so that the groups of both periods
/// match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupShift {
    pub group: usize,
    pub buckets: i64,
    /// The number of buckets of the range.
    pub own: i64,
    /// The number of buckets of the compared period.
    pub compared: i64,
}

impl GroupShift {
    /// Returns the number of buckets that the compared period has more than the range.
    pub fn excess(&self) -> i64 {
        (self.compared - self.own).max(0)
    }
}

#[derive(Debug, Clone)]
pub struct SelectedValue {
    pub key: Arc<str>,
    pub value: ValueId,
}

/// A value that is computed for each group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ValueId {
    Measure(MeasureId),
    Metric(MetricId),
}

impl ValueId {
    /// Returns a name for errors about a value that has no key of its own in the result.
    pub(crate) fn name(self, model: &Model) -> Arc<str> {
        match self {
            ValueId::Measure(id) => format!("{}.{}", model.cube(id.cube).name, model.measure(id).name).into(),
            ValueId::Metric(id) => model.metric(id).name.clone(),
        }
    }

    /// Returns the noun for errors about a value of the wrong kind.
    pub(crate) fn kind(self) -> &'static str {
        match self {
            ValueId::Measure(_) => "measure",
            ValueId::Metric(_) => "metric",
        }
    }
}

/// A filter tree in two-valued logic: every test is true or false, even for null.
#[derive(Debug, Clone, PartialEq)]
pub enum Predicate {
    Test { operand: Operand, test: Test },
    And(Vec<Predicate>),
    Or(Vec<Predicate>),
    Not(Box<Predicate>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operand {
    /// A dimension. In a filter on rows, it is the dimension's own value, and a granularity has become part of the
    /// test's bounds. In a filter on groups, it is the group-by column of the granularity.
    Dimension {
        id: DimensionId,
        granularity: Option<Granularity>,
    },
    /// The group-by column of `metric_time` with the granularity, in filters on groups.
    MetricTime {
        granularity: Option<Granularity>,
    },
    Value(ValueId),
}

/// A test of one value. Its values have the operand's type and are not null.
#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    /// Holds for no row (`inList []`).
    Never,
    IsNull,
    /// The operand is a part of a key, and is null because no row is joined.
    NoRow,
    Equals(Value),
    /// `text` is a [`Value::Text`].
    Match {
        kind: TextMatch,
        text: Value,
    },
    /// True for values of the list, and for null if `or_null`.
    InList {
        values: Vec<Value>,
        or_null: bool,
    },
    /// A range with at least one end.
    Range {
        low: Option<Bound>,
        high: Option<Bound>,
    },
    /// Holds if one of the tests holds, for example for several days.
    AnyOf(Vec<Test>),
    /// The negation of a test: null passes if it fails the test.
    Not(Box<Test>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextMatch {
    Contains,
    /// Contains the string in any case. The string is in lower case, and the operand is converted to lower case.
    ContainsAnyCase,
    StartsWith,
    EndsWith,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    pub value: Value,
    pub inclusive: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct OrderKey {
    pub target: OrderTarget,
    pub descending: bool,
    /// True if the caller requested this order.
    pub is_explicit: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderTarget {
    /// A group-by column, by its index in `groups`.
    Group(usize),
    /// A selected value, by its index in `values`.
    Selected(usize),
    /// A value that is computed only for the order.
    Value(ValueId),
}

impl ResolvedQuery {
    /// Returns the query of the same measures over the same rows, without groups and conditions on groups.
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
    /// Returns the dimension that a fact is grouped by.
    ///
    /// # Errors
    /// The group is `metric_time`, and the cube has no primary time.
    pub fn dimension(&self, model: &Model, fact: CubeId) -> Result<DimensionId, QueryError> {
        self.by.dimension(model, fact)
    }
}

impl GroupBy {
    /// Returns the dimension that a group refers to in a fact.
    ///
    /// # Errors
    /// The group is `metric_time`, and the cube has no primary time.
    pub fn dimension(self, model: &Model, fact: CubeId) -> Result<DimensionId, QueryError> {
        match self {
            GroupBy::Dimension(id) => Ok(id),
            GroupBy::MetricTime => primary_time(model, fact),
        }
    }
}

/// Returns the dimension that `metric_time`, and `time_range` without a dimension, refer to in a fact.
pub(crate) fn primary_time(model: &Model, fact: CubeId) -> Result<DimensionId, QueryError> {
    let cube = model.cube(fact);
    let index = cube.primary_time.ok_or_else(|| QueryError::NoPrimaryTime { cube: cube.name.clone() })?;
    Ok(DimensionId { cube: fact, index })
}

impl Operand {
    /// Returns whether the operand is the column of a group.
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
        self.for_each_test(&mut |operand, _| visit(operand));
    }

    /// Visits every operand whose values are read. Keys that are only tested for a joined row are left out.
    pub fn for_each_read(&self, visit: &mut impl FnMut(&Operand)) {
        self.for_each_test(&mut |operand, test| {
            if *test != Test::NoRow {
                visit(operand);
            }
        });
    }

    fn for_each_test(&self, visit: &mut impl FnMut(&Operand, &Test)) {
        match self {
            Predicate::Test { operand, test } => visit(operand, test),
            Predicate::And(all) | Predicate::Or(all) => all.iter().for_each(|p| p.for_each_test(visit)),
            Predicate::Not(inner) => inner.for_each_test(visit),
        }
    }
}
