//! A bounded number of sessions, which are opened on demand.
//!
//! In: requests with a time limit. Out: the answer, or a timeout at its time. Each statement has a session of its own
//! while it runs. A statement whose caller has gone is interrupted, and keeps its permit until the server has confirmed
//! that; then its session can be used again. An idle session may have been lost: the server was restarted, or ended it
//! after its own time limit. The first statement that fails for this reason is run once more in a new session, which is
//! safe because statements only read. Statements of `init` run one after the other, in each new session.

use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use futures_util::stream;
use terrane_app::ports::warehouse::{BatchStream, Connections, ResultSet, WarehouseError, WarehouseErrorKind};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Sleep;

use crate::columns;
use crate::failure::{Failure, NAME, refused, timeout, unavailable};
use crate::protocol::Plan;
use crate::rows::Rows;
use crate::session::{Server, Session, command, random_id};
use crate::settings::ConnectError;

/// The timeout of a probe or a description.
pub(crate) const PROBE_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest time for which an interrupted statement keeps its permit.
const INTERRUPT_TIMEOUT: Duration = Duration::from_secs(5);
/// The time after the start of a statement in which it is not interrupted. Spark 4.3 confirms an interruption while it
/// submits the first stage, and runs that stage to its end nevertheless, where no client can reach it.
const UNINTERRUPTED: Duration = Duration::from_secs(1);
/// The longest time of `init` in a session that is opened for a statement. The statement's own limit is shorter.
const INIT_TIMEOUT: Duration = Duration::from_secs(600);

/// A pool of sessions. Clones share it.
#[derive(Clone)]
pub(crate) struct Pool(Arc<Inner>);

struct Inner {
    server: Server,
    init: Vec<String>,
    connect_timeout: Duration,
    idle: Mutex<Vec<Arc<Session>>>,
    permits: Arc<Semaphore>,
    permit_count: usize,
    /// The permit of health probes, one at a time. Probes do not wait for queries.
    probe_permit: Arc<Semaphore>,
    /// One `init` at a time: two sessions that replace the same view may collide.
    init_turn: tokio::sync::Mutex<()>,
    failed: AtomicU64,
    lost: AtomicU64,
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("free_permits", &self.0.permits.available_permits()).finish_non_exhaustive()
    }
}

impl Pool {
    pub(crate) fn new(server: Server, init: Vec<String>, connect_timeout: Duration, connections: usize) -> Self {
        Pool(Arc::new(Inner {
            server,
            init,
            connect_timeout,
            idle: Mutex::new(Vec::new()),
            permits: Arc::new(Semaphore::new(connections.max(1))),
            permit_count: connections.max(1),
            probe_permit: Arc::new(Semaphore::new(1)),
            init_turn: tokio::sync::Mutex::new(()),
            failed: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        }))
    }

    /// Opens the first session, which proves that the server answers and that `init` succeeds.
    ///
    /// # Errors
    /// [`ConnectError`] names the statement that failed.
    pub(crate) async fn open_first(&self) -> Result<(), ConnectError> {
        let session = self.0.open().await?;
        lock(&self.0.idle).push(session);
        Ok(())
    }

    /// Runs a plan and returns all of its rows.
    ///
    /// # Errors
    /// The server's error, or `Timeout` after the limit.
    pub(crate) async fn run(&self, plan: Plan, limit: Duration) -> Result<ResultSet, WarehouseError> {
        let (answer, _) = within(limit, self.ask(&Request::Execute(plan))).await?;
        Ok(ResultSet { schema: answer.schema, batches: answer.batches })
    }

    /// Runs a plan whose rows are streamed. `limit` applies as for [`Warehouse::stream`].
    ///
    /// # Errors
    /// The server's error before the first batch, or `Timeout` after the limit.
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

    /// Returns the columns of a plan; nothing runs.
    ///
    /// # Errors
    /// The server's error, or `Timeout` after the limit.
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

