//! Data tests: their schedule, and the runs with their results.

use schemars::JsonSchema;
use serde::Serialize;
use terrane_app::data_tests::DataTestStatus;
use terrane_app::ports::data_tests::{DataTestRun as Run, TestOutcome, TestResult as Result};

use crate::schema;

/// The schedule of data tests, and the stored runs.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DataTests<'a> {
    /// A cron expression; null if tests run on request only.
    pub schedule: Option<&'a str>,
    /// The zone of the schedule.
    pub timezone: Option<&'a str>,
    pub next_run_at: Option<String>,
    /// The newest run that ended, with its results.
    pub last: Option<DataTestRun<'a>>,
    /// Newest first, without their results.
    pub runs: Vec<DataTestRun<'a>>,
}

/// A run of all data tests.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DataTestRun<'a> {
    pub id: &'a str,
    /// `waiting`; `failed` if a test failed; `unchecked` if rows could not be read; else `passed`.
    pub status: &'static str,
    /// The user who requested it; null for a run on schedule.
    pub requested_by: Option<&'a str>,
    #[schemars(schema_with = "schema::timestamp")]
    pub created_at: String,
    pub started_at: Option<String>,
    pub ended_at: Option<String>,
    pub passed: usize,
    pub failed: usize,
    pub unchecked: usize,
    /// Null in lists.
    pub results: Option<Vec<DataTestResult<'a>>>,
}

/// The result of one data test.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DataTestResult<'a> {
    /// Such as `orders.status: not_null`.
    pub name: &'a str,
    /// The place of the test in the project.
    pub file: Option<&'a str>,
    pub line: Option<u32>,
    /// `passed`, `failed` or `unchecked`.
    pub outcome: &'static str,
    /// The problem, with some of the values. Null if the test passed, if policies hide rows or columns from the caller,
    /// or if policy plugins are loaded.
    pub message: Option<&'a str>,
    pub duration_ms: f64,
}

impl<'a> From<&'a DataTestStatus> for DataTests<'a> {
    fn from(status: &'a DataTestStatus) -> Self {
        let schedule = status.schedule.as_ref();
        DataTests {
            schedule: schedule.map(|schedule| &*schedule.text),
            timezone: schedule.map(|schedule| &*schedule.timezone),
            next_run_at: status.next_run_at.map(|at| at.to_string()),
            last: status.runs.iter().find(|run| run.ended_at.is_some()).map(DataTestRun::from),
            runs: status.runs.iter().map(|run| DataTestRun { results: None, ..DataTestRun::from(run) }).collect(),
        }
    }
}

impl<'a> From<&'a Run> for DataTestRun<'a> {
    fn from(run: &'a Run) -> Self {
        let [passed, failed, unchecked] = TestOutcome::ALL.map(|outcome| run.count(outcome));
        let status = match (run.ended_at, failed, unchecked) {
            (None, ..) => "waiting",
            (_, 0, 0) => "passed",
            (_, 0, _) => "unchecked",
            _ => "failed",
        };
        DataTestRun {
            id: &run.id,
            status,
            requested_by: run.requested_by.as_deref(),
            created_at: run.created_at.to_string(),
            started_at: run.started_at.map(|at| at.to_string()),
            ended_at: run.ended_at.map(|at| at.to_string()),
            passed,
            failed,
            unchecked,
            results: Some(run.results.iter().map(DataTestResult::from).collect()),
        }
    }
}

impl<'a> From<&'a Result> for DataTestResult<'a> {
    fn from(result: &'a Result) -> Self {
        DataTestResult {
            name: &result.name,
            file: result.file.as_deref(),
            line: result.line,
            outcome: result.outcome.as_str(),
            message: result.message.as_deref(),
            duration_ms: result.duration.as_secs_f64() * 1_000.0,
        }
    }
}
