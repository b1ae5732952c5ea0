//! Probes. They need no credentials and never wait long.

use std::future::Future;
use std::time::Duration;

use axum::response::Response;
use serde::Serialize;
use terrane_app::projects::ServedStatus;

use crate::app::App;
use crate::call::Call;
use crate::edge::json_response;
use crate::error::{ApiError, Code};
use crate::openapi::{Answer, Doc};
use crate::routes::{Access, Routes};

/// A dependency that takes longer counts as down.
const CHECK_TIMEOUT: Duration = Duration::from_secs(1);
/// What was found a moment ago.
const FRESH: Duration = Duration::from_millis(500);

pub(super) fn register(routes: Routes) -> Routes {
    routes
        .get("/health/live", Access::Public, &LIVE, live)
        .get("/health/ready", Access::Public, &READY, ready)
        .get("/health/status", Access::Public, &STATUS, status)
        .get("/api/v1/health", Access::Public, &HEALTH, status)
}

#[derive(Serialize)]
struct Live {
    status: &'static str,
}

#[derive(Serialize)]
struct Ready {
    status: &'static str,
    checks: ReadyChecks,
}

/// In the order in which they are told.
#[derive(Serialize)]
struct ReadyChecks {
    server: &'static str,
    database: &'static str,
    warehouse: &'static str,
    plugins: &'static str,
}

impl ReadyChecks {
    fn all(&self) -> [(&'static str, &'static str); 4] {
        let ReadyChecks { server, database, warehouse, plugins } = *self;
        [("server", server), ("database", database), ("warehouse", warehouse), ("plugins", plugins)]
    }

    /// A probe's refusal has the error's shape like any other, with the checks beside it.
    fn refuse(&self) -> ApiError {
        let failed: Vec<&str> = self.all().iter().filter(|(_, word)| *word != "ok").map(|(name, _)| *name).collect();
        let code = if self.warehouse == "ok" { Code::Overloaded } else { Code::WarehouseUnavailable };
        let checks: serde_json::Map<_, _> =
            self.all().into_iter().map(|(name, word)| (name.to_owned(), word.into())).collect();
        let message = format!("this server takes no queries now: {}; the log says more", failed.join(", "));
        ApiError::new(code, message).beside("status", "not_ready").beside("checks", checks)
    }
}

#[derive(Serialize)]
struct Status<'a> {
    status: &'static str,
    version: &'a str,
    checks: StatusChecks,
    uptime_seconds: u64,
    project: ProjectStatus,
}

/// How what is served stands to the project's files. Their names are nobody's business here.
#[derive(Serialize)]
struct ProjectStatus {
    /// `ok`; `partial`: what holds of a project with errors is served; `stale`: the files were changed since,
    /// and have errors.
    status: &'static str,
    loaded_at: String,
    refused_at: Option<String>,
    errors: usize,
}

impl ProjectStatus {
    fn of(served: &ServedStatus) -> Self {
        let refused = served.refused.as_ref();
        ProjectStatus {
            status: match (refused, served.errors) {
                (Some(_), _) => "stale",
                (None, 0) => "ok",
                (None, _) => "partial",
            },
            loaded_at: served.loaded_at.to_string(),
            refused_at: refused.map(|refused| refused.at.to_string()),
            errors: refused.map_or(served.errors, |refused| refused.errors),
        }
    }
}

#[derive(Serialize)]
struct StatusChecks {
    database: &'static str,
    /// The cache backend; the embedded one lives and dies with the process.
    redis: &'static str,
    warehouse: &'static str,
    /// The dialect, and what the operator requires.
    plugins: &'static str,
}

async fn live(_: App, _: Call) -> Result<Response, ApiError> {
    Ok(answer(&Live { status: "alive" }))
}

