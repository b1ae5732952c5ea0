//! The records of a request: two events of the log, the metrics of its route, its span.
//!
//! In: a request's head, then its response. Out: the first event at once; the other records when the last byte of the
//! response was passed on, or when the client has disconnected. Not here: storing these (`telemetry`).

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::header::USER_AGENT;
use axum::http::{HeaderValue, Method};
use axum::response::Response;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use terrane_app::ports::traces::{Span, SpanKind, TraceContext};

use super::Connection;
use super::call::{OTHER_METHOD, method_name};
use super::compression::MaybeCompressed;
use crate::app::App;
use crate::telemetry::mask;
use crate::telemetry::metrics::EndedRequest;

/// The status in the log of a request whose client disconnected before its answer.
const CLIENT_CLOSED_REQUEST: u16 = 499;
/// The endpoint, in the log and the metrics, of a request that matches no route.
const UNMATCHED: &str = "unmatched";

/// The request's place in its trace, and the caller's own span.
#[derive(Debug, Clone, Copy)]
pub(super) struct TraceScope {
    pub(super) context: TraceContext,
    pub(super) parent: Option<TraceContext>,
}

/// The route of a request and the size of its body, noted while the request is answered.
#[derive(Clone)]
pub(crate) struct Matched(Arc<Shared>);

struct Shared {
    app: App,
    method: &'static str,
    route: OnceLock<&'static str>,
    received_bytes: AtomicU64,
}

impl Matched {
    /// Records the route of the request.
    pub(crate) fn by(request: &Request, path: &'static str) {
        let Some(Matched(shared)) = request.extensions().get::<Matched>() else { return };
        if shared.route.set(path).is_ok()
            && let Some(metrics) = &shared.app.watchers.watch.metrics
        {
            metrics.request_began(shared.method, path);
        }
    }
}

/// Collects the records of one request, and writes them when it is dropped.
pub(super) struct RequestLog {
    app: App,
    span: tracing::Span,
    started: Duration,
    method: Method,
    path: Box<str>,
    connection: Connection,
    user_agent: Option<HeaderValue>,
    trace: Option<TraceScope>,
    matched: Option<Matched>,
    status: u16,
    /// The number of bytes sent; `None` before the response.
    sent_bytes: Option<u64>,
}

impl RequestLog {
    /// Logs the start of a request, and attaches the counters of its route and its body.
    pub(super) fn begin(
        app: &App,
        span: &tracing::Span,
        connection: Connection,
        trace: Option<TraceScope>,
        request: &mut Request,
    ) -> Self {
        let log = RequestLog {
            app: app.clone(),
            span: span.clone(),
            started: app.services.clock.elapsed(),
            method: request.method().clone(),
            path: request.uri().path().into(),
            connection,
            user_agent: trace.and_then(|_| request.headers().get(USER_AGENT).cloned()),
            trace,
            matched: app.watchers.watch.is_on().then(|| Matched(Arc::new(Shared::new(app, request.method())))),
            status: CLIENT_CLOSED_REQUEST,
            sent_bytes: None,
        };
        log.log_start(request);
        if let Some(matched) = &log.matched {
            request.extensions_mut().insert(matched.clone());
            let body = std::mem::take(request.body_mut());
            *request.body_mut() = Body::new(Received { body, matched: matched.clone() });
        }
        log
    }

    /// Moves the log into the body of the response, so that it is dropped when the body has been read.
    pub(super) fn answer(mut self, response: Response<MaybeCompressed<Body>>) -> Response {
        self.status = response.status().as_u16();
        self.sent_bytes = Some(0);
        response.map(|body| Body::new(Sent { body, log: self }))
    }

    fn log_start(&self, request: &Request) {
        let user_agent = request.headers().get(USER_AGENT).and_then(|value| value.to_str().ok());
        tracing::info!(
            target: "terrane::http",
            event = "http_request_started",
            method = self.method.as_str(),
            path = &*self.path,
            client_ip = self.connection.peer.map(tracing::field::display),
            user_agent,
        );
    }

