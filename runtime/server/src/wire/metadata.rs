//! The model as clients see it (specification, "Cube", "Measure", "Dimension", metadata form).
//!
//! Hidden members and cubes that aren't public are left out, also where others refer to them. An
//! alias is a cube of its own.

use serde::Serialize;
use terrane_compiler::model::{
    self, AggregateFunction, CubeId, DimensionType, MeasureKind, MetricId, MetricKind, Model, Snippet, SqlPart,
};

#[derive(Serialize)]
pub(crate) struct Cubes<'m> {
    cubes: Vec<Cube<'m>>,
}

#[derive(Serialize)]
pub(crate) struct Cube<'m> {
    name: &'m str,
    title: &'m str,
    description: Option<&'m str>,
    measures: Vec<Measure<'m>>,
    dimensions: Vec<Dimension<'m>>,
    segments: Vec<&'m str>,
    joins: Vec<&'m str>,
}

#[derive(Serialize)]
pub(crate) struct Measure<'m> {
    name: &'m str,
    cube: &'m str,
    r#type: &'static str,
    title: &'m str,
    description: Option<&'m str>,
    format: Option<&'m str>,
    drill_members: Vec<&'m str>,
}

#[derive(Serialize)]
pub(crate) struct Dimension<'m> {
    name: &'m str,
    cube: &'m str,
    r#type: &'static str,
    title: &'m str,
    description: Option<&'m str>,
    primary_key: bool,
    granularities: Vec<&'static str>,
}

#[derive(Serialize)]
pub(crate) struct Metrics<'m> {
    measures: Vec<Measure<'m>>,
    metrics: Vec<Metric<'m>>,
}

#[derive(Serialize)]
pub(crate) struct Metric<'m> {
    name: &'m str,
    r#type: &'static str,
    title: &'m str,
    description: Option<&'m str>,
    time_grain: Option<&'static str>,
    format: Option<&'m str>,
    /// Those whose measures it is computed from.
    cubes: Vec<&'m str>,
}

#[derive(Serialize)]
pub(crate) struct Dimensions<'m> {
    dimensions: Vec<Dimension<'m>>,
}

pub(crate) fn cubes(model: &Model) -> Cubes<'_> {
    Cubes { cubes: public_cubes(model).map(|cube| to_wire(model, cube)).collect() }
}

pub(crate) fn cube<'m>(model: &'m Model, name: &str) -> Option<Cube<'m>> {
    model.cube_named(name).filter(|cube| cube.public).map(|cube| to_wire(model, cube))
}

pub(crate) fn metrics(model: &Model) -> Metrics<'_> {
    Metrics {
        measures: public_cubes(model).flat_map(measures).collect(),
        metrics: model.metrics.iter().filter(|metric| !metric.presentation.hidden).map(|m| metric(model, m)).collect(),
    }
}

pub(crate) fn dimensions(model: &Model) -> Dimensions<'_> {
    Dimensions { dimensions: public_cubes(model).flat_map(cube_dimensions).collect() }
}

fn public_cubes(model: &Model) -> impl Iterator<Item = &model::Cube> {
    model.cubes.iter().filter(|cube| cube.public)
}

fn to_wire<'m>(model: &'m Model, cube: &'m model::Cube) -> Cube<'m> {
    let joined = cube.joins.iter().map(|join| model.cube(join.target)).filter(|target| target.public);
    Cube {
        name: &cube.name,
        title: &cube.title,
        description: cube.description.as_deref(),
        measures: measures(cube).collect(),
        dimensions: cube_dimensions(cube).collect(),
        segments: cube.segments.iter().filter(|s| !s.presentation.hidden).map(|s| &*s.name).collect(),
        joins: joined.map(|target| &*target.name).collect(),
    }
}

fn measures(cube: &model::Cube) -> impl Iterator<Item = Measure<'_>> {
    let shown = cube.measures.iter().filter(|measure| !measure.presentation.hidden);
    shown.map(|measure| Measure {
        name: &measure.name,
        cube: &cube.name,
        r#type: measure_type(&measure.kind),
        title: &measure.presentation.title,
        description: measure.presentation.description.as_deref(),
        format: measure.presentation.format.as_deref(),
        drill_members: measure.presentation.drill_members.iter().map(|member| &**member).collect(),
    })
}

fn cube_dimensions(cube: &model::Cube) -> impl Iterator<Item = Dimension<'_>> {
    let shown = cube.dimensions.iter().filter(|dimension| !dimension.presentation.hidden);
    shown.map(|dimension| Dimension {
        name: &dimension.name,
        cube: &cube.name,
        r#type: dimension_type(dimension.ty),
        title: &dimension.presentation.title,
        description: dimension.presentation.description.as_deref(),
        primary_key: dimension.primary_key,
        granularities: dimension.granularities.iter().map(|granularity| granularity.as_str()).collect(),
    })
}

fn metric<'m>(model: &'m Model, metric: &'m model::Metric) -> Metric<'m> {
    let mut cubes = Vec::new();
    collect_cubes(model, &metric.body, &mut Vec::new(), &mut cubes);
    let public = cubes.into_iter().map(|id| model.cube(id)).filter(|cube| cube.public);
    Metric {
        name: &metric.name,
        r#type: match metric.kind {
            MetricKind::Simple => "simple",
            MetricKind::Ratio => "ratio",
            MetricKind::Derived => "derived",
        },
        title: &metric.presentation.title,
        description: metric.presentation.description.as_deref(),
        time_grain: metric.time_grain.map(|grain| grain.as_str()),
        format: metric.presentation.format.as_deref(),
        cubes: public.map(|cube| &*cube.name).collect(),
    }
}

/// The cubes of the measures below, in the order of their first use. Each metric is visited once.
fn collect_cubes(model: &Model, body: &Snippet, visited: &mut Vec<MetricId>, cubes: &mut Vec<CubeId>) {
    body.for_each(&mut |part| match part {
        SqlPart::Measure(id) if !cubes.contains(&id.cube) => cubes.push(id.cube),
        SqlPart::Metric(id) if !visited.contains(id) => {
            visited.push(*id);
            collect_cubes(model, &model.metric(*id).body, visited, cubes);
        }
        _ => {}
    });
}

fn measure_type(kind: &MeasureKind) -> &'static str {
    match kind {
        MeasureKind::Number(_) => "number",
        MeasureKind::RunningTotal { .. } => "running_total",
        MeasureKind::Aggregate(aggregate) => match aggregate.function {
            AggregateFunction::Count => "count",
            AggregateFunction::CountDistinct => "count_distinct",
            AggregateFunction::CountDistinctApprox => "count_distinct_approx",
            AggregateFunction::Sum => "sum",
            AggregateFunction::Avg => "avg",
            AggregateFunction::Min => "min",
            AggregateFunction::Max => "max",
        },
    }
}

fn dimension_type(ty: DimensionType) -> &'static str {
    match ty {
        DimensionType::String => "string",
        DimensionType::Number => "number",
        DimensionType::Time => "time",
        DimensionType::Boolean => "boolean",
        DimensionType::Geo => "geo",
    }
}
