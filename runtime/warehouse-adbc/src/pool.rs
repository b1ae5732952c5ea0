//! A pool with a bounded number of connections, which are opened on demand.
//!
//! In: requests with a time limit. Out: the answer, or a timeout at the time limit. Each request has its own thread and
//! its own connection while it runs. If the caller leaves, the statement is cancelled, and holds its permit until the
//! driver has returned, but at most [`ABANDONED_TIMEOUT`]. Threads whose driver never returns are limited by a second
//! semaphore.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arrow::datatypes::{Schema, SchemaRef};
use futures_util::stream;
use terrane_app::ports::warehouse::{BatchStream, Connections, ResultSet, WarehouseError};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use crate::connection::{Opener, Session};
use crate::failure::Failures;
use crate::progress::{Control, Event};
use crate::settings::ConnectError;
use crate::task::{self, Request};

/// The timeout of pings, descriptions and lookups.
pub(crate) const PROBE_TIMEOUT: Duration = Duration::from_secs(10);
/// The time for which a statement without a caller holds its permit.
const ABANDONED_TIMEOUT: Duration = Duration::from_secs(60);
/// The number of threads for each connection, including those whose statement has no caller.
const THREADS: usize = 4;
/// The number of events that wait for the caller.
const WAITING_EVENTS: usize = 2;

/// A pool of connections. Clones share the connections.
#[derive(Clone)]
pub(crate) struct Pool(Arc<Inner>);

struct Inner {
    opener: Opener,
    connect_timeout: Duration,
    idle: Mutex<Vec<Session>>,
    permits: Arc<Semaphore>,
    permit_count: usize,
    /// The permit of health probes, which run one at a time and do not wait for queries.
    probe_permit: Arc<Semaphore>,
    /// The permits of threads, which are held until the driver returns.
    threads: Arc<Semaphore>,
    failed: AtomicU64,
    lost: AtomicU64,
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("free_permits", &self.0.permits.available_permits()).finish_non_exhaustive()
    }
}

impl Pool {
    pub(crate) fn new(opener: Opener, connect_timeout: Duration, connections: usize) -> Self {
        let connections = connections.max(1);
        Pool(Arc::new(Inner {
            opener,
            connect_timeout,
            idle: Mutex::new(Vec::new()),
            permits: Arc::new(Semaphore::new(connections)),
            permit_count: connections,
            probe_permit: Arc::new(Semaphore::new(1)),
            threads: Arc::new(Semaphore::new(THREADS * connections + 1)),
            failed: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        }))
    }

    /// Runs `init` on a connection of its own, and opens the first connection.
    ///
    /// # Errors
    /// [`ConnectError`] names the statement that failed.
    pub(crate) async fn open_first(&self, init: Vec<String>) -> Result<(), ConnectError> {
        let inner = Arc::clone(&self.0);
        on_thread(self.failures(), move || inner.opener.run_init(&init)).await?;
        let inner = Arc::clone(&self.0);
        let opening = on_thread(self.failures(), move || inner.opener.open());
        let limit = self.0.connect_timeout;
        let session = tokio::time::timeout(limit, opening).await;
        lock(&self.0.idle).push(session.unwrap_or_else(|_| Err(ConnectError::Connection(self.0.unopened())))?);
        Ok(())
    }

    /// Runs a statement and returns all of its rows.
    ///
    /// # Errors
    /// Returns the database's error, or `Timeout` after the limit.
    pub(crate) async fn run(&self, text: String, limit: Duration) -> Result<ResultSet, WarehouseError> {
        let running = async {
            let mut running = self.start(Request::Rows(text)).await?;
            let schema = running.columns().await?;
            let mut batches = Vec::new();
            while let Some(event) = running.next().await? {
                batches.extend(event.into_batch());
            }
            Ok(ResultSet { schema, batches })
        };
        self.within(limit, running).await
    }

