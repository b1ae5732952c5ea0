//! A pool with a bounded number of sessions, which are opened on demand.
//!
//! In: requests with a time limit. Out: the answer, or a timeout at the time limit. Each statement has its own session
//! while it runs. A statement whose caller has disconnected is interrupted. It holds its permit until the server has
//! confirmed the interruption; then its session can be used again. An idle session may have been lost, because the
//! server was restarted or ended the session after its own time limit. A statement that fails for this reason is run
//! once more in a new session, which is safe because statements only read. Each new session runs the statements of
//! `init`, one after the other.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use futures_util::stream;
use terrane_app::ports::warehouse::{BatchStream, Connections, ResultSet, WarehouseError, WarehouseErrorKind};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::columns;
use crate::failure::{Failure, refused, timeout, unavailable};
use crate::opening::Opener;
use crate::protocol::Plan;
use crate::rows::Rows;
use crate::running::{INTERRUPT_TIMEOUT, Running, release};
use crate::session::Session;
use crate::settings::ConnectError;

/// The timeout of pings, descriptions and lookups.
pub(crate) const PROBE_TIMEOUT: Duration = Duration::from_secs(10);
/// The timeout of changes of schemas, and of lists of their tables. A server reads the definition of each table.
pub(crate) const CATALOG_TIMEOUT: Duration = Duration::from_secs(60);
/// The time limit of opening a session with its `init`. The time limit of a statement that waits for the session is
/// shorter.
const INIT_TIMEOUT: Duration = Duration::from_secs(600);

/// A pool of sessions. Clones share the sessions.
#[derive(Clone)]
pub(crate) struct Pool(Arc<Inner>);

struct Inner {
    opener: Arc<Opener>,
    idle: Mutex<Vec<Arc<Session>>>,
    permits: Arc<Semaphore>,
    permit_count: usize,
    /// The permit of health probes, which run one at a time and do not wait for queries.
    probe_permit: Arc<Semaphore>,
    failed: AtomicU64,
    lost: AtomicU64,
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("free_permits", &self.0.permits.available_permits()).finish_non_exhaustive()
    }
}

impl Pool {
    pub(crate) fn new(opener: Arc<Opener>, connections: usize) -> Self {
        Pool(Arc::new(Inner {
            opener,
            idle: Mutex::new(Vec::new()),
            permits: Arc::new(Semaphore::new(connections.max(1))),
            permit_count: connections.max(1),
            probe_permit: Arc::new(Semaphore::new(1)),
            failed: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        }))
    }

    /// Opens the first session. This checks that the server answers and that `init` succeeds.
    ///
    /// # Errors
    /// [`ConnectError`] names the statement that failed.
    pub(crate) async fn open_first(&self) -> Result<(), ConnectError> {
        let session = self.0.opener.open().await?;
        lock(&self.0.idle).push(session);
        Ok(())
    }

    /// Runs a plan and returns all of its rows.
    ///
    /// # Errors
    /// Returns the server's error, or `Timeout` after the limit.
    pub(crate) async fn run(&self, plan: Plan, limit: Duration) -> Result<ResultSet, WarehouseError> {
        let (answer, _) = within(limit, self.ask(&Request::Execute(plan))).await?;
        Ok(ResultSet { schema: answer.schema, batches: answer.batches })
    }

    /// Runs a plan and returns its rows as a stream. `limit` applies as in [`Warehouse::stream`].
    ///
    /// # Errors
    /// Returns the server's error before the first batch, or `Timeout` after the limit.
    ///
    /// [`Warehouse::stream`]: terrane_app::ports::warehouse::Warehouse::stream
    pub(crate) async fn stream(&self, plan: Plan, limit: Duration) -> Result<BatchStream, WarehouseError> {
        let (Answer { schema, rows, .. }, lease) = within(limit, self.ask(&Request::Stream(plan))).await?;
        let batches = stream::unfold(rows.map(|rows| (rows, lease)), move |open| async move {
            let (mut rows, mut lease) = open?;
            match within(limit, rows.next()).await {
                Ok(Some(batch)) => Some((Ok(batch), Some((rows, lease)))),
                Ok(None) => {
                    lease.complete();
                    None
                }
                Err(error) => {
                    lease.fail(&error);
                    Some((Err(error), None))
                }
            }
        });
        Ok(BatchStream::new(schema, batches))
    }

