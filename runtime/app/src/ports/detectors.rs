//! The port to detectors, which find anomalous points of a series.
//!
//! In: series as columns. Out: one score per point. The output is validated: it has one score for each point, scores
//! are between 0 and 1, and no value is infinite. Not here: the source of series (`anomaly`), WebAssembly.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;

use super::calls::{CallFacts, ComponentFault};

/// The detectors of this server.
#[async_trait]
pub trait Detectors: Send + Sync {
    /// Returns every kind, sorted by name, and the components that are unavailable because of a fault.
    async fn kinds(&self) -> DetectorList;

    /// Trains one model per series, for kinds that have models.
    ///
    /// # Errors
    /// [`DetectorError`]
    async fn train(
        &self,
        call: &CallFacts,
        kind: &str,
        history: Arc<SeriesBatch>,
        params: &DetectorParams,
    ) -> Result<Vec<Vec<u8>>, DetectorError>;

    /// Scores `points`. Series `i` of `points` continues series `i` of `history`. `models` has one entry per series, or
    /// is empty.
    ///
    /// # Errors
    /// [`DetectorError`]
    async fn detect(
        &self,
        call: &CallFacts,
        kind: &str,
        models: Vec<Vec<u8>>,
        history: Arc<SeriesBatch>,
        points: Arc<SeriesBatch>,
        params: &DetectorParams,
    ) -> Result<Detection, DetectorError>;
}

/// The adapter of a process without detectors.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoDetectors;

impl NoDetectors {
    fn unknown(kind: &str) -> DetectorError {
        DetectorError::Unknown { kind: kind.to_owned(), known: Vec::new(), faults: Vec::new() }
    }
}

#[async_trait]
impl Detectors for NoDetectors {
    async fn kinds(&self) -> DetectorList {
        DetectorList::default()
    }

    async fn train(
        &self,
        _: &CallFacts,
        kind: &str,
        _: Arc<SeriesBatch>,
        _: &DetectorParams,
    ) -> Result<Vec<Vec<u8>>, DetectorError> {
        Err(NoDetectors::unknown(kind))
    }

    async fn detect(
        &self,
        _: &CallFacts,
        kind: &str,
        _: Vec<Vec<u8>>,
        _: Arc<SeriesBatch>,
        _: Arc<SeriesBatch>,
        _: &DetectorParams,
    ) -> Result<Detection, DetectorError> {
        Err(NoDetectors::unknown(kind))
    }
}

/// The available kinds of detectors, and the faults of components that failed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DetectorList {
    pub kinds: Vec<DetectorKind>,
    pub faults: Vec<ComponentFault>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct DetectorKind {
    /// The kind, such as `z_score`. It is unique among all components.
    pub kind: Arc<str>,
    pub display_name: Arc<str>,
    pub default_sensitivity: f64,
    /// The smallest number of values in the history of a series. Series with fewer values are not evaluated.
    pub min_points: u32,
    pub has_model: bool,
    /// The JSON Schema of the detector's further settings; empty if it has none.
    pub settings_schema_json: Arc<str>,
    pub component: Arc<str>,
    pub version: Arc<str>,
}

/// A batch of series, stored as columns. Series `i` has the points from `offsets[i]` up to `offsets[i + 1]`.
#[derive(Debug, Clone, PartialEq)]
pub struct SeriesBatch {
    /// The offsets, one more than the number of series. They start with 0, never decrease, and end with the number of
    /// points.
    pub offsets: Vec<u32>,
    /// The start of each point's bucket, in milliseconds since 1970-01-01T00:00:00Z.
    pub timestamps_ms: Vec<i64>,
    /// One value for each point. NaN stands for a missing value; no value is infinite.
    pub values: Vec<f64>,
    /// The length of a step in milliseconds; `None` for calendar steps, whose lengths differ.
    pub step_ms: Option<u64>,
}

impl SeriesBatch {
    /// Creates a batch without series.
    pub fn new(step_ms: Option<u64>) -> SeriesBatch {
        SeriesBatch { offsets: vec![0], timestamps_ms: Vec::new(), values: Vec::new(), step_ms }
    }

    /// Adds a series.
    pub fn push(&mut self, points: impl IntoIterator<Item = (i64, f64)>) {
        for (timestamp, value) in points {
            self.timestamps_ms.push(timestamp);
            self.values.push(value);
        }
        self.offsets.push(u32::try_from(self.values.len()).unwrap_or(u32::MAX));
    }

    /// Returns the number of series.
    pub fn count(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }
}

/// The settings for scoring points.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DetectorParams {
    /// The sensitivity, greater than 0; `None` for the detector's default.
    pub sensitivity: Option<f64>,
    pub training_size: u32,
    /// The number of points in one season, at least 2; `None` without seasons.
    pub seasonality: Option<u32>,
    /// The other settings, as JSON values by name.
    pub extra: Vec<(String, String)>,
}

/// The result of scoring. All lists have one entry per point; a missing value is NaN.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Detection {
    /// The scores from 0 to 1.
    pub scores: Vec<f64>,
    pub raw: Vec<f64>,
    pub expected: Vec<f64>,
    pub lower_bound: Vec<f64>,
    pub upper_bound: Vec<f64>,
    pub anomalous: Vec<bool>,
}

/// The reason why a detector returned no scores.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DetectorError {
    #[error("unknown detector `{kind}`")]
    Unknown { kind: String, known: Vec<Arc<str>>, faults: Vec<ComponentFault> },
    #[error("a series has {points} points, but at most {limit} can be evaluated at once")]
    TooLong { points: usize, limit: usize },
    #[error("{fault}")]
    Fault {
        fault: ComponentFault,
        /// The series of the failed call, by their indexes in the batches; empty if the fault belongs to none. If
        /// the fault is an exceeded limit, these series are not necessarily the cause, because earlier calls share it.
        series: Range<usize>,
    },
}
