//! Background tasks that one replica of several runs at a time.
//!
//! In: named tasks with a schedule, and the port to leases. Out: runs of each task, until the worker is asked to stop.
//! Not here: the work of the tasks.
//!
//! Each task has its own lease. The worker that holds the lease runs the task. The other workers try to acquire the
//! lease periodically, and take over when it has expired, so that a replica that was killed is replaced. A slow holder
//! may not notice that its lease has expired. So a task passes its lease to each change that depends on it, and the
//! change is refused if the fence is stale.
//!
//! - After a take-over, the task runs at once. This run makes up for all missed runs.
//! - Periods are lengthened by up to a tenth, so that replicas and tasks do not run at the same moments.
//! - A task that fails is run again after a delay that doubles up to a bound. A panic counts as a failure, and ends
//!   neither the worker nor its other tasks.
//! - While a task runs, its lease is renewed. If the lease is lost, the run is dropped.
//! - When the worker stops, a run has a grace period to end. Then the leases are released.

mod lease;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt as _;
use jiff::Timestamp;
use tokio::sync::watch;
use tokio::task::JoinSet;

pub use lease::{HeldLease, LeaseLoss, LeaseSettings};

use crate::ports::clock::Clock;
use crate::ports::leases::{Lease, Leases};
use crate::ports::observer::{Observer, TaskOutcome};
use crate::ports::store::StoreError;

/// The first delay after a failure.
const FIRST_BACKOFF: Duration = Duration::from_secs(5);
/// The longest delay after a failure.
const MAX_BACKOFF: Duration = Duration::from_secs(600);
/// The shortest pause between two runs of a due-time task. The pause prevents a tight loop if the due time of a task
/// does not change.
const MIN_PAUSE: Duration = Duration::from_millis(500);
/// The time that a run has to end after the worker was asked to stop.
const GRACE: Duration = Duration::from_secs(2);

/// A background task.
#[async_trait]
pub trait Task: Send + Sync {
    /// Returns the name of the task and of its lease. It is a label of metrics.
    fn name(&self) -> &'static str;

    fn schedule(&self) -> Schedule;

    /// Returns the next time at which a task of [`Schedule::DueTime`] has to run; `None` if no run is scheduled.
    ///
    /// # Errors
    /// The state database cannot be read.
    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        Ok(None)
    }

    /// Runs the task once. Changes that depend on the lease check its fence. If the lease is lost, the run is dropped.
    ///
    /// # Errors
    /// [`TaskError`]; the task is run again later.
    async fn run(&self, lease: &Lease) -> Result<Progress, TaskError>;
}

/// The times at which a task runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schedule {
    /// The task runs once per period.
    Interval(Duration),
    /// The task runs at the time of [`Task::next_due`], which is read at this interval.
    DueTime { poll: Duration },
}

/// The progress of a task's work after a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    Complete,
    /// The task left some work, and runs again soon.
    Incomplete,
}

/// The reason why a run failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TaskError {
    #[error("the lease was taken over by another worker")]
    LeaseLost,
    #[error("the worker was stopped")]
    Stopped,
    #[error("the task panicked: {message}")]
    Panicked { message: String },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Runs background tasks.
pub struct Worker {
    leases: Arc<dyn Leases>,
    clock: Arc<dyn Clock>,
    observer: Arc<dyn Observer>,
    /// The id of this process among all replicas.
    id: Arc<str>,
    settings: LeaseSettings,
    tasks: Vec<Arc<dyn Task>>,
}

/// A task's progress in one worker.
#[derive(Default)]
struct TaskState {
    lease: Option<HeldLease>,
    /// The earliest time of the next run, as the clock's `elapsed`.
    due: Duration,
    /// The number of consecutive failures.
    failures: u32,
    /// The number of turns, which varies the spread of periods.
    turns: u64,
}

impl TaskState {
    fn lose(&mut self) {
        if let Some(lease) = self.lease.take() {
            lease.forget();
        }
    }
}

impl Worker {
    /// Returns a worker without tasks; `id` identifies this process among all replicas.
    pub fn new(
        leases: Arc<dyn Leases>,
        clock: Arc<dyn Clock>,
        observer: Arc<dyn Observer>,
        id: Arc<str>,
        settings: LeaseSettings,
    ) -> Self {
        Worker { leases, clock, observer, id, settings, tasks: Vec::new() }
    }

    #[must_use]
    pub fn with_task(mut self, task: Arc<dyn Task>) -> Self {
        self.tasks.push(task);
        self
    }

