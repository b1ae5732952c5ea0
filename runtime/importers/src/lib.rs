//! Reads the semantic models of other tools, and writes the compiled model in the format of another tool.
//!
//! In: a folder of model files, or a compiled model ([`osi`]). Out: the files of a project that compiles, with a finding
//! for everything that differs from the model; or one document. Each format has a module of its own:
//! ```text
//! cube     YAML, JavaScript ─┐
//! dbt      MetricFlow        ├──read──▶ drafts ──validate──▶ files, findings, totals
//! lookml   views, explores  ─┘
//! ```
//! Two rules hold for all formats: no part of a model is dropped without a finding, and nothing that was closed becomes
//! open. A value that cannot be read counts as closed. Nothing of a model is executed. Not here: command-line arguments,
//! output, and the place of the files (cli, authoring).

mod aggregation;
mod cube;
mod dbt;
mod declared;
mod derived;
mod draft;
mod entry;
mod finding;
mod folder;
mod lookml;
mod measure_sql;
pub mod osi;
mod report;
mod validate;

use std::path::Path;

use terrane_authoring::AuthoringError;

pub use report::{Counts, ImportReport, Totals};

/// The format of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Data models of Cube, in YAML or JavaScript.
    Cube,
    /// Semantic models and metrics of a dbt project.
    Dbt,
    /// Views and explores in LookML.
    LookMl,
}

/// Imports the model files of a folder. `warehouse` is the type of the warehouse, in whose SQL the model is written.
///
/// # Errors
/// The folder cannot be read, or contains no model of the format.
pub fn import(format: Format, dir: &Path, warehouse: &str) -> Result<ImportReport, AuthoringError> {
    match format {
        Format::Cube => cube::import(dir, warehouse),
        Format::Dbt => dbt::import(dir, warehouse),
        Format::LookMl => lookml::import(dir, warehouse),
    }
}
