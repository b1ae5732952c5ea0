//! The SDK and the plugin contract, which are included in the program.
//!
//! In: a folder. Out: the SDK as a crate outside a workspace, and the contract beside it, where the SDK expects it. The
//! build script embeds the files.

use std::path::Path;

use crate::error::KitError;
use crate::files::{create_folder, write};

mod embedded {
    include!(concat!(env!("OUT_DIR"), "/sdk_files.rs"));
}

/// The folder of the SDK, inside the folder that is written.
pub(crate) const SDK: &str = "sdk";

/// Writes the SDK and the contract into a folder.
pub(crate) fn write_to(folder: &Path) -> Result<(), KitError> {
    let manifest = manifest();
    let readme = readme();
    let own = [("sdk/Cargo.toml", manifest.as_str()), ("README.md", readme.as_str())];
    for (name, text) in embedded::FILES.iter().copied().chain(own) {
        let path = folder.join(name);
        path.parent().map_or(Ok(()), create_folder)?;
        write(&path, text.as_bytes())?;
    }
    Ok(())
}

/// Returns the SDK's manifest without references to the workspace.
fn manifest() -> String {
    format!(
        "[package]\nname = \"terrane-sdk\"\nversion = \"{}\"\nedition = \"2024\"\nrust-version = \"{}\"\n\
         license = \"{}\"\npublish = false\n\n[dependencies]\n{}",
        env!("CARGO_PKG_VERSION"),
        env!("CARGO_PKG_RUST_VERSION"),
        env!("CARGO_PKG_LICENSE"),
        embedded::DEPENDENCIES,
    )
}

fn readme() -> String {
    format!(
        "# Terrane SDK {}\nThe SDK for plugins (`sdk/`) and the plugin contract (`wit/`), copied by `terrane plugin new`. \
         To update them, replace this folder by that of a new plugin of a newer program.\n",
        env!("CARGO_PKG_VERSION"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sdk_is_written_with_its_contract_and_without_a_workspace() {
        let folder = tempfile::tempdir().unwrap();
        write_to(folder.path()).unwrap();
        for file in ["sdk/src/lib.rs", "sdk/src/conformance.rs", "wit/worlds.wit", "wit/deps/types.wit", "LICENSE"] {
            assert!(folder.path().join(file).is_file(), "{file}");
        }
        let manifest = std::fs::read_to_string(folder.path().join("sdk/Cargo.toml")).unwrap();
        let table: toml::Table = manifest.parse().unwrap();
        assert!(!manifest.contains("workspace"), "{manifest}");
        assert!(table["dependencies"]["wit-bindgen"]["version"].is_str(), "{manifest}");
    }

    /// The embedded files must be those of this build, so that a plugin and the program agree on the contract.
    #[test]
    fn embedded_contract_equals_the_workspace_contract() {
        let types = embedded::FILES.iter().find(|(name, _)| *name == "wit/deps/types.wit").unwrap();
        assert_eq!(types.1, include_str!("../../../wit/deps/types.wit"));
    }
}
