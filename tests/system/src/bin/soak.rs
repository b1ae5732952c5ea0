//! `cargo xtask soak`: attacks a server and then puts it under load by many clients, or runs it with a hook that loops.
//!
//! `soak REQUESTS SEED CLIENTS SECONDS`, or `soak looping-hook CLIENTS LOOPING SECONDS`. The exit code is 1 if a rule
//! was violated.
#![allow(clippy::print_stdout, reason = "a command-line tool prints to stdout")]
#![allow(clippy::disallowed_methods, reason = "a tool reads its arguments and finds the program beside itself")]

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use terrane_system_tests::soak::load::{self, BODIES, Crowd, QUERIES};
use terrane_system_tests::soak::{self, Settings, looping, stage};

/// The highest allowed ratio of the other callers' p99 with a looping hook to their p99 without one.
const WORST_RATIO: f64 = 1.5;

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let binary = std::env::current_exe()?.with_file_name("terrane-under-test");
    let binary = binary.to_str().context("a path that is not UTF-8")?;
    let (is_looping, numbers) = match arguments.split_first() {
        Some((first, rest)) if first == "looping-hook" => (true, rest),
        _ => (false, &arguments[..]),
    };
    let numbers: Vec<u64> = numbers.iter().map(|text| text.parse().context(text.clone())).collect::<Result<_>>()?;
    let is_well = match (is_looping, &numbers[..]) {
        (true, [clients, looping, seconds]) => beside_a_loop(binary, *clients, *looping, *seconds)?,
        (false, [requests, seed, clients, seconds]) => attacked(binary, (*requests, *seed), *clients, *seconds)?,
        _ => anyhow::bail!("soak REQUESTS SEED CLIENTS SECONDS, or soak looping-hook CLIENTS LOOPING SECONDS"),
    };
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn attacked(binary: &str, (requests, seed): (u64, u64), clients: u64, seconds: u64) -> Result<bool> {
    let folder = tempfile::tempdir()?;
    let (server, credentials) = stage::start(binary, folder.path(), &[])?;
    let report = soak::run(server.address, server.process(), &credentials, Settings { requests, seed, clients: 24 });
    print!("{report}");
    let (bearer, clients_at_once) = (credentials.reader.as_str(), clients as usize);
    let crowd = Crowd { bearer, path: QUERIES, bodies: BODIES, clients: clients_at_once, pause: Duration::ZERO };
    let asked = load::run(server.address, server.process(), crowd, Duration::from_secs(seconds));
    print!("\n{clients} clients for {seconds} s\n{asked}");
    let (code, _) = server.terminate()?;
    println!("\nthe server ended with {code:?}");
    let is_alive =
        |watched: &soak::watch::Watched| watched.failed_probes == 0 && watched.slowest_probe < Duration::from_secs(2);
    Ok(report.faults.is_empty() && is_alive(&report.watched) && is_alive(&asked.watched) && code == Some(0))
}

fn beside_a_loop(binary: &str, clients: u64, looping: u64, seconds: u64) -> Result<bool> {
    let mut is_well = true;
    for (name, is_required) in [("required", true), ("monitored", false)] {
        let duration = Duration::from_secs(seconds);
        let (clients, looping) = (clients as usize, looping as usize);
        let report = looping::run(binary, looping::Settings { clients, looping, duration, is_required })?;
        print!("a {name} hook that loops for {looping} of its callers, {clients} others, {seconds} s\n{report}");
        let ratio = report.ratio(99);
        println!("the p99 of the others is {ratio:.2} times as long; the bound is {WORST_RATIO}\n");
        is_well &= ratio <= WORST_RATIO;
    }
    Ok(is_well)
}
