//! References between items, and cycles in them.
//!
//! In: a model whose snippets are read. Out: diagnostics that show each cycle as its path. The items of a cycle, and
//! all items that depend on a broken one, are added to the broken items.

use rustc_hash::{FxHashMap, FxHashSet};

use super::source_text::SourceText;
use super::{
    Aggregate, Cube, CubeId, DimensionId, MeasureId, MeasureKind, MetricId, Model, SegmentId, Snippet, SqlPart,
};
use crate::diagnostic::{Code, Diagnostic, Span, Step, cycle_path};

/// A part of a project that contains SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Item {
    Dimension(DimensionId),
    Measure(MeasureId),
    Segment(SegmentId),
    Metric(MetricId),
    Join(CubeId, u32),
}

/// A set with a fast hash that does not resist chosen collisions. The model numbers the items, so no input can choose
/// their numbers.
pub(super) type Items = FxHashSet<Item>;

/// Collects the items that a snippet refers to, including those inside aggregates.
pub(super) fn references(snippet: &Snippet, found: &mut Vec<Item>) {
    for part in &snippet.parts {
        match part {
            SqlPart::Dimension(id) => found.push(Item::Dimension(*id)),
            SqlPart::Measure(id) => found.push(Item::Measure(*id)),
            SqlPart::Metric(id) => found.push(Item::Metric(*id)),
            SqlPart::Aggregate(aggregate) => of_aggregate(aggregate, found),
            SqlPart::Divide(left, right) => {
                references(left, found);
                references(right, found);
            }
            SqlPart::Text(_) | SqlPart::Column { .. } | SqlPart::User(_) => {}
        }
    }
}

fn of_aggregate(aggregate: &Aggregate, found: &mut Vec<Item>) {
    for snippet in aggregate.argument.iter().chain(&aggregate.filters) {
        references(snippet, found);
    }
}

fn of_measure(kind: &MeasureKind, found: &mut Vec<Item>) {
    match kind {
        MeasureKind::Aggregate(aggregate)
        | MeasureKind::RunningTotal { aggregate, .. }
        | MeasureKind::Rolling { aggregate, .. } => of_aggregate(aggregate, found),
        MeasureKind::Number(snippet) => references(snippet, found),
    }
}

/// An item and the items that it refers to.
pub(super) type Edge = (Item, Vec<Item>);

fn put(edges: &mut Vec<Edge>, item: Item, found: Vec<Item>) {
    if !found.is_empty() {
        edges.push((item, found));
    }
}

/// Returns the items of a cube that refer to others, each with the items that it refers to.
pub(super) fn of_cube(cube: &Cube) -> Vec<Edge> {
    let mut edges = Vec::new();
    for (index, dimension) in (0u32..).zip(&cube.dimensions) {
        let mut found = Vec::new();
        references(&dimension.sql, &mut found);
        put(&mut edges, Item::Dimension(DimensionId { cube: cube.id, index }), found);
    }
    for (index, measure) in (0u32..).zip(&cube.measures) {
        let mut found = Vec::new();
        of_measure(&measure.kind, &mut found);
        put(&mut edges, Item::Measure(MeasureId { cube: cube.id, index }), found);
    }
    for (index, segment) in (0u32..).zip(&cube.segments) {
        let mut found = Vec::new();
        references(&segment.sql, &mut found);
        put(&mut edges, Item::Segment(SegmentId { cube: cube.id, index }), found);
    }
    for (index, join) in (0u32..).zip(&cube.joins) {
        let mut found = Vec::new();
        references(&join.on, &mut found);
        put(&mut edges, Item::Join(cube.id, index), found);
    }
    edges
}

/// Returns the references of metrics.
pub(super) fn of_metrics(model: &Model) -> Vec<Edge> {
    let mut edges = Vec::new();
    for (index, metric) in (0u32..).zip(&model.metrics) {
        let mut found = Vec::new();
        references(&metric.body, &mut found);
        put(&mut edges, Item::Metric(MetricId(index)), found);
    }
    edges
}

/// The references between items, with an index by item.
pub(super) struct References<'e> {
    pub(super) edges: &'e [Edge],
    /// For each cube, the numbers of its first dimension, measure, segment and join.
    starts: Vec<[usize; 4]>,
    first_metric: usize,
    /// For each item, by its number, the index of its edge in `edges`. `None` if the item refers to no other item.
    found: Vec<Option<u32>>,
}

impl<'e> References<'e> {
    pub(super) fn of(model: &Model, edges: &'e [Edge]) -> Self {
        let mut next = 0;
        let starts = model.cubes.iter().map(|cube| {
            let counts = [cube.dimensions.len(), cube.measures.len(), cube.segments.len(), cube.joins.len()];
            counts.map(|count| {
                next += count;
                next - count
            })
        });
        let starts = starts.collect();
        let found = vec![None; next + model.metrics.len()];
        let mut references = References { edges, starts, first_metric: next, found };
        for (at, (item, _)) in (0u32..).zip(edges) {
            let number = references.number(*item);
            references.found[number] = Some(at);
        }
        references
    }

    /// Returns the number of an item. Numbers start at 0 and have no gaps.
    pub(super) fn number(&self, item: Item) -> usize {
        match item {
            Item::Dimension(id) => self.starts[id.cube.0 as usize][0] + id.index as usize,
            Item::Measure(id) => self.starts[id.cube.0 as usize][1] + id.index as usize,
            Item::Segment(id) => self.starts[id.cube.0 as usize][2] + id.index as usize,
            Item::Join(cube, index) => self.starts[cube.0 as usize][3] + index as usize,
            Item::Metric(id) => self.first_metric + id.0 as usize,
        }
    }

