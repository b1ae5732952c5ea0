//! Compares the manifest beside a plugin, `plugin.toml`, with the plugin's own identity.
//!
//! In: the manifest's text. Out: a panic that names the first missing line, for native tests. The kit embeds the
//! manifest in the component, and the host compares it as well.

use crate::{API, PluginInfo};

/// Checks that the manifest has the plugin's identity.
///
/// ```
/// let info = terrane_sdk::PluginInfo::new("detector-far", "1.0.0", "Far");
/// let manifest = r#"
/// id = "detector-far"
/// version = "1.0.0"
/// display_name = "Far"
/// roles = ["detector"]
/// api = "terrane:plugins@0.1.0"
/// capabilities = []
/// "#;
/// terrane_sdk::manifest::check(info, manifest);
/// ```
///
/// # Panics
/// A line is missing.
pub fn check(info: PluginInfo, toml: &str) {
    for (key, value) in [("id", info.id), ("version", info.version), ("display_name", info.display_name), ("api", API)]
    {
        let line = format!("{key} = \"{value}\"");
        assert!(toml.lines().any(|found| found.trim() == line), "plugin.toml has no line `{line}`");
    }
}
