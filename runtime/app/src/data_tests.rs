//! Data tests on the server: the tests of dimensions and the cases of `tests/*.yml`, on a schedule and on request.
//!
//! In: the project's tests, a schedule of the operator, and requests of administrators. Out: stored runs, log events
//! and metrics. Tests are claims of the project about all rows, so they run with the operator's rights. Cases run with
//! the rights of their callers. They run one statement at a time, each under a permit of the limiter of queries. Not
//! here: the statements (compiler), comparing the rows of cases, and messages to channels.

mod cases;
mod task;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use terrane_compiler::Access;
use terrane_compiler::diagnostic::Diagnostic;

pub use cases::{CaseContext, NoCases, ProjectCases};
pub use task::DataTestTask;

use crate::catalog::{Catalog, Snapshot};
use crate::cron_schedule::CronSchedule;
use crate::data_check::DimensionTestRun;
use crate::domain::RequestContext;
use crate::ports::clock::Clock;
use crate::ports::data_tests::{DataTestRecords, DataTestRun, TestOutcome, TestResult};
use crate::ports::observer::Observer;
use crate::ports::store::StoreError;
use crate::ports::tokens::Randomness;
use crate::ports::warehouse::Warehouse;
use crate::query::QueryService;
use crate::security::AccessRecorder;

/// The largest number of runs that are stored.
const MAX_RUNS: u32 = 100;

/// The operator's settings of data tests.
#[derive(Debug, Clone)]
pub struct DataTestSettings {
    /// The schedule; `None` if tests run on request only.
    pub schedule: Option<DataTestSchedule>,
    /// The longest time that each statement may take.
    pub timeout: Duration,
}

/// The times at which data tests run.
#[derive(Debug, Clone)]
pub struct DataTestSchedule {
    /// A cron expression.
    pub text: Arc<str>,
    /// The IANA name of the zone in which the expression is interpreted.
    pub timezone: Arc<str>,
    pub times: CronSchedule,
}

/// The ports and use cases that data tests need.
pub struct DataTestPorts {
    pub records: Arc<dyn DataTestRecords>,
    pub cases: Arc<dyn ProjectCases>,
    pub catalog: Arc<Catalog>,
    pub queries: Arc<QueryService>,
    pub warehouse: Arc<dyn Warehouse>,
    pub access: Arc<AccessRecorder>,
    pub observer: Arc<dyn Observer>,
    pub randomness: Arc<dyn Randomness>,
    pub clock: Arc<dyn Clock>,
}

/// The use cases of data tests.
pub struct DataTestService {
    ports: DataTestPorts,
    settings: DataTestSettings,
    /// The time at which the server started.
    started: Timestamp,
}

/// The state of data tests.
#[derive(Debug, Clone)]
pub struct DataTestStatus {
    pub schedule: Option<DataTestSchedule>,
    pub next_run_at: Option<Timestamp>,
    /// Newest first.
    pub runs: Vec<DataTestRun>,
}

impl DataTestService {
    pub fn new(ports: DataTestPorts, settings: DataTestSettings) -> Self {
        let started = ports.clock.now();
        DataTestService { ports, settings, started }
    }

    /// Returns the schedule and the stored runs.
    ///
    /// # Errors
    /// The state database cannot be read.
    pub async fn status(&self, request: &RequestContext) -> Result<DataTestStatus, StoreError> {
        let runs = self.ports.records.data_test_runs(MAX_RUNS).await?;
        Ok(DataTestStatus {
            schedule: self.settings.schedule.clone(),
            next_run_at: self.next_scheduled().await?,
            runs: runs.into_iter().map(|run| self.shown(run, request)).collect(),
        })
    }

    /// Returns one stored run.
    ///
    /// # Errors
    /// The state database cannot be read.
    pub async fn run(&self, request: &RequestContext, id: &str) -> Result<Option<DataTestRun>, StoreError> {
        Ok(self.ports.records.data_test_run(id).await?.map(|run| self.shown(run, request)))
    }

    /// Requests a run, which the worker of one server begins within seconds. If another run is waiting already, returns
    /// that run.
    ///
    /// # Errors
    /// The state database cannot be written.
    pub async fn request(&self, request: &RequestContext) -> Result<DataTestRun, StoreError> {
        let run = self.new_run(Some(Arc::clone(&request.caller.user_id)));
        let entry = self.ports.access.entry("data_tests_requested", request, format!("data_tests:{}", run.id));
        self.ports.records.request_data_tests(&run, entry).await
    }

