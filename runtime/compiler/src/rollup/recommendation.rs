//! Recommended pre-aggregations.
//!
//! In: the shapes of queries that ran, with the number of times. Out: the definitions that would serve most of them, as
//! YAML. Queries that differ little share a definition, so that few tables are built; those that existing definitions
//! serve are left out. Absent: the record of queries, and whether the tables are worth their cost.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use super::RollupOf;
use super::shape::{FactShape, ShapeTime, finest};
use crate::model::Model;
use crate::types::Granularity;

/// Dimensions by which a shared definition may exceed any query that it is for.
const MAX_ADDED_DIMENSIONS: usize = 2;

/// A definition that would serve queries.
#[derive(Debug, Clone, PartialEq)]
pub struct Recommendation {
    pub cube: Arc<str>,
    pub name: String,
    /// An item of the cube's list `pre_aggregations`.
    pub yaml: String,
    /// The number of runs that it would serve.
    pub queries: u64,
}

/// Recommends at most `most` definitions, those first that serve the most queries.
pub fn recommend(model: &Model, shapes: &[(FactShape, u64)], most: usize) -> Vec<Recommendation> {
    let mut open: Vec<&(FactShape, u64)> = shapes.iter().filter(|(shape, _)| !is_served(model, shape)).collect();
    // Those with a time first: without one, a query is served by a definition of any time.
    open.sort_by_key(|(shape, count)| (shape.time.is_none(), std::cmp::Reverse(*count), shape));
    let mut drafts: Vec<Draft> = Vec::new();
    for (shape, count) in open {
        let fewest = shape.dimensions.len();
        let shared = drafts.iter_mut().find_map(|draft| Some((draft.with(shape)?, draft)));
        match shared {
            Some((merged, draft)) => {
                *draft = Draft { shape: merged, queries: draft.queries + count, fewest: draft.fewest.min(fewest) };
            }
            None => drafts.push(Draft { shape: shape.clone(), queries: *count, fewest }),
        }
    }
    drafts.sort_by_key(|draft| (std::cmp::Reverse(draft.queries), draft.shape.clone()));
    let mut names = BTreeSet::new();
    let named = drafts.into_iter().take(most).map(|Draft { shape, queries, .. }| {
        let name = name_of(model, &shape, &mut names);
        Recommendation { cube: Arc::clone(&shape.cube), yaml: yaml(&name, &shape), name, queries }
    });
    named.collect()
}

/// A definition in the making.
struct Draft {
    shape: FactShape,
    queries: u64,
    /// The number of dimensions of the smallest query that it is for.
    fewest: usize,
}

impl Draft {
    /// Returns the shape whose definition also serves another, if it is not much larger than any of them.
    fn with(&self, other: &FactShape) -> Option<FactShape> {
        let one = &self.shape;
        if one.cube != other.cube || ((one.is_exact || other.is_exact) && one != other) {
            return None;
        }
        let time = match (&one.time, &other.time) {
            // Days of several zones are not made of each other, and hours are many more rows than days.
            (Some(own), Some(time)) if own.dimension == time.dimension && own.zone == time.zone => {
                if own.granularity.is_sub_day() != time.granularity.is_sub_day() {
                    return None;
                }
                let granularity = finest(own.granularity, time.granularity);
                Some(ShapeTime { granularity, ..own.clone() })
            }
            (Some(_), Some(_)) => return None,
            (time, None) | (None, time) => time.clone(),
        };
        let dimensions = &one.dimensions | &other.dimensions;
        if dimensions.len() > self.fewest.min(other.dimensions.len()) + MAX_ADDED_DIMENSIONS {
            return None;
        }
        Some(FactShape {
            cube: Arc::clone(&one.cube),
            measures: &one.measures | &other.measures,
            dimensions,
            segments: &one.segments | &other.segments,
            time,
            is_exact: one.is_exact,
        })
    }
}

