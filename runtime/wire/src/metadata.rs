//! The model as clients see it: the answers of the metadata routes.
//!
//! In: the model, the parts of it that the caller may see (`terrane_app::metadata`), and certifications. Out: cubes,
//! measures, dimensions and metrics.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use terrane_app::governance::Badges;
use terrane_app::metadata;
use terrane_app::ports::governance_records::ArtifactType;
use terrane_compiler::Access;
use terrane_compiler::model::{self, AggregateFunction, DimensionType, Fraction, MeasureKind, MetricKind};
use terrane_compiler::types::WindowLength;

use crate::governance::CertificationBadge;
use crate::query::GranularityName;
use crate::schema;

fn measure_types(_: &mut SchemaGenerator) -> Schema {
    schema::words(&[
        "count",
        "count_distinct",
        "count_distinct_approx",
        "sum",
        "avg",
        "min",
        "max",
        "number",
        "running_total",
    ])
}

fn window_offsets(_: &mut SchemaGenerator) -> Schema {
    schema::words(&["start", "end"])
}

fn dimension_types(_: &mut SchemaGenerator) -> Schema {
    schema::words(&["string", "number", "time", "boolean", "geo"])
}

fn metric_types(_: &mut SchemaGenerator) -> Schema {
    schema::words(&["simple", "ratio", "derived"])
}

/// All cubes.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Cubes<'m> {
    cubes: Vec<Cube<'m>>,
}

/// A cube.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Cube<'m> {
    name: &'m str,
    title: &'m str,
    description: Option<String>,
    measures: Vec<Measure<'m>>,
    dimensions: Vec<Dimension<'m>>,
    segments: Vec<&'m str>,
    joins: Vec<&'m str>,
    /// Null for drafts, and without governance.
    certification: Option<CertificationBadge>,
}

/// A measure of a cube.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Measure<'m> {
    name: &'m str,
    cube: &'m str,
    #[schemars(schema_with = "measure_types")]
    r#type: &'static str,
    /// The aggregation of a `number` that is one: `median`, `percentile`, `stddev` or `variance`. Else it is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    aggregation: Option<&'static str>,
    /// The type of a minimum or a maximum over a dimension: `string`, `number`, `time` or `boolean`. Else it is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    value_type: Option<&'static str>,
    /// The range of time around each step of the query's time dimension over which the value is computed. Absent if the
    /// measure has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    rolling_window: Option<RollingWindow>,
    title: &'m str,
    description: Option<String>,
    format: Option<&'m str>,
    drill_members: Vec<&'m str>,
    /// Null for drafts, and without governance.
    certification: Option<CertificationBadge>,
}

/// A range of time around each step of a query's time dimension.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RollingWindow {
    /// The length before the offset, such as `28 day`, or `unbounded`; null for none.
    trailing: Option<String>,
    /// The length after the offset; null for none.
    leading: Option<String>,
    /// The point of each step from which the lengths are measured.
    #[schemars(schema_with = "window_offsets")]
    offset: &'static str,
}

impl From<&model::RollingWindow> for RollingWindow {
    fn from(window: &model::RollingWindow) -> Self {
        let length = |length: WindowLength| (length != WindowLength::Zero).then(|| length.to_string());
        RollingWindow {
            trailing: length(window.trailing),
            leading: length(window.leading),
            offset: window.offset.as_str(),
        }
    }
}

/// A dimension of a cube.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Dimension<'m> {
    name: &'m str,
    cube: &'m str,
    #[schemars(schema_with = "dimension_types")]
    r#type: &'static str,
    title: &'m str,
    description: Option<String>,
    format: Option<&'m str>,
    primary_key: bool,
    #[schemars(with = "Vec<GranularityName>")]
    granularities: Vec<&'static str>,
    /// Null for drafts, and without governance.
    certification: Option<CertificationBadge>,
}

/// All measures and metrics.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Metrics<'m> {
    measures: Vec<Measure<'m>>,
    metrics: Vec<Metric<'m>>,
}

/// A metric.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Metric<'m> {
    name: &'m str,
    #[schemars(schema_with = "metric_types")]
    r#type: &'static str,
    title: &'m str,
    description: Option<String>,
    #[schemars(with = "Option<GranularityName>")]
    time_grain: Option<&'static str>,
    format: Option<&'m str>,
    /// The cubes whose measures it is computed from.
    cubes: Vec<&'m str>,
    /// Null for drafts, and without governance.
    certification: Option<CertificationBadge>,
}

