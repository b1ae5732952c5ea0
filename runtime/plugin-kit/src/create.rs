//! Creates the crate of a new plugin from the template of its role.
//!
//! In: a folder, a role, and optionally a name. Out: a crate that builds and passes its tests in any folder. The
//! templates are crates of this workspace (`sdk/templates`), which are built and tested with everything else. Their
//! names and the path of the SDK are replaced. The SDK and the contract are copied into `vendor/terrane`, unless the
//! author names the SDK of a clone.

use std::fs;
use std::path::{Path, PathBuf};

use terrane_app::ports::plugins::PluginRole;

use crate::error::KitError;
use crate::files::{create_folder, write};
use crate::sdk;

const MAX_NAME_BYTES: usize = 64;
/// The folder of a new crate that contains the SDK and the contract.
const VENDORED: &str = "vendor/terrane";

/// The parameters of a plugin to create.
#[derive(Debug, Clone)]
pub struct NewPlugin {
    /// A folder that does not exist yet, or is empty.
    pub folder: PathBuf,
    pub role: PluginRole,
    /// The name, or `None` to use the folder's name. If the name lacks the role's prefix, the prefix is added.
    pub name: Option<String>,
    /// The folder of the SDK in a clone of Terrane, or `None` to copy the SDK that is included in the program.
    pub sdk: Option<PathBuf>,
}

/// A crate that was created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreatedPlugin {
    /// The id of the plugin, which is also the name of the package.
    pub id: String,
    pub folder: PathBuf,
}

struct Template {
    /// The name of the template, which is replaced by the plugin's id.
    name: &'static str,
    files: &'static [(&'static str, &'static str)],
}

macro_rules! template {
    ($role:literal, $name:literal, $case:literal) => {
        Template {
            name: $name,
            files: &[
                ("Cargo.toml", include_str!(concat!("../../../sdk/templates/", $role, "/Cargo.toml"))),
                ("plugin.toml", include_str!(concat!("../../../sdk/templates/", $role, "/plugin.toml"))),
                ("README.md", include_str!(concat!("../../../sdk/templates/", $role, "/README.md"))),
                ("src/lib.rs", include_str!(concat!("../../../sdk/templates/", $role, "/src/lib.rs"))),
                (concat!("cases/", $case), include_str!(concat!("../../../sdk/templates/", $role, "/cases/", $case))),
            ],
        }
    };
}

const DIALECT: Template = template!("dialect", "dialect-template", "quotes.json");
const DETECTOR: Template = template!("detector", "detector-template", "one-outlier.json");
const CHECK: Template = template!("check", "check-template", "two-missing.json");
const GOVERNANCE: Template = template!("governance", "hook-template", "own-regions.json");

/// The manifest entries that make the crate a workspace of its own in any folder, and make the component small. With
/// these entries, the component cannot unwind after a panic.
const WORKSPACE: &str = "
[workspace]

[profile.dev]
opt-level = 1
debug = false
strip = true

[profile.release]
opt-level = 3
lto = \"fat\"
codegen-units = 1
panic = \"abort\"
strip = true
";
const IGNORED: &str = "/target\n";
const SDK_MANIFEST: &str = "name = \"terrane-sdk\"";

/// Creates the crate of a plugin.
///
/// # Errors
/// The folder is in use, the name is not valid, `sdk` is not the SDK, or a file cannot be written.
pub fn create(plugin: &NewPlugin) -> Result<CreatedPlugin, KitError> {
    let folder = &plugin.folder;
    let id = id(plugin)?;
    if fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) || folder.is_file() {
        return Err(KitError::FolderInUse { path: folder.clone() });
    }
    let sdk_of_a_clone = plugin.sdk.as_deref().map(sdk_folder).transpose()?;
    create_folder(folder)?;
    let sdk = match &sdk_of_a_clone {
        Some(sdk) => relative(folder, sdk),
        None => {
            sdk::write_to(&folder.join(VENDORED))?;
            Path::new(VENDORED).join(sdk::SDK)
        }
    };
    let template = match plugin.role {
        PluginRole::Dialect => DIALECT,
        PluginRole::Detector => DETECTOR,
        PluginRole::Check => CHECK,
        PluginRole::Governance => GOVERNANCE,
    };
    for (file, text) in template.files {
        let path = folder.join(file);
        path.parent().map_or(Ok(()), create_folder)?;
        let mut text = renamed(&template, text, &id);
        if *file == "Cargo.toml" {
            let written = toml::Value::String(sdk.display().to_string());
            text = text.replace("path = \"../..\"", &format!("path = {written}")) + WORKSPACE;
        }
        write(&path, text.as_bytes())?;
    }
    write(&folder.join(".gitignore"), IGNORED.as_bytes())?;
    Ok(CreatedPlugin { id, folder: folder.clone() })
}

/// Returns the plugin's id: the name with the prefix of the role. Servers find components of a role by this prefix;
/// hooks have none.
fn id(plugin: &NewPlugin) -> Result<String, KitError> {
    let folder_name = || plugin.folder.file_name().map(|name| name.to_string_lossy().into_owned());
    let written = plugin.name.clone().or_else(folder_name).unwrap_or_default();
    let name = written.replace('_', "-");
    let id = match plugin.role {
        PluginRole::Governance => name,
        role => with_prefix(&name, role.as_str()),
    };
    let own = if plugin.role == PluginRole::Governance { &*id } else { id.split_once('-').map_or("", |(_, own)| own) };
    let is_letter = |b: u8| b.is_ascii_lowercase();
    let is_name = own.bytes().next().is_some_and(is_letter)
        && own.bytes().all(|b| is_letter(b) || b.is_ascii_digit() || b == b'-')
        && id.len() <= MAX_NAME_BYTES;
    if is_name { Ok(id) } else { Err(KitError::Name { name: written, role: plugin.role }) }
}

