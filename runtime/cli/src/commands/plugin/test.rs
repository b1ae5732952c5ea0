//! `terrane plugin test`: tests a component with its role's vectors and its author's cases.

use std::path::PathBuf;

use serde_json::{Value, json};
use terrane_plugin_kit::conformance::ConformanceOutcome;
use terrane_plugin_kit::test::{MissingExpectations, TestRequest, test};

use super::shown;
use crate::commands::{Terminal, print};
use crate::failure::Failure;

/// The largest number of problems of one outcome that are shown.
const SHOWN_PROBLEMS: usize = 10;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Every call is made twice, and both responses must be identical.

Examples:
  terrane plugin test detector-mine                                builds it first
  terrane plugin test detector-mine.wasm --cases detector-mine/cases
  terrane plugin test detector-mine --bless                        writes missing expectations; read them")]
pub struct TestArguments {
    /// The crate's folder, or a component
    #[arg(default_value = ".", value_name = "DIR|FILE")]
    pub path: PathBuf,
    /// The folder of case files; default for a crate: its folder `cases`
    #[arg(long, value_name = "FOLDER")]
    pub cases: Option<PathBuf>,
    /// The configuration of the calls, a JSON object; a case may override it
    #[arg(long, default_value = "", hide_default_value = true)]
    pub config: String,
    /// Write the responses into cases without `expect`
    #[arg(long)]
    pub bless: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

pub(super) fn run(arguments: &TestArguments, terminal: Terminal) -> Result<bool, Failure> {
    let missing_expectations = if arguments.bless { MissingExpectations::Write } else { MissingExpectations::Fail };
    let outcomes = test(&TestRequest {
        path: arguments.path.clone(),
        cases: arguments.cases.clone(),
        config_json: arguments.config.clone(),
        missing_expectations,
    })?;
    let failed = outcomes.iter().filter(|outcome| !outcome.problems.is_empty()).count();
    let passed = outcomes.len() - failed;
    let declined = outcomes.iter().filter(|outcome| outcome.is_declined()).count();
    if arguments.json {
        let list: Vec<Value> = outcomes.iter().map(to_json).collect();
        let ok = failed == 0;
        let line = json!({"ok": ok, "passed": passed, "failed": failed, "declined": declined, "results": list});
        print(&format!("{line}\n"));
    } else {
        let declined = if declined == 0 { String::new() } else { format!(" ({declined} of them by declining)") };
        print(&format!("{}{passed} passed{declined}, {failed} failed\n", to_text(&outcomes, terminal)));
    }
    Ok(failed == 0)
}

fn to_json(outcome: &ConformanceOutcome) -> Value {
    let is_declined = outcome.is_declined();
    json!({"name": outcome.name, "problems": outcome.problems, "log": outcome.log, "is_declined": is_declined})
}

fn to_text(outcomes: &[ConformanceOutcome], terminal: Terminal) -> String {
    let mut text = String::new();
    for outcome in outcomes {
        let (word, color) = if outcome.problems.is_empty() { ("ok    ", "32") } else { ("FAILED", "1;31") };
        text += &format!("{} {}\n", terminal.stdout.paint(color, word), outcome.name);
        for problem in outcome.problems.iter().take(SHOWN_PROBLEMS) {
            text += &format!("         {}\n", shown(problem, 9));
        }
        if !outcome.problems.is_empty() {
            text.extend(outcome.log.iter().map(|line| format!("         {line}\n")));
        }
    }
    text
}
