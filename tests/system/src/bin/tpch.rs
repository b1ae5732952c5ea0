//! `cargo xtask tpch`: the questions of `tests/load/tpch` by hand, as Terrane's SQL, and over HTTP.
//!
//! `tpch SCALE ROUNDS`. Exit code 1 if the rows of a question differ from those of the SQL by hand.
#![allow(clippy::print_stdout, reason = "a command-line tool speaks on stdout")]
#![allow(clippy::disallowed_methods, reason = "a tool reads its arguments and finds the program beside itself")]

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use terrane_system_tests::tpch;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [scale, rounds] = &arguments[..] else { bail!("tpch SCALE ROUNDS") };
    let binary = std::env::current_exe()?.with_file_name("terrane-under-test");
    let binary = binary.to_str().context("a path that is not UTF-8")?;
    let load = load();
    let timings = tpch::run(binary, scale.parse()?, rounds.parse()?)?;
    let milliseconds = |duration: Duration| duration.as_secs_f64() * 1_000.0;
    println!("{:34} {:>10} {:>10} {:>7} {:>10} {:>10}", "question", "by hand", "SQL", "ratio", "HTTP", "service");
    for timing in &timings {
        println!(
            "{:34} {:7.2} ms {:7.2} ms {:7.2} {:7.2} ms {:7.2} ms",
            timing.name,
            milliseconds(timing.by_hand),
            milliseconds(timing.sql),
            timing.ratio,
            milliseconds(timing.http),
            timing.service * 1_000.0
        );
    }
    let worst = |value: fn(&tpch::Timing) -> f64| timings.iter().map(value).fold(f64::MIN, f64::max);
    println!("worst ratio {:.2}, most service {:.2} ms", worst(|t| t.ratio), worst(|t| t.service) * 1_000.0);
    println!("load of the machine: {load} before, {} after", self::load());
    Ok(())
}

/// Returns the mean number of running processes of the last minute.
fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().filter(|load| !load.is_empty()).unwrap_or("unknown").to_owned()
}
