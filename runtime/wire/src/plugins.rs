//! The state of plugins, for administrators only, because it names files of this machine.

use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use terrane_app::ports::plugins::{ExportStatus, PluginRole, PluginState, PluginStatus};

use crate::schema;

/// All plugins.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Plugins<'a> {
    plugins: Vec<Plugin<'a>>,
}

/// A plugin: its state, its limits and its calls.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Plugin<'a> {
    id: &'a str,
    #[schemars(schema_with = "roles")]
    role: &'static str,
    #[schemars(schema_with = "states")]
    state: &'static str,
    /// The reason why the plugin is not in use.
    reason: Option<String>,
    enforcement: Enforcement,
    mode: Mode,
    /// True if the settings list the plugin.
    is_listed: bool,
    version: Option<&'a str>,
    sha256: Option<&'a str>,
    source: Option<String>,
    grants: Vec<&'a str>,
    /// The capabilities that the plugin asks for and the settings do not grant.
    ungranted: Vec<&'a str>,
    limits: PluginLimits,
    describe_fuel: Option<u64>,
    exports: Vec<PluginExport<'a>>,
    /// The reason why the last reload failed.
    reload_refused: Option<String>,
    previous: Option<PreviousPlugin<'a>>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "PluginEnforcement")]
enum Enforcement {
    Required,
    Optional,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "PluginMode")]
enum Mode {
    Protect,
    Monitor,
}

/// The limits of each call.
#[derive(Debug, Serialize, JsonSchema)]
struct PluginLimits {
    time_ms: u64,
    fuel: u64,
    memory_bytes: u64,
}

/// The calls of one exported function.
#[derive(Debug, Serialize, JsonSchema)]
struct PluginExport<'a> {
    name: &'a str,
    calls: u64,
    faults: u64,
    refused: u64,
    fuel: u64,
    p50_ms: Option<f64>,
    p99_ms: Option<f64>,
    /// True if the circuit breaker is open.
    is_open: bool,
}

/// The version that a reload replaced.
#[derive(Debug, Serialize, JsonSchema)]
struct PreviousPlugin<'a> {
    version: &'a str,
    sha256: &'a str,
    is_draining: bool,
}

fn roles(_: &mut SchemaGenerator) -> Schema {
    schema::words(&PluginRole::ALL.map(PluginRole::as_str))
}

fn states(_: &mut SchemaGenerator) -> Schema {
    schema::words(&PluginState::NAMES)
}

impl<'a> Plugins<'a> {
    pub fn new(plugins: &'a [PluginStatus]) -> Self {
        Plugins { plugins: plugins.iter().map(Plugin::from).collect() }
    }
}

impl<'a> From<&'a PluginStatus> for Plugin<'a> {
    fn from(status: &'a PluginStatus) -> Self {
        let reason = match &status.state {
            PluginState::Refused(error) => Some(error.to_string()),
            _ => None,
        };
        let limits = status.limits;
        Plugin {
            id: &status.name,
            role: status.role.as_str(),
            state: status.state.as_str(),
            reason,
            enforcement: if status.is_required { Enforcement::Required } else { Enforcement::Optional },
            mode: if status.is_monitored { Mode::Monitor } else { Mode::Protect },
            is_listed: status.is_listed,
            version: status.version.as_deref(),
            sha256: status.digest.as_deref(),
            source: status.path.as_ref().map(|path| path.display().to_string()),
            grants: status.grants.iter().map(|grant| &**grant).collect(),
            ungranted: status.ungranted.iter().map(|grant| &**grant).collect(),
            limits: PluginLimits { time_ms: limits.time_ms, fuel: limits.fuel, memory_bytes: limits.memory_bytes },
            describe_fuel: status.describe_fuel,
            exports: status.exports.iter().map(PluginExport::from).collect(),
            reload_refused: status.reload_refused.as_ref().map(ToString::to_string),
            previous: status.previous.as_ref().map(|previous| PreviousPlugin {
                version: &previous.version,
                sha256: &previous.digest,
                is_draining: previous.is_draining,
            }),
        }
    }
}

impl<'a> From<&'a ExportStatus> for PluginExport<'a> {
    fn from(export: &'a ExportStatus) -> Self {
        let milliseconds = |duration: Option<Duration>| duration.map(|duration| duration.as_nanos() as f64 / 1e6);
        PluginExport {
            name: export.name,
            calls: export.calls,
            faults: export.faults,
            refused: export.refused,
            fuel: export.fuel,
            p50_ms: milliseconds(export.p50),
            p99_ms: milliseconds(export.p99),
            is_open: export.is_open,
        }
    }
}
