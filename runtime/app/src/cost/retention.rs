//! Deletes old records of the history of queries.
//!
//! In: the port to the history. Out: a task of the worker. Not here: running the task (`worker`).

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::ports::budgets::BudgetPeriod;
use crate::ports::clock::Clock;
use crate::ports::executed_queries::{ExecutedQueries, QueryOwner};
use crate::ports::leases::Lease;
use crate::worker::{Progress, Schedule, Task, TaskError};

/// The name of the task and of its lease.
const PRUNING: &str = "prune_query_history";
/// The time between two runs.
const PERIOD: Duration = Duration::from_secs(600);
/// The largest number of transactions of one run; the next run deletes the rest.
const MAX_STEPS: usize = 100;

/// Periodically deletes old records. Runs on one replica at a time, under a lease.
pub struct HistoryRetention {
    history: Arc<dyn ExecutedQueries>,
    clock: Arc<dyn Clock>,
    retention: Duration,
    /// The zone in which months of budgets begin.
    timezone: TimeZone,
}

impl HistoryRetention {
    pub fn new(
        history: Arc<dyn ExecutedQueries>,
        clock: Arc<dyn Clock>,
        retention: Duration,
        timezone: TimeZone,
    ) -> Self {
        HistoryRetention { history, clock, retention, timezone }
    }
}

#[async_trait]
impl Task for HistoryRetention {
    fn name(&self) -> &'static str {
        PRUNING
    }

    fn schedule(&self) -> Schedule {
        Schedule::Interval(PERIOD)
    }

    async fn run(&self, lease: &Lease) -> Result<Progress, TaskError> {
        let now = self.clock.now();
        // Budgets are compared with the cost of all queries since the month began, so these records stay.
        let owner = QueryOwner { user_id: "".into(), tenant: None };
        let month = BudgetPeriod::Month.account(owner, now, &self.timezone).starts_at;
        let before = now.checked_sub(self.retention).unwrap_or(Timestamp::MIN).min(month);
        let mut deleted = 0;
        for _ in 0..MAX_STEPS {
            let step = self.history.prune_executed(before, lease).await?.ok_or(TaskError::LeaseLost)?;
            if step == 0 {
                if deleted > 0 {
                    tracing::info!(event = "query_history_pruned", queries = deleted);
                }
                return Ok(Progress::Complete);
            }
            deleted += step;
        }
        Ok(Progress::Incomplete)
    }
}
