//! Runs jobs: several at once in each process, each under its own lease.
//!
//! In: open jobs without a holder. Out: the outcomes of these jobs. Not here: leases themselves (`worker`).
//!
//! If a process dies, its leases expire. Another process, or the same one after its restart, begins the second and last
//! attempt. After that, the job is `failed` with the code `INTERRUPTED`. A result is written before the job is
//! complete, under a name that belongs to the attempt. So a former holder of the lease cannot change a newer result.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt as _, StreamExt as _};
use terrane_compiler::sql::ResultColumn;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use super::{JobService, count, job_context, statement_digest, without_total};
use crate::domain::RequestContext;
use crate::ports::jobs::{Job, JobEnd, JobFailure, JobKind, JobState, Manifest, lease_name};
use crate::ports::leases::{Lease, Leases};
use crate::ports::results::{ResultDescription, ResultsError};
use crate::ports::store::StoreError;
use crate::query::{CacheControl, Freshness, Opened, Piece, QueryRunError};
use crate::security::current_rights;
use crate::worker::{HeldLease, LeaseSettings};

/// The largest number of attempts to run a job.
const MAX_ATTEMPTS: u32 = 2;
/// The interval of checks for jobs that other processes stored or left.
const POLL: Duration = Duration::from_secs(1);
/// The time between two records of a job's progress.
const REPORT: Duration = Duration::from_secs(1);
/// The time that running jobs have to end after the process was asked to stop.
const GRACE: Duration = Duration::from_secs(2);
/// The progress of a job whose number of rows is unknown.
const UNKNOWN: u32 = u32::MAX;

/// Runs the jobs of a state database.
pub struct JobRunner {
    service: Arc<JobService>,
    leases: Arc<dyn Leases>,
    lease_settings: LeaseSettings,
    /// The id of this process among all replicas.
    id: Arc<str>,
}

/// The reason why an attempt has no result.
enum Fault {
    Query(QueryRunError),
    Results(ResultsError),
    Job(JobFailure),
}

impl From<QueryRunError> for Fault {
    fn from(error: QueryRunError) -> Self {
        Fault::Query(error)
    }
}

impl From<ResultsError> for Fault {
    fn from(error: ResultsError) -> Self {
        Fault::Results(error)
    }
}

/// The rows of a query, as a whole or as a stream.
struct Rows {
    description: ResultDescription,
    schema: SchemaRef,
    /// The expected number of rows.
    expected: Option<u64>,
    pieces: BoxStream<'static, Result<Piece, QueryRunError>>,
}

impl JobRunner {
    pub fn new(service: Arc<JobService>, leases: Arc<dyn Leases>, lease_settings: LeaseSettings, id: Arc<str>) -> Self {
        JobRunner { service, leases, lease_settings, id }
    }

