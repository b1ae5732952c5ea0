//! The port to plugins: validated answers of components, their status, and the operator's actions while the server
//! runs.
//!
//! In: a dialect's name, or a plugin's id. Out: a checked profile, which is read once and then shared; statuses. Errors
//! name the component, the failure, and the side at fault. Not here: WebAssembly, files, SQL.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use terrane_compiler::sql::dialect_profile::{DialectProfile, ProfileError};

/// The components that this server uses.
pub trait Plugins: Send + Sync {
    /// Returns the checked profile of a dialect. The first call for a name loads its component and calls it, which may
    /// take about 100 ms; later calls share the result.
    ///
    /// # Errors
    /// The component does not exist or cannot be used.
    fn dialect(&self, name: &str) -> Result<Arc<DialectProfile>, PluginError>;

    /// Returns the status of every component that has been used since the start, by name.
    fn loaded(&self) -> Vec<PluginStatus>;

    /// Returns the status of all plugins. The first call also loads the unused components in the component folders,
    /// which may take about 100 ms for each.
    fn inventory(&self) -> Vec<PluginStatus>;

    /// Returns the names of required plugins that cannot be called now. The call is fast.
    fn missing(&self) -> Vec<String>;

    /// Loads a plugin's file again. If the new component passes its checks, it replaces the served one; running calls
    /// finish with the old component. May take about 100 ms.
    ///
    /// # Errors
    /// Returns the fault of the new component. The old component then stays.
    fn reload(&self, name: &str) -> Result<PluginStatus, ChangeError>;

    /// Disables a plugin, which is then not called until it is enabled. Queries that need a required hook are refused.
    ///
    /// # Errors
    /// The plugin does not exist, or its state does not allow the change.
    fn disable(&self, name: &str) -> Result<PluginStatus, ChangeError>;

    /// Enables a plugin and resets its circuit breakers. Does not reload the file.
    ///
    /// # Errors
    /// The plugin does not exist, or its state does not allow the change.
    fn enable(&self, name: &str) -> Result<PluginStatus, ChangeError>;

    /// Returns the number of calls of guest functions since the start. Queries without plugins must not increase it.
    fn guest_calls(&self) -> u64;
}

/// One component, as operators see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginStatus {
    /// The name under which the component is looked up, such as `dialect-duckdb`.
    pub name: String,
    pub role: PluginRole,
    pub path: Option<PathBuf>,
    /// The SHA-256 of the file, in lower-case hexadecimal.
    pub digest: Option<String>,
    /// The id that the component states about itself.
    pub id: Option<String>,
    pub version: Option<String>,
    /// The fuel that the calls at load used. It is always the same for the same file and contract.
    pub describe_fuel: Option<u64>,
    pub state: PluginState,
    /// True if requests are refused while the plugin, which decides about them, is unavailable.
    pub is_required: bool,
    /// True if the plugin's responses are logged but not enforced.
    pub is_monitored: bool,
    /// True if the operator names the plugin; false if it was found in a component folder.
    pub is_listed: bool,
    pub grants: Vec<&'static str>,
    /// The capabilities that the component requests beyond its grants.
    pub ungranted: Vec<&'static str>,
    pub limits: PluginLimits,
    /// The functions that were called since the component was loaded, by name.
    pub exports: Vec<ExportStatus>,
    /// The reason why the last reload was refused; `None` if it succeeded or the plugin was never reloaded.
    pub reload_refused: Option<PluginError>,
    /// The version before the last reload.
    pub previous: Option<PreviousPlugin>,
}

impl PluginStatus {
    /// Returns the status of a component if only its name and role are known.
    pub fn unknown(name: impl Into<String>, role: PluginRole) -> PluginStatus {
        PluginStatus {
            name: name.into(),
            role,
            path: None,
            digest: None,
            id: None,
            version: None,
            describe_fuel: None,
            state: PluginState::Active,
            is_required: false,
            is_monitored: false,
            is_listed: false,
            grants: Vec::new(),
            ungranted: Vec::new(),
            limits: PluginLimits::default(),
            exports: Vec::new(),
            reload_refused: None,
            previous: None,
        }
    }
}

/// Limits that apply to each plugin call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PluginLimits {
    pub time_ms: u64,
    pub fuel: u64,
    pub memory_bytes: u64,
}

/// The statistics of one function of a plugin, since the plugin was loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportStatus {
    /// The name of the function in the contract, such as `on-query`.
    pub name: &'static str,
    pub calls: u64,
    pub faults: u64,
    /// The number of calls that were refused because the circuit breaker was open.
    pub refused: u64,
    pub fuel: u64,
    /// The median duration of a call. It is too high by at most 9 %.
    pub p50: Option<Duration>,
    pub p99: Option<Duration>,
    /// True if the circuit breaker is open because the function failed too often.
    pub is_open: bool,
}