    /// Returns the columns of a plan without running it.
    ///
    /// # Errors
    /// Returns the server's error, or `Timeout` after the limit.
    pub(crate) async fn describe(&self, plan: Plan, limit: Duration) -> Result<SchemaRef, WarehouseError> {
        within(limit, self.ask(&Request::Describe(plan))).await.map(|(answer, _)| answer.schema)
    }

    /// Checks that the server responds, without waiting for queries.
    ///
    /// # Errors
    /// The server does not answer within the limit.
    pub(crate) async fn ping(&self, limit: Duration) -> Result<(), WarehouseError> {
        within(limit, self.ask(&Request::Probe)).await.map(drop)
    }

    pub(crate) fn connections(&self) -> Connections {
        let inner = &self.0;
        let free = inner.permits.available_permits() + inner.probe_permit.available_permits();
        Connections {
            active: (inner.permit_count + 1).saturating_sub(free) as u64,
            idle: lock(&inner.idle).len() as u64,
            failed: inner.failed.load(Ordering::Relaxed),
            lost: inner.lost.load(Ordering::Relaxed),
        }
    }

    /// Answers a request. If an idle session turns out to be lost, uses a new session.
    async fn ask(&self, request: &Request) -> Result<(Answer, Lease), WarehouseError> {
        let permits = if matches!(request, Request::Probe) { &self.0.probe_permit } else { &self.0.permits };
        let mut lease = self.lease(permits).await?;
        let answer = lease.answer(request).await;
        let permit = match answer {
            Ok(answer) => return Ok((answer, lease)),
            Err(error) if lease.was_idle && error.kind == WarehouseErrorKind::Unavailable => lease.into_permit(),
            Err(error) => return Err(error),
        };
        // The other idle sessions have probably lost the same server.
        lock(&self.0.idle).clear();
        let retried = |error| WarehouseError { retries: 1, ..error };
        let mut lease = self.new_lease(permit.ok_or_else(closed)?).await.map_err(retried)?;
        let answer = lease.answer(request).await.map_err(retried)?;
        Ok((answer, lease))
    }

    async fn lease(&self, permits: &Arc<Semaphore>) -> Result<Lease, WarehouseError> {
        let permit = Arc::clone(permits).acquire_owned().await.map_err(|_| closed())?;
        let idle = lock(&self.0.idle).pop();
        match idle {
            Some(session) => Ok(Lease::new(&self.0, session, permit, true)),
            None => self.new_lease(permit).await,
        }
    }

    /// Opens a session in its own task. If the caller leaves, the task continues and the session becomes idle, so that
    /// the next statement need not repeat `init`.
    async fn new_lease(&self, permit: OwnedSemaphorePermit) -> Result<Lease, WarehouseError> {
        let inner = Arc::clone(&self.0);
        let opening = tokio::spawn(async move {
            let opened = tokio::time::timeout(INIT_TIMEOUT, inner.opener.open()).await.unwrap_or_else(|_| {
                Err(ConnectError::Connection(unavailable("`init` did not end in time".to_owned())))
            });
            if opened.is_err() {
                inner.failed.fetch_add(1, Ordering::Relaxed);
            }
            opened.map(|session| Lease::new(&inner, session, permit, false))
        });
        opening.await.map_err(|error| refused(error.to_string()))?.map_err(ConnectError::into_warehouse_error)
    }
}

#[derive(Debug)]
enum Request {
    /// Runs a plan and returns all rows.
    Execute(Plan),
    /// Runs a plan and returns the rows as they arrive.
    Stream(Plan),
    /// Returns only the columns.
    Describe(Plan),
    /// A check that the server responds.
    Probe,
}

struct Answer {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    /// The rows that are still to be read, if they are streamed.
    rows: Option<Rows>,
}

/// The use of a session by one statement. If the value is dropped while the statement runs, the statement is
/// interrupted.
struct Lease {
    pool: Arc<Inner>,
    session: Option<Arc<Session>>,
    permit: Option<OwnedSemaphorePermit>,
    was_idle: bool,
    running: Option<Running>,
}

