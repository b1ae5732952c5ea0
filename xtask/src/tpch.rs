//! `cargo xtask tpch`: measures questions over the tables of TPC-H by hand, as Terrane's SQL, and over HTTP.
//!
//! In: the scale factor and the number of rounds. Out: times side by side, and failure if rows differ. Not here: the
//! questions, which are in `tests/load/tpch`, and the measurement, which is a program of `tests/system`.

use std::process::ExitCode;

use anyhow::{Context as _, Result};

use crate::context::Context;

#[derive(clap::Args)]
pub(crate) struct TpchArguments {
    /// The scale factor; at 1, the largest table has 6 million rows.
    #[arg(long, default_value_t = 0.1)]
    scale: f64,
    /// The number of times that each question is measured.
    #[arg(long, default_value_t = 31)]
    rounds: u64,
    /// Measure the pre-aggregation of the project instead.
    #[arg(long)]
    rollup: bool,
    /// Measure general DAX queries over HTTP instead.
    #[arg(long, conflicts_with = "rollup")]
    dax: bool,
    /// Compare predicted with actual bytes and seconds of this number of random queries instead.
    #[arg(long, value_name = "QUERIES", conflicts_with_all = ["rollup", "dax"])]
    predictions: Option<u32>,
    /// Build and measure the program of the release.
    #[arg(long)]
    release: bool,
}

pub(crate) fn run(context: &Context, arguments: &TpchArguments) -> Result<ExitCode> {
    crate::set_up(context)?;
    let TpchArguments { scale, rounds, rollup, dax, predictions, release } = arguments;
    let profile: &[&str] = if *release { &["--release"] } else { &[] };
    let package = ["--quiet", "--package", "terrane-system-tests"];
    let built = context.cargo().arg("build").args(profile).args(package).arg("--bins").status()?;
    anyhow::ensure!(built.success(), "the build failed");
    let mut command = context.cargo();
    command.arg("run").args(profile).args(package).args(["--bin", "terrane-tpch", "--"]);
    let (kind, count) = match predictions {
        Some(queries) => ("predictions", u64::from(*queries)),
        None if *dax => ("dax", *rounds),
        None => (if *rollup { "rollup" } else { "questions" }, *rounds),
    };
    let status = command
        .args([kind.to_owned(), scale.to_string(), count.to_string()])
        .status()
        .context("starting terrane-tpch")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
