//! The channel on which the engine's thread sends a statement's batches to the reader.
//!
//! In: batches from the engine. Out: the batches. The channel holds only a few batches, so an engine that is faster
//! than its reader waits. A stream that ends without an end marker is an error.

use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures_util::stream::{self, Stream};
use terrane_app::ports::warehouse::WarehouseError;
use tokio::sync::{mpsc, oneshot};

use super::error;

/// The largest number of batches in the channel.
const MAX_WAITING: usize = 2;

/// The sending end. Sending blocks, so only the session's thread may use it.
pub(super) struct Outlet {
    head: Option<oneshot::Sender<Result<SchemaRef, WarehouseError>>>,
    batches: mpsc::Sender<Result<Option<RecordBatch>, WarehouseError>>,
}

/// The receiving end.
pub(super) struct Inlet {
    head: oneshot::Receiver<Result<SchemaRef, WarehouseError>>,
    batches: mpsc::Receiver<Result<Option<RecordBatch>, WarehouseError>>,
}

/// An error: the stream was dropped, so its reader needs no more rows.
#[derive(Debug)]
pub(super) struct Unwanted;

pub(super) fn way() -> (Outlet, Inlet) {
    let (head, head_in) = oneshot::channel();
    let (batches, batches_in) = mpsc::channel(MAX_WAITING);
    (Outlet { head: Some(head), batches }, Inlet { head: head_in, batches: batches_in })
}

impl Outlet {
    pub(super) fn begin(&mut self, schema: SchemaRef) -> Result<(), Unwanted> {
        self.head.take().map_or(Ok(()), |head| head.send(Ok(schema))).map_err(|_| Unwanted)
    }

    /// Returns true if the schema was sent, so that rows may have been sent too.
    pub(super) fn has_begun(&self) -> bool {
        self.head.is_none()
    }

    pub(super) fn send(&self, batch: RecordBatch) -> Result<(), Unwanted> {
        self.batches.blocking_send(Ok(Some(batch))).map_err(|_| Unwanted)
    }

    /// Sends the end marker, or the error that ended the rows.
    pub(super) fn end(mut self, outcome: Result<(), WarehouseError>) {
        // Sending fails if the reader has gone away, which is fine.
        let _ = match (outcome, self.head.take()) {
            (Err(error), Some(head)) => head.send(Err(error)).is_ok(),
            (outcome, _) => self.batches.blocking_send(outcome.map(|()| None)).is_ok(),
        };
    }
}

impl Inlet {
    /// Waits for the schema of the rows.
    pub(super) async fn schema(&mut self) -> Result<SchemaRef, WarehouseError> {
        (&mut self.head).await.unwrap_or_else(|_| Err(cut_off()))
    }

    /// Returns the batches as a stream. `timeout` limits the wait for each batch. `keep` is dropped together with the
    /// stream.
    pub(super) fn batches(
        self,
        timeout: Duration,
        keep: impl Send + 'static,
    ) -> impl Stream<Item = Result<RecordBatch, WarehouseError>> + Send + 'static {
        stream::unfold(Some((self.batches, keep)), move |open| async move {
            let (mut batches, keep) = open?;
            match tokio::time::timeout(timeout, batches.recv()).await {
                Ok(Some(Ok(Some(batch)))) => Some((Ok(batch), Some((batches, keep)))),
                Ok(Some(Ok(None))) => None,
                Ok(Some(Err(error))) => Some((Err(error), None)),
                Ok(None) => Some((Err(cut_off()), None)),
                Err(_) => Some((Err(error::timeout()), None)),
            }
        })
    }
}

fn cut_off() -> WarehouseError {
    error::unavailable("the session ended before the result was complete")
}
