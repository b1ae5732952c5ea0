//! The work of one statement on its own thread, and the state that the thread shares with the caller.
//!
//! In: a request, and an idle connection or none. Out: events for the caller, and the connection if it can be used
//! again. Everything here blocks, because calls of drivers block. Not here: time limits, which the caller applies.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};

use adbc_core::CancelHandle;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use terrane_app::ports::warehouse::{WarehouseError, WarehouseErrorKind};
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::Sender;

use crate::connection::{Opener, Session};
use crate::failure::Failures;

#[derive(Debug, Clone)]
pub(crate) enum Request {
    /// Runs a statement and returns its rows.
    Rows(String),
    /// Returns only the columns of a statement.
    Describe(String),
    /// A check that the database responds.
    Probe,
}

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
    fn finish(&self) -> bool {
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
    /// Sends an event when the caller is ready for it. Returns false if the caller has left.
    pub(crate) fn send(&mut self, event: Event) -> bool {
        self.has_answered |= matches!(event, Event::Columns(_) | Event::Batch(_));
        self.sender.blocking_send(Ok(event)).is_ok()
    }
}

/// The result of a request, for the pool.
pub(crate) struct Outcome {
    pub(crate) result: Result<(), WarehouseError>,
    /// The connection, if it can be used again.
    pub(crate) session: Option<Session>,
    /// The connection that cannot be used again. Closing it may block.
    pub(crate) discarded: Option<Session>,
    pub(crate) failed_openings: u64,
    pub(crate) lost: u64,
}

/// Answers a request. A panic becomes an error. If an idle connection turns out to be lost, a new connection is used.
pub(crate) fn run(
    opener: &Opener,
    idle: Option<Session>,
    request: &Request,
    control: &Control,
    sender: &Sender<Result<Event, WarehouseError>>,
) -> Outcome {
    let mut work = Work { opener, request, control, session: idle, failed_openings: 0, lost: 0 };
    let mut events = Events { sender, has_answered: false };
    let result = catch_unwind(AssertUnwindSafe(|| work.answer(&mut events)))
        .unwrap_or_else(|panic| Err(panicked(&opener.failures, &*panic)));
    let is_idle = control.finish();
    // After a panic, the state of the connection is unknown.
    let has_ended = result.as_ref().map_or_else(|error| error.kind == WarehouseErrorKind::Refused, |()| true);
    let (session, discarded) = match is_idle && has_ended {
        true => (work.session, None),
        false => (None, work.session),
    };
    Outcome { result, session, discarded, failed_openings: work.failed_openings, lost: work.lost }
}

struct Work<'a> {
    opener: &'a Opener,
    request: &'a Request,
    control: &'a Control,
    session: Option<Session>,
    failed_openings: u64,
    lost: u64,
}

impl Work<'_> {
    fn answer(&mut self, events: &mut Events<'_>) -> Result<(), WarehouseError> {
        let was_idle = self.session.is_some();
        let result = self.try_answer(events);
        match result {
            Err(error) if error.kind == WarehouseErrorKind::Unavailable && self.session.is_some() => {
                self.lost += 1;
                if !was_idle || events.has_answered || self.control.is_cancelled() {
                    return Err(error);
                }
                self.session = None;
                self.try_answer(events).map_err(|error| WarehouseError { retries: 1, ..error })
            }
            result => result,
        }
    }

    fn try_answer(&mut self, events: &mut Events<'_>) -> Result<(), WarehouseError> {
        let session = match &mut self.session {
            Some(session) => session,
            empty => {
                let opened = self.opener.open().inspect_err(|_| self.failed_openings += 1);
                empty.insert(opened.map_err(|error| self.opener.warehouse_error(error))?)
            }
        };
        if !events.send(Event::Opened) {
            return Ok(());
        }
        match self.request {
            Request::Rows(text) => session.rows(text, self.control, events),
            Request::Describe(text) => session.describe(text, self.control, events),
            Request::Probe => session.probe(self.control),
        }
    }
}

fn panicked(failures: &Failures, panic: &(dyn Any + Send)) -> WarehouseError {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let text = text.unwrap_or("no message");
    tracing::error!(event = "driver_panicked", warehouse = &*failures.warehouse, text);
    failures.unavailable(format!("the driver's answer cannot be read: {text}"))
}