    /// Runs a statement and returns its rows as a stream. `limit` applies as in [`Warehouse::stream`].
    ///
    /// # Errors
    /// Returns the database's error before the first batch, or `Timeout` after the limit.
    ///
    /// [`Warehouse::stream`]: terrane_app::ports::warehouse::Warehouse::stream
    pub(crate) async fn stream(&self, text: String, limit: Duration) -> Result<BatchStream, WarehouseError> {
        let starting = async {
            let mut running = self.start(Request::Rows(text)).await?;
            let schema = running.columns().await?;
            Ok((running, schema))
        };
        let (running, schema) = self.within(limit, starting).await?;
        let pool = self.clone();
        let batches = stream::unfold(Some((running, pool)), move |open| async move {
            let (mut running, pool) = open?;
            match pool.within(limit, running.next_batch()).await {
                Ok(Some(batch)) => Some((Ok(batch), Some((running, pool)))),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        });
        Ok(BatchStream::new(schema, batches))
    }

    /// Returns the columns of a statement without running it.
    ///
    /// # Errors
    /// Returns the database's error, or `Timeout` after the limit.
    pub(crate) async fn describe(&self, text: String, limit: Duration) -> Result<SchemaRef, WarehouseError> {
        let describing = async {
            let mut running = self.start(Request::Describe(text)).await?;
            let schema = running.columns().await?;
            while running.next().await?.is_some() {}
            Ok(schema)
        };
        self.within(limit, describing).await
    }

    /// Checks that the database responds, without waiting for queries.
    ///
    /// # Errors
    /// The database does not answer within the limit.
    pub(crate) async fn ping(&self, limit: Duration) -> Result<(), WarehouseError> {
        let probing = async {
            let mut running = self.start(Request::Probe).await?;
            while running.next().await?.is_some() {}
            Ok(())
        };
        self.within(limit, probing).await
    }

    pub(crate) fn connections(&self) -> Connections {
        let inner = &self.0;
        let threads = THREADS * inner.permit_count + 1;
        Connections {
            active: threads.saturating_sub(inner.threads.available_permits()) as u64,
            idle: lock(&inner.idle).len() as u64,
            failed: inner.failed.load(Ordering::Relaxed),
            lost: inner.lost.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn failures(&self) -> &Failures {
        &self.0.opener.failures
    }

    /// Starts the thread of a request, and waits until its connection is open.
    async fn start(&self, request: Request) -> Result<Running, WarehouseError> {
        let inner = &self.0;
        let permits = if matches!(request, Request::Probe) { &inner.probe_permit } else { &inner.permits };
        let permit = Arc::clone(permits).acquire_owned().await.map_err(|_| inner.closed())?;
        let thread = Arc::clone(&inner.threads).try_acquire_owned().map_err(|_| inner.exhausted())?;
        let control = Arc::new(Control::new(permit));
        let (sender, events) = mpsc::channel(WAITING_EVENTS);
        let worker = Worker { pool: Arc::clone(inner), request, control: Arc::clone(&control), sender, thread };
        let mut running = Running { pool: self.clone(), control, events, has_ended: false };
        let name = "adbc".to_owned();
        let spawned = std::thread::Builder::new().name(name).spawn(move || worker.run());
        spawned.map_err(|error| inner.opener.failures.unavailable(format!("a thread cannot be started: {error}")))?;
        match tokio::time::timeout(inner.connect_timeout, running.next()).await {
            Ok(event) => event.map(|_| running),
            Err(_) => {
                inner.failed.fetch_add(1, Ordering::Relaxed);
                inner.opener.forget_database();
                Err(inner.unopened())
            }
        }
    }

    async fn within<T>(
        &self,
        limit: Duration,
        work: impl Future<Output = Result<T, WarehouseError>>,
    ) -> Result<T, WarehouseError> {
        tokio::time::timeout(limit, work).await.unwrap_or_else(|_| Err(self.failures().timeout()))
    }
}

impl Inner {
    fn closed(&self) -> WarehouseError {
        self.opener.failures.unavailable("the warehouse is shutting down".to_owned())
    }

    fn unopened(&self) -> WarehouseError {
        let seconds = self.connect_timeout.as_secs_f64();
        self.opener.failures.unavailable(format!("no connection within {seconds} seconds"))
    }

    fn exhausted(&self) -> WarehouseError {
        let count = THREADS * self.permit_count;
        self.opener.failures.unavailable(format!("{count} calls of the driver have not returned"))
    }
}

/// The thread of one request.
struct Worker {
    pool: Arc<Inner>,
    request: Request,
    control: Arc<Control>,
    sender: mpsc::Sender<Result<Event, WarehouseError>>,
    thread: OwnedSemaphorePermit,
}

impl Worker {
    fn run(self) {
        let Worker { pool, request, control, sender, thread } = self;
        let idle = lock(&pool.idle).pop();
        let outcome = task::run(&pool.opener, idle, &request, &control, &sender);
        pool.failed.fetch_add(outcome.failed_openings, Ordering::Relaxed);
        pool.lost.fetch_add(outcome.lost, Ordering::Relaxed);
        if outcome.lost > 0 {
            // The other idle connections have probably lost the same server.
            let others = std::mem::take(&mut *lock(&pool.idle));
            drop(others);
        }
        // The connection is returned before the permit and the answer, so that the next request finds it.
        lock(&pool.idle).extend(outcome.session);
        control.release();
        // The event is lost if the caller has left.
        let _ = sender.blocking_send(outcome.result.map(|()| Event::End));
        drop(sender);
        drop(outcome.discarded);
        drop(thread);
    }
}

/// A request on its thread. If the value is dropped before the request has ended, the statement is cancelled.
struct Running {
    pool: Pool,
    control: Arc<Control>,
    events: mpsc::Receiver<Result<Event, WarehouseError>>,
    has_ended: bool,
}

impl Running {
    /// Returns the next event, or `None` at the end.
    async fn next(&mut self) -> Result<Option<Event>, WarehouseError> {
        let event = self.events.recv().await;
        match event {
            Some(Ok(Event::End)) => {
                self.has_ended = true;
                Ok(None)
            }
            Some(Ok(event)) => Ok(Some(event)),
            Some(Err(error)) => {
                self.has_ended = true;
                Err(error)
            }
            None => Err(self.pool.failures().unavailable("the thread of the driver ended".to_owned())),
        }
    }

    /// Returns the columns, which come before the rows.
    async fn columns(&mut self) -> Result<SchemaRef, WarehouseError> {
        while let Some(event) = self.next().await? {
            if let Event::Columns(schema) = event {
                return Ok(schema);
            }
        }
        Ok(Arc::new(Schema::empty()))
    }

    async fn next_batch(&mut self) -> Result<Option<arrow::array::RecordBatch>, WarehouseError> {
        while !self.has_ended {
            if let Some(batch) = self.next().await?.and_then(Event::into_batch) {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }
}

impl Event {
    fn into_batch(self) -> Option<arrow::array::RecordBatch> {
        match self {
            Event::Batch(batch) => Some(batch),
            _ => None,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        if let Some(handle) = self.control.cancel() {
            let warehouse = Arc::clone(&self.pool.failures().warehouse);
            // The call waits for the network, and must not wait for the statement.
            std::thread::spawn(move || {
                if let Err(error) = handle.try_cancel() {
                    let reason = error.message;
                    tracing::warn!(
                        event = "cancel_failed",
                        warehouse = &*warehouse,
                        reason,
                        "a statement may still be running"
                    );
                }
            });
        }
        // Without a runtime, the thread releases the permit when the driver returns.
        let Ok(runtime) = Handle::try_current() else { return };
        let control = Arc::clone(&self.control);
        runtime.spawn(async move {
            tokio::time::sleep(ABANDONED_TIMEOUT).await;
            control.release();
        });
    }
}

/// Runs a function that blocks on a thread of its own. The caller may leave before it returns.
async fn on_thread<T: Send + 'static>(
    failures: &Failures,
    work: impl FnOnce() -> Result<T, ConnectError> + Send + 'static,
) -> Result<T, ConnectError> {
    let (sender, receiver) = oneshot::channel();
    let unavailable = |message: String| ConnectError::Connection(failures.unavailable(message));
    let spawned = std::thread::Builder::new().name("adbc".to_owned()).spawn(move || sender.send(work()));
    spawned.map_err(|error| unavailable(format!("a thread cannot be started: {error}")))?;
    receiver.await.unwrap_or_else(|_| Err(unavailable("the driver's answer cannot be read".to_owned())))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The list of connections is consistent even after a panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
