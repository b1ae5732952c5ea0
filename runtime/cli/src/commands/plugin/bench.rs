//! `terrane plugin bench`: repeats the call of a case file.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;
use terrane_plugin_kit::bench::measure;

use crate::commands::print;
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
pub struct BenchArguments {
    /// The component
    pub file: PathBuf,
    /// A case file: {"call": "detect", "args": {…}}
    #[arg(long, value_name = "FILE")]
    pub input: PathBuf,
    /// The number of calls to measure
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub calls: u32,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

pub(super) fn run(arguments: &BenchArguments) -> Result<bool, Failure> {
    let measured = measure(&arguments.file, &arguments.input, arguments.calls)?;
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    let (p50, p99) = (micros(measured.p50), micros(measured.p99));
    if arguments.json {
        let line = json!({
            "call": measured.call, "calls": measured.calls, "p50_us": p50, "p99_us": p99, "fuel": measured.fuel,
            "memory_bytes": measured.memory_bytes,
        });
        print(&format!("{line}\n"));
    } else {
        print(&format!(
            "{} × {}\n  p50     {p50:.1} µs\n  p99     {p99:.1} µs\n  fuel    {}\n  memory  {} KiB\n",
            measured.call,
            measured.calls,
            measured.fuel,
            measured.memory_bytes / 1024
        ));
    }
    Ok(true)
}
