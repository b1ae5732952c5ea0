//! A query whose names are ids and whose values have the types of their members.
//!
//! In: nothing; made by [`super::resolve`]. Out: what `plan` reads. Not here: joins, facts, SQL.

use std::sync::Arc;

use jiff::tz::TimeZone;

use crate::model::{DimensionId, MeasureId, MetricId, SegmentId};
use crate::types::{Granularity, Value};

/// A query that names only what exists.
#[derive(Debug, Clone)]
pub struct ResolvedQuery {
    /// Group-by columns in output order: dimensions, then time dimensions.
    pub groups: Vec<Group>,
    /// Measures and metrics in output order, behind the groups.
    pub values: Vec<SelectedValue>,
    /// Conjuncts without a measure: evaluated on rows.
    pub row_filters: Vec<Predicate>,
    /// Conjuncts with a measure: evaluated on finished groups.
    pub group_filters: Vec<Predicate>,
    pub segments: Vec<SegmentId>,
    /// `time_range` without a dimension: the test that each fact applies to its primary time.
    pub primary_time: Vec<(DimensionId, Test)>,
    /// The filters of each metric that is computed, for each of its aggregates.
    pub metric_filters: Vec<(MetricId, Vec<Predicate>)>,
    /// Complete: the caller's keys, or the default, then the ties.
    pub order: Vec<OrderKey>,
    /// The cube that a query of dimensions alone is asked of.
    pub cube: Option<crate::model::CubeId>,
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
    pub dimension: DimensionId,
    pub granularity: Option<Granularity>,
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
