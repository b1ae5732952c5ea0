//! `cargo xtask dialects --engine postgres`: compares DAX on a real engine, with known answers and with the evaluator.
//!
//! In: an engine, the number of random queries, and the first seed. Out: every difference, those of random queries with
//! their seeds, and counts. The server is started for the run, and stopped after it.
#![allow(clippy::print_stdout, reason = "a command-line tool prints to stdout")]

use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use terrane_oracle_tests::case::settings;
use terrane_oracle_tests::dax::long_run::LongRun;
use terrane_oracle_tests::dax::run::{Open, on_mysql, on_postgres, on_sqlite};
use terrane_system_tests::engines::{Engine, Kind, Missing};

/// The number of differences after which a run stops.
const MAX_DIFFERENCES: usize = 20;

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [engine, cases, seed] = arguments.as_slice() else { bail!("usage: dax_on_engine ENGINE CASES SEED") };
    let kind = match engine.as_str() {
        "postgres" => Kind::Postgres,
        "mariadb" => Kind::MariaDb,
        "sqlite" => Kind::Sqlite,
        other => bail!("unknown engine `{other}`"),
    };
    if let Some(Missing(why)) = kind.missing() {
        bail!("{engine} cannot start: {why}\n  hint: Run `cargo xtask setup`.");
    }
    let started = Engine::start(kind)?;
    let url = || started.url().context("the server has no URL");
    let mut open: Box<Open<'_>> = match kind {
        Kind::Postgres => Box::new(on_postgres(settings(), url()?)),
        Kind::MariaDb => Box::new(on_mysql(settings(), url()?)),
        _ => Box::new(on_sqlite(settings())),
    };
    let time = if kind == Kind::Postgres { "TIMESTAMP" } else { "DATETIME" };
    let long = LongRun { cases: cases.parse()?, seed: seed.parse()?, max_differences: MAX_DIFFERENCES, time };
    let report = long.run(&mut *open, |difference| println!("{difference}"))?;
    println!("{report}");
    Ok(if report.differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
