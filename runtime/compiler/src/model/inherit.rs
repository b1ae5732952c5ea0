//! Resolves `extends`: the members and joins of each cube including inherited ones.
//!
//! In: cube definitions. Out: one [`Merged`] per usable cube, in file order. A cube's own member replaces an inherited
//! one of the same name at its position. Names are unique among measures, dimensions and segments.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::diagnostic::{Code, Diagnostic, Step, cycle_path};
use crate::project::{
    CubeDefinition, Definitions, DimensionDefinition, JoinDefinition, MAX_ANCESTORS, MeasureDefinition,
    RefreshDefinition, RelationDefinition, SegmentDefinition, Text,
};
use crate::text::nearest::suggest;

/// The treatment of cubes whose relation cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WithoutRelation {
    /// Omits the cubes from the model.
    Omitted,
    /// Replaces the relation of each cube by a table with the name of the cube, so that its members are checked.
    Substituted,
}

/// A definition with the name of the cube that declares it. In the SQL of the definition, this name refers to the cube
/// that inherits the definition.
#[derive(Debug)]
pub(super) struct Inherited<'d, T> {
    pub(super) declared_in: &'d str,
    pub(super) item: &'d T,
}

impl<T> Clone for Inherited<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Inherited<'_, T> {}

pub(super) struct Merged<'d> {
    pub(super) definition: &'d CubeDefinition,
    /// True if the cube extends a cube that is unknown, so that inherited members and joins are missing.
    pub(super) is_partial: bool,
    pub(super) relation: Option<&'d RelationDefinition>,
    pub(super) refresh: Option<&'d RefreshDefinition>,
    pub(super) joins: Vec<Inherited<'d, JoinDefinition>>,
    pub(super) measures: Vec<Inherited<'d, MeasureDefinition>>,
    pub(super) dimensions: Vec<Inherited<'d, DimensionDefinition>>,
    pub(super) segments: Vec<Inherited<'d, SegmentDefinition>>,
}

/// Merges all cubes. Also returns the names of cubes that cannot be used and have been reported. With
/// [`WithoutRelation::Substituted`], a cube that extends an unknown cube is merged without that parent, so that its own
/// members are checked.
pub(super) fn merge<'d>(
    definitions: &'d Definitions,
    without_relation: WithoutRelation,
    diagnostics: &mut Vec<Diagnostic>,
) -> (Vec<Merged<'d>>, HashSet<&'d str>) {
    let by_name: HashMap<&str, &CubeDefinition> =
        definitions.cubes.iter().map(|cube| (&*cube.name.value, cube)).collect();
    let mut merged = Vec::with_capacity(definitions.cubes.len());
    let mut unusable = HashSet::new();
    for cube in &definitions.cubes {
        check_own_names(cube, diagnostics);
        let Ancestors { line, end } = ancestors(cube, &by_name, definitions);
        let has_placeholder = line.iter().any(|cube| definitions.placeholders.contains(&cube.name.value));
        let is_partial = has_placeholder || matches!(end, LineEnd::Unknown(_));
        let is_usable = match end {
            LineEnd::Complete => true,
            LineEnd::Unknown(diagnostic) => {
                diagnostics.extend(diagnostic);
                without_relation == WithoutRelation::Substituted
            }
            LineEnd::Refused(diagnostic) => {
                diagnostics.extend(diagnostic);
                false
            }
        };
        if is_usable {
            merged.push(Merged { is_partial, ..Merged::new(cube, &line) });
        } else {
            unusable.insert(&*cube.name.value);
        }
    }
    (merged, unusable)
}

/// A cube and the cubes that it extends, the most distant first.
struct Ancestors<'d> {
    line: Vec<&'d CubeDefinition>,
    end: LineEnd,
}

/// The end of a chain of `extends`. A problem is contained only if it is not reported elsewhere.
enum LineEnd {
    Complete,
    /// The most distant cube extends an unknown cube.
    Unknown(Option<Diagnostic>),
    /// The chain is a cycle, or too long.
    Refused(Option<Diagnostic>),
}

