//! Imports the semantic models of other tools, and exports the compiled model to the format of another tool.
//!
//! An import reads a folder of model files. It returns the files of a project that compiles, and a finding for
//! everything that differs from the model. An export ([`osi`]) writes a compiled model as one document. Each format has
//! a module of its own:
//! ```text
//! cube     YAML, JavaScript ─┐
//! dbt      MetricFlow        ├──read──▶ drafts ──validate──▶ files, findings, totals
//! lookml   views, explores  ─┘
//! ```
//! Three rules hold for all formats. No part of a model is dropped without a finding. Nothing that was closed becomes
//! open; a value that cannot be read counts as closed. Nothing of a model is executed. Not here: command-line
//! arguments, output, and the place of the files (cli, authoring).

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
mod overrides;
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

/// Imports the model files of a folder. `warehouse` is the type of the warehouse whose SQL the model contains.
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
