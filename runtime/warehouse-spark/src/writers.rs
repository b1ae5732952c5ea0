//! Sessions that write, one for each build of a model or of a pre-aggregation.
//!
//! In: work with a time limit. Out: the result of the work, or a timeout. Two invariants hold. A session is used only
//! once, because Spark keeps the list of a table's files in each session, so an older session would not see rows that
//! arrived later. A statement whose caller has disconnected is interrupted, and its permit is held until then. No
//! statement is repeated. Not here: the statements of a build.

use std::sync::Arc;
use std::time::Duration;

use terrane_app::ports::warehouse::{ResultSet, WarehouseError};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::failure::{timeout, unavailable};
use crate::opening::Opener;
use crate::protocol::Plan;
use crate::rows::Rows;
use crate::running::{INTERRUPT_TIMEOUT, Running, UNINTERRUPTED, release};
use crate::session::{Session, command};
use crate::settings::ConnectError;

/// The largest number of builds that run at once. Further builds wait.
const MAX_RUNNING: u32 = 4;

/// Opens sessions for builds, and counts the running builds.
#[derive(Debug)]
pub(crate) struct Writers {
    opener: Arc<Opener>,
    permits: Arc<Semaphore>,
}

/// A session of one build. If it is dropped while a statement runs, the statement is interrupted.
pub(crate) struct Writer {
    session: Arc<Session>,
    permit: Option<OwnedSemaphorePermit>,
    running: Option<Running>,
}

impl Writers {
    pub(crate) fn new(opener: Arc<Opener>) -> Self {
        Writers { opener, permits: Arc::new(Semaphore::new(MAX_RUNNING as usize)) }
    }

    /// Waits until no build runs, for a limited time.
    pub(crate) async fn settle(&self) {
        let limit = UNINTERRUPTED + INTERRUPT_TIMEOUT;
        // A build that still runs after this time is abandoned. It publishes nothing.
        let _ = tokio::time::timeout(limit, self.permits.acquire_many(MAX_RUNNING)).await;
    }

    /// Runs `work` in its own session within `limit`, and ends the session.
    ///
    /// # Errors
    /// Returns the error of `work`. `Unavailable` if no session can be opened. `Timeout` after the time limit.
    pub(crate) async fn run<T, E>(
        &self,
        limit: Duration,
        work: impl AsyncFnOnce(&mut Writer) -> Result<T, E>,
    ) -> Result<T, E>
    where
        E: From<WarehouseError>,
    {
        let working = async {
            let permit = Arc::clone(&self.permits).acquire_owned().await;
            let permit = permit.map_err(|_| unavailable("the warehouse is shutting down".to_owned()))?;
            let session = self.opener.open().await.map_err(ConnectError::into_warehouse_error)?;
            let mut writer = Writer { session, permit: Some(permit), running: None };
            work(&mut writer).await
        };
        tokio::time::timeout(limit, working).await.unwrap_or_else(|_| Err(timeout().into()))
    }
}

impl Writer {
    /// Runs a statement for its effect.
    ///
    /// # Errors
    /// Returns the server's error.
    pub(crate) async fn write(&mut self, text: &str) -> Result<(), WarehouseError> {
        self.run(command(text)).await.map(drop)
    }

    /// Runs a plan and returns all of its rows.
    ///
    /// # Errors
    /// Returns the server's error.
    pub(crate) async fn run(&mut self, plan: Plan) -> Result<ResultSet, WarehouseError> {
        let running = Running::new()?;
        let operation = running.operation.clone();
        self.running = Some(running);
        let answer = read(&self.session, &operation, plan).await;
        // The statement has ended, either with its rows or with the server's error.
        self.running = None;
        release(&self.session, operation);
        answer
    }
}

async fn read(session: &Arc<Session>, operation: &str, plan: Plan) -> Result<ResultSet, WarehouseError> {
    let mut rows = Rows::start(session, operation, plan).await?;
    let schema = rows.schema().await?;
    let mut batches = Vec::new();
    while let Some(batch) = rows.next().await? {
        batches.push(batch);
    }
    Ok(ResultSet { schema, batches })
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Without a runtime, the connection is only closed, and the server ends the statement after its own time limit.
        let Ok(runtime) = Handle::try_current() else { return };
        let (session, running, permit) = (Arc::clone(&self.session), self.running.take(), self.permit.take());
        runtime.spawn(async move {
            if let Some(running) = running {
                running.interrupt(&session).await;
            }
            drop(permit);
            // If this fails, the server ends the session by itself.
            let _ = tokio::time::timeout(INTERRUPT_TIMEOUT, session.close()).await;
        });
    }
}