fn ancestors<'d>(
    cube: &'d CubeDefinition,
    by_name: &HashMap<&str, &'d CubeDefinition>,
    definitions: &'d Definitions,
) -> Ancestors<'d> {
    let mut line = vec![cube];
    let end = extend(&mut line, by_name, definitions);
    line.reverse();
    Ancestors { line, end }
}

/// Adds the cubes that the first cube of the line extends, the nearest first.
fn extend<'d>(
    line: &mut Vec<&'d CubeDefinition>,
    by_name: &HashMap<&str, &'d CubeDefinition>,
    definitions: &'d Definitions,
) -> LineEnd {
    let cube = line[0];
    let mut at = cube;
    while let Some(extends) = &at.extends {
        let Some(parent) = by_name.get(&*extends.value) else {
            // Reported for the cube that declares `extends`, not for the cubes that extend it.
            if definitions.unread.contains(&extends.value) || line.len() > 1 {
                return LineEnd::Unknown(None);
            }
            let known = by_name.keys().copied().filter(|name| *name != &*cube.name.value);
            return LineEnd::Unknown(Some(
                Diagnostic::error(
                    Code::UnknownCube,
                    format!("cube `{}` extends unknown cube `{}`", cube.name.value, extends.value),
                )
                .hint(suggest(&extends.value, "cubes", known))
                .at(extends.span()),
            ));
        };
        if let Some(start) = line.iter().position(|seen| seen.name.value == parent.name.value) {
            let step = |cube: &&CubeDefinition| Step {
                name: Arc::clone(&cube.name.value),
                span: cube.extends.as_ref().map(Text::span),
            };
            let path: Vec<Step> = line[start..].iter().map(step).collect();
            // The cycle is reported once, for the first of its cubes in the project.
            let first = line[start..].iter().min_by_key(|cube| &cube.name.value);
            let is_reported = start == 0 && first.is_some_and(|first| first.name.value == cube.name.value);
            return LineEnd::Refused(is_reported.then(|| {
                Diagnostic::error(
                    Code::ExtendsCycle,
                    format!("cubes extend one another in a cycle: {}", cycle_path(&path)),
                )
                .hint("Remove one of these `extends`.")
                .along(path.clone())
                .at(extends.span())
            }));
        }
        line.push(parent);
        if line.len() > MAX_ANCESTORS {
            return LineEnd::Refused(Some(
                Diagnostic::error(
                    Code::ExtendsLimit,
                    format!("cube `{}` extends more than {MAX_ANCESTORS} cubes in a row", cube.name.value),
                )
                .hint("Extend a cube that is closer to the first one.")
                .at(extends.span()),
            ));
        }
        at = parent;
    }
    LineEnd::Complete
}

fn joins_of<'d>(line: &[&'d CubeDefinition]) -> Vec<Inherited<'d, JoinDefinition>> {
    let mut joins = Vec::new();
    for cube in line {
        put(&mut joins, &cube.joins, &cube.name.value, |join| &join.name.value);
    }
    let mut joined = HashSet::with_capacity(joins.len());
    joins.retain(|join| joined.insert(&*join.item.name.value));
    joins
}

/// Returns the `refresh` that applies to the rows of the last cube of `line`: the nearest `refresh` between this cube
/// and the cube that defines the rows.
fn refresh_of<'d>(line: &[&'d CubeDefinition]) -> Option<&'d RefreshDefinition> {
    let source = line.iter().rposition(|cube| cube.relation.is_some()).unwrap_or_default();
    line[source..].iter().rev().find_map(|cube| cube.refresh.as_ref())
}

