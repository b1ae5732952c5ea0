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
            KitError::Read { .. } => "check the path",
            KitError::Write { .. } | KitError::CreateFolder { .. } => "check the folder",
            KitError::Component { path, .. } if path.is_dir() => {
                "that is a folder; `terrane plugin build` writes the component to target/components/ in it"
            }
            KitError::Component { path, .. } if path.exists() => {
                "`terrane plugin build` makes components; wit/README.md says what a component may import"
            }
            KitError::Component { .. } => "check the path; `terrane plugin build` prints where it wrote the component",
            KitError::NoRole { .. } => "export the interface of a role, with the SDK's macro or after wit/worlds.wit",
            KitError::Manifest { .. } => "wit/README.md lists the keys of plugin.toml",
            KitError::Case { .. } => r#"a case is {"call": "detect", "args": {…}, "expect": {…}}"#,
            KitError::Call { error: CallError::UnknownFunction { .. }, .. } => {
                "`terrane plugin inspect FILE` lists the functions"
            }
            KitError::Call { error: CallError::Arguments { .. }, .. } => {
                "the names are those of the contract in wit/; `terrane plugin inspect FILE --wit` prints it"
            }
            KitError::FolderInUse { .. } => "name a new folder; nothing was changed",
            KitError::Name { role, .. } => {
                return Some(format!(
                    "use a-z, 0-9 and `-`, a letter first, at most 64 bytes, and more than the role's own name: \
                     --name my-{role}"
                ));
            }
            KitError::NotTheSdk { .. } => "name the folder `sdk` of a clone: its Cargo.toml says `terrane-sdk`",
            KitError::Cargo { .. } => "install Rust (rustup), and see that cargo is on the PATH",
            KitError::Package { .. } => "see cargo's output above; `terrane plugin new` makes a crate that works",
            KitError::Compile { is_target_missing: true, .. } => {
                return Some(format!("the toolchain has no standard library for {TARGET}: rustup target add {TARGET}"));
            }
            KitError::NoModule { .. } => "a plugin is a library with crate-type = [\"cdylib\", \"rlib\"]",
            KitError::NotAModule { .. } => {
                "--module takes what a compiler made for wasm32, not its source; see examples/detector-c/build.sh"
            }
            KitError::Encode { world: Some(world), .. } => {
                return Some(format!(
                    "it must export the functions of `{world}` in wit/worlds.wit, cabi_realloc and its memory"
                ));
            }
            KitError::Encode { world: None, .. } => "does the crate export a role (`terrane_sdk::export_…!`)?",
            KitError::KeyFile { source, .. } => match source.kind() {
                io::ErrorKind::NotFound => "the folder does not exist: create it, or name another file with --out",
                io::ErrorKind::PermissionDenied => "the folder is not writable: name another file with --out",
                _ => "name a new file with --out",
            },
            KitError::KeyIsReadable { path } => return Some(format!("chmod 600 {}", path.display())),
            KitError::Key { .. } => "`terrane plugin keygen` makes one",
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
