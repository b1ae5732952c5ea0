//! Asynchronous queries: a query is stored as a job, a runner on any replica runs it, and its result is read in
//! pages later.
//!
//! In: a query or the request of a profile, and the caller who submits it. Out: the job's state, and its result. Not
//! here: running jobs (`runner`), profiles (`profile`), deleting expired results and jobs (`maintenance`), tables and
//! files (ports).
//!
//! # Rights
//! A job belongs to its owner: the user id and the tenant of the verified caller. Other callers do not learn that it
//! exists. All anonymous callers of a tenant share one owner. Policies are applied twice. First, the runner compiles
//! the query with the policies at the time of the run and the owner's identity at submission, and records a digest of
//! the statement. Then each request for the result compiles the query again, with the current policies and the reader's
//! current identity. If the digest differs, the result is not shown.

mod error;
mod maintenance;
mod profile;
mod runner;
mod texts;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use terrane_compiler::query::{PreAggregations, SemanticQuery};
use tokio::sync::watch;

pub use error::{GoneReason, JobError};
pub use maintenance::JobMaintenance;
pub use profile::ProfileSubmission;
pub use runner::JobRunner;
pub use texts::JobTexts;

use crate::domain::{Identity, QueryKind, RequestContext, RequestOrigin, Surface};
use crate::ports::audit::AuditEntry;
use crate::ports::clock::Clock;
use crate::ports::credentials::Credentials;
use crate::ports::jobs::{Job, JobKind, JobQuota, JobState, Jobs, Manifest, NewJob, OwnerIdentity, Submitted};
use crate::ports::results::{JobResults, ResultPage};
use crate::ports::tokens::Randomness;
use crate::profiling::ProfileArchive;
use crate::query::{QueryRunError, QueryService, QuerySession, statement_digest_of};
use crate::security;

/// The longest time for which a request waits for a job.
pub const MAX_WAIT: Duration = Duration::from_secs(30);
/// The largest number of jobs in a list.
pub const MAX_LISTED: u32 = 100;
/// The largest number of characters of an idempotency key.
pub const MAX_KEY_CHARS: usize = 255;
/// The time between two reads of a job that a request waits for. The reads notice the end of a job that another replica
/// runs.
const WAIT_POLL: Duration = Duration::from_millis(500);

/// The operator's settings of jobs.
#[derive(Debug, Clone)]
pub struct JobSettings {
    /// The largest number of jobs that this process runs at once.
    pub concurrency: usize,
    /// The longest time that a job may run.
    pub timeout: Duration,
    /// The time for which a result can be read.
    pub result_lifetime: Duration,
    /// The time for which ended jobs remain listed.
    pub retention: Duration,
    pub quota: JobQuota,
}

impl Default for JobSettings {
    fn default() -> Self {
        JobSettings {
            concurrency: 2,
            timeout: Duration::from_secs(3_600),
            result_lifetime: Duration::from_secs(24 * 3_600),
            retention: Duration::from_secs(7 * 24 * 3_600),
            quota: JobQuota { open: 1_000, open_per_tenant: None, open_per_caller: 20 },
        }
    }
}

#[derive(Clone)]
pub struct JobPorts {
    pub jobs: Arc<dyn Jobs>,
    pub results: Arc<dyn JobResults>,
    pub texts: Arc<dyn JobTexts>,
    /// The service that runs the queries of jobs, under permits and a timeout of their own.
    pub queries: Arc<QueryService>,
    /// The archive that computes the profiles of jobs, with the same permits and timeout; `None` if profiling is off.
    pub profiles: Option<Arc<ProfileArchive>>,
    pub credentials: Arc<dyn Credentials>,
    pub randomness: Arc<dyn Randomness>,
    pub clock: Arc<dyn Clock>,
}

/// A request to run a query as a job.
#[derive(Debug, Clone)]
pub struct Submission<'a> {
    /// The query as the caller sent it.
    pub text: Arc<str>,
    pub query: &'a SemanticQuery,
    pub idempotency_key: Option<Arc<str>>,
}