/// The dimensions of all cubes.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Dimensions<'m> {
    dimensions: Vec<Dimension<'m>>,
}

/// Cubes with their members, and metrics: the output of `terrane list --json`.
#[derive(Debug, Serialize)]
pub struct Listing<'m> {
    cubes: Vec<Cube<'m>>,
    metrics: Vec<Metric<'m>>,
}

/// Returns the given cubes and metrics. Members that the caller may not see are left out.
pub fn listing<'m>(access: &'m Access<'m>, cubes: &[&'m model::Cube], metrics: &[&'m model::Metric]) -> Listing<'m> {
    let badges = Badges::default();
    Listing {
        cubes: cubes.iter().map(|cube| to_wire(access, &badges, cube)).collect(),
        metrics: metrics.iter().map(|of| metric(access, &badges, of)).collect(),
    }
}

/// Returns the cubes that the caller may see.
pub fn cubes<'m>(access: &'m Access<'m>, badges: &Badges) -> Cubes<'m> {
    Cubes { cubes: metadata::cubes(access).map(|cube| to_wire(access, badges, cube)).collect() }
}

/// Returns one cube, if the caller may see it.
pub fn cube<'m>(access: &'m Access<'m>, badges: &Badges, name: &str) -> Option<Cube<'m>> {
    metadata::cube(access, name).map(|cube| to_wire(access, badges, cube))
}

/// Returns a whole cube, as its author registered it. It has no segments, no joins and no certification.
pub fn registered(cube: &model::Cube) -> Cube<'_> {
    let badges = Badges::default();
    Cube {
        name: &cube.name,
        title: &cube.title,
        description: cube.description.as_deref().map(str::to_owned),
        measures: cube.measures.iter().map(|measure| measure_to_wire(&badges, cube, measure, Vec::new())).collect(),
        dimensions: cube.dimensions.iter().map(|dimension| dimension_to_wire(&badges, cube, dimension)).collect(),
        segments: Vec::new(),
        joins: Vec::new(),
        certification: None,
    }
}

/// Returns the measures and metrics that the caller may see.
pub fn metrics<'m>(access: &'m Access<'m>, badges: &Badges) -> Metrics<'m> {
    Metrics {
        measures: metadata::cubes(access).flat_map(|cube| measures(access, badges, cube)).collect(),
        metrics: metadata::metrics(access).map(|m| metric(access, badges, m)).collect(),
    }
}

/// Returns the dimensions that the caller may see.
pub fn dimensions<'m>(access: &'m Access<'m>, badges: &Badges) -> Dimensions<'m> {
    Dimensions { dimensions: metadata::cubes(access).flat_map(|cube| cube_dimensions(access, badges, cube)).collect() }
}

fn to_wire<'m>(access: &'m Access<'m>, badges: &Badges, cube: &'m model::Cube) -> Cube<'m> {
    let description = badges.description(ArtifactType::Cube, &cube.name, cube.description.as_ref());
    Cube {
        name: &cube.name,
        title: &cube.title,
        description: description.map(|text| text.to_string()),
        measures: measures(access, badges, cube).collect(),
        dimensions: cube_dimensions(access, badges, cube).collect(),
        segments: metadata::segments(access, cube).map(|segment| &*segment.name).collect(),
        joins: metadata::joins(access, cube).map(|(_, target)| &*target.name).collect(),
        certification: badges.of(ArtifactType::Cube, &cube.name).map(CertificationBadge::from),
    }
}

fn measures<'m>(access: &'m Access<'m>, badges: &Badges, cube: &'m model::Cube) -> impl Iterator<Item = Measure<'m>> {
    metadata::measures(access, cube)
        .map(move |measure| measure_to_wire(badges, cube, measure, metadata::drill_members(access, cube, measure)))
}

