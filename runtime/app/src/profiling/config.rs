//! The caller's settings of a profile.
//!
//! Out: [`ProfileConfig`] and its defaults. Not here: the parser of the JSON object (wire).

use std::sync::Arc;

use terrane_compiler::column_statistics::SamplingStrategy;

/// The contents of a profile besides counts.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileConfig {
    /// The number of bins of a histogram; `None` to omit histograms.
    pub histogram_bins: Option<u32>,
    /// The number of most frequent values of a dimension; `None` to omit them.
    pub top_values: Option<u32>,
    /// The percentiles from 0 to 100, ascending; empty to omit them.
    pub percentiles: Vec<f64>,
    pub sample: SampleRequest,
    pub detects_insights: bool,
    /// The sensitivity from 0 to 1. A higher value also reports weaker insights.
    pub insight_sensitivity: f64,
    /// The JSON object that the checks receive.
    pub json: Arc<str>,
}

/// The sample of rows to profile. By default, all rows are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SampleRequest {
    /// The number of rows; 0 for all.
    pub size: u64,
    pub strategy: SamplingStrategy,
    /// True if the caller named a size or a strategy. If no sample can be taken, a warning reports the reason.
    pub is_explicit: bool,
}

impl Default for ProfileConfig {
    fn default() -> Self {
        ProfileConfig {
            histogram_bins: Some(20),
            top_values: Some(10),
            percentiles: vec![25.0, 50.0, 75.0, 90.0, 95.0, 99.0],
            sample: SampleRequest::default(),
            detects_insights: true,
            insight_sensitivity: 0.8,
            json: "{}".into(),
        }
    }
}
