//! A dialect: the SQL standard with the differences of one warehouse.

use terrane_sdk::dialect::{Dialect, Op, PlaceholderStyle, Profile, ProfileBuilder};
use terrane_sdk::{CallContext, PluginError, PluginInfo};

/// The component.
pub struct Plugin;

impl Dialect for Plugin {
    const INFO: PluginInfo = PluginInfo::new("dialect-template", "0.1.0", "Template");

    fn profile(_: &CallContext) -> Result<Profile, PluginError> {
        // The value of `warehouse.type` in a project. The component's file is dialect-<this name>.wasm.
        Ok(ProfileBuilder::ansi("template")
            .placeholders(PlaceholderStyle::Question, 32_767)
            .op(Op::StartsWith, "starts_with({0}, {1})")
            .build())
    }
}

terrane_sdk::export_dialect!(Plugin);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profile_has_its_name() {
        assert_eq!(Plugin::profile(&CallContext::for_tests()).unwrap().name, "template");
    }

    #[test]
    fn manifest_matches_the_plugin() {
        terrane_sdk::manifest::check(Plugin::INFO, include_str!("../plugin.toml"));
    }
}
