//! Who a plugin is: constants that the export macro turns into the contract's `describe`.

use crate::bindings::exports::terrane::types::plugin::Info;
use crate::bindings::terrane::types::common::CallContext;

/// The contract that this SDK is built from.
pub const API: &str = "terrane:plugins@0.1.0";

/// Identity of a plugin; the same as in its `plugin.toml`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PluginInfo {
    /// `[a-z][a-z0-9_-]*`, at most 64 bytes.
    pub id: &'static str,
    /// Semantic version.
    pub version: &'static str,
    pub display_name: &'static str,
    /// JSON Schema of the configuration; empty where there is none.
    pub config_schema_json: &'static str,
}

impl PluginInfo {
    /// A plugin without configuration.
    pub const fn new(id: &'static str, version: &'static str, display_name: &'static str) -> PluginInfo {
        PluginInfo { id, version, display_name, config_schema_json: "" }
    }

    pub const fn with_config_schema(mut self, json: &'static str) -> PluginInfo {
        self.config_schema_json = json;
        self
    }

    pub(crate) fn to_wire(self) -> Info {
        Info {
            id: self.id.to_owned(),
            version: self.version.to_owned(),
            display_name: self.display_name.to_owned(),
            api: API.to_owned(),
            config_schema_json: self.config_schema_json.to_owned(),
            extra: Vec::new(),
        }
    }
}

impl CallContext {
    /// A context for native tests: the epoch, UTC, no configuration.
    pub fn for_tests() -> CallContext {
        CallContext {
            now_unix_ms: 0,
            time_zone: "UTC".to_owned(),
            correlation_id: "test".to_owned(),
            budget_ms: 100,
            config_json: String::new(),
            extra: Vec::new(),
        }
    }
}
