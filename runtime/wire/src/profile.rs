//! Profiles of cubes as JSON.
//!
//! Single statistics that were not computed are null, and lists that were not computed are empty.

pub(crate) mod stored;

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::Value as Json;
use terrane_app::profiling;
use terrane_compiler::column_statistics::{RowSample, SamplingStrategy};
use terrane_compiler::types::LogicalType;

pub use stored::{
    CountChange, DimensionProfile, ProfileChanges, ProfileColumnChange, ProfileDates, ProfileFilters, ProfileParts,
    ProfileRange, ProfileRequest, QualityScore, StoredCubeProfile, StoredProfileTexts, TypeChange, profile_job_text,
    profile_of_job, profile_parts_from_parameters, profile_request_from_wire,
};

use crate::profile_config::strategy_name;
use crate::{schema, value};

/// The profile of a cube.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CubeProfile<'a> {
    cube_name: &'a str,
    row_count: u64,
    #[schemars(schema_with = "schema::timestamp")]
    profiled_at: String,
    /// The statistics are at least as new as the data at this time.
    #[schemars(schema_with = "schema::timestamp")]
    as_of: String,
    /// The number of rows that the statistics were computed from.
    sample_size: u64,
    /// Null if all rows were read.
    sampling: Option<Sampling<'a>>,
    dimension_profiles: Vec<ColumnProfile<'a>>,
    measure_profiles: Vec<ColumnProfile<'a>>,
    overall_quality_score: Option<f64>,
    /// The score of each quality dimension.
    quality_scores: BTreeMap<&'static str, f64>,
    /// The share of the weights of quality that was scored, 0–1.
    scored_weight: f64,
    insights: Vec<Insight<'a>>,
    warnings: &'a [String],
}

/// The sample of a profile. The statistics of columns are computed from its rows, and estimate those of all rows.
#[derive(Debug, Serialize, JsonSchema)]
struct Sampling<'a> {
    #[schemars(schema_with = "strategies")]
    strategy: &'static str,
    /// The dimension whose values are the strata; null for the primary time dimension and for other strategies.
    stratify_by: Option<&'a str>,
    requested_size: u64,
    /// True: counts, distinct values, extremes and frequencies of columns are those of the sample, and estimates for
    /// the cube. `row_count` is exact.
    is_estimate: bool,
}

/// The statistics of a column.
#[derive(Debug, Serialize, JsonSchema)]
struct ColumnProfile<'a> {
    name: &'a str,
    title: &'a str,
    #[schemars(schema_with = "types")]
    r#type: &'static str,
    total_count: u64,
    null_count: Option<u64>,
    completeness: Option<f64>,
    distinct_count: Option<u64>,
    cardinality_ratio: Option<f64>,
    #[schemars(schema_with = "schema::any")]
    min: Option<Json>,
    #[schemars(schema_with = "schema::any")]
    max: Option<Json>,
    mean: Option<f64>,
    stddev: Option<f64>,
    skewness: Option<f64>,
    /// Values by their percentile.
    percentiles: serde_json::Map<String, Json>,
    outlier_count: Option<u64>,
    histogram: Vec<Bin>,
    top_values: Vec<TopValue>,
}

/// A bin of a histogram.
#[derive(Debug, Serialize, JsonSchema)]
struct Bin {
    from: f64,
    to: f64,
    count: u64,
}

/// A frequent value.
#[derive(Debug, Serialize, JsonSchema)]
struct TopValue {
    #[schemars(schema_with = "schema::any")]
    value: Json,
    count: u64,
}

/// A finding of a check.
#[derive(Debug, Serialize, JsonSchema)]
struct Insight<'a> {
    severity: &'static str,
    code: &'a str,
    message: &'a str,
    column: Option<&'a str>,
    score: Option<f64>,
    component: &'a str,
    evidence: BTreeMap<&'a str, &'a str>,
}

fn strategies(_: &mut SchemaGenerator) -> Schema {
    schema::words(&["random", "stratified", "systematic"])
}

