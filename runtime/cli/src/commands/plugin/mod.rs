//! `terrane plugin`: what an author does with a component, from an empty folder to a signed file.
//!
//! In: folders and files. Out: a new crate, a component, what it is, whether it keeps the contract. Runs in
//! the server's own sandbox (`terrane_plugin_host::test_bench`). Not here: which plugins a server uses, which
//! its project says.

mod bench;
mod build;
mod case;
mod check;
mod conformance;
mod contract;
mod inspect;
mod new;
mod run;
mod sign;
mod test;
mod toolchain;

use std::path::{Path, PathBuf};

use clap::{Subcommand, ValueEnum};
use terrane_app::ports::plugins::{PluginFault, PluginRole};
use terrane_plugin_host::plain;
use terrane_plugin_host::test_bench::{CallError, LogLines, TestBench};

use super::Terminal;
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
From nothing to a component:
  terrane plugin new detector-mine --role detector
  terrane plugin build detector-mine
  terrane plugin test detector-mine
  terrane plugin keygen --out my.key
  terrane plugin sign detector-mine/target/components/detector-mine.wasm --key my.key

wit/README.md describes the contract, sdk/README.md what each role looks like in Rust.")]
pub struct PluginArguments {
    #[command(subcommand)]
    pub action: PluginAction,
}

#[derive(Debug, Subcommand)]
pub enum PluginAction {
    /// Make the crate of a new plugin
    New(new::NewArguments),
    /// Build the crate, make it a component and put its plugin.toml in
    Build(build::BuildArguments),
    /// Tell whether a server would take a component, and what it is
    Check(check::CheckArguments),
    /// Hold a component against its role's conformance vectors and its author's cases
    Test(test::TestArguments),
    /// Make the call of a case file and print the answer
    Run(run::RunArguments),
    /// Make the call of a case file many times and tell time, fuel and memory
    Bench(bench::BenchArguments),
    /// Make a key that signs
    Keygen(sign::KeygenArguments),
    /// Write the signature beside a component
    Sign(sign::SignArguments),
    /// Show a component's functions and types
    Inspect(inspect::InspectArguments),
}

/// A role, as `plugin.toml` and projects write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Role {
    Dialect,
    Detector,
    Check,
    Governance,
}

/// Whether all is well.
///
/// # Errors
/// What kept the command from doing its work.
pub fn run(arguments: &PluginArguments, terminal: Terminal) -> Result<bool, Failure> {
    match &arguments.action {
        PluginAction::New(arguments) => new::run(arguments),
        PluginAction::Build(arguments) => build::run(arguments),
        PluginAction::Check(arguments) => check::run(arguments),
        PluginAction::Test(arguments) => test::run(arguments, terminal),
        PluginAction::Run(arguments) => run::run(arguments),
        PluginAction::Bench(arguments) => bench::run(arguments),
        PluginAction::Keygen(arguments) => sign::keygen(arguments),
        PluginAction::Sign(arguments) => sign::sign(arguments),
        PluginAction::Inspect(arguments) => inspect::run(arguments),
    }
}

/// Reads and compiles a component.
fn open(file: &Path) -> Result<TestBench, Failure> {
    TestBench::open(file).map_err(|fault| {
        let failure = Failure::new(format!("{} {fault}", file.display()));
        if file.is_dir() {
            failure.hint("that is a folder; `terrane plugin build` writes the component to target/components/ in it")
        } else if file.exists() {
            failure.hint("`terrane plugin build` makes components; wit/README.md says what a component may import")
        } else {
            failure.hint("check the path; `terrane plugin build` prints where it wrote the component")
        }
    })
}

/// The role of a component that has one.
fn role_of(bench: &TestBench, file: &Path) -> Result<PluginRole, Failure> {
    bench.facts().role.ok_or_else(|| {
        let exports: Vec<&str> = bench.facts().exports.iter().map(|export| export.interface.as_str()).collect();
        let exports = if exports.is_empty() { "nothing".to_owned() } else { exports.join(", ") };
        Failure::new(format!("{} has no role: it exports {exports}", file.display()))
            .hint("export the interface of a role, with the SDK's macro or after wit/worlds.wit")
    })
}

/// A call's failure with its place.
fn call_failure(place: &str, error: &CallError) -> Failure {
    let failure = Failure::new(format!("{place}: {}", call_text(error)));
    match error {
        CallError::UnknownFunction { .. } => failure.hint("`terrane plugin inspect FILE` lists the functions"),
        CallError::Arguments { .. } => {
            failure.hint("the names are those of the contract in wit/; `terrane plugin inspect FILE --wit` prints it")
        }
        CallError::Fault { .. } => failure,
    }
}

/// All of it, each misfit on a line of its own.
fn call_text(error: &CallError) -> String {
    match error {
        CallError::UnknownFunction { exports, .. } => format!("{error}; there are {}", exports.join(", ")),
        CallError::Arguments { misfits, .. } => {
            let lines = misfits.iter().take(10).map(|misfit| format!("\n    {}: {}", misfit.path, misfit.message));
            let more = misfits.len().saturating_sub(10);
            let more = if more > 0 { format!("\n    and {more} more") } else { String::new() };
            format!("{error}{}{more}", lines.collect::<String>())
        }
        CallError::Fault { log, .. } => with_log(error.to_string(), log),
    }
}

/// A problem, and below it what the component wrote.
fn with_log(problem: String, log: &LogLines) -> String {
    log_texts(log).into_iter().fold(problem, |text, line| format!("{text}\n    {line}"))
}

/// A problem as a terminal shows it: further lines of it, which may be a stranger's, stand under the first.
fn shown(problem: &str, indent: usize) -> String {
    let lines: Vec<String> = problem.lines().map(plain).collect();
    lines.join(&format!("\n{:indent$}", ""))
}

/// What a component wrote during a call, a line each.
fn log_texts(log: &LogLines) -> Vec<String> {
    let dropped = (log.dropped > 0).then(|| format!("and {} more, which is more than a call may write", log.dropped));
    log.lines.iter().map(|line| format!("it logged {line}")).chain(dropped).collect()
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path)
        .map_err(|error| Failure::new(format!("{} can't be read: {error}", path.display())).hint("check the path"))
}

fn read_text(path: &Path) -> Result<String, Failure> {
    String::from_utf8(read(path)?).map_err(|_| Failure::new(format!("{} is no UTF-8 text", path.display())))
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    std::fs::write(path, bytes)
        .map_err(|error| Failure::new(format!("{} can't be written: {error}", path.display())).hint("check the folder"))
}

/// Where a component's signature lies: its name with `.sig` behind it.
fn signature_path(file: &Path) -> PathBuf {
    let mut path = file.as_os_str().to_owned();
    path.push(".");
    path.push(terrane_plugin_host::signature::EXTENSION);
    path.into()
}
