//! The work of one statement on its own thread.
//!
//! In: a request, and an idle connection or none. Out: events for the caller, and the connection if it can be used
//! again. Everything here blocks, because calls of drivers block. Not here: time limits, which the caller applies.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use terrane_app::ports::warehouse::{WarehouseError, WarehouseErrorKind};
use tokio::sync::mpsc::Sender;

use crate::connection::{Opener, Session};
use crate::failure::Failures;
use crate::progress::{Control, Event, Events};

#[derive(Debug, Clone)]
pub(crate) enum Request {
    /// Runs a statement and returns its rows.
    Rows(String),
    /// Returns only the columns of a statement.
    Describe(String),
    /// A check that the database responds.
    Probe,
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
    let mut events = Events::new(sender);
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
                if !was_idle || events.has_answered() || self.control.is_cancelled() {
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
