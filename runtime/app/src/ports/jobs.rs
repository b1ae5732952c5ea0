//! The port to asynchronous queries and profiles: a job is a row of the state database, which all replicas share.
//!
//! A job is claimed under a lease of its own ([`lease_name`]). Each change of a running job checks the fence of
//! that lease, so a holder that was replaced changes nothing.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use terrane_compiler::SecurityContext;
use terrane_compiler::query::SemanticQuery;

use super::audit::AuditEntry;
use super::leases::Lease;
use super::store::StoreError;
use crate::domain::Scopes;
use crate::profiling::{ProfileError, RequestedProfile};
use crate::query::{CacheControl, QueryRunError};

/// The state of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JobState {
    Pending,
    Running,
    Complete,
    Failed,
    Cancelled,
    /// The job was complete, and its result is deleted.
    Expired,
}

impl JobState {
    pub const ALL: [JobState; 6] = [
        JobState::Pending,
        JobState::Running,
        JobState::Complete,
        JobState::Failed,
        JobState::Cancelled,
        JobState::Expired,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            JobState::Pending => "pending",
            JobState::Running => "running",
            JobState::Complete => "complete",
            JobState::Failed => "failed",
            JobState::Cancelled => "cancelled",
            JobState::Expired => "expired",
        }
    }

    /// Returns the state of this name.
    pub fn named(name: &str) -> Option<Self> {
        JobState::ALL.into_iter().find(|state| state.as_str() == name)
    }

    /// Returns whether the job may still run.
    pub fn is_open(self) -> bool {
        matches!(self, JobState::Pending | JobState::Running)
    }
}

/// The kind of a job's request and result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum JobKind {
    /// A query, whose result are its rows.
    #[default]
    Query,
    /// A profile, whose result is one row with its text.
    Profile,
}

impl JobKind {
    pub const ALL: [JobKind; 2] = [JobKind::Query, JobKind::Profile];

    pub fn as_str(self) -> &'static str {
        match self {
            JobKind::Query => "query",
            JobKind::Profile => "profile",
        }
    }

    /// Returns the kind of this name.
    pub fn named(name: &str) -> Option<Self> {
        JobKind::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

/// The maker of a job, as verified when the job was made.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Maker {
    pub caller: SecurityContext,
    pub scopes: Scopes,
    /// The id of the maker's key or session.
    pub credential: Arc<str>,
    pub tenant: Option<Arc<str>>,
}

/// A job to be stored.
#[derive(Debug, Clone)]
pub struct NewJob {
    pub id: Arc<str>,
    pub maker: Maker,
    pub kind: JobKind,
    /// The query as it was sent, or the request of a profile.
    pub query: Arc<str>,
    /// The current time of the query, in every attempt.
    pub now: Timestamp,
    pub created_at: Timestamp,
    pub correlation_id: Option<Arc<str>>,
    /// The maker's own name of this request.
    pub idempotency_key: Option<Arc<str>>,
    /// A digest of the request.
    pub request_hash: Arc<str>,
}

/// A stored job.
#[derive(Debug, Clone)]
pub struct Job {
    pub id: Arc<str>,
    pub maker: Maker,
    pub kind: JobKind,
    pub query: Arc<str>,
    pub now: Timestamp,
    pub state: JobState,
    pub created_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub completed_at: Option<Timestamp>,
    /// The time at which the result is deleted.
    pub expires_at: Option<Timestamp>,
    pub correlation_id: Option<Arc<str>>,
    pub request_hash: Arc<str>,
    pub attempts: u32,
    /// The written share of the rows in percent; `None` if the number of rows is unknown.
    pub progress: Option<u32>,
    pub is_cancel_requested: bool,
    /// A digest of the statement that the maker's policies allowed when the job ran.
    pub fingerprint: Option<Arc<str>>,
    pub manifest: Option<Manifest>,
    pub failure: Option<JobFailure>,
}

impl Job {
    /// Returns the job as it is at a time: a result expires at its time, not when it is deleted.
    #[must_use]
    pub fn seen_at(self, now: Timestamp) -> Self {
        let is_over = self.expires_at.is_some_and(|at| at <= now);
        if self.state == JobState::Complete && is_over { Job { state: JobState::Expired, ..self } } else { self }
    }
}

/// A result that was written completely.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    pub name: Arc<str>,
    pub rows: u64,
    pub bytes: u64,
}

