//! `cargo xtask attack`: a long differential attack on policies.
//!
//! In: the number of cases and the first seed. Out: progress and counts. Each fault becomes a case file in
//! `tests/attack/cases/found`. Not here: the attack itself, which is a program of `tests/attack`.

use std::process::ExitCode;

use anyhow::{Context as _, Result};

use crate::context::Context;

#[derive(clap::Args)]
pub(crate) struct AttackArguments {
    /// The number of cases.
    #[arg(long, default_value_t = 20_000)]
    cases: usize,
    /// The seed of the first scenario. Each further scenario has the next number as its seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Run only the case with this number in the scenario of `--seed`.
    #[arg(long)]
    only: Option<usize>,
    /// Further arguments of the attack, for example `--faults 50`.
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
    let status = command.args(&arguments.more).status().context("starting terrane-attack")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
