//! Starts PostgreSQL in a separate folder, with a collation that is not by code point, and optionally with TLS.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use tempfile::TempDir;

use super::process::{Program, Server, as_user, folder_of, run};
use super::{Missing, certificate, program};

const USER: &str = "postgres";

/// Returns the folders that may contain the programs. Debian has a folder for each version.
fn folders() -> Vec<String> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut folders: Vec<String> = versions.map(|entry| entry.path().join("bin").display().to_string()).collect();
    folders.sort();
    folders.reverse();
    folders.extend(["/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"].map(str::to_owned));
    folders
}

fn tool(name: &str) -> Result<PathBuf, Missing> {
    let folders = folders();
    program(&folders.iter().map(String::as_str).collect::<Vec<_>>(), name)
}

pub(super) fn missing() -> Option<Missing> {
    ["initdb", "postgres", "pg_isready"].iter().find_map(|name| tool(name).err())
}

pub(super) fn start() -> Result<Server> {
    start_over(folder_of(USER)?)
}

/// Starts a server with a certificate for 127.0.0.1 that its own authority has signed.
pub(super) fn start_with_certificate() -> Result<Server> {
    let folder = folder_of(USER)?;
    certificate::write_for(USER, folder.path())?;
    start_over(folder)
}

fn start_over(folder: TempDir) -> Result<Server> {
    let mut initdb = as_user(USER, &path("initdb")?);
    initdb.args(["--no-sync", "--username=terrane", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8"]);
    initdb.args(["--locale-provider=icu", "--icu-locale=en-US", "-D"]).arg(folder.path().join("data"));
    run(initdb)?;
    Server::start(folder, Program { start: command, probe, stop_at_once: "QUIT" })
}

fn command(folder: &Path, port: u16) -> Result<Command> {
    let mut command = as_user(USER, &path("postgres")?);
    command.arg("-D").arg(folder.join("data")).args(["-p", &port.to_string(), "-c", "listen_addresses=127.0.0.1"]);
    // The project's sessions must not depend on the defaults of a server, so these defaults are unusual.
    command.args(["-c", "fsync=off", "-c", "timezone=Asia/Tokyo", "-c", "datestyle=SQL,DMY"]);
    if folder.join(certificate::CERTIFICATE).exists() {
        command.args(["-c", "ssl=on"]);
        command.args(["-c", &format!("ssl_cert_file={}", folder.join(certificate::CERTIFICATE).display())]);
        command.args(["-c", &format!("ssl_key_file={}", folder.join(certificate::KEY).display())]);
    }
    command.args(["-c", &format!("unix_socket_directories={}", folder.display())]);
    Ok(command)
}

fn probe(_: &Path, port: u16) -> Result<Command> {
    let mut command = Command::new(path("pg_isready")?);
    command.args(["-q", "-h", "127.0.0.1", "-U", "terrane", "-d", "postgres", "-p", &port.to_string()]);
    Ok(command)
}

pub(super) fn url(port: u16) -> String {
    format!("postgres://terrane:secret@127.0.0.1:{port}/postgres")
}

fn path(name: &str) -> Result<PathBuf> {
    tool(name).map_err(|Missing(why)| anyhow::anyhow!(why))
}

/// Runs a program of PostgreSQL for a server and returns its output.
pub(super) fn ask(port: u16, name: &str, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new(path(name)?);
    command.args(["-h", "127.0.0.1", "-U", "terrane", "-p", &port.to_string()]).args(arguments);
    let output = command.output()?;
    anyhow::ensure!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}
