//! Metrics for Prometheus.

use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use terrane_wire::Code;

use crate::app::{App, MetricsRoute, Scope};
use crate::edge::{ApiError, Call, RouteAccess, Routes};
use crate::openapi::{Compression, Content, Doc, ResponseDoc};
use crate::telemetry::DroppedLines;
use crate::telemetry::metrics::{RuntimeValues, ScrapedValues};

pub(super) fn register(routes: Routes, route: MetricsRoute) -> Routes {
    let access = if route.is_public { RouteAccess::Public } else { RouteAccess::Scoped(Scope::Admin) };
    routes.get(route.path, access, &METRICS, expose)
}

async fn expose(app: App, call: Call) -> Result<Response, ApiError> {
    let Some(metrics) = &app.watchers.watch.metrics else { return Err(ApiError::not_found(call.path())) };
    let body = metrics.expose(&scraped_values(&app)).map_err(|error| {
        tracing::error!(event = "metrics_failed", error_message = %error);
        ApiError::new(Code::InternalError, "the metrics cannot be written; see the server log")
    })?;
    let mut response = Response::new(Body::from(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(metrics.content_type()));
    Ok(response)
}

/// Reads the values of a server. Does not wait.
fn scraped_values(app: &App) -> ScrapedValues {
    let ports = &app.services;
    let (queries_running, queries_queued) = ports.queries.load();
    ScrapedValues {
        uptime: app.uptime(),
        connections: ports.warehouse.connections().map(|found| (ports.warehouse.name().to_owned(), found)),
        queries_running,
        queries_queued,
        subscriptions: ports.live.open(),
        caches: ports.queries.cache_statistics(),
        preaggregations: ports.preaggregations.published(),
        audit_pending: ports.audit_buffer.pending(),
        jobs_pending: ports.jobs.pending(),
        spans: app.watchers.watch.backlog(),
        plugins: ports.plugins.loaded(),
        dropped_lines: app.watchers.dropped_lines.as_ref().map(DroppedLines::count),
        runtime: RuntimeValues::current(),
    }
}

static METRICS: Doc = Doc {
    id: "prometheus_metrics",
    tag: "operations",
    summary: "Metrics for Prometheus",
    parameters: &[],
    body: None,
    answers: &[ResponseDoc {
        status: 200,
        description: "the exposition",
        content: &[Content::Text("text/plain")],
        compression: Compression::Accepted,
    }],
    errors: &[],
    detail_errors: &[],
};
