//! The task that sends spans in batches, and drops batches that the collector does not accept.

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
/// The time for which spans are collected before they are sent as a batch.
const GATHER: Duration = Duration::from_secs(1);
/// The pauses before the second and the third attempt.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(3)];
/// The minimum time between two log events about an unavailable collector.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);

pub(crate) struct Sending {
    pub(crate) client: Client,
    pub(crate) resource: Resource,
    pub(crate) inbox: mpsc::Receiver<(Span, Timestamp)>,
    pub(crate) closed: watch::Receiver<bool>,
    pub(crate) lost: Arc<AtomicU64>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Sending {
    /// Sends batches until tracing is closed and the waiting spans are sent, or until all senders of spans are dropped.
    pub(crate) async fn run(mut self) {
        let mut reported_at = None;
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
                self.send(batch, &mut reported_at).await;
            }
        }
    }

    /// Waits for more spans until the batch is full, the interval has passed, or tracing is closed.
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

    async fn send(&mut self, batch: Vec<(Span, Timestamp)>, reported_at: &mut Option<Duration>) {
        let count = batch.len() as u64;
        let Err(error) = self.send_with_retries(self.resource.encode(batch)).await else { return };
        let dropped = self.lost.fetch_add(count, Ordering::Relaxed) + count;
        let now = self.clock.elapsed();
        if reported_at.is_none_or(|at| now.saturating_sub(at) >= REPORT_INTERVAL) {
            *reported_at = Some(now);
            tracing::warn!(event = "traces_not_sent", error_message = %error, dropped);
        }
    }

    /// Sends a batch in up to three attempts. After tracing is closed, failed attempts are not repeated.
    async fn send_with_retries(&mut self, body: Vec<u8>) -> Result<(), SendError> {
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

/// Waits until tracing is closed.
async fn is_closed(closed: &mut watch::Receiver<bool>) {
    // If the sender was dropped, `wait_for` fails, which means closed as well.
    let _ = closed.wait_for(|is_closed| *is_closed).await;
}
