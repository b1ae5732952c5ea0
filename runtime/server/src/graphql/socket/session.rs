//! The state of one `graphql-transport-ws` session.
//!
//! In: the client's messages and the events of the server. Out: the next action of the socket: a message, an operation
//! to start or to stop, or the close code of the protocol. Not here: sockets, time, authentication and execution, so
//! that every rule of the protocol is tested as a plain function.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::{Map, Value as Json};
use terrane_wire::graphql::GraphQlRequest;
use terrane_wire::graphql::messages::{self, ClientMessage};
use terrane_wire::{Code, ErrorBody};

/// A WebSocket close frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Close {
    pub(super) code: u16,
    pub(super) reason: Cow<'static, str>,
}

/// The maximum length of a message before the session is open: enough for a credential and other data of the client.
pub(super) const MAX_OPENING_BYTES: usize = 16 * 1024;
/// The maximum length of a reason in a control frame (RFC 6455, section 5.5).
const MAX_REASON_BYTES: usize = 123;

impl Close {
    /// The server shuts down (RFC 6455, section 7.4.1).
    pub(super) const GOING_AWAY: Close = Close::of(1001, "the server is shutting down");
    /// The close frame for a client that does not answer pings.
    pub(super) const SILENT: Close = Close::of(1001, "no response to pings");
    pub(super) const TOO_LARGE: Close = Close::of(1009, "the message is too large");
    pub(super) const NOT_UTF8: Close = Close::of(1007, "the message is not UTF-8");
    pub(super) const PROTOCOL: Close = Close::of(1002, "the frame violates the WebSocket protocol");
    pub(super) const FAILED: Close = Close::of(1011, "an internal error occurred");
    pub(super) const UNAUTHORIZED: Close = Close::of(4401, "Unauthorized");
    pub(super) const SUBPROTOCOL: Close = Close::of(4406, "Subprotocol not acceptable");
    pub(super) const INIT_TIMEOUT: Close = Close::of(4408, "Connection initialisation timeout");
    pub(super) const TOO_MANY_INITS: Close = Close::of(4429, "Too many initialisation requests");

    const fn of(code: u16, reason: &'static str) -> Self {
        Close { code, reason: Cow::Borrowed(reason) }
    }

    fn with_reason(code: u16, reason: &str) -> Self {
        let mut end = reason.len().min(MAX_REASON_BYTES);
        while !reason.is_char_boundary(end) {
            end -= 1;
        }
        Close { code, reason: reason[..end].to_owned().into() }
    }

    /// Reports a message that the protocol does not define.
    pub(super) fn bad_request(reason: &str) -> Self {
        Close::with_reason(4400, reason)
    }

    /// Reports a credential that is rejected, or that ended.
    pub(super) fn forbidden(reason: &str) -> Self {
        Close::with_reason(4403, reason)
    }

    /// Reports that the caller has too many sockets (RFC 6455, registry of close codes: try again later).
    pub(super) fn try_again(reason: &str) -> Self {
        Close::with_reason(1013, reason)
    }

    fn duplicate(id: &str) -> Self {
        Close::with_reason(4409, &format!("Subscriber for {id} already exists"))
    }
}

/// The action after a message.
#[derive(Debug, PartialEq)]
pub(super) enum Action {
    None,
    Send(String),
    /// Checks the credential in the payload of `connection_init`.
    Authenticate(Map<String, Json>),
    Start {
        id: Box<str>,
        request: GraphQlRequest,
    },
    Stop {
        id: Box<str>,
    },
    /// Rejects an operation without starting it.
    Refuse {
        id: Box<str>,
        error: Box<ErrorBody>,
    },
    Close(Close),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Opened,
    Authenticating,
    Acknowledged,
}

/// A session: its phase, and the ids of its operations.
#[derive(Debug)]
pub(super) struct SocketSession {
    phase: Phase,
    operations: HashSet<Box<str>>,
    max_operations: usize,
}

