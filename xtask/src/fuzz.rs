//! `cargo xtask fuzz`: a long comparison of the product with the oracle.
//!
//! In: the number of queries and the first seed. Out: progress and counts. Each difference becomes a case file in
//! `tests/oracle/cases/found`. Not here: the comparison itself, which is a program of `tests/oracle`.

use std::process::ExitCode;

use anyhow::{Context as _, Result};

use crate::context::Context;
use crate::duckdb;

#[derive(clap::Args)]
pub(crate) struct FuzzArguments {
    /// The number of queries.
    #[arg(long, default_value_t = 100_000)]
    cases: usize,
    /// The seed of the first project. Each further project has the next number as its seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Further arguments of the comparison, for example `--with to_many`.
    #[arg(last = true)]
    more: Vec<String>,
}

pub(crate) fn run(context: &Context, arguments: &FuzzArguments) -> Result<ExitCode> {
    duckdb::prepare(context)?;
    let mut command = context.cargo();
    command.args(["run", "--quiet", "--package", "terrane-oracle-tests", "--bin", "terrane-fuzz", "--"]);
    command.arg("--cases").arg(arguments.cases.to_string()).arg("--seed").arg(arguments.seed.to_string());
    let status = command.args(&arguments.more).status().context("starting terrane-fuzz")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
