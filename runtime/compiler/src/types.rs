//! Types that every stage shares: logical types, granularities, bound values, kinds of members.
//!
//! Out: plain data. Not here: dialects, files and wire formats.

mod rolling_window;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

pub use rolling_window::{MAX_WINDOW_UNITS, RollingWindow, WindowLength, WindowLengthError, WindowOffset};

/// A warehouse-independent column type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum LogicalType {
    Text,
    Integer,
    Decimal,
    Float,
    Boolean,
    Date,
    /// Wall clock without a zone.
    Timestamp,
    /// An instant.
    TimestampTz,
    Geo,
    Binary,
    Unknown,
}

impl LogicalType {
    pub const ALL: [LogicalType; 11] = [
        LogicalType::Text,
        LogicalType::Integer,
        LogicalType::Decimal,
        LogicalType::Float,
        LogicalType::Boolean,
        LogicalType::Date,
        LogicalType::Timestamp,
        LogicalType::TimestampTz,
        LogicalType::Geo,
        LogicalType::Binary,
        LogicalType::Unknown,
    ];

    pub fn is_temporal(self) -> bool {
        matches!(self, LogicalType::Date | LogicalType::Timestamp | LogicalType::TimestampTz)
    }
}

/// The time granularities of the interface, finest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Granularity {
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
}

impl Granularity {
    pub const ALL: [Granularity; 8] = [
        Granularity::Second,
        Granularity::Minute,
        Granularity::Hour,
        Granularity::Day,
        Granularity::Week,
        Granularity::Month,
        Granularity::Quarter,
        Granularity::Year,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Granularity::Second => "second",
            Granularity::Minute => "minute",
            Granularity::Hour => "hour",
            Granularity::Day => "day",
            Granularity::Week => "week",
            Granularity::Month => "month",
            Granularity::Quarter => "quarter",
            Granularity::Year => "year",
        }
    }

    /// Returns whether each bucket lies within one bucket of the other granularity.
    pub fn nests_in(self, coarser: Granularity) -> bool {
        self == coarser || (self < coarser && self != Granularity::Week)
    }

    /// Returns whether the granularity is an hour or less. Its buckets are ranges of instants, so that the repeated
    /// hour in autumn has two buckets.
    pub fn is_sub_day(self) -> bool {
        self < Granularity::Day
    }
}

impl fmt::Display for Granularity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Returns whether a time zone is UTC, by any of its names. Times in UTC are printed with `Z` or without an offset.
pub fn is_utc(zone: &jiff::tz::TimeZone) -> bool {
    const NAMES: [&str; 9] =
        ["UTC", "Etc/UTC", "Etc/UCT", "UCT", "Etc/Universal", "Universal", "Etc/Zulu", "Zulu", "Etc/GMT"];
    zone.iana_name().is_none_or(|name| NAMES.contains(&name))
}

/// The error for a word that is not one of the eight granularities.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown granularity `{0}`; expected one of second, minute, hour, day, week, month, quarter, year")]
pub struct UnknownGranularity(pub String);

impl FromStr for Granularity {
    type Err = UnknownGranularity;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Granularity::ALL.into_iter().find(|g| g.as_str() == word).ok_or_else(|| UnknownGranularity(word.to_owned()))
    }
}

/// A value that is sent to the warehouse as a bound parameter. It never becomes SQL text.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Null,
    Boolean(bool),
    Integer(i64),
    Float(f64),
    /// The decimal digits of a number: a sign, digits, at most one point.
    Decimal(Arc<str>),
    Text(Arc<str>),
    /// Days since 1970-01-01.
    Date(i32),
    /// Microseconds since 1970-01-01T00:00:00 of a wall clock, without a time zone.
    Timestamp(i64),
    /// Microseconds since the Unix epoch, as an instant.
    TimestampTz(i64),
}

impl Value {
    pub fn logical_type(&self) -> LogicalType {
        match self {
            Value::Null => LogicalType::Unknown,
            Value::Boolean(_) => LogicalType::Boolean,
            Value::Integer(_) => LogicalType::Integer,
            Value::Float(_) => LogicalType::Float,
            Value::Decimal(_) => LogicalType::Decimal,
            Value::Text(_) => LogicalType::Text,
            Value::Date(_) => LogicalType::Date,
            Value::Timestamp(_) => LogicalType::Timestamp,
            Value::TimestampTz(_) => LogicalType::TimestampTz,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DimensionType {
    String,
    Number,
    Time,
    Boolean,
    Geo,
}

impl DimensionType {
    pub const ALL: [DimensionType; 5] =
        [DimensionType::String, DimensionType::Number, DimensionType::Time, DimensionType::Boolean, DimensionType::Geo];

    /// Returns the name in project files and in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            DimensionType::String => "string",
            DimensionType::Number => "number",
            DimensionType::Time => "time",
            DimensionType::Boolean => "boolean",
            DimensionType::Geo => "geo",
        }
    }
}

/// The meaning of a time dimension's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TimeKind {
    /// An instant, shown in the query's time zone.
    Utc,
    /// A wall clock, never shifted.
    WallClock,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Relationship {
    ManyToOne,
    OneToMany,
    OneToOne,
}

impl Relationship {
    /// Returns whether the join neither loses nor repeats rows.
    pub fn is_to_one(self) -> bool {
        !matches!(self, Relationship::OneToMany)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MetricKind {
    Simple,
    Ratio,
    Derived,
}

/// The filter operators of REST and of the GraphQL enum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operator {
    Equals,
    NotEquals,
    Contains,
    NotContains,
    StartsWith,
    EndsWith,
    Gt,
    Gte,
    Lt,
    Lte,
    Between,
    InList,
    NotInList,
    InDateRange,
    NotInDateRange,
    BeforeDate,
    AfterDate,
    Set,
    NotSet,
    /// [`Operator::Contains`] in upper or lower case, for searches. Requests do not name it.
    ContainsAnyCase,
}

impl Operator {
    /// The operators that requests name.
    pub const ALL: [Operator; 19] = [
        Operator::Equals,
        Operator::NotEquals,
        Operator::Contains,
        Operator::NotContains,
        Operator::StartsWith,
        Operator::EndsWith,
        Operator::Gt,
        Operator::Gte,
        Operator::Lt,
        Operator::Lte,
        Operator::Between,
        Operator::InList,
        Operator::NotInList,
        Operator::InDateRange,
        Operator::NotInDateRange,
        Operator::BeforeDate,
        Operator::AfterDate,
        Operator::Set,
        Operator::NotSet,
    ];

    /// Returns the name of the operator in requests.
    pub fn as_str(self) -> &'static str {
        match self {
            Operator::Equals => "equals",
            Operator::NotEquals => "notEquals",
            Operator::Contains => "contains",
            Operator::NotContains => "notContains",
            Operator::StartsWith => "startsWith",
            Operator::EndsWith => "endsWith",
            Operator::Gt => "gt",
            Operator::Gte => "gte",
            Operator::Lt => "lt",
            Operator::Lte => "lte",
            Operator::Between => "between",
            Operator::InList => "inList",
            Operator::NotInList => "notInList",
            Operator::InDateRange => "inDateRange",
            Operator::NotInDateRange => "notInDateRange",
            Operator::BeforeDate => "beforeDate",
            Operator::AfterDate => "afterDate",
            Operator::Set => "set",
            Operator::NotSet => "notSet",
            Operator::ContainsAnyCase => "containsAnyCase",
        }
    }
}

/// The reserved name for each fact's own primary time.
pub(crate) const METRIC_TIME: &str = "metric_time";
