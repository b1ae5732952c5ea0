//! The semantic models and metrics of a project, in one form for both specifications.
//!
//! In: values that `legacy`, `nested` and `metric` have read. Out: the input of `cubes` and `metrics`. Names and
//! expressions are those of the model.

use terrane_authoring::yaml::Yaml;
use terrane_compiler::diagnostic::Span;
use terrane_compiler::types::WindowLength;

pub(super) struct SemanticModel {
    pub(super) name: String,
    pub(super) span: Span,
    /// The dbt model that produces the rows.
    pub(super) model: ModelName,
    pub(super) wording: Wording,
    /// The name of the primary entity if it is not one of the entities.
    pub(super) primary_entity: Option<String>,
    /// The time dimension to which `metric_time` refers, and its place.
    pub(super) agg_time_dimension: Option<(String, Span)>,
    pub(super) entities: Vec<Entity>,
    pub(super) dimensions: Vec<Dimension>,
    pub(super) measures: Vec<Measure>,
    /// The names of all entities, dimensions and measures, including those that are not imported.
    pub(super) declared: Vec<String>,
}

/// The name of a dbt model, as in `ref('package', 'model')`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ModelName {
    pub(super) package: Option<String>,
    pub(super) name: String,
}

/// The texts for display: label, description and `meta`.
#[derive(Clone, Default)]
pub(super) struct Wording {
    pub(super) label: Option<String>,
    pub(super) description: Option<String>,
    pub(super) meta: Option<Yaml>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntityKind {
    Primary,
    Unique,
    /// An entity whose value identifies a row only for a period of time.
    Natural,
    Foreign,
}

pub(super) struct Entity {
    pub(super) name: String,
    pub(super) span: Span,
    pub(super) kind: EntityKind,
    pub(super) expr: Option<String>,
    pub(super) wording: Wording,
}

pub(super) struct Dimension {
    pub(super) name: String,
    pub(super) span: Span,
    pub(super) is_time: bool,
    pub(super) expr: Option<String>,
    pub(super) granularity: Option<String>,
    pub(super) is_partition: bool,
    pub(super) wording: Wording,
}

pub(super) struct Measure {
    pub(super) name: String,
    pub(super) span: Span,
    pub(super) aggregation: String,
    pub(super) expr: Option<String>,
    /// The time dimension to which `metric_time` refers for this measure, if it differs from that of the model.
    pub(super) agg_time_dimension: Option<String>,
    /// The percentile to compute, between 0 and 1.
    pub(super) percentile: Option<String>,
    /// True if the warehouse may approximate the percentile.
    pub(super) is_approximate: bool,
    pub(super) creates_metric: bool,
    /// True if only the measure's metric is a part of the dbt project, and the metric has filters.
    pub(super) is_private: bool,
    pub(super) wording: Wording,
}

pub(super) struct Metric {
    pub(super) name: String,
    pub(super) span: Span,
    pub(super) kind: MetricKind,
    pub(super) filters: Vec<String>,
    pub(super) is_hidden: bool,
    pub(super) wording: Wording,
}

pub(super) enum MetricKind {
    Simple(MeasureInput),
    Ratio(MetricInput, MetricInput),
    Derived {
        expr: String,
        inputs: Vec<MetricInput>,
    },
    /// A value over the rows up to each period.
    Cumulative(CumulativeInput, Accumulation, PeriodValue),
}

/// The rows of a cumulative metric at each period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Accumulation {
    /// All rows up to the period.
    RunningTotal,
    /// The rows of this length before the end of the period.
    Window(WindowLength),
}

/// The value that a cumulative metric has for a period that is longer than a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PeriodValue {
    First,
    Last,
    Average,
}

/// The input of a cumulative metric: a measure, or a simple metric.
pub(super) enum CumulativeInput {
    Measure(MeasureInput),
    Metric(MetricInput),
}

#[derive(Debug, Clone)]
pub(super) struct MeasureInput {
    pub(super) name: String,
    pub(super) filters: Vec<String>,
    /// The number that replaces null.
    pub(super) fill_nulls_with: Option<String>,
}

#[derive(Debug, Clone)]
pub(super) struct MetricInput {
    pub(super) name: String,
    pub(super) alias: Option<String>,
    pub(super) filters: Vec<String>,
}
