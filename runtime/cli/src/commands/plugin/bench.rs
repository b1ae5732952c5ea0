//! `terrane plugin bench`: the call of a case file, many times.
//!
//! In: a component and a case. Out: p50 and p99 of the time with making the instance, and fuel and memory,
//! which are the same each time. Calls one after another: a server's threads make them side by side.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

use super::case::Case;
use super::{call_failure, open};
use crate::commands::print;
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
pub struct BenchArguments {
    /// The component
    pub file: PathBuf,
    /// A case file: {"call": "detect", "args": {…}}
    #[arg(long, value_name = "FILE")]
    pub input: PathBuf,
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub calls: u32,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

/// Calls before the first that counts.
const WARMUP: u32 = 20;

pub(super) fn run(arguments: &BenchArguments) -> Result<bool, Failure> {
    let bench = open(&arguments.file)?;
    let case = Case::read(&arguments.input, &bench)?;
    let place = arguments.input.display().to_string();
    let call = || bench.call(&case.call, &case.arguments).map_err(|error| call_failure(&place, &error));
    for _ in 0..WARMUP.min(arguments.calls) {
        call()?;
    }
    let (mut times, mut fuel, mut memory) = (Vec::new(), 0, 0);
    for _ in 0..arguments.calls {
        let called = call()?;
        times.push(called.duration);
        (fuel, memory) = (fuel.max(called.fuel), memory.max(called.memory_bytes));
    }
    times.sort_unstable();
    let (p50, p99) = (quantile_us(&times, 0.5), quantile_us(&times, 0.99));
    if arguments.json {
        let line = json!({
            "call": case.call, "calls": arguments.calls, "p50_us": p50, "p99_us": p99, "fuel": fuel, "memory_bytes": memory,
        });
        print(&format!("{line}\n"));
    } else {
        print(&format!(
            "{} × {}\n  p50     {p50:.1} µs\n  p99     {p99:.1} µs\n  fuel    {fuel}\n  memory  {} KiB\n",
            case.call,
            arguments.calls,
            memory / 1024
        ));
    }
    Ok(true)
}

/// The nearest rank; of no times, 0.
fn quantile_us(sorted: &[Duration], fraction: f64) -> f64 {
    let rank = (fraction * sorted.len() as f64).ceil().max(1.0) as usize - 1;
    sorted.get(rank).map_or(0.0, |time| time.as_secs_f64() * 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_the_nearest_rank() {
        let times: Vec<Duration> = (1..=100).map(Duration::from_micros).collect();
        assert_eq!((quantile_us(&times, 0.5).round(), quantile_us(&times, 0.99).round()), (50.0, 99.0));
        assert_eq!((quantile_us(&times[..1], 0.5).round(), quantile_us(&[], 0.5)), (1.0, 0.0));
    }
}
