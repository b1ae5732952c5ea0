//! The result of the oracle for a query: rows, possible errors, or that the semantics leave the result open.

use std::collections::BTreeSet;

use jiff::Timestamp;
use terrane_compiler::query::ErrorCode;

use crate::value::Value;

/// The required result.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    Rows(Answer),
    /// An error with one of these codes. The semantics do not define which problem is reported first.
    Refused(BTreeSet<Code>),
    /// The semantics leave the result open, for this reason.
    Open(&'static str),
}

/// The code of an error. It is ordered, so that it can be in a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Code {
    InvalidQuery,
    InvalidMeasure,
    InvalidDimension,
    InvalidFilter,
    NoJoinPath,
    Forbidden,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub keys: Vec<String>,
    pub rows: Vec<Vec<Value>>,
    pub total_rows: usize,
    /// For each column, whether it is exempt from exact comparison.
    pub approximate: Vec<bool>,
    /// The value of each measure over all rows, if the query requests totals.
    pub totals: Option<Vec<Value>>,
}

/// The constructs that a query uses, so that a run can report and exclude them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Construct {
    ToMany,
    /// Steps of time without data: running totals and `fill_gaps`.
    Steps,
    /// Two paths with to-many joins that have the same length.
    ToManyTie,
    /// An axis with so many steps that the limit of added rows is exceeded.
    ManySteps,
    /// A filter on a bucket with a value that has an offset.
    BucketAndInstant,
    /// A filter on a bucket with a value in the last year of the calendar, 9999.
    BucketAndLastDay,
    /// Steps of one time dimension by several granularities.
    TwoGranularities,
    /// `metric_time`.
    MetricTime,
    /// A comparison with another period: `compare_range`.
    Compare,
    /// A running total that includes rows before the range: `from: all`.
    History,
    /// A masked member that is selected.
    Mask,
    /// A rolling window.
    Rolling,
}

impl Construct {
    pub fn as_str(self) -> &'static str {
        match self {
            Construct::ToMany => "to-many hops",
            Construct::Steps => "steps without data",
            Construct::ToManyTie => "tied paths behind to-many hops",
            Construct::ManySteps => "more steps than are allowed",
            Construct::BucketAndInstant => "a bucket compared with an instant",
            Construct::BucketAndLastDay => "a bucket compared with the last day",
            Construct::TwoGranularities => "steps by several granularities",
            Construct::MetricTime => "metric_time",
            Construct::Compare => "compare_range",
            Construct::History => "history before a range",
            Construct::Mask => "a masked member",
            Construct::Rolling => "rolling windows",
        }
    }
}

/// The settings that a query depends on besides the world.
#[derive(Debug, Clone)]
pub struct Settings {
    pub now: Timestamp,
    pub default_limit: u64,
    pub max_limit: u64,
}

#[derive(Debug, Clone)]
pub struct Verdict {
    pub outcome: Outcome,
    pub constructs: BTreeSet<Construct>,
}

impl From<ErrorCode> for Code {
    fn from(code: ErrorCode) -> Code {
        match code {
            ErrorCode::InvalidQuery => Code::InvalidQuery,
            ErrorCode::InvalidMeasure => Code::InvalidMeasure,
            ErrorCode::InvalidDimension => Code::InvalidDimension,
            ErrorCode::InvalidFilter => Code::InvalidFilter,
            ErrorCode::NoJoinPath => Code::NoJoinPath,
            ErrorCode::Forbidden => Code::Forbidden,
        }
    }
}
