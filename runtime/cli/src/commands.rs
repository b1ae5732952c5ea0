//! The commands, one per file. Each reads its arguments, calls the other modules, and prints the result.

pub mod anomaly;
pub mod ask;
pub mod audit;
pub mod auth;
pub mod check;
pub mod config;
pub mod cost;
pub mod dax;
pub mod doctor;
pub mod explain;
pub mod governance;
pub mod graphql;
pub mod import;
pub mod init;
pub mod jobs;
pub mod lsp;
pub mod plugin;
pub mod preagg;
pub mod profile;
pub mod query;
pub mod run;
pub mod schema;
pub mod search;
pub mod serve;
pub mod state;
pub mod test;

use std::io::Write as _;

use jiff::Timestamp;
use serde::Serialize;
use terrane_app::accounts::Actor;
use terrane_app::ports::audit::AuditEntry;
use terrane_compiler::diagnostic::Diagnostic;
use terrane_compiler::project::SourceTree;

use crate::report::{self, Style};

/// Returns the operator of this machine, as audit records name them.
pub(crate) fn operator() -> Actor {
    // From the operating system: an environment variable can have any value.
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

/// Draws diagnostics to standard error, with an empty line after each.
pub(crate) fn print_problems(problems: &[Diagnostic], tree: &SourceTree, style: Style) {
    if !problems.is_empty() {
        print_error(&format!("{}\n", report::draw(problems, tree, style)));
    }
}
