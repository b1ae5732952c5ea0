//! The reasons why a query is refused, as data. The edge turns them into messages, a status and a body.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

use super::FactMatch;
use crate::types::{Granularity, LogicalType};

/// The interface's codes of compilation errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    InvalidQuery,
    InvalidMeasure,
    InvalidDimension,
    InvalidFilter,
    NoJoinPath,
    Forbidden,
}

/// A kind of member that is allowed at a place of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExpectedMember {
    Measure,
    /// A measure without a granularity.
    PlainMeasure,
    Dimension,
    DimensionOfOneCube,
    TimeDimension,
    DimensionOrMeasure,
    /// A dimension whose column contains numbers.
    NumericDimension,
}

impl fmt::Display for ExpectedMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ExpectedMember::Measure => "measure",
            ExpectedMember::Dimension => "dimension",
            ExpectedMember::DimensionOfOneCube => "dimension of one cube",
            ExpectedMember::PlainMeasure | ExpectedMember::TimeDimension => "time dimension",
            ExpectedMember::DimensionOrMeasure => "dimension or measure",
            ExpectedMember::NumericDimension => "dimension of numbers",
        })
    }
}

/// Returns the end of a message about an unknown name.
fn did_you_mean(name: Option<&str>) -> String {
    name.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

/// Returns the end of a message about a granularity of a dimension that has none.
fn only_of_time(allowed: &[Granularity]) -> &'static str {
    if allowed.is_empty() { ": only time dimensions have granularities" } else { "" }
}

/// Returns the last part of a message, about joins in the opposite direction.
fn direction(joins: Option<&JoinDirection>) -> String {
    joins.map(ToString::to_string).unwrap_or_default()
}

/// The reason why a rolling window cannot be measured along the time of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowMismatch {
    /// Hours or shorter units along a column of dates.
    HoursOfDates,
    /// Days or longer units at steps of an hour or less, in a time zone in which days have different lengths.
    DaysOfInstants,
}

impl fmt::Display for WindowMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WindowMismatch::HoursOfDates => {
                "is measured in hours or less, but the time dimension is a column of dates: choose another time dimension"
            }
            WindowMismatch::DaysOfInstants => {
                "is measured in days or more, which have different lengths at steps of an hour or less: choose the \
                 granularity `day` or a coarser one, or the time zone UTC"
            }
        })
    }
}

/// Joins from one cube to another, which do not lead back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinDirection {
    pub from: Arc<str>,
    pub to: Arc<str>,
}

impl fmt::Display for JoinDirection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "; joins lead from `{}` to `{}`, and are followed in their direction only", self.from, self.to)
    }
}

