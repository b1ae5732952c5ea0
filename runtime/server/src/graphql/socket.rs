//! Sockets of the subprotocol `graphql-transport-ws`.
//!
//! In: a handshake, and the client's messages. Out: the server's messages, until one side closes the socket. The rules
//! of the protocol are in [`session`]; sockets, time limits and authentication are in this file. One task runs all
//! operations of a socket. The task polls an operation only if the client reads, so a slow client gets the newest
//! result, and a socket holds one message in memory. Not here: shared queries of subscriptions (`app`).

mod credentials;
mod handshake;
mod opening;
mod operations;
mod session;

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::http::header::UPGRADE;
use axum::response::Response;
use futures_util::future::{Fuse, OptionFuture};
use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _};
use terrane_graphql::{Refusal, Response as GraphQlResponse};
use terrane_wire::graphql::messages;
use terrane_wire::{Code, ErrorBody};
use tokio_tungstenite::tungstenite;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Message};
use tracing::Instrument as _;

use super::places::SocketPlace;
use crate::app::{App, Scope};
use crate::edge::{ApiError, Call, ConnectedCaller, ConnectionAdmission, Credentials, deny, panic_message};
use handshake::{Handshake, SocketStream};
use opening::TooLarge;
use operations::{Event, Operations};
use session::{Action, Close, MAX_OPENING_BYTES, SocketSession};

/// The timeout for the client to read and answer a close frame.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// The timeout for the client to read a message.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns whether a request opens a WebSocket.
pub(super) fn is_handshake(headers: &HeaderMap) -> bool {
    let mut protocols = headers.get_all(UPGRADE).iter().filter_map(|value| value.to_str().ok());
    protocols.any(|value| value.split(',').any(|protocol| protocol.trim().eq_ignore_ascii_case("websocket")))
}

/// Opens a socket. The caller is known if the handshake has a credential.
pub(super) async fn open(app: App, call: Call) -> Result<Response, ApiError> {
    if !app.settings.cors.admits_socket(call.headers()) {
        deny(&app, &call.context, "origin not allowed").await?;
        let message = "pages of this origin may not open sockets; the operator can add it to `server.cors.origins`";
        return Err(ApiError::new(Code::Forbidden, message));
    }
    let mut place = app.graphql_places.socket(call.context.client).map_err(ErrorBody::from)?;
    let connected = (!call.credential().is_empty()).then(|| call.connected());
    if let Some(caller) = &connected {
        app.graphql_places.identify(&mut place, &caller.context, &caller.credential).map_err(ErrorBody::from)?;
    }
    let (admission, request) = call.into_connection(&app);
    let handshake = Handshake::read(request)?;
    let response = handshake.response();
    let has_subprotocol = handshake.has_subprotocol;
    let limit = app.settings.body_limit_bytes;
    let socket = Socket { app, admission: Some(admission), caller: connected, place, has_subprotocol };
    let served = async move {
        if let Ok(stream) = handshake.socket(limit, MAX_OPENING_BYTES).await {
            socket.serve(stream).await;
        }
    };
    tokio::spawn(served.instrument(tracing::Span::current()));
    Ok(response)
}

/// One open socket.
struct Socket {
    app: App,
    /// The admission of the connection; `None` after `connection_init`.
    admission: Option<ConnectionAdmission>,
    caller: Option<ConnectedCaller>,
    place: SocketPlace,
    has_subprotocol: bool,
}

impl Socket {
    async fn serve(self, mut stream: SocketStream) {
        let app = self.app.clone();
        let started = app.services.clock.elapsed();
        if let Some(metrics) = &app.watchers.watch.metrics {
            metrics.socket_opened();
        }
        let mut operations = 0;
        let talk = AssertUnwindSafe(self.talk(&mut stream, &mut operations)).catch_unwind().await;
        let close = talk.unwrap_or_else(|panic| {
            tracing::error!(event = "panic", error_message = panic_message(&panic));
            Some(Close::FAILED)
        });
        if let Some(close) = &close {
            // A client that does not read within the timeout counts as gone.
            let _ = tokio::time::timeout(CLOSE_TIMEOUT, finish(&mut stream, close)).await;
        }
        if let Some(metrics) = &app.watchers.watch.metrics {
            metrics.socket_closed();
        }
        tracing::info!(
            event = "graphql_socket_closed",
            close_code = close.as_ref().map(|close| close.code),
            reason = close.as_ref().map(|close| &*close.reason),
            operations,
            duration_ms = app.services.clock.elapsed().saturating_sub(started).as_secs_f64() * 1_000.0,
        );
    }

