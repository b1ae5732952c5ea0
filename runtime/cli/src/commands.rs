//! The commands, one per file. Each reads its arguments, calls the other modules, and prints the result.

pub mod anomaly;
pub mod ask;
pub mod audit;
pub mod auth;
pub mod check;
pub mod codegen;
pub mod config;
pub mod cost;
pub mod dax;
pub mod doctor;
pub mod explain;
pub mod export;
pub mod governance;
pub mod graph;
pub mod graphql;
pub mod import;
pub mod init;
pub mod jobs;
pub mod lineage;
pub mod list;
pub mod lsp;
mod module;
pub mod plugin;
pub mod preagg;
pub mod profile;
mod prompt;
pub mod query;
pub mod report_page;
pub mod run;
pub mod schema;
pub mod search;
pub mod serve;
pub mod state;
pub mod test;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use serde::Serialize;
use terrane_app::accounts::Actor;
use terrane_app::ports::audit::AuditEntry;
use terrane_app::services::Services;
use terrane_compiler::diagnostic::Diagnostic;
use terrane_compiler::project::SourceTree;
use terrane_compiler::text::nearest::nearest;
use terrane_pictures::Glyphs;
use terrane_terminal::TerminalText;

use crate::failure::Failure;
use crate::project::Project;
use crate::report::{self, Style};
use crate::wiring::{self, CommandDuration};

/// The largest number of similar names that an error proposes.
const MAX_NEAREST: usize = 3;

/// Returns the operator of this machine, as audit records name them.
pub(crate) fn operator() -> Actor {
    // The user id comes from the operating system, because an environment variable can have any value.
    let user = rustix::process::getuid().as_raw();
    let user_id = format!("operator:uid={user}").into();
    Actor { user_id, auth_method: "operator".into(), ..Actor::default() }
}

/// Returns an audit record for an action of the operator on this machine.
pub(crate) fn operator_entry(event: &'static str, at: Timestamp, resource: String) -> AuditEntry {
    let Actor { user_id, auth_method, .. } = operator();
    AuditEntry {
        at,
        event: event.into(),
        actor: user_id,
        auth_method,
        resource: resource.into(),
        count: 1,
        ..AuditEntry::default()
    }
}

/// The properties of the terminal.
#[derive(Debug, Clone, Copy)]
pub struct Terminal {
    pub stdout: Style,
    pub stderr: Style,
    pub is_stdout_terminal: bool,
    pub is_stderr_terminal: bool,
    /// The characters that pictures on standard output may use.
    pub glyphs: Glyphs,
}

/// Writes to standard output. A closed pipe (`| head`) is not an error.
pub(crate) fn print(text: &str) {
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}

/// Returns a type of the wire as one line of JSON.
pub(crate) fn json_line(value: &impl Serialize) -> String {
    // Types of the wire have string keys, so they always serialize.
    let mut line = serde_json::to_string(value).unwrap_or_default();
    line.push('\n');
    line
}

/// Writes to standard error.
pub(crate) fn print_error(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Returns the error for an unknown name, with the nearest names that exist.
pub(crate) fn unknown<'a>(kind: &str, name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Failure {
    let failure = Failure::new(format!("unknown {kind} `{}`", TerminalText::line(name)));
    let names = nearest(name, candidates, MAX_NEAREST);
    if names.is_empty() { failure } else { failure.hint(format!("Similar names: {}.", names.join(", "))) }
}

/// Loads a project for a command that reads rows, and warns if its pre-aggregations cannot be read.
///
/// # Errors
/// Every problem of the project, if one of them is an error.
pub(crate) async fn load_for_queries(project: &Project, duration: CommandDuration) -> Result<Services, Failure> {
    let (services, unread) = wiring::load_for_queries(project, duration).await?;
    if let Some(failure) = unread {
        print_warning(&format!("pre-aggregations are not read: {failure}"));
    }
    Ok(services)
}

/// Writes a warning to standard error, unless this run already wrote the same one.
pub(crate) fn print_warning(text: &str) {
    static PRINTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    const MAX_PRINTED: usize = 1_000;
    // A panic leaves the set consistent, so a poisoned lock can be used.
    let mut printed = PRINTED.lock().unwrap_or_else(PoisonError::into_inner);
    if printed.len() < MAX_PRINTED && printed.insert(text.to_owned()) {
        print_error(&format!("warning: {text}\n"));
    }
}

/// Draws diagnostics to standard error, with an empty line after each.
pub(crate) fn print_problems(problems: &[Diagnostic], tree: &SourceTree, style: Style) {
    if !problems.is_empty() {
        print_error(&format!("{}\n", report::draw(problems, tree, style)));
    }
}