fn measure_to_wire<'m>(
    badges: &Badges,
    cube: &'m model::Cube,
    measure: &'m model::Measure,
    drill_members: Vec<&'m str>,
) -> Measure<'m> {
    let badge = badges.of_member(ArtifactType::Measure, &cube.name, &measure.name);
    let of_file = measure.presentation.description.as_ref();
    let description = badges.member_description(ArtifactType::Measure, &cube.name, &measure.name, of_file);
    Measure {
        name: &measure.name,
        cube: &cube.name,
        r#type: measure_type(&measure.kind),
        aggregation: aggregation(&measure.kind),
        value_type: cube.extremum_type(measure).map(DimensionType::as_str),
        rolling_window: rolling_window(&measure.kind),
        title: &measure.presentation.title,
        description: description.map(|text| text.to_string()),
        format: measure.presentation.format.as_deref(),
        drill_members,
        certification: badge.map(CertificationBadge::from),
    }
}

fn cube_dimensions<'m>(
    access: &'m Access<'m>,
    badges: &Badges,
    cube: &'m model::Cube,
) -> impl Iterator<Item = Dimension<'m>> {
    metadata::dimensions(access, cube).map(move |dimension| dimension_to_wire(badges, cube, dimension))
}

fn dimension_to_wire<'m>(badges: &Badges, cube: &'m model::Cube, dimension: &'m model::Dimension) -> Dimension<'m> {
    let badge = badges.of_member(ArtifactType::Dimension, &cube.name, &dimension.name);
    let of_file = dimension.presentation.description.as_ref();
    let description = badges.member_description(ArtifactType::Dimension, &cube.name, &dimension.name, of_file);
    Dimension {
        name: &dimension.name,
        cube: &cube.name,
        r#type: dimension.ty.as_str(),
        title: &dimension.presentation.title,
        description: description.map(|text| text.to_string()),
        format: dimension.presentation.format.as_deref(),
        primary_key: dimension.primary_key,
        granularities: dimension.granularities.iter().map(|granularity| granularity.as_str()).collect(),
        certification: badge.map(CertificationBadge::from),
    }
}

fn metric<'m>(access: &'m Access<'m>, badges: &Badges, metric: &'m model::Metric) -> Metric<'m> {
    let of_file = metric.presentation.description.as_ref();
    let description = badges.description(ArtifactType::Metric, &metric.name, of_file);
    Metric {
        name: &metric.name,
        r#type: metric_type(metric.kind),
        title: &metric.presentation.title,
        description: description.map(|text| text.to_string()),
        time_grain: metric.time_grain.map(|grain| grain.as_str()),
        format: metric.presentation.format.as_deref(),
        cubes: metadata::cubes_of_metric(access, metric).into_iter().map(|cube| &*cube.name).collect(),
        certification: badges.of(ArtifactType::Metric, &metric.name).map(CertificationBadge::from),
    }
}

/// Returns the name of a metric's type in the metadata.
pub fn metric_type(kind: MetricKind) -> &'static str {
    match kind {
        MetricKind::Simple => "simple",
        MetricKind::Ratio => "ratio",
        MetricKind::Derived => "derived",
    }
}

/// Returns the name of a measure's type in the metadata.
pub fn measure_type(kind: &MeasureKind) -> &'static str {
    match kind {
        MeasureKind::Number(_) => "number",
        MeasureKind::RunningTotal { .. } => "running_total",
        MeasureKind::Aggregate(aggregate) | MeasureKind::Rolling { aggregate, .. } => match aggregate.function {
            AggregateFunction::Count => "count",
            AggregateFunction::CountDistinct => "count_distinct",
            AggregateFunction::CountDistinctApprox => "count_distinct_approx",
            AggregateFunction::Sum => "sum",
            AggregateFunction::Avg => "avg",
            AggregateFunction::Min => "min",
            AggregateFunction::Max => "max",
            AggregateFunction::Percentile(..) | AggregateFunction::StdDev(_) | AggregateFunction::Variance(_) => {
                "number"
            }
        },
    }
}

fn rolling_window(kind: &MeasureKind) -> Option<RollingWindow> {
    let MeasureKind::Rolling { window, .. } = kind else { return None };
    Some(window.into())
}

/// Returns the name of an aggregation if metadata show the type of its measure as `number`.
pub fn aggregation(kind: &MeasureKind) -> Option<&'static str> {
    let MeasureKind::Aggregate(aggregate) = kind else { return None };
    match aggregate.function {
        AggregateFunction::Percentile(Fraction::HALF, _) => Some("median"),
        AggregateFunction::Percentile(..) => Some("percentile"),
        AggregateFunction::StdDev(_) => Some("stddev"),
        AggregateFunction::Variance(_) => Some("variance"),
        _ => None,
    }
}
