//! `cargo xtask`: set-up of a clean machine and the commands of the README.
//!
//! In: a subcommand. Out: a prepared `.prepared/` folder, a running server, or a test run with
//! the runner's own summary and exit code. Absent on purpose: anything the product itself needs
//! at run time, and every dependency that would make this slow to build.
#![allow(clippy::print_stdout, reason = "a command-line tool speaks on stdout")]
#![allow(clippy::disallowed_methods, reason = "a tool of the machine reads its environment and its clock")]

mod archive;
mod attack;
mod checksum;
mod command;
mod components;
mod context;
mod databases;
mod demo;
mod dialects;
mod duckdb;
mod fuzz;
mod http;
mod package;
mod provider;
mod python;
mod schemathesis;
mod soak;
mod test;
mod wasm_std;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::context::Context;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Set up, build, run and test Terrane")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Prepare libduckdb, the guests' standard library, the first-party components, and what tests ask: databases
    /// and an identity provider.
    Setup(SetupArguments),
    /// Build the plugins under plugins/, and those of the examples and templates, to WebAssembly components.
    Components,
    /// Set up, build the server and serve the flights example.
    Demo(demo::DemoArguments),
    /// Set up and run every check and test of the workspace.
    Test(test::TestArguments),
    /// Ask real engines the dialects' conformance suite and write plugins/DIALECTS.md.
    Dialects(dialects::DialectsArguments),
    /// Compare the product with the oracle on random models, data and queries.
    Fuzz(fuzz::FuzzArguments),
    /// Compare two servers that a restricted caller must not be able to tell apart.
    Attack(attack::AttackArguments),
    /// Attack a real server, then put it under load, and print what was measured.
    Soak(soak::SoakArguments),
    /// Build the release folder: `terrane` with `lib/` and `components/` beside it.
    Package(package::PackageArguments),
}

#[derive(clap::Args)]
struct SetupArguments {
    /// Try only this way to get the guests' standard library (to check one link of the chain).
    #[arg(long, value_enum)]
    wasm_std: Option<wasm_std::Source>,
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("\nerror: {error}");
            for cause in error.chain().skip(1) {
                eprintln!("  because {cause}");
            }
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<ExitCode> {
    let context = Context::discover()?;
    match command {
        Command::Setup(arguments) => {
            duckdb::prepare(&context)?;
            let toolchain = wasm_std::prepare(&context, arguments.wasm_std)?;
            components::build(&context, &toolchain)?;
            databases::prepare();
            schemathesis::prepare(&context);
            provider::prepare(&context);
            Ok(ExitCode::SUCCESS)
        }
        Command::Components => {
            let toolchain = wasm_std::prepare(&context, None)?;
            components::build(&context, &toolchain)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Demo(arguments) => demo::run(&context, &arguments),
        Command::Test(arguments) => test::run(&context, &arguments),
        Command::Dialects(arguments) => dialects::run(&context, &arguments),
        Command::Fuzz(arguments) => fuzz::run(&context, &arguments),
        Command::Attack(arguments) => attack::run(&context, &arguments),
        Command::Soak(arguments) => soak::run(&context, &arguments),
        Command::Package(arguments) => package::run(&context, &arguments),
    }
}

/// Everything that has to be there before the workspace is built or tested.
fn set_up(context: &Context) -> Result<wasm_std::GuestToolchain> {
    duckdb::prepare(context)?;
    let toolchain = wasm_std::prepare(context, None)?;
    components::build(context, &toolchain)?;
    Ok(toolchain)
}
