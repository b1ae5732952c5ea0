//! `terrane plugin run`: makes the call of a case file once.
//!
//! The answer goes to standard output; log lines and the call's cost go to standard error.

use std::path::PathBuf;

use serde_json::{Value, json};
use terrane_plugin_host::test_bench::{CallError, LogLine, LogLines};
use terrane_plugin_kit::KitError;
use terrane_plugin_kit::run::run as run_case;

use crate::commands::{print, print_error};
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  terrane plugin run target/components/detector-mine.wasm --input cases/one-outlier.json | jq .ok.scores

The call has the limits of a server and a new instance of the component.")]
pub struct RunArguments {
    /// The component
    #[arg(value_name = "COMPONENT")]
    pub file: PathBuf,
    /// A case file: {"call": "detect", "args": {…}}
    #[arg(long, value_name = "CASE")]
    pub input: PathBuf,
    /// Print one JSON object with the response and its cost
    #[arg(long)]
    pub json: bool,
}

pub(super) fn run(arguments: &RunArguments) -> Result<bool, Failure> {
    let place = arguments.input.display().to_string();
    let case = run_case(&arguments.file, &arguments.input).inspect_err(|error| {
        if let (true, KitError::Call { error, .. }) = (arguments.json, error)
            && let CallError::Fault { log, .. } = error
        {
            let line = json!({
                "ok": false, "problems": [format!("{place}: {error}")], "answer": null,
                "log": log_json(log), "log_dropped": log.dropped,
            });
            print(&format!("{line}\n"));
        }
    })?;
    let (call, report) = (case.call, case.report);
    let refused = report
        .refused
        .as_ref()
        .map(|fault| format!("{place}: a server would refuse this response: the component {fault}"));
    let duration_ms = report.duration.as_secs_f64() * 1_000.0;
    if arguments.json {
        let line = json!({
            "ok": refused.is_none(), "problems": refused.iter().collect::<Vec<_>>(), "answer": report.answer,
            "log": log_json(&report.log), "log_dropped": report.log.dropped,
            "fuel": report.fuel, "memory_bytes": report.memory_bytes, "duration_ms": duration_ms,
        });
        print(&format!("{line}\n"));
        return Ok(refused.is_none());
    }
    print(&format!("{:#}\n", report.answer));
    report.log.texts().iter().for_each(|line| print_error(&format!("{line}\n")));
    let memory = report.memory_bytes / 1024;
    print_error(&format!("{call} in {duration_ms:.3} ms, {} fuel, {memory} KiB of memory\n", report.fuel));
    match refused {
        Some(refused) => Err(Failure::new(refused).hint("See wit/ and wit/README.md for the contents of a response.")),
        None => Ok(true),
    }
}

/// Returns the lines as JSON. Fields are an array of pairs, as in the contract, because a name may occur twice.
fn log_json(log: &LogLines) -> Vec<Value> {
    let line = |line: &LogLine| json!({"level": line.level, "message": line.message, "fields": line.fields});
    log.lines.iter().map(line).collect()
}
