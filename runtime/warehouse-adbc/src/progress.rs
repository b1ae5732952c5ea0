//! The progress of a request, which its thread reports, and the state that the thread shares with the caller.
//!
//! In: events of the thread; the decision of the caller to leave. Out: events for the caller; the cancellation for the
//! thread. Not here: the work itself (`task`).

use std::sync::{Mutex, MutexGuard, PoisonError};

use adbc_core::CancelHandle;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use terrane_app::ports::warehouse::WarehouseError;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::Sender;

/// The progress of a request.
#[derive(Debug)]
pub(crate) enum Event {
    /// A connection is open.
    Opened,
    Columns(SchemaRef),
    Batch(RecordBatch),
    /// The request was answered completely.
    End,
}

/// The state that the thread and the caller of a statement share.
#[derive(Default)]
pub(crate) struct Control(Mutex<State>);

#[derive(Default)]
struct State {
    is_cancelled: bool,
    /// The handle that cancels the statement, while the statement runs.
    handle: Option<Box<dyn CancelHandle>>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Control {
    pub(crate) fn new(permit: OwnedSemaphorePermit) -> Self {
        Control(Mutex::new(State { permit: Some(permit), ..State::default() }))
    }

    /// Sets the handle that cancels the statement. Returns false if the caller has left already.
    pub(crate) fn arm(&self, handle: Box<dyn CancelHandle>) -> bool {
        let mut state = self.lock();
        state.handle = Some(handle);
        !state.is_cancelled
    }

    /// Records that the caller has left. Returns the handle if the statement runs.
    pub(crate) fn cancel(&self) -> Option<Box<dyn CancelHandle>> {
        let mut state = self.lock();
        state.is_cancelled = true;
        state.handle.take()
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.lock().is_cancelled
    }

    /// Records that the statement has ended. Returns false if it was cancelled.
    pub(crate) fn finish(&self) -> bool {
        let mut state = self.lock();
        state.handle = None;
        !state.is_cancelled
    }

    /// Releases the permit, so that another statement can run.
    pub(crate) fn release(&self) {
        let permit = self.lock().permit.take();
        drop(permit);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is consistent even after a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The events of a request on the way to its caller.
pub(crate) struct Events<'a> {
    sender: &'a Sender<Result<Event, WarehouseError>>,
    /// True if the caller has received columns or rows, so that the request cannot be repeated.
    has_answered: bool,
}

impl<'a> Events<'a> {
    pub(crate) fn new(sender: &'a Sender<Result<Event, WarehouseError>>) -> Self {
        Events { sender, has_answered: false }
    }

    /// Returns true if the caller has received columns or rows.
    pub(crate) fn has_answered(&self) -> bool {
        self.has_answered
    }

    /// Sends an event when the caller is ready for it. Returns false if the caller has left.
    pub(crate) fn send(&mut self, event: Event) -> bool {
        self.has_answered |= matches!(event, Event::Columns(_) | Event::Batch(_));
        self.sender.blocking_send(Ok(event)).is_ok()
    }
}
