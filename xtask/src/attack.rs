//! `cargo xtask attack`: a long differential attack on policies.
//!
//! In: how many cases, and the first seed. Out: progress and counts; a fault becomes a case file under
//! `tests/attack/cases/found`. Absent on purpose: the attack itself, which is a program of the tests.

use std::process::ExitCode;

use anyhow::{Context as _, Result};

use crate::context::Context;

#[derive(clap::Args)]
pub(crate) struct AttackArguments {
    /// Cases in all.
    #[arg(long, default_value_t = 20_000)]
    cases: usize,
    /// The first scenario's seed; the next one has the next.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Run only the case of this number in the scenario of `--seed`.
    #[arg(long)]
    only: Option<usize>,
    /// Handed to the attack, for example `--faults 50`.
    #[arg(last = true)]
    more: Vec<String>,
}

pub(crate) fn run(context: &Context, arguments: &AttackArguments) -> Result<ExitCode> {
    crate::set_up(context)?;
    let mut command = context.cargo();
    command.args(["run", "--quiet", "--package", "terrane-attack-tests", "--bin", "terrane-attack", "--"]);
    command.arg("--cases").arg(arguments.cases.to_string()).arg("--seed").arg(arguments.seed.to_string());
    if let Some(only) = arguments.only {
        command.arg("--only").arg(only.to_string());
    }
    let status = command.args(&arguments.more).status().context("starting the attack")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
