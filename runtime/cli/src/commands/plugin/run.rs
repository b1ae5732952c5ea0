//! `terrane plugin run`: the call of a case file, once.
//!
//! In: a component and a case. Out: the answer as JSON on standard output, what the component logged and what the
//! call took on standard error; a failure where a server would refuse the answer.

use std::path::PathBuf;

use serde_json::{Value, json};
use terrane_plugin_host::test_bench::{CallError, LogLine, LogLines};

use super::case::Case;
use super::{call_failure, log_texts, open};
use crate::commands::{print, tell};
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  terrane plugin run target/components/detector-mine.wasm --input cases/one-outlier.json | jq .ok.scores

The limits are those of a server; the instance is a fresh one.")]
pub struct RunArguments {
    /// The component
    pub file: PathBuf,
    /// A case file: {"call": "detect", "args": {…}}
    #[arg(long, value_name = "FILE")]
    pub input: PathBuf,
    /// One JSON object with the answer and what it took
    #[arg(long)]
    pub json: bool,
}

pub(super) fn run(arguments: &RunArguments) -> Result<bool, Failure> {
    let bench = open(&arguments.file)?;
    let case = Case::read(&arguments.input, &bench)?;
    let place = arguments.input.display().to_string();
    let called = match bench.call(&case.call, &case.arguments) {
        Ok(called) => called,
        Err(error) => {
            if let (true, CallError::Fault { log, .. }) = (arguments.json, &error) {
                let line = json!({
                    "ok": false, "problems": [format!("{place}: {error}")], "answer": null,
                    "log": log_json(log), "log_dropped": log.dropped,
                });
                print(&format!("{line}\n"));
            }
            return Err(call_failure(&place, &error));
        }
    };
    let refused =
        called.refused.as_ref().map(|fault| format!("{place}: a server refuses this answer: the component {fault}"));
    let duration_ms = called.duration.as_secs_f64() * 1_000.0;
    if arguments.json {
        let line = json!({
            "ok": refused.is_none(), "problems": refused.iter().collect::<Vec<_>>(), "answer": called.answer,
            "log": log_json(&called.log), "log_dropped": called.log.dropped,
            "fuel": called.fuel, "memory_bytes": called.memory_bytes, "duration_ms": duration_ms,
        });
        print(&format!("{line}\n"));
        return Ok(refused.is_none());
    }
    print(&format!("{:#}\n", called.answer));
    log_texts(&called.log).iter().for_each(|line| tell(&format!("{line}\n")));
    let memory = called.memory_bytes / 1024;
    tell(&format!("{} in {duration_ms:.3} ms, {} fuel, {memory} KiB of memory\n", case.call, called.fuel));
    match refused {
        Some(refused) => Err(Failure::new(refused).hint("wit/ and wit/README.md say what an answer may hold")),
        None => Ok(true),
    }
}

/// Fields as the contract has them: a name may come twice.
fn log_json(log: &LogLines) -> Vec<Value> {
    let line = |line: &LogLine| json!({"level": line.level, "message": line.message, "fields": line.fields});
    log.lines.iter().map(line).collect()
}
