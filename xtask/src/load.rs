//! `cargo xtask load`: measures the result cache over HTTP with `wrk`, and the submission of jobs.
//!
//! In: the number of connections and the duration of each measurement. Out: figures beside their goals, and failure if
//! an answer is wrong. Not here: the measurement, which is a program of `tests/system`, and the exact cost of a miss
//! without sockets, which is a benchmark: `cargo bench -p terrane-conformance-tests --bench cache`.

use std::process::ExitCode;

use anyhow::{Context as _, Result};

use crate::context::Context;

#[derive(clap::Args)]
pub(crate) struct LoadArguments {
    /// The number of connections, and of clients that submit jobs.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..))]
    connections: u64,
    /// The duration of each measurement in seconds.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// Build and measure the program of the release.
    #[arg(long)]
    release: bool,
}

pub(crate) fn run(context: &Context, arguments: &LoadArguments) -> Result<ExitCode> {
    crate::set_up(context)?;
    crate::databases::prepare();
    let LoadArguments { connections, seconds, release } = arguments;
    let profile: &[&str] = if *release { &["--release"] } else { &[] };
    let package = ["--quiet", "--package", "terrane-system-tests"];
    let built = context.cargo().arg("build").args(profile).args(package).arg("--bins").status()?;
    anyhow::ensure!(built.success(), "the build failed");
    let mut command = context.cargo();
    command.arg("run").args(profile).args(package).args(["--bin", "terrane-load", "--"]);
    let status = command.args([connections, seconds].map(u64::to_string)).status().context("starting terrane-load")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
