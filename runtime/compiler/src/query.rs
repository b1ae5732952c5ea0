//! The query that a client sends, independent of the surface it came through, and its resolved form.
//!
//! In: a [`SemanticQuery`], made from wire types at the edge. Out: a `ResolvedQuery` of ids and typed
//! values. Not here: JSON, GraphQL or DAX; join paths and SQL (`plan`, `sql`).

mod error;
mod fact_match;
pub(crate) mod resolved;
pub(crate) mod resolved_row;
mod row;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

pub use error::{ErrorCode, ExpectedMember, JoinDirection, QueryError, WindowMismatch};
pub use fact_match::{FactMatch, Miss, MissReason, Served};
pub use resolved::{
    Axis, AxisBounds, Bound, Group, GroupBy, GroupShift, Operand, OrderKey, OrderTarget, Predicate, RangeFilter,
    ResolvedQuery, RowFilter, SelectedValue, Test, TextMatch, ValueId,
};

pub use resolved_row::{ResolvedRowAggregate, ResolvedRowCondition, RowValueKind, TypedRowValue};
pub use row::{Comparison, RowAggregate, RowCondition, RowFunction, RowOperator, RowValue};

pub use crate::types::Operator;

use crate::types::{Granularity, METRIC_TIME, Value};

/// The deepest nesting of filters.
pub const MAX_FILTER_DEPTH: usize = 32;
/// The largest number of steps for which rows are added.
pub(crate) const MAX_STEPS: u64 = 100_000;

/// A query, the same for every surface. Names are unresolved; `values` contains measures and metrics.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SemanticQuery {
    /// The cube of member names without a dot.
    pub cube: Option<Arc<str>>,
    /// The values: `metrics` first, then `measures`, in the order in which they were sent.
    pub values: Vec<MemberRef>,
    /// Aggregates of values that are computed for each row. In the result, they follow the values.
    pub computed: Vec<RowAggregate>,
    pub dimensions: Vec<MemberRef>,
    pub time_dimensions: Vec<TimeDimension>,
    pub time_range: Option<TimeRange>,
    /// The filters, combined with AND.
    pub filters: Vec<Filter>,
    pub segments: Vec<MemberRef>,
    pub order: Vec<OrderBy>,
    /// The largest number of rows; `None` for the caller's default.
    pub limit: Option<u64>,
    pub offset: u64,
    /// The IANA name of the time zone; `None` for the project's zone (UTC unless set).
    pub timezone: Option<Arc<str>>,
    /// True to leave `total_rows` unknown, unless it is known without a further statement.
    pub skip_total: bool,
    /// True to compute each measure without dimensions as well.
    pub totals: bool,
    /// The other period for which the measures are computed as well, as `<measure>.previous`.
    pub compare: Option<CompareRange>,
    /// True to add a row for each step of time that has no row.
    pub fill_gaps: bool,
    /// True to return the rows of one cube without grouping and aggregation.
    pub ungrouped: bool,
    pub pre_aggregations: PreAggregations,
    /// The largest allowed age of pre-aggregated data.
    pub max_staleness: Option<Duration>,
}

/// The use of pre-aggregations by a query.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PreAggregations {
    Off,
    /// Read pre-aggregations that give the same result.
    #[default]
    Auto,
    /// Refuse the query if pre-aggregations cannot answer it.
    Only,
}

impl PreAggregations {
    pub const ALL: [PreAggregations; 3] = [PreAggregations::Off, PreAggregations::Auto, PreAggregations::Only];

    /// Returns the name of the mode in requests.
    pub fn as_str(self) -> &'static str {
        match self {
            PreAggregations::Off => "off",
            PreAggregations::Auto => "auto",
            PreAggregations::Only => "only",
        }
    }
}

/// The period that a range is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompareRange {
    /// The range moved back by an interval such as `1 year` or `4 weeks`.
    Shift(Arc<str>),
    Range(DateRange),
}

