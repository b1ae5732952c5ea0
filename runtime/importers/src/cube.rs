//! Imports Cube's data models in YAML and JavaScript.
//!
//! In: a folder of model files. Out: drafts of cubes, and a finding for everything that differs from the model.
//! ```text
//! files ──read──▶ documents ──scope──▶ names ──cubes, view──▶ drafts ──validate──▶ drafts that compile
//! ```
//! JavaScript is parsed but not executed: object literals become the same documents as YAML. The semantics follow
//! Cube's documentation of its data model. Not here: Jinja templates and functions, whose results are known only after
//! running them.

mod cubes;
mod dimension;
mod javascript;
mod measure;
mod members;
mod objects;
mod read;
mod references;
mod spread;
mod view;

use std::path::Path;

use terrane_authoring::AuthoringError;

use crate::derived::close_derived;
use crate::draft::Drafts;
use crate::overrides::{close_overridden, remove_with_inherited_joins};
use crate::report::ImportReport;
use crate::validate::{Validation, validate};

/// Imports the files of a folder.
///
/// # Errors
/// The folder cannot be read, or contains no model.
pub(crate) fn import(dir: &Path, warehouse: &str) -> Result<ImportReport, AuthoringError> {
    let read::Documents { tree, entries, mut findings } = read::read(dir)?;
    let scope = references::ImportScope::new(&entries, &mut findings);
    let mut drafts = Vec::new();
    for entry in entries.iter().filter(|entry| !entry.is_view) {
        drafts.extend(cubes::cube(entry, &scope, &mut findings));
    }
    cubes::inherit_access(&mut drafts, &mut findings);
    cubes::remove_other_sources(&mut drafts, &mut findings);
    remove_with_inherited_joins(&mut drafts, &mut findings);
    close_overridden(&mut drafts, &mut findings);
    let views: Vec<_> = entries
        .iter()
        .filter(|entry| entry.is_view)
        .filter_map(|entry| view::view(entry, &drafts, &scope, &mut findings))
        .collect();
    drafts.extend(views);
    close_derived(&mut drafts, &mut findings);
    let mut drafts = Drafts { cubes: drafts, metrics: Vec::new() };
    let declared = scope.into_declared();
    let validation = Validation { declared: &declared, warehouse, command: "terrane import cube" };
    let files = validate(&mut drafts, &validation, &mut findings);
    Ok(ImportReport::new(&drafts, files, findings, tree))
}
