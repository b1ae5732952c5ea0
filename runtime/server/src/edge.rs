//! The part of HTTP that all protocols share: correlation ids, the request log, preflights, panics, compression,
//! security headers, authentication, limits, bodies.
//!
//! In: a request and its connection, the protocols, and a router. Out: a response, in every case. One plain function
//! does most of the work, because a stack of layers would cost time in every request; only compression is a layer. Not
//! here: sockets (`serve`), and the protocols (`rest`, `graphql`, `xmla`), which render errors.

mod accept;
mod admission;
mod body;
mod call;
mod compression;
mod connected;
mod content_coding;
mod correlation;
mod cors;
mod credentials;
mod error;
mod hosts;
mod protocol;
mod proxies;
mod request_log;
mod routes;
mod security_headers;
mod traceparent;

use std::convert::Infallible;
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{ALLOW, CONTENT_TYPE, ORIGIN};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use axum::routing::Router;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde::Serialize;
use terrane_wire::Code;
use tower::Service as _;
use tracing::Instrument as _;

use crate::app::App;

pub(crate) use accept::{MediaType, preferred};
pub(crate) use admission::deny;
pub(crate) use body::{BodyFormat, JSON};
use call::CorrelationId;
pub(crate) use call::{Call, correlation_id};
pub(crate) use compression::NeverCompressed;
pub(crate) use connected::{ConnectedCaller, ConnectionAdmission};
pub(crate) use content_coding::SUPPORTED as CONTENT_CODINGS;
pub use cors::Cors;
pub(crate) use credentials::Credentials;
pub(crate) use error::{ApiError, Parts};
pub use hosts::Hosts;
pub(crate) use protocol::{Protocol, Protocols, protocol_of};
pub use proxies::TrustedProxies;
use request_log::{RequestLog, TraceScope};
pub use routes::{Route, RouteAccess};
pub(crate) use routes::{Routes, UnknownParameters};

const CORRELATION_HEADER: HeaderName = HeaderName::from_static("x-correlation-id");

/// The connection on which a request arrived.
#[derive(Debug, Clone, Copy, Default)]
pub struct Connection {
    /// The address of the socket's peer. If the peer is a trusted proxy, the edge replaces it with the client's
    /// address.
    pub peer: Option<IpAddr>,
    /// True if the server accepts no more connections. Only probes are then answered.
    pub is_surplus: bool,
    /// True if the connection uses TLS.
    pub is_secure: bool,
}

/// The whole server without sockets.
#[derive(Clone)]
pub struct Edge {
    app: App,
    protocols: Protocols,
    answers: compression::Compressing<Answers>,
    ids: Arc<correlation::Ids>,
}

impl Edge {
    /// Creates an edge that serves the protocols. `router` contains their routes.
    pub(crate) fn of(app: App, protocols: Protocols, router: Router) -> Self {
        let answers = compression::compressing(Answers { app: app.clone(), router });
        Edge { app, protocols, answers, ids: Arc::new(correlation::Ids::new()) }
    }

    pub fn app(&self) -> &App {
        &self.app
    }

    /// Answers a request.
    pub async fn call(&self, connection: Connection, mut request: Request) -> Response {
        let id = self.ids.adopt_or_make(request.headers().get(CORRELATION_HEADER));
        let proxies = &self.app.settings.trusted_proxies;
        let peer = connection.peer.map(|peer| proxies.client(peer, request.headers()));
        let connection = Connection { peer, ..connection };
        request.extensions_mut().insert(CorrelationId(id.clone()));
        request.extensions_mut().insert(connection);
        self.protocols.assign(&mut request);
        let trace = self.begin_trace(&mut request);
        let trace_id = trace.map(|scope| tracing::field::display(scope.context.trace_id));
        let span = tracing::error_span!("request", correlation_id = &*id, trace_id);
        let origin = request.headers().get(ORIGIN).cloned();
        let mut response = self.answer(connection, trace, request).instrument(span).await;
        security_headers::add(response.headers_mut(), connection.is_secure);
        self.app.settings.cors.open(origin.as_ref(), response.headers_mut());
        if let Ok(value) = HeaderValue::from_str(&id) {
            response.headers_mut().insert(CORRELATION_HEADER, value);
        }
        response
    }

    /// Starts a span in the caller's trace, or in a new one, if traces are recorded.
    fn begin_trace(&self, request: &mut Request) -> Option<TraceScope> {
        let traces = self.app.watchers.watch.traces.as_ref()?;
        let parent = traceparent::read(request.headers());
        let context = traces.begin(parent);
        request.extensions_mut().insert(context);
        Some(TraceScope { context, parent })
    }

    async fn answer(&self, connection: Connection, trace: Option<TraceScope>, mut request: Request) -> Response {
        let log = RequestLog::begin(&self.app, &tracing::Span::current(), connection, trace, &mut request);
        let Ok(response) = self.answers.clone().call(request).await;
        log.answer(response)
    }
}

/// Answers requests that have a [`Connection`], a [`CorrelationId`] and a protocol. Panics and errors become responses.
#[derive(Clone)]
struct Answers {
    app: App,
    router: Router,
}

impl tower::Service<Request> for Answers {
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let answers = self.clone();
        Box::pin(async move { Ok(answers.answer(request).await) })
    }
}

impl Answers {
    async fn answer(self, request: Request) -> Response {
        let (id, protocol) = (correlation_id(&request), protocol_of(&request));
        match AssertUnwindSafe(self.route(request)).catch_unwind().await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => protocol.render(error, &id),
            Err(panic) => {
                tracing::error!(event = "panic", error_message = panic_message(&panic));
                let message = "an internal error occurred; the log contains it under the correlation id";
                protocol.render(ApiError::new(Code::InternalError, message), &id)
            }
        }
    }

    async fn route(mut self, request: Request) -> Result<Response, ApiError> {
        let is_surplus = request.extensions().get::<Connection>().is_some_and(|connection| connection.is_surplus);
        if is_surplus && !protocol_of(&request).is_probe(request.uri().path()) {
            return Err(ApiError::overloaded("too many connections; retry later".to_owned()));
        }
        if let Some(answer) = self.app.settings.cors.preflight(&request) {
            return answer;
        }
        let method = request.method().clone();
        // The router's error type has no values, so this always matches.
        let Ok(response) = self.router.call(request).await;
        match response.headers().get(ALLOW) {
            // A 405 with a body is a handler's own answer, and is not changed.
            Some(allow) if response.status() == StatusCode::METHOD_NOT_ALLOWED && !has_body(&response) => {
                Err(ApiError::method_not_allowed(&method, allow))
            }
            _ => Ok(response),
        }
    }
}

fn has_body(response: &Response) -> bool {
    response.headers().contains_key(CONTENT_TYPE)
}

pub(crate) fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic without a message")
}

/// Returns a value as JSON. Types of the wire have string keys, so they always serialize.
pub(crate) fn to_json(value: &impl Serialize) -> serde_json::Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// Returns a response with a wire type as JSON.
pub(crate) fn json_answer(body: &impl Serialize) -> Response {
    json_response(serde_json::to_vec(body).unwrap_or_default())
}

pub(crate) fn json_response(body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}
