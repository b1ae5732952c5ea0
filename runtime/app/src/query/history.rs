//! Counts the queries that were computed from rows by their shape: the members of one cube that they group, filter and
//! aggregate.
//!
//! In: each query that the warehouse ran without a pre-aggregation. Out: counts and times of shapes, from which
//! pre-aggregations are recommended, and the members that a query names or filters by. Values of filters and rows are
//! not recorded. The number of shapes is bounded.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use terrane_compiler::model::{CubeId, DimensionId, MeasureId, Member, MetricId, Model, SqlPart};
use terrane_compiler::query::{Filter, MemberRef, SemanticQuery};
use terrane_compiler::sql::CompiledSql;
use terrane_compiler::types::Granularity;

use crate::ports::preaggregations::{ComputedQueries, QueryShape};

/// The largest number of shapes that are counted between two reads. Further shapes are dropped.
const MAX_SHAPES: usize = 1_000;
/// The largest number of members in a shape. A query with more members would not benefit from a pre-aggregation.
const MAX_MEMBERS: usize = 50;
/// The largest size of the names of filtered dimensions or of all members, in bytes. If a query exceeds it, they are
/// recorded as unknown.
const MAX_NAME_BYTES: usize = 1_000;
/// The largest depth to which metrics that refer to metrics are followed.
const MAX_DEPTH: usize = 50;

/// Counts the executed queries of each shape, for recommendations of pre-aggregations.
#[derive(Debug, Default)]
pub(super) struct QueryHistory {
    shapes: Mutex<HashMap<QueryShape, ComputedQueries>>,
}

impl QueryHistory {
    /// Counts a query and the time that the warehouse took for it. Cubes that a pre-aggregation served are left out.
    pub(super) fn record(
        &self,
        model: &Model,
        query: &SemanticQuery,
        sql: &CompiledSql,
        waited: Duration,
        now: Timestamp,
    ) {
        if query.ungrouped {
            return;
        }
        let is_served = |cube: &str| sql.rollups.iter().any(|fact| fact.served.is_some() && &*fact.cube == cube);
        let mut shapes = self.shapes.lock().unwrap_or_else(PoisonError::into_inner);
        for shape in shapes_of(model, query).into_iter().filter(|shape| !is_served(&shape.cube)) {
            if shapes.len() >= MAX_SHAPES && !shapes.contains_key(&shape) {
                continue;
            }
            let new = || ComputedQueries { shape: shape.clone(), queries: 0, warehouse: Duration::ZERO, last_at: now };
            let entry = shapes.entry(shape.clone()).or_insert_with(new);
            (entry.queries, entry.last_at) = (entry.queries + 1, now);
            entry.warehouse += waited;
        }
    }

    /// Returns and clears the counts.
    pub(super) fn take(&self) -> Vec<ComputedQueries> {
        let shapes = std::mem::take(&mut *self.shapes.lock().unwrap_or_else(PoisonError::into_inner));
        shapes.into_values().collect()
    }
}

/// Returns a shape for each cube whose measures a query reads.
fn shapes_of(model: &Model, query: &SemanticQuery) -> Vec<QueryShape> {
    let default = query.cube.as_deref();
    let mut measures: BTreeMap<CubeId, BTreeSet<Arc<str>>> = BTreeMap::new();
    for value in &query.values {
        add_measures(model, value, default, &mut measures);
    }
    let mut dimensions: BTreeSet<Arc<str>> = BTreeSet::new();
    let mut time: Option<(Arc<str>, Granularity)> = None;
    let mut add_time = |name: Arc<str>, granularity: Option<Granularity>| {
        let granularity = granularity.unwrap_or(Granularity::Day);
        time = match time.take() {
            Some((known, finest)) if known == name => Some((known, finest.min(granularity))),
            // A pre-aggregation has one time dimension; the first one of the query is chosen.
            Some(known) => Some(known),
            None => Some((name, granularity)),
        };
    };
    for dimension in &query.time_dimensions {
        let granularity = dimension.granularity.or(dimension.member.granularity);
        add_time(full_name(&dimension.member, default), granularity);
    }
    if let Some(range) = &query.time_range
        && let Some(member) = &range.member
    {
        add_time(full_name(member, default), range.granularity.or(member.granularity));
    }
    for dimension in &query.dimensions {
        match dimension.granularity {
            Some(granularity) => add_time(full_name(dimension, default), Some(granularity)),
            None => _ = dimensions.insert(full_name(dimension, default)),
        }
    }
    let mut filtered = Vec::new();
    query.filters.iter().for_each(|filter| filter_members(filter, &mut filtered));
    let is_dimension = |name: &str| matches!(member_named(model, name), Some(Member::Dimension(_)));
    dimensions.extend(filtered.iter().map(|member| full_name(member, default)).filter(|name| is_dimension(name)));
    if let Some((name, _)) = &time {
        dimensions.remove(name);
    }
    let shape = |(cube, measures): (CubeId, BTreeSet<Arc<str>>)| QueryShape {
        cube: Arc::clone(&model.cube(cube).name),
        measures: measures.into_iter().collect(),
        dimensions: dimensions.iter().cloned().collect(),
        segments: query.segments.iter().map(|segment| full_name(segment, default)).collect(),
        time: time.clone(),
    };
    let shapes = measures.into_iter().map(shape);
    shapes.filter(|shape| shape.measures.len() + shape.dimensions.len() <= MAX_MEMBERS).collect()
}

