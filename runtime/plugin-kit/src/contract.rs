//! The plugin contract that is included in the program, for core modules whose compiler does not support WIT.
//!
//! In: a core module, and the world of a role. Out: the module with the section from which `wit-component` reads the
//! module's type: the world, and `terrane:diagnostics/panic`, which any component may import. Not here: modules of
//! `wit-bindgen`, which contain that section already.

use wit_component::{StringEncoding, embed_component_metadata};
use wit_parser::{Resolve, UnresolvedPackageGroup};

/// The packages of the contract. Each one comes before those that use it.
const FILES: [(&str, &str); 8] = [
    ("types.wit", include_str!("../../../wit/deps/types.wit")),
    ("host.wit", include_str!("../../../wit/deps/host.wit")),
    ("diagnostics.wit", include_str!("../../../wit/deps/diagnostics.wit")),
    ("dialect.wit", include_str!("../../../wit/deps/dialect.wit")),
    ("anomaly.wit", include_str!("../../../wit/deps/anomaly.wit")),
    ("profiling.wit", include_str!("../../../wit/deps/profiling.wit")),
    ("governance.wit", include_str!("../../../wit/deps/governance.wit")),
    ("worlds.wit", include_str!("../../../wit/worlds.wit")),
];

/// Adds the section for a world of the package `terrane:plugins` to a core module.
///
/// # Errors
/// The bytes are not a core module, or the world is unknown.
pub(crate) fn embed_world(module: &mut Vec<u8>, world: &str) -> Result<(), String> {
    let mut resolve = Resolve::default();
    let mut push = |name: &str, text: &str| {
        let group = UnresolvedPackageGroup::parse(name, text).map_err(|error| format!("{error:?}"))?;
        resolve.push_group(group).map_err(|error| format!("{error:?}"))
    };
    for (name, text) in FILES {
        push(name, text)?;
    }
    let module_world = format!(
        "package terrane:module;\nworld module {{\n  include terrane:plugins/{world}@0.1.0;\n  \
         import terrane:diagnostics/panic@0.1.0;\n}}\n"
    );
    let package = push("module.wit", &module_world)?;
    let world = resolve.select_world(&[package], Some("module")).map_err(|error| format!("{error:#}"))?;
    embed_component_metadata(module, &resolve, world, StringEncoding::UTF8).map_err(|error| format!("{error:#}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_world_can_be_embedded() {
        // An empty core module: the magic bytes and version 1.
        const EMPTY: &[u8] = b"\0asm\x01\0\0\0";
        for world in ["dialect-plugin", "detector-plugin", "check-plugin", "policy-plugin"] {
            let mut module = EMPTY.to_vec();
            embed_world(&mut module, world).unwrap();
            assert!(module.len() > EMPTY.len(), "{world}");
        }
        assert!(embed_world(&mut EMPTY.to_vec(), "other-plugin").is_err());
    }
}
