//! `terrane plugin`: the commands for authors of plugins.
//!
//! In: arguments. Out: the results of the plugin kit, as text or JSON. Not here: the work itself
//! (`terrane_plugin_kit`), and the plugins of a server, which its project lists.

mod bench;
mod build;
mod check;
mod inspect;
mod new;
mod run;
mod sign;
mod test;

use clap::{Subcommand, ValueEnum};
use terrane_app::ports::plugins::PluginRole;
use terrane_plugin_host::plain;
use terrane_plugin_kit::KitError;

use super::Terminal;
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Create, build, test and sign a component:
  terrane plugin new mine --role detector
  terrane plugin build mine
  terrane plugin test mine
  terrane plugin keygen --out my.key
  terrane plugin sign mine/target/components/detector-mine.wasm --key my.key

wit/README.md describes the contract, and sdk/README.md describes each role in Rust.")]
pub struct PluginArguments {
    #[command(subcommand)]
    pub action: PluginAction,
}

#[derive(Debug, Subcommand)]
pub enum PluginAction {
    /// Create the crate of a new plugin
    New(new::NewArguments),
    /// Build a crate as a component that contains its plugin.toml
    Build(build::BuildArguments),
    /// Check whether a server would load a component, and show its description
    Check(check::CheckArguments),
    /// Test a component against its role's conformance vectors and its author's cases
    Test(test::TestArguments),
    /// Make the call of a case file and print the response
    Run(run::RunArguments),
    /// Make the call of a case file many times and report time, fuel and memory
    Bench(bench::BenchArguments),
    /// Create a key for signatures
    Keygen(sign::KeygenArguments),
    /// Write the signature of a component to a file next to it
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

impl From<Role> for PluginRole {
    fn from(role: Role) -> PluginRole {
        match role {
            Role::Dialect => PluginRole::Dialect,
            Role::Detector => PluginRole::Detector,
            Role::Check => PluginRole::Check,
            Role::Governance => PluginRole::Governance,
        }
    }
}

impl From<KitError> for Failure {
    fn from(error: KitError) -> Failure {
        let failure = Failure::new(error.to_string());
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

/// Runs a command. Returns whether the component passed.
///
/// # Errors
/// The command could not do its work.
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

/// Returns a problem without control characters, for a terminal; further lines are indented.
fn shown(problem: &str, indent: usize) -> String {
    let lines: Vec<String> = problem.lines().map(plain).collect();
    lines.join(&format!("\n{:indent$}", ""))
}
