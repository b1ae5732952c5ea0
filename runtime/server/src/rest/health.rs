//! Probes. They need no credentials and answer within a second.

use std::future::Future;
use std::time::Duration;

use axum::response::Response;
use terrane_app::projects::ServedStatus;
use terrane_wire::operations::{
    CheckStatus, Health, HealthChecks, HealthStatus, Live, LiveStatus, NotReady, ProjectHealth, ProjectStatus, Ready,
    ReadyChecks, ReadyStatus,
};
use terrane_wire::{Code, schema};

use crate::app::App;
use crate::edge::{ApiError, Call, RouteAccess, Routes, json_answer, to_json};
use crate::openapi::{Compression, Content, Doc, ResponseDoc};

/// The longest time of a check. A dependency that takes longer counts as down.
const CHECK_TIMEOUT: Duration = Duration::from_secs(1);
/// The time for which a result is reused.
const FRESH: Duration = Duration::from_millis(500);

pub(super) fn register(routes: Routes) -> Routes {
    routes
        .get("/health/live", RouteAccess::Public, &LIVE, live)
        .get("/health/ready", RouteAccess::Public, &READY, ready)
        .get("/health/status", RouteAccess::Public, &STATUS, status)
        .get("/api/v1/health", RouteAccess::Public, &HEALTH, status)
}

/// Returns the error of a server that is not ready. Its message names the checks that failed; the body has all checks
/// and the status, beside the error.
fn not_ready(checks: &ReadyChecks) -> ApiError {
    let code = if checks.warehouse == CheckStatus::Ok { Code::Overloaded } else { Code::WarehouseUnavailable };
    let message = format!("the server is not ready: {}; see the server log for the causes", checks.failed().join(", "));
    ApiError::new(code, message).beside("status", to_json(&ReadyStatus::NotReady)).beside("checks", to_json(checks))
}

fn project_health(served: &ServedStatus) -> ProjectHealth {
    let refused = served.refused.as_ref();
    ProjectHealth {
        status: match (refused, served.errors) {
            (Some(_), _) => ProjectStatus::Stale,
            (None, 0) => ProjectStatus::Ok,
            (None, _) => ProjectStatus::Partial,
        },
        loaded_at: served.loaded_at.to_string(),
        refused_at: refused.map(|refused| refused.at.to_string()),
        errors: refused.map_or(served.errors, |refused| refused.errors),
    }
}

async fn live(_: App, _: Call) -> Result<Response, ApiError> {
    Ok(json_answer(&Live { status: LiveStatus::Alive }))
}

async fn ready(app: App, _: Call) -> Result<Response, ApiError> {
    let (database, warehouse) = check_dependencies(&app).await;
    let checks = ReadyChecks {
        server: if app.is_draining() { CheckStatus::Draining } else { CheckStatus::Ok },
        database: CheckStatus::of(database),
        warehouse: CheckStatus::of(warehouse),
        plugins: CheckStatus::of(has_plugins(&app)),
    };
    if !checks.failed().is_empty() {
        return Err(not_ready(&checks));
    }
    Ok(json_answer(&Ready { status: ReadyStatus::Ready, checks }))
}

/// Returns whether the dialect and every required plugin can be called. Uses recorded states only, because the profile
/// of the dialect was read when the project was loaded.
fn has_plugins(app: &App) -> bool {
    let missing = app.services.plugins.missing();
    if !missing.is_empty() {
        let error_message = format!("required and not in use: {}", missing.join(", "));
        tracing::warn!(event = "health_check_failed", check = "plugins", error_message);
    }
    missing.is_empty() && app.services.plugins.dialect(app.services.warehouse.name()).is_ok()
}

/// Returns whether every tier of the result cache answers. A failure does not make the server unhealthy, because it
/// answers queries without the cache too.
async fn has_cache(app: &App) -> bool {
    for tier in app.services.queries.cache_tiers() {
        if !tier.ping().await {
            return false;
        }
    }
    true
}

async fn status(app: App, _: Call) -> Result<Response, ApiError> {
    let (database, warehouse) = check_dependencies(&app).await;
    let plugins = has_plugins(&app);
    let status = HealthStatus {
        status: if database && warehouse && plugins { Health::Healthy } else { Health::Unhealthy },
        version: &app.settings.version,
        checks: HealthChecks {
            database: CheckStatus::of(database),
            redis: CheckStatus::of(has_cache(&app).await),
            warehouse: CheckStatus::of(warehouse),
            plugins: CheckStatus::of(plugins),
        },
        uptime_seconds: app.uptime().as_secs(),
        project: project_health(&app.services.projects.served_status()),
    };
    Ok(json_answer(&status))
}

/// Returns whether the state database and the warehouse answer. One check serves all probes within [`FRESH`], so
/// that a flood of probes neither floods the warehouse nor delays the probes of the load balancer.
async fn check_dependencies(app: &App) -> (bool, bool) {
    let mut last = app.dependencies.lock().await;
    let now = app.services.clock.elapsed();
    if let Some((at, found)) = *last
        && now.saturating_sub(at) < FRESH
    {
        return found;
    }
    let found =
        tokio::join!(check("database", app.services.store.ping()), check("warehouse", app.services.warehouse.ping()));
    *last = Some((app.services.clock.elapsed(), found));
    found
}

/// Checks one dependency, and logs why it failed. The answer names no cause.
async fn check<E: std::fmt::Display>(name: &str, ping: impl Future<Output = Result<(), E>>) -> bool {
    match tokio::time::timeout(CHECK_TIMEOUT, ping).await {
        Ok(Ok(())) => true,
        Ok(Err(error)) => {
            tracing::warn!(event = "health_check_failed", check = name, error_message = %error);
            false
        }
        Err(_) => {
            tracing::warn!(event = "health_check_failed", check = name, error_message = "no response in time");
            false
        }
    }
}

const TAG: &str = "operations";
const STATUS_ANSWER: &[ResponseDoc] = &[ResponseDoc {
    status: 200,
    description: "the state of each dependency; `status` also reports failures, and the HTTP status is always 200",
    content: &[Content::Json(schema::of::<HealthStatus>())],
    compression: Compression::Accepted,
}];

static LIVE: Doc = Doc::simple(
    "live",
    TAG,
    "Check that the process answers",
    &[ResponseDoc {
        status: 200,
        description: "alive",
        content: &[Content::Json(schema::of::<Live>())],
        compression: Compression::Accepted,
    }],
);

static READY: Doc = Doc {
    id: "ready",
    tag: TAG,
    summary: "Check whether the server is ready for queries",
    parameters: &[],
    body: None,
    answers: &[
        ResponseDoc {
            status: 200,
            description: "ready",
            content: &[Content::Json(schema::of::<Ready>())],
            compression: Compression::Accepted,
        },
        ResponseDoc {
            status: 503,
            description: "OVERLOADED, WAREHOUSE_UNAVAILABLE",
            content: &[Content::Json(schema::of::<NotReady>())],
            compression: Compression::Accepted,
        },
    ],
    errors: &[Code::WarehouseUnavailable, Code::Overloaded],
    detail_errors: &[],
};

static STATUS: Doc = Doc::simple("status", TAG, "Report the state of each dependency of the server", STATUS_ANSWER);
static HEALTH: Doc = Doc::simple("health", TAG, "As `/health/status`", STATUS_ANSWER);
