//! Imports the views and explores of LookML projects.
//!
//! In: a folder of `.lkml` files. Out: a cube for each view, with the joins of the explores.
//! ```text
//! files ──syntax──▶ blocks ──merge──▶ views, explores ──view, explore──▶ drafts ──validate──▶ drafts that compile
//! ```
//! A project has no explores, so each of its cubes can be queried. To preserve the model's restrictions, a view that no
//! explore shows becomes a private cube, and the rules of an explore become policies of its cubes. The semantics follow
//! Looker's reference of LookML. Not here: dashboards, Liquid, and tables that Looker derives from explores.

mod dimension;
mod explore;
mod exposure;
mod fields;
mod filter;
mod include;
mod measure;
mod merge;
mod read;
mod reader;
mod scope;
mod sql;
mod syntax;
mod view;

use std::path::Path;

use terrane_authoring::AuthoringError;

use crate::derived::close_derived;
use crate::draft::Drafts;
use crate::report::ImportReport;
use crate::validate::{Validation, validate};
use scope::Settings;

/// Imports the files of a folder.
///
/// # Errors
/// The folder cannot be read, or contains no view.
pub(crate) fn import(dir: &Path, warehouse: &str) -> Result<ImportReport, AuthoringError> {
    let read::Project { tree, views, explores, constants, unread, has_explores, ignores_case, mut findings } =
        read::read(dir)?;
    let closed = exposure::Closed::new(&views, &explores, &unread);
    let scope = scope::ProjectScope::new(&views, constants, Settings { has_explores, ignores_case }, &mut findings);
    let mut cubes: Vec<_> = views.iter().filter_map(|item| view::cube(item, &scope, &mut findings)).collect();
    let explores: Vec<_> = explores.iter().filter_map(|item| explore::explore(item, &scope, &mut findings)).collect();
    explore::join(&mut cubes, &explores, &scope, &mut findings);
    exposure::close(&mut cubes, &explores, &closed, &scope, &mut findings);
    close_derived(&mut cubes, &mut findings);
    let mut drafts = Drafts { cubes, metrics: Vec::new() };
    let declared = scope.declared(&drafts.cubes);
    let validation = Validation { declared: &declared, warehouse, command: "terrane import lookml" };
    let files = validate(&mut drafts, &validation, &mut findings);
    Ok(ImportReport::new(&drafts, files, findings, tree))
}