/// Returns whether an existing definition stores all that a shape reads.
fn is_served(model: &Model, shape: &FactShape) -> bool {
    RollupOf::all(model).filter(|of| of.cube.name == shape.cube).any(|of| {
        let rollup = of.rollup;
        let name = |cube, name: &str| -> Arc<str> { format!("{}.{name}", model.cube(cube).name).into() };
        let dimensions: BTreeSet<Arc<str>> =
            rollup.dimensions.iter().map(|id| name(id.cube, &model.dimension(*id).name)).collect();
        let segments: BTreeSet<Arc<str>> =
            rollup.segments.iter().map(|id| name(id.cube, &model.segment(*id).name)).collect();
        let measures: BTreeSet<Arc<str>> =
            rollup.measures.iter().map(|id| Arc::clone(&model.measure(*id).name)).collect();
        let has_time = shape.time.as_ref().is_none_or(|wanted| {
            rollup.time.as_ref().is_some_and(|time| {
                let is_zone = !time.is_local(model)
                    || wanted.zone.as_deref().unwrap_or("UTC") == time.zone.iana_name().unwrap_or("UTC");
                *model.dimension(time.dimension).name == *wanted.dimension
                    && time.step(model).nests_in(wanted.granularity)
                    && is_zone
            })
        });
        rollup.filters.is_empty()
            && has_time
            && shape.measures.is_subset(&measures)
            && shape.dimensions.is_subset(&dimensions)
            && shape.segments.is_subset(&segments)
            && (!shape.is_exact || shape.dimensions == dimensions)
    })
}

fn name_of(model: &Model, shape: &FactShape, names: &mut BTreeSet<(Arc<str>, String)>) -> String {
    let by = |dimension: &Arc<str>| dimension.rsplit('.').next().unwrap_or_default().to_lowercase();
    let is_plain = |part: &String| part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let mut parts: Vec<String> = shape.dimensions.iter().map(by).filter(is_plain).take(2).collect();
    parts.extend(shape.time.iter().map(|time| time.granularity.as_str().to_owned()));
    let base = if parts.is_empty() { "total".to_owned() } else { format!("by_{}", parts.join("_")) };
    let mut name = base.clone();
    let mut number = 1;
    let is_taken = |name: &str| RollupOf::named(model, &shape.cube, name).is_some();
    while is_taken(&name) || !names.insert((Arc::clone(&shape.cube), name.clone())) {
        number += 1;
        name = format!("{base}_{number}");
    }
    name
}

fn yaml(name: &str, shape: &FactShape) -> String {
    let mut text = format!("- name: {name}\n");
    let own = format!("{}.", shape.cube);
    let list = |names: &BTreeSet<Arc<str>>| {
        let names: Vec<String> = names.iter().map(|name| scalar(name.strip_prefix(&*own).unwrap_or(name))).collect();
        names.join(", ")
    };
    for (key, names) in
        [("measures", &shape.measures), ("dimensions", &shape.dimensions), ("segments", &shape.segments)]
    {
        if !names.is_empty() {
            // Writing to a String never fails.
            let _ = writeln!(text, "  {key}: [{}]", list(names));
        }
    }
    if let Some(time) = &shape.time {
        let _ = writeln!(text, "  time_dimension: {}\n  granularity: {}", scalar(&time.dimension), time.granularity);
        let partition = match time.granularity {
            step if step.is_sub_day() => Some(Granularity::Month),
            Granularity::Day => Some(Granularity::Year),
            _ => None,
        };
        if let Some(partition) = partition {
            let _ = writeln!(text, "  partition_granularity: {partition}");
        }
        if let Some(zone) = &time.zone {
            let _ = writeln!(text, "  timezone: {zone}");
        }
    }
    text
}

/// A name as a scalar of YAML.
fn scalar(name: &str) -> String {
    let is_plain = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'))
        && !["true", "false", "null", "yes", "no", "on", "off", "y", "n"].contains(&&*name.to_lowercase());
    if is_plain { name.to_owned() } else { format!("'{}'", name.replace('\'', "''")) }
}
