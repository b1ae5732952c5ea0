//! Cubes that were registered at run time, beside those of the project's files.
//!
//! In: [`RegisteredCube`]s, each one entry of a `cubes:` list as JSON, and the cubes of the files. Out: their
//! definitions. A name that a file defines too stays the file's, and is told; nothing is lost, since who
//! registered it still has it. Not here: who may register, and what SQL they may write (`model::allowed`).

use std::collections::BTreeSet;
use std::sync::Arc;

use super::cubes;
use super::definitions::{CubeDefinition, MetricDefinition};
use super::jinja::Renderer;
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
    found: &mut Vec<CubeDefinition>,
    metrics: &[MetricDefinition],
    renderer: &mut Renderer,
    diagnostics: &mut Vec<Diagnostic>,
) {
    for cube in registered {
        let metric = || metrics.iter().find(|metric| metric.name.value == cube.name).map(|metric| metric.name.span());
        let taken = place_of(found, &cube.name).or_else(metric);
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
        let path = format!("{PLACE}/{}.json", cube.name);
        let file = Arc::new(SourceFile { path: path.into(), text: Arc::clone(&cube.entry) });
        match yaml::parse(&file) {
            Ok(node) => found.extend(cubes::cube(&node, renderer, unread, diagnostics)),
            Err(diagnostic) => diagnostics.push(diagnostic),
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

/// Where a cube or the alias of a join has the name.
fn place_of(cubes: &[CubeDefinition], name: &str) -> Option<Span> {
    cubes.iter().find_map(|cube| {
        if &*cube.name.value == name {
            return Some(cube.name.span());
        }
        let alias = cube.joins.iter().find(|join| join.cube.is_some() && &*join.name.value == name);
        alias.map(|join| join.name.span())
    })
}