/// Adds the role as a prefix to a name. If the name ends with the role, it is moved: `my-detector` becomes
/// `detector-my`.
fn with_prefix(name: &str, role: &str) -> String {
    let own = match name.strip_prefix(role) {
        Some(rest) if rest.is_empty() || rest.starts_with('-') => rest,
        _ => name.strip_suffix(role).filter(|own| own.ends_with('-')).unwrap_or(name),
    };
    format!("{role}-{}", own.trim_matches('-'))
}

/// Replaces the names of the template with those of the plugin.
fn renamed(template: &Template, text: &str, id: &str) -> String {
    // The detector `detector-template` has the kind `template`, and `detector-my` gets the kind `my`. A hook has no
    // kind.
    let has_kind = template.name != GOVERNANCE.name;
    let kind = id.split_once('-').filter(|_| has_kind).map_or(id, |(_, kind)| kind);
    let title: String = kind.split('-').map(capitalized).collect::<Vec<_>>().join(" ");
    text.replace(template.name, id)
        .replace("\"Template\"", &format!("\"{title}\""))
        .replace("\"template\"", &format!("\"{}\"", kind.replace('-', "_")))
        .replace("`template`", &format!("`{}`", kind.replace('-', "_")))
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + letters.as_str())
}

/// Returns the absolute path of the SDK in a clone, after checking that the folder contains the SDK.
fn sdk_folder(folder: &Path) -> Result<PathBuf, KitError> {
    let is_sdk = |folder: &PathBuf| {
        fs::read_to_string(folder.join("Cargo.toml")).is_ok_and(|manifest| manifest.contains(SDK_MANIFEST))
    };
    let absolute = folder.canonicalize().ok().filter(is_sdk);
    absolute.ok_or_else(|| KitError::NotTheSdk { path: folder.to_owned() })
}

/// Returns the path of the SDK. It is relative to the new folder if both are in one clone, and otherwise absolute.
fn relative(folder: &Path, sdk: &Path) -> PathBuf {
    let (Ok(folder), Some(root)) = (folder.canonicalize(), sdk.parent()) else { return sdk.to_owned() };
    match folder.strip_prefix(root) {
        Ok(inside) => inside.components().map(|_| "..").chain(["sdk"]).collect(),
        Err(_) => sdk.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(role: PluginRole, name: &str) -> Result<String, KitError> {
        id(&NewPlugin { folder: name.into(), role, name: None, sdk: None })
    }

    #[test]
    fn prefix_of_the_role_is_added() {
        for (role, name, expected) in [
            (PluginRole::Detector, "mydet", "detector-mydet"),
            (PluginRole::Detector, "detector-mydet", "detector-mydet"),
            (PluginRole::Detector, "my-detector", "detector-my"),
            (PluginRole::Detector, "my_det", "detector-my-det"),
            (PluginRole::Detector, "detectors", "detector-detectors"),
            (PluginRole::Check, "detector-x", "check-detector-x"),
            (PluginRole::Dialect, "quack", "dialect-quack"),
            (PluginRole::Governance, "own-regions", "own-regions"),
        ] {
            assert_eq!(named(role, name).unwrap(), expected);
        }
    }

    #[test]
    fn names_without_a_part_of_their_own_are_rejected() {
        for (role, name) in [
            (PluginRole::Detector, "detector"),
            (PluginRole::Detector, "detector-"),
            (PluginRole::Check, "Über"),
            (PluginRole::Governance, "9-lives"),
            (PluginRole::Governance, ""),
            (PluginRole::Dialect, &"x".repeat(60)),
        ] {
            assert!(matches!(named(role, name), Err(KitError::Name { .. })), "{name}");
        }
    }

    #[test]
    fn crate_has_its_own_copy_of_the_sdk() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("mydet");
        let plugin = NewPlugin { folder: folder.clone(), role: PluginRole::Detector, name: None, sdk: None };
        assert_eq!(create(&plugin).unwrap().id, "detector-mydet");
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        assert!(manifest.contains("terrane-sdk = { path = \"vendor/terrane/sdk\" }"), "{manifest}");
        assert!(folder.join("vendor/terrane/sdk/src/lib.rs").is_file());
        assert!(folder.join("vendor/terrane/wit/deps/anomaly.wit").is_file());
        assert!(matches!(create(&plugin), Err(KitError::FolderInUse { .. })));
    }

    #[test]
    fn folder_that_is_not_the_sdk_is_rejected_and_nothing_is_written() {
        let scratch = tempfile::tempdir().unwrap();
        let (folder, sdk) = (scratch.path().join("new"), Some(scratch.path().to_owned()));
        let plugin = NewPlugin { folder: folder.clone(), role: PluginRole::Check, name: None, sdk };
        assert!(matches!(create(&plugin), Err(KitError::NotTheSdk { .. })));
        assert!(!folder.exists());
    }
}