    /// Serves the socket until the server closes it; `None` if the client is gone.
    async fn talk(mut self, stream: &mut SocketStream, count: &mut u64) -> Option<Close> {
        if !self.has_subprotocol {
            return Some(Close::SUBPROTOCOL);
        }
        let app = self.app.clone();
        let settings = &app.settings.graphql;
        let mut session = SocketSession::new(settings.max_operations_per_socket);
        let mut operations = Operations::new();
        let mut opening = pin!(tokio::time::sleep(settings.init_timeout));
        let mut authentication = pin!(Fuse::terminated());
        let mut pings = tokio::time::interval(settings.ping_interval);
        pings.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        pings.reset();
        let mut silent_intervals = 0;
        let mut caller: Option<Arc<ConnectedCaller>> = None;
        let mut credential_end = pin!(OptionFuture::from(None));
        let mut drained = pin!(app.drained());
        loop {
            tokio::select! {
                () = &mut drained => {
                    for id in session.end_all() {
                        send(stream, messages::complete(&id)).await?;
                    }
                    return Some(Close::GOING_AWAY);
                }
                () = &mut opening, if session.awaits_init() => return Some(Close::INIT_TIMEOUT),
                admitted = &mut authentication => match admitted {
                    Ok(admitted) => {
                        let admitted: Arc<ConnectedCaller> = Arc::new(admitted);
                        let place = &mut self.place;
                        let (context, credential) = (&admitted.context, &admitted.credential);
                        if let Err(full) = app.graphql_places.identify(place, context, credential) {
                            return Some(Close::try_again(&ErrorBody::from(full).message));
                        }
                        place.open();
                        credential_end.set(OptionFuture::from(Some(end_of(app.clone(), admitted.clone()))));
                        caller = Some(admitted);
                        stream.get_mut().open();
                        send(stream, session.acknowledge()).await?;
                    }
                    Err(error) => return Some(rejected(error)),
                },
                Some(error) = &mut credential_end => {
                    let id = caller.as_ref().map(|caller| caller.context.correlation_id.clone()).unwrap_or_default();
                    let close = Close::forbidden(error.message());
                    let errors = errors(error.into_parts().body, &id);
                    for id in session.end_all() {
                        send(stream, messages::error(&id, &errors)).await?;
                    }
                    return Some(close);
                }
                _ = pings.tick() => {
                    if silent_intervals >= 2 {
                        return Some(Close::SILENT);
                    }
                    silent_intervals += 1;
                    deliver(stream, Message::Ping(bytes::Bytes::new())).await?;
                }
                event = operations.next() => {
                    let text = match event {
                        Event::Response(id, response) => operations::next_message(&id, &response),
                        Event::Failed(id, response) => {
                            session.end(&id);
                            operations.stop(&id);
                            operations::error_message(&id, response)
                        }
                        Event::End(id) => {
                            session.end(&id);
                            messages::complete(&id)
                        }
                    };
                    send(stream, text).await?;
                }
                message = stream.next() => {
                    silent_intervals = 0;
                    let text = match message? {
                        Ok(Message::Text(text)) => text,
                        Ok(Message::Binary(_)) => return Some(Close::bad_request("expected text, found binary data")),
                        Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_)) => continue,
                        Ok(Message::Close(_)) => return None,
                        Err(error) => return close_of(&error),
                    };
                    match session.receive(&text) {
                        Action::None => {}
                        Action::Send(text) => send(stream, text).await?,
                        Action::Authenticate(payload) => {
                            let admission = self.admission.take();
                            let own = self.caller.take();
                            authentication.set(authenticate(app.clone(), admission, own, payload).fuse());
                        }
                        Action::Start { id, request } => {
                            *count += 1;
                            // The session starts operations only after it has acknowledged a caller.
                            let Some(caller) = &caller else { return Some(Close::UNAUTHORIZED) };
                            operations.start(&app, caller, id, request, *count);
                        }
                        Action::Stop { id } => operations.stop(&id),
                        Action::Refuse { id, error } => {
                            let correlation_id = caller.as_ref().map(|caller| caller.context.correlation_id.clone());
                            let errors = errors(*error, &correlation_id.unwrap_or_default());
                            send(stream, messages::error(&id, &errors)).await?;
                        }
                        Action::Close(close) => return Some(close),
                    }
                }
            }
        }
    }
}

