//! The configuration of a profile, under the names of the interface.
//!
//! In: a JSON object. Out: a [`ProfileConfig`]. The checks read `quality_thresholds` from the object itself.

use schemars::JsonSchema;
use serde_json::Value as Json;
use terrane_app::profiling::{ProfileConfig, SampleRequest};
use terrane_compiler::column_statistics::SamplingStrategy;

use crate::fields::{FieldError, Fields, Path};

pub(crate) const KEYS: &[&str] = &[
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
    "stratify_by",
];
pub(crate) const THRESHOLDS: &[&str] = &["completeness_warning", "validity_warning", "uniqueness_warning"];
/// The size of a sample if the request has no `sample_size`.
const SAMPLE_SIZE: u64 = 10_000;
const MAX_SAMPLE_SIZE: u64 = 1_000_000_000;
const MAX_SIZE: u64 = 1_000;
const MAX_PERCENTILES: usize = 100;
const OBJECT: &str = "a JSON object";
const SHARE: &str = "a number from 0 to 1";
const SAMPLE_SIZES: &str = "an integer from 0 to 1000000000";
const DIMENSION: &str = "the name of a dimension";
const NO_STRATA: &str = "no value without `sampling_strategy: stratified`";
const STRATEGY: &str = "`random`, `stratified` or `systematic`";
const PERCENTILES: &str = "a list of at most 100 numbers from 0 to 100";

/// The statistics of a profile.
#[derive(Debug, JsonSchema)]
#[schemars(rename = "ProfileConfig", deny_unknown_fields)]
pub struct ProfileConfigBody {
    /// The number of rows to compute statistics from, at most 1,000,000,000; 0 means all. Default: 10000.
    pub sample_size: Option<u64>,
    /// `random`, `stratified` or `systematic`. Default: random. Each needs a primary key of the cube.
    pub sampling_strategy: Option<String>,
    /// The name of the dimension whose values are the strata. Default: the cube's primary time dimension.
    pub stratify_by: Option<String>,
    /// True to compute histograms. Default: true.
    pub compute_histograms: Option<bool>,
    /// The number of bins of a histogram, 1–1000. Default: 20.
    pub histogram_bins: Option<u32>,
    /// True to compute the most frequent values. Default: true.
    pub compute_frequencies: Option<bool>,
    /// The number of most frequent values, 1–1000. Default: 10.
    pub top_n_values: Option<u32>,
    /// True to compute percentiles. Default: true.
    pub compute_percentiles: Option<bool>,
    /// At most 100 numbers from 0 to 100. Default: 25, 50, 75, 90, 95 and 99.
    pub percentile_list: Option<Vec<f64>>,
    /// True to find insights. Default: true.
    pub detect_insights: Option<bool>,
    /// The sensitivity from 0 to 1. A higher value also reports weaker insights. Default: 0.8.
    pub insight_sensitivity: Option<f64>,
    pub quality_thresholds: Option<QualityThresholds>,
}

/// The shares below which a check reports a column, 0–1.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct QualityThresholds {
    /// The completeness below which a column gets a warning. Default: 0.95.
    pub completeness_warning: Option<f64>,
    /// The validity below which a column gets a warning. Default: 0.9.
    pub validity_warning: Option<f64>,
    /// The uniqueness below which a column gets a warning. Default: 0.8.
    pub uniqueness_warning: Option<f64>,
}

/// Reads a configuration.
///
/// # Errors
/// Names the first field that is unknown or invalid.
pub fn from_json(json: &Json) -> Result<ProfileConfig, FieldError> {
    read(json, &Path::ROOT)
}

pub(crate) fn read(json: &Json, path: &Path<'_>) -> Result<ProfileConfig, FieldError> {
    let fields = Fields::new(json, path, OBJECT, KEYS)?;
    let flag = |name| Ok(fields.boolean(name)?.unwrap_or(true));
    let size = |name: &'static str, default: u32| match fields.integer(name)? {
        None => Ok(default),
        Some(size @ 1..=MAX_SIZE) => Ok(size as u32),
        Some(size) => Err(path.field(name).invalid_value(&size.to_string(), "an integer from 1 to 1000")),
    };
    let defaults = ProfileConfig::default();
    let percentiles = match fields.get("percentile_list") {
        None => defaults.percentiles,
        Some(found) => {
            let invalid = || path.field("percentile_list").invalid_value(&found.to_string(), PERCENTILES);
            percentiles(found).ok_or_else(invalid)?
        }
    };
    if let Some(thresholds) = fields.get("quality_thresholds") {
        let path = path.field("quality_thresholds");
        let thresholds = Fields::new(thresholds, &path, OBJECT, THRESHOLDS)?;
        for name in THRESHOLDS {
            share(&thresholds, &path, name)?;
        }
    }
    let has_histograms = flag("compute_histograms")?;
    let has_frequencies = flag("compute_frequencies")?;
    Ok(ProfileConfig {
        histogram_bins: Some(size("histogram_bins", 20)?).filter(|_| has_histograms),
        top_values: Some(size("top_n_values", 10)?).filter(|_| has_frequencies),
        percentiles: if flag("compute_percentiles")? { percentiles } else { Vec::new() },
        sample: sample(&fields, path)?,
        detects_insights: flag("detect_insights")?,
        insight_sensitivity: share(&fields, path, "insight_sensitivity")?.unwrap_or(defaults.insight_sensitivity),
        json: json.to_string().into(),
    })
}

