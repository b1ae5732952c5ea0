//! Cubes that were registered at run time, beside those of the project's files.
//!
//! In: [`RegisteredCube`]s, each one entry of a `cubes:` list as JSON, and the cubes of the files. Out: their
//! definitions. A name that a file defines too stays the file's, and is told; nothing is lost, since who
//! registered it still has it. Not here: who may register, and what SQL they may write (`model::allowed`).

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::cubes;
use super::definitions::{CubeDefinition, MetricDefinition};
use super::jinja::Renderer;
use super::kept::KeptFiles;
use super::source::SourceFile;
use super::yaml;
use crate::diagnostic::{Diagnostic, Severity, Span};

/// The folder that diagnostics name; no project has one of this name, for it begins with a bracket.
const PLACE: &str = "(registered)";
/// A file defines a cube, an alias or a metric of the same name.
pub const SHADOWED: &str = "registered-cube-shadowed";

/// A cube that no file of the project defines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredCube {
    pub name: Arc<str>,
    /// One entry of a `cubes:` list, as JSON. Without Jinja: its braces are references.
    pub entry: Arc<str>,
}

/// Adds what the files leave free.
pub(super) fn add(
    registered: &[RegisteredCube],
    unread: &mut BTreeSet<Arc<str>>,
    found: &mut Vec<Arc<CubeDefinition>>,
    metrics: &[Arc<MetricDefinition>],
    (kept, before): (&mut KeptFiles, &KeptFiles),
    renderer: &mut Renderer,
    diagnostics: &mut Vec<Diagnostic>,
) {
    if registered.is_empty() {
        return;
    }
    let mut places = places_of(found);
    for cube in registered {
        let metric = || metrics.iter().find(|metric| metric.name.value == cube.name).map(|metric| metric.name.span());
        let taken = places.get(&cube.name).cloned().or_else(metric);
        if taken.is_some() || unread.contains(&cube.name) {
            let message = format!(
                "cube `{}` was registered while the server ran, and the project defines the name too: the project's is used",
                cube.name
            );
            let hint = "rename the project's, or delete the registered one: `DELETE /api/v1/query/meta/cubes/{name}`";
            let told = Diagnostic::warning(SHADOWED, message).hint(hint.replace("{name}", &cube.name));
            diagnostics.push(match taken {
                Some(span) => told.at(span),
                None => told,
            });
            continue;
        }
        let (definition, names) = kept.read_registered(cube, before, renderer, diagnostics);
        if let Some(definition) = &definition {
            let aliases = definition.joins.iter().filter(|join| join.cube.is_some());
            for name in std::iter::once(&definition.name).chain(aliases.map(|join| &join.name)) {
                places.entry(Arc::clone(&name.value)).or_insert_with(|| name.span());
            }
        }
        found.extend(definition);
        unread.extend(names);
    }
}

/// One of them as a file.
pub(super) fn file_of(cube: &RegisteredCube) -> Arc<SourceFile> {
    let path = format!("{PLACE}/{}.json", cube.name);
    Arc::new(SourceFile { path: path.into(), text: Arc::clone(&cube.entry) })
}

/// Reads one of them.
pub(super) fn read(
    file: &Arc<SourceFile>,
    renderer: &mut Renderer,
    unread: &mut BTreeSet<Arc<str>>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<CubeDefinition> {
    match yaml::parse(file) {
        Ok(node) => cubes::cube(&node, renderer, unread, diagnostics),
        Err(diagnostic) => {
            diagnostics.push(diagnostic);
            None
        }
    }
}

/// What is wrong with a registered cube never keeps a project from being served: the cube is left out, or what
/// of it is broken.
pub fn soften_registered(diagnostics: &mut [Diagnostic]) {
    for told in diagnostics.iter_mut().filter(|told| told.span.as_ref().is_some_and(is_registered)) {
        told.severity = Severity::Warning;
    }
}

/// Whether a place is in a registered cube.
pub fn is_registered(span: &Span) -> bool {
    span.file.split_once('/').is_some_and(|(folder, _)| folder == PLACE)
}

/// Where cubes and the aliases of joins have their names; the first place of each.
fn places_of(cubes: &[Arc<CubeDefinition>]) -> HashMap<Arc<str>, Span> {
    let mut places = HashMap::new();
    for cube in cubes {
        let aliases = cube.joins.iter().filter(|join| join.cube.is_some());
        for name in std::iter::once(&cube.name).chain(aliases.map(|join| &join.name)) {
            places.entry(Arc::clone(&name.value)).or_insert_with(|| name.span());
        }
    }
    places
}