    /// Answers a request, from a new session if an idle one turns out to be lost.
    async fn ask(&self, request: &Request) -> Result<(Answer, Lease), WarehouseError> {
        let permits = if matches!(request, Request::Probe) { &self.0.probe_permit } else { &self.0.permits };
        let mut lease = self.lease(permits).await?;
        let answer = lease.answer(request).await;
        let permit = match answer {
            Ok(answer) => return Ok((answer, lease)),
            Err(error) if lease.was_idle && error.kind == WarehouseErrorKind::Unavailable => lease.into_permit(),
            Err(error) => return Err(error),
        };
        // The others stood idle as long and lost the same server.
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

    /// Opens a session in a task of its own, so that a caller who leaves does not abandon a half-made session: it
    /// becomes idle, and `init` is not repeated for the next statement.
    async fn new_lease(&self, permit: OwnedSemaphorePermit) -> Result<Lease, WarehouseError> {
        let inner = Arc::clone(&self.0);
        let opening = tokio::spawn(async move {
            let opened = tokio::time::timeout(INIT_TIMEOUT, inner.open()).await.unwrap_or_else(|_| {
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

impl Inner {
    async fn open(&self) -> Result<Arc<Session>, ConnectError> {
        let seconds = self.connect_timeout.as_secs_f64();
        let opened = tokio::time::timeout(self.connect_timeout, Session::open(&self.server)).await;
        let opened =
            opened.unwrap_or_else(|_| Err(unavailable(format!("no connection within {seconds} seconds")).into()));
        let session = Arc::new(opened.map_err(ConnectError::of)?);
        let _turn = self.init_turn.lock().await;
        for (index, statement) in self.init.iter().enumerate() {
            run_command(&session, statement).await.map_err(|error| ConnectError::Init {
                index,
                statement: statement.trim().to_owned(),
                error,
            })?;
        }
        Ok(session)
    }
}

/// Runs a statement for its effect.
async fn run_command(session: &Arc<Session>, text: &str) -> Result<(), WarehouseError> {
    let operation = random_id()?;
    let mut rows = Rows::start(session, &operation, command(text)).await?;
    while rows.next().await?.is_some() {}
    release(session, operation);
    Ok(())
}

#[derive(Debug)]
enum Request {
    /// All rows.
    Execute(Plan),
    /// The rows as they arrive.
    Stream(Plan),
    /// The columns alone.
    Describe(Plan),
    /// A check that the server responds.
    Probe,
}

struct Answer {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    /// The rows that follow, if they are streamed.
    rows: Option<Rows>,
}

/// The use of a session by one statement. If it is dropped while the statement runs, the statement is interrupted.
struct Lease {
    pool: Arc<Inner>,
    session: Option<Arc<Session>>,
    permit: Option<OwnedSemaphorePermit>,
    was_idle: bool,
    running: Option<Running>,
}

/// A statement that the server runs.
struct Running {
    operation: String,
    /// Ends when the statement can be interrupted.
    is_interruptible: Pin<Box<Sleep>>,
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
        let operation = random_id()?;
        let is_interruptible = Box::pin(tokio::time::sleep(UNINTERRUPTED));
        self.running = Some(Running { operation: operation.clone(), is_interruptible });
        let mut rows = Rows::start(session, &operation, plan).await?;
        let schema = rows.schema().await?;
        Ok((rows, schema))
    }

    /// Records that the statement has ended by itself.
    fn complete(&mut self) {
        if let (Some(running), Some(session)) = (self.running.take(), &self.session) {
            release(session, running.operation);
        }
    }

    /// Records that the statement ended with an error. After a timeout it still runs, and is interrupted.
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
            // The session first, so that the next request finds it.
            lock(&self.pool.idle).push(session);
            return drop(permit);
        };
        // Without a runtime the connection is closed, and the server ends the statement after its own time limit.
        let Ok(runtime) = Handle::try_current() else { return };
        let pool = Arc::clone(&self.pool);
        runtime.spawn(async move {
            running.is_interruptible.await;
            let interrupted = tokio::time::timeout(INTERRUPT_TIMEOUT, session.interrupt(&running.operation)).await;
            match interrupted {
                Ok(Ok(())) => lock(&pool.idle).push(session),
                _ => tracing::warn!(event = "cancel_failed", warehouse = NAME, "a statement may still run"),
            }
            drop(permit);
        });
    }
}

/// Lets the server forget an operation, without waiting for it.
fn release(session: &Arc<Session>, operation: String) {
    let Ok(runtime) = Handle::try_current() else { return };
    let session = Arc::clone(session);
    runtime.spawn(async move {
        // The server forgets it by itself after some minutes.
        let _ = tokio::time::timeout(INTERRUPT_TIMEOUT, session.release(&operation)).await;
    });
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
    // A list of sessions is whole after any panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
