//! `terrane import`: converts models of other tools to projects.

use std::path::PathBuf;

use clap::Subcommand;
use serde::Serialize;
use terrane_authoring::NewFolder;
use terrane_authoring::draft::project_file::{self, WarehouseSettings};
use terrane_authoring::names::snake;
use terrane_importers::{Counts, Format, ImportReport, Totals};

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
    /// Read Cube's data models in YAML and JavaScript
    #[command(after_help = CUBE_HELP)]
    Cube(FormatArguments),
    /// Read the semantic models and metrics of a dbt project
    #[command(after_help = DBT_HELP)]
    Dbt(FormatArguments),
    /// Read the views and explores of a LookML project
    #[command(after_help = LOOKML_HELP)]
    Lookml(FormatArguments),
}

const CUBE_HELP: &str = "\
The cubes and views of all .yml and .js files below DIR become a project that compiles. Every difference is
reported with its file, line and an action: moving windows, sub-query dimensions, Jinja, filters by caller …
JavaScript is parsed and not executed: object literals are read, and calls of functions are reported.
Nothing is dropped without a finding, and nothing that was protected becomes visible: a cube with an access policy
has no visible rows until its policy is written, and private or masked members cannot be queried.

Without --out nothing is written.

Examples:
  terrane import cube model/
  terrane import cube model/ --out shop --warehouse postgres
  terrane import cube model/ --json | jq '.findings[] | \"\\(.file):\\(.line) \\(.message)\"'

Exit code: 0 if there is a project, with or without findings; 1 if there is none.";

const DBT_HELP: &str = "\
The semantic models of all .yml files below DIR become cubes, their entities become keys and joins, and their
metrics become metrics, in both specifications of dbt. A filter becomes a filter of a measure. Every difference
is reported with its file, line and an action: windows, conversions, offsets, Jinja …

The names of tables come from target/manifest.json, which `dbt parse` writes; without it, tables have the names of
their dbt models. Types of columns come from target/catalog.json, which `dbt docs generate` writes.

Without --out nothing is written.

Examples:
  terrane import dbt jaffle_shop/
  terrane import dbt jaffle_shop/ --out shop --warehouse snowflake

Exit code: 0 if there is a project, with or without findings; 1 if there is none.";

const LOOKML_HELP: &str = "\
The views of all .lkml files below DIR become cubes, and the joins of their explores become joins of cubes.
Every difference is reported with its file, line and an action: Liquid, templated filters, table calculations …
Nothing that was protected becomes visible: access filters become policies, a view with an access grant has no visible
rows until its policy is written, and a view that no explore shows cannot be queried.

Without --out nothing is written.

Examples:
  terrane import lookml looker/
  terrane import lookml looker/ --out shop --warehouse postgres

Exit code: 0 if there is a project, with or without findings; 1 if there is none.";

#[derive(Debug, clap::Args)]
pub struct FormatArguments {
    /// The folder of the model
    pub dir: PathBuf,
    /// Write the project to this folder, which must not contain a project
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// The type of the warehouse, whose SQL the model contains: duckdb, postgres, mysql, sqlite, spark, snowflake,
    /// bigquery, redshift, databricks, trino, clickhouse or flightsql
    #[arg(long, value_name = "TYPE", default_value = "duckdb")]
    pub warehouse: String,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

impl ImportAction {
    /// Returns the format with its word on the command line.
    fn format(&self) -> (Format, &'static str, &FormatArguments) {
        match self {
            ImportAction::Cube(arguments) => (Format::Cube, "cube", arguments),
            ImportAction::Dbt(arguments) => (Format::Dbt, "dbt", arguments),
            ImportAction::Lookml(arguments) => (Format::LookMl, "lookml", arguments),
        }
    }
}

/// The JSON output.
#[derive(Debug, Serialize)]
struct ImportJson<'a> {
    /// Null if nothing was written.
    dir: Option<String>,
    files: Vec<&'a str>,
    #[serde(flatten)]
    counts: Counts,
    totals: Totals,
    findings: Vec<DiagnosticJson<'a>>,
}

/// Imports a model. Returns false if the model has no cubes; then no project is written.
///
/// # Errors
/// The model cannot be read, or the project cannot be written.
pub fn run(arguments: &ImportArguments, terminal: Terminal) -> Result<bool, Failure> {
    let (format, word, arguments) = arguments.action.format();
    wiring::check_warehouse_type(&arguments.warehouse)?;
    let folder = arguments.out.as_ref().map(|out| NewFolder::begin(out, &[PROJECT_FILE])).transpose()?;
    let mut report = terrane_importers::import(format, &arguments.dir, &arguments.warehouse)?;
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
            totals: report.totals,
            findings: report.findings.iter().map(DiagnosticJson::from).collect(),
        };
        let text = serde_json::to_string_pretty(&json).map_err(|error| Failure::new(error.to_string()))?;
        print(&format!("{text}\n"));
    } else {
        if !report.findings.is_empty() {
            print(&format!("{}\n", draw(&report.findings, &report.tree, terminal.stdout)));
        }
        print(&summary(&report, out.as_deref(), word, arguments));
    }
    Ok(!is_empty)
}

/// Returns the text of the project file. The owner of the project adds the location of the tables, or the driver.
fn settings(name: &str, warehouse: &str) -> String {
    let settings = WarehouseSettings { kind: warehouse.to_owned(), ..WarehouseSettings::default() };
    project_file::settings(name, &settings)
}

fn summary(report: &ImportReport, out: Option<&str>, word: &str, arguments: &FormatArguments) -> String {
    let Counts { cubes, measures, dimensions, joins, segments, pre_aggregations, metrics } = report.counts;
    let counts = [
        plural(cubes, "cube"),
        plural(measures, "measure"),
        plural(dimensions, "dimension"),
        plural(joins, "join"),
        plural(segments, "segment"),
        plural(pre_aggregations, "pre-aggregation"),
        plural(metrics, "metric"),
    ];
    let counts = counts.join(", ");
    let findings = plural(report.findings.len(), "finding");
    let Totals { unchanged, changed, lost, closed } = report.totals;
    let totals = format!("totals: {unchanged} unchanged, {changed} changed, {lost} lost, {closed} closed\n");
    match out {
        Some(out) => format!(
            "created {out}: {counts}; {findings}\n{totals}\nnext:\n  set `warehouse` in {out}/{PROJECT_FILE}\n  \
             terrane check --data {out}\n"
        ),
        None if cubes == 0 => format!("no cube could be imported; {findings}\n{totals}"),
        None => format!(
            "would create {counts}; {findings}\n{totals}Nothing was written. To write it: terrane import {word} {} \
             --out DIR\n",
            arguments.dir.display()
        ),
    }
}
