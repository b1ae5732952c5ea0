//! Deletes expired results, results without a job, and jobs that ended long ago.
//!
//! In: the table of jobs and the results. Out: a task of the worker, which runs on one replica at a time.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use super::JobService;
use crate::ports::jobs::{Job, JobState};
use crate::ports::leases::Lease;
use crate::worker::{Progress, Schedule, Task, TaskError};

/// The name of the task and of its lease.
const MAINTENANCE: &str = "job_maintenance";
const PERIOD: Duration = Duration::from_secs(30);
/// The largest number of jobs that one statement reads.
const JOBS_AT_ONCE: usize = 500;

/// Periodically deletes expired jobs, and the result files that no job needs.
pub struct JobMaintenance {
    service: Arc<JobService>,
}

impl JobMaintenance {
    pub fn new(service: Arc<JobService>) -> Self {
        JobMaintenance { service }
    }

    /// Deletes results that no job needs. Returns their number.
    async fn sweep(&self) -> Result<u64, TaskError> {
        let ports = &self.service.ports;
        let names = match ports.results.names().await {
            Ok(names) => names,
            Err(error) => {
                tracing::error!(event = "job_results_unavailable", error_message = %error);
                return Ok(0);
            }
        };
        // A file belongs to another program if its name is not the name of an attempt.
        let attempts: Vec<Attempt<'_>> = names.iter().filter_map(|name| Attempt::of(name)).collect();
        let mut swept = 0;
        for attempts in attempts.chunks(JOBS_AT_ONCE) {
            let ids: BTreeSet<&str> = attempts.iter().map(|attempt| attempt.id).collect();
            let jobs = ports.jobs.jobs_by_id(&ids.into_iter().collect::<Vec<_>>()).await?;
            let jobs: HashMap<&str, &Job> = jobs.iter().map(|job| (&*job.id, job)).collect();
            for attempt in attempts {
                if jobs.get(attempt.id).is_some_and(|job| needs(job, attempt)) {
                    continue;
                }
                match ports.results.remove(attempt.name).await {
                    Ok(()) => swept += 1,
                    Err(error) => tracing::error!(event = "job_results_unavailable", error_message = %error),
                }
            }
        }
        Ok(swept)
    }
}

/// An attempt, parsed from the name of its result.
struct Attempt<'n> {
    name: &'n str,
    id: &'n str,
    fence: u64,
}

impl<'n> Attempt<'n> {
    fn of(name: &'n str) -> Option<Self> {
        let (id, fence) = name.split_once('.')?;
        let is_id = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let fence = fence.parse().ok().filter(|_| is_id)?;
        Some(Attempt { name, id, fence })
    }
}

/// Returns whether the job has this result, or an attempt may still be writing it.
fn needs(job: &Job, attempt: &Attempt<'_>) -> bool {
    match job.state {
        JobState::Complete => job.manifest.as_ref().is_some_and(|manifest| &*manifest.name == attempt.name),
        JobState::Running => attempt.fence >= u64::from(job.attempts),
        JobState::Pending => true,
        JobState::Failed | JobState::Cancelled | JobState::Expired => false,
    }
}

#[async_trait]
impl Task for JobMaintenance {
    fn name(&self) -> &'static str {
        MAINTENANCE
    }

    fn schedule(&self) -> Schedule {
        Schedule::Interval(PERIOD)
    }

    async fn run(&self, _: &Lease) -> Result<Progress, TaskError> {
        let (ports, settings) = (&self.service.ports, &self.service.settings);
        let now = ports.clock.now();
        let expired = ports.jobs.expire(now).await?;
        let horizon = now.checked_sub(settings.retention).unwrap_or(Timestamp::MIN);
        // Results are deleted before their jobs, so that no result remains whose job is gone.
        let results = self.sweep().await?;
        let jobs = ports.jobs.prune(horizon).await?;
        if expired + results + jobs > 0 {
            tracing::info!(event = "jobs_pruned", expired, results, jobs);
        }
        // One call deletes a bounded number of jobs, so more may remain.
        Ok(if jobs > 0 || expired > 0 { Progress::Incomplete } else { Progress::Complete })
    }
}
