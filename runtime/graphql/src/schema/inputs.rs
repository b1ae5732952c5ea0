//! The inputs of queries, and their conversion to a query.
//!
//! In: the arguments of a field. Out: a [`SemanticQuery`], or an error that names the argument. As in REST, the values
//! of filters are strings, which the compiler parses by the type of their member.

use async_graphql::{InputObject, OneofObject};
use terrane_compiler::query::{
    CompareRange, DateRange, Filter, MAX_FILTER_DEPTH, MemberRef, OrderBy, QueryError, SemanticQuery, TimeDimension,
    TimeRange,
};
use terrane_compiler::types::{Granularity, Operator, Value};
use terrane_wire::query::distinct;
use terrane_wire::{Code, ErrorBody};

use crate::enums::{FilterOperator, OrderDirection, TimeGranularity};
use crate::failure::Failure;

/// A condition on a member.
#[derive(Debug, Clone, InputObject)]
pub(crate) struct FilterInput {
    /// `cube.member`
    member: String,
    operator: FilterOperator,
    /// Texts, also for numbers and dates. `SET` and `NOT_SET` take none, ranges of dates two, or one phrase such as
    /// `last 7 days`.
    values: Option<Vec<String>>,
}

/// A condition, or a tree of conditions, at most 32 deep.
#[derive(Debug, Clone, OneofObject)]
pub(crate) enum WhereInput {
    /// A condition on a member.
    Condition(FilterInput),
    /// All of them hold.
    And(Vec<WhereInput>),
    /// One of them holds.
    Or(Vec<WhereInput>),
    /// The condition does not hold.
    Not(Box<WhereInput>),
}

/// A time to group by, to filter by, or both.
#[derive(Debug, Clone, InputObject)]
pub(crate) struct TimeDimensionInput {
    /// `cube.time_dimension`
    dimension: String,
    granularity: Option<TimeGranularity>,
    /// A start and an end, both inclusive, or one phrase such as `last 7 days`.
    date_range: Option<Vec<String>>,
}

/// A time range for all measures.
#[derive(Debug, Clone, InputObject)]
pub(crate) struct TimeRangeInput {
    /// The time dimension that is filtered. If it is absent, each measure is filtered by the primary time dimension of
    /// its cube.
    dimension: Option<String>,
    start: Option<String>,
    end: Option<String>,
    /// Words instead of `start` and `end`, such as `last 7 days` or `2024-Q3`.
    words: Option<String>,
    granularity: Option<TimeGranularity>,
}

/// The range that a range of time is compared with.
#[derive(Debug, Clone, OneofObject)]
pub(crate) enum CompareRangeInput {
    /// The same range, moved back: `1 year`, `4 weeks`.
    Shift(String),
    /// A start and an end, both inclusive, or one phrase such as `2023`.
    DateRange(Vec<String>),
}

/// A sort key.
#[derive(Debug, Clone, InputObject)]
pub(crate) struct OrderInput {
    /// A member of the query.
    member: String,
    #[graphql(default_with = "Some(OrderDirection::Asc)")]
    direction: Option<OrderDirection>,
}

/// The arguments of a query.
#[derive(Debug, Clone, Default)]
pub(crate) struct Question {
    pub(crate) cube: Option<String>,
    pub(crate) metrics: Option<Vec<String>>,
    pub(crate) measures: Option<Vec<String>>,
    pub(crate) dimensions: Option<Vec<String>>,
    pub(crate) filters: Option<Vec<FilterInput>>,
    pub(crate) where_: Option<WhereInput>,
    pub(crate) segments: Option<Vec<String>>,
    pub(crate) time_dimensions: Option<Vec<TimeDimensionInput>>,
    pub(crate) time_range: Option<TimeRangeInput>,
    pub(crate) order: Option<Vec<OrderInput>>,
    pub(crate) limit: Option<i64>,
    pub(crate) offset: Option<i64>,
    pub(crate) timezone: Option<String>,
    pub(crate) total: Option<bool>,
    pub(crate) totals: Option<bool>,
    pub(crate) compare_range: Option<CompareRangeInput>,
    pub(crate) fill_gaps: Option<bool>,
}

