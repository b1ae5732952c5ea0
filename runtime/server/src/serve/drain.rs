//! The end of connections when the server stops.
//!
//! In: the moment at which the server stops. Out: a signal to every connection, and the time at which the last
//! connection has closed, including connections that were upgraded to another protocol. Not here: the bound on that
//! time (`serve`).

use tokio::sync::watch;

/// Signals connections to end, and waits for them.
pub(super) struct Drain(watch::Sender<()>);

/// A token that a connection holds while it is open.
#[derive(Clone)]
pub(super) struct DrainToken(watch::Receiver<()>);

impl Drain {
    pub(super) fn new() -> Self {
        Drain(watch::Sender::new(()))
    }

    pub(super) fn token(&self) -> DrainToken {
        DrainToken(self.0.subscribe())
    }

    /// Returns the number of open connections.
    pub(super) fn connections(&self) -> usize {
        // Each connection has a token for its task and one for its stream.
        self.0.receiver_count() / 2
    }

    /// Signals the end, and waits until all tokens are dropped.
    pub(super) async fn finish(self) {
        self.0.send_replace(());
        self.0.closed().await;
    }
}

impl DrainToken {
    /// Waits for the signal, or for the end of the server.
    pub(super) async fn signaled(&mut self) {
        // An error means that the server was dropped, which is also the end.
        let _ = self.0.changed().await;
    }
}
