//! The plugins of this server, for administrators: their status, and reloading, disabling and enabling them.

use std::sync::Arc;

use axum::response::Response;
use terrane_app::plugins::{Change, Failure};
use terrane_app::ports::plugins::{ChangeError, PluginStatus};
use terrane_wire::plugins::{Plugin, Plugins};
use terrane_wire::{Code, schema};

use crate::app::{App, Scope};
use crate::edge::{ApiError, Call, RouteAccess, Routes, json_answer};
use crate::openapi::{Compression, Content, Doc, Parameter, ResponseDoc};

const ADMIN: RouteAccess = RouteAccess::Scoped(Scope::Admin);

pub(super) fn register(routes: Routes) -> Routes {
    routes
        .get("/api/v1/plugins", ADMIN, &LIST, list)
        .get("/api/v1/plugins/{id}", ADMIN, &ONE, one)
        .post("/api/v1/plugins/{id}/reload", ADMIN, &RELOAD, reload)
        .post("/api/v1/plugins/{id}/disable", ADMIN, &DISABLE, disable)
        .post("/api/v1/plugins/{id}/enable", ADMIN, &ENABLE, enable)
}

async fn list(app: App, _: Call) -> Result<Response, ApiError> {
    Ok(json_answer(&Plugins::new(&inventory(&app).await?)))
}

async fn one(app: App, mut call: Call) -> Result<Response, ApiError> {
    let name = call.path_parameter().await?;
    let plugins = inventory(&app).await?;
    let found = plugins.iter().find(|plugin| plugin.name == name);
    let unknown = || ChangeError::Unknown { known: plugins.iter().map(|plugin| plugin.name.clone()).collect(), name };
    let status = found.ok_or_else(unknown).map_err(|error| refusal(&error))?;
    Ok(json_answer(&Plugin::from(status)))
}

async fn reload(app: App, call: Call) -> Result<Response, ApiError> {
    change(app, call, Change::Reload).await
}

async fn disable(app: App, call: Call) -> Result<Response, ApiError> {
    change(app, call, Change::Disable).await
}

async fn enable(app: App, call: Call) -> Result<Response, ApiError> {
    change(app, call, Change::Enable).await
}

async fn change(app: App, mut call: Call, change: Change) -> Result<Response, ApiError> {
    let name = call.path_parameter().await?;
    app.services.store.ping().await.map_err(|error| ApiError::from_store(&error))?;
    let ports = &app.services;
    let changed = change.make(&ports.plugins, &ports.audit, &ports.access, &name, &call.context).await;
    let status = changed.map_err(|failure| match failure {
        Failure::Change(error) => refusal(&error),
        Failure::Store(error) => ApiError::from_store(&error),
        Failure::Broken => broken(),
    })?;
    Ok(json_answer(&Plugin::from(&status)))
}

/// Returns the status of all plugins. The plugins are searched on a blocking thread, because finding a plugin may
/// compile it.
async fn inventory(app: &App) -> Result<Vec<PluginStatus>, ApiError> {
    let plugins = Arc::clone(&app.services.plugins);
    tokio::task::spawn_blocking(move || plugins.inventory()).await.map_err(|_| broken())
}

fn broken() -> ApiError {
    ApiError::new(Code::InternalError, "the status of the plugins is unavailable; see the server log")
}

fn refusal(error: &ChangeError) -> ApiError {
    match error {
        ChangeError::Unknown { known, .. } => {
            ApiError::new(Code::NotFound, error.to_string()).detail("known", known.clone())
        }
        ChangeError::Already { .. } | ChangeError::Dialect { .. } => ApiError::new(Code::Conflict, error.to_string()),
        ChangeError::Refused { error: fault, .. } | ChangeError::NotEnabled { error: fault, .. } => {
            ApiError::new(Code::Conflict, error.to_string()).component(fault)
        }
    }
}

const TAG: &str = "plugins";
const ID: &[Parameter] = &[Parameter::path("id", "such as `policy-region`")];
const PLUGIN: &[ResponseDoc] = &[ResponseDoc {
    status: 200,
    description: "the current status of the plugin",
    content: &[Content::Json(schema::of::<Plugin>())],
    compression: Compression::Accepted,
}];

static LIST: Doc = Doc::simple(
    "plugins",
    TAG,
    "List all plugins with their states, limits and statistics of calls",
    &[ResponseDoc {
        status: 200,
        description: "the plugins, by id",
        content: &[Content::Json(schema::of::<Plugins>())],
        compression: Compression::Accepted,
    }],
);

static ONE: Doc = Doc {
    id: "plugin",
    tag: TAG,
    summary: "One plugin",
    parameters: ID,
    body: None,
    answers: PLUGIN,
    errors: &[Code::NotFound],
    detail_errors: &[],
};

static RELOAD: Doc = Doc {
    id: "plugin_reload",
    tag: TAG,
    summary: "Reload the file of a plugin; if the new file cannot be used, the old one stays in use",
    parameters: ID,
    body: None,
    answers: PLUGIN,
    errors: &[Code::NotFound, Code::Conflict],
    detail_errors: &[],
};

static DISABLE: Doc = Doc {
    id: "plugin_disable",
    tag: TAG,
    summary: "Disable a plugin; while a required hook is disabled, every query is refused",
    parameters: ID,
    body: None,
    answers: PLUGIN,
    errors: &[Code::NotFound, Code::Conflict],
    detail_errors: &[],
};

static ENABLE: Doc = Doc {
    id: "plugin_enable",
    tag: TAG,
    summary: "Enable a plugin, also after a quarantine",
    parameters: ID,
    body: None,
    answers: PLUGIN,
    errors: &[Code::NotFound, Code::Conflict],
    detail_errors: &[],
};
