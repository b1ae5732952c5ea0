//! Root causes of detections.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;
use terrane_app::monitors::{DataCause, Moved, RootCause as Cause, RootSlice, SeenDetection};

use super::monitors::Detection;
use crate::query::to_wire;
use crate::schema;

/// The parts of a measure that explain a detection.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RootCause<'a> {
    pub detection: Detection<'a>,
    /// The summary, in one sentence.
    pub summary: String,
    pub expected: f64,
    pub actual: f64,
    /// The difference of `actual` and `expected`.
    pub gap: f64,
    /// `slices`, `broad_change` or `data`.
    pub kind: &'static str,
    /// False if the measure does not add up: shares weigh each slice by its rows.
    pub exact: bool,
    pub data_causes: Vec<DataCauseAnswer>,
    /// The smallest set of slices that explains at least four fifths of the gap.
    pub slices: Vec<SliceAnswer<'a>>,
    /// Slices of the same dimensions that moved the other way.
    pub moved_against: Vec<SliceAnswer<'a>>,
    /// The share of the gap that the listed slices do not explain.
    pub rest_share: f64,
    /// The dimensions that were looked at.
    pub looked_at: Vec<&'a str>,
    pub left_out: Vec<LeftOut<'a>>,
    pub warnings: Vec<&'a str>,
}

/// A cause in the data, not in what they measure.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "DataCause")]
pub struct DataCauseAnswer {
    /// `no_rows` or `few_rows`.
    pub kind: &'static str,
    /// The rows of the step.
    pub rows: f64,
    /// The mean number of rows of a step of the history; null if it is unknown.
    pub usual_rows: Option<f64>,
}

/// A part of the measure.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "RootCauseSlice")]
pub struct SliceAnswer<'a> {
    /// Values by dimension; null is a missing value.
    pub filters: BTreeMap<&'a str, Option<&'a str>>,
    /// The expected value; for a measure that does not add up, the value of the history. Null if there is none.
    pub before: Option<f64>,
    /// The value in the step. Null if there is none.
    pub after: Option<f64>,
    /// The direction in which the slice moved the measure: `up` or `down`.
    pub direction: &'static str,
    /// The share of the gap; 1 is all of it.
    pub share: f64,
    /// The share of the expected value, or of the usual rows of a measure that does not add up.
    pub support: f64,
    /// The query of `after`, for `POST /api/v1/query`.
    #[schemars(schema_with = "schema::any")]
    pub query: Json,
}

/// A dimension that was not looked at.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LeftOut<'a> {
    pub dimension: &'a str,
    pub reason: &'a str,
}

impl<'a> RootCause<'a> {
    pub fn new(seen: &'a SeenDetection, cause: &'a Cause) -> Self {
        let detection = Detection::from(seen);
        let kind = match (&cause.data_causes[..], &cause.slices[..]) {
            ([], []) => "broad_change",
            // The values of slices do not add up to this measure, so causes in the data have priority.
            ([_, ..], _) if !cause.is_exact => "data",
            (_, []) => "data",
            _ => "slices",
        };
        RootCause {
            summary: summary(&seen.monitor.definition.value.member(), &detection, cause, kind),
            detection,
            expected: cause.expected,
            actual: cause.actual,
            gap: cause.actual - cause.expected,
            kind,
            exact: cause.is_exact,
            data_causes: cause.data_causes.iter().map(data_cause).collect(),
            slices: cause.slices.iter().map(SliceAnswer::from).collect(),
            moved_against: cause.against.iter().map(SliceAnswer::from).collect(),
            rest_share: cause.rest,
            looked_at: cause.looked_at.iter().map(|name| &**name).collect(),
            left_out: cause.left_out.iter().map(|(dimension, reason)| LeftOut { dimension, reason }).collect(),
            warnings: cause.warnings.iter().map(String::as_str).collect(),
        }
    }
}

fn data_cause(cause: &DataCause) -> DataCauseAnswer {
    match *cause {
        DataCause::NoRows => DataCauseAnswer { kind: "no_rows", rows: 0.0, usual_rows: None },
        DataCause::FewRows { rows, usual } => DataCauseAnswer { kind: "few_rows", rows, usual_rows: Some(usual) },
    }
}

impl<'a> From<&'a RootSlice> for SliceAnswer<'a> {
    fn from(slice: &'a RootSlice) -> Self {
        SliceAnswer {
            filters: slice.filters.iter().map(|(name, value)| (&**name, value.as_deref())).collect(),
            before: slice.before,
            after: slice.after,
            direction: if slice.moved == Moved::Up { "up" } else { "down" },
            share: slice.share,
            support: slice.support,
            query: serde_json::from_str(&to_wire(&slice.query)).unwrap_or_default(),
        }
    }
}

fn summary(value: &str, detection: &Detection<'_>, cause: &Cause, kind: &str) -> String {
    let gap = cause.actual - cause.expected;
    let direction = if gap < 0.0 { "below" } else { "above" };
    let distance = match cause.expected {
        0.0 => format!("{} {direction}", rounded(gap.abs())),
        expected => format!("{:.0} % {direction}", 100.0 * (gap / expected).abs()),
    };
    let time = &detection.time;
    let start = format!(
        "`{value}` was {} at {time}, {distance} the expected {}",
        rounded(cause.actual),
        rounded(cause.expected)
    );
    match kind {
        "slices" => {
            let named = cause.slices.iter().map(|slice| {
                let parts = slice
                    .filters
                    .iter()
                    .map(|(name, value)| format!("`{name}` = {}", value.as_deref().unwrap_or("null")));
                parts.collect::<Vec<_>>().join(" and ")
            });
            let share: f64 = cause.slices.iter().map(|slice| slice.share).sum();
            format!(
                "{start}; {:.0} % of the gap is explained by {}",
                100.0 * share,
                named.collect::<Vec<_>>().join(", ")
            )
        }
        "data" => format!("{start}; rows are missing"),
        _ => format!("{start}; the change is broad: no small part of the measure explains it"),
    }
}

fn rounded(number: f64) -> String {
    let digits = if number.abs() >= 100.0 || number.fract() == 0.0 { 0 } else { 2 };
    format!("{number:.digits$}")
}
