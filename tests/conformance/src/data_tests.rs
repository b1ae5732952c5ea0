//! Runs of data tests in memory.

use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use jiff::Timestamp;
use terrane_app::ports::audit::AuditEntry;
use terrane_app::ports::data_tests::{DataTestRecords, DataTestRun};
use terrane_app::ports::leases::Lease;
use terrane_app::ports::store::StoreError;

/// The runs of one world, oldest first.
#[derive(Default)]
pub struct MemoryDataTests(Mutex<Vec<DataTestRun>>);

impl MemoryDataTests {
    fn runs(&self) -> MutexGuard<'_, Vec<DataTestRun>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl DataTestRecords for MemoryDataTests {
    async fn data_test_runs(&self, limit: u32) -> Result<Vec<DataTestRun>, StoreError> {
        Ok(self.runs().iter().rev().take(limit as usize).cloned().collect())
    }

    async fn data_test_run(&self, id: &str) -> Result<Option<DataTestRun>, StoreError> {
        Ok(self.runs().iter().find(|run| *run.id == *id).cloned())
    }

    async fn waiting_data_tests(&self) -> Result<Option<DataTestRun>, StoreError> {
        Ok(self.runs().iter().find(|run| run.ended_at.is_none()).cloned())
    }

    async fn last_scheduled_data_tests(&self) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.runs().iter().filter(|run| run.requested_by.is_none()).map(|run| run.created_at).max())
    }

    async fn request_data_tests(&self, run: &DataTestRun, _: AuditEntry) -> Result<DataTestRun, StoreError> {
        if let Some(waiting) = self.waiting_data_tests().await? {
            return Ok(waiting);
        }
        self.runs().push(run.clone());
        Ok(run.clone())
    }

    async fn write_data_tests(&self, run: &DataTestRun, _: u32, _: &Lease) -> Result<bool, StoreError> {
        let mut runs = self.runs();
        runs.retain(|known| known.id != run.id);
        runs.push(run.clone());
        Ok(true)
    }
}