/// The name of a member, such as `orders.created_at.month`, `orders.revenue` or `revenue`. The text as it was sent is
/// the key in the result.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MemberRef {
    pub text: Arc<str>,
    /// The byte offset in `text` at which the cube's name ends; `None` without a dot.
    cube_end: Option<u32>,
    member_end: u32,
    pub granularity: Option<Granularity>,
}

/// A time dimension of a query, with a granularity to group by, a range to filter by, or both.
#[derive(Debug, Clone, PartialEq)]
pub struct TimeDimension {
    pub member: MemberRef,
    pub granularity: Option<Granularity>,
    pub range: Option<DateRange>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct TimeRange {
    /// The time dimension; `None` for the primary time dimension of each measure's own cube.
    pub member: Option<MemberRef>,
    pub granularity: Option<Granularity>,
    pub range: DateRange,
}

/// Dates or timestamps as they were sent, in the query's time zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DateRange {
    /// A start and an end, both inclusive. A missing one is unbounded.
    Between(Option<Arc<str>>, Option<Arc<str>>),
    /// A phrase such as `last 7 days`, `2024-Q3`, `from 2024-01-01 to 2024-03-31`.
    Words(Arc<str>),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Filter {
    Condition {
        member: MemberRef,
        operator: Operator,
        values: Vec<Value>,
    },
    /// No row of a cube is joined. This condition discloses nothing about the cube's members, so it is open to callers
    /// who may not see the cube's key. Requests of clients do not contain it.
    NoRow {
        cube: Arc<str>,
    },
    And(Vec<Filter>),
    Or(Vec<Filter>),
    Not(Box<Filter>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct OrderBy {
    pub member: MemberRef,
    pub descending: bool,
}

impl FromStr for Operator {
    type Err = QueryError;

    fn from_str(word: &str) -> Result<Self, QueryError> {
        Operator::ALL
            .into_iter()
            .find(|o| o.as_str() == word)
            .ok_or_else(|| QueryError::UnknownOperator { operator: word.into() })
    }
}

impl MemberRef {
    pub(crate) fn is_metric_time(&self) -> bool {
        self.cube_end.is_none() && self.member() == METRIC_TIME
    }

    /// Returns the part before the first dot; `None` without one.
    pub fn cube(&self) -> Option<&str> {
        self.cube_end.map(|end| &self.text[..end as usize])
    }

    /// Returns the name of the member without cube and granularity.
    pub fn member(&self) -> &str {
        let start = self.cube_end.map_or(0, |end| end as usize + 1);
        &self.text[start..self.member_end as usize]
    }
}

impl FromStr for MemberRef {
    type Err = QueryError;

    /// Reads a name of at most three parts; the third is a granularity.
    fn from_str(text: &str) -> Result<Self, QueryError> {
        let malformed = || QueryError::MalformedMember { text: text.into() };
        let mut parts = text.split('.');
        let first = parts.next().unwrap_or_default();
        let (second, third) = (parts.next(), parts.next());
        let is_empty = [Some(first), second, third].into_iter().flatten().any(str::is_empty);
        if is_empty || parts.next().is_some() || text.len() > 1024 {
            return Err(malformed());
        }
        let granularity = |word: &str| {
            word.parse().map_err(|_| QueryError::UnknownGranularity { member: text.into(), granularity: word.into() })
        };
        // The reserved dimension has no cube, so the second part is its granularity.
        if let (METRIC_TIME, Some(word), None) = (first, second, third) {
            let (granularity, member_end) = (Some(granularity(word)?), first.len() as u32);
            return Ok(MemberRef { text: text.into(), cube_end: None, member_end, granularity });
        }
        let granularity = third.map(granularity).transpose()?;
        let member_end = match second {
            Some(second) => first.len() + 1 + second.len(),
            None => first.len(),
        };
        Ok(MemberRef {
            text: text.into(),
            cube_end: second.map(|_| first.len() as u32),
            member_end: member_end as u32,
            granularity,
        })
    }
}

impl fmt::Display for MemberRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
