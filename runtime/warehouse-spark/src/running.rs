//! A statement that the server may still run, and its interruption.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use terrane_app::ports::warehouse::WarehouseError;
use tokio::runtime::Handle;
use tokio::time::Sleep;

use crate::failure::NAME;
use crate::session::{Session, random_id};

/// The time limit of an interruption, during which the statement holds its permit.
pub(crate) const INTERRUPT_TIMEOUT: Duration = Duration::from_secs(5);
/// The time after the start of a statement during which it is not interrupted. Spark 4.3 confirms an interruption while
/// it submits the first stage, but then runs this stage to its end, and no client can stop it.
pub(crate) const UNINTERRUPTED: Duration = Duration::from_secs(1);

/// A statement that the server may still run.
pub(crate) struct Running {
    pub(crate) operation: String,
    /// A timer that ends when the statement may be interrupted.
    is_interruptible: Pin<Box<Sleep>>,
}

impl Running {
    /// Returns a statement that starts now, with a new id.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub(crate) fn new() -> Result<Self, WarehouseError> {
        Ok(Running { operation: random_id()?, is_interruptible: Box::pin(tokio::time::sleep(UNINTERRUPTED)) })
    }

    /// Ends the statement. Returns whether the server confirmed it in time; if it did not, logs a warning.
    pub(crate) async fn interrupt(self, session: &Session) -> bool {
        self.is_interruptible.await;
        let interrupted = tokio::time::timeout(INTERRUPT_TIMEOUT, session.interrupt(&self.operation)).await;
        let is_confirmed = matches!(interrupted, Ok(Ok(())));
        if !is_confirmed {
            tracing::warn!(event = "cancel_failed", warehouse = NAME, "a statement may still be running");
        }
        is_confirmed
    }
}

/// Asks the server to release an operation, without waiting for the answer.
pub(crate) fn release(session: &Arc<Session>, operation: String) {
    let Ok(runtime) = Handle::try_current() else { return };
    let session = Arc::clone(session);
    runtime.spawn(async move {
        // If this fails, the server forgets the operation by itself after some minutes.
        let _ = tokio::time::timeout(INTERRUPT_TIMEOUT, session.release(&operation)).await;
    });
}
