//! The database servers that the system tests start: PostgreSQL and MariaDB.
//!
//! In: the machine. Out: both installed, or a note of what their cases miss. Absent on purpose: starting
//! them, which each test does by itself, and failing: without a server its cases are skipped by name.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::command::{is_installed, run_quiet};

const LIMIT: Duration = Duration::from_secs(900);

struct Server {
    name: &'static str,
    /// Debian's package.
    package: &'static str,
    is_there: fn() -> bool,
}

const SERVERS: &[Server] = &[
    Server { name: "PostgreSQL", package: "postgresql", is_there: has_postgres },
    Server { name: "MariaDB", package: "mariadb-server", is_there: || Path::new("/usr/sbin/mariadbd").is_file() },
];

/// Installs what is missing where that needs nobody's password.
pub(crate) fn prepare() {
    let missing: Vec<&Server> = SERVERS.iter().filter(|server| !(server.is_there)()).collect();
    if missing.is_empty() {
        println!("ok    PostgreSQL and MariaDB for the system tests");
        return;
    }
    let packages: Vec<&str> = missing.iter().map(|server| server.package).collect();
    let names: Vec<&str> = missing.iter().map(|server| server.name).collect();
    let (packages_shown, names) = (packages.join(" "), names.join(" and "));
    if !is_root() || !is_installed("apt-get") {
        println!("note  no {names}: their cases are skipped; install the packages {packages_shown} to run them");
        return;
    }
    println!("      installing {packages_shown} for the system tests");
    let installed = install(&packages).or_else(|_| {
        run_quiet(apt().arg("update"), LIMIT)?;
        install(&packages)
    });
    match installed {
        Ok(_) => println!("ok    {names} for the system tests"),
        Err(error) => println!("note  no {names}, so their cases are skipped: {error:#}"),
    }
}

fn install(packages: &[&str]) -> anyhow::Result<String> {
    run_quiet(apt().args(["install", "-y", "--no-install-recommends"]).args(packages), LIMIT)
}

fn apt() -> Command {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive").arg("-q");
    command
}

/// Debian keeps each version in a folder of its own, outside of the search path.
fn has_postgres() -> bool {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    versions.map(|entry| entry.path().join("bin/postgres")).any(|program| program.is_file()) || is_installed("postgres")
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}
