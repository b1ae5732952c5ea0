//! Cubes that were registered at run time, in addition to those of the project's files.
//!
//! In: [`RegisteredCube`]s, each one entry of a `cubes:` list as JSON, and the cubes of the files. Out: their
//! definitions. If a file defines a cube of the same name, the file's cube is served and a diagnostic reports it; the
//! registration stays in the store. Not here: who may register, and the SQL that is allowed (`snippet::allowed`).

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::cubes;
use super::definitions::{CubeDefinition, MetricDefinition};
use super::jinja::Renderer;
use super::yaml::{self, NodeValue};
use crate::diagnostic::{Code, Diagnostic, Severity, Span};
use crate::text::SourceFile;

/// The folder of registered cubes in diagnostics. Its parentheses keep it different from folders of projects.
const PLACE: &str = "(registered)";
/// The code of a registered cube whose name a file uses for a cube, an alias or a metric.
pub const SHADOWED: Code = Code::RegisteredCubeShadowed;

/// A cube that no file of the project defines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredCube {
    pub name: Arc<str>,
    /// One entry of a `cubes:` list, as JSON. It is not rendered with Jinja; its braces are references.
    pub entry: Arc<str>,
    /// The full name of the cube's table in the warehouse's catalog, outermost part first. It is looked up when the
    /// project is loaded. `None` before the look-up, and if `sql_table` is not a table name that needs one.
    pub catalog_name: Option<Arc<[Arc<str>]>>,
}

impl RegisteredCube {
    /// Creates a cube whose table has not been looked up in the catalog yet.
    pub fn new(name: &str, entry: &str) -> Self {
        RegisteredCube { name: name.into(), entry: entry.into(), catalog_name: None }
    }

    /// Returns the cube's `sql_table`; `None` if the entry cannot be read.
    pub fn sql_table(&self) -> Option<Arc<str>> {
        let NodeValue::Map(entry) = yaml::parse(&file_of(self)).ok()?.value else { return None };
        let (_, table) = entry.iter().find(|(key, _)| &*key.text == "sql_table")?;
        match &table.value {
            NodeValue::Scalar { text, .. } => Some(text.trim().into()),
            _ => None,
        }
    }

    /// Returns the place of problems with the whole cube.
    pub fn place(&self) -> Span {
        Span { file: path_of(self), line: 1, column: 1, length: 1 }
    }
}

/// The names that the files use, besides those of their cubes.
pub(super) struct Known<'k> {
    /// Names of items that could not be read.
    pub(super) unread: &'k BTreeSet<Arc<str>>,
    pub(super) metrics: &'k [MetricDefinition],
}

/// Adds the registered cubes whose names the files do not use. Reports the others. The names of members of registered
/// cubes that cannot be read are added to `unread`.
pub(super) fn add(
    registered: &[RegisteredCube],
    known: &Known<'_>,
    unread: &mut BTreeSet<Arc<str>>,
    found: &mut Vec<CubeDefinition>,
    renderer: &Renderer,
    diagnostics: &mut Vec<Diagnostic>,
) {
    if registered.is_empty() {
        return;
    }
    let mut places = places_of(found);
    for cube in registered {
        let metric =
            || known.metrics.iter().find(|metric| metric.name.value == cube.name).map(|metric| metric.name.span());
        let taken = places.get(&cube.name).cloned().or_else(metric);
        if taken.is_some() || known.unread.contains(&cube.name) {
            let message =
                format!("registered cube `{}` is not used, because the project defines the same name", cube.name);
            let hint = "Rename the cube of the project, or delete the registered one with `DELETE /api/v1/query/meta/cubes/{name}`.";
            let diagnostic = Diagnostic::warning(SHADOWED, message).hint(hint.replace("{name}", &cube.name));
            diagnostics.push(match taken {
                Some(span) => diagnostic.at(span),
                None => diagnostic,
            });
            continue;
        }
        let definition = read(cube, renderer, unread, diagnostics);
        if let Some(definition) = &definition {
            let aliases = definition.joins.iter().filter(|join| join.cube.is_some());
            for name in std::iter::once(&definition.name).chain(aliases.map(|join| &join.name)) {
                places.entry(Arc::clone(&name.value)).or_insert_with(|| name.span());
            }
        }
        found.extend(definition);
    }
}

fn file_of(cube: &RegisteredCube) -> Arc<SourceFile> {
    Arc::new(SourceFile { path: path_of(cube), text: Arc::clone(&cube.entry) })
}

fn path_of(cube: &RegisteredCube) -> Arc<str> {
    format!("{PLACE}/{}.json", cube.name).into()
}

fn read(
    cube: &RegisteredCube,
    renderer: &Renderer,
    unread: &mut BTreeSet<Arc<str>>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<CubeDefinition> {
    let node = yaml::parse(&file_of(cube)).map_err(|diagnostic| diagnostics.push(diagnostic)).ok()?;
    let mut definition = cubes::cube(&node, renderer, unread, diagnostics)?.into_complete()?;
    if let Some(relation) = &mut definition.relation {
        relation.catalog_name.clone_from(&cube.catalog_name);
    }
    Some(definition)
}

/// Turns errors in registered cubes into warnings, so that they never prevent a project from being served. The cube, or
/// its broken part, is left out.
pub fn soften_registered(diagnostics: &mut [Diagnostic]) {
    for diagnostic in diagnostics.iter_mut().filter(|diagnostic| diagnostic.span.as_ref().is_some_and(is_registered)) {
        diagnostic.severity = Severity::Warning;
    }
}

/// Returns whether a place is in a registered cube.
pub fn is_registered(span: &Span) -> bool {
    span.file.split_once('/').is_some_and(|(folder, _)| folder == PLACE)
}

/// Returns the first place of the name of each cube and each alias.
fn places_of(cubes: &[CubeDefinition]) -> HashMap<Arc<str>, Span> {
    let mut places = HashMap::new();
    for cube in cubes {
        let aliases = cube.joins.iter().filter(|join| join.cube.is_some());
        for name in std::iter::once(&cube.name).chain(aliases.map(|join| &join.name)) {
            places.entry(Arc::clone(&name.value)).or_insert_with(|| name.span());
        }
    }
    places
}
