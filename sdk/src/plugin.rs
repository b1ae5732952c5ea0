//! The identity of a plugin: constants that the export macro turns into the contract's `describe`.

use crate::bindings::exports::terrane::types::plugin::Info;
use crate::bindings::terrane::types::common::{CallContext, Issue};

/// The contract that this SDK is built from.
pub const API: &str = "terrane:plugins@0.1.0";

/// The identity of a plugin, which must equal the identity in the manifest `plugin.toml`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PluginInfo {
    /// The id: `[a-z][a-z0-9_-]*`, at most 64 bytes.
    pub id: &'static str,
    /// The version, as in Semantic Versioning.
    pub version: &'static str,
    pub display_name: &'static str,
    /// A JSON Schema of the configuration; empty if there is none.
    pub config_schema_json: &'static str,
}

impl PluginInfo {
    /// Returns the identity of a plugin without configuration.
    pub const fn new(id: &'static str, version: &'static str, display_name: &'static str) -> PluginInfo {
        PluginInfo { id, version, display_name, config_schema_json: "" }
    }

    pub const fn with_config_schema(mut self, json: &'static str) -> PluginInfo {
        self.config_schema_json = json;
        self
    }

    #[doc(hidden)]
    pub fn to_wire(self) -> Info {
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
    /// Returns a context for native tests: the epoch, UTC, no configuration.
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

/// Checks the configuration of a plugin that has no settings.
pub(crate) fn takes_no_config(id: &str, config_json: &str) -> Result<(), Vec<Issue>> {
    if config_json.is_empty() || config_json.trim() == "{}" {
        return Ok(());
    }
    Err(vec![Issue { path: String::new(), message: format!("{id} takes no configuration") }])
}

/// Exports a type's implementation of the role `$role` (an interface module of the bindings), and its identity. The
/// macros of the roles call this macro. A crate uses it once, because a component has one role.
#[doc(hidden)]
#[macro_export]
macro_rules! export_role {
    ($plugin:ident, $role:ident::$trait:ident, $export:ident, $bindings:ident) => {
        #[cfg(target_arch = "wasm32")]
        #[allow(unsafe_code, reason = "generated: the component's exported functions")]
        const _: () = {
            // The generated exports run constructors before any code of the plugin.
            #[used]
            #[unsafe(link_section = ".init_array")]
            static REPORT_PANICS: extern "C" fn() = $crate::panic::set_hook;

            impl $crate::bindings::exports::terrane::types::plugin::Guest for $plugin {
                fn describe() -> $crate::Info {
                    <$plugin as $crate::$role::$trait>::INFO.to_wire()
                }

                fn check_config(config_json: String) -> Result<(), Vec<$crate::Issue>> {
                    <$plugin as $crate::$role::$trait>::check_config(&config_json)
                }
            }
    $crate::bindings::export_every_plugin!($plugin with_types_in $crate::bindings);
    $crate::bindings::$bindings::$export!($plugin with_types_in $crate::bindings::$bindings);
        };
    };
}
