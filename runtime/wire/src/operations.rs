//! Answers of the routes for operators: health (`runtime/docs/reference/operations.md`, "Health") and links.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::Value as Json;

use crate::error::Code;
use crate::schema;

/// The process is running.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Live {
    pub status: LiveStatus,
}

#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LiveStatus {
    Alive,
}

/// The state of a dependency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckStatus {
    Ok,
    Error,
    Draining,
}

impl CheckStatus {
    pub fn of(is_ok: bool) -> Self {
        if is_ok { CheckStatus::Ok } else { CheckStatus::Error }
    }
}

/// The server takes queries, or not.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Ready {
    pub status: ReadyStatus,
    pub checks: ReadyChecks,
}

/// The body of a 503 of `/health/ready`. A server that is too busy to check itself sends the error alone.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NotReady {
    pub error: NotReadyError,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<ReadyStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checks: Option<ReadyChecks>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct NotReadyError {
    #[schemars(schema_with = "not_ready_codes")]
    pub code: String,
    pub message: String,
    pub correlation_id: String,
}

fn not_ready_codes(_: &mut SchemaGenerator) -> Schema {
    schema::words(&[Code::Overloaded.as_str(), Code::WarehouseUnavailable.as_str()])
}

#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReadyStatus {
    Ready,
    NotReady,
}

#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct ReadyChecks {
    pub server: CheckStatus,
    pub database: CheckStatus,
    pub warehouse: CheckStatus,
    pub plugins: CheckStatus,
}

impl ReadyChecks {
    /// Returns the names of the checks that failed.
    pub fn failed(&self) -> Vec<&'static str> {
        let ReadyChecks { server, database, warehouse, plugins } = *self;
        let checks = [("server", server), ("database", database), ("warehouse", warehouse), ("plugins", plugins)];
        checks.into_iter().filter(|(_, status)| *status != CheckStatus::Ok).map(|(name, _)| name).collect()
    }
}

/// The state of the server and of its dependencies.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HealthStatus<'a> {
    pub status: Health,
    pub version: &'a str,
    pub checks: HealthChecks,
    pub uptime_seconds: u64,
    pub project: ProjectHealth,
}

#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    Healthy,
    Unhealthy,
}

#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct HealthChecks {
    pub database: CheckStatus,
    /// The cache backend.
    pub redis: CheckStatus,
    pub warehouse: CheckStatus,
    /// The dialect, and the plugins that the operator requires.
    pub plugins: CheckStatus,
}

/// The state of the served project. It has no names of files.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ProjectHealth {
    pub status: ProjectStatus,
    pub loaded_at: String,
    pub refused_at: Option<String>,
    pub errors: usize,
}

/// The state of the served project: `partial` if parts with errors were left out, `stale` if a later change of the
/// files has errors.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProjectStatus {
    Ok,
    Partial,
    Stale,
}

/// The addresses to begin with.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Links {
    pub docs: &'static str,
    pub openapi: &'static str,
    pub health: &'static str,
}

/// The description of the interface.
#[derive(Debug, JsonSchema)]
pub struct OpenApi {
    pub openapi: String,
    #[schemars(schema_with = "schema::any")]
    pub info: Json,
    #[schemars(schema_with = "schema::any")]
    pub paths: Json,
}
