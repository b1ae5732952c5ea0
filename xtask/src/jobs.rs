//! `cargo xtask jobs`: kills servers that run asynchronous queries or build pre-aggregations, and measures the rate of
//! submissions and the memory of a large result.
//!
//! In: the numbers of rounds, jobs and rows. Out: figures, and failure if a promise is broken. Not here: the rounds
//! themselves, which are a program of `tests/system`. A few rounds also run with the tests.

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Subcommand;

use crate::context::Context;

#[derive(clap::Args)]
pub(crate) struct JobsArguments {
    #[command(subcommand)]
    run: Run,
}

#[derive(Subcommand)]
enum Run {
    /// Kill servers at random moments, on SQLite and on PostgreSQL.
    Kills {
        #[arg(long, default_value_t = 200)]
        rounds: u64,
        /// The same seed kills at the same moments.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Kill servers that build pre-aggregations while rows change and caches are invalidated, half of the rounds on SQLite
    /// and DuckDB, half on PostgreSQL.
    BuildKills {
        #[arg(long, default_value_t = 200)]
        rounds: u64,
        /// Seed of the moments at which the servers are killed
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Run both kinds of kills, with this number of rounds for each kind and each state database.
    AllKills {
        #[arg(long, default_value_t = 200)]
        rounds: u64,
        /// Seed of the moments at which the servers are killed
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Count the jobs that a server on SQLite stores.
    Submissions {
        #[arg(long, default_value_t = 16)]
        clients: u64,
        #[arg(long, default_value_t = 10)]
        seconds: u64,
    },
    /// Write and read a large result, and measure the memory of the server.
    Memory {
        #[arg(long, default_value_t = 5_000_000)]
        rows: u64,
        /// The memory limit of DuckDB, which runs in the server.
        #[arg(long, default_value = "100MB")]
        memory_limit: String,
    },
}

pub(crate) fn run(context: &Context, arguments: &JobsArguments) -> Result<ExitCode> {
    crate::set_up(context)?;
    let built = context.cargo().args(["build", "--quiet", "--package", "terrane-system-tests", "--bins"]).status()?;
    anyhow::ensure!(built.success(), "the build failed");
    let is_well = match &arguments.run {
        Run::Kills { rounds, seed } => start(context, &["kills", &rounds.to_string(), &seed.to_string()])?,
        Run::BuildKills { rounds, seed } => start(context, &["build-kills", &rounds.to_string(), &seed.to_string()])?,
        Run::AllKills { rounds, seed } => {
            let jobs = start(context, &["kills", &rounds.to_string(), &seed.to_string()])?;
            // Half of the rounds of builds run on each state database.
            let builds = start(context, &["build-kills", &(rounds * 2).to_string(), &seed.to_string()])?;
            jobs && builds
        }
        Run::Submissions { clients, seconds } => {
            start(context, &["submissions", &clients.to_string(), &seconds.to_string()])?
        }
        Run::Memory { rows, memory_limit } => start(context, &["memory", &rows.to_string(), memory_limit])?,
    };
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs the program of the tests. Returns whether it found no fault.
fn start(context: &Context, arguments: &[&str]) -> Result<bool> {
    let mut command = context.cargo();
    command.args(["run", "--quiet", "--package", "terrane-system-tests", "--bin", "terrane-jobs", "--"]);
    let status = command.args(arguments).status().context("starting terrane-jobs")?;
    Ok(status.success())
}