impl Question {
    /// Converts the arguments to a query.
    ///
    /// # Errors
    /// An argument is invalid. The error names it.
    pub(crate) fn into_query(self) -> Result<SemanticQuery, Failure> {
        let mut values = members("metrics", self.metrics)?;
        values.extend(members("measures", self.measures)?);
        let filters = self.filters.unwrap_or_default().into_iter().enumerate();
        let mut filters: Vec<Filter> =
            filters.map(|(index, filter)| filter.read(&format!("filters[{index}]"))).collect::<Result<_, _>>()?;
        if let Some(tree) = self.where_ {
            filters.push(tree.read("where", 1)?);
        }
        let times = self.time_dimensions.unwrap_or_default().into_iter().enumerate();
        let times = times.map(|(index, time)| time.read(&format!("timeDimensions[{index}]")));
        let order = self.order.unwrap_or_default().into_iter().enumerate();
        let order = order.map(|(index, order)| {
            let member = member(&format!("order[{index}].member"), &order.member)?;
            Ok(OrderBy { member, descending: order.direction == Some(OrderDirection::Desc) })
        });
        let query = SemanticQuery {
            cube: self.cube.map(Into::into),
            values: distinct(values),
            computed: Vec::new(),
            dimensions: distinct(members("dimensions", self.dimensions)?),
            time_dimensions: times.collect::<Result<_, Failure>>()?,
            time_range: self.time_range.map(TimeRangeInput::read).transpose()?,
            filters,
            segments: distinct(members("segments", self.segments)?),
            order: order.collect::<Result<_, Failure>>()?,
            limit: count("limit", self.limit)?,
            offset: count("offset", self.offset)?.unwrap_or(0),
            timezone: self.timezone.map(Into::into),
            skip_total: self.total == Some(false),
            totals: self.totals == Some(true),
            compare: self.compare_range.map(CompareRangeInput::read).transpose()?,
            fill_gaps: self.fill_gaps == Some(true),
            ..SemanticQuery::default()
        };
        Ok(query)
    }
}

impl FilterInput {
    fn read(self, place: &str) -> Result<Filter, Failure> {
        let values = self.values.unwrap_or_default().into_iter().map(|text| Value::Text(text.into())).collect();
        Ok(Filter::Condition {
            member: member(&format!("{place}.member"), &self.member)?,
            operator: self.operator.into(),
            values,
        })
    }
}

impl WhereInput {
    fn read(self, place: &str, depth: usize) -> Result<Filter, Failure> {
        if depth > MAX_FILTER_DEPTH {
            return Err(invalid(QueryError::TooDeep { limit: MAX_FILTER_DEPTH }, place));
        }
        let all = |word: &str, trees: Vec<WhereInput>| {
            let trees = trees.into_iter().enumerate();
            let read = trees.map(|(index, tree)| tree.read(&format!("{place}.{word}[{index}]"), depth + 1));
            read.collect::<Result<Vec<_>, Failure>>()
        };
        Ok(match self {
            WhereInput::Condition(filter) => filter.read(&format!("{place}.condition"))?,
            WhereInput::And(trees) => Filter::And(all("and", trees)?),
            WhereInput::Or(trees) => Filter::Or(all("or", trees)?),
            WhereInput::Not(tree) => Filter::Not(Box::new(tree.read(&format!("{place}.not"), depth + 1)?)),
        })
    }
}

impl TimeDimensionInput {
    fn read(self, place: &str) -> Result<TimeDimension, Failure> {
        Ok(TimeDimension {
            member: member(&format!("{place}.dimension"), &self.dimension)?,
            granularity: self.granularity.map(Into::into),
            range: self.date_range.map(|range| dates(range, &format!("{place}.dateRange"))).transpose()?,
        })
    }
}

impl TimeRangeInput {
    fn read(self) -> Result<TimeRange, Failure> {
        let range = match (self.words, self.start, self.end) {
            (Some(words), None, None) if self.dimension.is_none() && self.granularity.is_none() => {
                DateRange::Words(words.into())
            }
            (None, start, end) if start.is_some() || end.is_some() => {
                DateRange::Between(start.map(Into::into), end.map(Into::into))
            }
            _ => return Err(malformed("expected `words` alone, or `start` and `end`, at `timeRange`", "timeRange")),
        };
        Ok(TimeRange {
            member: self.dimension.map(|name| member("timeRange.dimension", &name)).transpose()?,
            granularity: self.granularity.map(Into::into),
            range,
        })
    }
}