impl Lease {
    fn new(pool: &Arc<Inner>, session: Arc<Session>, permit: OwnedSemaphorePermit, was_idle: bool) -> Self {
        Lease { pool: Arc::clone(pool), session: Some(session), permit: Some(permit), was_idle, running: None }
    }

    fn session(&self) -> Result<&Arc<Session>, WarehouseError> {
        self.session.as_ref().ok_or_else(closed)
    }

    async fn answer(&mut self, request: &Request) -> Result<Answer, WarehouseError> {
        let answer = self.try_answer(request).await;
        if let Err(error) = &answer {
            self.fail(error);
        }
        answer
    }

    async fn try_answer(&mut self, request: &Request) -> Result<Answer, WarehouseError> {
        let session = Arc::clone(self.session()?);
        match request {
            Request::Execute(plan) => {
                let (mut rows, schema) = self.start(&session, plan.clone()).await?;
                let mut batches = Vec::new();
                while let Some(batch) = rows.next().await? {
                    batches.push(batch);
                }
                self.complete();
                Ok(Answer { schema, batches, rows: None })
            }
            Request::Stream(plan) => {
                let (rows, schema) = self.start(&session, plan.clone()).await?;
                Ok(Answer { schema, batches: Vec::new(), rows: Some(rows) })
            }
            Request::Describe(plan) => {
                let described = session.describe(plan.clone()).await.map_err(Failure::into_error)?;
                let described = described.ok_or_else(|| refused("the server described no columns".to_owned()))?;
                Ok(Answer { schema: columns::described(&described)?, batches: Vec::new(), rows: None })
            }
            Request::Probe => {
                session.probe().await.map_err(Failure::into_error)?;
                Ok(Answer { schema: Arc::new(Schema::empty()), batches: Vec::new(), rows: None })
            }
        }
    }

    async fn start(&mut self, session: &Arc<Session>, plan: Plan) -> Result<(Rows, SchemaRef), WarehouseError> {
        let running = Running::new()?;
        let operation = running.operation.clone();
        self.running = Some(running);
        let mut rows = Rows::start(session, &operation, plan).await?;
        let schema = rows.schema().await?;
        Ok((rows, schema))
    }

    /// Records that the server has finished the statement.
    fn complete(&mut self) {
        if let (Some(running), Some(session)) = (self.running.take(), &self.session) {
            release(session, running.operation);
        }
    }

    /// Records that the statement failed. After a timeout, the statement still runs and will be interrupted.
    fn fail(&mut self, error: &WarehouseError) {
        match error.kind {
            WarehouseErrorKind::Refused => self.complete(),
            WarehouseErrorKind::Timeout => {}
            WarehouseErrorKind::Unavailable => {
                self.running = None;
                if self.session.take().is_some() {
                    self.pool.lost.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }

    fn into_permit(mut self) -> Option<OwnedSemaphorePermit> {
        self.permit.take()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let (Some(session), permit) = (self.session.take(), self.permit.take()) else { return };
        let Some(running) = self.running.take() else {
            // The session is returned before the permit, so that the next request finds the session.
            lock(&self.pool.idle).push(session);
            return drop(permit);
        };
        // Without a runtime, the connection is only closed, and the server ends the statement after its own time limit.
        let Ok(runtime) = Handle::try_current() else { return };
        let pool = Arc::clone(&self.pool);
        runtime.spawn(async move {
            if running.interrupt(&session).await {
                lock(&pool.idle).push(session);
            }
            drop(permit);
        });
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let Ok(runtime) = Handle::try_current() else { return };
        for session in std::mem::take(&mut *lock(&self.idle)) {
            runtime.spawn(async move { tokio::time::timeout(INTERRUPT_TIMEOUT, session.close()).await });
        }
    }
}

async fn within<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, WarehouseError>>,
) -> Result<T, WarehouseError> {
    tokio::time::timeout(limit, work).await.unwrap_or_else(|_| Err(timeout()))
}

fn closed() -> WarehouseError {
    unavailable("the warehouse is shutting down".to_owned())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The list of sessions is consistent even after a panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