/// The text of a request, and the idempotency key that the owner gave it.
struct JobText {
    text: Arc<str>,
    idempotency_key: Option<Arc<str>>,
}

/// The result of a complete job.
pub enum JobOutput {
    Rows(Box<JobPage>),
    /// The text of a profile.
    Profile(Arc<str>),
}

/// A page of a complete job's result.
pub struct JobPage {
    pub job: Job,
    pub total_rows: u64,
    pub page: ResultPage,
}

/// The use cases of jobs.
pub struct JobService {
    ports: JobPorts,
    settings: JobSettings,
    /// Counts the submissions to this process, for its runner.
    submissions: watch::Sender<u64>,
    /// Counts the ended jobs and the cancellation requests of this process.
    ends: watch::Sender<u64>,
    /// The number of pending jobs, which the runner updates.
    pending: AtomicU64,
}

impl JobService {
    pub fn new(ports: JobPorts, settings: JobSettings) -> Self {
        JobService {
            ports,
            settings,
            submissions: watch::Sender::new(0),
            ends: watch::Sender::new(0),
            pending: AtomicU64::new(0),
        }
    }

    /// Checks a query and stores it as a job. If the caller has sent the same query with the same idempotency key
    /// before, returns the job that is stored already.
    ///
    /// # Errors
    /// [`JobError`]
    pub async fn submit(
        &self,
        identity: &Identity,
        context: &RequestContext,
        submission: Submission<'_>,
    ) -> Result<Job, JobError> {
        if submission.query.totals {
            return Err(JobError::HasTotals);
        }
        let now = self.ports.clock.now();
        let context = job_context(&owner_of(identity), context);
        let session = self.ports.queries.session_at(&context, now);
        // A query that does not compile is refused at once.
        session.prepare(&without_total(submission.query.clone())).await?.sql().await?;
        let text = JobText { text: submission.text, idempotency_key: submission.idempotency_key };
        self.store(identity, &context, self.new_job(identity, &context, JobKind::Query, now, text)).await
    }

    /// Returns a job to be stored.
    fn new_job(
        &self,
        identity: &Identity,
        context: &RequestContext,
        kind: JobKind,
        now: Timestamp,
        request: JobText,
    ) -> NewJob {
        let mut random = [0; 16];
        self.ports.randomness.fill(&mut random);
        let request_hash = hex::encode(Sha256::digest(request.text.as_bytes())).into();
        NewJob {
            id: hex::encode(random).into(),
            owner: owner_of(identity),
            kind,
            query: request.text,
            now,
            created_at: now,
            correlation_id: context.logged_correlation_id(),
            idempotency_key: request.idempotency_key,
            request_hash,
        }
    }

    /// Stores a job within the quotas, and returns it, or the job with the same idempotency key.
    async fn store(&self, identity: &Identity, context: &RequestContext, job: NewJob) -> Result<Job, JobError> {
        let id = Arc::clone(&job.id);
        let entry = self.entry("job_submitted", job.now, identity, &context.origin(), &id);
        match self.ports.jobs.submit(&job, self.settings.quota, entry).await? {
            Submitted::Stored => {}
            Submitted::Known(known) if known.request_hash == job.request_hash => return Ok(self.seen(*known)),
            Submitted::Known(_) => return Err(JobError::OtherRequest),
            Submitted::CallerFull => return Err(JobError::CallerFull { open: self.settings.quota.open_per_caller }),
            Submitted::TenantFull { open } => return Err(JobError::TenantFull { open }),
            Submitted::Full => return Err(JobError::Full { open: self.settings.quota.open }),
        }
        tracing::info!(event = "job_submitted", job_id = &*id);
        count(&self.submissions);
        self.ports.jobs.job(&id).await?.ok_or(JobError::Unknown)
    }