impl CompareRangeInput {
    fn read(self) -> Result<CompareRange, Failure> {
        Ok(match self {
            CompareRangeInput::Shift(shift) => CompareRange::Shift(shift.into()),
            CompareRangeInput::DateRange(range) => CompareRange::Range(dates(range, "compareRange.dateRange")?),
        })
    }
}

fn dates(range: Vec<String>, place: &str) -> Result<DateRange, Failure> {
    match <[String; 2]>::try_from(range) {
        Ok([start, end]) => Ok(DateRange::Between(Some(start.into()), Some(end.into()))),
        Err(range) => match range.as_slice() {
            [words] => Ok(DateRange::Words(words.as_str().into())),
            _ => Err(malformed(&format!("expected a start and an end, or one phrase, at `{place}`"), place)),
        },
    }
}

fn members(argument: &str, names: Option<Vec<String>>) -> Result<Vec<MemberRef>, Failure> {
    let names = names.unwrap_or_default().into_iter().enumerate();
    names.map(|(index, name)| member(&format!("{argument}[{index}]"), &name)).collect()
}

fn member(place: &str, name: &str) -> Result<MemberRef, Failure> {
    name.parse().map_err(|error| invalid(error, place))
}

fn invalid(error: QueryError, place: &str) -> Failure {
    Failure::from(ErrorBody::from(error).detail("field", place))
}

pub(super) fn malformed(message: &str, place: &str) -> Failure {
    Failure::from(ErrorBody::new(Code::InvalidQuery, message).detail("field", place))
}

/// Checks the argument `limit` of a list.
pub(super) fn checked_limit(limit: Option<i64>, default: u32, max: u32) -> Result<u32, Failure> {
    let Some(limit) = limit else { return Ok(default) };
    let within = u32::try_from(limit).ok().filter(|limit| (1..=max).contains(limit));
    within.ok_or_else(|| malformed(&format!("expected an integer from 1 to {max} at `limit`"), "limit"))
}

/// Checks an argument that counts something. Its type accepts negative integers, so that the error names the argument.
pub(super) fn count(argument: &str, value: Option<i64>) -> Result<Option<u64>, Failure> {
    let refused = |_| malformed(&format!("expected an integer of 0 or more at `{argument}`"), argument);
    value.map(u64::try_from).transpose().map_err(refused)
}

impl From<FilterOperator> for Operator {
    fn from(operator: FilterOperator) -> Self {
        match operator {
            FilterOperator::Equals => Operator::Equals,
            FilterOperator::NotEquals => Operator::NotEquals,
            FilterOperator::Contains => Operator::Contains,
            FilterOperator::NotContains => Operator::NotContains,
            FilterOperator::StartsWith => Operator::StartsWith,
            FilterOperator::EndsWith => Operator::EndsWith,
            FilterOperator::Gt => Operator::Gt,
            FilterOperator::Gte => Operator::Gte,
            FilterOperator::Lt => Operator::Lt,
            FilterOperator::Lte => Operator::Lte,
            FilterOperator::InDateRange => Operator::InDateRange,
            FilterOperator::NotInDateRange => Operator::NotInDateRange,
            FilterOperator::BeforeDate => Operator::BeforeDate,
            FilterOperator::AfterDate => Operator::AfterDate,
            FilterOperator::Set => Operator::Set,
            FilterOperator::NotSet => Operator::NotSet,
        }
    }
}

impl From<TimeGranularity> for Granularity {
    fn from(granularity: TimeGranularity) -> Self {
        match granularity {
            TimeGranularity::Second => Granularity::Second,
            TimeGranularity::Minute => Granularity::Minute,
            TimeGranularity::Hour => Granularity::Hour,
            TimeGranularity::Day => Granularity::Day,
            TimeGranularity::Week => Granularity::Week,
            TimeGranularity::Month => Granularity::Month,
            TimeGranularity::Quarter => Granularity::Quarter,
            TimeGranularity::Year => Granularity::Year,
        }
    }
}

impl From<Granularity> for TimeGranularity {
    fn from(granularity: Granularity) -> Self {
        match granularity {
            Granularity::Second => TimeGranularity::Second,
            Granularity::Minute => TimeGranularity::Minute,
            Granularity::Hour => TimeGranularity::Hour,
            Granularity::Day => TimeGranularity::Day,
            Granularity::Week => TimeGranularity::Week,
            Granularity::Month => TimeGranularity::Month,
            Granularity::Quarter => TimeGranularity::Quarter,
            Granularity::Year => TimeGranularity::Year,
        }
    }
}
