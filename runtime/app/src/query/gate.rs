//! How many queries run at once, and how many may wait for a turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Every turn is taken and the queue is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{running} queries run and {queued} wait: try again later")]
pub struct Overloaded {
    pub running: usize,
    pub queued: usize,
}

/// A bounded number of turns with a bounded queue in front.
#[derive(Debug)]
pub struct Gate {
    turns: Arc<Semaphore>,
    running_limit: usize,
    queued: AtomicUsize,
    queue_limit: usize,
}

/// Leaves the queue when the wait ends, also when the caller goes away.
struct Queued<'a>(&'a AtomicUsize);

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Gate {
    pub fn new(running_limit: usize, queue_limit: usize) -> Self {
        let running_limit = running_limit.max(1);
        let turns = Arc::new(Semaphore::new(running_limit));
        Gate { turns, running_limit, queued: AtomicUsize::new(0), queue_limit }
    }

    /// Queries that run and that wait.
    pub fn load(&self) -> (usize, usize) {
        let running = self.running_limit.saturating_sub(self.turns.available_permits());
        (running, self.queued.load(Ordering::Relaxed))
    }

    /// Waits for a turn, which ends when the permit is dropped; a stream takes it along.
    ///
    /// # Errors
    /// [`Overloaded`] at once when the queue is full.
    pub async fn enter(&self) -> Result<OwnedSemaphorePermit, Overloaded> {
        if let Ok(turn) = self.turns.clone().try_acquire_owned() {
            return Ok(turn);
        }
        let queued = self.queued.fetch_add(1, Ordering::Relaxed);
        let _queued = Queued(&self.queued);
        let overloaded = Overloaded { running: self.running_limit, queued };
        if queued >= self.queue_limit {
            return Err(overloaded);
        }
        // The semaphore is never closed; were it, nobody would get a turn.
        self.turns.clone().acquire_owned().await.map_err(|_| overloaded)
    }
}
