//! Deletes expired records of the state database.
//!
//! In: the port to retention. Out: a task of the worker. Not here: which records are expired (store), and running the
//! task (`worker`).

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::ports::clock::Clock;
use crate::ports::leases::Lease;
use crate::ports::retention::{Horizon, Pruned, Retention};
use crate::worker::{Progress, Schedule, Task, TaskError};

/// The name of the task and of its lease.
pub const PRUNING: &str = "prune";
/// The time between two runs.
const PERIOD: Duration = Duration::from_secs(600);
/// The largest number of transactions of one run; the next run deletes the rest.
const MAX_STEPS: usize = 100;

/// The operator's settings of retention.
#[derive(Debug, Clone, Copy)]
pub struct MaintenanceSettings {
    pub retention: Duration,
    /// The longest lifetime of an access token. A token may be valid longer than the last refresh token of its session.
    pub access_lifetime: Duration,
}

/// Periodically deletes expired records. Runs on one replica at a time, under a lease.
pub struct Maintenance {
    retention: Arc<dyn Retention>,
    clock: Arc<dyn Clock>,
    settings: MaintenanceSettings,
}

impl Maintenance {
    pub fn new(retention: Arc<dyn Retention>, clock: Arc<dyn Clock>, settings: MaintenanceSettings) -> Self {
        Maintenance { retention, clock, settings }
    }

    fn horizon(&self) -> Horizon {
        let before = |length| self.clock.now().checked_sub(length).unwrap_or(Timestamp::MIN);
        let MaintenanceSettings { retention, access_lifetime } = self.settings;
        Horizon { ended: before(retention), abandoned: before(retention.saturating_add(access_lifetime)) }
    }

    /// Deletes expired records, a few at a time, so that writers do not have to wait.
    async fn prune(&self, lease: &Lease) -> Result<(Pruned, Progress), TaskError> {
        let horizon = self.horizon();
        let mut all = Pruned::default();
        for _ in 0..MAX_STEPS {
            let step = self.retention.prune(&horizon, lease).await?.ok_or(TaskError::LeaseLost)?;
            if step.total() == 0 {
                return Ok((all, Progress::Complete));
            }
            all.add(step);
        }
        Ok((all, Progress::Incomplete))
    }
}

#[async_trait]
impl Task for Maintenance {
    fn name(&self) -> &'static str {
        PRUNING
    }

    fn schedule(&self) -> Schedule {
        Schedule::Interval(PERIOD)
    }

    async fn run(&self, lease: &Lease) -> Result<Progress, TaskError> {
        let (pruned, progress) = self.prune(lease).await?;
        if pruned.total() > 0 {
            tracing::info!(
                event = "state_pruned",
                sessions = pruned.sessions,
                refresh_tokens = pruned.refresh_tokens,
                api_keys = pruned.api_keys,
                revocations = pruned.revocations,
            );
        }
        Ok(progress)
    }
}

#[cfg(test)]
mod tests;