/// A plugin that a reload has replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviousPlugin {
    pub version: String,
    pub digest: String,
    /// True if calls of the replaced plugin are still running.
    pub is_draining: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PluginRole {
    Dialect,
    Detector,
    Check,
    Governance,
}

impl PluginRole {
    pub const ALL: [PluginRole; 4] =
        [PluginRole::Dialect, PluginRole::Detector, PluginRole::Check, PluginRole::Governance];

    /// Returns the name of the role in settings and manifests.
    pub fn as_str(self) -> &'static str {
        match self {
            PluginRole::Dialect => "dialect",
            PluginRole::Detector => "detector",
            PluginRole::Check => "check",
            PluginRole::Governance => "governance",
        }
    }

    pub fn by_name(name: &str) -> Option<PluginRole> {
        PluginRole::ALL.into_iter().find(|role| role.as_str() == name)
    }
}

impl fmt::Display for PluginRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PluginState {
    Active,
    /// One of the plugin's functions failed too often, so its circuit breaker is open.
    Degraded,
    /// A circuit breaker of the plugin has opened too often. An administrator has to reload or enable the plugin.
    Quarantined,
    /// An administrator disabled the plugin.
    Disabled,
    /// The plugin cannot be used, for this reason.
    Refused(PluginError),
}

impl PluginState {
    pub const NAMES: [&str; 5] = ["active", "degraded", "quarantined", "disabled", "refused"];

    pub fn as_str(&self) -> &'static str {
        match self {
            PluginState::Active => "active",
            PluginState::Degraded => "degraded",
            PluginState::Quarantined => "quarantined",
            PluginState::Disabled => "disabled",
            PluginState::Refused(_) => "refused",
        }
    }
}

/// The reason why an operator's change was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    #[error("unknown plugin `{name}`")]
    Unknown { name: String, known: Vec<String> },
    #[error("`{name}` is already {state}")]
    Already { name: String, state: &'static str },
    /// The plugin is a dialect. A dialect is read together with the project, and its profile is part of the served
    /// project.
    #[error("`{name}` is a dialect, which is read when the server starts")]
    Dialect { name: String },
    #[error("`{name}` was not reloaded: {error}")]
    Refused { name: String, error: Box<PluginError> },
    /// The plugin cannot be enabled because it did not load.
    #[error(
        "`{name}` was not enabled: {error}; {}repair or replace the component, then reload it{}",
        in_the_entry(error),
        if *is_disabled { ", then enable it" } else { "" }
    )]
    NotEnabled { name: String, error: Box<PluginError>, is_disabled: bool },
}

/// The reason why a component cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PluginError {
    #[error("component `{file}` does not exist; looked in {}", shown(looked_in))]
    NotFound { file: String, looked_in: Vec<PathBuf> },
    /// No component can have this name, so its file was not looked for.
    #[error("`{name}` is not a dialect's name: lower-case letters, digits, `-` and `_`")]
    Name { name: String },
    #[error("component {} {fault}", path.display())]
    Faulted { path: PathBuf, fault: PluginFault },
}

impl PluginError {
    /// Returns the name of the component's file without folder and extension, such as `dialect-duckdb`.
    pub fn component(&self) -> Cow<'_, str> {
        let stem = |path| Path::file_stem(path).unwrap_or_default().to_string_lossy();
        match self {
            PluginError::NotFound { file, .. } => stem(Path::new(file)),
            PluginError::Name { name } => name.into(),
            PluginError::Faulted { path, .. } => stem(path),
        }
    }

    /// Returns the key of the operator's entry that caused the refusal of a component; `None` for other faults. Entries
    /// are read when the server starts, so a reload cannot resolve such a fault.
    pub fn entry_key(&self) -> Option<&'static str> {
        let PluginError::Faulted { fault, .. } = self else { return None };
        match fault {
            PluginFault::Declined { call: "check-config", .. } => Some("config"),
            PluginFault::Pin { .. } => Some("sha256"),
            PluginFault::Mismatch { what: "id", .. } => Some("id"),
            PluginFault::Mismatch { what: "role", .. } | PluginFault::WrongWorld { .. } => Some("role"),
            _ => None,
        }
    }
}

fn in_the_entry(error: &PluginError) -> String {
    let words = |key| format!("edit `{key}` of its entry in service_project.yml and restart, or ");
    error.entry_key().map_or_else(String::new, words)
}

fn shown(paths: &[PathBuf]) -> String {
    let paths: Vec<String> = paths.iter().map(|p| p.display().to_string()).collect();
    if paths.is_empty() { "no folder, since none is set".to_owned() } else { paths.join(", ") }
}

