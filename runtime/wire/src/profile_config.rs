//! The configuration of a profile, under the specification's names.
//!
//! In: a JSON object. Out: a [`ProfileConfig`]. The checks read `quality_thresholds` from the object itself.
//! `sample_size` has no effect, because the warehouse counts every row.

use serde_json::Value as Json;
use terrane_app::profiling::ProfileConfig;

/// An invalid field of a profile's configuration.
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

/// Reads a configuration.
///
/// # Errors
/// Names the first unknown or invalid field.
pub fn from_json(json: &Json) -> Result<ProfileConfig, ConfigError> {
    let wrong = |key: &str, expected| ConfigError { key: key.to_owned(), expected };
    let object = json.as_object().ok_or_else(|| wrong("config", "a JSON object"))?;
    if let Some(key) = object.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(wrong(key, "unknown field"));
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
            .ok_or_else(|| wrong(key, "an integer from 1 to 1000")),
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

/// Returns the percentiles, ascending and without duplicates.
fn percentiles(json: &Json) -> Option<Vec<f64>> {
    let found: Option<Vec<f64>> = json.as_array()?.iter().map(Json::as_f64).collect();
    let mut found = found.filter(|found| found.len() <= MAX_PERCENTILES)?;
    found.sort_by(f64::total_cmp);
    found.dedup();
    found.iter().all(|percentile| (0.0..=100.0).contains(percentile)).then_some(found)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_configuration_is_read_field_by_field() {
        assert_eq!(from_json(&json!({})).unwrap(), ProfileConfig::default());
        let config = from_json(&json!({
            "compute_histograms": false, "top_n_values": 3, "percentile_list": [90, 5, 5], "insight_sensitivity": 0.1
        }));
        let config = config.unwrap();
        assert_eq!((config.histogram_bins, config.top_values, config.percentiles), (None, Some(3), vec![5.0, 90.0]));
        for (json, key) in [
            (json!([]), "config"),
            (json!({"histogram_bin": 5}), "histogram_bin"),
            (json!({"histogram_bins": 0}), "histogram_bins"),
            (json!({"top_n_values": 1001}), "top_n_values"),
            (json!({"percentile_list": [101]}), "percentile_list"),
            (json!({"detect_insights": "yes"}), "detect_insights"),
            (json!({"insight_sensitivity": 2}), "insight_sensitivity"),
        ] {
            assert_eq!(from_json(&json).unwrap_err().key, key);
        }
    }
}
