//! The heavy tests, with real warehouses, real components and the real program.
//!
//! In: the built program, and the engines and tools on this machine. All tests are in one binary, because linking takes
//! as long as running them. Not here: ignoring missing tools. `skip` reports them, and fails in CI.

mod alerts;
mod auth;
mod bad_input;
mod channels;
mod clients;
mod codegen;
mod commands;
mod data_check;
mod data_tests;
mod dimension_tests;
mod engines;
mod expectations;
mod governance;
mod governed_records;
mod graphql;
mod graphql_attacks;
mod hidden_members;
mod hidden_words;
mod import;
mod init;
mod interface;
mod jobs;
mod language_model;
mod logging;
mod metric_monitors;
mod models;
mod module_commands;
mod monitors;
mod operating;
mod overload;
mod packages;
mod pictures;
mod plugin_kit;
mod policies;
mod preaggregations;
mod profiles;
mod projects;
mod providers;
mod questions;
mod received;
mod redis;
mod reference_pages;
mod schemas;
mod serving;
mod shutdown;
mod soak;
mod special_types;
mod state;
mod statistics;
mod tutorial;
mod xmla;

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use terrane_system_tests::{Output, Program, skip};

const BINARY: &str = env!("CARGO_BIN_EXE_terrane-under-test");

/// Locks the working directory. DuckDB makes the folder of its project the working directory, so the tests in this
/// process use one project at a time.
fn working_directory() -> MutexGuard<'static, ()> {
    static TAKEN: Mutex<()> = Mutex::new(());
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the program with a command and the folder of a project.
fn program(command: &str, folder: &Path) -> Program {
    Program::new(BINARY, &[command], folder)
}

fn run(command: &str, folder: &Path, arguments: &[&str]) -> Output {
    // Tests run in parallel, so a server without a chosen port uses a free one.
    let chooses_port = command == "serve" && !arguments.contains(&"--port");
    let port: &[&str] = if chooses_port { &["--port", "0"] } else { &[] };
    program(command, folder).arguments(arguments).arguments(port).run().expect("running the program")
}
