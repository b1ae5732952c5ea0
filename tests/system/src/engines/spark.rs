//! The server of Spark Connect: Sail, which `cargo xtask setup` installs, or the server at the address in
//! `TERRANE_TEST_SPARK_URL`, such as Apache Spark itself.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use tempfile::TempDir;

use super::Missing;
use super::process::{Program, Server};

/// Returns the URL of a server that is already running.
pub(super) fn running() -> Option<String> {
    #[allow(clippy::disallowed_methods, reason = "tests are configured by their environment")]
    std::env::var("TERRANE_TEST_SPARK_URL").ok()
}

pub(super) fn missing() -> Option<Missing> {
    let is_present = running().is_some() || sail().is_file();
    (!is_present).then(|| Missing("`cargo xtask setup` installs Sail with Python's pip".to_owned()))
}

/// Starts Sail.
pub(super) fn start() -> Result<Server> {
    Server::start(TempDir::new()?, Program { start: command, probe, stop_at_once: "KILL" })
}

fn sail() -> PathBuf {
    // `cargo xtask setup` installs tools in the target folder, in which this program is as well.
    let program = std::env::current_exe().unwrap_or_default();
    let mut folders = program.ancestors().map(|folder| folder.join("tools/spark-server/bin/sail"));
    folders.find(|path| path.is_file()).unwrap_or_default()
}

fn command(folder: &Path, port: u16) -> Result<Command> {
    let mut command = Command::new(sail());
    command.args(["spark", "server", "--ip", "127.0.0.1", "--port", &port.to_string()]).current_dir(folder);
    Ok(command)
}

fn probe(_: &Path, port: u16) -> Result<Command> {
    let mut command = Command::new("bash");
    command.args(["-c", &format!("exec 3<>/dev/tcp/127.0.0.1/{port}")]);
    Ok(command)
}

pub(super) fn url(port: u16) -> String {
    format!("sc://127.0.0.1:{port}")
}

/// Returns statements that create and select a schema for this process, because a running server may have the tables of
/// other processes.
pub(super) fn own_schema() -> Vec<String> {
    let schema = format!("of_process_{}", std::process::id());
    vec![format!("CREATE SCHEMA IF NOT EXISTS {schema}"), format!("USE DATABASE {schema}")]
}
