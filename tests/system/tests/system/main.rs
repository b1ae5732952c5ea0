//! The heavy tests: real warehouses, real components, the real program.
//!
//! One binary, since linking it takes as long as running it.

mod auth;
mod bad_input;
mod commands;
mod data_check;
mod engines;
mod expectations;
mod governance;
mod import;
mod init;
mod interface;
mod logging;
mod models;
mod operating;
mod overload;
mod plugin_kit;
mod policies;
mod projects;
mod providers;
mod schemas;
mod serving;
mod shutdown;
mod soak;
mod state;
mod statistics;
mod tutorial;

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use terrane_system_tests::{Output, Program};

const BINARY: &str = env!("CARGO_BIN_EXE_terrane-under-test");

/// One project at a time where they run in this process: DuckDB makes its project's folder the working
/// directory.
fn working_directory() -> MutexGuard<'static, ()> {
    static TAKEN: Mutex<()> = Mutex::new(());
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reports cases that can't run because a tool is missing. In CI nothing may be missing.
fn skip(cases: &str, reason: &str) {
    #[allow(clippy::disallowed_methods, reason = "tests are configured by their environment")]
    let is_ci = std::env::var("CI").is_ok_and(|value| value == "true");
    assert!(!is_ci, "{cases} must run in CI: {reason}");
    eprintln!("skipped: {cases}: {reason}");
}

/// The program with a command and a project's folder.
fn program(command: &str, folder: &Path) -> Program {
    Program::new(BINARY, &[command], folder)
}

fn run(command: &str, folder: &Path, arguments: &[&str]) -> Output {
    // Tests run side by side: a server that names no port takes any that is free.
    let chooses_port = command == "serve" && !arguments.contains(&"--port");
    let port: &[&str] = if chooses_port { &["--port", "0"] } else { &[] };
    program(command, folder).arguments(arguments).arguments(port).run().expect("the program runs to its end")
}
