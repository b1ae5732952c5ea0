//! The configuration: one typed value from `service_project.yml`, the environment and the defaults.
//!
//! In: the project file's text and the [`Environment`]. Out: a [`Config`] and every problem found. The
//! environment wins over the file, the file over the default. Not here: what a project defines (cubes
//! and the like are the compiler's), and whether a configuration may be served (`start_rules`).

mod definitions;
mod environment;
mod network;
mod plugins;
mod providers;
mod reader;
mod schema;
mod sections;
mod security;
mod settings;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use ipnet::IpNet;
use jiff::tz::TimeZone;
use terrane_compiler::diagnostic::Diagnostic;
use terrane_compiler::project::SourceFile;
use terrane_compiler::project::yaml;
use terrane_server::telemetry::LogSettings;
use terrane_warehouse::FileAccess;

pub use environment::Environment;
pub use network::{CorsConfig, LimitsConfig, TlsConfig};
pub use plugins::{PluginConfig, PluginsConfig};
pub use providers::{OAuthConfig, OpenIdConfig, OutgoingConfig, ProviderConfig, TokenAuth};
pub use reader::{Located, Place, Secret};
pub use security::{Anonymous, ClaimNames, JwtAlgorithm, JwtConfig, Scope, ScopeRoleNames, SecurityConfig};

pub use schema::project_schema;
pub use settings::{Setting, Source};

use reader::{Collected, Section};

/// The project file's name; the folder that holds it is the project.
pub const PROJECT_FILE: &str = "service_project.yml";

/// Everything that the operator sets.
#[derive(Debug, Clone)]
pub struct Config {
    /// What the compiler must read in place of the project file, where the environment changes what it
    /// defines.
    pub definitions: Option<String>,
    pub folders: Folders,
    pub warehouse: WarehouseConfig,
    pub query: QueryConfig,
    pub server: ServerConfig,
    pub limits: LimitsConfig,
    pub state: StateConfig,
    pub security: SecurityConfig,
    pub plugins: PluginsConfig,
    /// The file's path is the project's.
    pub log: LogSettings,
    pub metrics: MetricsConfig,
    pub telemetry: TelemetryConfig,
    pub unused: Vec<UnusedSetting>,
    /// All of it for people, without secrets.
    pub settings: Vec<Setting>,
}

/// Where the project's files lie, relative to it.
#[derive(Debug, Clone)]
pub struct Folders {
    pub sources: String,
    pub models: String,
    pub cubes: String,
    pub metrics: String,
    pub policies: String,
}

#[derive(Debug, Clone)]
pub struct WarehouseConfig {
    /// Names the dialect component and the connector.
    pub kind: String,
    pub place: Option<Place>,
    /// File of an embedded engine, relative to the project.
    pub path: Option<Located<String>>,
    pub url: Option<Secret>,
    /// SQL that runs at each start, by the operator's authority.
    pub init: Vec<Located<String>>,
    pub threads: Option<u64>,
    /// As the engine writes it: `4GB`.
    pub memory_limit: Option<String>,
    /// `None`: as the project's SQL needs it.
    pub file_access: Option<FileAccess>,
    pub max_connections: Option<u64>,
    /// How long a server may take to accept a connection.
    pub connect_timeout_seconds: Option<u64>,
    /// How long building one model may take.
    pub build_timeout_seconds: u64,
}

#[derive(Debug, Clone)]
pub struct QueryConfig {
    pub timeout_seconds: f64,
    pub default_limit: u64,
    pub max_limit: u64,
    /// Of CSV and Arrow.
    pub max_export_rows: u64,
    /// How long a client may take to read them.
    pub export_timeout_seconds: f64,
    pub timezone: TimeZone,
}

#[derive(Debug, Clone)]
pub struct ServerConfig {
    pub host: String,
    pub port: u16,
    pub max_concurrent_queries: usize,
    pub max_queued_queries: usize,
    /// Threads; `None` is one a core.
    pub workers: Option<usize>,
    pub cors: CorsConfig,
    /// Names by which anonymous callers may call, besides addresses and `localhost`.
    pub allowed_hosts: Vec<String>,
    /// Networks of proxies that report the addresses of their clients.
    pub trusted_proxies: Vec<IpNet>,
    pub tls: Option<TlsConfig>,
    pub max_connections: usize,
    pub max_body_bytes: u64,
    pub header_timeout_seconds: u64,
    pub body_timeout_seconds: u64,
    pub write_timeout_seconds: u64,
    pub shutdown_seconds: u64,
    pub docs: bool,
    /// Folders below which projects may lie that are loaded through the API, besides the served project's own.
    pub project_roots: Vec<String>,
    /// Loads the project anew when its files change.
    pub watch: bool,
}

#[derive(Debug, Clone)]
pub struct StateConfig {
    pub url: Secret,
    /// How long what is over is kept.
    pub retention_days: u64,
    /// How long authentications and denials are gathered before they are on disk.
    pub audit_interval_ms: u64,
}

#[derive(Debug, Clone)]
pub struct MetricsConfig {
    pub enabled: bool,
    /// Absolute.
    pub path: String,
    pub path_place: Option<Place>,
    /// An address of their own, host and port.
    pub address: Option<(String, u16)>,
    pub address_place: Option<Place>,
    pub is_public: bool,
    pub include_process: bool,
    pub include_runtime: bool,
}

/// Traces for an OpenTelemetry collector.
#[derive(Debug, Clone)]
pub struct TelemetryConfig {
    /// `None`: no traces. May hold a password.
    pub otlp_endpoint: Option<Secret>,
    pub service_name: String,
    /// 0 to 1.
    pub sample_ratio: f64,
}

/// A setting that is read and checked, and that this version does not use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnusedSetting {
    pub key: String,
    pub place: Place,
}

/// Reads the configuration. Without a file, everything comes from the environment and the defaults. A
/// value that could not be read is reported, and its default stands in.
pub fn read(file: Option<&str>, environment: &Environment) -> (Config, Vec<Diagnostic>) {
    let mut collected = Collected::default();
    let config = collect(file, environment, &mut collected);
    (config, collected.finish(environment))
}

fn collect(file: Option<&str>, environment: &Environment, collected: &mut Collected) -> Config {
    let parsed = file.map(|text| yaml::parse(&Arc::new(SourceFile { path: PROJECT_FILE.into(), text: text.into() })));
    let node = match parsed {
        Some(Ok(node)) => Some(node),
        Some(Err(diagnostic)) => {
            collected.diagnostics.push(diagnostic);
            None
        }
        None => None,
    };
    let definitions = definitions::effective(node.as_ref(), environment, collected);
    let mut top = Section::top(node.as_ref(), environment, collected);
    let mut config = Config { definitions, ..sections::all(&mut top) };
    top.finish();
    config.plugins.cache = environment.cache_folder().map(|folder| folder.join("components"));
    config.settings = collected.asked.settings();
    config
}
