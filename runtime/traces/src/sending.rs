//! The task that sends: gathers spans, sends them in batches, and gives up what is not taken.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use terrane_app::ports::clock::Clock;
use terrane_app::ports::traces::Span;
use tokio::sync::{mpsc, watch};

use crate::client::{Client, SendError};
use crate::encode::Resource;

const MAX_BATCH: usize = 512;
/// How long spans gather before they are sent.
const GATHER: Duration = Duration::from_secs(1);
/// Before the second and the third try.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(3)];
/// The log is told of a collector that takes nothing this often at most.
const TELL_EVERY: Duration = Duration::from_secs(60);

pub(crate) struct Sending {
    pub(crate) client: Client,
    pub(crate) resource: Resource,
    pub(crate) inbox: mpsc::Receiver<(Span, Timestamp)>,
    pub(crate) closed: watch::Receiver<bool>,
    pub(crate) lost: Arc<AtomicU64>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Sending {
    /// Until it is closed, and what waits then is sent, or nobody can send spans any more.
    pub(crate) async fn run(mut self) {
        let mut told = None;
        loop {
            let mut batch = Vec::new();
            tokio::select! {
                count = self.inbox.recv_many(&mut batch, MAX_BATCH) => {
                    if count == 0 {
                        return;
                    }
                }
                () = is_closed(&mut self.closed) => self.inbox.close(),
            }
            self.gather(&mut batch).await;
            if !batch.is_empty() {
                self.send(batch, &mut told).await;
            }
        }
    }

    /// Lets more spans come, unless there is no time.
    async fn gather(&mut self, batch: &mut Vec<(Span, Timestamp)>) {
        let pause = tokio::time::sleep(GATHER);
        tokio::pin!(pause);
        while batch.len() < MAX_BATCH && !self.inbox.is_closed() {
            let room = MAX_BATCH - batch.len();
            tokio::select! {
                count = self.inbox.recv_many(batch, room) => {
                    if count == 0 {
                        return;
                    }
                }
                () = &mut pause => return,
                () = is_closed(&mut self.closed) => self.inbox.close(),
            }
        }
    }

    async fn send(&mut self, batch: Vec<(Span, Timestamp)>, told: &mut Option<Duration>) {
        let count = batch.len() as u64;
        let Err(error) = self.send_in_tries(self.resource.encode(batch)).await else { return };
        let dropped = self.lost.fetch_add(count, Ordering::Relaxed) + count;
        let now = self.clock.elapsed();
        if told.is_none_or(|told| now.saturating_sub(told) >= TELL_EVERY) {
            *told = Some(now);
            tracing::warn!(event = "traces_not_sent", error_message = %error, dropped);
        }
    }

    /// A collector that is down at the end is tried once.
    async fn send_in_tries(&mut self, body: Vec<u8>) -> Result<(), SendError> {
        for pause in PAUSES {
            match self.client.send(body.clone()).await {
                Err(error) if error.is_passing() && !*self.closed.borrow() => {
                    tokio::select! {
                        () = tokio::time::sleep(pause) => {}
                        () = is_closed(&mut self.closed) => return Err(error),
                    }
                }
                outcome => return outcome,
            }
        }
        self.client.send(body).await
    }
}

/// Pending for as long as it is open.
async fn is_closed(closed: &mut watch::Receiver<bool>) {
    // A sender that is gone closes too.
    let _ = closed.wait_for(|is_closed| *is_closed).await;
}