    fn log_end(&self, duration: Duration) {
        self.span.in_scope(|| {
            tracing::info!(
                target: "terrane::http",
                event = "http_request_completed",
                method = self.method.as_str(),
                path = &*self.path,
                status_code = self.status,
                duration_ms = duration.as_secs_f64() * 1_000.0,
                response_size_bytes = self.sent_bytes,
            );
        });
    }

    fn count(&self, shared: &Shared, duration: Duration) {
        let Some(metrics) = &self.app.watchers.watch.metrics else { return };
        let route = shared.route.get().copied();
        if let Some(route) = route {
            metrics.request_left(shared.method, route);
        }
        metrics.request_ended(&EndedRequest {
            method: shared.method,
            endpoint: route.unwrap_or(UNMATCHED),
            status: self.status,
            duration,
            received_bytes: shared.received_bytes.load(Ordering::Relaxed),
            sent_bytes: self.sent_bytes.unwrap_or(0),
        });
    }

    /// Records the span, by OpenTelemetry's conventions for HTTP servers.
    fn trace(&self, scope: TraceScope, shared: &Shared, duration: Duration) {
        let Some(traces) = &self.app.watchers.watch.traces else { return };
        if !scope.context.is_sampled {
            return;
        }
        let method = if shared.method == OTHER_METHOD { "_OTHER" } else { shared.method };
        let mut attributes = vec![
            ("http.request.method", method.into()),
            ("url.scheme", if self.connection.is_secure { "https" } else { "http" }.into()),
            ("url.path", mask(&self.path).as_ref().into()),
            ("http.response.status_code", u64::from(self.status).into()),
            ("http.request.body.size", shared.received_bytes.load(Ordering::Relaxed).into()),
            ("http.response.body.size", self.sent_bytes.unwrap_or(0).into()),
        ];
        if let Some(peer) = self.connection.peer {
            attributes.push(("client.address", peer.to_string().as_str().into()));
        }
        if let Some(agent) = self.user_agent.as_ref().and_then(|value| value.to_str().ok()) {
            attributes.push(("user_agent.original", mask(agent).as_ref().into()));
        }
        let is_failure = self.status >= 500;
        if is_failure {
            attributes.push(("error.type", self.status.to_string().as_str().into()));
        }
        let route = shared.route.get();
        attributes.extend(route.map(|route| ("http.route", (*route).into())));
        let verb = if shared.method == OTHER_METHOD { "HTTP" } else { shared.method };
        traces.record(Span {
            context: scope.context,
            parent: scope.parent.map(|parent| parent.span_id),
            name: route.map_or_else(|| verb.to_owned(), |route| format!("{verb} {route}")),
            kind: SpanKind::Server,
            duration,
            attributes,
            is_failure,
        });
    }
}

impl Drop for RequestLog {
    fn drop(&mut self) {
        let duration = self.app.services.clock.elapsed().saturating_sub(self.started);
        self.log_end(duration);
        let Some(Matched(shared)) = &self.matched else { return };
        self.count(shared, duration);
        if let Some(scope) = self.trace {
            self.trace(scope, shared, duration);
        }
    }
}

impl Shared {
    fn new(app: &App, method: &Method) -> Self {
        Shared {
            app: app.clone(),
            method: method_name(method),
            route: OnceLock::new(),
            received_bytes: AtomicU64::new(0),
        }
    }
}

/// A request's body, whose bytes are counted as they are read.
struct Received {
    body: Body,
    matched: Matched,
}

/// A response's body, whose bytes are counted as they are sent.
struct Sent {
    body: MaybeCompressed<Body>,
    log: RequestLog,
}

type Polled<E> = Poll<Option<Result<Frame<Bytes>, E>>>;

fn length<E>(polled: &Polled<E>) -> u64 {
    match polled {
        Poll::Ready(Some(Ok(frame))) => frame.data_ref().map_or(0, |data| data.len() as u64),
        _ => 0,
    }
}

impl HttpBody for Received {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Polled<axum::Error> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        self.matched.0.received_bytes.fetch_add(length(&polled), Ordering::Relaxed);
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl HttpBody for Sent {
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Polled<axum::BoxError> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        let sent = self.log.sent_bytes.get_or_insert(0);
        *sent += length(&polled);
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
