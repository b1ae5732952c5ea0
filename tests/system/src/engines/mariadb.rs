//! Starts MariaDB in a separate folder, with a collation that ignores case and trailing spaces, and without tables of
//! time zones.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::process::{Program, Server, as_user, folder_of, run};
use super::{Missing, program};

const USER: &str = "mysql";
const FOLDERS: &[&str] = &["/usr/sbin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"];

/// Statements that the server runs at each start.
const SET_UP: &str = "\
    CREATE DATABASE IF NOT EXISTS shop CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci;\n\
    CREATE USER IF NOT EXISTS 'terrane'@'%' IDENTIFIED BY 'secret';\n\
    GRANT ALL ON *.* TO 'terrane'@'%';\n";

pub(super) fn missing() -> Option<Missing> {
    let names = ["mariadbd", "mariadb-install-db", "mariadb-admin"];
    names.iter().find_map(|name| program(FOLDERS, name).err())
}

pub(super) fn start() -> Result<Server> {
    let folder = folder_of(USER)?;
    let mut install = as_user(USER, &path("mariadb-install-db")?);
    install.args(["--no-defaults", "--skip-test-db", "--auth-root-authentication-method=normal"]);
    install.arg(format!("--datadir={}", folder.path().join("data").display()));
    // Two installations at the same time would use the same files in the system's temporary folder.
    install.arg(format!("--tmpdir={}", folder.path().display()));
    run(install)?;
    fs::write(folder.path().join("set-up.sql"), SET_UP)?;
    Server::start(folder, Program { start: command, probe, stop_at_once: "KILL" })
}

fn command(folder: &Path, port: u16) -> Result<Command> {
    let mut command = as_user(USER, &path("mariadbd")?);
    command.arg("--no-defaults").arg(format!("--datadir={}", folder.join("data").display()));
    command.arg(format!("--tmpdir={}", folder.display()));
    command.arg(format!("--socket={}", folder.join("socket").display()));
    command.arg(format!("--pid-file={}", folder.join("pid").display()));
    command.arg(format!("--init-file={}", folder.join("set-up.sql").display()));
    command.args([&format!("--port={port}"), "--bind-address=127.0.0.1", "--skip-name-resolve"]);
    // The project's sessions must not depend on the defaults of a server, so these defaults are unusual.
    command.args(["--default-time-zone=+09:00", "--character-set-server=latin1", "--sql-mode="]);
    Ok(command)
}

fn probe(_: &Path, port: u16) -> Result<Command> {
    let mut command = Command::new(path("mariadb-admin")?);
    command.args(["--no-defaults", "--protocol=tcp", "-h127.0.0.1", "-uterrane", "-psecret"]);
    command.args([&format!("--port={port}"), "ping"]);
    Ok(command)
}

pub(super) fn url(port: u16) -> String {
    format!("mysql://terrane:secret@127.0.0.1:{port}/shop")
}

fn path(name: &str) -> Result<PathBuf> {
    program(FOLDERS, name).map_err(|Missing(why)| anyhow::anyhow!(why))
}
