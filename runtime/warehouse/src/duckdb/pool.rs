//! A pool with a bounded number of sessions, which are started on demand.
//!
//! In: requests with a time limit. Out: all rows or a stream, or a timeout at the time limit. If a caller times out or
//! goes away, its statement is interrupted and its session is abandoned; another session is started on demand. The
//! engine may ignore an interrupt for a long time. Therefore only a limited number of orphaned statements release their
//! permit at once: the number of statements that may run. Each further orphaned statement holds its permit until it
//! ends.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use duckdb::Connection;
use terrane_app::ports::warehouse::{BatchStream, Connections, WarehouseError};
use tokio::sync::{Semaphore, oneshot};

use super::error;
use super::permit::{OrphanedStatements, StatementPermit};
use super::session::{Answer, DuckdbSession, Reply, Request};
use super::stream;

pub(super) struct Pool {
    /// The connection from which all others are opened. It runs no statements.
    root: Mutex<Connection>,
    idle: Mutex<Vec<DuckdbSession>>,
    turns: Arc<Semaphore>,
    turn_count: usize,
    /// The permits of streamed results: half of all permits. A stream holds its permit until its reader has finished.
    stream_turns: Arc<Semaphore>,
    /// The permit of health probes, which run one at a time and do not wait for queries.
    probe_turn: Arc<Semaphore>,
    orphans: OrphanedStatements,
    /// The number of sessions that could not be started.
    failed: AtomicU64,
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("free_turns", &self.turns.available_permits()).finish_non_exhaustive()
    }
}

impl Pool {
    pub(super) fn new(root: Connection, connections: usize) -> Self {
        let connections = connections.max(1);
        Pool {
            root: Mutex::new(root),
            idle: Mutex::new(Vec::new()),
            turns: Arc::new(Semaphore::new(connections)),
            stream_turns: Arc::new(Semaphore::new((connections / 2).max(1))),
            probe_turn: Arc::new(Semaphore::new(1)),
            turn_count: connections,
            orphans: OrphanedStatements::up_to(connections),
            failed: AtomicU64::new(0),
        }
    }

    /// Returns the numbers of active and idle connections. An orphaned statement is active until the engine stops it.
    /// Connections never break, because the database is in this process.
    pub(super) fn connections(&self) -> Connections {
        let free = self.turns.available_permits() + self.probe_turn.available_permits();
        let in_turn = (self.turn_count + 1).saturating_sub(free);
        Connections {
            active: (in_turn + self.orphans.without_place()) as u64,
            idle: lock(&self.idle).len() as u64,
            failed: self.failed.load(Ordering::Relaxed),
            lost: 0,
        }
    }

    /// Runs one statement and returns all rows. The time limit includes the time to wait for a permit.
    pub(super) async fn run(self: &Arc<Self>, request: Request, timeout: Duration) -> Answer {
        self.run_within(&self.turns, request, timeout).await
    }

    /// Runs one statement and returns its rows as a stream. The statement holds its permit until the rows are read.
    pub(super) async fn stream(
        self: &Arc<Self>,
        request: Request,
        timeout: Duration,
    ) -> Result<BatchStream, WarehouseError> {
        let begin = async {
            let stream_turn = self.stream_turns.clone().acquire_owned().await;
            let (outlet, mut inlet) = stream::way();
            let running = self.start(&self.turns, request, Reply::Batches(outlet)).await?;
            let schema = inlet.schema().await?;
            Ok(BatchStream::new(schema, inlet.batches(timeout, (running, stream_turn))))
        };
        tokio::time::timeout(timeout, begin).await.unwrap_or_else(|_| Err(error::timeout()))
    }

    /// Checks that the engine responds.
    pub(super) async fn ping(self: &Arc<Self>, timeout: Duration) -> Result<(), WarehouseError> {
        self.run_within(&self.probe_turn, Request::probe(), timeout).await.map(drop)
    }

    async fn run_within(self: &Arc<Self>, turns: &Arc<Semaphore>, request: Request, timeout: Duration) -> Answer {
        let run = async {
            let (reply, answer) = oneshot::channel();
            let _running = self.start(turns, request, Reply::Whole(reply)).await?;
            answer.await.unwrap_or_else(|_| Err(error::unavailable("the session ended before it answered")))
        };
        tokio::time::timeout(timeout, run).await.unwrap_or_else(|_| Err(error::timeout()))
    }

    /// Waits for a permit and starts the statement.
    async fn start(
        self: &Arc<Self>,
        turns: &Arc<Semaphore>,
        request: Request,
        reply: Reply,
    ) -> Result<Running, WarehouseError> {
        let permit = turns.clone().acquire_owned().await;
        let permit = permit.map_err(|_| error::unavailable("the warehouse is shutting down"))?;
        let turn = Arc::new(StatementPermit::new(permit, self.orphans.clone()));
        let session = self.session()?;
        session.submit(request, reply, turn.clone());
        Ok(Running { session: Some(session), turn, pool: self.clone() })
    }

    fn session(&self) -> Result<DuckdbSession, WarehouseError> {
        if let Some(session) = lock(&self.idle).pop() {
            return Ok(session);
        }
        let started = self.start_session();
        if started.is_err() {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
        started
    }

    /// Opens a connection that does not belong to the pool.
    pub(super) fn connection(&self) -> Result<Connection, WarehouseError> {
        lock(&self.root).try_clone().map_err(|e| error::from_engine(&e))
    }

    fn start_session(&self) -> Result<DuckdbSession, WarehouseError> {
        DuckdbSession::start(self.connection()?)
            .map_err(|e| error::unavailable(&format!("cannot start a thread for a session: {e}")))
    }
}

/// A running statement of a caller. If it is dropped early, the statement is stopped.
struct Running {
    session: Option<DuckdbSession>,
    turn: Arc<StatementPermit>,
    pool: Arc<Pool>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(session) = self.session.take() else { return };
        let session = std::cell::Cell::new(Some(session));
        self.turn.caller_ends(
            || lock(&self.pool.idle).extend(session.take()),
            || {
                if let Some(session) = session.take() {
                    session.interrupt();
                }
            },
        );
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The values behind these locks are consistent even after a panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
