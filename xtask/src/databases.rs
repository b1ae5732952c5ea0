//! Programs of Debian that the system tests start: PostgreSQL, MariaDB, a C compiler for WebAssembly.
//!
//! In: the machine. Out: all installed, or a note of what their cases miss. Absent on purpose: starting
//! them, which each test does by itself, and failing: without a program its cases are skipped by name.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::command::{is_installed, run_quiet};

const LIMIT: Duration = Duration::from_secs(900);

struct Program {
    name: &'static str,
    /// Debian's packages, separated by spaces.
    package: &'static str,
    is_there: fn() -> bool,
}

const SERVERS: &[Program] = &[
    Program { name: "PostgreSQL", package: "postgresql", is_there: has_postgres },
    Program { name: "MariaDB", package: "mariadb-server", is_there: || Path::new("/usr/sbin/mariadbd").is_file() },
    Program {
        name: "clang and lld",
        package: "clang lld",
        is_there: || is_installed("clang") && is_installed("wasm-ld"),
    },
];

/// Installs what is missing where that needs nobody's password.
pub(crate) fn prepare() {
    let missing: Vec<&Program> = SERVERS.iter().filter(|program| !(program.is_there)()).collect();
    if missing.is_empty() {
        println!("ok    PostgreSQL, MariaDB, clang and lld for the system tests");
        return;
    }
    let packages: Vec<&str> = missing.iter().flat_map(|program| program.package.split(' ')).collect();
    let names: Vec<&str> = missing.iter().map(|program| program.name).collect();
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
