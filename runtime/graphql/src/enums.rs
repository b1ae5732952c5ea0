//! The enums of the schema for the model, queries, lineage and search.

use async_graphql::Enum;
use terrane_app::ports::governance_records;
use terrane_app::search::HitType;

use crate::failure::{Failure, unknown_word};

/// The type of a dimension's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
pub enum DimensionType {
    String,
    Number,
    Time,
    Boolean,
    Geo,
}

/// The aggregation of a measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
pub enum MeasureType {
    Count,
    CountDistinct,
    CountDistinctApprox,
    Sum,
    Avg,
    Min,
    Max,
    Number,
    RunningTotal,
    Boolean,
}

/// The unit by which times are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
pub enum TimeGranularity {
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
}

/// The comparison of a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
pub enum FilterOperator {
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
    InDateRange,
    NotInDateRange,
    BeforeDate,
    AfterDate,
    Set,
    NotSet,
}

/// The direction of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
pub enum OrderDirection {
    Asc,
    Desc,
}

/// The direction in which lineage is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
pub enum LineageDirection {
    Upstream,
    Downstream,
}

/// The kind of object that a search returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
#[graphql(remote = "HitType")]
pub enum SearchType {
    Cube,
    Measure,
    Dimension,
    Metric,
    /// A value of a dimension with `meta.searchable`.
    Value,
}

/// The state of certification of a cube, member or metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
#[graphql(remote = "governance_records::CertificationStatus")]
pub enum CertificationStatus {
    Draft,
    PendingReview,
    Certified,
    Deprecated,
    Archived,
}

impl CertificationStatus {
    /// Returns the status with a name of REST.
    ///
    /// # Errors
    /// No status has this name.
    pub(crate) fn named(word: &str) -> Result<Self, Failure> {
        let found = governance_records::CertificationStatus::named(word);
        found.map(Into::into).ok_or_else(|| unknown_word("certification status", word))
    }
}
