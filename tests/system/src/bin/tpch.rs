//! `cargo xtask tpch`: measures the questions of `tests/load/tpch` in three ways: as hand-written SQL, as Terrane's
//! SQL, and over HTTP.
//!
//! `tpch questions SCALE ROUNDS`, `tpch dax SCALE ROUNDS` for general DAX queries, `tpch rollup SCALE ROUNDS` for the
//! pre-aggregation of the project, or `tpch predictions SCALE QUERIES` for the accuracy of predicted bytes and seconds.
//! The exit code is 1 if the rows of a question differ from those of the hand-written SQL.
#![allow(clippy::print_stdout, reason = "a command-line tool prints to stdout")]
#![allow(clippy::disallowed_methods, reason = "a tool reads its arguments and finds the program beside itself")]

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use terrane_system_tests::tpch::{self, DaxTiming, RollupTiming, Timing};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let binary = std::env::current_exe()?.with_file_name("terrane-under-test");
    let binary = binary.to_str().context("a path that is not UTF-8")?;
    let load = load();
    match arguments[..] {
        ["questions", scale, rounds] => show(&tpch::run(binary, scale.parse()?, rounds.parse()?)?),
        ["dax", scale, rounds] => show_dax(&tpch::run_dax(binary, scale.parse()?, rounds.parse()?)?),
        ["rollup", scale, rounds] => show_rollup(&tpch::run_rollup(binary, scale.parse()?, rounds.parse()?)?),
        ["predictions", scale, queries] => {
            let report = tpch::run_predictions(binary, scale.parse()?, queries.parse()?)?;
            println!("{} queries\nbytes:   {}\nseconds: {}", report.queries, report.bytes, report.seconds);
        }
        _ => bail!("tpch questions|dax|rollup SCALE ROUNDS, or tpch predictions SCALE QUERIES"),
    }
    println!("load of the machine: {load} before, {} after", self::load());
    Ok(())
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

/// Prints times, followed by processor times (`CPU`).
fn show(timings: &[Timing]) {
    let head = ["by hand", "SQL", "ratio", "HTTP", "service", "CPU ratio", "CPU service"];
    let head: Vec<String> = head.iter().map(|word| format!("{word:>11}")).collect();
    println!("{:32}{}", "question", head.concat());
    for timing in timings {
        let Timing { name, by_hand, sql, ratio, http, service, processor_ratio, service_processor } = timing;
        let [by_hand, sql, http] = [by_hand, sql, http].map(|duration| milliseconds(*duration));
        let [service, service_processor] = [service, service_processor].map(|seconds| seconds * 1_000.0);
        println!(
            "{name:32}{by_hand:8.2} ms{sql:8.2} ms{ratio:11.2}{http:8.2} ms{service:8.2} ms{processor_ratio:11.2}{service_processor:8.2} ms"
        );
    }
    let worst = |value: fn(&Timing) -> f64| timings.iter().map(value).fold(f64::MIN, f64::max);
    println!("worst ratio {:.2}, of CPU {:.2}", worst(|t| t.ratio), worst(|t| t.processor_ratio));
}

fn show_dax(timings: &[DaxTiming]) {
    println!("{:32}{:>11}{:>11}{:>11}{:>8}{:>12}", "query", "by hand", "DAX", "ratio", "rows", "statements");
    for DaxTiming { name, by_hand, dax, ratio, rows, statements } in timings {
        let [by_hand, dax] = [by_hand, dax].map(|duration| milliseconds(*duration));
        println!("{name:32}{by_hand:8.2} ms{dax:8.2} ms{ratio:11.2}{rows:8}{statements:12}");
    }
    println!("worst ratio {:.2}", timings.iter().map(|timing| timing.ratio).fold(f64::MIN, f64::max));
}

fn show_rollup(timing: &RollupTiming) {
    let RollupTiming { rows, table, build, by_hand } = timing;
    let [rows, table, build, by_hand] = [rows, table, build, by_hand].map(|duration| milliseconds(*duration));
    println!("a year by month over HTTP: {rows:.2} ms from rows, {table:.2} ms from the table");
    println!("build: {build:.0} ms, by hand {by_hand:.0} ms, ratio {:.2}", build / by_hand);
}

/// Returns the mean number of running processes in the last minute.
fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().filter(|load| !load.is_empty()).unwrap_or("unknown").to_owned()
}