    /// Returns a run without the details that the caller may not see. Messages contain values of rows, so they are
    /// removed for callers from whom policies or hooks may hide values.
    fn shown(&self, mut run: DataTestRun, request: &RequestContext) -> DataTestRun {
        let snapshot = self.ports.catalog.snapshot();
        let sees_rows =
            !self.ports.queries.has_hooks() && Access::of(&snapshot.model, &request.caller).sees_everything();
        if !sees_rows {
            run.results.iter_mut().for_each(|result| result.message = None);
        }
        run
    }

    /// Returns the time of the next scheduled run. This time may be in the past; one run makes up for all missed times.
    async fn next_scheduled(&self) -> Result<Option<Timestamp>, StoreError> {
        let Some(schedule) = &self.settings.schedule else { return Ok(None) };
        let last = self.ports.records.last_scheduled_data_tests().await?;
        Ok(next_run(&schedule.times, last, self.started))
    }

    fn new_run(&self, requested_by: Option<Arc<str>>) -> DataTestRun {
        let mut random = [0; 16];
        self.ports.randomness.fill(&mut random);
        let created_at = self.ports.clock.now();
        let id = hex::encode(random).into();
        DataTestRun { id, requested_by, created_at, started_at: None, ended_at: None, results: Vec::new() }
    }

    /// Runs all tests and cases of the project, one after the other, and returns the run with their results.
    async fn tested(&self, run: DataTestRun) -> DataTestRun {
        let started_at = Some(self.ports.clock.now());
        let snapshot = self.ports.catalog.snapshot();
        let mut results = Vec::new();
        for test in DimensionTestRun::all(&snapshot) {
            results.push(self.result(&snapshot, &test).await);
        }
        let DataTestPorts { cases, queries, warehouse, clock, .. } = &self.ports;
        let timeout = self.settings.timeout;
        results.extend(cases.run(CaseContext { queries, warehouse: &**warehouse, clock: &**clock, timeout }).await);
        DataTestRun { started_at, ended_at: Some(self.ports.clock.now()), results, ..run }
    }

    async fn result(&self, snapshot: &Snapshot, test: &DimensionTestRun) -> TestResult {
        let DataTestPorts { queries, warehouse, clock, .. } = &self.ports;
        let begun = clock.elapsed();
        let (outcome, message) = match queries.admitted(test.run(snapshot, &**warehouse, self.settings.timeout)).await {
            Ok(None) => (TestOutcome::Passed, None),
            Ok(Some(problem)) => (outcome_of(&problem), Some(problem.full_message().into_owned())),
            Err(error) => (TestOutcome::Unchecked, Some(error.to_string())),
        };
        TestResult {
            name: test.name.as_str().into(),
            file: test.span.as_ref().map(|span| Arc::clone(&span.file)),
            line: test.span.as_ref().map(|span| span.line),
            outcome,
            message: message.map(Into::into),
            duration: clock.elapsed().saturating_sub(begun),
        }
    }
}

/// Returns the outcome of a test with a problem: failed for an error; unchecked for a warning.
fn outcome_of(problem: &Diagnostic) -> TestOutcome {
    if problem.is_error() { TestOutcome::Failed } else { TestOutcome::Unchecked }
}

/// Returns the first time of the schedule after the last run; without a last run, after the start of the server.
/// One run makes up for all missed times.
fn next_run(times: &CronSchedule, last: Option<Timestamp>, started: Timestamp) -> Option<Timestamp> {
    times.next(last.unwrap_or(started))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

    use super::*;

    #[test]
    fn missed_runs_collapse_to_one() {
        let times = CronSchedule::parse("0 6 * * *", "Europe/Berlin").unwrap();
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let started = at("2024-01-10T04:00:00Z");
        for (last, next) in [
            // A server without an earlier run waits for the next time.
            (None, "2024-01-10T05:00:00Z"),
            (Some("2024-01-09T05:00:01Z"), "2024-01-10T05:00:00Z"),
            // The time has passed, so the run is due at once.
            (Some("2024-01-03T05:00:01Z"), "2024-01-04T05:00:00Z"),
            (Some("2024-07-03T04:00:01Z"), "2024-07-04T04:00:00Z"),
        ] {
            assert_eq!(next_run(&times, last.map(at), started), Some(at(next)), "{last:?}");
        }
    }
}