impl SocketSession {
    pub(super) fn new(max_operations: usize) -> Self {
        SocketSession { phase: Phase::Opened, operations: HashSet::new(), max_operations }
    }

    /// Returns whether the client has not opened the session yet.
    pub(super) fn awaits_init(&self) -> bool {
        self.phase == Phase::Opened
    }

    /// Reads one message.
    pub(super) fn receive(&mut self, text: &str) -> Action {
        if self.phase != Phase::Acknowledged && text.len() > MAX_OPENING_BYTES {
            return Action::Close(Close::TOO_LARGE);
        }
        match messages::from_client(text.as_bytes()) {
            Ok(message) => self.handle(message),
            Err(error) => Action::Close(Close::bad_request(&ErrorBody::from(error).message)),
        }
    }

    fn handle(&mut self, message: ClientMessage) -> Action {
        match (message, self.phase) {
            (ClientMessage::ConnectionInit { payload }, Phase::Opened) => {
                self.phase = Phase::Authenticating;
                Action::Authenticate(payload)
            }
            (ClientMessage::ConnectionInit { .. }, _) => Action::Close(Close::TOO_MANY_INITS),
            (ClientMessage::Ping { payload }, Phase::Acknowledged) => Action::Send(messages::pong(payload)),
            // Before the session is open, the server does not send the client's own payload back.
            (ClientMessage::Ping { .. }, _) => Action::Send(messages::pong(None)),
            (ClientMessage::Pong, _) => Action::None,
            (ClientMessage::Subscribe { id, request }, Phase::Acknowledged) => self.subscribe(id, request),
            (ClientMessage::Subscribe { .. }, _) => Action::Close(Close::UNAUTHORIZED),
            (ClientMessage::Complete { id }, _) => {
                // The server may already have ended the operation, while this message was under way.
                if self.operations.remove(&id) { Action::Stop { id } } else { Action::None }
            }
        }
    }

    fn subscribe(&mut self, id: Box<str>, request: Result<GraphQlRequest, Box<ErrorBody>>) -> Action {
        if self.operations.contains(&id) {
            return Action::Close(Close::duplicate(&id));
        }
        let request = match request {
            Ok(request) => request,
            Err(error) => return Action::Refuse { id, error },
        };
        if self.operations.len() >= self.max_operations {
            let message = format!("this socket has {} operations; complete one of them first", self.max_operations);
            return Action::Refuse { id, error: Box::new(ErrorBody::new(Code::RateLimited, message)) };
        }
        self.operations.insert(id.clone());
        Action::Start { id, request }
    }

    /// Accepts the client, and returns the message for it.
    pub(super) fn acknowledge(&mut self) -> String {
        self.phase = Phase::Acknowledged;
        messages::connection_ack()
    }

    /// Records that the server ended an operation.
    pub(super) fn end(&mut self, id: &str) {
        self.operations.remove(id);
    }

