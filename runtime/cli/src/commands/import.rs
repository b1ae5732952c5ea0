//! `terrane import`: converts models of other tools to projects.

use std::path::PathBuf;

use clap::Subcommand;
use serde::Serialize;
use terrane_authoring::NewFolder;
use terrane_authoring::draft::project_file::{self, WarehouseSettings};
use terrane_authoring::import::{self, Counts, ImportReport};
use terrane_authoring::names::snake;

use super::{Terminal, print};
use crate::config::PROJECT_FILE;
use crate::failure::Failure;
use crate::report::{DiagnosticJson, draw, plural};
use crate::wiring;

#[derive(Debug, clap::Args)]
pub struct ImportArguments {
    #[command(subcommand)]
    pub action: ImportAction,
}

#[derive(Debug, Subcommand)]
pub enum ImportAction {
    /// Read Cube's YAML data models
    Cube(CubeArguments),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The cubes and views of all .yml files below DIR become a project that compiles. Every difference is reported
with its file, line and an action: moving windows, sub-query dimensions, Jinja, filters by caller …
Nothing is dropped without a finding, and nothing that was closed becomes open: a cube with an access policy
has no visible rows until its policy is written, and private or masked members can't be queried.

Without --out nothing is written.

Examples:
  terrane import cube model/
  terrane import cube model/ --out shop --warehouse postgres
  terrane import cube model/ --json | jq '.findings[] | \"\\(.file):\\(.line) \\(.message)\"'

Exit code: 0 if there is a project, with or without findings; 1 if there is none.")]
pub struct CubeArguments {
    /// The folder of the model, such as `model/` or `schema/`
    pub dir: PathBuf,
    /// Write the project to this folder, which must not contain a project
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// The warehouse's type, in whose SQL the model is written: duckdb, postgres, mysql, sqlite …
    #[arg(long, value_name = "TYPE", default_value = "duckdb")]
    pub warehouse: String,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// The JSON output.
#[derive(Debug, Serialize)]
struct ImportJson<'a> {
    /// Null if nothing was written.
    dir: Option<String>,
    files: Vec<&'a str>,
    #[serde(flatten)]
    counts: Counts,
    findings: Vec<DiagnosticJson<'a>>,
}

/// Imports a model. Returns true if there is a project.
///
/// # Errors
/// The model cannot be read, or the project cannot be written.
pub fn run(arguments: &ImportArguments, terminal: Terminal) -> Result<bool, Failure> {
    let ImportAction::Cube(arguments) = &arguments.action;
    wiring::check_warehouse_type(&arguments.warehouse)?;
    let folder = arguments.out.as_ref().map(|out| NewFolder::begin(out, &[PROJECT_FILE])).transpose()?;
    let mut report = import::import(&arguments.dir, &arguments.warehouse)?;
    let place =
        folder.as_ref().map_or_else(|| arguments.dir.canonicalize().unwrap_or_default(), |f| f.target().to_owned());
    let name = snake(&place.file_name().unwrap_or_default().to_string_lossy());
    report.files.insert(0, (PROJECT_FILE.to_owned(), settings(&name, &arguments.warehouse)));
    let is_empty = report.counts.cubes == 0;
    let out = arguments.out.as_ref().filter(|_| !is_empty).map(|out| out.display().to_string());
    if let Some(folder) = folder.filter(|_| !is_empty) {
        for (file, text) in &report.files {
            folder.write(file, text)?;
        }
        folder.finish()?;
    }
    if arguments.json {
        let json = ImportJson {
            files: report.files.iter().filter(|_| !is_empty).map(|(file, _)| file.as_str()).collect(),
            dir: out,
            counts: report.counts,
            findings: report.findings.iter().map(DiagnosticJson::from).collect(),
        };
        let text = serde_json::to_string_pretty(&json).map_err(|error| Failure::new(error.to_string()))?;
        print(&format!("{text}\n"));
    } else {
        if !report.findings.is_empty() {
            print(&format!("{}\n", draw(&report.findings, &report.tree, terminal.stdout)));
        }
        print(&summary(&report, out.as_deref(), arguments));
    }
    Ok(!is_empty)
}

/// Returns the project file. Its owner adds the place of the tables.
fn settings(name: &str, warehouse: &str) -> String {
    let settings = WarehouseSettings { kind: warehouse.to_owned(), ..WarehouseSettings::default() };
    project_file::settings(name, &settings)
}

fn summary(report: &ImportReport, out: Option<&str>, arguments: &CubeArguments) -> String {
    let Counts { cubes, measures, dimensions, joins, segments, pre_aggregations } = report.counts;
    let counts = [
        plural(cubes, "cube"),
        plural(measures, "measure"),
        plural(dimensions, "dimension"),
        plural(joins, "join"),
        plural(segments, "segment"),
        plural(pre_aggregations, "pre-aggregation"),
    ];
    let findings = plural(report.findings.len(), "finding");
    let counts = counts.join(", ");
    match out {
        Some(out) => format!(
            "created {out}: {counts}; {findings}\n\nnext:\n  set `warehouse` in {out}/{PROJECT_FILE}\n  \
             terrane check --data {out}\n"
        ),
        None if cubes == 0 => format!("no cube could be imported; {findings}\n"),
        None => format!(
            "would create {counts}; {findings}\nNothing was written. To write it: terrane import cube {} --out DIR\n",
            arguments.dir.display()
        ),
    }
}
