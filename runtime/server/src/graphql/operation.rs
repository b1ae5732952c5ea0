//! One operation: read, executed, and recorded in the log and the metrics.
//!
//! In: a request and its caller. Out: one response, or a stream of responses. A panic ends its operation with an error,
//! and the connection's other operations go on. Not here: the form in which responses are sent.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::time::Duration;

use futures_util::stream::{self, BoxStream};
use futures_util::{Stream as _, StreamExt as _};
use terrane_app::domain::RequestContext;
use terrane_graphql::{GraphQlContext, Operation, OperationKind, Refusal, Response};
use terrane_wire::graphql::GraphQlRequest;
use terrane_wire::{Code, ErrorBody};

use crate::app::App;
use crate::edge::{ApiError, ConnectedCaller, panic_message};
use crate::telemetry::mask;

/// The maximum length of an operation's name in the log.
const MAX_NAME_CHARS: usize = 100;

/// The transport of an operation, in the words of the log and the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transport {
    Http,
    Events,
    WebSocket,
}

impl Transport {
    fn as_str(self) -> &'static str {
        match self {
            Transport::Http => "http",
            Transport::Events => "sse",
            Transport::WebSocket => "websocket",
        }
    }
}

pub(super) fn read(app: &App, request: GraphQlRequest) -> Result<Operation, Refusal> {
    app.graphql.read(&request.query, request.operation_name.as_deref(), request.variables)
}

/// Returns the response to an operation that is not executed.
pub(super) fn refused(refusal: &Refusal, caller: &ConnectedCaller) -> Response {
    Response::refused(refusal, &caller.context.correlation_id)
}

/// Executes a query or a mutation.
pub(super) async fn execute(
    app: &App,
    caller: &ConnectedCaller,
    operation: Operation,
    transport: Transport,
) -> Response {
    let mut record = Record::begin(app, &operation, transport);
    let response = app.graphql.execute(operation, context(caller)).await;
    record.add(&response);
    response
}

/// Starts an operation of any kind, whose responses come one after the other.
pub(super) fn start(
    app: &App,
    caller: &ConnectedCaller,
    operation: Operation,
    transport: Transport,
) -> Result<BoxStream<'static, Response>, ApiError> {
    let record = Record::begin(app, &operation, transport);
    let span = tracing::error_span!(
        "operation",
        correlation_id = &*caller.context.correlation_id,
        trace_id = caller.context.trace.map(|trace| tracing::field::display(trace.trace_id)),
    );
    let responses = app.graphql.subscribe(operation, context(caller)).map_err(Refusal::into_body)?;
    let correlation_id = caller.context.correlation_id.clone();
    let responses = AssertUnwindSafe(responses).catch_unwind().map(move |outcome| {
        outcome.unwrap_or_else(|panic| {
            tracing::error!(event = "panic", error_message = panic_message(&panic));
            let message = "an internal error occurred; the log contains it under the correlation id";
            let error = ErrorBody::new(Code::InternalError, message);
            Response::refused(&Refusal::new(error), &correlation_id)
        })
    });
    let mut started = Started { responses: responses.boxed(), record };
    Ok(stream::poll_fn(move |context| span.in_scope(|| started.poll_next(context))).boxed())
}

/// A running operation.
struct Started {
    responses: BoxStream<'static, Response>,
    record: Record,
}

impl Started {
    fn poll_next(&mut self, context: &mut std::task::Context<'_>) -> std::task::Poll<Option<Response>> {
        let polled = Pin::new(&mut self.responses).poll_next(context);
        if let std::task::Poll::Ready(Some(response)) = &polled {
            self.record.add(response);
        }
        polled
    }
}

fn context(caller: &ConnectedCaller) -> GraphQlContext {
    GraphQlContext { request: RequestContext::clone(&caller.context), credential: caller.credential.clone() }
}

/// Collects the record of an operation, and writes it when it is dropped.
struct Record {
    app: App,
    kind: OperationKind,
    transport: Transport,
    name: Option<Box<str>>,
    started: Duration,
    responses: u64,
    errors: u64,
}

impl Record {
    fn begin(app: &App, operation: &Operation, transport: Transport) -> Self {
        let kind = operation.kind();
        if let Some(metrics) = &app.watchers.watch.metrics {
            metrics.operation_began(kind_name(kind), transport.as_str());
        }
        let name = operation.name().map(|name| name.chars().take(MAX_NAME_CHARS).collect::<String>());
        Record {
            app: app.clone(),
            kind,
            transport,
            name: name.map(|name| mask(&name).as_ref().into()),
            started: app.services.clock.elapsed(),
            responses: 0,
            errors: 0,
        }
    }

    fn add(&mut self, response: &Response) {
        self.responses += 1;
        self.errors += response.codes().len() as u64;
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let duration = self.app.services.clock.elapsed().saturating_sub(self.started);
        tracing::info!(
            event = "graphql_operation",
            transport = self.transport.as_str(),
            operation_type = kind_name(self.kind),
            operation_name = self.name.as_deref(),
            responses = self.responses,
            errors = self.errors,
            duration_ms = duration.as_secs_f64() * 1_000.0,
        );
        if let Some(metrics) = &self.app.watchers.watch.metrics {
            metrics.operation_ended(kind_name(self.kind), self.transport.as_str(), self.errors > 0);
        }
    }
}

fn kind_name(kind: OperationKind) -> &'static str {
    match kind {
        OperationKind::Query => "query",
        OperationKind::Mutation => "mutation",
        OperationKind::Subscription => "subscription",
    }
}
