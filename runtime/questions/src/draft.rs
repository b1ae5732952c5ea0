//! The result of reading a question.

use std::sync::Arc;

/// A query by the names of members.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Draft {
    /// The measures and metrics.
    pub values: Vec<Arc<str>>,
    pub groups: Vec<DraftGroup>,
    pub filters: Vec<DraftFilter>,
    pub segments: Vec<Arc<str>>,
    pub range: Option<DraftRange>,
    /// The step of time to group by.
    pub granularity: Option<&'static str>,
    pub compare: Option<Comparison>,
    pub order: Option<DraftOrder>,
    pub limit: Option<u64>,
    /// True to compute each value without groups as well, for shares of a total.
    pub totals: bool,
}

/// A dimension to group by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftGroup {
    pub member: Arc<str>,
    pub granularity: Option<&'static str>,
}

/// A condition on a member.
#[derive(Debug, Clone, PartialEq)]
pub struct DraftFilter {
    pub member: Arc<str>,
    /// The name of the operator in queries.
    pub operator: &'static str,
    pub values: Vec<DraftValue>,
}

/// A value of a condition.
#[derive(Debug, Clone, PartialEq)]
pub enum DraftValue {
    Text(Arc<str>),
    Number(f64),
    Boolean(bool),
}

/// A range of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DraftRange {
    /// Words that a query accepts, such as `last 7 days` or `2024-Q3`.
    Words(Arc<str>),
    /// Dates, both inclusive.
    Between(Option<Arc<str>>, Option<Arc<str>>),
}

/// The period that values are compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Comparison {
    /// An interval such as `1 year`.
    Shift(Arc<str>),
    Range(DraftRange),
}

/// The order of the rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftOrder {
    pub member: Arc<str>,
    pub is_descending: bool,
}

/// The units of numbers. Those of time are converted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unit {
    Seconds,
    Minutes,
    Hours,
    Days,
    /// Any other unit by its name, which numbers are compared in as they are.
    Named(Arc<str>),
}

impl Unit {
    /// Returns the length of a unit of time.
    pub(crate) fn seconds(&self) -> Option<f64> {
        match self {
            Unit::Seconds => Some(1.0),
            Unit::Minutes => Some(60.0),
            Unit::Hours => Some(3_600.0),
            Unit::Days => Some(86_400.0),
            Unit::Named(_) => None,
        }
    }

    /// Returns whether numbers with one unit can be compared with numbers of the other one.
    pub(crate) fn fits(&self, other: &Unit) -> bool {
        self == other || (self.seconds().is_some() && other.seconds().is_some())
    }
}

/// A part of the question, and its meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The text as the user wrote it.
    pub text: String,
    pub meaning: String,
    /// The members that were meant, if there are several.
    pub alternatives: Vec<Arc<str>>,
}

/// A question to the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clarification {
    /// The part of the question that is unclear; empty for the whole.
    pub text: String,
    pub message: String,
    /// Names of members, best first.
    pub choices: Vec<Arc<str>>,
}

/// A question that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Interpretation {
    pub draft: Draft,
    pub pieces: Vec<Piece>,
    /// The share of the words that have a sure meaning, 0–1.
    pub confidence: f64,
    /// The clarifications; empty if the draft answers the question.
    pub clarifications: Vec<Clarification>,
    /// Words without a meaning, which may be values of dimensions.
    pub unknown: Vec<String>,
    /// The cube that the question is about.
    pub cube: Option<Arc<str>>,
}
