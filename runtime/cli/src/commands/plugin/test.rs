//! `terrane plugin test`: a component against its role's vectors and its author's cases.
//!
//! In: a crate's folder, which is built first, or a component. Out: what passed and what did not, the counts
//! last. `--bless` writes the answers into cases that expect nothing yet; what a case expects is never
//! written over.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use terrane_plugin_host::test_bench::TestBench;

use super::case::Case;
use super::conformance::{self, Outcome};
use super::{build, check, log_texts, open, read_text, role_of, shown, write};
use crate::commands::{Terminal, print};
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Every call is made twice: the answers must be the same, bit for bit.

Examples:
  terrane plugin test detector-mine                                builds it first
  terrane plugin test detector-mine.wasm --cases detector-mine/cases
  terrane plugin test detector-mine --bless                        fills in missing expectations; read them")]
pub struct TestArguments {
    /// The crate's folder, or a component
    #[arg(default_value = ".", value_name = "DIR|FILE")]
    pub path: PathBuf,
    /// The folder of case files; of a crate, its `cases`
    #[arg(long, value_name = "FOLDER")]
    pub cases: Option<PathBuf>,
    /// The configuration that calls are told of, a JSON object; a case may bring its own
    #[arg(long, default_value = "", hide_default_value = true)]
    pub config: String,
    /// Write the answers into cases without `expect`
    #[arg(long)]
    pub bless: bool,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

pub(super) fn run(arguments: &TestArguments, terminal: Terminal) -> Result<bool, Failure> {
    let is_crate = arguments.path.is_dir();
    let file = if is_crate { build::build(&arguments.path)? } else { arguments.path.clone() };
    let of_crate = is_crate.then(|| arguments.path.join("cases")).filter(|folder| folder.is_dir());
    let bench = open(&file)?.configured(&arguments.config);
    let role = role_of(&bench, &file)?;
    let mut outcomes = vec![described(&bench, role)];
    outcomes.extend(conformance::run(&bench, role));
    if let Some(folder) = arguments.cases.clone().or(of_crate) {
        for path in case_files(&folder)? {
            outcomes.push(of_case(&path, &bench, arguments.bless)?);
        }
    }
    let failed = outcomes.iter().filter(|outcome| !outcome.problems.is_empty()).count();
    let declined = outcomes.iter().filter(|outcome| outcome.is_declined()).count();
    if arguments.json {
        let outcome = |outcome: &Outcome| {
            let is_declined = outcome.is_declined();
            json!({"name": outcome.name, "problems": outcome.problems, "log": outcome.log, "is_declined": is_declined})
        };
        let list: Vec<Value> = outcomes.iter().map(outcome).collect();
        let passed = outcomes.len() - failed;
        let ok = failed == 0;
        let line = json!({"ok": ok, "passed": passed, "failed": failed, "declined": declined, "results": list});
        print(&format!("{line}\n"));
    } else {
        print(&to_text(&outcomes, terminal));
        let declined = if declined == 0 { String::new() } else { format!(" ({declined} of them by declining)") };
        print(&format!("{} passed{declined}, {failed} failed\n", outcomes.len() - failed));
    }
    Ok(failed == 0)
}

/// What a server asks first.
fn described(bench: &TestBench, role: terrane_app::ports::plugins::PluginRole) -> Outcome {
    let mut problems = Vec::new();
    let identity = check::probed(bench, role, &mut problems);
    problems.extend(check::manifest_problems(bench, role, identity.as_ref()));
    Outcome::new("describe", Ok(problems))
}

fn case_files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries = std::fs::read_dir(folder).map_err(|error| {
        Failure::new(format!("{} can't be read: {error}", folder.display())).hint("name the folder with --cases")
    })?;
    let paths = entries.flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|e| e == "json")).collect();
    files.sort();
    Ok(files)
}

fn of_case(path: &Path, bench: &TestBench, bless: bool) -> Result<Outcome, Failure> {
    let case = Case::read(path, bench)?;
    let name = format!("case {}", path.file_name().unwrap_or_default().to_string_lossy());
    let called = match conformance::steady(bench, &case.call, &case.arguments) {
        Ok(called) => called,
        Err(problem) => return Ok(Outcome::new(name, Err(problem))),
    };
    let mut problems = case.differences(&called.answer);
    if case.expected.is_none() {
        if bless {
            expect(path, &called.answer)?;
        } else {
            problems.push("it expects nothing; write `expect`, or let --bless write the answer".to_owned());
        }
    }
    Ok(Outcome::new(name, Ok(problems)).with_log(log_texts(&called.log)))
}

fn expect(path: &Path, answer: &Value) -> Result<(), Failure> {
    let text = read_text(path)?;
    let mut case: Value = serde_json::from_str(&text)
        .map_err(|error| Failure::new(format!("{}: {error}", path.display())).hint("it was valid a moment ago"))?;
    case["expect"] = answer.clone();
    write(path, format!("{case:#}\n").as_bytes())
}

fn to_text(outcomes: &[Outcome], terminal: Terminal) -> String {
    let mut text = String::new();
    for outcome in outcomes {
        let (word, colour) = if outcome.problems.is_empty() { ("ok    ", "32") } else { ("FAILED", "1;31") };
        text += &format!("{} {}\n", terminal.stdout.paint(colour, word), outcome.name);
        for problem in outcome.problems.iter().take(10) {
            text += &format!("         {}\n", shown(problem, 9));
        }
        if !outcome.problems.is_empty() {
            text.extend(outcome.log.iter().map(|line| format!("         {line}\n")));
        }
    }
    text
}
