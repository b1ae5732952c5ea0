//! `terrane test`: runs the expectations of a project and the tests of its dimensions.

mod junit;
mod last;

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use terrane_app::data_check::DimensionTestRun;
use terrane_compiler::diagnostic::Span;
use terrane_expectations::{self as expectations, ExpectationOutcome};
use terrane_terminal::TerminalText;

use super::{Terminal, load_for_queries, print};
use crate::failure::Failure;
use crate::output_file::OutputFile;
use crate::project::Project;
use crate::report::{self, Style};
use crate::wiring::{self, CommandDuration};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  terrane test .
  terrane test examples/flights --filter daylight
  terrane test . --json | jq '.cases[] | select(.ok | not)'
  terrane test . --last

A case of tests/*.yml has a name, a query, and one of
  sql:    a statement for the project's warehouse, its columns named like the result's keys
  rows:   the rows themselves
  error:  {code: INVALID_FILTER, contains: a part of the message}
Rows are compared in order, unless the case has `ordered: false`. The caller is the operator of the command line, without
roles, groups and attributes, unless the case has `as: {roles: [...], attributes: {...}}`.

The tests of dimensions (`tests: [not_null, unique]`) run too, each as a case such as `orders.id: unique`.

Exit code: 0 if every case passes, 1 otherwise.")]
pub struct TestArguments {
    /// The project folder, which contains service_project.yml
    #[arg(default_value = ".")]
    pub dir: PathBuf,
    /// Run only cases whose name or file contains this text
    #[arg(long, value_name = "TEXT")]
    pub filter: Option<String>,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
    /// Run nothing, and print the newest results of the server, from the state database
    #[arg(long, conflicts_with_all = ["filter", "junit"])]
    pub last: bool,
    /// Also write the outcomes to this file as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub junit: Option<OutputFile>,
}

/// The output of `--json`.
#[derive(Debug, Serialize)]
struct TestJson<'a> {
    ok: bool,
    passed: usize,
    failed: usize,
    cases: Vec<CaseJson<'a>>,
}

#[derive(Debug, Serialize)]
struct CaseJson<'a> {
    name: &'a str,
    file: &'a str,
    line: u32,
    ok: bool,
    duration_ms: f64,
    failure: Option<String>,
    sql: Option<&'a str>,
}

/// The largest number of names of cases in a hint.
const MAX_NAMES: usize = 8;

/// Runs the cases, or prints the newest results of the server. Returns true if all of them pass.
///
/// # Errors
/// The project or its expectations have errors, or no case was chosen.
pub async fn run(arguments: &TestArguments, project: Project, terminal: Terminal) -> Result<bool, Failure> {
    if arguments.last {
        return last::print_last(&project, arguments.json, terminal.stdout).await;
    }
    let outcomes = outcomes(&project, arguments.filter.as_deref(), |outcome| {
        if !arguments.json {
            print(&line(outcome, terminal.stdout));
        }
    })
    .await?;
    if let Some(file) = &arguments.junit {
        let report = junit::report(&outcomes.ended).map_err(|error| Failure::new(error.to_string()))?;
        file.write(report, "--junit")?;
    }
    let outcomes = outcomes.some(arguments.filter.as_deref())?;
    let failed = outcomes.iter().filter(|outcome| outcome.mismatch.is_some()).count();
    let passed = outcomes.len() - failed;
    if arguments.json {
        let json = TestJson { ok: failed == 0, passed, failed, cases: outcomes.iter().map(case_json).collect() };
        let text = serde_json::to_string_pretty(&json).map_err(|error| Failure::new(error.to_string()))?;
        print(&format!("{text}\n"));
    } else {
        let total: Duration = outcomes.iter().map(|outcome| outcome.duration).sum();
        print(&format!("\n{passed} passed, {failed} failed, {:.1} s\n", total.as_secs_f64()));
    }
    Ok(failed == 0)
}

/// The outcomes of a run.
pub struct Outcomes {
    /// The outcomes of the cases and tests that match the filter.
    ended: Vec<ExpectationOutcome>,
    /// The names of all cases and tests of dimensions.
    known: Vec<String>,
}

impl Outcomes {
    /// Returns the outcomes.
    ///
    /// # Errors
    /// No case and no test of a dimension matches the filter.
    pub fn some(self, filter: Option<&str>) -> Result<Vec<ExpectationOutcome>, Failure> {
        if self.ended.is_empty() { Err(no_case(filter, &self.known)) } else { Ok(self.ended) }
    }
}

/// Runs the cases of a project and the tests of its dimensions one after the other, and reports each when it ends.
///
/// # Errors
/// The project or its expectations have errors.
pub async fn outcomes(
    project: &Project,
    filter: Option<&str>,
    mut ended: impl FnMut(&ExpectationOutcome),
) -> Result<Outcomes, Failure> {
    let (tree, mut problems) = project.folder.collect_folder(expectations::FOLDER);
    let (cases, found) = expectations::read(&tree);
    problems.extend(found);
    if !problems.is_empty() {
        report::sort(&mut problems);
        return Err(Failure::Project { problems, tree });
    }
    let is_chosen = |text: &str| filter.is_none_or(|filter| text.contains(filter));
    let engine = load_for_queries(project, CommandDuration::Short).await?;
    let snapshot = engine.catalog.snapshot();
    let tests = DimensionTestRun::all(&snapshot);
    let chosen =
        |name: &str, place: Option<&Span>| is_chosen(name) || place.is_some_and(|place| is_chosen(&place.file));
    let timeout = Duration::from_secs_f64(project.config.query.timeout_seconds);
    let mut ended_cases = Vec::new();
    for case in cases.iter().filter(|case| chosen(&case.name, Some(&case.place))) {
        let outcome = expectations::run(wiring::subject(&engine), timeout, case).await;
        ended(&outcome);
        ended_cases.push(outcome);
    }
    for test in tests.iter().filter(|test| chosen(&test.name, test.span.as_ref())) {
        let outcome = expectations::run_dimension_test(wiring::subject(&engine), &snapshot, timeout, test).await;
        ended(&outcome);
        ended_cases.push(outcome);
    }
    let names = cases.iter().map(|case| &case.name).chain(tests.iter().map(|test| &test.name));
    Ok(Outcomes { ended: ended_cases, known: names.cloned().collect() })
}

fn no_case(filter: Option<&str>, known: &[String]) -> Failure {
    let message = match filter {
        Some(filter) => format!("no case has `{filter}` in its name or file"),
        None => "the project has no expectations".to_owned(),
    };
    let names = known[..known.len().min(MAX_NAMES)].join(", ");
    let hint = match known.len() {
        0 => "Write cases in tests/*.yml; `terrane test --help` describes them.".to_owned(),
        1 => format!("There is 1 case: {names}."),
        count if count > MAX_NAMES => format!("There are {count} cases: {names}, …"),
        count => format!("There are {count} cases: {names}."),
    };
    Failure::new(message).hint(hint)
}

fn line(outcome: &ExpectationOutcome, style: Style) -> String {
    let Some(mismatch) = &outcome.mismatch else {
        return format!("{} {}\n", style.paint("32", "pass"), outcome.name);
    };
    let mut text = format!("{} {} ({})\n", style.paint("1;31", "FAIL"), outcome.name, outcome.place);
    if let Some(description) = &outcome.description {
        text.push_str(&indented(description));
    }
    text.push_str(&indented(&mismatch.to_string()));
    if let Some(sql) = &outcome.sql {
        text.push_str(&indented(&format!("SQL:\n{sql}")));
    }
    text
}

fn indented(text: &str) -> String {
    TerminalText::lines(text).lines().map(|line| format!("     {line}\n")).collect()
}

fn case_json(outcome: &ExpectationOutcome) -> CaseJson<'_> {
    CaseJson {
        name: &outcome.name,
        file: &outcome.place.file,
        line: outcome.place.line,
        ok: outcome.mismatch.is_none(),
        duration_ms: outcome.duration.as_secs_f64() * 1_000.0,
        failure: outcome.mismatch.as_ref().map(ToString::to_string),
        sql: outcome.sql.as_deref(),
    }
}
