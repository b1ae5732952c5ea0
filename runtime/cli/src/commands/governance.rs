//! `terrane governance`: reads, changes, exports and imports governed records, and reports on them, in the state
//! database.
//!
//! In: arguments, and a file of records for `import`. Out: records, YAML, or the compliance report. Servers on the same
//! state database see changed records at once.

mod artifact;
mod certification;
mod glossary;
mod history;
mod owners;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Subcommand;
use terrane_app::governance::{
    ComplianceReport, GovernanceError, GovernanceService, ImportError, ImportMode, RecordSet, export_records,
    import_records,
};
use terrane_app::ports::clock::Clock as _;
use terrane_app::services::ServerServices;
use terrane_terminal::TerminalText;
use terrane_wire::ErrorBody;
use terrane_wire::governance::records::{RecordsProblem, records_from_yaml, records_to_yaml};
use terrane_wire::governance::report::GovernanceReport;

use super::module::{enabled, failed};
use super::{json_line, operator_entry, print, print_error};
use crate::caller;
use crate::clock::SystemClock;
use crate::failure::Failure;
use crate::project::Project;
use crate::report::plural;
use crate::wiring::{self, WarehouseUse};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  terrane governance export my-project --out governance.yml
  terrane governance import governance.yml my-project --dry-run
  terrane governance report my-project --html --out report.html
  terrane governance certification submit metric/revenue my-project --notes 'Agreed with finance.'
  terrane governance certification certify metric/revenue my-project --valid-until 2026-12-31 --as ada.json
  terrane governance certification list my-project --status certified --json
  terrane governance glossary create '{\"name\": \"Revenue\", \"definition\": \"Paid orders.\"}' my-project
  terrane governance glossary link 4f1c9a measure/orders.revenue my-project --relationship defines
  terrane governance owners assign cube/orders ada my-project --role data_owner
  terrane governance artifacts set-metadata cube/orders '{\"tags\": [\"finance\"]}' my-project
  terrane governance history my-project --artifact cube/orders

An artifact is TYPE/ID; the types are cube, measure, dimension, metric and model. With --as, a change is made with the
scopes read and write of the caller; otherwise the operator makes it with all scopes. Each change is in the audit log.
An export contains certifications, glossary terms with their links, owners, and metadata that was set at run time, in a
fixed order. An import writes new and changed records in one transaction and leaves all others unchanged; importing
a file twice changes nothing. An import calls no governance hooks. Each imported record is in the audit log.")]
pub struct GovernanceArguments {
    #[command(subcommand)]
    pub action: GovernanceAction,
}

