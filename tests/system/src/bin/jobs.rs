//! `cargo xtask jobs`: tests asynchronous queries and builds with kills, under load, and with a large result.
//!
//! `jobs kills ROUNDS SEED`, `jobs build-kills ROUNDS SEED`, `jobs submissions CLIENTS SECONDS` or `jobs memory ROWS
//! MEMORY_LIMIT`. The exit code is 1 if a guarantee was violated.
#![allow(clippy::print_stdout, reason = "a command-line tool prints to stdout")]
#![allow(clippy::disallowed_methods, reason = "a tool reads its arguments and finds the program beside itself")]

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use terrane_system_tests::builds::{BuildKills, Rows};
use terrane_system_tests::engines::{Engine, Kind};
use terrane_system_tests::jobs::{kills, memory, submissions};

/// The largest allowed memory in bytes above the memory of the idle server.
const MEMORY_GOAL: u64 = 200 << 20;

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let binary = std::env::current_exe()?.with_file_name("terrane-under-test");
    let binary = binary.to_str().context("a path that is not UTF-8")?;
    let number = |text: &str| text.parse::<u64>().with_context(|| text.to_owned());
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let is_well = match arguments[..] {
        ["kills", rounds, seed] => killed(binary, number(rounds)?, number(seed)?)?,
        ["build-kills", rounds, seed] => killed_builds(binary, number(rounds)?, number(seed)?)?,
        ["submissions", clients, seconds] => {
            let duration = Duration::from_secs(number(seconds)?);
            let (report, rate) = submissions::run(binary, "sqlite://state.db", number(clients)? as usize, duration)?;
            println!("{rate:.0} submissions per second\n{report}");
            true
        }
        ["memory", rows, memory_limit] => measured(binary, number(rows)?, memory_limit)?,
        _ => bail!(
            "jobs kills ROUNDS SEED, jobs build-kills ROUNDS SEED, jobs submissions CLIENTS SECONDS, or \
             jobs memory ROWS MEMORY_LIMIT"
        ),
    };
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Kills one server with a state database in SQLite, then two servers that share one in PostgreSQL. Returns true if no
/// fault was found.
fn killed(binary: &str, rounds: u64, seed: u64) -> Result<bool> {
    let settings = kills::KillSettings { rounds, replicas: 1, seed };
    let report = kills::run(binary, "sqlite://state.db", settings)?;
    println!("SQLite, 1 server: {report}");
    if let Some(missing) = Kind::Postgres.missing() {
        println!("PostgreSQL: skipped, {}", missing.0);
        return Ok(report.faults.is_empty());
    }
    let engine = Engine::start(Kind::Postgres)?;
    let shared = kills::run(binary, &engine.make_database("state")?, kills::KillSettings { replicas: 2, ..settings })?;
    println!("PostgreSQL, 2 servers: {shared}");
    Ok(report.faults.is_empty() && shared.faults.is_empty())
}

/// Kills servers during builds: one server on SQLite and DuckDB, then two servers on one PostgreSQL, in half of the
/// rounds each. Returns true if no fault was found.
fn killed_builds(binary: &str, rounds: u64, seed: u64) -> Result<bool> {
    let half = rounds / 2;
    let alone = BuildKills {
        binary,
        state_url: "sqlite://state.db",
        rows: Rows::File,
        rounds: rounds - half,
        replicas: 1,
        seed,
    };
    let report = alone.run()?;
    println!("SQLite and DuckDB, 1 server: {report}");
    if let Some(missing) = Kind::Postgres.missing() {
        println!("PostgreSQL: skipped, {}", missing.0);
        return Ok(report.faults.is_empty());
    }
    let engine = Engine::start(Kind::Postgres)?;
    let state_url = engine.make_database("state")?;
    let rows = Rows::Postgres(&engine);
    let shared = BuildKills { binary, state_url: &state_url, rows, rounds: half, replicas: 2, seed }.run()?;
    println!("PostgreSQL, 2 servers: {shared}");
    Ok(report.faults.is_empty() && shared.faults.is_empty())
}

fn measured(binary: &str, rows: u64, memory_limit: &str) -> Result<bool> {
    let report = memory::run(binary, rows, memory_limit)?;
    let [idle, writing, paging, again] =
        [report.idle, report.writing, report.paging, report.paging_again].map(|bytes| bytes >> 20);
    let [streaming, bytes] = [report.streaming, report.result_bytes].map(|bytes| bytes >> 20);
    println!("{rows} rows of 10 columns, {bytes} MiB; DuckDB has a memory limit of {memory_limit}");
    println!(
        "idle: {idle} MiB; above it: {writing} MiB writing, {paging} MiB in pages, {again} MiB once more, {streaming} MiB as a whole"
    );
    let [write, page] = [report.write_duration, report.page_duration].map(|duration| duration.as_secs_f64());
    println!("written in {write:.1} s, read in pages in {page:.1} s");
    Ok([report.writing, report.paging, report.paging_again, report.streaming].iter().all(|bytes| *bytes <= MEMORY_GOAL))
}
