//! Plugins as JSON.

use std::time::Duration;

use serde_json::{Value as Json, json};
use terrane_app::ports::plugins::{ExportStatus, PluginState, PluginStatus};

/// For administrators: it names files of this machine.
pub(crate) fn plugin_to_wire(status: &PluginStatus) -> Json {
    let reason = match &status.state {
        PluginState::Refused(error) => Some(error.to_string()),
        _ => None,
    };
    let limits = status.limits;
    json!({
        "id": status.name,
        "role": status.role.as_str(),
        "state": status.state.as_str(),
        "reason": reason,
        "enforcement": if status.is_required { "required" } else { "optional" },
        "mode": if status.is_monitored { "monitor" } else { "protect" },
        "is_listed": status.is_listed,
        "version": status.version,
        "sha256": status.digest,
        "source": status.path.as_ref().map(|path| path.display().to_string()),
        "grants": status.grants,
        "ungranted": status.ungranted,
        "limits": {"time_ms": limits.time_ms, "fuel": limits.fuel, "memory_bytes": limits.memory_bytes},
        "describe_fuel": status.describe_fuel,
        "exports": status.exports.iter().map(export_to_wire).collect::<Vec<_>>(),
        "reload_refused": status.reload_refused.as_ref().map(ToString::to_string),
        "previous": status.previous.as_ref().map(|previous| json!({
            "version": previous.version,
            "sha256": previous.digest,
            "is_draining": previous.is_draining,
        })),
    })
}

fn export_to_wire(export: &ExportStatus) -> Json {
    let milliseconds = |took: Option<Duration>| took.map(|took| took.as_nanos() as f64 / 1e6);
    json!({
        "name": export.name,
        "calls": export.calls,
        "faults": export.faults,
        "refused": export.refused,
        "fuel": export.fuel,
        "p50_ms": milliseconds(export.p50),
        "p99_ms": milliseconds(export.p99),
        "is_open": export.is_open,
    })
}