    pub(super) fn count(&self) -> usize {
        self.found.len()
    }

    fn edge_of(&self, item: Item) -> Option<usize> {
        self.found[self.number(item)].map(|at| at as usize)
    }

    /// Returns the items that an item refers to.
    pub(super) fn from(&self, item: Item) -> &'e [Item] {
        self.edge_of(item).map_or(&[], |at| &self.edges[at].1)
    }
}

/// Reports cycles. Adds to `broken` the items of each cycle, and all items that depend on a broken one.
pub(super) fn report(
    model: &Model,
    source_text: &SourceText<'_, '_>,
    references: &References<'_>,
    broken: &mut Items,
    diagnostics: &mut Vec<Diagnostic>,
) {
    cycles(model, source_text, references, broken, diagnostics);
    spread(references.edges, broken);
}

/// Adds to `broken` every item that depends on a broken one.
pub(super) fn spread(edges: &[Edge], broken: &mut Items) {
    if broken.is_empty() {
        return;
    }
    let mut dependents: FxHashMap<Item, Vec<Item>> = FxHashMap::default();
    for (item, found) in edges {
        for target in found {
            dependents.entry(*target).or_default().push(*item);
        }
    }
    let mut open: Vec<Item> = broken.iter().copied().collect();
    while let Some(item) = open.pop() {
        for dependent in dependents.get(&item).into_iter().flatten() {
            if broken.insert(*dependent) {
                open.push(*dependent);
            }
        }
    }
}

/// Searches for cycles, depth first. The search is not recursive, because a chain may contain every item of the
/// project.
fn cycles(
    model: &Model,
    source_text: &SourceText<'_, '_>,
    references: &References<'_>,
    broken: &mut Items,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let edges = references.edges;
    let mut is_done = vec![false; edges.len()];
    let mut is_open = vec![false; edges.len()];
    let mut stack: Vec<(usize, usize)> = Vec::new();
    for start in 0..edges.len() {
        stack.push((start, 0));
        while let Some((at, next)) = stack.pop() {
            if next == 0 {
                if is_done[at] {
                    continue;
                }
                is_open[at] = true;
            }
            let Some(target) = edges[at].1.get(next) else {
                (is_done[at], is_open[at]) = (true, false);
                continue;
            };
            stack.push((at, next + 1));
            let Some(target) = references.edge_of(*target) else { continue };
            if is_open[target] {
                let from = stack.iter().position(|(open, _)| *open == target).unwrap_or(0);
                let cycle: Vec<Item> = stack[from..].iter().map(|(open, _)| edges[*open].0).collect();
                if !cycle.iter().any(|item| broken.contains(item)) {
                    diagnostics.extend(diagnostic(model, source_text, &cycle));
                }
                broken.extend(cycle);
            } else if !is_done[target] {
                stack.push((target, 0));
            }
        }
    }
}

/// Returns the diagnostic of a cycle. A cycle of aliases has none: it is reported for their targets.
fn diagnostic(model: &Model, source_text: &SourceText<'_, '_>, items: &[Item]) -> Option<Diagnostic> {
    if items.iter().all(|item| cube_of(*item).is_some_and(|cube| model.cube(cube).alias_of.is_some())) {
        return None;
    }
    let first = *items.first()?;
    let following = items.iter().skip(1).chain(items.first());
    let path: Vec<Step> = items
        .iter()
        .zip(following)
        .map(|(item, next)| Step {
            name: name(model, *item).into(),
            span: source_text.reference(model, *item, *next).or_else(|| span(model, *item)),
        })
        .collect();
    let hint = match (first, items.len()) {
        (Item::Dimension(id), 1) => {
            format!("Write `{{CUBE}}.{}` for the column of that name.", model.dimension(id).name)
        }
        (Item::Dimension(_), _) => "Let one of them refer to columns only.".to_owned(),
        (Item::Metric(_), _) => "Let one of them refer to measures only, as in `cube.measure`.".to_owned(),
        _ => "Let one of them aggregate columns instead, as in `SUM(amount)`.".to_owned(),
    };
    let message = format!("these refer to one another in a cycle: {}", cycle_path(&path));
    let diagnostic = Diagnostic::error(Code::ReferenceCycle, message).hint(hint);
    let place = path.first().and_then(|step| step.span.clone());
    let diagnostic = diagnostic.along(path);
    Some(match place {
        Some(span) => diagnostic.at(span),
        None => diagnostic,
    })
}

pub(super) fn cube_of(item: Item) -> Option<CubeId> {
    match item {
        Item::Dimension(id) => Some(id.cube),
        Item::Measure(id) => Some(id.cube),
        Item::Segment(id) => Some(id.cube),
        Item::Join(cube, _) => Some(cube),
        Item::Metric(_) => None,
    }
}

pub(super) fn name(model: &Model, item: Item) -> String {
    let of = |cube: CubeId, member: &str| format!("{}.{member}", model.cube(cube).name);
    match item {
        Item::Dimension(id) => of(id.cube, &model.dimension(id).name),
        Item::Measure(id) => of(id.cube, &model.measure(id).name),
        Item::Segment(id) => of(id.cube, &model.segment(id).name),
        Item::Metric(id) => model.metric(id).name.to_string(),
        Item::Join(cube, index) => of(cube, &model.cube(model.cube(cube).joins[index as usize].target).name),
    }
}

pub(super) fn span(model: &Model, item: Item) -> Option<Span> {
    match item {
        Item::Dimension(id) => model.dimension(id).span.clone(),
        Item::Measure(id) => model.measure(id).span.clone(),
        Item::Metric(id) => model.metric(id).span.clone(),
        Item::Segment(_) | Item::Join(..) => None,
    }
}
