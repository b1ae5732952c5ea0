//! `cargo xtask`: sets up a clean machine and runs the commands of the README.
//!
//! In: a subcommand. Out: a prepared `.prepared/` folder, a running server, a release archive, or a test run with the
//! runner's summary and exit code. Not here: code that the product needs at run time, and dependencies that are slow to
//! build.
#![allow(clippy::print_stdout, reason = "a command-line tool prints its progress")]
#![allow(clippy::disallowed_methods, reason = "a tool for developers reads the environment and the clock")]

mod adbc;
mod archive;
mod attack;
mod checksum;
mod clients;
mod cluster;
mod command;
mod components;
mod context;
mod databases;
mod demo;
mod dialects;
mod dist;
mod docs;
mod download;
mod duckdb;
mod fuzz;
mod http;
mod jobs;
mod load;
#[cfg(test)]
mod manifests;
mod npm;
mod playground;
mod process;
mod python;
mod schemathesis;
#[cfg(test)]
mod shown_commands;
mod soak;
mod spark;
mod test;
mod tpch;
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
    /// Prepare libduckdb, GraphiQL, the guests' standard library, the components, and the databases and tools of the tests.
    Setup(SetupArguments),
    /// Build the plugins, examples and templates as WebAssembly components.
    Components,
    /// Set up, build the server and serve the flights example.
    Demo(demo::DemoArguments),
    /// Set up and run every check and test of the workspace, or with --fast the light ones.
    Test(test::TestArguments),
    /// Run the conformance suite of the dialects on real engines and write plugins/DIALECTS.md.
    Dialects(dialects::DialectsArguments),
    /// Compare the product with the oracle on random projects, data and queries.
    Fuzz(fuzz::FuzzArguments),
    /// Compare pairs of servers that a restricted caller must not distinguish.
    Attack(attack::AttackArguments),
    /// Attack a real server, put it under load, and print the measurements.
    Soak(soak::SoakArguments),
    /// Kill servers that run asynchronous queries, and measure submissions and memory.
    Jobs(jobs::JobsArguments),
    /// Measure cached answers, misses, equal queries and submissions of jobs, with `wrk`.
    Load(load::LoadArguments),
    /// Run three replicas behind a balancer, under a load and a script of faults.
    Cluster(cluster::ClusterArguments),
    /// Measure questions over the tables of TPC-H against SQL written by hand.
    Tpch(tpch::TpchArguments),
    /// Fetch the ADBC driver of a database into .prepared/adbc.
    Adbc(adbc::AdbcArguments),
    /// Build the release archive: the program, libduckdb, components, licenses and checksums.
    Dist(dist::DistArguments),
    /// Build the documents as a static site in target/docs, and check its links.
    Docs,
}

#[derive(clap::Args)]
struct SetupArguments {
    /// Use only this source of the guests' standard library, to check it.
    #[arg(long, value_enum)]
    wasm_std: Option<wasm_std::Source>,
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("\nerror: {error}");
            for cause in error.chain().skip(1) {
                eprintln!("  cause: {cause}");
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
            playground::prepare(&context);
            let toolchain = wasm_std::prepare(&context, arguments.wasm_std)?;
            components::build(&context, &toolchain)?;
            databases::prepare();
            schemathesis::prepare(&context);
            npm::prepare(&context, "oidc-provider", "tests/system/provider", "oidc-provider");
            clients::prepare(&context);
            adbc::prepare(&context);
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
        Command::Jobs(arguments) => jobs::run(&context, &arguments),
        Command::Load(arguments) => load::run(&context, &arguments),
        Command::Cluster(arguments) => cluster::run(&context, &arguments),
        Command::Tpch(arguments) => tpch::run(&context, &arguments),
        Command::Adbc(arguments) => adbc::run(&context, &arguments),
        Command::Dist(arguments) => dist::run(&context, &arguments),
        Command::Docs => docs::run(&context),
    }
}

/// Prepares the files that the workspace needs to be built.
fn set_up(context: &Context) -> Result<wasm_std::GuestToolchain> {
    duckdb::prepare(context)?;
    playground::prepare(context);
    let toolchain = wasm_std::prepare(context, None)?;
    components::build(context, &toolchain)?;
    Ok(toolchain)
}
