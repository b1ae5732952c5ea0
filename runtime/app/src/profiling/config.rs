//! The caller's settings of a profile, under the specification's names.
//!
//! In: a JSON object. Out: a [`ProfileConfig`]. `quality_thresholds` are for the checks, which get the whole
//! object. `sample_size` is read and not needed: every row is counted, in the warehouse.

use std::sync::Arc;

use serde_json::Value as Json;

/// What a profile computes beyond counts.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileConfig {
    /// Bins of a number's histogram; `None`: none is computed.
    pub histogram_bins: Option<u32>,
    /// How many of a dimension's most frequent values; `None`: none are looked for.
    pub top_values: Option<u32>,
    /// 0 to 100, ascending; empty: none are computed.
    pub percentiles: Vec<f64>,
    pub detects_insights: bool,
    /// 0 to 1: the higher, the lighter the insights that are told.
    pub insight_sensitivity: f64,
    /// As it was sent.
    pub json: Arc<str>,
}

impl Default for ProfileConfig {
    fn default() -> Self {
        ProfileConfig {
            histogram_bins: Some(20),
            top_values: Some(10),
            percentiles: vec![25.0, 50.0, 75.0, 90.0, 95.0, 99.0],
            detects_insights: true,
            insight_sensitivity: 0.8,
            json: "{}".into(),
        }
    }
}

/// What is wrong with a configuration, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {expected}")]
pub struct ConfigError {
    pub key: String,
    pub expected: &'static str,
}

const KEYS: [&str; 11] = [
    "sample_size",
    "compute_histograms",
    "histogram_bins",
    "compute_frequencies",
    "top_n_values",
    "compute_percentiles",
    "percentile_list",
    "detect_insights",
    "insight_sensitivity",
    "quality_thresholds",
    "sampling_strategy",
];
const MAX_SIZE: u64 = 1_000;
const MAX_PERCENTILES: usize = 100;

impl ProfileConfig {
    /// Reads an object.
    ///
    /// # Errors
    /// The first field that is unknown or has another value than it may.
    pub fn from_json(json: &Json) -> Result<ProfileConfig, ConfigError> {
        let wrong = |key: &str, expected| ConfigError { key: key.to_owned(), expected };
        let object = json.as_object().ok_or_else(|| wrong("config", "a JSON object"))?;
        if let Some(key) = object.keys().find(|key| !KEYS.contains(&key.as_str())) {
            return Err(wrong(key, "no setting of a profile has this name"));
        }
        let flag = |key: &str| match object.get(key) {
            None => Ok(true),
            Some(found) => found.as_bool().ok_or_else(|| wrong(key, "true or false")),
        };
        let size = |key: &str, default: u32| match object.get(key) {
            None => Ok(default),
            Some(found) => found
                .as_u64()
                .filter(|size| (1..=MAX_SIZE).contains(size))
                .map(|size| size as u32)
                .ok_or_else(|| wrong(key, "a whole number from 1 to 1000")),
        };
        let defaults = ProfileConfig::default();
        let percentiles = match object.get("percentile_list") {
            None => defaults.percentiles,
            Some(found) => {
                percentiles(found).ok_or_else(|| wrong("percentile_list", "at most 100 numbers from 0 to 100"))?
            }
        };
        let insight_sensitivity = match object.get("insight_sensitivity") {
            None => defaults.insight_sensitivity,
            Some(found) => found
                .as_f64()
                .filter(|found| (0.0..=1.0).contains(found))
                .ok_or_else(|| wrong("insight_sensitivity", "a number from 0 to 1"))?,
        };
        let has_histograms = flag("compute_histograms")?;
        let has_frequencies = flag("compute_frequencies")?;
        Ok(ProfileConfig {
            histogram_bins: Some(size("histogram_bins", 20)?).filter(|_| has_histograms),
            top_values: Some(size("top_n_values", 10)?).filter(|_| has_frequencies),
            percentiles: if flag("compute_percentiles")? { percentiles } else { Vec::new() },
            detects_insights: flag("detect_insights")?,
            insight_sensitivity,
            json: json.to_string().into(),
        })
    }
}

/// Ascending, each once.
fn percentiles(json: &Json) -> Option<Vec<f64>> {
    let found: Option<Vec<f64>> = json.as_array()?.iter().map(Json::as_f64).collect();
    let mut found = found.filter(|found| found.len() <= MAX_PERCENTILES)?;
    found.sort_by(f64::total_cmp);
    found.dedup();
    found.iter().all(|percentile| (0.0..=100.0).contains(percentile)).then_some(found)
}