/// A fault of a component, or of a call of its function `call` in the contract.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PluginFault {
    #[error("could not be read: {message}")]
    Unreadable { message: String },
    #[error("is {bytes} bytes long, the limit is {limit}")]
    TooLarge { bytes: u64, limit: u64 },
    #[error("{found}")]
    NotAComponent { found: FileKind },
    #[error("is damaged or uses features that this host does not support: {message}")]
    Malformed { message: String },
    #[error("imports `{import}`, which is not granted")]
    ForeignImport { import: String },
    #[error("lacks the export `{missing}` of its role; it exports {}", listed(exports))]
    WrongWorld { missing: String, exports: Vec<String> },
    #[error("was built for {found}; this host speaks {supported}")]
    WrongVersion { found: String, supported: String },
    /// The component has the version of this host but other types, because the contract changed before its release.
    #[error("was built for a different revision of {} than this host: {message}", listed(contract))]
    WrongTypes { contract: Vec<String>, message: String },
    #[error("reached its limit of {limit} in `{call}`")]
    Limit { call: &'static str, limit: Limit },
    #[error("trapped in `{call}`: {message}")]
    Trapped { call: &'static str, message: String },
    /// The answer violates the contract's types.
    #[error("returned an answer from `{call}` that violates the contract: {message}")]
    Answer { call: &'static str, message: String },
    /// The component itself declined the call.
    #[error("refused `{call}`: {message}")]
    Declined { call: &'static str, message: String },
    #[error("describes the dialect `{found}` instead of `{asked}`")]
    WrongDialect { asked: String, found: String },
    #[error("describes an invalid dialect: {}", profile_errors(.0))]
    Profile(Vec<ProfileError>),
    #[error("could not be run: {message}")]
    Host { message: String },
    /// The digest of the file differs from the one that the operator pinned.
    #[error("has the SHA-256 {found}, and {pinned} is configured")]
    Pin { pinned: String, found: String },
    #[error("has no valid signature: {message}")]
    Signature { message: String },
    #[error("contains an invalid `plugin.toml`: {message}")]
    Manifest { message: String },
    /// Two of these three disagree: the file, its manifest, and the configuration.
    #[error("has the {what} `{found}`, and {wanted} `{expected}`")]
    Mismatch { what: &'static str, found: String, wanted: &'static str, expected: String },
    /// An earlier plugin has the same id.
    #[error("has the id `{id}`, which is {}", path.display())]
    IdTaken { id: String, path: PathBuf },
    #[error("is version {found}, older than version {serving} in use; only a restart can load an older version")]
    Downgrade { serving: String, found: String },
    /// The plugin was not called because it is unavailable.
    #[error("was not called for `{call}`: {reason}")]
    Unavailable { call: &'static str, reason: Unavailable },
    /// An administrator disabled the plugin, so none of its functions is called.
    #[error("is not called: an administrator disabled it")]
    Disabled,
    /// The plugin was not called because too many guests were running.
    #[error("was not called for `{call}`: too many guests are running at once")]
    Busy { call: &'static str },
}

/// The reason why a plugin is not called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    #[error("circuit breaker is open; retry in {} ms", wait.as_millis())]
    BreakerOpen { wait: Duration },
    #[error("it failed too often and is quarantined")]
    Quarantined,
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

/// Formats the first few errors. A profile may have hundreds of faults, and the message should stay readable.
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
            PluginFault::Unreadable { .. }
            | PluginFault::Host { .. }
            | PluginFault::Busy { .. }
            | PluginFault::Limit { limit: Limit::HostMemory, .. } => Blame::Host,
            _ => Blame::Guest,
        }
    }
}

/// The side at fault: the component, or this server and its environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blame {
    Guest,
    Host,
}

/// The detected kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// Native code from a WebAssembly compiler. It is never loaded, whatever the name of the file is.
    Precompiled,
    /// A program or library of an operating system.
    Native,
    CoreModule,
    Unknown,
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FileKind::Precompiled => "is a precompiled artefact, not a WebAssembly component",
            FileKind::Native => "is a native program or library, not a WebAssembly component",
            FileKind::CoreModule => "is a core WebAssembly module, not a WebAssembly component",
            FileKind::Unknown => "is not a WebAssembly component",
        })
    }
}

/// The limits that a call can exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// The number of executed instructions.
    Fuel,
    Time,
    Memory,
    /// The memory of all guests of the host together.
    HostMemory,
    Tables,
    Instances,
    Stack,
    /// The number of bytes that a call passes to the host.
    Transfer,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Limit::Fuel => "fuel",
            Limit::Time => "time",
            Limit::Memory => "memory",
            Limit::HostMemory => "memory of all guests together",
            Limit::Tables => "table elements",
            Limit::Instances => "instances",
            Limit::Stack => "stack",
            Limit::Transfer => "transferred bytes",
        })
    }
}
