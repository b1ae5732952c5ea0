//! `cargo xtask soak`: a real server under attack, then under many clients; then the sandbox under guests whose
//! answers are right, nearly right and rubbish. With `--looping-hook` instead: a server whose hook loops for some.
//!
//! In: how much of it. Out: figures, and failure if a rule was broken: a 5xx, an error without its shape, a secret in
//! an answer, a liveness probe over 2 seconds, an end that was not asked for, memory that grows. Absent on purpose: the
//! attacks, which are a program of the system tests; a smaller sample runs with them.

use std::process::ExitCode;

use anyhow::{Context as _, Result};

use crate::context::Context;

#[derive(clap::Args)]
pub(crate) struct SoakArguments {
    /// Attacks in all.
    #[arg(long, default_value_t = 50_000)]
    requests: u64,
    /// The same seed makes the same attacks.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Clients of the load that follows.
    #[arg(long, default_value_t = 1_000)]
    clients: u64,
    /// How long they ask.
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// Calls of plugins whose answers are right, nearly right and rubbish.
    #[arg(long, default_value_t = 1_000_000)]
    guest_calls: u64,
    /// Only compare how long others wait with and without callers for whom a hook loops.
    #[arg(long)]
    looping_hook: bool,
    /// Callers for whom it loops.
    #[arg(long, default_value_t = 4, requires = "looping_hook")]
    looping: u64,
}

/// Others who ask while a hook loops, as many as two cores answer without a queue.
const OTHERS: u64 = 4;

pub(crate) fn run(context: &Context, arguments: &SoakArguments) -> Result<ExitCode> {
    crate::set_up(context)?;
    let built = context.cargo().args(["build", "--quiet", "--package", "terrane-system-tests", "--bins"]).status()?;
    anyhow::ensure!(built.success(), "the build failed");
    let mut command = context.cargo();
    command.args(["run", "--quiet", "--package", "terrane-system-tests", "--bin", "terrane-soak", "--"]);
    let SoakArguments { requests, seed, clients, seconds, guest_calls, looping_hook, looping } = arguments;
    if *looping_hook {
        command.arg("looping-hook").args([&OTHERS, looping, seconds].map(u64::to_string));
        let status = command.status().context("starting the soak")?;
        return Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    command.args([requests, seed, clients, seconds].map(u64::to_string));
    let status = command.status().context("starting the soak")?;
    let survived = hostile_guests(context, *guest_calls)?;
    Ok(if status.success() && survived { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The test that has a sample of them makes as many calls as it is told.
fn hostile_guests(context: &Context, calls: u64) -> Result<bool> {
    let mut command = context.cargo();
    command.env("TERRANE_SOAK_CALLS", calls.to_string());
    command.args(["test", "--quiet", "--workspace", "--test", "host", "--", "hostile_returns", "--nocapture"]);
    Ok(command.status().context("starting the hostile guests")?.success())
}
