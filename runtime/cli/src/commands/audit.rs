//! `terrane audit`: verifies and shows the audit log.

use std::path::PathBuf;

use clap::Subcommand;
use serde_json::json;
use terrane_app::ports::audit::{AuditEntry, AuditFilter, AuditLog as _, AuditRecord, ChainState};
use terrane_compiler::text::nearest::nearest;
use terrane_json::details;
use terrane_terminal::TerminalText;
use terrane_wire::audit::Record;

use super::{json_line, print, print_error};
use crate::failure::Failure;
use crate::project::Project;
use crate::report::plural;
use crate::wiring;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  terrane audit verify
  terrane audit list my-project --event access_denied --limit 20
  terrane audit list --json | jq .correlation_id")]
pub struct AuditArguments {
    #[command(subcommand)]
    pub action: AuditAction,
}

#[derive(Debug, Subcommand)]
pub enum AuditAction {
    /// Verify every record; exit code 1 if the chain is broken
    Verify {
        /// The project folder, which contains service_project.yml
        #[arg(default_value = ".")]
        dir: PathBuf,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Show the newest records
    List {
        /// The project folder, which contains service_project.yml
        #[arg(default_value = ".")]
        dir: PathBuf,
        /// List only records of this event, such as access_denied
        #[arg(long)]
        event: Option<String>,
        /// List only records of this user id
        #[arg(long)]
        actor: Option<String>,
        /// The maximum number of records
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
        /// Print one JSON object per line, as the route /api/v1/audit returns records
        #[arg(long)]
        json: bool,
    },
}

impl AuditAction {
    /// Returns the path of the project.
    pub fn dir(&self) -> &PathBuf {
        match self {
            AuditAction::Verify { dir, .. } | AuditAction::List { dir, .. } => dir,
        }
    }
}

/// Runs the command. Returns false if the chain is broken.
///
/// # Errors
/// The state database cannot be read.
pub async fn run(arguments: &AuditArguments, project: &Project) -> Result<bool, Failure> {
    let store = wiring::state(project).await?;
    let failed = |error: terrane_app::ports::store::StoreError| Failure::new(error.to_string());
    match &arguments.action {
        AuditAction::Verify { json, .. } => match store.verify().await.map_err(failed)? {
            ChainState::Whole { records, last_hash } if *json => {
                print(&format!("{}\n", json!({"is_whole": true, "records": records, "last_hash": &*last_hash})));
                Ok(true)
            }
            ChainState::Whole { records, last_hash } => {
                let records = plural(usize::try_from(records).unwrap_or(usize::MAX), "record");
                print(&format!("the audit log is intact: {records}, the last hash is {last_hash}\n"));
                Ok(true)
            }
            ChainState::Broken { sequence, why } if *json => {
                print(&format!("{}\n", json!({"is_whole": false, "sequence": sequence, "why": &*why})));
                Ok(false)
            }
            ChainState::Broken { sequence, why } => {
                print(&format!("the audit log is broken at record {sequence}: {why}\n"));
                Ok(false)
            }
        },
        AuditAction::List { event, actor, limit, json, .. } => {
            let filter = AuditFilter {
                event: event.as_deref().map(Into::into),
                actor: actor.as_deref().map(Into::into),
                limit: *limit,
                ..AuditFilter::default()
            };
            let records = store.records(&filter).await.map_err(failed)?;
            if *json {
                let lines = records.iter().map(|record| json_line(&Record::from(record)));
                print(&lines.collect::<String>());
                return Ok(true);
            }
            if let (true, Some(event)) = (records.is_empty(), event) {
                let all = AuditFilter { limit: KNOWN_EVENTS_OF, ..AuditFilter::default() };
                print_error(&no_such_event(event, &store.records(&all).await.map_err(failed)?));
                return Ok(true);
            }
            print(&format!("{}\n", table(&records)));
            Ok(true)
        }
    }
}

/// The largest number of characters of a cell; `--json` prints whole values.
const MAX_CELL: usize = 80;
/// The number of newest records whose events a hint may name.
const KNOWN_EVENTS_OF: u32 = 10_000;
const KNOWN_EVENTS_SHOWN: usize = 10;

fn table(records: &[AuditRecord]) -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    let header = ["#", "AT", "EVENT", "ACTOR", "METHOD", "FROM", "RESOURCE", "REASON", "TIMES"];
    table.load_style(comfy_table::presets::NOTHING).set_header(header);
    for AuditRecord { sequence, entry, .. } in records {
        table.add_row([
            sequence.to_string(),
            entry.at.to_string(),
            cell(&entry.event),
            cell(&entry.actor),
            cell(&entry.auth_method),
            cell(entry.client_ip.as_deref().unwrap_or_default()),
            cell(&entry.resource),
            cell(&reason(entry)),
            entry.count.to_string(),
        ]);
    }
    table
}

/// Returns the reason of a record, followed by the fault that caused it.
fn reason(entry: &AuditEntry) -> String {
    let facts = entry.after.as_ref().map(details::to_json);
    let fault = facts.as_ref().and_then(|facts| facts["fault"].as_str());
    let parts = [entry.reason.as_deref(), fault];
    parts.into_iter().flatten().collect::<Vec<_>>().join(": ")
}

/// Returns the text of a cell: one line of at most [`MAX_CELL`] characters.
fn cell(text: &str) -> String {
    let text = TerminalText::spaced(text).into_string();
    match text.char_indices().nth(MAX_CELL) {
        Some(_) => text.chars().take(MAX_CELL - 1).chain(['…']).collect(),
        None => text,
    }
}

fn no_such_event(event: &str, records: &[AuditRecord]) -> String {
    let known = nearest(event, records.iter().map(|record| &*record.entry.event), KNOWN_EVENTS_SHOWN);
    let known = if known.is_empty() { "no records".to_owned() } else { known.join(", ") };
    format!("no record of the event `{event}`\n  hint: the log has {known}\n")
}

#[cfg(test)]
mod tests {
    use terrane_app::ports::audit::Details;

    use super::*;

    fn record(event: &str, reason: &str, after: Option<&str>) -> AuditRecord {
        let entry = AuditEntry {
            event: event.into(),
            reason: Some(reason.into()),
            after: after.map(|after: &str| Details::Encoded(after.into())),
            ..AuditEntry::default()
        };
        AuditRecord { sequence: 1, entry, hash: "".into(), previous: "".into() }
    }

    #[test]
    fn long_reasons_are_cut_and_faults_are_shown() {
        let long = record("plugin_reload_refused", &"x".repeat(500), None);
        let fault = record("policy_unavailable", "policy_unavailable", Some(r#"{"fault": "trapped in\n`on-query`"}"#));
        let text = table(&[long, fault]).to_string();
        assert!(text.contains(&format!("{}…", "x".repeat(MAX_CELL - 1))) && !text.contains(&"x".repeat(MAX_CELL)));
        assert!(text.contains("policy_unavailable: trapped in `on-query`"), "{text}");
    }

    #[test]
    fn unknown_event_is_reported_with_the_nearest() {
        let records = [record("key_created", "", None), record("access_denied", "", None)];
        let text = no_such_event("acces_denied", &records);
        assert!(text.contains("the log has access_denied, key_created"), "{text}");
        assert!(no_such_event("x", &[]).contains("no records"));
    }
}
