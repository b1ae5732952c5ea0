//! Removes broken items from a model.
//!
//! In: a model and its broken items, including all items that depend on them. Out: the same model without these items,
//! with new ids. A model without errors is unchanged.

use std::sync::{Arc, OnceLock};

use super::cycles::{self, Item, Items};
use super::{Aggregate, DimensionId, MeasureId, MeasureKind, Member, MetricId, Model, SegmentId, Snippet, SqlPart};

/// The new index of each old one; `None` if the item is removed.
struct Renumbered {
    dimensions: Vec<Vec<Option<u32>>>,
    measures: Vec<Vec<Option<u32>>>,
    metrics: Vec<Option<u32>>,
}

pub(super) fn prune(model: &mut Model, broken: Items) {
    if broken.is_empty() {
        return;
    }
    let numbers = |count: usize, is_broken: &dyn Fn(u32) -> bool| {
        let mut next = 0;
        (0..count as u32)
            .map(|index| {
                (!is_broken(index)).then(|| {
                    next += 1;
                    next - 1
                })
            })
            .collect::<Vec<_>>()
    };
    let cubes = model.cubes.iter();
    let renumbered = Renumbered {
        dimensions: cubes
            .clone()
            .map(|cube| {
                numbers(cube.dimensions.len(), &|index| {
                    broken.contains(&Item::Dimension(DimensionId { cube: cube.id, index }))
                })
            })
            .collect(),
        measures: cubes
            .map(|cube| {
                numbers(cube.measures.len(), &|index| {
                    broken.contains(&Item::Measure(MeasureId { cube: cube.id, index }))
                })
            })
            .collect(),
        metrics: numbers(model.metrics.len(), &|index| broken.contains(&Item::Metric(MetricId(index)))),
    };
    let touched = touched(model, &broken);
    for (at, _) in touched.iter().enumerate().filter(|(_, is_touched)| **is_touched) {
        cube(model, at, &broken, &renumbered);
    }
    let mut retained = renumbered.metrics.iter();
    model.metrics.retain(|_| retained.next().is_some_and(Option::is_some));
    for metric in &mut model.metrics {
        renumbered.snippet(&mut metric.body);
    }
    model.metric_names =
        (0u32..).zip(&model.metrics).map(|(at, metric)| (Arc::clone(&metric.name), MetricId(at))).collect();
    model.join_paths = model.cubes.iter().map(|_| OnceLock::new()).collect();
    model.ties = model.cubes.iter().map(|_| OnceLock::new()).collect();
}

/// Returns for each cube whether it changes, because an item of it, or of a cube that it refers to, is removed.
fn touched(model: &Model, broken: &Items) -> Vec<bool> {
    let mut is_broken = vec![false; model.cubes.len()];
    broken.iter().filter_map(|item| cycles::cube_of(*item)).for_each(|cube| is_broken[cube.0 as usize] = true);
    let mut touched = is_broken.clone();
    for (cube, touched) in model.cubes.iter().zip(&mut touched).filter(|(_, is_touched)| !**is_touched) {
        let references = cycles::of_cube(cube).into_iter().flat_map(|(_, found)| found);
        *touched = references.filter_map(cycles::cube_of).any(|to| is_broken[to.0 as usize]);
    }
    touched
}

fn cube(model: &mut Model, at: usize, broken: &Items, renumbered: &Renumbered) {
    let cube = &mut model.cubes[at];
    let id = cube.id;
    let is_sound = |index: &mut u32, item: &dyn Fn(u32) -> Item| {
        *index += 1;
        !broken.contains(&item(*index - 1))
    };
    let (mut d, mut m, mut s, mut j) = (0, 0, 0, 0);
    cube.dimensions.retain(|_| is_sound(&mut d, &|index| Item::Dimension(DimensionId { cube: id, index })));
    cube.measures.retain(|_| is_sound(&mut m, &|index| Item::Measure(MeasureId { cube: id, index })));
    cube.segments.retain(|_| is_sound(&mut s, &|index| Item::Segment(SegmentId { cube: id, index })));
    cube.joins.retain(|_| is_sound(&mut j, &|index| Item::Join(id, index)));
    let dimensions = &renumbered.dimensions[at];
    // A part of a key does not identify rows.
    let key: Option<Vec<u32>> = cube.primary_key.iter().map(|index| dimensions[*index as usize]).collect();
    cube.primary_key = key.unwrap_or_default();
    cube.primary_time = cube.primary_time.and_then(|index| dimensions[index as usize]);
    for dimension in &mut cube.dimensions {
        renumbered.snippet(&mut dimension.sql);
    }
    for measure in &mut cube.measures {
        match &mut measure.kind {
            MeasureKind::Aggregate(aggregate)
            | MeasureKind::RunningTotal { aggregate, .. }
            | MeasureKind::Rolling { aggregate, .. } => renumbered.aggregate(aggregate),
            MeasureKind::Number(snippet) => renumbered.snippet(snippet),
        }
    }
    for segment in &mut cube.segments {
        renumbered.snippet(&mut segment.sql);
    }
    for join in &mut cube.joins {
        renumbered.snippet(&mut join.on);
    }
    cube.members.clear();
    for (index, dimension) in (0u32..).zip(&cube.dimensions) {
        cube.members.insert(Arc::clone(&dimension.name), Member::Dimension(DimensionId { cube: id, index }));
    }
    for (index, measure) in (0u32..).zip(&cube.measures) {
        cube.members.insert(Arc::clone(&measure.name), Member::Measure(MeasureId { cube: id, index }));
    }
    for (index, segment) in (0u32..).zip(&cube.segments) {
        cube.members.insert(Arc::clone(&segment.name), Member::Segment(SegmentId { cube: id, index }));
    }
}

impl Renumbered {
    /// Renumbers the references of a snippet. Items that depend on a removed one are removed as well, so each reference
    /// has a new index.
    fn snippet(&self, snippet: &mut Snippet) {
        for part in &mut snippet.parts {
            match part {
                SqlPart::Dimension(id) => {
                    id.index = self.dimensions[id.cube.0 as usize][id.index as usize].unwrap_or(id.index)
                }
                SqlPart::Measure(id) => {
                    id.index = self.measures[id.cube.0 as usize][id.index as usize].unwrap_or(id.index)
                }
                SqlPart::Metric(id) => id.0 = self.metrics[id.0 as usize].unwrap_or(id.0),
                SqlPart::Aggregate(aggregate) => self.aggregate(aggregate),
                SqlPart::Divide(left, right) => {
                    self.snippet(left);
                    self.snippet(right);
                }
                SqlPart::Text(_) | SqlPart::Column { .. } | SqlPart::User(_) => {}
            }
        }
    }

    fn aggregate(&self, aggregate: &mut Aggregate) {
        for snippet in aggregate.argument.iter_mut().chain(&mut aggregate.filters) {
            self.snippet(snippet);
        }
    }
}
