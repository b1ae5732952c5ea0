//! Fakes of an unavailable state database and an unavailable folder of results. `tests/jobs` uses real ones.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use jiff::Timestamp;
use terrane_app::ports::audit::AuditEntry;
use terrane_app::ports::jobs::{Job, JobEnd, JobQuota, JobState, Jobs, Manifest, NewJob, OwnerIdentity, Submitted};
use terrane_app::ports::leases::{Lease, Leases};
use terrane_app::ports::results::{JobResults, ResultDescription, ResultPage, ResultWriter, ResultsError};
use terrane_app::ports::store::StoreError;

use crate::builds::MemoryLeases;

/// The adapters of a server's jobs.
#[derive(Clone)]
pub struct JobAdapters {
    pub jobs: Arc<dyn Jobs>,
    pub results: Arc<dyn JobResults>,
    pub leases: Arc<dyn Leases>,
}

impl JobAdapters {
    /// Returns adapters that are unavailable.
    pub fn none() -> Self {
        JobAdapters { jobs: Arc::new(NoJobs), results: Arc::new(NoJobs), leases: Arc::new(MemoryLeases::default()) }
    }
}

/// A state database and a folder of results whose calls all fail.
struct NoJobs;

fn away<T>() -> Result<T, StoreError> {
    Err(StoreError { message: "the table of jobs is away".to_owned() })
}

fn no_folder<T>() -> Result<T, ResultsError> {
    Err(ResultsError::Unavailable { message: "the folder of results is away".into() })
}

#[async_trait]
impl Jobs for NoJobs {
    async fn submit(&self, _: &NewJob, _: JobQuota, _: AuditEntry) -> Result<Submitted, StoreError> {
        away()
    }
    async fn job(&self, _: &str) -> Result<Option<Job>, StoreError> {
        away()
    }
    async fn jobs_by_id(&self, _: &[&str]) -> Result<Vec<Job>, StoreError> {
        away()
    }
    async fn jobs(&self, _: Option<&OwnerIdentity>, _: Option<JobState>, _: u32) -> Result<Vec<Job>, StoreError> {
        away()
    }
    async fn claimable(&self, _: u32) -> Result<Vec<Arc<str>>, StoreError> {
        away()
    }
    async fn begin(&self, _: &str, _: &Lease, _: u32, _: Timestamp) -> Result<Option<Job>, StoreError> {
        away()
    }
    async fn report(&self, _: &str, _: &Lease, _: Option<u32>) -> Result<Option<bool>, StoreError> {
        away()
    }
    async fn end(&self, _: &str, _: &Lease, _: &JobEnd, _: Timestamp) -> Result<bool, StoreError> {
        away()
    }
    async fn cancel(&self, _: &str, _: Timestamp, _: AuditEntry) -> Result<Option<Job>, StoreError> {
        away()
    }
    async fn expire(&self, _: Timestamp) -> Result<u64, StoreError> {
        away()
    }
    async fn prune(&self, _: Timestamp) -> Result<u64, StoreError> {
        away()
    }
    async fn pending(&self) -> Result<u64, StoreError> {
        away()
    }
}

#[async_trait]
impl JobResults for NoJobs {
    async fn create(
        &self,
        _: &str,
        _: &ResultDescription,
        _: SchemaRef,
    ) -> Result<Box<dyn ResultWriter>, ResultsError> {
        no_folder()
    }
    async fn page(&self, _: &Manifest, _: u64, _: u64) -> Result<ResultPage, ResultsError> {
        no_folder()
    }
    async fn names(&self) -> Result<Vec<Arc<str>>, ResultsError> {
        no_folder()
    }
    async fn remove(&self, _: &str) -> Result<(), ResultsError> {
        no_folder()
    }
}
