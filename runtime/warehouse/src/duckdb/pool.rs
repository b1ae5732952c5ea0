//! A bounded pool of connections to one database, and statements that can be interrupted.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use duckdb::{Connection, InterruptHandle};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Connections of one database.
pub(super) struct Pool {
    /// Kept to make further connections from.
    root: Mutex<Connection>,
    idle: Mutex<Vec<Connection>>,
    turns: Arc<Semaphore>,
}

/// A connection for one statement. It goes back to the pool when dropped.
pub(super) struct Lease {
    pool: Arc<Pool>,
    connection: Option<Connection>,
    _turn: OwnedSemaphorePermit,
}

impl Pool {
    pub(super) fn new(root: Connection, connections: usize) -> Self {
        Pool {
            root: Mutex::new(root),
            idle: Mutex::new(Vec::new()),
            turns: Arc::new(Semaphore::new(connections.max(1))),
        }
    }

    /// Waits for a turn. An engine that doesn't let go of a statement keeps its turn, so threads
    /// stay bounded.
    pub(super) async fn lease(self: &Arc<Self>) -> Result<Lease, LeaseError> {
        let turn = self.turns.clone().acquire_owned().await.map_err(|_| LeaseError::Closed)?;
        let idle = lock(&self.idle).pop();
        let connection = match idle {
            Some(connection) => connection,
            None => lock(&self.root).try_clone()?,
        };
        Ok(Lease { pool: self.clone(), connection: Some(connection), _turn: turn })
    }
}

#[derive(Debug, thiserror::Error)]
pub(super) enum LeaseError {
    #[error("the database is closed")]
    Closed,
    #[error(transparent)]
    Connect(#[from] duckdb::Error),
}

impl Lease {
    #[expect(clippy::expect_used, reason = "a lease holds its connection until it is dropped")]
    pub(super) fn connection(&mut self) -> &Connection {
        self.connection.as_ref().expect("a lease holds its connection until it is dropped")
    }

    pub(super) fn interrupt_handle(&mut self) -> Arc<InterruptHandle> {
        self.connection().interrupt_handle()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take()
            && !std::thread::panicking()
        {
            lock(&self.pool.idle).push(connection);
        }
    }
}

/// A statement that may be interrupted until it is finished, and never after.
#[derive(Clone)]
pub(super) struct Running {
    state: Arc<RunningState>,
}

struct RunningState {
    handle: Arc<InterruptHandle>,
    is_cancelled: AtomicBool,
    is_finished: Mutex<bool>,
}

/// Interrupts its statement when dropped.
pub(super) struct InterruptOnDrop(Running);

impl Running {
    pub(super) fn new(handle: Arc<InterruptHandle>) -> Self {
        let state = RunningState { handle, is_cancelled: AtomicBool::new(false), is_finished: Mutex::new(false) };
        Running { state: Arc::new(state) }
    }

    pub(super) fn interrupt_on_drop(&self) -> InterruptOnDrop {
        InterruptOnDrop(self.clone())
    }

    /// `None` when it was cancelled before it began.
    pub(super) fn run<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        (!self.state.is_cancelled.load(Ordering::Acquire)).then(work)
    }

    pub(super) fn finish(&self) {
        *lock(&self.state.is_finished) = true;
    }
}

impl Drop for InterruptOnDrop {
    fn drop(&mut self) {
        let state = &self.0.state;
        state.is_cancelled.store(true, Ordering::Release);
        let is_finished = lock(&state.is_finished);
        if !*is_finished {
            state.handle.interrupt();
        }
    }
}

/// Every value behind these locks is replaced whole, so a poisoned one is still good.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