async fn ready(app: App, _: Call) -> Result<Response, ApiError> {
    let (database, warehouse) = check_dependencies(&app).await;
    let checks = ReadyChecks {
        server: if app.is_draining() { "draining" } else { "ok" },
        database: word(database),
        warehouse: word(warehouse),
        plugins: word(has_plugins(&app)),
    };
    if checks.all().iter().any(|(_, word)| *word != "ok") {
        return Err(checks.refuse());
    }
    Ok(answer(&Ready { status: "ready", checks }))
}

/// Whether the dialect and every required plugin can be called. This only reads what is known: the profile
/// was asked for when the project was loaded.
fn has_plugins(app: &App) -> bool {
    let missing = app.ports.plugins.missing();
    if !missing.is_empty() {
        let error_message = format!("required and not in use: {}", missing.join(", "));
        tracing::warn!(event = "health_check_failed", check = "plugins", error_message);
    }
    missing.is_empty() && app.ports.plugins.dialect(app.ports.warehouse.name()).is_ok()
}

async fn status(app: App, _: Call) -> Result<Response, ApiError> {
    let (database, warehouse) = check_dependencies(&app).await;
    let plugins = has_plugins(&app);
    let status = Status {
        status: if database && warehouse && plugins { "healthy" } else { "unhealthy" },
        version: &app.settings.version,
        checks: StatusChecks {
            database: word(database),
            redis: if app.settings.has_cache_url { "not_checked" } else { "ok" },
            warehouse: word(warehouse),
            plugins: word(plugins),
        },
        uptime_seconds: app.uptime().as_secs(),
        project: ProjectStatus::of(&app.ports.projects.served_status()),
    };
    Ok(answer(&status))
}

/// Whether the state database and the warehouse answer. Asked once for all probes within [`FRESH`], so that a
/// flood of them is none for the warehouse, and doesn't keep the balancer's own from its answer.
async fn check_dependencies(app: &App) -> (bool, bool) {
    let mut last = app.dependencies.lock().await;
    let now = app.ports.clock.elapsed();
    if let Some((at, found)) = *last
        && now.saturating_sub(at) < FRESH
    {
        return found;
    }
    let found = tokio::join!(check("database", app.ports.store.ping()), check("warehouse", app.ports.warehouse.ping()));
    *last = Some((app.ports.clock.elapsed(), found));
    found
}

/// Says what failed in the log; callers learn only that it did.
async fn check<E: std::fmt::Display>(name: &str, ping: impl Future<Output = Result<(), E>>) -> bool {
    match tokio::time::timeout(CHECK_TIMEOUT, ping).await {
        Ok(Ok(())) => true,
        Ok(Err(error)) => {
            tracing::warn!(event = "health_check_failed", check = name, error_message = %error);
            false
        }
        Err(_) => {
            tracing::warn!(event = "health_check_failed", check = name, error_message = "no answer in time");
            false
        }
    }
}

fn word(is_ok: bool) -> &'static str {
    if is_ok { "ok" } else { "error" }
}

fn answer(body: &impl Serialize) -> Response {
    // A struct of words and numbers always serialises.
    json_response(serde_json::to_vec(body).unwrap_or_default())
}

const TAG: &str = "operations";
const STATUS_ANSWER: &[Answer] = &[Answer {
    status: 200,
    description: "also where something is down: `status` says it",
    content: &[("application/json", Some("HealthStatus"))],
}];

static LIVE: Doc = Doc::simple(
    "live",
    TAG,
    "The process answers",
    &[Answer { status: 200, description: "alive", content: &[("application/json", Some("Live"))] }],
);

static READY: Doc = Doc {
    id: "ready",
    tag: TAG,
    summary: "Queries can be sent here",
    parameters: &[],
    body: None,
    answers: &[Answer { status: 200, description: "ready", content: &[("application/json", Some("Ready"))] }],
    refusals: &[Code::WarehouseUnavailable],
};

static STATUS: Doc = Doc::simple("status", TAG, "What the server depends on, in detail", STATUS_ANSWER);
static HEALTH: Doc = Doc::simple("health", TAG, "As `/health/status`", STATUS_ANSWER);
