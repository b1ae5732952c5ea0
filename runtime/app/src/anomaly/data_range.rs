//! The range of time in which a measure has rows.
//!
//! In: a measure and its time dimension. Out: the queries for its first and last step, and the steps of their results.
//! Not here: running the queries (`anomaly`).

use std::sync::Arc;

use arrow::array::RecordBatch;
use terrane_compiler::query::{Filter, MemberRef, Operator, OrderBy, QueryError, SemanticQuery};
use terrane_compiler::types::Granularity;

use super::series::{Unreadable, of_batches};

/// The first and the last step with rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataRange {
    /// The start of the step in the zone of the query, in milliseconds since 1970-01-01T00:00:00.
    pub first_ms: i64,
    pub last_ms: i64,
}

/// An end of the range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    First,
    Last,
}

/// Returns the query for the step at one end of the data.
pub(super) fn query(
    measure: &str,
    time: &str,
    granularity: Granularity,
    end: End,
) -> Result<SemanticQuery, QueryError> {
    let step: MemberRef = format!("{time}.{granularity}").parse()?;
    let has_time = Filter::Condition { member: time.parse()?, operator: Operator::Set, values: Vec::new() };
    Ok(SemanticQuery {
        values: vec![measure.parse()?],
        dimensions: vec![step.clone()],
        filters: vec![has_time],
        order: vec![OrderBy { member: step, descending: end == End::Last }],
        limit: Some(1),
        skip_total: true,
        timezone: granularity.is_sub_day().then(|| Arc::from("UTC")),
        ..SemanticQuery::default()
    })
}

/// Returns the step of a result, in milliseconds; `None` if the result has no rows.
pub(super) fn step(batches: &[RecordBatch]) -> Result<Option<i64>, Unreadable> {
    let series = of_batches(batches, 0)?;
    Ok(series.first().and_then(|series| series.points.first()).map(|(at, _)| *at))
}