    /// Runs jobs until `stop` completes. Jobs that do not end within the following two seconds are left to another
    /// process.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let runner = Arc::new(self);
        let mut submissions = runner.service.submissions.subscribe();
        let (stopping, stopped) = watch::channel(false);
        let mut running = JoinSet::new();
        tokio::pin!(stop);
        let mut poll = tokio::time::interval(POLL);
        poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let free = runner.service.settings.concurrency.saturating_sub(running.len());
            for (job, lease) in runner.claim(free).await {
                let (runner, stopped) = (Arc::clone(&runner), stopped.clone());
                running.spawn(async move { runner.attempt(job, lease, stopped).await });
            }
            tokio::select! {
                () = &mut stop => break,
                Some(_) = running.join_next() => {}
                _ = poll.tick() => runner.count_pending().await,
                // `changed` cannot fail, because the sender lives as long as the service. If all workers are busy, a
                // new job has to wait, so submissions are not awaited.
                _ = submissions.changed(), if free > 0 => {}
            }
        }
        // Sending fails only if no attempt is running.
        let _ = stopping.send(true);
        while running.join_next().await.is_some() {}
    }

    /// Updates the number of pending jobs. If the state database does not answer, the number stays unchanged.
    async fn count_pending(&self) {
        if let Ok(pending) = self.service.ports.jobs.pending().await {
            self.service.pending.store(pending, Ordering::Relaxed);
        }
    }

    /// Claims open jobs and begins their attempts. If the state database fails, returns the attempts that have begun;
    /// the other jobs are claimed later.
    async fn claim(&self, most: usize) -> Vec<(Job, HeldLease)> {
        let mut claimed = Vec::new();
        if most == 0 {
            return claimed;
        }
        let claim = async {
            for id in self.service.ports.jobs.claimable(u32::try_from(most).unwrap_or(u32::MAX)).await? {
                claimed.extend(self.begin(&id).await?);
            }
            Ok::<(), StoreError>(())
        };
        if let Err(error) = claim.await {
            tracing::warn!(event = "worker_task_failed", task_name = "jobs", error_message = %error);
        }
        claimed
    }

    /// Starts an attempt of a job, unless another process holds it or it has no attempt left.
    async fn begin(&self, id: &str) -> Result<Option<(Job, HeldLease)>, StoreError> {
        let name = lease_name(id);
        let Some(lease) = HeldLease::acquire(&self.leases, &name, &self.id, self.lease_settings).await? else {
            return Ok(None);
        };
        let now = self.service.ports.clock.now();
        match self.service.ports.jobs.begin(id, lease.lease(), MAX_ATTEMPTS, now).await? {
            Some(job) if job.state == JobState::Running => {
                tracing::info!(event = "job_started", job_id = id, attempt = job.attempts);
                return Ok(Some((job, lease)));
            }
            Some(job) => {
                log_end(&job.id, job.state, job.failure.as_ref());
                count(&self.service.ends);
            }
            None => {}
        }
        Ok(None)
    }

    /// Runs one attempt to its end. If the attempt is stopped or loses its lease, the state of the job is not changed.
    async fn attempt(&self, job: Job, lease: HeldLease, mut stopped: watch::Receiver<bool>) {
        let progress = AtomicU32::new(UNKNOWN);
        let grace = async {
            // The wait cannot fail, because the sender lives until the attempts have ended.
            let _ = stopped.wait_for(|is_stopped| *is_stopped).await;
            tokio::time::sleep(GRACE).await;
        };
        let work = async {
            let produce = AssertUnwindSafe(self.produce(&job, lease.lease(), &progress)).catch_unwind();
            let end = tokio::select! {
                end = produce => end.unwrap_or_else(|_| JobEnd::Failed(internal("the job panicked; the log has more"))),
                end = self.supervise(&job, lease.lease(), &progress) => match end {
                    Some(end) => end,
                    None => return false,
                },
            };
            self.record(&job, lease.lease(), &end).await
        };
        let is_held = tokio::select! {
            is_held = work => is_held,
            _ = lease.until_lost(&*self.service.ports.clock, self.lease_settings) => false,
            () = grace => {
                tracing::warn!(event = "job_interrupted", job_id = &*job.id);
                true
            }
        };
        if is_held {
            if let Err(error) = lease.release().await {
                tracing::warn!(event = "lease_not_released", name = lease_name(&job.id), error_message = %error);
            }
        } else {
            tracing::warn!(event = "lease_lost", name = lease_name(&job.id), fence = lease.lease().fence);
            lease.forget();
        }
    }

    /// Reports progress until the job has been cancelled or its owner has lost access. Returns the end of the job;
    /// `None` if the lease is stale.
    async fn supervise(&self, job: &Job, lease: &Lease, progress: &AtomicU32) -> Option<JobEnd> {
        let mut ends = self.service.ends.subscribe();
        loop {
            tokio::select! {
                () = tokio::time::sleep(REPORT) => {}
                _ = ends.changed() => {}
            }
            let percent = Some(progress.load(Ordering::Relaxed)).filter(|percent| *percent != UNKNOWN);
            match self.service.ports.jobs.report(&job.id, lease, percent).await {
                Ok(Some(true)) => return Some(JobEnd::Cancelled),
                Ok(Some(false)) => {}
                Ok(None) => return None,
                // If the state database stays unavailable, the lease expires, which ends the attempt.
                Err(_) => continue,
            }
            if let Ok(false) = self.is_maker_active(job).await {
                return Some(JobEnd::Failed(maker_gone()));
            }
        }
    }

    async fn produce(&self, job: &Job, lease: &Lease, progress: &AtomicU32) -> JobEnd {
        let is_active = loop {
            match self.is_maker_active(job).await {
                Ok(is_active) => break is_active,
                // If the state database stays unavailable, the lease expires, which ends the attempt.
                Err(_) => tokio::time::sleep(REPORT).await,
            }
        };
        let written = match job.kind {
            _ if !is_active => Err(Fault::Job(maker_gone())),
            JobKind::Query => self.write(job, lease, progress).await,
            JobKind::Profile => self.write_profile(job, lease).await,
        };
        let texts = &self.service.ports.texts;
        match written {
            Ok((fingerprint, manifest)) => {
                let now = self.service.ports.clock.now();
                let expires_at = now.checked_add(self.service.settings.result_lifetime).unwrap_or(now);
                JobEnd::Complete { fingerprint, manifest, expires_at }
            }
            Err(Fault::Query(error)) => JobEnd::Failed(texts.failure(error, job.owner.scopes)),
            Err(Fault::Job(failure)) => JobEnd::Failed(failure),
            Err(Fault::Results(error)) => {
                tracing::error!(event = "job_results_unavailable", job_id = &*job.id, error_message = %error);
                let message = match error {
                    ResultsError::DiskFull { .. } => "the disk for results is full; submit the query again later",
                    ResultsError::Unavailable { .. } => {
                        "the result could not be stored; the log of the server has the cause"
                    }
                };
                JobEnd::Failed(JobFailure { code: "RESULTS_UNAVAILABLE".into(), message: message.into() })
            }
        }
    }

    /// Runs the query and writes its rows.
    async fn write(&self, job: &Job, lease: &Lease, progress: &AtomicU32) -> Result<(Arc<str>, Manifest), Fault> {
        let ports = &self.service.ports;
        let (query, cache) = ports.texts.query(&job.query).map_err(Fault::Job)?;
        // A job has time to compute its result, so it does not accept an outdated cached answer.
        let (query, cache) = (without_total(query), CacheControl { stale: Some(Duration::ZERO), ..cache });
        let request =
            RequestContext { correlation_id: job.correlation_id.clone().unwrap_or_default(), ..Default::default() };
        let context = job_context(&job.owner, &request);
        let session = ports.queries.session_at(&context, job.now);
        let fingerprint = statement_digest(&session, &query).await?;
        let Rows { description, schema, expected, mut pieces } =
            rows_of(session.prepare(&query).await?.with_cache(cache).open().await?);
        let name = format!("{}.{}", job.id, lease.fence);
        let mut writer = ports.results.create(&name, &description, schema).await?;
        let mut written = 0_u64;
        loop {
            match pieces.next().await.transpose()? {
                Some(Piece::Rows(batch)) => {
                    written += batch.num_rows() as u64;
                    writer.write(batch).await?;
                    if let Some(expected) = expected.filter(|expected| *expected > 0) {
                        let percent = (written.saturating_mul(100) / expected).min(99);
                        progress.store(u32::try_from(percent).unwrap_or(99), Ordering::Relaxed);
                    }
                }
                Some(Piece::End { .. }) => break,
                None => return Err(Fault::Job(internal("the rows ended before the result was complete"))),
            }
        }
        Ok((fingerprint, writer.finish().await?))
    }

    /// Computes the profile and writes its text.
    async fn write_profile(&self, job: &Job, lease: &Lease) -> Result<(Arc<str>, Manifest), Fault> {
        let ports = &self.service.ports;
        let requested = ports.texts.profile(&job.query).map_err(Fault::Job)?;
        let Ok(profiles) = self.service.profiles() else {
            return Err(Fault::Job(internal("profiling is switched off on this server")));
        };
        let request =
            RequestContext { correlation_id: job.correlation_id.clone().unwrap_or_default(), ..Default::default() };
        let made = profiles.of_job(&job_context(&job.owner, &request), &requested, job.now).await;
        let (fingerprint, text) =
            made.map_err(|error| Fault::Job(ports.texts.profile_failure(error, job.owner.scopes)))?;
        let (column, row) = super::profile::row_of(&text)?;
        let name = format!("{}.{}", job.id, lease.fence);
        let description = ResultDescription { columns: vec![column], as_of: None, warnings: Vec::new() };
        let mut writer = ports.results.create(&name, &description, row.schema()).await?;
        writer.write(row).await?;
        Ok((fingerprint, writer.finish().await?))
    }

    /// Records the end of a job. Returns false if the lease is stale. If the state database does not answer, tries
    /// again for as long as the lease is held.
    async fn record(&self, job: &Job, lease: &Lease, end: &JobEnd) -> bool {
        loop {
            let now = self.service.ports.clock.now();
            match self.service.ports.jobs.end(&job.id, lease, end, now).await {
                Ok(is_recorded) => {
                    if is_recorded {
                        log_end(
                            &job.id,
                            end.state(),
                            if let JobEnd::Failed(failure) = end { Some(failure) } else { None },
                        );
                        count(&self.service.ends);
                    }
                    return is_recorded;
                }
                Err(error) => {
                    tracing::error!(event = "state_unavailable", error_message = %error);
                    tokio::time::sleep(REPORT).await;
                }
            }
        }
    }

    /// Returns whether the account of the job's owner still has access.
    async fn is_maker_active(&self, job: &Job) -> Result<bool, StoreError> {
        let (credentials, now) = (&*self.service.ports.credentials, self.service.ports.clock.now());
        Ok(current_rights(credentials, &job.owner, now).await?.is_some())
    }
}