    /// Returns one of the caller's own jobs.
    ///
    /// # Errors
    /// [`JobError`]
    pub async fn job(&self, identity: &Identity, id: &str) -> Result<Job, JobError> {
        Ok(without_other_rows(self.own_job(identity, id).await?, identity))
    }

    async fn own_job(&self, identity: &Identity, id: &str) -> Result<Job, JobError> {
        let job = self.ports.jobs.job(id).await?;
        let job = job.filter(|job| is_own(&job.owner, identity)).ok_or(JobError::Unknown)?;
        Ok(self.seen(job))
    }

    /// Returns a job of the caller as soon as it has ended, or in its current state after `wait`.
    ///
    /// # Errors
    /// [`JobError`]
    pub async fn wait(&self, identity: &Identity, id: &str, wait: Duration) -> Result<Job, JobError> {
        let mut ends = self.ends.subscribe();
        let clock = &self.ports.clock;
        let deadline = clock.elapsed() + wait.min(MAX_WAIT);
        loop {
            let job = self.job(identity, id).await?;
            let left = deadline.saturating_sub(clock.elapsed());
            if !job.state.is_open() || left.is_zero() {
                return Ok(job);
            }
            tokio::select! {
                () = tokio::time::sleep(left.min(WAIT_POLL)) => {}
                // `changed` cannot fail, because the sender lives as long as this service.
                _ = ends.changed() => {}
            }
        }
    }

    /// Returns the caller's own jobs, newest first.
    ///
    /// # Errors
    /// The state database cannot be read.
    pub async fn list(&self, identity: &Identity, limit: u32) -> Result<Vec<Job>, JobError> {
        let jobs = self.ports.jobs.jobs(Some(&owner_of(identity)), None, limit.min(MAX_LISTED)).await?;
        Ok(jobs.into_iter().map(|job| without_other_rows(self.seen(job), identity)).collect())
    }

    /// Cancels one of the caller's own jobs; the result of a complete job is discarded. Waits briefly for a running job
    /// to end.
    ///
    /// # Errors
    /// [`JobError`]
    pub async fn cancel(&self, identity: &Identity, origin: &RequestOrigin, id: &str) -> Result<Job, JobError> {
        const MOMENT: Duration = Duration::from_secs(5);
        let before = self.job(identity, id).await?;
        if before.state.is_open() || before.state == JobState::Complete {
            let now = self.ports.clock.now();
            let entry = self.entry("job_cancelled", now, identity, origin, id);
            self.ports.jobs.cancel(id, now, entry).await?;
            count(&self.ends);
        }
        self.wait(identity, id, MOMENT).await
    }

    /// Returns the result of a complete job, or a page of its rows, if the current policies allow the reader what they
    /// allowed the job.
    ///
    /// # Errors
    /// [`JobError`]
    pub async fn output(
        &self,
        identity: &Identity,
        context: &RequestContext,
        id: &str,
        offset: u64,
        limit: u64,
    ) -> Result<JobOutput, JobError> {
        let job = self.own_job(identity, id).await?;
        match (job.state, &job.manifest, &job.fingerprint) {
            (JobState::Complete, Some(manifest), Some(fingerprint)) => {
                let (manifest, fingerprint) = (manifest.clone(), Arc::clone(fingerprint));
                let context = job_context(&owner_of(identity), context);
                match job.kind {
                    JobKind::Query => {
                        let page = self.page(&context, job, &manifest, &fingerprint, offset, limit).await?;
                        Ok(JobOutput::Rows(Box::new(page)))
                    }
                    JobKind::Profile => {
                        Ok(JobOutput::Profile(self.profile(&context, &job, &manifest, &fingerprint).await?))
                    }
                }
            }
            (JobState::Expired, ..) => Err(JobError::Gone { reason: GoneReason::Expired }),
            (state, ..) => Err(JobError::NoResult { state }),
        }
    }

