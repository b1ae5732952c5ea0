//! `terrane export`: writes a project in the format of another tool.

use std::fs;
use std::path::PathBuf;

use clap::Subcommand;
use terrane_compiler::{model, project};
use terrane_importers::osi;

use super::{Terminal, print, print_problems};
use crate::failure::Failure;
use crate::project::Project;

#[derive(Debug, clap::Args)]
pub struct ExportArguments {
    #[command(subcommand)]
    pub action: ExportAction,
}

#[derive(Debug, Subcommand)]
pub enum ExportAction {
    /// Write the Open Semantic Interchange format
    #[command(after_help = "\
Cubes become datasets, dimensions fields, to-one joins relationships, and measures and metrics become metrics with
their SQL. The format is that of Apache Ossie, version 0.2.0.dev0. Everything that it cannot express is reported on
standard error: policies, running totals, segments, filters of metrics. Private cubes and members are left out.

Examples:
  terrane export osi examples/flights
  terrane export osi examples/flights --out flights.osi.yaml

Exit code: 0 if there is a document; 1 if the project has errors.")]
    Osi(OsiArguments),
}

#[derive(Debug, clap::Args)]
pub struct OsiArguments {
    /// The project folder, which contains service_project.yml
    #[arg(default_value = ".")]
    pub dir: PathBuf,
    /// Write to this file instead of standard output; an existing file is replaced
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

impl ExportArguments {
    /// Returns the folder of the project.
    pub fn dir(&self) -> &PathBuf {
        let ExportAction::Osi(arguments) = &self.action;
        &arguments.dir
    }
}

/// Exports the project. The warehouse is not used.
///
/// # Errors
/// The project has errors, or the file cannot be written.
pub fn run(arguments: &ExportArguments, project: &Project, terminal: Terminal) -> Result<bool, Failure> {
    let ExportAction::Osi(arguments) = &arguments.action;
    let (definitions, mut problems) = project::read(&project.source, &project.inputs);
    let (model, found) = model::build(&definitions);
    problems.extend(project.problems.iter().cloned().chain(found));
    problems.retain(|problem| problem.is_error());
    if !problems.is_empty() {
        print_problems(&problems, &project.tree, terminal.stderr);
        return Ok(false);
    }
    let osi::Export { text, findings } = osi::export(&model, project.config.warehouse.dialect());
    print_problems(&findings, &project.tree, terminal.stderr);
    match &arguments.out {
        Some(file) => fs::write(file, text).map_err(|error| {
            Failure::new(format!("could not write {}: {error}", file.display())).hint("Check the path after --out.")
        })?,
        None => print(&text),
    }
    Ok(true)
}
