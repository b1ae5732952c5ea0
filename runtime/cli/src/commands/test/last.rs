//! `terrane test --last`: the newest results of the data tests that a server ran.
//!
//! In: the state database of this machine. Out: one line for each test, or JSON. Not here: running tests.

use terrane_app::ports::data_tests::{DataTestRecords as _, DataTestRun, TestOutcome, TestResult};
use terrane_app::ports::store::StoreError;
use terrane_terminal::TerminalText;
use terrane_wire::data_tests as wire;

use super::super::{json_line, print};
use super::indented;
use crate::failure::Failure;
use crate::project::Project;
use crate::report::Style;
use crate::wiring;

/// The number of newest runs that are searched for one that has ended. At most one run is waiting at any time, so this
/// number is more than enough.
const NEWEST: u32 = 10;

/// Prints the newest run that ended. Returns true if all of its tests passed.
///
/// # Errors
/// The state database cannot be read, or no run ended yet.
pub(super) async fn print_last(project: &Project, json: bool, style: Style) -> Result<bool, Failure> {
    let failed = |error: StoreError| Failure::new(error.to_string());
    let runs = wiring::state(project).await?.data_test_runs(NEWEST).await.map_err(failed)?;
    let Some(run) = runs.into_iter().find(|run| run.ended_at.is_some()) else {
        let hint = "Set `data_tests.schedule`, or request a run with POST /api/v1/data-tests/run.";
        return Err(Failure::new("no server has run the data tests yet").hint(hint));
    };
    let shown = wire::DataTestRun::from(&run);
    if json {
        print(&json_line(&shown));
    } else {
        let lines: String = run.results.iter().map(|result| line(result, style)).collect();
        let ended = shown.ended_at.as_deref().unwrap_or_default();
        let counts = format!("{} passed, {} failed, {} unchecked", shown.passed, shown.failed, shown.unchecked);
        print(&format!("{lines}\n{counts}, at {ended}\n"));
    }
    Ok(is_passed(&run))
}

fn is_passed(run: &DataTestRun) -> bool {
    run.count(TestOutcome::Passed) == run.results.len()
}

fn line(result: &TestResult, style: Style) -> String {
    let name = TerminalText::line(&result.name);
    let word = match result.outcome {
        TestOutcome::Passed => return format!("{} {name}\n", style.paint("32", "pass")),
        TestOutcome::Failed => "FAIL",
        TestOutcome::Unchecked => "UNCHECKED",
    };
    let place = match (&result.file, result.line) {
        (Some(file), Some(line)) => format!(" ({}:{line})", TerminalText::line(file)),
        _ => String::new(),
    };
    let message = result.message.as_deref().map(indented).unwrap_or_default();
    format!("{} {name}{place}\n{message}", style.paint("1;31", word))
}