/// Sends a string; `None` if the client is gone.
async fn send(stream: &mut SocketStream, text: String) -> Option<()> {
    deliver(stream, Message::Text(text.into())).await
}

/// Sends a message; `None` if the client has disconnected or does not read. While a message waits, neither the end of
/// the credential nor the shutdown is noticed.
async fn deliver(stream: &mut SocketStream, message: Message) -> Option<()> {
    tokio::time::timeout(SEND_TIMEOUT, stream.send(message)).await.ok()?.ok()
}

/// Authenticates a caller by the handshake or by the payload of `connection_init`.
async fn authenticate(
    app: App,
    admission: Option<ConnectionAdmission>,
    own: Option<ConnectedCaller>,
    payload: serde_json::Map<String, serde_json::Value>,
) -> Result<ConnectedCaller, ApiError> {
    let credentials = credentials::of_payload(&payload)?;
    match (own, admission) {
        (Some(_), _) if credentials != Credentials::None => {
            Err(ApiError::new(Code::Unauthorized, "more than one credential"))
        }
        (Some(caller), _) => Ok(caller),
        (None, Some(admission)) => admission.admit(&app, Scope::Read, credentials).await,
        (None, None) => Err(ApiError::new(Code::Unauthorized, credentials::REQUIRED)),
    }
}

async fn end_of(app: App, caller: Arc<ConnectedCaller>) -> ApiError {
    let interval = app.settings.graphql.recheck_interval;
    caller.ended(&app, interval).await
}

/// Returns the close frame for a caller who is refused.
fn rejected(error: ApiError) -> Close {
    let body = error.into_parts().body;
    Close::forbidden(&format!("{}: {}", body.code.as_str(), body.message))
}

/// Returns the errors of an operation that is not executed.
fn errors(error: ErrorBody, correlation_id: &str) -> serde_json::Value {
    operations::errors_of(&GraphQlResponse::refused(&Refusal::new(error), correlation_id).into_body())
}

/// Returns the close frame after an error of the WebSocket protocol; `None` if the client is gone.
fn close_of(error: &tungstenite::Error) -> Option<Close> {
    match error {
        tungstenite::Error::Capacity(_) => Some(Close::TOO_LARGE),
        tungstenite::Error::Io(error) if error.get_ref().is_some_and(|error| error.is::<TooLarge>()) => {
            Some(Close::TOO_LARGE)
        }
        tungstenite::Error::Utf8(_) => Some(Close::NOT_UTF8),
        tungstenite::Error::Protocol(_) => Some(Close::PROTOCOL),
        _ => None,
    }
}

/// Sends the close frame, and reads until the client has answered it: a connection that is dropped with unread bytes is
/// reset, and the client would not get the frame.
async fn finish(stream: &mut SocketStream, close: &Close) {
    let frame = CloseFrame { code: close.code.into(), reason: (&*close.reason).into() };
    if stream.send(Message::Close(Some(frame))).await.is_err() {
        return;
    }
    let mut is_answered = false;
    while let Some(Ok(message)) = stream.next().await {
        is_answered |= message.is_close();
    }
    if !is_answered {
        // After an error the socket reads no further frames.
        let connection = stream.get_mut();
        connection.open();
        let _ = tokio::io::copy(connection, &mut tokio::io::sink()).await;
    }
}
