//! Connections that may write, one for each build of a model or of a pre-aggregation.
//!
//! In: work with a time limit. Out: the result of the work, or a timeout. Two invariants hold. A connection is used
//! only once. A statement whose caller has disconnected is cancelled from another connection, and its permit is held
//! until the engine has finished. Not here: the statements of a build.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sqlx::Connection;
use terrane_app::ports::warehouse::WarehouseError;
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;

use super::pool::CANCEL_TIMEOUT;
use super::{Engine, WarehouseSession, timeout as too_late};
use crate::built::Running;

/// An engine on which models and pre-aggregations are built.
#[async_trait]
pub(crate) trait WritableEngine: Engine<Connection: Connection> {
    /// Opens a connection with the server's own settings, within the operator's time limit.
    ///
    /// # Errors
    /// `Unavailable`: the server cannot be reached.
    async fn open(&self) -> Result<Self::Connection, WarehouseError>;

    /// Opens a connection that may write. Its other settings are those of the sessions that read.
    ///
    /// # Errors
    /// `Unavailable`: the server cannot be reached, or it rejects the settings.
    async fn connect_to_write(&self) -> Result<WarehouseSession<Self>, WarehouseError>;
}

/// Opens connections that may write, with the privileges of the URL's user, and counts the running builds.
pub(crate) struct Writers<E: WritableEngine> {
    engine: Arc<E>,
    running: Running,
}

/// A connection on which a build runs. If it is dropped before it is closed, its statement is cancelled.
struct Writer<E: WritableEngine> {
    engine: Arc<E>,
    /// The session. `None` after it was closed.
    session: Option<WarehouseSession<E>>,
    permit: Option<OwnedSemaphorePermit>,
}

impl<E: WritableEngine> Writers<E> {
    pub(crate) fn new(engine: E) -> Self {
        Writers { engine: Arc::new(engine), running: Running::new() }
    }

    /// Waits until no build runs, for a limited time.
    pub(crate) async fn settle(&self) {
        self.running.settle().await;
    }

    /// Runs `work` on its own connection within `timeout`, and closes the connection. A transaction that `work` did not
    /// commit is rolled back.
    ///
    /// # Errors
    /// Returns the error of `work`. `Unavailable` if no connection can be opened. `Timeout` after the time limit.
    pub(crate) async fn run<T, F>(
        &self,
        timeout: Duration,
        work: impl AsyncFnOnce(&mut WarehouseSession<E>, &E) -> Result<T, F>,
    ) -> Result<T, F>
    where
        F: From<WarehouseError>,
    {
        let working = async {
            let mut writer = self.writer().await?;
            let outcome = match &mut writer.session {
                Some(session) => work(session, &self.engine).await,
                None => Err(E::FAILED.refused("the connection is closed".to_owned()).into()),
            };
            writer.close().await;
            outcome
        };
        tokio::time::timeout(timeout, working).await.unwrap_or_else(|_| Err(too_late(E::FAILED.warehouse).into()))
    }

    async fn writer(&self) -> Result<Writer<E>, WarehouseError> {
        let permit = self.running.begin().await;
        let session = self.engine.connect_to_write().await?;
        Ok(Writer { engine: Arc::clone(&self.engine), session: Some(session), permit })
    }
}

impl<E: WritableEngine> Writer<E> {
    async fn close(mut self) {
        if let Some(session) = self.session.take() {
            // An error is ignored, because the server also ends a session whose connection just closes.
            let _ = session.connection.close().await;
        }
    }
}

impl<E: WritableEngine> Drop for Writer<E> {
    fn drop(&mut self) {
        let Some(session) = self.session.take() else { return };
        // Without a runtime, the connection is only closed, and the server detects that by itself.
        let Ok(runtime) = Handle::try_current() else { return };
        let (engine, permit) = (Arc::clone(&self.engine), self.permit.take());
        runtime.spawn(async move {
            let cancelled = tokio::time::timeout(CANCEL_TIMEOUT, engine.cancel(&session.handle)).await;
            if !matches!(cancelled, Ok(Ok(()))) {
                tracing::warn!(
                    event = "cancel_failed",
                    warehouse = E::FAILED.warehouse,
                    "a build may still be running"
                );
            }
            drop((session, permit));
        });
    }
}
