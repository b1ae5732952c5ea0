//! The port to plugins: validated answers of components, and what is known of them.
//!
//! In: a dialect's name. Out: a checked profile, asked for once and then shared. Errors say which
//! component, what happened, and whose fault it is. Not here: WebAssembly, files, SQL.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use terrane_compiler::sql::profile::{DialectProfile, ProfileError};

/// The components that this server works with.
pub trait Plugins: Send + Sync {
    /// The checked profile of a dialect. The first call for a name finds, compiles and asks its
    /// component, which may take some 100 ms; later ones share the answer.
    ///
    /// # Errors
    /// Where there is no such component, or it isn't fit to be used.
    fn dialect(&self, name: &str) -> Result<Arc<DialectProfile>, PluginError>;

    /// Every component that was looked for so far, by name.
    fn loaded(&self) -> Vec<PluginStatus>;

    /// How many guest functions were called since the start. Queries must not move it.
    fn guest_calls(&self) -> u64;
}

/// One component, as operators see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginStatus {
    /// What it is looked up by, like `dialect-duckdb`.
    pub name: String,
    pub role: PluginRole,
    pub path: Option<PathBuf>,
    /// Lower-case hexadecimal SHA-256 of the file.
    pub digest: Option<String>,
    /// What the component says of itself.
    pub id: Option<String>,
    pub version: Option<String>,
    /// What it took to describe itself, all calls together. The same for the same file and contract.
    pub describe_fuel: Option<u64>,
    pub state: PluginState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PluginRole {
    Dialect,
}

impl fmt::Display for PluginRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PluginRole::Dialect => "dialect",
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PluginState {
    Active,
    /// Not in use, and why.
    Refused(PluginError),
}

/// Why a component can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PluginError {
    #[error("there is no component `{file}`; looked in {}", shown(looked_in))]
    NotFound { file: String, looked_in: Vec<PathBuf> },
    /// A name that no component can have; it was not looked for.
    #[error("`{name}` is not a dialect's name: lower-case letters, digits, `-` and `_`")]
    Name { name: String },
    #[error("component {} {fault}", path.display())]
    Faulted { path: PathBuf, fault: PluginFault },
}

fn shown(paths: &[PathBuf]) -> String {
    let paths: Vec<String> = paths.iter().map(|p| p.display().to_string()).collect();
    if paths.is_empty() { "no folder, since none is set".to_owned() } else { paths.join(", ") }
}

/// What was wrong with a component, or with a call of it. `call` is the contract's function.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PluginFault {
    #[error("could not be read: {message}")]
    Unreadable { message: String },
    #[error("is {bytes} bytes long, the limit is {limit}")]
    TooLarge { bytes: u64, limit: u64 },
    #[error("is {found}, not a WebAssembly component")]
    NotAComponent { found: FileKind },
    #[error("is damaged or uses what this host does not run: {message}")]
    Malformed { message: String },
    #[error("imports `{import}`, which is not granted")]
    ForeignImport { import: String },
    #[error("lacks the export `{missing}` of its role; it exports {}", listed(exports))]
    WrongWorld { missing: String, exports: Vec<String> },
    #[error("was built for {found}; this host speaks {supported}")]
    WrongVersion { found: String, supported: String },
    /// The version is this host's, and its types are not: the contract changed before it was released.
    #[error("was built for another state of {} than this host: {message}", listed(contract))]
    WrongTypes { contract: Vec<String>, message: String },
    #[error("reached its limit of {limit} in `{call}`")]
    Limit { call: &'static str, limit: Limit },
    #[error("trapped in `{call}`: {message}")]
    Trapped { call: &'static str, message: String },
    /// The answer is not what the contract's types allow.
    #[error("gave an answer in `{call}` that breaks the contract: {message}")]
    Answer { call: &'static str, message: String },
    /// The component itself said no.
    #[error("refused `{call}`: {message}")]
    Declined { call: &'static str, message: String },
    #[error("describes the dialect `{found}` and not `{asked}`")]
    WrongDialect { asked: String, found: String },
    #[error("describes a dialect that can't be used: {}", profile_errors(.0))]
    Profile(Vec<ProfileError>),
    #[error("could not be run: {message}")]
    Host { message: String },
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

/// The first few, so that a profile with hundreds of faults still makes a readable message.
fn profile_errors(errors: &[ProfileError]) -> String {
    const SHOWN: usize = 5;
    let mut text: Vec<String> = errors.iter().take(SHOWN).map(ToString::to_string).collect();
    if errors.len() > SHOWN {
        text.push(format!("and {} more", errors.len() - SHOWN));
    }
    text.join("; ")
}

impl PluginFault {
    pub fn blame(&self) -> Blame {
        match self {
            PluginFault::Unreadable { .. } | PluginFault::Host { .. } => Blame::Host,
            _ => Blame::Guest,
        }
    }
}

/// Whose fault it is: the component's, or this server's and its surroundings'.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blame {
    Guest,
    Host,
}

/// What a file turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// Native code of some engine: never loaded, whatever its name.
    Precompiled,
    CoreModule,
    Unknown,
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FileKind::Precompiled => "a precompiled artefact",
            FileKind::CoreModule => "a core WebAssembly module",
            FileKind::Unknown => "a file of another kind",
        })
    }
}

/// The bounds that a call can run into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Instructions, counted.
    Fuel,
    Time,
    Memory,
    Tables,
    Instances,
    Stack,
    /// Bytes that a call hands over to the host.
    Transfer,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Limit::Fuel => "fuel",
            Limit::Time => "time",
            Limit::Memory => "memory",
            Limit::Tables => "table elements",
            Limit::Instances => "instances",
            Limit::Stack => "stack",
            Limit::Transfer => "transferred bytes",
        })
    }
}
