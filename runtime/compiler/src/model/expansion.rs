//! How much SQL a member becomes once everything it refers to is written out.
//!
//! In: a model without circles among its sound items. Out: diagnostics for members that grow beyond
//! bounds, so that no query does, and for join conditions that would need further joins to be
//! evaluated. What is wrong joins the broken items, with whatever stands on it.

use rustc_hash::FxBuildHasher;

use super::cycles::{self, ByItem, Edge, Item, Items};
use super::written::Written;
use super::{Cube, CubeId, MeasureKind, Model, Snippet, SqlPart};
use crate::diagnostic::Diagnostic;

/// References inside references.
const MAX_DEPTH: usize = 100;
/// Pieces of SQL.
const MAX_PARTS: usize = 10_000;

#[derive(Debug, Clone, Copy, Default)]
struct Size {
    depth: usize,
    parts: usize,
    /// Columns of other cubes than the item's own are read.
    is_foreign: bool,
}

/// `edges`: what refers to what.
pub(super) fn check(model: &Model, edges: &[&Edge], broken: &mut Items, diagnostics: &mut Vec<Diagnostic>) {
    let before = broken.len();
    let references: ByItem<&[Item]> = edges.iter().map(|(item, found)| (*item, found.as_slice())).collect();
    let mut sizes: ByItem<Size> = ByItem::with_capacity_and_hasher(edges.len(), FxBuildHasher);
    for (item, _) in edges.iter().copied() {
        let item = *item;
        measure_item(model, item, &references, broken, &mut sizes);
        let Some(size) = sizes.get(&item).filter(|_| !broken.contains(&item)) else { continue };
        let (code, message, hint) = if size.depth > MAX_DEPTH {
            ("reference-depth", format!("refers to members over more than {MAX_DEPTH} steps"), "name columns sooner")
        } else if size.parts > MAX_PARTS {
            let message = format!("becomes more than {MAX_PARTS} pieces of SQL once its references are written out");
            ("reference-size", message, "move a part of it into the cube's `sql` or a model")
        } else if let Some(dimension) = foreign_side(model, item, &sizes) {
            let message = format!("compares `{dimension}`, which reads a cube that is not joined yet");
            ("join-needs-join", message, "compare columns of the two cubes alone")
        } else {
            continue;
        };
        broken.insert(item);
        if cycles::cube_of(item).is_none_or(|cube| model.cube(cube).alias_of.is_none()) {
            let name = cycles::name(model, item);
            let what = if matches!(item, Item::Join(..)) { "the join" } else { "the member" };
            let diagnostic = Diagnostic::error(code, format!("{what} `{name}` {message}")).hint(hint);
            diagnostics.push(match cycles::span(model, item) {
                Some(span) => diagnostic.at(span),
                None => diagnostic,
            });
        }
    }
    if broken.len() > before {
        cycles::spread(edges, broken);
    }
}

/// Depth first without recursion: a chain may be as long as the project is large.
fn measure_item(
    model: &Model,
    start: Item,
    references: &ByItem<&[Item]>,
    broken: &Items,
    sizes: &mut ByItem<Size>,
) {
    let mut open = vec![(start, false)];
    while let Some((item, has_parts)) = open.pop() {
        if sizes.contains_key(&item) || broken.contains(&item) {
            continue;
        }
        let found = references.get(&item).copied().unwrap_or_default();
        if has_parts {
            let mut size = Size { depth: 0, parts: 1 + found.len(), is_foreign: is_foreign(model, item) };
            for part in found.iter().filter_map(|item| Some((cycles::cube_of(*item), sizes.get(item)?))) {
                size.depth = size.depth.max(part.1.depth + 1);
                size.parts = size.parts.saturating_add(part.1.parts);
                size.is_foreign |= part.1.is_foreign || part.0 != cycles::cube_of(item);
            }
            sizes.insert(item, size);
            continue;
        }
        open.push((item, true));
        open.extend(found.iter().filter(|item| !sizes.contains_key(item)).map(|item| (*item, false)));
    }
}

/// Whether a dimension's own text names columns of another cube.
fn is_foreign(model: &Model, item: Item) -> bool {
    let Item::Dimension(id) = item else { return false };
    names_other(&model.dimension(id).sql, id.cube)
}

fn names_other(snippet: &Snippet, own: CubeId) -> bool {
    let mut found = false;
    snippet.for_each(&mut |part| found |= matches!(part, SqlPart::Column { cube, .. } if *cube != own));
    found
}

/// A dimension in a join's condition that needs a join of its own.
fn foreign_side(model: &Model, item: Item, sizes: &ByItem<Size>) -> Option<String> {
    let Item::Join(cube, index) = item else { return None };
    let mut found = Vec::new();
    cycles::references(&model.cube(cube).joins[index as usize].on, &mut found);
    let foreign = found.into_iter().find(|item| sizes.get(item).is_some_and(|size| size.is_foreign))?;
    Some(cycles::name(model, foreign))
}

/// Whether a cube has a `number` measure that names no measure.
pub(super) fn has_constants(cube: &Cube) -> bool {
    cube.measures.iter().any(|measure| matches!(&measure.kind, MeasureKind::Number(sql) if !has_value(sql)))
}

fn has_value(sql: &Snippet) -> bool {
    let mut found = false;
    sql.for_each(&mut |part| found |= matches!(part, SqlPart::Measure(_) | SqlPart::Aggregate(_)));
    found
}

/// A `number` measure that names no measure has no rows to be computed from. `cubes`: those that have any.
pub(super) fn check_constants(
    model: &Model,
    cubes: &[CubeId],
    written: &Written<'_, '_>,
    broken: &mut Items,
    diagnostics: &mut Vec<Diagnostic>,
) {
    for cube in cubes.iter().map(|id| model.cube(*id)) {
        for (index, measure) in (0u32..).zip(&cube.measures) {
            let MeasureKind::Number(snippet) = &measure.kind else { continue };
            let item = Item::Measure(super::MeasureId { cube: cube.id, index });
            if has_value(snippet) || broken.contains(&item) {
                continue;
            }
            broken.insert(item);
            if cube.alias_of.is_none() {
                let message = format!("number measure `{}` names no measure and aggregates nothing", measure.name);
                let hint = "name a measure in braces, as in {revenue}, or aggregate, as in SUM(amount)";
                let diagnostic = Diagnostic::error("constant-measure", message).hint(hint);
                diagnostics.push(match written.whole(item).or_else(|| measure.span.clone()) {
                    Some(span) => diagnostic.at(span),
                    None => diagnostic,
                });
            }
        }
    }
}
