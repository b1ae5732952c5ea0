//! The port to the results of data tests.
//!
//! In: requested and ended runs. Out: the records. An ended run is written under the lease of the worker, so that only
//! one of several replicas writes it. Not here: the tests, and the times at which they run.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use super::audit::AuditEntry;
use super::leases::Lease;
use super::store::StoreError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestOutcome {
    Passed,
    Failed,
    /// The rows could not be read.
    Unchecked,
}

impl TestOutcome {
    pub const ALL: [TestOutcome; 3] = [TestOutcome::Passed, TestOutcome::Failed, TestOutcome::Unchecked];

    pub fn as_str(self) -> &'static str {
        match self {
            TestOutcome::Passed => "passed",
            TestOutcome::Failed => "failed",
            TestOutcome::Unchecked => "unchecked",
        }
    }

    /// Returns the outcome with this name; `None` if the name is unknown.
    pub fn named(word: &str) -> Option<Self> {
        TestOutcome::ALL.into_iter().find(|outcome| outcome.as_str() == word)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestResult {
    /// The name, such as `orders.status: not_null`.
    pub name: Arc<str>,
    pub file: Option<Arc<str>>,
    pub line: Option<u32>,
    pub outcome: TestOutcome,
    /// The problem, with some of the values that violate the test; `None` if the test passed.
    pub message: Option<Arc<str>>,
    pub duration: Duration,
}

/// A run of all data tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataTestRun {
    pub id: Arc<str>,
    /// The user who requested the run; `None` for a scheduled run.
    pub requested_by: Option<Arc<str>>,
    pub created_at: Timestamp,
    pub started_at: Option<Timestamp>,
    /// The end of the run; `None` if the run waits or is running.
    pub ended_at: Option<Timestamp>,
    pub results: Vec<TestResult>,
}

impl DataTestRun {
    /// Returns the number of tests with an outcome.
    pub fn count(&self, outcome: TestOutcome) -> usize {
        self.results.iter().filter(|result| result.outcome == outcome).count()
    }
}

/// The runs of data tests.
#[async_trait]
pub trait DataTestRecords: Send + Sync {
    /// Returns the newest runs, newest first.
    async fn data_test_runs(&self, limit: u32) -> Result<Vec<DataTestRun>, StoreError>;
    async fn data_test_run(&self, id: &str) -> Result<Option<DataTestRun>, StoreError>;
    /// Returns the requested run that has not ended.
    async fn waiting_data_tests(&self) -> Result<Option<DataTestRun>, StoreError>;
    /// Returns the time of the newest scheduled run.
    async fn last_scheduled_data_tests(&self) -> Result<Option<Timestamp>, StoreError>;
    /// Stores a requested run, unless another one waits already. Returns the waiting run.
    async fn request_data_tests(&self, run: &DataTestRun, entry: AuditEntry) -> Result<DataTestRun, StoreError>;
    /// Writes an ended run, and deletes all but the newest `most` runs. Returns false and writes nothing if the lease
    /// is stale.
    async fn write_data_tests(&self, run: &DataTestRun, most: u32, lease: &Lease) -> Result<bool, StoreError>;
}