/// The reason why a job failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobFailure {
    pub code: Arc<str>,
    pub message: Arc<str>,
}

/// The bounds on open jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobQuota {
    pub open: u64,
    pub open_per_caller: u64,
}

/// The outcome of a submission.
#[derive(Debug, Clone)]
pub enum Submitted {
    Stored,
    /// The maker's idempotency key belongs to this job.
    Known(Box<Job>),
    /// The maker has too many open jobs.
    CallerFull,
    /// All makers together have too many open jobs.
    Full,
}

/// The end of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobEnd {
    Complete { fingerprint: Arc<str>, manifest: Manifest, expires_at: Timestamp },
    Failed(JobFailure),
    Cancelled,
}

impl JobEnd {
    pub fn state(&self) -> JobState {
        match self {
            JobEnd::Complete { .. } => JobState::Complete,
            JobEnd::Failed(_) => JobState::Failed,
            JobEnd::Cancelled => JobState::Cancelled,
        }
    }
}

/// Returns the name of a job's lease.
pub fn lease_name(id: &str) -> String {
    format!("job:{id}")
}

/// The table of jobs.
#[async_trait]
pub trait Jobs: Send + Sync {
    /// Stores a job with its audit record, unless the key is known or a quota is reached.
    async fn submit(&self, job: &NewJob, quota: JobQuota, entry: AuditEntry) -> Result<Submitted, StoreError>;
    async fn job(&self, id: &str) -> Result<Option<Job>, StoreError>;
    /// Returns the jobs with these ids, in any order, at most 500; those that do not exist are left out.
    async fn jobs_by_id(&self, ids: &[&str]) -> Result<Vec<Job>, StoreError>;
    /// Returns the jobs of one maker, or of all, newest first; with a state, only those that are stored with it.
    async fn jobs(&self, maker: Option<&Maker>, state: Option<JobState>, limit: u32) -> Result<Vec<Job>, StoreError>;
    /// Returns open jobs without a holder, oldest first.
    async fn claimable(&self, limit: u32) -> Result<Vec<Arc<str>>, StoreError>;
    /// Begins an attempt. A job that was cancelled or has used up its attempts ends here, and is returned as it
    /// is then. `None`: the lease is stale, or the job is gone.
    async fn begin(&self, id: &str, lease: &Lease, max_attempts: u32, at: Timestamp)
    -> Result<Option<Job>, StoreError>;
    /// Records the progress of an attempt; returns whether the job shall be cancelled. `None`: the lease is stale.
    async fn report(&self, id: &str, lease: &Lease, progress: Option<u32>) -> Result<Option<bool>, StoreError>;
    /// Ends a job; false if the lease is stale or the job has ended.
    async fn end(&self, id: &str, lease: &Lease, end: &JobEnd, at: Timestamp) -> Result<bool, StoreError>;
    /// Cancels a pending job, asks the holder of a running one to cancel it, expires a complete one. Changes no
    /// other. Returns the job after the change.
    async fn cancel(&self, id: &str, at: Timestamp, entry: AuditEntry) -> Result<Option<Job>, StoreError>;
    /// Marks complete jobs whose result has expired, a few at a time; returns how many.
    async fn expire(&self, now: Timestamp) -> Result<u64, StoreError>;
    /// Deletes jobs that ended before a time, with their leases, a few at a time; returns how many.
    async fn prune(&self, before: Timestamp) -> Result<u64, StoreError>;
    /// Returns the number of pending jobs.
    async fn pending(&self) -> Result<u64, StoreError>;
}

/// Encodes and decodes the parts of a job that have a wire format.
pub trait JobTexts: Send + Sync {
    /// Reads the query of a stored job, and its caller's wishes about cached results.
    ///
    /// # Errors
    /// The text is not a query of this version.
    fn query(&self, text: &str) -> Result<(SemanticQuery, CacheControl), JobFailure>;
    /// Reads the request of a stored job for a profile.
    ///
    /// # Errors
    /// The text is not a request of this version.
    fn profile(&self, text: &str) -> Result<RequestedProfile, JobFailure>;
    /// Describes the failure of a query as its maker may see it.
    fn failure(&self, error: QueryRunError, scopes: Scopes) -> JobFailure;
    /// Describes the failure of a profile as its maker may see it.
    fn profile_failure(&self, error: ProfileError, scopes: Scopes) -> JobFailure;
}