    async fn page(
        &self,
        context: &RequestContext,
        job: Job,
        manifest: &Manifest,
        fingerprint: &str,
        offset: u64,
        limit: u64,
    ) -> Result<JobPage, JobError> {
        let query = self.ports.texts.query(&job.query);
        let (query, _) = query.map_err(|_| JobError::Gone { reason: GoneReason::PolicyChanged })?;
        let query = without_total(query);
        let session = self.ports.queries.session_at(context, job.now);
        let digest = match statement_digest(&session, &query).await {
            Ok(digest) => Some(digest),
            // The query is denied, or the model no longer has its members.
            Err(error) if error.is_denial() || matches!(error, QueryRunError::Query(_)) => None,
            Err(error) => return Err(error.into()),
        };
        check_view(&job, digest.as_deref(), fingerprint)?;
        let page = self.ports.results.page(manifest, offset, limit).await?;
        Ok(JobPage { total_rows: manifest.rows, page, job })
    }

    /// Returns the number of pending jobs of all replicas, as the runner of this process last read it.
    pub fn pending(&self) -> u64 {
        self.pending.load(Ordering::Relaxed)
    }

    fn seen(&self, job: Job) -> Job {
        job.seen_at(self.ports.clock.now())
    }

    fn entry(
        &self,
        event: &'static str,
        at: Timestamp,
        identity: &Identity,
        origin: &RequestOrigin,
        id: &str,
    ) -> AuditEntry {
        security::with_origin(origin, security::entry(event, at, identity, format!("job:{id}")))
    }
}

/// Checks that the reader's policies lead to the same statement as those under which the job ran.
fn check_view(job: &Job, view: Option<&str>, fingerprint: &str) -> Result<(), JobError> {
    if view == Some(fingerprint) {
        return Ok(());
    }
    tracing::info!(event = "job_result_closed", job_id = &*job.id);
    Err(JobError::Gone { reason: GoneReason::PolicyChanged })
}

/// Removes the numbers of a result that was computed for other attributes, roles or groups of the same user.
fn without_other_rows(job: Job, identity: &Identity) -> Job {
    let manifest = job.manifest.filter(|_| job.owner.caller == identity.caller);
    Job { manifest, ..job }
}

fn count(events: &watch::Sender<u64>) {
    events.send_modify(|events| *events = events.wrapping_add(1));
}

pub(crate) fn owner_of(identity: &Identity) -> OwnerIdentity {
    OwnerIdentity {
        caller: identity.caller.clone(),
        scopes: identity.scopes,
        credential: Arc::clone(&identity.credential),
        tenant: identity.tenant.clone(),
    }
}

pub(crate) fn is_own(owner: &OwnerIdentity, identity: &Identity) -> bool {
    owner.caller.user_id == identity.caller.user_id && owner.tenant == identity.tenant
}

/// Returns the context of a job's queries. Hooks and metrics see the same surface and kind of query at submission, in
/// each attempt, and when the result is read.
fn job_context(owner: &OwnerIdentity, request: &RequestContext) -> RequestContext {
    RequestContext {
        caller: owner.caller.clone(),
        scopes: owner.scopes,
        tenant: owner.tenant.clone(),
        surface: Surface::AsyncJob,
        kind: QueryKind::Job,
        ..request.clone()
    }
}

/// Returns the query without a total count of its rows. The rows of the result are counted while they are written. If
/// the engine counted them first, it would have to hold all rows.
fn without_total(query: SemanticQuery) -> SemanticQuery {
    SemanticQuery { skip_total: true, ..query }
}

/// Returns a digest of the statement that a query compiles to, and of the statement's values. Policies affect both.
///
/// The statement is compiled without pre-aggregations: the names of pre-aggregated tables change with each build, and
/// do not depend on policies.
async fn statement_digest(session: &QuerySession<'_>, query: &SemanticQuery) -> Result<Arc<str>, QueryRunError> {
    let query = SemanticQuery { pre_aggregations: PreAggregations::Off, ..query.clone() };
    Ok(statement_digest_of(&session.prepare(&query).await?.sql().await?))
}
