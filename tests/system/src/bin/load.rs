//! `cargo xtask load`: measures the result cache over HTTP, and the submission of jobs.
//!
//! `load CONNECTIONS SECONDS`. The exit code is 1 if an answer is wrong, or if `wrk` is missing. Goals are printed
//! beside the figures. They are for an optimized program on two cores that it shares with `wrk`.
#![allow(clippy::print_stdout, reason = "a command-line tool prints to stdout")]
#![allow(clippy::disallowed_methods, reason = "a tool reads its arguments and finds the program beside itself")]

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use terrane_system_tests::cached::{self, CacheFigures, CacheLoad, Wrk};
use terrane_system_tests::jobs::submissions;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [connections, seconds] = arguments[..] else { bail!("load CONNECTIONS SECONDS") };
    let (connections, seconds) = (connections.parse()?, seconds.parse()?);
    ensure!(seconds > 0 && connections > 0, "nothing to measure");
    if let Some(missing) = cached::missing() {
        bail!(missing.0);
    }
    let binary = std::env::current_exe()?.with_file_name("terrane-under-test");
    let binary = binary.to_str().context("a path that is not UTF-8")?;
    show(&CacheLoad { binary, connections, seconds }.run()?);
    let duration = Duration::from_secs(seconds);
    let (report, rate) = submissions::run(binary, "sqlite://state.db", connections as usize, duration)?;
    println!(
        "jobs on SQLite: {rate:.0} submissions per second (goal 300), p99 {:.0} ms",
        milliseconds(report.percentile(99))
    );
    Ok(())
}

fn show(figures: &CacheFigures) {
    let CacheFigures { memory, redis, computed, missed, miss_cost, slow, equal } = figures;
    show_hits("memory", memory, "goal 15000, p99 under 5 ms");
    match redis {
        Some(redis) => {
            let share = redis.requests_per_second / memory.requests_per_second * 100.0;
            show_hits("Redis alone", redis, &format!("{share:.0} % of memory, goal 60 %"));
        }
        None => println!("Redis alone: skipped, Redis is not installed"),
    }
    let [computed, missed, miss_cost] = [computed, missed, miss_cost].map(|seconds| seconds * 1e6);
    println!(
        "processor time: {computed:.0} µs without the cache, {missed:.0} µs of a miss, {miss_cost:.0} µs more (goal 20)"
    );
    let ratio = equal.as_secs_f64() / slow.as_secs_f64().max(0.01);
    println!("100 equal queries at once: {ratio:.2} times the processor time of one (goal: one statement)");
}

fn show_hits(name: &str, wrk: &Wrk, goal: &str) {
    let Wrk { requests_per_second, p99, .. } = wrk;
    println!("{name}: {requests_per_second:.0} requests per second, p99 {:.1} ms ({goal})", milliseconds(*p99));
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}
