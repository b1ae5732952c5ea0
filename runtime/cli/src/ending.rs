//! The signals by which a program is told to end.
//!
//! In: SIGTERM and SIGINT. Out: that one of them has come.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

/// What is listened to from the beginning: a signal that comes before it is waited for counts too.
pub(crate) struct Ending {
    terminate: Signal,
    interrupt: Signal,
}

impl Ending {
    /// # Errors
    /// The system doesn't let it listen.
    pub(crate) fn listen() -> Result<Self, Failure> {
        let listen = |kind| signal(kind).map_err(|error| Failure::new(format!("listening for signals: {error}")));
        Ok(Ending { terminate: listen(SignalKind::terminate())?, interrupt: listen(SignalKind::interrupt())? })
    }

    pub(crate) async fn comes(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    pub(crate) async fn comes_twice(&mut self) {
        self.comes().await;
        self.comes().await;
    }
}
