//! Limits the size of a member's SQL with all its references expanded.
//!
//! In: a model whose valid items form no cycles. Out: diagnostics for members whose SQL exceeds the limits, and for
//! join conditions that need further joins. These items, and those that depend on them, are added to the broken items,
//! so that the SQL of no query exceeds the limits.

use super::cycles::{self, Item, Items, References};
use super::source_text::SourceText;
use super::{CubeId, MeasureKind, Model, Snippet, SqlPart};
use crate::diagnostic::{Code, Diagnostic};

/// The largest depth of nested references.
const MAX_DEPTH: usize = 100;
/// The largest number of parts of an expanded text.
const MAX_PARTS: usize = 10_000;

#[derive(Debug, Clone, Copy, Default)]
struct Size {
    depth: usize,
    parts: usize,
    /// True if the item reads columns of cubes other than its own.
    is_foreign: bool,
}

/// The sizes that are known so far, by the items' numbers.
struct Sizes<'r> {
    references: &'r References<'r>,
    known: Vec<Option<Size>>,
}

impl Sizes<'_> {
    fn of(&self, item: Item) -> Option<&Size> {
        self.known[self.references.number(item)].as_ref()
    }
}

pub(super) fn check(model: &Model, references: &References<'_>, broken: &mut Items, diagnostics: &mut Vec<Diagnostic>) {
    let before = broken.len();
    let mut sizes = Sizes { references, known: std::iter::repeat_with(|| None).take(references.count()).collect() };
    let mut open = Vec::new();
    for (item, _) in references.edges {
        let item = *item;
        open.push((item, false));
        measure_items(model, &mut open, broken, &mut sizes);
        let Some(size) = sizes.of(item).filter(|_| !broken.contains(&item)) else { continue };
        let (code, message, hint) = if size.depth > MAX_DEPTH {
            (
                Code::ReferenceDepth,
                format!("refers to members over more than {MAX_DEPTH} steps"),
                "Refer to columns within fewer steps.",
            )
        } else if size.parts > MAX_PARTS {
            let message = format!("expands to more than {MAX_PARTS} pieces of SQL");
            (Code::ReferenceSize, message, "Move a part of it into the cube's `sql` or a model.")
        } else if let Some(dimension) = foreign_side(model, item, &sizes) {
            let message = format!("compares `{dimension}`, which reads a cube that is not joined yet");
            (Code::JoinNeedsJoin, message, "Compare only columns of the two cubes.")
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
        cycles::spread(references.edges, broken);
    }
}

/// Measures items, depth first. The search is not recursive, because a chain may contain every item of the project.
fn measure_items(model: &Model, open: &mut Vec<(Item, bool)>, broken: &Items, sizes: &mut Sizes<'_>) {
    while let Some((item, has_parts)) = open.pop() {
        if sizes.of(item).is_some() || broken.contains(&item) {
            continue;
        }
        let found = sizes.references.from(item);
        if has_parts || found.is_empty() {
            let mut size = Size { depth: 0, parts: 1 + found.len(), is_foreign: is_foreign(model, item) };
            for part in found.iter().filter_map(|item| Some((cycles::cube_of(*item), sizes.of(*item)?))) {
                size.depth = size.depth.max(part.1.depth + 1);
                size.parts = size.parts.saturating_add(part.1.parts);
                size.is_foreign |= part.1.is_foreign || part.0 != cycles::cube_of(item);
            }
            let number = sizes.references.number(item);
            sizes.known[number] = Some(size);
            continue;
        }
        open.push((item, true));
        open.extend(found.iter().filter(|item| sizes.of(**item).is_none()).map(|item| (*item, false)));
    }
}

/// Returns whether a dimension's own SQL names columns of another cube.
fn is_foreign(model: &Model, item: Item) -> bool {
    let Item::Dimension(id) = item else { return false };
    names_other(&model.dimension(id).sql, id.cube)
}

fn names_other(snippet: &Snippet, own: CubeId) -> bool {
    let mut found = false;
    snippet.for_each(&mut |part| found |= matches!(part, SqlPart::Column { cube, .. } if *cube != own));
    found
}

/// Returns a dimension of a join's condition that needs another join.
fn foreign_side(model: &Model, item: Item, sizes: &Sizes<'_>) -> Option<String> {
    let Item::Join(cube, index) = item else { return None };
    let mut found = Vec::new();
    cycles::references(&model.cube(cube).joins[index as usize].on, &mut found);
    let foreign = found.into_iter().find(|item| sizes.of(*item).is_some_and(|size| size.is_foreign))?;
    Some(cycles::name(model, foreign))
}

/// Returns whether a `number` measure refers to any measure or aggregate.
fn has_value(sql: &Snippet) -> bool {
    let mut found = false;
    sql.for_each(&mut |part| found |= matches!(part, SqlPart::Measure(_) | SqlPart::Aggregate(_)));
    found
}

/// Reports `number` measures that refer to no measure, because they cannot be computed from rows.
pub(super) fn check_constants(
    model: &Model,
    source_text: &SourceText<'_, '_>,
    broken: &mut Items,
    diagnostics: &mut Vec<Diagnostic>,
) {
    for cube in &model.cubes {
        for (index, measure) in (0u32..).zip(&cube.measures) {
            let MeasureKind::Number(snippet) = &measure.kind else { continue };
            let item = Item::Measure(super::MeasureId { cube: cube.id, index });
            if has_value(snippet) || broken.contains(&item) {
                continue;
            }
            broken.insert(item);
            if cube.alias_of.is_none() {
                let message =
                    format!("number measure `{}` refers to no measure and contains no aggregate", measure.name);
                let hint = "Name a measure in braces, as in `{revenue}`, or aggregate a column, as in `SUM(amount)`.";
                let diagnostic = Diagnostic::error(Code::ConstantMeasure, message).hint(hint);
                diagnostics.push(match source_text.whole(item).or_else(|| measure.span.clone()) {
                    Some(span) => diagnostic.at(span),
                    None => diagnostic,
                });
            }
        }
    }
}
