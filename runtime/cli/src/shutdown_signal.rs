//! The signals that end a program.
//!
//! In: SIGTERM and SIGINT. Out: futures that complete when one of them arrives.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

/// Receives shutdown signals. Signals that arrive before a wait are remembered.
pub(crate) struct ShutdownSignal {
    terminate: Signal,
    interrupt: Signal,
}

impl ShutdownSignal {
    /// Registers the handlers.
    ///
    /// # Errors
    /// The operating system refuses them.
    pub(crate) fn listen() -> Result<Self, Failure> {
        let listen =
            |kind| signal(kind).map_err(|error| Failure::new(format!("could not listen for signals: {error}")));
        Ok(ShutdownSignal { terminate: listen(SignalKind::terminate())?, interrupt: listen(SignalKind::interrupt())? })
    }

    pub(crate) async fn received(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    pub(crate) async fn received_twice(&mut self) {
        self.received().await;
        self.received().await;
    }
}