    /// Ends all operations, and returns their ids.
    pub(super) fn end_all(&mut self) -> impl Iterator<Item = Box<str>> {
        std::mem::take(&mut self.operations).into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INIT: &str = r#"{"type": "connection_init", "payload": {"authorization": "Bearer a"}}"#;

    fn opened() -> SocketSession {
        let mut session = SocketSession::new(2);
        assert!(matches!(session.receive(INIT), Action::Authenticate(payload) if payload.len() == 1));
        assert!(!session.awaits_init());
        session.acknowledge();
        session
    }

    fn subscribe(id: &str) -> String {
        format!(r#"{{"type": "subscribe", "id": "{id}", "payload": {{"query": "{{ a }}"}}}}"#)
    }

    fn complete(id: &str) -> String {
        format!(r#"{{"type": "complete", "id": "{id}"}}"#)
    }

    fn code(action: Action) -> u16 {
        match action {
            Action::Close(close) => close.code,
            other => panic!("expected a close frame, found {other:?}"),
        }
    }

    #[test]
    fn subscribing_before_the_acknowledgement_is_unauthorized() {
        let mut session = SocketSession::new(2);
        assert_eq!(code(session.receive(&subscribe("1"))), 4401);
        let mut session = SocketSession::new(2);
        session.receive(INIT);
        assert_eq!(code(session.receive(&subscribe("1"))), 4401);
    }

    #[test]
    fn second_init_is_one_too_many() {
        let mut session = SocketSession::new(2);
        session.receive(INIT);
        assert_eq!(code(session.receive(INIT)), 4429);
        assert_eq!(code(opened().receive(INIT)), 4429);
    }

    #[test]
    fn duplicate_id_closes_the_socket_and_a_finished_one_does_not() {
        let mut session = opened();
        assert!(matches!(session.receive(&subscribe("1")), Action::Start { id, .. } if &*id == "1"));
        assert_eq!(code(session.receive(&subscribe("1"))), 4409);
        let mut session = opened();
        session.receive(&subscribe("1"));
        assert_eq!(session.receive(&complete("1")), Action::Stop { id: "1".into() });
        assert_eq!(session.receive(&complete("1")), Action::None);
        assert!(matches!(session.receive(&subscribe("1")), Action::Start { .. }));
        session.end("1");
        assert!(matches!(session.receive(&subscribe("1")), Action::Start { .. }));
    }

    #[test]
    fn operations_are_limited() {
        let mut session = opened();
        session.receive(&subscribe("1"));
        session.receive(&subscribe("2"));
        let Action::Refuse { id, error } = session.receive(&subscribe("3")) else { panic!("a third operation") };
        assert_eq!((&*id, error.code), ("3", Code::RateLimited));
        session.receive(&complete("2"));
        assert!(matches!(session.receive(&subscribe("3")), Action::Start { .. }));
        let mut ids: Vec<_> = session.end_all().collect();
        ids.sort();
        assert_eq!(ids, ["1".into(), "3".into()] as [Box<str>; 2]);
    }

    #[test]
    fn pings_are_answered_in_every_phase() {
        let mut session = SocketSession::new(2);
        let pong = Action::Send(r#"{"type":"pong"}"#.to_owned());
        assert_eq!(session.receive(r#"{"type": "ping"}"#), pong);
        assert_eq!(opened().receive(r#"{"type": "ping"}"#), pong);
        let chosen = r#"{"type": "ping", "payload": {"a": 1}}"#;
        assert_eq!(session.receive(chosen), pong);
        assert_eq!(opened().receive(chosen), Action::Send(r#"{"type":"pong","payload":{"a":1}}"#.to_owned()));
        assert_eq!(opened().receive(r#"{"type": "pong"}"#), Action::None);
    }

    #[test]
    fn messages_before_the_acknowledgement_are_short() {
        let long = format!(r#"{{"type": "connection_init", "payload": {{"a": "{}"}}}}"#, "x".repeat(MAX_OPENING_BYTES));
        assert_eq!(code(SocketSession::new(2).receive(&long)), 1009);
        let long = format!(r#"{{"type": "ping", "payload": {{"a": "{}"}}}}"#, "x".repeat(MAX_OPENING_BYTES));
        assert!(matches!(opened().receive(&long), Action::Send(_)));
    }

    #[test]
    fn unknown_messages_close_the_socket_with_a_short_reason() {
        for text in ["", "null", r#"{"type": "start"}"#, r#"{"type": "subscribe", "id": "1", "payload": {}}"#] {
            assert_eq!(code(opened().receive(text)), 4400, "{text}");
        }
        let long = format!(r#"{{"type": "{}"}}"#, "ü".repeat(1_000));
        let Action::Close(close) = opened().receive(&long) else { panic!("the type is unknown") };
        assert!(close.reason.len() <= MAX_REASON_BYTES);
        let refused = r#"{"type": "subscribe", "id": "1", "payload": {"documentId": "x"}}"#;
        assert!(matches!(opened().receive(refused), Action::Refuse { .. }));
    }
}
