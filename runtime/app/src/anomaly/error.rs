//! The reasons why an anomaly run has no scores.

use std::sync::Arc;

use terrane_compiler::model::DimensionType;
use terrane_compiler::query::QueryError;

use super::series::Unreadable;
use crate::domain::SeriesKey;
use crate::ports::calls::ComponentFault;
use crate::ports::detectors::DetectorError;
use crate::query::QueryRunError;

/// The reason why a run has no scores.
#[derive(Debug, thiserror::Error)]
pub enum AnomalyError {
    #[error(transparent)]
    Run(#[from] QueryRunError),
    #[error(transparent)]
    Detector(#[from] DetectorError),
    #[error("{fault}")]
    Fault {
        fault: ComponentFault,
        /// The series of the failed call. Detector calls of one run share the limits of time and fuel.
        series: Vec<SeriesKey>,
    },
    #[error("cube `{cube}` has no primary time dimension")]
    NoTimeDimension { cube: Arc<str> },
    #[error("metric `{metric}` has no time axis: {}", without_time(cubes))]
    NoTimeAxis {
        metric: Arc<str>,
        /// The cubes without a primary time dimension that the caller may see.
        cubes: Vec<Arc<str>>,
    },
    #[error("the values of `{value}` are of type {}, and detectors need numbers", ty.as_str())]
    NotNumbers { value: Arc<str>, ty: DimensionType },
    #[error("`{text}` is not a date or timestamp like 2024-01-31 or 2024-01-31T15:00:00")]
    Moment { text: Arc<str> },
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    #[error("the sensitivity is {sensitivity}, and must be greater than 0")]
    Sensitivity { sensitivity: f64 },
    #[error("the training size is {found}, and must be from 1 to {limit}")]
    TrainingSize { found: u32, limit: u32 },
    #[error("a policy limits this caller to {rows} rows, and the points with their history need more")]
    FewerRows { rows: u64 },
    #[error("the series have more than {limit} points with their history")]
    TooManyPoints { limit: u64 },
    #[error("the range ends before it starts: {from} to {to}")]
    ReversedRange { from: Arc<str>, to: Arc<str> },
    #[error("the data has no step after the history ({training_size} steps)")]
    NothingToEvaluate { training_size: u32 },
}

impl From<QueryError> for AnomalyError {
    fn from(error: QueryError) -> Self {
        AnomalyError::Run(error.into())
    }
}

fn without_time(cubes: &[Arc<str>]) -> String {
    match cubes {
        [] => "not all of its measures have a primary time dimension".to_owned(),
        [cube] => format!("cube `{cube}` has no primary time dimension"),
        cubes => format!("the cubes {} have no primary time dimension", cubes.join(", ")),
    }
}