/// The reasons for which a query can be refused before SQL exists. Lists of names have at most 20 names, nearest first,
/// and contain only names that the caller may see.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum QueryError {
    #[error("`{text}` is not a member: write `cube.member` or `cube.time_dimension.granularity`")]
    MalformedMember { text: Arc<str> },
    #[error("unknown filter operator `{operator}`")]
    UnknownOperator { operator: Arc<str> },
    #[error("unknown granularity `{granularity}` in `{member}`")]
    UnknownGranularity { member: Arc<str>, granularity: Arc<str> },
    #[error("the query names no measure, metric or dimension")]
    Empty,
    #[error("unknown cube `{name}`")]
    UnknownCube { name: Arc<str>, nearest: Vec<Arc<str>> },
    #[error("unknown metric `{name}`")]
    UnknownMetric { name: Arc<str>, nearest: Vec<Arc<str>> },
    #[error("unknown measure `{name}`")]
    UnknownMeasure { name: Arc<str>, nearest: Vec<Arc<str>> },
    #[error("unknown dimension `{name}`")]
    UnknownDimension { name: Arc<str>, nearest: Vec<Arc<str>> },
    #[error("unknown segment `{name}`")]
    UnknownSegment { name: Arc<str>, nearest: Vec<Arc<str>> },
    #[error("`{name}` is a {found}, not a {expected}")]
    WrongKind { name: Arc<str>, expected: ExpectedMember, found: &'static str },
    #[error("`{member}` has no granularity `{granularity}`{}", only_of_time(.allowed))]
    GranularityNotAllowed { member: Arc<str>, granularity: Granularity, allowed: Vec<Granularity> },
    #[error("metric `{metric}` cannot be grouped by `{requested}`; its finest granularity is `{finest}`")]
    FinerThanTimeGrain { metric: Arc<str>, finest: Granularity, requested: Granularity },
    #[error("operator `{operator}` does not fit `{member}`, a {ty}")]
    OperatorNotAllowed {
        member: Arc<str>,
        operator: &'static str,
        ty: &'static str,
        valid_operators: Vec<&'static str>,
    },
    #[error("only dimensions of type `string` can be searched; `{member}` is a {ty}")]
    NotSearchable { member: Arc<str>, ty: &'static str },
    #[error("value `{value}` does not fit `{member}`: expected {expected}")]
    ValueDoesNotFit { member: Arc<str>, value: String, expected: &'static str },
    #[error("operator `{operator}` on `{member}` takes {expected}; found {found}")]
    ValueCount { member: Arc<str>, operator: &'static str, expected: &'static str, found: usize },
    #[error("the range of `{member}` ends before it starts: {start} to {end}")]
    ReversedRange { member: Arc<str>, start: String, end: String },
    #[error("filters are nested deeper than {limit} levels")]
    TooDeep { limit: usize },
    #[error("the query has more than {limit} {what}")]
    TooMany { what: &'static str, limit: usize },
    #[error("`{dimension}` in a filter on a measure must be selected too")]
    GroupFilterNotSelected { dimension: Arc<str> },
    #[error("unknown time zone `{timezone}`{}", did_you_mean(.meant.as_deref()))]
    UnknownTimezone { timezone: Arc<str>, meant: Option<Arc<str>> },
    #[error("limit {limit} exceeds the maximum of {max}{advice}")]
    LimitTooLarge { limit: u64, max: u64, advice: &'static str },
    #[error("`{field}` must be selected to order by it")]
    OrderNotSelected { field: Arc<str> },
    #[error(
        "cube `{cube}` has no primary time dimension; name a time dimension in `time_range.dimension`, or instead of \
         `metric_time`"
    )]
    NoPrimaryTime { cube: Arc<str> },
    #[error("`time_range` needs a `dimension`: the query's measures do not share one primary time dimension")]
    AmbiguousTimeRange,
    #[error("no join path from `{what}` to `{target}`{}", direction(.reversed.as_ref()))]
    NoJoinPath {
        what: Arc<str>,
        target: Arc<str>,
        reachable: Vec<Arc<str>>,
        /// The joins that lead from the cube of `target` to the cube of `what`, which cannot be followed.
        reversed: Option<JoinDirection>,
    },
    #[error(
        "no cube of these dimensions reaches all of them by to-one joins (`{cube}` does not reach `{target}`): name a \
         measure or a `cube`"
    )]
    NoCommonCube { cube: Arc<str>, target: Arc<str>, reachable: Vec<Arc<str>> },
    #[error("cube `{cube}` needs a primary key: `{member}` is behind a to-many join")]
    NeedsPrimaryKey { cube: Arc<str>, member: Arc<str> },
    #[error("`{what}` needs one time dimension with a granularity; the query has {found}")]
    NeedsOneAxis { what: Arc<str>, found: usize },
    #[error("the rolling window of `{what}` {reason}")]
    WindowDoesNotFit { what: Arc<str>, reason: WindowMismatch },
    #[error("the time dimension has more than {limit} steps: ask for a coarser granularity or a shorter range")]
    TooManySteps { limit: u64 },
    #[error(
        "steps of one {step} cannot be added, shifted or compared in the time zone `{zone}`: its offset changes by a \
         fraction of one {step} at {at}; use another time zone or steps of a day or more"
    )]
    UnevenSteps { zone: Arc<str>, step: Granularity, at: Timestamp },
    #[error("`compare_range` needs one range with both ends, in `time_range` or as a `date_range`")]
    CompareNeedsRange,
    #[error("invalid shift `{text}`: write a number and a unit, like \"1 year\" or \"4 weeks\"")]
    MalformedShift { text: Arc<str> },
    #[error("the range moved by `{text}` leaves the years 0001 to 9999")]
    ShiftLeavesCalendar { text: Arc<str> },
    #[error("`metric_time` needs a measure, a metric or a `cube`")]
    MetricTimeOfNothing,
    #[error("`metric_time` finer than a day cannot mix instants (`{instant}`) with wall clocks (`{wall_clock}`)")]
    MixedMetricTime { instant: Arc<str>, wall_clock: Arc<str> },
    #[error("an ungrouped query selects dimensions only, not `{field}`")]
    Ungrouped { field: Arc<str> },
    #[error("the dialect `{dialect}` has no template for `{op}`{}", ty.map(|ty| format!(" on {ty:?}")).unwrap_or_default())]
    DialectLacks { dialect: Arc<str>, op: &'static str, ty: Option<LogicalType> },
    #[error("`{member}` needs `{op}`, which the dialect `{dialect}` does not have")]
    AggregateUnsupported { member: Arc<str>, dialect: Arc<str>, op: &'static str, hint: &'static str },
    #[error("cube `{cube}` is closed {why}")]
    ClosedCube { cube: Arc<str>, why: &'static str },
    #[error("`{member}` is masked: it can be selected, but not filtered, ordered or combined")]
    Masked { member: Arc<str> },
    #[error("`{member}` reads columns that a policy protects")]
    Covered { member: Arc<str> },
    #[error("no pre-aggregation answers the query on cube `{cube}`")]
    NotPreAggregated {
        /// The first cube whose rows the query would read.
        cube: Arc<str>,
        /// All facts of the query. Misses because of policies are included.
        facts: Vec<FactMatch>,
    },
}

impl QueryError {
    /// Returns the names and values of the query that the error is about, the most specific first.
    pub fn subjects(&self) -> Vec<&str> {
        match self {
            QueryError::UnknownGranularity { member, granularity } => vec![granularity, member],
            QueryError::OperatorNotAllowed { member, operator, .. }
            | QueryError::ValueCount { member, operator, .. } => {
                vec![operator, member]
            }
            QueryError::ValueDoesNotFit { member, value, .. } => vec![value, member],
            QueryError::NoJoinPath { what, target, .. } => vec![what, target],
            QueryError::NoCommonCube { cube, target, .. } => vec![cube, target],
            QueryError::NeedsPrimaryKey { cube, member } => vec![member, cube],
            QueryError::MixedMetricTime { instant, wall_clock } => vec![instant, wall_clock],
            QueryError::MalformedMember { text: name }
            | QueryError::UnknownOperator { operator: name }
            | QueryError::UnknownCube { name, .. }
            | QueryError::UnknownMetric { name, .. }
            | QueryError::UnknownMeasure { name, .. }
            | QueryError::UnknownDimension { name, .. }
            | QueryError::UnknownSegment { name, .. }
            | QueryError::WrongKind { name, .. }
            | QueryError::GranularityNotAllowed { member: name, .. }
            | QueryError::FinerThanTimeGrain { metric: name, .. }
            | QueryError::ReversedRange { member: name, .. }
            | QueryError::NotSearchable { member: name, .. }
            | QueryError::GroupFilterNotSelected { dimension: name }
            | QueryError::UnknownTimezone { timezone: name, .. }
            | QueryError::OrderNotSelected { field: name }
            | QueryError::NoPrimaryTime { cube: name }
            | QueryError::NeedsOneAxis { what: name, .. }
            | QueryError::UnevenSteps { zone: name, .. }
            | QueryError::WindowDoesNotFit { what: name, .. }
            | QueryError::MalformedShift { text: name }
            | QueryError::ShiftLeavesCalendar { text: name }
            | QueryError::Ungrouped { field: name }
            | QueryError::ClosedCube { cube: name, .. }
            | QueryError::Masked { member: name }
            | QueryError::Covered { member: name }
            | QueryError::AggregateUnsupported { member: name, .. }
            | QueryError::NotPreAggregated { cube: name, .. } => vec![name],
            QueryError::Empty
            | QueryError::TooDeep { .. }
            | QueryError::TooMany { .. }
            | QueryError::LimitTooLarge { .. }
            | QueryError::AmbiguousTimeRange
            | QueryError::TooManySteps { .. }
            | QueryError::CompareNeedsRange
            | QueryError::MetricTimeOfNothing
            | QueryError::DialectLacks { .. } => Vec::new(),
        }
    }

    /// Returns the known names that are similar to an unknown name, nearest first.
    pub fn nearest(&self) -> &[Arc<str>] {
        match self {
            QueryError::UnknownCube { nearest, .. }
            | QueryError::UnknownMetric { nearest, .. }
            | QueryError::UnknownMeasure { nearest, .. }
            | QueryError::UnknownDimension { nearest, .. }
            | QueryError::UnknownSegment { nearest, .. } => nearest,
            _ => &[],
        }
    }

    /// Returns the interface's code of this error.
    pub fn code(&self) -> ErrorCode {
        match self {
            QueryError::UnknownMeasure { .. }
            | QueryError::WrongKind { expected: ExpectedMember::Measure | ExpectedMember::PlainMeasure, .. } => {
                ErrorCode::InvalidMeasure
            }
            QueryError::UnknownDimension { .. } | QueryError::UnknownSegment { .. } | QueryError::WrongKind { .. } => {
                ErrorCode::InvalidDimension
            }
            QueryError::UnknownOperator { .. }
            | QueryError::OperatorNotAllowed { .. }
            | QueryError::NotSearchable { .. }
            | QueryError::ValueDoesNotFit { .. }
            | QueryError::ValueCount { .. }
            | QueryError::ReversedRange { .. }
            | QueryError::ShiftLeavesCalendar { .. } => ErrorCode::InvalidFilter,
            QueryError::NoJoinPath { .. } | QueryError::NoCommonCube { .. } => ErrorCode::NoJoinPath,
            QueryError::ClosedCube { .. } | QueryError::Masked { .. } | QueryError::Covered { .. } => {
                ErrorCode::Forbidden
            }
            _ => ErrorCode::InvalidQuery,
        }
    }
}