fn types(_: &mut SchemaGenerator) -> Schema {
    schema::words(&[
        "text",
        "integer",
        "decimal",
        "float",
        "boolean",
        "date",
        "timestamp",
        "timestamp_tz",
        "geo",
        "binary",
        "unknown",
    ])
}

/// Returns the name of a column's type.
pub fn type_name(ty: LogicalType) -> &'static str {
    match ty {
        LogicalType::Text => "text",
        LogicalType::Integer => "integer",
        LogicalType::Decimal => "decimal",
        LogicalType::Float => "float",
        LogicalType::Boolean => "boolean",
        LogicalType::Date => "date",
        LogicalType::Timestamp => "timestamp",
        LogicalType::TimestampTz => "timestamp_tz",
        LogicalType::Geo => "geo",
        LogicalType::Binary => "binary",
        LogicalType::Unknown => "unknown",
    }
}

/// Returns a value of a column as JSON.
pub fn value_to_wire(value: &terrane_compiler::types::Value) -> Json {
    value::to_json(value)
}

impl<'a> From<&'a profiling::CubeProfile> for CubeProfile<'a> {
    fn from(profile: &'a profiling::CubeProfile) -> Self {
        CubeProfile {
            cube_name: &profile.cube_name,
            row_count: profile.row_count,
            profiled_at: profile.profiled_at.to_string(),
            as_of: profile.as_of.to_string(),
            sample_size: profile.sample_size,
            sampling: profile.sample.as_ref().map(Sampling::from),
            dimension_profiles: profile.dimension_profiles.iter().map(ColumnProfile::from).collect(),
            measure_profiles: profile.measure_profiles.iter().map(ColumnProfile::from).collect(),
            overall_quality_score: profile.overall_quality_score,
            quality_scores: profile.quality_scores.iter().map(|(side, score)| (side.as_str(), *score)).collect(),
            // The sum of no weights is -0.
            scored_weight: profile.scored_weight + 0.0,
            insights: profile.insights.iter().map(Insight::from).collect(),
            warnings: &profile.warnings,
        }
    }
}

impl<'a> From<&'a RowSample> for Sampling<'a> {
    fn from(sample: &'a RowSample) -> Self {
        let stratify_by = match &sample.strategy {
            SamplingStrategy::Stratified(strata) => strata.as_deref(),
            SamplingStrategy::Random | SamplingStrategy::Systematic => None,
        };
        let strategy = strategy_name(&sample.strategy);
        Sampling { strategy, stratify_by, requested_size: sample.rows, is_estimate: true }
    }
}

impl<'a> From<&'a profiling::ColumnProfile> for ColumnProfile<'a> {
    fn from(column: &'a profiling::ColumnProfile) -> Self {
        let bins = column.histogram.iter().map(|bin| Bin { from: bin.from, to: bin.to, count: bin.count });
        let top =
            column.top_values.iter().map(|(value, count)| TopValue { value: value::to_json(value), count: *count });
        ColumnProfile {
            name: &column.name,
            title: &column.title,
            r#type: type_name(column.ty),
            total_count: column.total_count,
            null_count: column.null_count,
            completeness: column.completeness(),
            distinct_count: column.distinct_count,
            cardinality_ratio: column.cardinality_ratio(),
            min: column.min.as_ref().map(value::to_json),
            max: column.max.as_ref().map(value::to_json),
            mean: column.mean,
            stddev: column.stddev,
            skewness: column.skewness,
            percentiles: column.percentiles.iter().map(|(at, value)| (at.to_string(), (*value).into())).collect(),
            outlier_count: column.outlier_count,
            histogram: bins.collect(),
            top_values: top.collect(),
        }
    }
}

impl<'a> From<&'a profiling::Insight> for Insight<'a> {
    fn from(insight: &'a profiling::Insight) -> Self {
        Insight {
            severity: insight.level(),
            code: &insight.code,
            message: &insight.message,
            column: insight.column.as_deref(),
            score: insight.score,
            component: &insight.component,
            evidence: insight.evidence.iter().map(|(name, value)| (&**name, &**value)).collect(),
        }
    }
}
