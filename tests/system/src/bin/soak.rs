//! `cargo xtask soak`: a server under attack, then under many clients, with its figures.
//!
//! `soak REQUESTS SEED CLIENTS SECONDS`. Exit code 1 where a rule was broken.
#![allow(clippy::print_stdout, reason = "a command-line tool speaks on stdout")]
#![allow(clippy::disallowed_methods, reason = "a tool reads its arguments and finds the program beside itself")]

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use terrane_system_tests::soak::{self, Settings, load, stage};

fn main() -> Result<ExitCode> {
    let numbers: Vec<u64> = std::env::args().skip(1).map(|text| text.parse().context(text)).collect::<Result<_>>()?;
    let [requests, seed, clients, seconds] = numbers[..] else { anyhow::bail!("soak REQUESTS SEED CLIENTS SECONDS") };
    let binary = std::env::current_exe()?.with_file_name("terrane-under-test");
    let binary = binary.to_str().context("a path that is no text")?;
    let folder = tempfile::tempdir()?;
    let (server, credentials) = stage::start(binary, folder.path(), &[])?;
    let report = soak::run(server.address, server.process(), &credentials, Settings { requests, seed, clients: 24 });
    print!("{report}");
    let asked =
        load::run(server.address, server.process(), &credentials, clients as usize, Duration::from_secs(seconds));
    print!("\n{clients} clients for {seconds} s\n{asked}");
    let (code, _) = server.terminate()?;
    println!("\nthe server ended with {code:?}");
    let is_alive =
        |watched: &soak::watch::Watched| watched.failed_probes == 0 && watched.slowest_probe < Duration::from_secs(2);
    let is_well = report.faults.is_empty() && is_alive(&report.watched) && is_alive(&asked.watched) && code == Some(0);
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
