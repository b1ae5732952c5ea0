//! What every request passes, on its way in and out: correlation id, the two log events, panics,
//! compression.
//!
//! One plain function instead of a stack of layers, since this is paid on every request. Not here:
//! sockets (`serve`), authorization (`call`).

use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody as _};
use axum::extract::Request;
use axum::http::header::{ALLOW, USER_AGENT};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::response::Response;
use axum::routing::Router;
use futures_util::FutureExt as _;
use tower::Service as _;
use tracing::Instrument as _;

use crate::app::App;
use crate::call::CorrelationId;
use crate::error::{ApiError, Code};

mod compression;
mod correlation;

const CORRELATION_HEADER: HeaderName = HeaderName::from_static("x-correlation-id");
/// The status in the log of a request whose client went away before its answer.
const CLIENT_CLOSED_REQUEST: u16 = 499;

/// The connection that a request came in on.
#[derive(Debug, Clone, Copy, Default)]
pub struct Connection {
    pub peer: Option<IpAddr>,
    /// It is one more than the server takes: only probes are answered.
    pub is_surplus: bool,
}

/// The whole server without sockets.
#[derive(Clone)]
pub struct Edge {
    app: App,
    router: Router,
    ids: Arc<correlation::Ids>,
}

impl Edge {
    pub fn new(app: App) -> Self {
        let router = crate::rest::router().with_state(app.clone());
        Edge { app, router, ids: Arc::new(correlation::Ids::new()) }
    }

    pub fn app(&self) -> &App {
        &self.app
    }

    /// Answers a request; there is always an answer.
    pub async fn call(&self, connection: Connection, mut request: Request) -> Response {
        let id = self.ids.adopt_or_make(request.headers().get(CORRELATION_HEADER));
        request.extensions_mut().insert(CorrelationId(id.clone()));
        request.extensions_mut().insert(connection);
        let span = tracing::error_span!("request", correlation_id = &*id);
        let mut response = self.answer(connection, &id, request).instrument(span).await;
        if let Ok(value) = HeaderValue::from_str(&id) {
            response.headers_mut().insert(CORRELATION_HEADER, value);
        }
        response
    }

    async fn answer(&self, connection: Connection, id: &str, request: Request) -> Response {
        let started = self.app.ports.clock.elapsed();
        let accepts_gzip = compression::is_accepted(request.headers());
        let mut record = Record {
            edge: self,
            started,
            method: request.method().clone(),
            path: request.uri().path().into(),
            is_open: true,
        };
        record.start(connection, &request);
        let outcome = AssertUnwindSafe(self.route(connection, request)).catch_unwind().await;
        let mut response = match outcome {
            Ok(Ok(response)) => response,
            Ok(Err(refusal)) => refusal.into_response(id),
            Err(panic) => {
                tracing::error!(event = "panic", error_message = panic_message(&panic));
                let message = "this request met a fault in the server; the log has it under the correlation id";
                ApiError::new(Code::InternalError, message).into_response(id)
            }
        };
        if accepts_gzip {
            response = compression::compress(response).await;
        }
        record.complete(&response);
        response
    }

    async fn route(&self, connection: Connection, request: Request) -> Result<Response, ApiError> {
        if connection.is_surplus && !request.uri().path().starts_with("/health/") {
            return Err(ApiError::overloaded("every connection is taken: try again later".to_owned()));
        }
        let method = request.method().clone();
        // The router's error type has no values.
        let Ok(response) = self.router.clone().call(request).await;
        match response.headers().get(ALLOW) {
            Some(allow) if response.status() == StatusCode::METHOD_NOT_ALLOWED => {
                Err(ApiError::method_not_allowed(&method, allow))
            }
            _ => Ok(response),
        }
    }
}

/// The two log events of a request. Dropped early, it says that the client went away.
struct Record<'a> {
    edge: &'a Edge,
    started: Duration,
    method: Method,
    path: Box<str>,
    is_open: bool,
}

impl Record<'_> {
    fn start(&self, connection: Connection, request: &Request) {
        let client_ip = connection.peer.map(tracing::field::display);
        let user_agent = request.headers().get(USER_AGENT).and_then(|value| value.to_str().ok());
        tracing::info!(
            target: "terrane::http",
            event = "http_request_started",
            method = self.method.as_str(),
            path = &*self.path,
            client_ip,
            user_agent,
        );
    }

    fn complete(&mut self, response: &Response) {
        self.is_open = false;
        self.log(response.status().as_u16(), response.body().size_hint().exact());
    }

    fn log(&self, status_code: u16, response_size_bytes: Option<u64>) {
        let duration = self.edge.app.ports.clock.elapsed().saturating_sub(self.started);
        tracing::info!(
            target: "terrane::http",
            event = "http_request_completed",
            method = self.method.as_str(),
            path = &*self.path,
            status_code,
            duration_ms = duration.as_secs_f64() * 1_000.0,
            response_size_bytes,
        );
    }
}

impl Drop for Record<'_> {
    fn drop(&mut self) {
        if self.is_open {
            self.log(CLIENT_CLOSED_REQUEST, None);
        }
    }
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic without a message")
}

/// A body that is whole from the start.
pub(crate) fn json_response(body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(axum::http::header::CONTENT_TYPE, json);
    response
}
