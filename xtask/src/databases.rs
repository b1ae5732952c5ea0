//! Prepares the Debian packages of the system tests: PostgreSQL, MariaDB, Redis, Prometheus, Chromium,
//! a C compiler for WebAssembly, Java, the XMLA client olap4j, the load generator wrk, and the tools that the documents
//! use.
//!
//! In: the machine. Out: the installed packages, or a note about the tests that are skipped. Not here: starting the
//! programs, which each test does itself. A missing program is not an error here, because the tests report it.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::command::{is_installed, run_quiet};

const LIMIT: Duration = Duration::from_secs(900);

struct Program {
    name: &'static str,
    /// The Debian packages, separated by spaces.
    package: &'static str,
    is_present: fn() -> bool,
}

const SERVERS: &[Program] = &[
    Program { name: "PostgreSQL", package: "postgresql", is_present: has_postgres },
    Program { name: "MariaDB", package: "mariadb-server", is_present: || Path::new("/usr/sbin/mariadbd").is_file() },
    Program { name: "Redis", package: "redis-server", is_present: || is_installed("redis-server") },
    Program { name: "Prometheus", package: "prometheus", is_present: || is_installed("promtool") },
    Program {
        name: "clang and lld",
        package: "clang lld",
        is_present: || is_installed("clang") && is_installed("wasm-ld"),
    },
    Program { name: "Chromium", package: "chromium", is_present: || Path::new("/usr/bin/chromium").is_file() },
    Program { name: "Java", package: "default-jdk-headless", is_present: || is_installed("javac") },
    Program {
        name: "olap4j",
        package: "libolap4j-java",
        is_present: || Path::new("/usr/share/java/olap4j-xmla.jar").is_file(),
    },
    Program { name: "wrk", package: "wrk", is_present: || is_installed("wrk") },
    Program {
        name: "curl, jq and OpenSSL",
        package: "curl jq openssl",
        is_present: || ["curl", "jq", "openssl"].into_iter().all(is_installed),
    },
];

/// Installs the missing packages, if this needs no password.
pub(crate) fn prepare() {
    let missing: Vec<&Program> = SERVERS.iter().filter(|program| !(program.is_present)()).collect();
    if missing.is_empty() {
        println!(
            "ok    PostgreSQL, MariaDB, Redis, Prometheus, Chromium, clang, lld, Java, olap4j, wrk, curl, jq and OpenSSL \
             for the system tests"
        );
        return;
    }
    let packages: Vec<&str> = missing.iter().flat_map(|program| program.package.split(' ')).collect();
    let names: Vec<&str> = missing.iter().map(|program| program.name).collect();
    let (packages_shown, names) = (packages.join(" "), names.join(" and "));
    if !is_root() || !is_installed("apt-get") {
        println!("note  {names} missing: their tests are skipped; install the packages {packages_shown} to run them");
        return;
    }
    println!("      installing {packages_shown} for the system tests");
    let installed = install(&packages).or_else(|_| {
        run_quiet(apt().arg("update"), LIMIT)?;
        install(&packages)
    });
    match installed {
        Ok(_) => println!("ok    {names} for the system tests"),
        Err(error) => println!("note  {names} missing, so their tests are skipped: {error:#}"),
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

/// Returns whether PostgreSQL is installed. Debian installs each version in its own folder, outside the search path.
fn has_postgres() -> bool {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    versions.map(|entry| entry.path().join("bin/postgres")).any(|program| program.is_file()) || is_installed("postgres")
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}
