//! `terrane import`: models of other tools, as projects.

use std::path::PathBuf;

use clap::Subcommand;
use serde::Serialize;

use super::{Terminal, print};
use crate::authoring::folder::NewFolder;
use crate::authoring::names::snake;
use crate::config::PROJECT_FILE;
use crate::failure::Failure;
use crate::import::{self, Counts, Imported};
use crate::init::project::{self, WarehouseSettings};
use crate::report::{self, DiagnosticJson, plural};

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
Cubes and views of all .yml files below DIR become a project that compiles. Whatever it does not have as it
was is told with its file and line, and what to do: windows that move, sub-query dimensions, Jinja, filters
by who asks … Nothing is dropped without a word, and nothing is opened that was closed: a cube with an
access policy lets nobody through until its policy is written.

Without --out nothing is written: a rehearsal.

Examples:
  terrane import cube model/
  terrane import cube model/ --out shop --warehouse postgres
  terrane import cube model/ --json | jq '.findings[] | \"\\(.file):\\(.line) \\(.message)\"'

Exit code: 0 when there is a project, whatever was found; 1 when there is none.")]
pub struct CubeArguments {
    /// The folder of the model: `model/` or `schema/`
    pub dir: PathBuf,
    /// Write the project into this folder, new or without a project in it
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// The warehouse's type, whose SQL the model is written in: duckdb, postgres, mysql, sqlite …
    #[arg(long, value_name = "TYPE", default_value = "duckdb")]
    pub warehouse: String,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// For scripts.
#[derive(Debug, Serialize)]
struct ImportJson<'a> {
    /// Null in a rehearsal.
    dir: Option<String>,
    files: Vec<&'a str>,
    #[serde(flatten)]
    counts: Counts,
    findings: Vec<DiagnosticJson<'a>>,
}

/// Imports.
///
/// # Errors
/// The model can't be read or has nothing that could be carried over, or the disk refuses the project.
pub fn run(arguments: &ImportArguments, terminal: Terminal) -> Result<bool, Failure> {
    let ImportAction::Cube(arguments) = &arguments.action;
    let folder = arguments.out.as_ref().map(|out| NewFolder::begin(out, &[PROJECT_FILE])).transpose()?;
    let mut imported = import::import(&arguments.dir, &arguments.warehouse)?;
    let place =
        folder.as_ref().map_or_else(|| arguments.dir.canonicalize().unwrap_or_default(), |f| f.target().to_owned());
    let name = snake(&place.file_name().unwrap_or_default().to_string_lossy());
    imported.files.insert(0, (PROJECT_FILE.to_owned(), settings(&name, &arguments.warehouse)));
    let is_empty = imported.counts.cubes == 0;
    let out = arguments.out.as_ref().filter(|_| !is_empty).map(|out| out.display().to_string());
    if let Some(folder) = folder.filter(|_| !is_empty) {
        for (file, text) in &imported.files {
            folder.write(file, text)?;
        }
        folder.finish()?;
    }
    if arguments.json {
        let json = ImportJson {
            files: imported.files.iter().filter(|_| !is_empty).map(|(file, _)| file.as_str()).collect(),
            dir: out,
            counts: imported.counts,
            findings: imported.findings.iter().map(DiagnosticJson::from).collect(),
        };
        let text = serde_json::to_string_pretty(&json).map_err(|error| Failure::new(error.to_string()))?;
        print(&format!("{text}\n"));
    } else {
        if !imported.findings.is_empty() {
            print(&format!("{}\n", report::draw(&imported.findings, &imported.tree, terminal.stdout)));
        }
        print(&words(&imported, out.as_deref(), arguments));
    }
    Ok(!is_empty)
}

/// The project file; where the tables are is for its owner to say.
fn settings(name: &str, warehouse: &str) -> String {
    let settings = WarehouseSettings { kind: warehouse.to_owned(), ..WarehouseSettings::default() };
    project::settings(name, &settings)
}

fn words(imported: &Imported, out: Option<&str>, arguments: &CubeArguments) -> String {
    let Counts { cubes, measures, dimensions, joins, segments, pre_aggregations } = imported.counts;
    let counts = [
        plural(cubes, "cube"),
        plural(measures, "measure"),
        plural(dimensions, "dimension"),
        plural(joins, "join"),
        plural(segments, "segment"),
        plural(pre_aggregations, "pre-aggregation"),
    ];
    let findings = plural(imported.findings.len(), "finding");
    let counts = counts.join(", ");
    match out {
        Some(out) => format!(
            "made {out}: {counts}; {findings}\n\nnext:\n  say where the tables are: `warehouse` of {out}/{PROJECT_FILE}\n  \
             terrane check --data {out}\n"
        ),
        None if cubes == 0 => format!("nothing could be carried over; {findings}\n"),
        None => format!(
            "would make {counts}; {findings}\nnothing was written: terrane import cube {} --out DIR\n",
            arguments.dir.display()
        ),
    }
}
