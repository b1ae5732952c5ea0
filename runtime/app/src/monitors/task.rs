//! The worker's task: runs the monitors that are due, and escalates alerts.
//!
//! In: the worker's lease. Out: rounds. One server runs all monitors of a state database. It runs them one after
//! another, so they take one permit of queries at a time. One run makes up for all missed times of a monitor.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use super::MonitorService;
use super::error::MonitorError;
use crate::ports::leases::Lease;
use crate::ports::store::StoreError;
use crate::worker::{Progress, Schedule, Task, TaskError};

/// The name of the task and of its lease.
const MONITORS: &str = "monitors";
/// The longest time until the task notices a changed schedule.
const POLL: Duration = Duration::from_secs(5);
/// The largest number of monitors in one run of the task. If more are due, the next run follows at once.
const AT_ONCE: u32 = 50;

/// Runs monitors on schedule.
pub struct MonitorTask(Arc<MonitorService>);

impl MonitorTask {
    pub fn new(service: Arc<MonitorService>) -> Self {
        MonitorTask(service)
    }
}

#[async_trait]
impl Task for MonitorTask {
    fn name(&self) -> &'static str {
        MONITORS
    }

    fn schedule(&self) -> Schedule {
        Schedule::DueTime { poll: POLL }
    }

    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        self.0.ports.records.next_monitor_run().await
    }

    async fn run(&self, lease: &Lease) -> Result<Progress, TaskError> {
        let (service, records) = (&self.0, &self.0.ports.records);
        let now = service.ports.clock.now();
        let escalated = records.escalate_alerts(now, AT_ONCE, lease, &|| service.new_id()).await?;
        let escalated = escalated.ok_or(TaskError::LeaseLost)?;
        let due = records.due_monitors(now, AT_ONCE).await?;
        for monitor in &due {
            let round = match service.round(monitor, None).await {
                Ok(round) => round,
                Err(MonitorError::Store(error)) => return Err(error.into()),
                Err(error) => {
                    tracing::warn!(event = "monitor_failed", monitor_id = &*monitor.id, error_message = %error);
                    continue;
                }
            };
            tracing::info!(
                event = "monitor_run",
                monitor_id = &*monitor.id,
                outcome = round.run.outcome.as_str(),
                steps = round.steps.len(),
                anomalous = round.steps.iter().filter(|step| step.is_anomalous).count(),
            );
            if !records.write_round(&round, Some(lease), &|| service.new_id()).await? {
                // The monitor was deleted, or the lease is stale. In the latter case, the next write fails too.
                continue;
            }
        }
        if escalated > 0 {
            tracing::info!(event = "alerts_escalated", alerts = escalated);
        }
        let is_full = due.len() >= AT_ONCE as usize || escalated >= u64::from(AT_ONCE);
        Ok(if is_full { Progress::Incomplete } else { Progress::Complete })
    }
}
