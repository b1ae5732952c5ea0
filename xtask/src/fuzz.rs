//! `cargo xtask fuzz`: a long comparison of the product with the oracle.
//!
//! In: how many queries, and the first seed. Out: progress and counts; a difference becomes a case file
//! under `tests/oracle/cases/found`. Absent on purpose: the fuzz itself, which is a program of the tests.

use std::process::ExitCode;

use anyhow::{Context as _, Result};

use crate::context::Context;
use crate::duckdb;

#[derive(clap::Args)]
pub(crate) struct FuzzArguments {
    /// Queries in all.
    #[arg(long, default_value_t = 100_000)]
    cases: usize,
    /// The first world's seed; the next one has the next.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Handed to the fuzz, for example `--with to_many`.
    #[arg(last = true)]
    more: Vec<String>,
}

pub(crate) fn run(context: &Context, arguments: &FuzzArguments) -> Result<ExitCode> {
    duckdb::prepare(context)?;
    let mut command = context.cargo();
    command.args(["run", "--quiet", "--package", "terrane-oracle-tests", "--bin", "terrane-fuzz", "--"]);
    command.arg("--cases").arg(arguments.cases.to_string()).arg("--seed").arg(arguments.seed.to_string());
    let status = command.args(&arguments.more).status().context("starting the fuzz")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
