//! What every request passes, on its way in and out: correlation id, what is told of it (`record`),
//! preflights, panics, compression, the headers that every answer has.
//!
//! One plain function instead of a stack of layers, since this is paid on every request; compression alone
//! is a layer. Not here: sockets (`serve`), authorization (`call`).

use std::convert::Infallible;
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{ALLOW, ORIGIN};
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
use crate::call::{Call, CorrelationId};
use crate::error::ApiError;

mod compression;
mod correlation;
mod cors;
mod hosts;
mod protection;
mod proxies;
mod record;
mod traceparent;

pub(crate) use compression::NeverCompressed;
pub use cors::Cors;
pub use hosts::Hosts;
pub use proxies::TrustedProxies;
pub(crate) use record::Matched;
use record::{Begun, Record};

const CORRELATION_HEADER: HeaderName = HeaderName::from_static("x-correlation-id");

/// The connection that a request came in on.
#[derive(Debug, Clone, Copy, Default)]
pub struct Connection {
    /// The address of the socket's other end. The edge replaces a trusted proxy's by its client's.
    pub peer: Option<IpAddr>,
    /// It is one more than the server takes: only probes are answered.
    pub is_surplus: bool,
    /// It is under TLS.
    pub is_secure: bool,
}

/// Probes are answered to everybody, at any time.
pub(crate) fn is_probe(path: &str) -> bool {
    path.starts_with("/health/") || path == "/api/v1/health"
}

/// The whole server without sockets.
#[derive(Clone)]
pub struct Edge {
    app: App,
    answers: compression::Compressing<Answers>,
    ids: Arc<correlation::Ids>,
}

impl Edge {
    pub fn new(app: App) -> Self {
        let router = crate::rest::router(app.settings.metrics).with_state(app.clone());
        Edge::with(app, router)
    }

    /// Answers scrapes and nothing else, without credentials.
    pub fn of_metrics(app: App) -> Self {
        let router = crate::rest::metrics_router(app.settings.metrics).with_state(app.clone());
        Edge::with(app, router)
    }

    fn with(app: App, router: Router) -> Self {
        let answers = compression::compressing(Answers { app: app.clone(), router });
        Edge { app, answers, ids: Arc::new(correlation::Ids::new()) }
    }

    pub fn app(&self) -> &App {
        &self.app
    }

    /// Answers a request; there is always an answer.
    pub async fn call(&self, connection: Connection, mut request: Request) -> Response {
        let id = self.ids.adopt_or_make(request.headers().get(CORRELATION_HEADER));
        let proxies = &self.app.settings.trusted_proxies;
        let peer = connection.peer.map(|peer| proxies.client(peer, request.headers()));
        let connection = Connection { peer, ..connection };
        request.extensions_mut().insert(CorrelationId(id.clone()));
        request.extensions_mut().insert(connection);
        let trace = self.begin_trace(&mut request);
        let trace_id = trace.map(|begun| tracing::field::display(begun.context.trace_id));
        let span = tracing::error_span!("request", correlation_id = &*id, trace_id);
        let origin = request.headers().get(ORIGIN).cloned();
        let mut response = self.answer(connection, trace, request).instrument(span).await;
        protection::protect(response.headers_mut(), connection.is_secure);
        self.app.settings.cors.open(origin.as_ref(), response.headers_mut());
        if let Ok(value) = HeaderValue::from_str(&id) {
            response.headers_mut().insert(CORRELATION_HEADER, value);
        }
        response
    }

    /// Where traces are made: a place in the caller's trace, or in a new one.
    fn begin_trace(&self, request: &mut Request) -> Option<Begun> {
        let traces = self.app.watchers.watch.traces.as_ref()?;
        let parent = traceparent::read(request.headers());
        let context = traces.begin(parent);
        request.extensions_mut().insert(context);
        Some(Begun { context, parent })
    }

    async fn answer(&self, connection: Connection, trace: Option<Begun>, mut request: Request) -> Response {
        let record = Record::begin(&self.app, &tracing::Span::current(), connection, trace, &mut request);
        let Ok(response) = self.answers.clone().call(request).await;
        record.answer(response)
    }
}

/// Answers requests that have a [`Connection`] and a [`CorrelationId`], panics and refusals included.
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
        let id = Call::correlation_id(&request);
        match AssertUnwindSafe(self.route(request)).catch_unwind().await {
            Ok(Ok(response)) => response,
            Ok(Err(refusal)) => refusal.into_response(&id),
            Err(panic) => {
                tracing::error!(event = "panic", error_message = panic_message(&panic));
                let message = "this request met a fault in the server; the log has it under the correlation id";
                ApiError::new(Code::InternalError, message).into_response(&id)
            }
        }
    }

    async fn route(mut self, request: Request) -> Result<Response, ApiError> {
        let is_surplus = request.extensions().get::<Connection>().is_some_and(|connection| connection.is_surplus);
        if is_surplus && !is_probe(request.uri().path()) {
            return Err(ApiError::overloaded("every connection is taken: try again later".to_owned()));
        }
        if let Some(answer) = self.app.settings.cors.preflight(&request) {
            return answer;
        }
        let method = request.method().clone();
        // The router's error type has no values.
        let Ok(response) = self.router.call(request).await;
        match response.headers().get(ALLOW) {
            Some(allow) if response.status() == StatusCode::METHOD_NOT_ALLOWED => {
                Err(ApiError::method_not_allowed(&method, allow))
            }
            _ => Ok(response),
        }
    }
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic without a message")
}

/// Returns a value as JSON. Types of the wire have string keys, so they always serialize.
pub(crate) fn to_json(value: &impl Serialize) -> serde_json::Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// Returns an answer with a type of the wire.
pub(crate) fn json_answer(body: &impl Serialize) -> Response {
    json_response(serde_json::to_vec(body).unwrap_or_default())
}

/// Returns an answer with a body in JSON.
pub(crate) fn json_response(body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(axum::http::header::CONTENT_TYPE, json);
    response
}