#[derive(Debug, Subcommand)]
pub enum GovernanceAction {
    /// Read and move certifications
    #[command(subcommand)]
    Certification(certification::CertificationAction),
    /// Read and change terms of the glossary
    #[command(subcommand)]
    Glossary(glossary::GlossaryAction),
    /// Read and change owners of artifacts
    #[command(subcommand)]
    Owners(owners::OwnerAction),
    /// Read artifacts and change their metadata
    #[command(subcommand)]
    Artifacts(artifact::ArtifactAction),
    /// List artifacts by type and name
    Catalog(artifact::CatalogArguments),
    /// List changes of records, newest first
    History(history::HistoryArguments),
    /// Make several changes
    Bulk(history::BulkArguments),
    /// Write all governed records as YAML
    Export {
        /// The project folder, which contains service_project.yml
        #[arg(default_value = ".")]
        dir: PathBuf,
        /// Write to this file instead of standard output; an existing file is replaced
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Import governed records from the YAML of an export
    Import {
        /// A file of records; `-` is standard input
        file: PathBuf,
        /// The project folder, which contains service_project.yml
        #[arg(default_value = ".")]
        dir: PathBuf,
        /// Report the changes without making them
        #[arg(long)]
        dry_run: bool,
    },
    /// Print the compliance report
    Report {
        /// The project folder, which contains service_project.yml
        #[arg(default_value = ".")]
        dir: PathBuf,
        /// Report what this caller sees: a JSON file with user_id, email, roles, groups and attributes
        #[arg(long = "as", value_name = "FILE")]
        caller: Option<PathBuf>,
        /// Print the response of GET /api/v1/governance/report
        #[arg(long, group = "format")]
        json: bool,
        /// Print one record for each artifact
        #[arg(long, group = "format")]
        csv: bool,
        /// Print a page without scripts
        #[arg(long, group = "format")]
        html: bool,
        /// Write to this file instead of standard output; an existing file is replaced
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
}

impl GovernanceAction {
    /// Returns the path of the project.
    pub fn dir(&self) -> &PathBuf {
        match self {
            GovernanceAction::Export { dir, .. }
            | GovernanceAction::Import { dir, .. }
            | GovernanceAction::Report { dir, .. } => dir,
            GovernanceAction::Certification(action) => &action.place().dir,
            GovernanceAction::Glossary(action) => &action.place().dir,
            GovernanceAction::Owners(action) => &action.place().dir,
            GovernanceAction::Artifacts(action) => &action.place().dir,
            GovernanceAction::Catalog(arguments) => &arguments.read.place.dir,
            GovernanceAction::History(arguments) => &arguments.read.place.dir,
            GovernanceAction::Bulk(arguments) => &arguments.read.place.dir,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// The state database or a file cannot be read or written, a file of records has problems, or a request is refused.
pub async fn run(arguments: &GovernanceArguments, project: &Project) -> Result<(), Failure> {
    match &arguments.action {
        GovernanceAction::Certification(action) => certification::run(action, project).await,
        GovernanceAction::Glossary(action) => glossary::run(action, project).await,
        GovernanceAction::Owners(action) => owners::run(action, project).await,
        GovernanceAction::Artifacts(action) => artifact::run(action, project).await,
        GovernanceAction::Catalog(arguments) => artifact::catalog(arguments, project).await,
        GovernanceAction::History(arguments) => history::history(arguments, project).await,
        GovernanceAction::Bulk(arguments) => history::bulk(arguments, project).await,
        GovernanceAction::Export { out, .. } => export(out.as_deref(), project).await,
        GovernanceAction::Import { file, dry_run, .. } => import(file, *dry_run, project).await,
        GovernanceAction::Report { caller, json, csv, html, out, .. } => {
            let report = report(caller.as_deref(), project).await?;
            let body = GovernanceReport::from(&report);
            let text = match (json, csv, html) {
                (true, _, _) => json_line(&body),
                (_, true, _) => body.to_csv(),
                (_, _, true) => body.to_html(),
                _ => summary(&body),
            };
            write(out.as_deref(), &text)
        }
    }
}

/// Returns the use cases.
fn service(services: &ServerServices) -> Result<&Arc<GovernanceService>, Failure> {
    enabled(services.governance.as_ref(), "governance is", "governance.enabled")
}

fn refused(error: GovernanceError) -> Failure {
    failed(ErrorBody::from(&error))
}

async fn export(out: Option<&Path>, project: &Project) -> Result<(), Failure> {
    let store = wiring::state(project).await?;
    let set = export_records(&*store).await.map_err(|error| Failure::new(error.to_string()))?;
    let text = records_to_yaml(&set).map_err(Failure::new)?;
    write(out, &text)?;
    if let Some(out) = out {
        print_error(&format!("exported {} into {}\n", plural(set.len(), "record"), out.display()));
    }
    Ok(())
}

/// Reads a file of records; `-` is standard input.
///
/// # Errors
/// The file cannot be read, or has problems, which are all reported.
pub(super) fn read_records(file: &Path) -> Result<RecordSet, Failure> {
    let is_stream = file.as_os_str() == "-";
    let text = if is_stream { std::io::read_to_string(std::io::stdin()) } else { std::fs::read_to_string(file) };
    let text = text.map_err(|error| Failure::new(format!("{} cannot be read: {error}", file.display())))?;
    records_from_yaml(&text).map_err(|problems| invalid(file, &problems))
}

async fn import(file: &Path, dry_run: bool, project: &Project) -> Result<(), Failure> {
    let set = read_records(file)?;
    let store = wiring::state(project).await?;
    let mode = if dry_run { ImportMode::Check } else { ImportMode::Apply };
    let now = SystemClock::default().now();
    let imported = import_records(&*store, &set, mode, |event, resource| operator_entry(event, now, resource)).await;
    let summary = imported.map_err(|error| match error {
        ImportError::Invalid(problems) => invalid(file, &problems.iter().map(RecordsProblem::from).collect::<Vec<_>>()),
        error => Failure::new(format!("nothing was imported: {error}")),
    })?;
    let nothing = if dry_run { " (nothing was written)" } else { "" };
    print(&format!("{summary}{nothing}\n"));
    Ok(())
}

/// Reports all problems of a file.
fn invalid(file: &Path, problems: &[RecordsProblem]) -> Failure {
    let mut message = format!("{} has {}", file.display(), plural(problems.len(), "problem"));
    for problem in problems {
        message.push_str(&format!("\n  {}", TerminalText::spaced(&problem.message)));
    }
    Failure::new(message).hint("Correct the file, or export it again with `terrane governance export`.")
}

async fn report(caller: Option<&Path>, project: &Project) -> Result<ComplianceReport, Failure> {
    let request = caller::read(caller)?;
    let store = wiring::state(project).await?;
    let (services, _) = wiring::load(project, WarehouseUse::Read).await?;
    let Some(service) = wiring::governance(project, &services, &store) else {
        return Err(Failure::new("governance is switched off").hint("Set `governance.enabled: true`."));
    };
    service.report(&request).await.map_err(|error: GovernanceError| Failure::new(error.to_string()))
}

/// Returns the numbers of the report, and a line for each artifact with a finding.
fn summary(report: &GovernanceReport) -> String {
    let numbers = &report.summary;
    let share = numbers.certified_share.map_or_else(String::new, |share| format!(", {:.1} % certified", share * 100.0));
    let project = TerminalText::spaced(&report.project);
    let mut text = format!("{project}: {}{share}\n", plural(numbers.artifacts, "artifact"));
    let found: Vec<_> = report.artifacts.iter().filter(|row| !row.findings.is_empty()).collect();
    if !found.is_empty() {
        let mut table = comfy_table::Table::new();
        table.load_style(comfy_table::presets::NOTHING).set_header(["TYPE", "ARTIFACT", "STATUS", "FINDINGS"]);
        for row in found {
            let id = TerminalText::spaced(&row.artifact_id).into_string();
            let cells = [row.artifact_type, &id, row.certification_status, &row.findings.join(", ")];
            table.add_row(cells.map(str::to_owned));
        }
        text.push_str(&format!("{table}\n"));
    }
    for orphan in &report.orphans {
        let id = TerminalText::spaced(&orphan.artifact_id);
        text.push_str(&format!("the project lacks {} {id}, which has records\n", orphan.artifact_type));
    }
    text
}

fn write(out: Option<&Path>, text: &str) -> Result<(), Failure> {
    match out {
        Some(path) => std::fs::write(path, text)
            .map_err(|error| Failure::new(format!("{} cannot be written: {error}", path.display()))),
        None => {
            print(text);
            Ok(())
        }
    }
}