    /// Runs the tasks until `stop`, then releases their leases.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let (sender, receiver) = watch::channel(false);
        let tasks = self.tasks.clone();
        let worker = Arc::new(self);
        let mut running = JoinSet::new();
        for task in tasks {
            let (worker, receiver) = (Arc::clone(&worker), receiver.clone());
            running.spawn(async move { worker.keep_running(&*task, receiver).await });
        }
        stop.await;
        // Sending fails only if the worker has no tasks.
        let _ = sender.send(true);
        while running.join_next().await.is_some() {}
    }

    async fn keep_running(&self, task: &dyn Task, mut stop: watch::Receiver<bool>) {
        let mut state = TaskState::default();
        loop {
            let delay = self.turn(task, &mut state, &mut stop).await;
            tokio::select! {
                () = tokio::time::sleep(delay) => {}
                () = stopped(&mut stop) => break,
            }
        }
        if let Some(lease) = state.lease
            && let Err(error) = lease.release().await
        {
            log_failure(task, &error.into());
        }
    }

    /// Renews or acquires the lease, and runs the task if it is due. Returns the delay until the next turn.
    async fn turn(&self, task: &dyn Task, state: &mut TaskState, stop: &mut watch::Receiver<bool>) -> Duration {
        state.turns += 1;
        let outcome = match self.hold(task, state).await {
            Ok(false) => return self.spread(self.settings.renewal, task, state),
            Ok(true) => self.run_if_due(task, state, stop).await,
            Err(error) => Err(error.into()),
        };
        if let Err(error) = outcome {
            log_failure(task, &error);
            if matches!(error, TaskError::LeaseLost) {
                state.lose();
            }
            let backoff = FIRST_BACKOFF.saturating_mul(1 << state.failures.min(16)).min(MAX_BACKOFF);
            state.failures += 1;
            state.due = self.clock.elapsed() + self.spread(backoff, task, state);
        }
        // The next turn is at the latest when the lease must be renewed, even if the task is due later.
        state.due.saturating_sub(self.clock.elapsed()).min(self.settings.renewal)
    }

    /// Returns whether this worker holds the task's lease.
    async fn hold(&self, task: &dyn Task, state: &mut TaskState) -> Result<bool, StoreError> {
        if let Some(lease) = &state.lease {
            if lease.renew(self.settings).await? {
                return Ok(true);
            }
            tracing::warn!(event = "lease_lost", name = task.name(), fence = lease.lease().fence);
            state.lose();
        }
        let lease = HeldLease::acquire(&self.leases, task.name(), &self.id, self.settings).await?;
        if let Some(lease) = &lease {
            tracing::info!(event = "lease_acquired", name = task.name(), fence = lease.lease().fence);
            (state.due, state.failures) = (Duration::ZERO, 0);
        }
        state.lease = lease;
        Ok(state.lease.is_some())
    }

    async fn run_if_due(
        &self,
        task: &dyn Task,
        state: &mut TaskState,
        stop: &mut watch::Receiver<bool>,
    ) -> Result<(), TaskError> {
        let started = self.clock.elapsed();
        if started < state.due {
            return Ok(());
        }
        if let Schedule::DueTime { poll } = task.schedule()
            && let Some(wait) = self.time_until_due(task).await?
        {
            state.due = started + wait.min(poll);
            return Ok(());
        }
        let Some(lease) = &state.lease else { return Err(TaskError::LeaseLost) };
        self.observer.task_started(task.name());
        let outcome = self.run_once(task, lease, stop).await;
        let duration = self.clock.elapsed().saturating_sub(started);
        self.observer.task_ended(task.name(), TaskOutcome::of(&outcome), duration);
        let pause = match (outcome?, task.schedule()) {
            (Progress::Incomplete, _) => self.settings.renewal,
            (Progress::Complete, Schedule::Interval(period)) => self.spread(period, task, state),
            (Progress::Complete, Schedule::DueTime { .. }) => MIN_PAUSE,
        };
        state.failures = 0;
        // If a run took longer than the period, one run follows, and not one for each period that was missed.
        state.due = (started + pause).max(self.clock.elapsed());
        Ok(())
    }

    /// Returns the time until a due-time task has to run; `None` if it is due now.
    async fn time_until_due(&self, task: &dyn Task) -> Result<Option<Duration>, TaskError> {
        let due = AssertUnwindSafe(task.next_due()).catch_unwind().await.map_err(|panic| panicked(&*panic))??;
        let Some(due) = due else { return Ok(Some(Duration::MAX)) };
        let wait = Duration::try_from(self.clock.now().duration_until(due)).unwrap_or_default();
        Ok(Some(wait).filter(|wait| !wait.is_zero()))
    }

    /// Runs the task as long as its lease is held. After the worker was asked to stop, the run ends within the grace
    /// period.
    async fn run_once(
        &self,
        task: &dyn Task,
        lease: &HeldLease,
        stop: &mut watch::Receiver<bool>,
    ) -> Result<Progress, TaskError> {
        let run = AssertUnwindSafe(task.run(lease.lease())).catch_unwind();
        let grace = async {
            stopped(stop).await;
            tokio::time::sleep(GRACE).await;
        };
        tokio::select! {
            outcome = run => outcome.unwrap_or_else(|panic| Err(panicked(&*panic))),
            _ = lease.until_lost(&*self.clock, self.settings) => Err(TaskError::LeaseLost),
            () = grace => Err(TaskError::Stopped),
        }
    }

    /// Returns the duration, lengthened by up to a tenth. The addition depends on the worker, the task and the turn.
    fn spread(&self, duration: Duration, task: &dyn Task, state: &TaskState) -> Duration {
        use std::hash::{DefaultHasher, Hash as _, Hasher as _};
        let mut hasher = DefaultHasher::new();
        (&*self.id, task.name(), state.turns).hash(&mut hasher);
        let share = (hasher.finish() % 1_000) as f64 / 10_000.0;
        duration.mul_f64(1.0 + share)
    }
}

/// Waits until the worker is asked to stop.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    // The wait cannot fail, because the sender lives until the tasks have ended.
    let _ = stop.wait_for(|is_stopped| *is_stopped).await;
}

fn log_failure(task: &dyn Task, error: &TaskError) {
    tracing::warn!(event = "worker_task_failed", task_name = task.name(), error_message = %error);
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> TaskError {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    TaskError::Panicked { message: text.unwrap_or("no message").to_owned() }
}

impl TaskOutcome {
    fn of(outcome: &Result<Progress, TaskError>) -> Self {
        if outcome.is_ok() { TaskOutcome::Success } else { TaskOutcome::Error }
    }
}

#[cfg(test)]
mod tests;