impl<'d> Merged<'d> {
    /// Merges a cube's definition with those that it extends. `line` contains all of them, the most distant first.
    fn new(definition: &'d CubeDefinition, line: &[&'d CubeDefinition]) -> Self {
        let mut merged = Merged {
            definition,
            is_partial: false,
            relation: line.iter().rev().find_map(|cube| cube.relation.as_ref()),
            refresh: refresh_of(line),
            joins: joins_of(line),
            measures: Vec::new(),
            dimensions: Vec::new(),
            segments: Vec::new(),
        };
        for (at, cube) in line.iter().enumerate() {
            if at > 0 {
                merged.forget_kinds_of(cube);
            }
            let declared_in = &*cube.name.value;
            put(&mut merged.measures, &cube.measures, declared_in, |measure| &measure.name.value);
            put(&mut merged.dimensions, &cube.dimensions, declared_in, |dimension| &dimension.name.value);
            put(&mut merged.segments, &cube.segments, declared_in, |segment| &segment.name.value);
        }
        let mut seen = HashSet::with_capacity(merged.measures.len() + merged.dimensions.len());
        merged.dimensions.retain(|dimension| seen.insert(&*dimension.item.name.value));
        merged.measures.retain(|measure| seen.insert(&*measure.item.name.value));
        merged.segments.retain(|segment| seen.insert(&*segment.item.name.value));
        merged
    }

    /// Removes an inherited member if the derived cube declares its name with a different kind, such as a measure that
    /// was a dimension.
    fn forget_kinds_of(&mut self, child: &CubeDefinition) {
        let measures: HashSet<&str> = child.measures.iter().map(|measure| &*measure.name.value).collect();
        let dimensions: HashSet<&str> = child.dimensions.iter().map(|dimension| &*dimension.name.value).collect();
        let segments: HashSet<&str> = child.segments.iter().map(|segment| &*segment.name.value).collect();
        self.measures.retain(|m| !dimensions.contains(&*m.item.name.value) && !segments.contains(&*m.item.name.value));
        self.dimensions.retain(|d| !measures.contains(&*d.item.name.value) && !segments.contains(&*d.item.name.value));
        self.segments.retain(|s| !measures.contains(&*s.item.name.value) && !dimensions.contains(&*s.item.name.value));
    }
}

fn put<'d, T>(into: &mut Vec<Inherited<'d, T>>, items: &'d [T], declared_in: &'d str, name: impl Fn(&T) -> &Arc<str>) {
    if into.is_empty() {
        into.extend(items.iter().map(|item| Inherited { declared_in, item }));
        return;
    }
    let inherited: HashMap<Arc<str>, usize> =
        into.iter().enumerate().map(|(at, item)| (Arc::clone(name(item.item)), at)).collect();
    for item in items {
        match inherited.get(name(item)) {
            Some(at) => into[*at] = Inherited { declared_in, item },
            None => into.push(Inherited { declared_in, item }),
        }
    }
}

/// Reports two members, or two joins, of one cube with the same name.
fn check_own_names(cube: &CubeDefinition, diagnostics: &mut Vec<Diagnostic>) {
    let measures = cube.measures.iter().map(|measure| ("measure", &measure.name));
    let dimensions = cube.dimensions.iter().map(|dimension| ("dimension", &dimension.name));
    let segments = cube.segments.iter().map(|segment| ("segment", &segment.name));
    let members = dimensions.chain(measures).chain(segments);
    let hint = "Rename one of them. Measures, dimensions and segments of a cube need different names.";
    once_each(cube, members, hint, diagnostics);
    let joins = cube.joins.iter().map(|join| ("join", &join.name));
    once_each(cube, joins, "Give one of them another name, and name the joined cube with `cube:`.", diagnostics);
}

fn once_each<'d>(
    cube: &CubeDefinition,
    names: impl Iterator<Item = (&'static str, &'d Text)>,
    hint: &str,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let mut seen: HashMap<&str, (&'static str, u32)> = HashMap::new();
    for (kind, name) in names {
        if let Some((first, line)) = seen.get(&*name.value) {
            let message = format!(
                "cube `{}` has a {kind} and, in line {line}, a {first} with the name `{}`",
                cube.name.value, name.value
            );
            diagnostics.push(Diagnostic::error(Code::DuplicateName, message).hint(hint).at(name.span()));
            continue;
        }
        seen.insert(&name.value, (kind, name.origin.line));
    }
}
