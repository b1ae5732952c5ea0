//! Imports the semantic models and metrics of dbt projects.
//!
//! In: the folder of a dbt project. If dbt has run, it contains a manifest. Out: drafts of cubes and metrics.
//! ```text
//! YAML files ──read──▶ semantic models, metrics ──cubes, metrics──▶ drafts ──validate──▶ drafts that compile
//! manifest, catalog ──relations──▶ tables and column types ─▲
//! ```
//! Both specifications are read: the older one has `semantic_models:` at the top of a file, and the newer one has
//! `semantic_model:` in a model. Entities become keys and joins, and filters become filters of measures. The semantics
//! follow MetricFlow. Not here: models, seeds, tests and everything else of dbt, and Jinja except for the references in
//! filters.

mod absent_groups;
mod cubes;
mod definition;
mod filter;
mod joins;
mod legacy;
mod metric;
mod metrics;
mod nested;
mod read;
mod relations;
mod scope;

use std::path::Path;

use terrane_authoring::AuthoringError;

use crate::draft::Drafts;
use crate::report::ImportReport;
use crate::validate::{Validation, validate};

/// Imports the project in a folder.
///
/// # Errors
/// The folder cannot be read, or contains no semantic model.
pub(crate) fn import(dir: &Path, warehouse: &str) -> Result<ImportReport, AuthoringError> {
    let read::Project { tree, models, metrics, metric_names, relations, mut findings } = read::read(dir)?;
    let mut scope = scope::ProjectScope::new(&models, &metrics, warehouse, &mut findings);
    let mut cubes: Vec<_> =
        models.iter().filter_map(|model| cubes::cube(model, &scope, &relations, &mut findings)).collect();
    let links = joins::join(&mut cubes, &models, &scope, &mut findings);
    scope.set_links(links);
    let metrics = metrics::metrics(&metrics, &mut cubes, &scope, &mut findings);
    let mut drafts = Drafts { cubes, metrics };
    let declared = scope.declared(&models, &metric_names, &drafts.cubes);
    let validation = Validation { declared: &declared, warehouse, command: "terrane import dbt" };
    let files = validate(&mut drafts, &validation, &mut findings);
    Ok(ImportReport::new(&drafts, files, findings, tree))
}
