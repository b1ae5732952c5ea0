//! The port to asynchronous queries and profiles: a job is a row of the state database, which all replicas share.
//!
//! A job is claimed under its own lease ([`lease_name`]). Each change of a running job checks the fence of that lease,
//! so a former holder of the lease cannot change the job.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use terrane_compiler::SecurityContext;

use super::audit::AuditEntry;
use super::leases::Lease;
use super::store::StoreError;
use crate::domain::Scopes;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JobState {
    Pending,
    Running,
    Complete,
    Failed,
    Cancelled,
    /// The job was complete, but its result has expired.
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
    /// A query, whose result is its rows.
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

/// The verified identity of the owner of a job or a monitor when it was submitted.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OwnerIdentity {
    pub caller: SecurityContext,
    pub scopes: Scopes,
    /// The id of the owner's key or session.
    pub credential: Arc<str>,
    pub tenant: Option<Arc<str>>,
}

impl OwnerIdentity {
    /// Returns a digest of the user and the tenant. It does not depend on the credential.
    pub fn digest(&self) -> Arc<str> {
        let tenant = self.tenant.as_deref().unwrap_or_default();
        let text = format!("{}\0{tenant}\0{}", self.tenant.is_some(), self.caller.user_id);
        hex::encode(Sha256::digest(text.as_bytes())).into()
    }
}

/// A job to be stored.
#[derive(Debug, Clone)]
pub struct NewJob {
    pub id: Arc<str>,
    pub owner: OwnerIdentity,
    pub kind: JobKind,
    /// The query as it was sent, or the request of a profile.
    pub query: Arc<str>,
    /// The time that the query uses as the current time, the same in every attempt.
    pub now: Timestamp,
    pub created_at: Timestamp,
    pub correlation_id: Option<Arc<str>>,
    /// The idempotency key of the request. A repeated request with this key does not create another job.
    pub idempotency_key: Option<Arc<str>>,
    /// The digest of the request, which detects another request with the same key.
    pub request_hash: Arc<str>,
}

/// A stored job.
#[derive(Debug, Clone)]
pub struct Job {
    pub id: Arc<str>,
    pub owner: OwnerIdentity,
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
    /// The digest of the statement that ran, which depends on the owner's policies at that time.
    pub fingerprint: Option<Arc<str>>,
    pub manifest: Option<Manifest>,
    pub failure: Option<JobFailure>,
}

impl Job {
    /// Returns the job in its state at a time. The result expires at `expires_at`, even if its file is deleted later.
    #[must_use]
    pub fn seen_at(self, now: Timestamp) -> Self {
        let is_over = self.expires_at.is_some_and(|at| at <= now);
        if self.state == JobState::Complete && is_over { Job { state: JobState::Expired, ..self } } else { self }
    }
}

/// The description of a result that was written completely.
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

/// The largest numbers of open jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobQuota {
    pub open: u64,
    /// `None` if one tenant may have as many open jobs as all together. Callers without a tenant have no such limit.
    pub open_per_tenant: Option<u64>,
    pub open_per_caller: u64,
}

/// The outcome of a submission.
#[derive(Debug, Clone)]
pub enum Submitted {
    Stored,
    /// The owner's idempotency key belongs to this job.
    Known(Box<Job>),
    /// The owner has too many open jobs.
    CallerFull,
    /// The owner's tenant has too many open jobs.
    TenantFull {
        open: u64,
    },
    /// All owners together have too many open jobs.
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
    /// Stores a job with its audit record, unless the idempotency key is known or a quota is reached.
    async fn submit(&self, job: &NewJob, quota: JobQuota, entry: AuditEntry) -> Result<Submitted, StoreError>;
    async fn job(&self, id: &str) -> Result<Option<Job>, StoreError>;
    /// Returns the jobs with these ids, in any order. Takes at most 500 ids; unknown ids are left out.
    async fn jobs_by_id(&self, ids: &[&str]) -> Result<Vec<Job>, StoreError>;
    /// Returns the jobs of one owner or of all owners, newest first. With `state`, only jobs stored with this state.
    async fn jobs(
        &self,
        owner: Option<&OwnerIdentity>,
        state: Option<JobState>,
        limit: u32,
    ) -> Result<Vec<Job>, StoreError>;
    /// Returns open jobs without a holder, oldest first.
    async fn claimable(&self, limit: u32) -> Result<Vec<Arc<str>>, StoreError>;
    /// Starts an attempt and returns the job. If the job was cancelled or has used up its attempts, ends it instead and
    /// returns it in its final state. Returns `None` if the lease is stale or the job is gone.
    async fn begin(&self, id: &str, lease: &Lease, max_attempts: u32, at: Timestamp)
    -> Result<Option<Job>, StoreError>;
    /// Records the progress of an attempt. Returns whether cancelling the job was requested; `None` if the lease is
    /// stale.
    async fn report(&self, id: &str, lease: &Lease, progress: Option<u32>) -> Result<Option<bool>, StoreError>;
    /// Ends a job. Returns false if the lease is stale or the job has ended.
    async fn end(&self, id: &str, lease: &Lease, end: &JobEnd, at: Timestamp) -> Result<bool, StoreError>;
    /// Cancels a pending job, requests the holder of a running job to cancel it, or expires a complete job. Other jobs
    /// are unchanged. Returns the job after the change.
    async fn cancel(&self, id: &str, at: Timestamp, entry: AuditEntry) -> Result<Option<Job>, StoreError>;
    /// Marks complete jobs whose result has expired, a few at a time. Returns their number.
    async fn expire(&self, now: Timestamp) -> Result<u64, StoreError>;
    /// Deletes jobs that ended before a time, with their leases, a few at a time. Returns their number.
    async fn prune(&self, before: Timestamp) -> Result<u64, StoreError>;
    /// Returns the number of pending jobs.
    async fn pending(&self) -> Result<u64, StoreError>;
}
