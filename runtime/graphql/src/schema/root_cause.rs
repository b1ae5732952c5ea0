//! Root causes of detections.
//!
//! In: the explanation of the use case. Out: the fields that REST sends, under names in GraphQL's convention.

use async_graphql::{Context, SimpleObject};
use terrane_wire::anomaly as wire;

use super::json::Json;
use super::monitor::{Detection, refused, service, values};
use super::request::state;
use crate::failure::Failure;

/// The parts of a measure that explain a detection.
#[derive(SimpleObject)]
pub(crate) struct RootCause {
    detection: Detection,
    /// The summary, in one sentence.
    summary: String,
    expected: f64,
    actual: f64,
    /// The difference of `actual` and `expected`.
    gap: f64,
    /// `slices`, `broad_change` or `data`.
    kind: String,
    /// False if the measure does not add up: shares weigh each slice by its rows.
    exact: bool,
    data_causes: Vec<DataCause>,
    /// The smallest set of slices that explains at least four fifths of the gap.
    slices: Vec<RootCauseSlice>,
    /// Slices of the same dimensions that moved the other way.
    moved_against: Vec<RootCauseSlice>,
    /// The share of the gap that the listed slices do not explain.
    rest_share: f64,
    /// The dimensions that were looked at.
    looked_at: Vec<String>,
    left_out: Vec<LeftOutDimension>,
    warnings: Vec<String>,
}

/// A cause in the data, not in what they measure.
#[derive(SimpleObject)]
pub(crate) struct DataCause {
    /// `no_rows` or `few_rows`.
    kind: String,
    /// The rows of the step.
    rows: f64,
    /// The mean number of rows of a step of the history; null if it is unknown.
    usual_rows: Option<f64>,
}

/// A part of the measure.
#[derive(SimpleObject)]
pub(crate) struct RootCauseSlice {
    /// Values by dimension; null is a missing value.
    filters: Json,
    /// The expected value; for a measure that does not add up, the value of the history. Null if there is none.
    before: Option<f64>,
    /// The value in the step. Null if there is none.
    after: Option<f64>,
    /// The direction in which the slice moved the measure: `up` or `down`.
    direction: String,
    /// The share of the gap; 1 is all of it.
    share: f64,
    /// The share of the expected value, or of the usual rows of a measure that does not add up.
    support: f64,
    /// The query of `after`, for `POST /api/v1/query`.
    query: Json,
}

/// A dimension that was not looked at.
#[derive(SimpleObject)]
pub(crate) struct LeftOutDimension {
    dimension: String,
    reason: String,
}

/// Explains a detection by the slices of the measure that moved, with the rights of the caller. Runs queries in the
/// warehouse.
///
/// # Errors
/// Monitors are switched off, the detection does not exist for the caller, or a query failed.
pub(crate) async fn explain(context: &Context<'_>, detection_id: &str) -> Result<RootCause, Failure> {
    let state = state(context);
    let parts = &state.parts;
    state.count_items(0)?;
    let (seen, cause) = service(parts)?
        .root_cause(&parts.context.request, detection_id)
        .await
        .map_err(|error| refused(error, parts))?;
    let cause = RootCause::from(wire::RootCause::new(&seen, &cause));
    state.count(context, 1, &|list| cause.items(list))?;
    Ok(cause)
}

impl RootCause {
    fn items(&self, list: &str) -> Option<usize> {
        match list {
            "dataCauses" => Some(self.data_causes.len()),
            "slices" => Some(self.slices.len()),
            "movedAgainst" => Some(self.moved_against.len()),
            "lookedAt" => Some(self.looked_at.len()),
            "leftOut" => Some(self.left_out.len()),
            "warnings" => Some(self.warnings.len()),
            _ => None,
        }
    }
}

impl From<wire::RootCause<'_>> for RootCause {
    fn from(cause: wire::RootCause<'_>) -> Self {
        let left_out = |left: wire::LeftOut<'_>| LeftOutDimension {
            dimension: left.dimension.to_owned(),
            reason: left.reason.to_owned(),
        };
        RootCause {
            detection: cause.detection.into(),
            summary: cause.summary,
            expected: cause.expected,
            actual: cause.actual,
            gap: cause.gap,
            kind: cause.kind.to_owned(),
            exact: cause.exact,
            data_causes: cause.data_causes.into_iter().map(DataCause::from).collect(),
            slices: cause.slices.into_iter().map(RootCauseSlice::from).collect(),
            moved_against: cause.moved_against.into_iter().map(RootCauseSlice::from).collect(),
            rest_share: cause.rest_share,
            looked_at: cause.looked_at.into_iter().map(str::to_owned).collect(),
            left_out: cause.left_out.into_iter().map(left_out).collect(),
            warnings: cause.warnings.into_iter().map(str::to_owned).collect(),
        }
    }
}

impl From<wire::DataCauseAnswer> for DataCause {
    fn from(cause: wire::DataCauseAnswer) -> Self {
        DataCause { kind: cause.kind.to_owned(), rows: cause.rows, usual_rows: cause.usual_rows }
    }
}

impl From<wire::SliceAnswer<'_>> for RootCauseSlice {
    fn from(slice: wire::SliceAnswer<'_>) -> Self {
        RootCauseSlice {
            filters: values(&slice.filters),
            before: slice.before,
            after: slice.after,
            direction: slice.direction.to_owned(),
            share: slice.share,
            support: slice.support,
            query: Json::text(slice.query.to_string()),
        }
    }
}
