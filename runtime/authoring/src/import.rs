//! Imports Cube's YAML data models.
//!
//! In: a folder of model files. Out: the files of a project that compiles, and a finding for everything that differs
//! from the model.
//! ```text
//! files ──read──▶ documents ──scope──▶ names ──cube, view──▶ drafts ──validate──▶ drafts that compile
//! ```
//! Two rules: no part of a model is dropped without a finding, and nothing that was closed becomes open. A value that
//! cannot be read counts as closed. The semantics follow Cube's documentation of its data model. Not here: JavaScript
//! models and Jinja templates, whose result is only known by running them.

mod cube;
mod cube_draft;
mod dimension;
mod entry;
mod finding;
mod measure;
mod members;
mod read;
mod references;
mod validate;
mod view;

use std::path::Path;

use terrane_compiler::diagnostic::{self, Diagnostic};
use terrane_compiler::project::SourceTree;

use crate::AuthoringError;

/// The result of an import.
#[derive(Debug)]
pub struct ImportReport {
    /// The path inside the project and the text of each file, without the project file.
    pub files: Vec<(String, String)>,
    pub counts: Counts,
    /// The differences from the model, each at its place in the model's files.
    pub findings: Vec<Diagnostic>,
    /// The files that were read, to show the places of findings.
    pub tree: SourceTree,
}

/// The number of imported items.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counts {
    pub cubes: usize,
    pub measures: usize,
    pub dimensions: usize,
    pub joins: usize,
    pub segments: usize,
    pub pre_aggregations: usize,
}

/// Imports the YAML files of a folder.
///
/// # Errors
/// The folder cannot be read, or contains no model in YAML.
pub fn import(dir: &Path, warehouse: &str) -> Result<ImportReport, AuthoringError> {
    let read::Documents { tree, entries, mut findings } = read::read(dir)?;
    let scope = references::ImportScope::new(&entries, &mut findings);
    let mut drafts = Vec::new();
    for entry in entries.iter().filter(|entry| !entry.is_view) {
        drafts.extend(cube::cube(entry, &scope, &mut findings));
    }
    cube::inherit_access(&mut drafts, &mut findings);
    cube::remove_other_sources(&mut drafts, &mut findings);
    let views: Vec<_> = entries
        .iter()
        .filter(|entry| entry.is_view)
        .filter_map(|entry| view::view(entry, &drafts, &scope, &mut findings))
        .collect();
    drafts.extend(views);
    cube::close_derived(&mut drafts, &mut findings);
    let files = validate::validate(&mut drafts, &scope, warehouse, &mut findings);
    diagnostic::sort(&mut findings);
    Ok(ImportReport { counts: cube_draft::counts(&drafts), files, findings, tree })
}
