//! The running operations of one socket.
//!
//! In: operations to start and to stop. Out: their responses, in the order in which they arrive. Not here: ids that are
//! in use (`session`), and sending.

use std::collections::HashMap;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::{self, AbortHandle, Abortable, BoxStream, SelectAll};
use serde_json::Value as Json;
use terrane_graphql::{Refusal, Response};
use terrane_wire::graphql::GraphQlRequest;
use terrane_wire::graphql::messages;

use super::super::operation::{self, Transport};
use crate::app::App;
use crate::edge::ConnectedCaller;

/// An event of an operation.
pub(super) enum Event {
    Response(Box<str>, Bytes),
    /// Errors that end the operation. Nothing of it was executed.
    Failed(Box<str>, Bytes),
    End(Box<str>),
}

/// The operations of a socket, each with the handle that stops it.
pub(super) struct Operations {
    streams: SelectAll<BoxStream<'static, Event>>,
    handles: HashMap<Box<str>, AbortHandle>,
}

impl Operations {
    pub(super) fn new() -> Self {
        Operations { streams: SelectAll::new(), handles: HashMap::new() }
    }

    /// Starts an operation. `number` distinguishes the operations of the socket in the log.
    pub(super) fn start(
        &mut self,
        app: &App,
        caller: &ConnectedCaller,
        id: Box<str>,
        request: GraphQlRequest,
        number: u64,
    ) {
        let caller = caller.numbered(number);
        let (handle, registration) = AbortHandle::new_pair();
        let events = match responses(app, &caller, request) {
            Ok(responses) => {
                let (own, end) = (id.clone(), Event::End(id.clone()));
                let events = responses.map(move |response| event(own.clone(), response));
                events.chain(stream::once(async { end })).boxed()
            }
            Err(refusal) => {
                let failed = Event::Failed(id.clone(), operation::refused(&refusal, &caller).into_body());
                stream::once(async { failed }).boxed()
            }
        };
        self.streams.push(Abortable::new(events, registration).boxed());
        self.handles.insert(id, handle);
    }

    /// Stops an operation: it has no further events.
    pub(super) fn stop(&mut self, id: &str) {
        if let Some(handle) = self.handles.remove(id) {
            handle.abort();
        }
    }

    /// Waits for the next event; never returns if no operation is running.
    pub(super) async fn next(&mut self) -> Event {
        match self.streams.next().await {
            Some(event) => {
                if let Event::End(id) = &event {
                    self.handles.remove(id);
                }
                event
            }
            None => std::future::pending().await,
        }
    }
}

/// Starts an operation, unless it is refused.
fn responses(
    app: &App,
    caller: &ConnectedCaller,
    request: GraphQlRequest,
) -> Result<BoxStream<'static, Response>, Refusal> {
    let refused = |error: crate::edge::ApiError| Refusal::new(error.into_parts().body);
    caller.count(app).map_err(refused)?;
    let operation = operation::read(app, request)?;
    operation::start(app, caller, operation, Transport::WebSocket).map_err(refused)
}

fn event(id: Box<str>, response: Response) -> Event {
    if response.has_data() {
        Event::Response(id, response.into_body())
    } else {
        Event::Failed(id, response.into_body())
    }
}

/// Writes the message of a response.
pub(super) fn next_message(id: &str, response: &Bytes) -> String {
    // The executor writes JSON, which is UTF-8.
    messages::next(id, std::str::from_utf8(response).unwrap_or("null"))
}

/// Writes the message of an operation that was not executed.
pub(super) fn error_message(id: &str, response: Bytes) -> String {
    messages::error(id, &errors_of(&response))
}

pub(super) fn errors_of(response: &Bytes) -> Json {
    let mut response: Json = serde_json::from_slice(response).unwrap_or_default();
    response["errors"].take()
}
