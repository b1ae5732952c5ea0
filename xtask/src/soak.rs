//! `cargo xtask soak`: attacks a real server, puts it under the load of many clients, and calls the sandbox with valid
//! and invalid guests. With `--looping-hook`, it instead measures a server whose hook loops for some callers.
//!
//! In: the numbers of attacks, clients and calls, and the duration of the load. Out: figures, and failure if a rule is
//! violated: no 5xx, no error in a wrong format, no secret in a response, no liveness probe of more than 2 seconds, no
//! crash, no memory growth. Not here: the attacks, which are a program of `tests/system`. A smaller sample runs with
//! the tests.

use std::process::ExitCode;

use anyhow::{Context as _, Result};

use crate::context::Context;

#[derive(clap::Args)]
pub(crate) struct SoakArguments {
    /// The number of attacks.
    #[arg(long, default_value_t = 50_000)]
    requests: u64,
    /// The same seed makes the same attacks.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The number of clients of the load that follows.
    #[arg(long, default_value_t = 1_000)]
    clients: u64,
    /// The duration of the load in seconds.
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// The number of calls of guests with valid and invalid results.
    #[arg(long, default_value_t = 1_000_000)]
    guest_calls: u64,
    /// Only compare the waiting times of callers while a hook loops for other callers, and while it does not.
    #[arg(long)]
    looping_hook: bool,
    /// The number of callers for whom the hook loops.
    #[arg(long, default_value_t = 4, requires = "looping_hook")]
    looping: u64,
}

/// The number of callers for whom the hook does not loop. Two cores serve this number without a queue.
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
        let status = command.status().context("starting terrane-soak")?;
        return Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    command.args([requests, seed, clients, seconds].map(u64::to_string));
    let status = command.status().context("starting terrane-soak")?;
    let survived = run_hostile_guests(context, *guest_calls)?;
    Ok(if status.success() && survived { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs the test of hostile guests with the given number of calls.
fn run_hostile_guests(context: &Context, calls: u64) -> Result<bool> {
    let mut command = context.cargo();
    command.env("TERRANE_SOAK_CALLS", calls.to_string());
    command.args(["test", "--quiet", "--workspace", "--test", "host", "--", "hostile_returns", "--nocapture"]);
    Ok(command.status().context("starting the test of hostile guests")?.success())
}
