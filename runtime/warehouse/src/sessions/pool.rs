//! A pool with a bounded number of sessions, which connect on demand.
//!
//! The connection of an idle session may have been lost without notice. A statement that fails for this reason is run
//! once more on a new connection, which is safe because sessions only read. If a new connection breaks, the error is
//! returned.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use terrane_app::ports::warehouse::{Connections, WarehouseError, WarehouseErrorKind};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::answer::answer;
use super::failure::{timeout, unavailable};
use super::{Answer, Engine, Request, WarehouseSession};

/// The time limit of a cancellation, during which the cancelled statement holds its permit.
pub(crate) const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) struct Pool<E: Engine> {
    engine: Arc<E>,
    idle: Mutex<Vec<WarehouseSession<E>>>,
    turns: Arc<Semaphore>,
    turn_count: usize,
    /// The permit of health probes, which run one at a time and do not wait for queries.
    probe_turn: Arc<Semaphore>,
    failed: AtomicU64,
    lost: AtomicU64,
}

impl<E: Engine> fmt::Debug for Pool<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("free_turns", &self.turns.available_permits()).finish_non_exhaustive()
    }
}

impl<E: Engine> Pool<E> {
    pub(super) fn new(engine: E, first: WarehouseSession<E>, connections: usize) -> Self {
        Pool {
            engine: Arc::new(engine),
            idle: Mutex::new(vec![first]),
            turns: Arc::new(Semaphore::new(connections.max(1))),
            turn_count: connections.max(1),
            probe_turn: Arc::new(Semaphore::new(1)),
            failed: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        }
    }

    pub(super) fn engine(&self) -> &E {
        &self.engine
    }

    /// Runs one request. The time limit includes the time to wait for a permit and to connect.
    pub(super) async fn run(&self, request: Request<'_>, limit: Duration) -> Result<Answer, WarehouseError> {
        let turns = if matches!(request, Request::Probe) { &self.probe_turn } else { &self.turns };
        let answer = tokio::time::timeout(limit, self.run_in_turn(turns, request)).await;
        answer.unwrap_or_else(|_| Err(timeout(E::FAILED.warehouse)))
    }

    async fn run_in_turn(&self, turns: &Arc<Semaphore>, request: Request<'_>) -> Result<Answer, WarehouseError> {
        let permit = turns.clone().acquire_owned().await;
        let permit =
            permit.map_err(|_| unavailable(E::FAILED.warehouse, "the warehouse is shutting down".to_owned()))?;
        let idle = lock(&self.idle).pop();
        let was_idle = idle.is_some();
        let session = match idle {
            Some(session) => session,
            None => self.connect().await?,
        };
        let mut running = Running { engine: &self.engine, held: Some((session, permit)) };
        let answer = running.ask(request).await;
        if !is_lost(&answer) {
            self.give_back(running);
            return answer;
        }
        self.lost.fetch_add(1, Ordering::Relaxed);
        let (true, Some(permit)) = (was_idle, running.discard()) else { return answer };
        // The other idle sessions have probably lost the same server.
        lock(&self.idle).clear();
        let mut running = Running { engine: &self.engine, held: Some((self.connect().await?, permit)) };
        let mut answer = running.ask(request).await;
        if let Err(error) = &mut answer {
            error.retries = 1;
        }
        if is_lost(&answer) {
            self.lost.fetch_add(1, Ordering::Relaxed);
            running.discard();
        } else {
            self.give_back(running);
        }
        answer
    }

    pub(super) fn connections(&self) -> Connections {
        let free = self.turns.available_permits() + self.probe_turn.available_permits();
        Connections {
            active: (self.turn_count + 1).saturating_sub(free) as u64,
            idle: lock(&self.idle).len() as u64,
            failed: self.failed.load(Ordering::Relaxed),
            lost: self.lost.load(Ordering::Relaxed),
        }
    }

    async fn connect(&self) -> Result<WarehouseSession<E>, WarehouseError> {
        let connected = self.engine.connect().await;
        if connected.is_err() {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
        connected
    }

    fn give_back(&self, mut running: Running<'_, E>) {
        // The session is returned before the permit, so that the next request finds the session.
        if let Some((session, permit)) = running.held.take() {
            lock(&self.idle).push(session);
            drop(permit);
        }
    }
}

/// A running request of a caller. If it is dropped early, the statement of its session is cancelled.
struct Running<'a, E: Engine> {
    engine: &'a Arc<E>,
    held: Option<(WarehouseSession<E>, OwnedSemaphorePermit)>,
}

impl<E: Engine> Running<'_, E> {
    async fn ask(&mut self, request: Request<'_>) -> Result<Answer, WarehouseError> {
        match &mut self.held {
            Some((session, _)) => answer(&**self.engine, &mut session.connection, request).await,
            None => Err(unavailable(E::FAILED.warehouse, "the session is gone".to_owned())),
        }
    }

    /// Closes the session and returns its permit.
    fn discard(mut self) -> Option<OwnedSemaphorePermit> {
        self.held.take().map(|(_, permit)| permit)
    }
}

impl<E: Engine> Drop for Running<'_, E> {
    fn drop(&mut self) {
        let Some((session, permit)) = self.held.take() else { return };
        // Without a runtime, the connection is only closed, and the database detects that by itself.
        let Ok(runtime) = Handle::try_current() else { return };
        let engine = Arc::clone(self.engine);
        runtime.spawn(async move {
            let cancelled = tokio::time::timeout(CANCEL_TIMEOUT, engine.cancel(&session.handle)).await;
            if !matches!(cancelled, Ok(Ok(()))) {
                tracing::warn!(
                    event = "cancel_failed",
                    warehouse = E::FAILED.warehouse,
                    "a statement may still be running"
                );
            }
            drop(session);
            drop(permit);
        });
    }
}

fn is_lost<T>(answer: &Result<T, WarehouseError>) -> bool {
    matches!(answer, Err(error) if error.kind == WarehouseErrorKind::Unavailable)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The list of sessions is consistent even after a panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
