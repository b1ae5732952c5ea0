//! Models of other tools, read into projects of ours.
//!
//! In: a folder of Cube's YAML. Out: the texts of a project that compiles, and a finding for whatever it
//! does not have as it was.
//! ```text
//! files ──read──▶ documents ──scope──▶ names ──cube, view──▶ drafts ──settle──▶ drafts that compile
//! ```
//! Two rules: nothing is dropped without a word, and nothing is opened that was closed. Meanings follow
//! Cube's documentation of its data model. Not here: JavaScript models and Jinja templates, which have to
//! be run to be known.

mod cube;
mod dimension;
mod draft;
mod entry;
mod finding;
mod measure;
mod others;
mod read;
mod references;
mod settle;
mod view;

use std::path::Path;

use terrane_compiler::diagnostic::{self, Diagnostic};
use terrane_compiler::project::SourceTree;

use crate::failure::Failure;

/// What became of a model.
#[derive(Debug)]
pub struct Imported {
    /// Path inside the project, and text; without the project file.
    pub files: Vec<(String, String)>,
    pub counts: Counts,
    /// What is not as it was, each at its place in the files that were read.
    pub findings: Vec<Diagnostic>,
    /// The files that were read, for people to be shown.
    pub tree: SourceTree,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counts {
    pub cubes: usize,
    pub measures: usize,
    pub dimensions: usize,
    pub joins: usize,
    pub segments: usize,
    pub pre_aggregations: usize,
}

/// Reads the YAML files of a folder.
///
/// # Errors
/// The folder can't be read, or holds no model in YAML.
pub fn import(dir: &Path, warehouse: &str) -> Result<Imported, Failure> {
    let read::Documents { tree, entries, mut findings } = read::read(dir)?;
    let scope = references::Scope::new(&entries, &mut findings);
    let mut drafts = Vec::new();
    for entry in entries.iter().filter(|entry| !entry.is_view) {
        drafts.extend(cube::cube(entry, &scope, &mut findings));
    }
    cube::leave_other_sources(&mut drafts, &mut findings);
    let views: Vec<_> = entries
        .iter()
        .filter(|entry| entry.is_view)
        .filter_map(|entry| view::view(entry, &drafts, &scope, &mut findings))
        .collect();
    drafts.extend(views);
    let files = settle::settle(&mut drafts, warehouse, &mut findings);
    diagnostic::sort(&mut findings);
    Ok(Imported { counts: draft::counts(&drafts), files, findings, tree })
}
