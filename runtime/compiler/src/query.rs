//! The query that a client sends, independent of the surface it came through, and its resolved form.
//!
//! In: a [`SemanticQuery`], made from wire types at the edge. Out: a `ResolvedQuery` of ids and typed
//! values. Not here: JSON, GraphQL or DAX; join paths and SQL (`plan`, `sql`).

mod error;
mod fact_match;
pub(crate) mod resolved;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

pub use error::{ErrorCode, ExpectedMember, QueryError};
pub use fact_match::{FactMatch, Miss, MissReason, Served};
pub use resolved::{
    Axis, AxisBounds, Bound, Group, GroupBy, GroupShift, Operand, OrderKey, OrderTarget, Predicate, RangeFilter,
    ResolvedQuery, RowFilter, SelectedValue, Test, TextMatch, ValueId,
};

pub use crate::types::Operator;

use crate::types::{Granularity, METRIC_TIME, Value};

/// Filters are nested at most so deep.
pub const MAX_FILTER_DEPTH: usize = 32;
/// Steps that rows are added for, at most (semantics, rule 8).
pub(crate) const MAX_STEPS: u64 = 100_000;

/// A query as every surface says it. Names are unresolved; `values` holds measures and metrics.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SemanticQuery {
    /// Member names without a dot belong to this cube.
    pub cube: Option<Arc<str>>,
    /// `metrics` first, then `measures`, in the order sent.
    pub values: Vec<MemberRef>,
    pub dimensions: Vec<MemberRef>,
    pub time_dimensions: Vec<TimeDimension>,
    pub time_range: Option<TimeRange>,
    /// ANDed.
    pub filters: Vec<Filter>,
    pub segments: Vec<MemberRef>,
    pub order: Vec<OrderBy>,
    /// `None`: the caller's default.
    pub limit: Option<u64>,
    pub offset: u64,
    /// IANA name; `None` is the project's (UTC unless set).
    pub timezone: Option<Arc<str>>,
    /// False: `total_rows` is left unknown.
    pub skip_total: bool,
    /// Each measure without dimensions as well.
    pub totals: bool,
    /// The same measures over another stretch of time, as `<measure>.previous`.
    pub compare: Option<CompareRange>,
    /// A row for each step of time, also where nothing is counted.
    pub fill_gaps: bool,
    /// Rows of one cube as they are: nothing is grouped or aggregated.
    pub ungrouped: bool,
    pub pre_aggregations: PreAggregations,
    /// The age that pre-aggregated data may have at most.
    pub max_staleness: Option<Duration>,
}

/// The use of pre-aggregations by a query.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PreAggregations {
    Off,
    /// Pre-aggregations that give the same answer are read.
    #[default]
    Auto,
    /// The query is refused where they can't answer it.
    Only,
}

impl PreAggregations {
    pub const ALL: [PreAggregations; 3] = [PreAggregations::Off, PreAggregations::Auto, PreAggregations::Only];

    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            PreAggregations::Off => "off",
            PreAggregations::Auto => "auto",
            PreAggregations::Only => "only",
        }
    }
}

/// The stretch of time that a range is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompareRange {
    /// The range moved back by so much: `1 year`, `4 weeks`.
    Shift(Arc<str>),
    Range(DateRange),
}

/// `orders.created_at.month`, `orders.revenue` or `revenue`, and the text as sent: it is the row's key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MemberRef {
    pub text: Arc<str>,
    /// Byte range ends inside `text`: the cube ends here; `None` without a dot.
    cube_end: Option<u32>,
    member_end: u32,
    pub granularity: Option<Granularity>,
}

/// One axis of time: a granularity to group by, a range to filter by, or both.
#[derive(Debug, Clone, PartialEq)]
pub struct TimeDimension {
    pub member: MemberRef,
    pub granularity: Option<Granularity>,
    pub range: Option<DateRange>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct TimeRange {
    /// `None`: each measure's own cube's primary time dimension.
    pub member: Option<MemberRef>,
    pub granularity: Option<Granularity>,
    pub range: DateRange,
}

/// Dates or timestamps as sent; read in the query's timezone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DateRange {
    /// Both ends inclusive as the user would say it. An end that is missing is open.
    Between(Option<Arc<str>>, Option<Arc<str>>),
    /// `last 7 days`, `2024-Q3`, `from 2024-01-01 to 2024-03-31`.
    Words(Arc<str>),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Filter {
    Condition { member: MemberRef, operator: Operator, values: Vec<Value> },
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

    /// The part before the first dot.
    pub fn cube(&self) -> Option<&str> {
        self.cube_end.map(|end| &self.text[..end as usize])
    }

    /// The member's own name.
    pub fn member(&self) -> &str {
        let start = self.cube_end.map_or(0, |end| end as usize + 1);
        &self.text[start..self.member_end as usize]
    }
}

impl FromStr for MemberRef {
    type Err = QueryError;

    /// At most three parts; the third is a granularity.
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
        // The reserved dimension has no cube, so what follows is its granularity.
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