fn rows_of(opened: Opened) -> Rows {
    match opened {
        Opened::Whole(answer) => {
            let end = Piece::End {
                returned_rows: answer.returned_rows,
                truncated: answer.truncated,
                duration: answer.duration,
            };
            let rows = answer.batches.into_iter().map(Piece::Rows as fn(RecordBatch) -> Piece);
            Rows {
                description: describe(answer.columns, answer.freshness, answer.warnings),
                schema: answer.schema,
                expected: Some(answer.returned_rows),
                pieces: stream::iter(rows.chain([end]).map(Ok).collect::<Vec<_>>()).boxed(),
            }
        }
        Opened::Streamed(answer) => Rows {
            description: describe(answer.columns, answer.freshness, answer.warnings),
            schema: answer.schema,
            expected: None,
            pieces: answer.pieces,
        },
    }
}

fn describe(columns: Vec<ResultColumn>, freshness: Freshness, warnings: Vec<String>) -> ResultDescription {
    ResultDescription { columns, as_of: Some(freshness.as_of), warnings }
}

fn maker_gone() -> JobFailure {
    JobFailure { code: "FORBIDDEN".into(), message: "the account that made the job was disabled or deleted".into() }
}

fn internal(message: &str) -> JobFailure {
    JobFailure { code: "INTERNAL_ERROR".into(), message: message.into() }
}

fn log_end(id: &str, state: JobState, failure: Option<&JobFailure>) {
    match failure {
        Some(failure) => tracing::warn!(
            event = "job_failed",
            job_id = id,
            error_code = &*failure.code,
            error_message = &*failure.message
        ),
        None => tracing::info!(event = "job_ended", job_id = id, status = state.as_str()),
    }
}
