//! The worker's task: runs the data tests that were requested, and those that are due.
//!
//! In: the worker's lease. Out: a stored run. Tasks of the worker run in parallel, so long tests delay no other task.
//! If a server dies during a run, the next holder of the lease begins the run again.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use super::{DataTestService, MAX_RUNS};
use crate::ports::data_tests::{DataTestRun, TestOutcome};
use crate::ports::leases::Lease;
use crate::ports::store::StoreError;
use crate::worker::{Progress, Schedule, Task, TaskError};

/// The name of the task and of its lease.
const DATA_TESTS: &str = "data_tests";
/// The longest time until the task notices a request.
const POLL: Duration = Duration::from_secs(5);

/// Runs data tests on schedule and on request.
pub struct DataTestTask(Arc<DataTestService>);

impl DataTestTask {
    pub fn new(service: Arc<DataTestService>) -> Self {
        DataTestTask(service)
    }

    async fn due(&self) -> Result<Option<DataTestRun>, StoreError> {
        let service = &self.0;
        if let Some(waiting) = service.ports.records.waiting_data_tests().await? {
            return Ok(Some(waiting));
        }
        let next = service.next_scheduled().await?;
        let is_due = next.is_some_and(|next| next <= service.ports.clock.now());
        Ok(is_due.then(|| service.new_run(None)))
    }

    fn report(&self, run: &DataTestRun) {
        let counts = TestOutcome::ALL.map(|outcome| run.count(outcome));
        for (outcome, count) in TestOutcome::ALL.into_iter().zip(counts) {
            self.0.ports.observer.data_tests_ended(outcome.as_str(), count as u64);
        }
        // The log has no values of rows; only the stored run has them.
        for result in run.results.iter().filter(|result| result.outcome != TestOutcome::Passed) {
            tracing::warn!(
                event = "data_test_failed",
                run_id = &*run.id,
                test = &*result.name,
                outcome = result.outcome.as_str(),
            );
        }
        let [passed, failed, unchecked] = counts;
        tracing::info!(event = "data_tests_run", run_id = &*run.id, passed, failed, unchecked);
    }
}

#[async_trait]
impl Task for DataTestTask {
    fn name(&self) -> &'static str {
        DATA_TESTS
    }

    fn schedule(&self) -> Schedule {
        Schedule::DueTime { poll: POLL }
    }

    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        match self.0.ports.records.waiting_data_tests().await? {
            Some(waiting) => Ok(Some(waiting.created_at)),
            None => self.0.next_scheduled().await,
        }
    }

    async fn run(&self, lease: &Lease) -> Result<Progress, TaskError> {
        let Some(due) = self.due().await? else { return Ok(Progress::Complete) };
        let run = self.0.tested(due).await;
        if !self.0.ports.records.write_data_tests(&run, MAX_RUNS, lease).await? {
            return Err(TaskError::LeaseLost);
        }
        self.report(&run);
        Ok(Progress::Complete)
    }
}