/// Reads the request for a sample. Without any of its fields, all rows are read.
fn sample(fields: &Fields<'_>, path: &Path<'_>) -> Result<SampleRequest, FieldError> {
    let size = fields.integer("sample_size")?;
    if let Some(size) = size.filter(|size| *size > MAX_SAMPLE_SIZE) {
        return Err(path.field("sample_size").invalid_value(&size.to_string(), SAMPLE_SIZES));
    }
    let strata = fields.string("stratify_by", DIMENSION)?;
    let name = fields.string("sampling_strategy", STRATEGY)?;
    let strategy = match name {
        None | Some("random") => SamplingStrategy::Random,
        Some("systematic") => SamplingStrategy::Systematic,
        Some("stratified") => SamplingStrategy::Stratified(strata.map(Into::into)),
        Some(other) => return Err(path.field("sampling_strategy").invalid_value(other, STRATEGY)),
    };
    if let Some(strata) = strata.filter(|_| name != Some("stratified")) {
        return Err(path.field("stratify_by").invalid_value(strata, NO_STRATA));
    }
    let is_explicit = size.is_some_and(|size| size > 0) || name.is_some();
    let size = size.unwrap_or(if is_explicit { SAMPLE_SIZE } else { 0 });
    Ok(SampleRequest { size, strategy, is_explicit })
}

/// Returns the configuration with the default sample, if the request does not describe a sample.
pub(crate) fn with_default_sample(json: Option<&Json>, config: ProfileConfig) -> ProfileConfig {
    let is_named = json.is_some_and(|json| json.get("sample_size").is_some_and(|size| !size.is_null()));
    if is_named || config.sample.is_explicit {
        return config;
    }
    ProfileConfig { sample: SampleRequest { size: SAMPLE_SIZE, ..SampleRequest::default() }, ..config }
}

pub(crate) fn strategy_name(strategy: &SamplingStrategy) -> &'static str {
    match strategy {
        SamplingStrategy::Random => "random",
        SamplingStrategy::Systematic => "systematic",
        SamplingStrategy::Stratified(_) => "stratified",
    }
}

fn share(fields: &Fields<'_>, path: &Path<'_>, name: &str) -> Result<Option<f64>, FieldError> {
    let Some(found) = fields.get(name) else { return Ok(None) };
    let share = found.as_f64().filter(|share| (0.0..=1.0).contains(share));
    share.map(Some).ok_or_else(|| path.field(name).invalid_value(&found.to_string(), SHARE))
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
    #![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

    use serde_json::json;

    use super::*;

    #[test]
    fn configuration_is_read_field_by_field() {
        assert_eq!(from_json(&json!({})).unwrap(), ProfileConfig::default());
        let config = from_json(&json!({
            "compute_histograms": false, "top_n_values": 3, "percentile_list": [90, 5, 5], "insight_sensitivity": 0.1
        }));
        let config = config.unwrap();
        assert_eq!((config.histogram_bins, config.top_values, config.percentiles), (None, Some(3), vec![5.0, 90.0]));
        let sample = |json: Json| {
            let sample = from_json(&json).unwrap().sample;
            (sample.size, sample.strategy, sample.is_explicit)
        };
        let strata = SamplingStrategy::Stratified(Some("region".into()));
        assert_eq!(sample(json!({"sample_size": 0})), (0, SamplingStrategy::Random, false));
        assert_eq!(sample(json!({"sample_size": 10})), (10, SamplingStrategy::Random, true));
        assert_eq!(
            sample(json!({"sampling_strategy": "systematic"})),
            (SAMPLE_SIZE, SamplingStrategy::Systematic, true)
        );
        let json = json!({"sample_size": 5, "sampling_strategy": "stratified", "stratify_by": "region"});
        assert_eq!(sample(json), (5, strata, true));
        for (json, field) in [
            (json!([]), ""),
            (json!({"histogram_bin": 5}), "histogram_bin"),
            (json!({"histogram_bins": 0}), "histogram_bins"),
            (json!({"top_n_values": 1001}), "top_n_values"),
            (json!({"percentile_list": [101]}), "percentile_list"),
            (json!({"detect_insights": "yes"}), "detect_insights"),
            (json!({"insight_sensitivity": 2}), "insight_sensitivity"),
            (json!({"sampling_strategy": "first"}), "sampling_strategy"),
            (json!({"sample_size": -1}), "sample_size"),
            (json!({"sample_size": 1_000_000_001}), "sample_size"),
            (json!({"sample_size": 5, "stratify_by": "region"}), "stratify_by"),
            (json!({"sampling_strategy": "stratified", "stratify_by": 5}), "stratify_by"),
            (json!({"quality_thresholds": {"completeness": 1}}), "quality_thresholds.completeness"),
            (json!({"quality_thresholds": {"validity_warning": -1}}), "quality_thresholds.validity_warning"),
        ] {
            let error = crate::ErrorBody::from(from_json(&json).unwrap_err()).into_json("");
            let found = error["error"]["details"]["field"].as_str().unwrap_or_default();
            assert_eq!(found, field);
        }
    }
}
