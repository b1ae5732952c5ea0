//! `terrane audit`: whether the log is whole, and what is in it.

use std::path::PathBuf;

use clap::Subcommand;
use serde_json::json;
use terrane_app::ports::audit::{AuditFilter, AuditLog as _, ChainState};

use super::print;
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
    /// Check every record against the chain; exit code 1 where it is broken
    Verify {
        /// The project: the folder that holds service_project.yml
        #[arg(default_value = ".")]
        dir: PathBuf,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Show the newest records
    List {
        /// The project: the folder that holds service_project.yml
        #[arg(default_value = ".")]
        dir: PathBuf,
        /// Only of this event, like access_denied
        #[arg(long)]
        event: Option<String>,
        /// Only of this user id
        #[arg(long)]
        actor: Option<String>,
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
        /// One JSON object a line, as the route /api/v1/audit tells a record
        #[arg(long)]
        json: bool,
    },
}

impl AuditAction {
    /// Where the project is.
    pub fn dir(&self) -> &PathBuf {
        match self {
            AuditAction::Verify { dir, .. } | AuditAction::List { dir, .. } => dir,
        }
    }
}

/// Whether all is well.
///
/// # Errors
/// The state database can't be read.
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
                print(&format!("the audit log is whole: {records}, the last hash is {last_hash}\n"));
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
                let lines = records.iter().map(|record| format!("{}\n", terrane_server::audit_record(record)));
                print(&lines.collect::<String>());
                return Ok(true);
            }
            let mut table = comfy_table::Table::new();
            let header = ["#", "AT", "EVENT", "ACTOR", "METHOD", "FROM", "RESOURCE", "REASON", "TIMES"];
            table.load_style(comfy_table::presets::NOTHING).set_header(header);
            for record in records {
                let entry = record.entry;
                table.add_row([
                    &record.sequence.to_string(),
                    &entry.at.to_string(),
                    &*entry.event,
                    &*entry.actor,
                    &*entry.auth_method,
                    entry.client_ip.as_deref().unwrap_or_default(),
                    &*entry.resource,
                    entry.reason.as_deref().unwrap_or_default(),
                    &entry.count.to_string(),
                ]);
            }
            print(&format!("{table}\n"));
            Ok(true)
        }
    }
}