/// Returns the dimensions that a query filters by, as `cube.dimension`, sorted and separated by commas; `None` if they
/// are unknown. A range of time without a dimension filters the primary time dimension of each cube whose measures are
/// read.
pub(super) fn filtered_dimensions(model: &Model, query: &SemanticQuery) -> Option<Arc<str>> {
    let default = query.cube.as_deref();
    let mut members = Vec::new();
    query.filters.iter().for_each(|filter| filter_members(filter, &mut members));
    members.extend(query.time_dimensions.iter().filter(|time| time.range.is_some()).map(|time| &time.member));
    members.extend(query.time_range.iter().filter_map(|range| range.member.as_ref()));
    for computed in &query.computed {
        computed.value.for_each_member(&mut |member, is_condition| {
            if is_condition {
                members.push(member);
            }
        });
    }
    let mut names = BTreeSet::new();
    for member in members {
        if let Some(Member::Dimension(id)) = member_named(model, &full_name(member, default)) {
            names.insert(dimension_name(model, id));
        }
    }
    if query.time_range.as_ref().is_some_and(|range| range.member.is_none()) {
        let mut measures = BTreeMap::new();
        query.values.iter().for_each(|value| add_measures(model, value, default, &mut measures));
        let times = measures.into_keys().filter_map(|cube| Some((cube, model.cube(cube).primary_time?)));
        names.extend(times.map(|(cube, index)| dimension_name(model, DimensionId { cube, index })));
    }
    joined(&names)
}

/// Returns the members and metrics that a query names, as `cube.member` or the name of the metric, sorted and separated
/// by commas; `None` if they are unknown, or if the query has no measures, as lists of values have none.
pub(super) fn named_members(model: &Model, query: &SemanticQuery) -> Option<Arc<str>> {
    if query.values.is_empty() && query.computed.is_empty() {
        return None;
    }
    let default = query.cube.as_deref();
    let mut members: Vec<&MemberRef> = query.values.iter().chain(&query.dimensions).collect();
    members.extend(query.time_dimensions.iter().map(|time| &time.member));
    query.filters.iter().for_each(|filter| filter_members(filter, &mut members));
    query.computed.iter().for_each(|one| one.value.for_each_member(&mut |member, _| members.push(member)));
    let names = members.into_iter().map(|member| full_name(member, default).to_string());
    let is_known = |name: &String| member_named(model, name).is_some() || model.metric_named(name).is_some();
    joined(&names.filter(is_known).collect())
}

/// Returns the names separated by commas; `None` if they are too long.
fn joined(names: &BTreeSet<String>) -> Option<Arc<str>> {
    let bytes: usize = names.iter().map(|name| name.len() + 1).sum();
    (bytes <= MAX_NAME_BYTES).then(|| names.iter().map(String::as_str).collect::<Vec<_>>().join(",").into())
}

/// Returns the name as `cube.dimension`. A dimension of an alias gets the name of the original cube.
fn dimension_name(model: &Model, id: DimensionId) -> String {
    let cube = model.cube(id.cube);
    let cube = cube.alias_of.map_or(cube, |original| model.cube(original));
    format!("{}.{}", cube.name, model.dimension(id).name)
}

fn add_measures(
    model: &Model,
    value: &MemberRef,
    default: Option<&str>,
    measures: &mut BTreeMap<CubeId, BTreeSet<Arc<str>>>,
) {
    if let Some(Member::Measure(id)) = member_named(model, &full_name(value, default)) {
        add_measure(model, id, measures);
    } else if let Some(metric) = model.metric_named(&value.text) {
        add_metric(model, metric, measures, 0);
    }
}

fn add_measure(model: &Model, id: MeasureId, measures: &mut BTreeMap<CubeId, BTreeSet<Arc<str>>>) {
    measures.entry(id.cube).or_default().insert(Arc::clone(&model.measure(id).name));
}

fn add_metric(model: &Model, metric: MetricId, measures: &mut BTreeMap<CubeId, BTreeSet<Arc<str>>>, depth: usize) {
    let mut metrics = Vec::new();
    model.metric(metric).body.for_each(&mut |part| match part {
        SqlPart::Measure(id) => add_measure(model, *id, measures),
        SqlPart::Metric(id) => metrics.push(*id),
        _ => {}
    });
    if depth < MAX_DEPTH {
        metrics.into_iter().for_each(|id| add_metric(model, id, measures, depth + 1));
    }
}

fn filter_members<'f>(filter: &'f Filter, found: &mut Vec<&'f MemberRef>) {
    match filter {
        Filter::Condition { member, .. } => found.push(member),
        Filter::And(all) | Filter::Or(all) => all.iter().for_each(|filter| filter_members(filter, found)),
        Filter::Not(filter) => filter_members(filter, found),
        Filter::NoRow { .. } => {}
    }
}

/// Returns the name as `cube.member`, without a granularity.
fn full_name(member: &MemberRef, default: Option<&str>) -> Arc<str> {
    match member.cube().or(default) {
        Some(cube) => format!("{cube}.{}", member.member()).into(),
        None => member.member().into(),
    }
}

/// Finds a member by its name `cube.member`.
pub(crate) fn member_named(model: &Model, name: &str) -> Option<Member> {
    let (cube, member) = name.split_once('.')?;
    model.cube_named(cube)?.member(member)
}
