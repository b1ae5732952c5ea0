//! The errors of the kit.
//!
//! In: the cause of a failure. Out: a message, and a hint for the author. Not here: problems of a component, which are
//! listed in reports.

use std::io;
use std::path::PathBuf;

use terrane_app::ports::plugins::{PluginFault, PluginRole};
use terrane_plugin_host::manifest::ManifestError;
use terrane_plugin_host::signature::SignatureError;
use terrane_plugin_host::test_bench::CallError;

use crate::toolchain::TARGET;

/// The largest number of field errors that a message lists.
const SHOWN_FIELD_ERRORS: usize = 10;

/// A failure that prevents a command from doing its work.
#[derive(Debug, thiserror::Error)]
pub enum KitError {
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{} is not UTF-8 text", path.display())]
    NotUtf8 { path: PathBuf },
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot create the folder {}: {source}", path.display())]
    CreateFolder { path: PathBuf, source: io::Error },
    #[error("{} {fault}", path.display())]
    Component { path: PathBuf, fault: PluginFault },
    #[error("{} has no role: it exports {}", path.display(), listed(exports))]
    NoRole { path: PathBuf, exports: Vec<String> },
    #[error("{}: {error}", path.display())]
    Manifest { path: PathBuf, error: ManifestError },
    #[error("plugin.toml names no role")]
    ManifestWithoutRole,
    #[error("{}: {message}", path.display())]
    Case { path: PathBuf, message: String },
    #[error("{}: {}", path.display(), call_text(error))]
    Call { path: PathBuf, error: CallError },
    #[error("{} exists and is not empty", path.display())]
    FolderInUse { path: PathBuf },
    #[error("`{name}` is not a plugin name")]
    Name { name: String, role: PluginRole },
    #[error("{} is not Terrane's SDK", path.display())]
    NotTheSdk { path: PathBuf },
    #[error("cannot start cargo: {source}")]
    Cargo { source: io::Error },
    #[error("{} is not a package that cargo can build", path.display())]
    Package { path: PathBuf },
    #[error("cargo did not build {package}; see its output above")]
    Compile { package: String, is_target_missing: bool },
    #[error("cargo did not write {}", path.display())]
    NoModule { path: PathBuf },
    #[error("{} is not a core WebAssembly module", path.display())]
    NotAModule { path: PathBuf },
    #[error("{} cannot be made a component: {message}", path.display())]
    Encode {
        path: PathBuf,
        message: String,
        /// The world of a module from another compiler, or `None` for a crate that uses the SDK.
        world: Option<&'static str>,
    },
    #[error("{}: {message}", path.display())]
    Decode { path: PathBuf, message: String },
    #[error("cannot create a key: {0}")]
    CreateKey(SignatureError),
    #[error("cannot create {}: {source}", path.display())]
    KeyFile { path: PathBuf, source: io::Error },
    #[error("{} can be read by other users", path.display())]
    KeyIsReadable { path: PathBuf },
    #[error("{}: a secret key {error}", path.display())]
    Key { path: PathBuf, error: SignatureError },
}

impl KitError {
    /// Returns an action for the author, if one is known.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            KitError::Read { .. } => "Check the path.",
            KitError::Write { .. } | KitError::CreateFolder { .. } => "Check the folder.",
            KitError::Component { path, .. } if path.is_dir() => {
                "Name a file in the folder. `terrane plugin build` writes components to its folder target/components/."
            }
            KitError::Component { path, .. } if path.exists() => {
                "Build the component with `terrane plugin build`. The file wit/README.md lists the imports that are allowed."
            }
            KitError::Component { .. } => "Check the path. `terrane plugin build` prints where it wrote the component.",
            KitError::NoRole { .. } => "Export the interface of a role, with the SDK's macro or as in wit/worlds.wit.",
            KitError::Manifest { .. } => "Use only the keys of plugin.toml that wit/README.md lists.",
            KitError::Case { .. } => r#"Write a case as `{"call": "detect", "args": {…}, "expect": {…}}`."#,
            KitError::Call { error: CallError::UnknownFunction { .. }, .. } => {
                "Run `terrane plugin inspect FILE` to list the functions."
            }
            KitError::Call { error: CallError::Arguments { .. }, .. } => {
                "Use the names of the contract, which `terrane plugin inspect FILE --wit` prints."
            }
            KitError::FolderInUse { .. } => "Name a new folder. Nothing was changed.",
            KitError::Name { role, .. } => {
                return Some(format!(
                    "Begin with a letter, use at most 64 bytes of a-z, 0-9 and `-`, and choose another name than the role's, as in \
                     `--name my-{role}`."
                ));
            }
            KitError::NotTheSdk { .. } => {
                "Name the folder `sdk` of a clone, whose Cargo.toml has the package `terrane-sdk`."
            }
            KitError::Cargo { .. } => "Install Rust with rustup, and check that cargo is on the PATH.",
            KitError::Package { .. } => {
                "See the output of cargo above. `terrane plugin new` creates a crate that can be built."
            }
            KitError::Compile { is_target_missing: true, .. } => {
                return Some(format!("Install the standard library for {TARGET} with `rustup target add {TARGET}`."));
            }
            KitError::NoModule { .. } => {
                "Write `crate-type = [\"cdylib\", \"rlib\"]` in the section `[lib]` of Cargo.toml."
            }
            KitError::NotAModule { .. } => {
                "Pass the output of a compiler for wasm32 to --module, as in examples/detector-c/build.sh."
            }
            KitError::Encode { world: Some(world), .. } => {
                return Some(format!(
                    "Export the functions of `{world}` in wit/worlds.wit, `cabi_realloc` and the memory."
                ));
            }
            KitError::Encode { world: None, .. } => "Export a role with a macro `terrane_sdk::export_…!`.",
            KitError::KeyFile { source, .. } => match source.kind() {
                io::ErrorKind::NotFound => "Create the folder, or name another file with --out.",
                io::ErrorKind::PermissionDenied => "Make the folder writable, or name another file with --out.",
                _ => "Name a new file with --out.",
            },
            KitError::KeyIsReadable { path } => return Some(format!("Run `chmod 600 {}`.", path.display())),
            KitError::Key { .. } => "Create a key with `terrane plugin keygen`.",
            KitError::NotUtf8 { .. }
            | KitError::ManifestWithoutRole
            | KitError::Call { error: CallError::Fault { .. }, .. }
            | KitError::Compile { is_target_missing: false, .. }
            | KitError::Decode { .. }
            | KitError::CreateKey(_) => return None,
        };
        Some(hint.to_owned())
    }
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

/// Returns the message of a failed call. Each field error and each log line is on a line of its own.
pub fn call_text(error: &CallError) -> String {
    match error {
        CallError::UnknownFunction { exports, .. } => format!("{error}; there are {}", exports.join(", ")),
        CallError::Arguments { field_errors, .. } => {
            let shown = field_errors.iter().take(SHOWN_FIELD_ERRORS);
            let lines = shown.map(|error| format!("\n    {}: {}", error.path, error.message));
            let more = field_errors.len().saturating_sub(SHOWN_FIELD_ERRORS);
            let more = if more > 0 { format!("\n    and {more} more") } else { String::new() };
            format!("{error}{}{more}", lines.collect::<String>())
        }
        CallError::Fault { log, .. } => {
            log.texts().into_iter().fold(error.to_string(), |text, line| format!("{text}\n    {line}"))
        }
    }
}
