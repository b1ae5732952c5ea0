//! The configuration: one typed value from `service_project.yml`, the environment and the defaults.
//!
//! In: the project file's text and the [`Environment`]. Out: a [`Config`] and all problems. The environment overrides
//! the file, and the file overrides the defaults. Not here: definitions such as cubes (compiler), and rules for serving
//! a configuration (`start_rules`).

mod channels;
mod definitions;
mod environment;
mod ineffective;
mod network;
mod place;
mod plugins;
mod providers;
mod reader;
mod schema;
mod search;
mod sections;
mod security;
mod settings;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use ipnet::IpNet;
use jiff::tz::TimeZone;
use terrane_app::cost::{Guardrails, Prices};
use terrane_app::governance::OnChange;
use terrane_app::limits::quota::QuotaSettings;
use terrane_app::questions::ModelSettings;
use terrane_channels::ChannelSettings;
use terrane_compiler::diagnostic::Diagnostic;
use terrane_compiler::project::SourceFile;
use terrane_compiler::project::yaml::{self, Node, NodeValue};
use terrane_server::GraphQlHttpSettings;
use terrane_server::telemetry::LogSettings;
use terrane_warehouse::FileAccess;

pub use environment::Environment;
pub use ineffective::{IneffectiveCause, IneffectiveSetting};
pub use network::{CorsConfig, LimitsConfig, TlsConfig};
pub use place::Place;
pub use plugins::{PluginConfig, PluginsConfig};
pub use providers::{OAuthConfig, OpenIdConfig, OutgoingConfig, ProviderConfig, TokenAuth};
pub use reader::{Secret, WithPlace};
pub use security::{Anonymous, ClaimNames, JwtAlgorithm, JwtConfig, ScopeRoleNames, SecurityConfig};

pub use schema::project_schema;
pub(crate) use sections::WAREHOUSES;
pub use settings::{Setting, Source};

use reader::{Collected, Section};

/// The name of the project file, which makes its folder a project.
pub const PROJECT_FILE: &str = "service_project.yml";

/// All settings of the operator.
#[derive(Debug, Clone)]
pub struct Config {
    /// The text that the compiler reads instead of the project file, if the environment changes definitions.
    pub definitions: Option<String>,
    pub folders: Folders,
    /// True if the project file has a syntax error, and `warehouse` cannot be read. The defaults of `warehouse` are then
    /// meaningless.
    pub is_warehouse_unread: bool,
    pub warehouse: WarehouseConfig,
    pub query: QueryConfig,
    pub server: ServerConfig,
    pub limits: LimitsConfig,
    pub state: StateConfig,
    pub jobs: JobsConfig,
    pub graphql: GraphQlHttpSettings,
    /// The bounds on subscriptions.
    pub subscriptions: QuotaSettings,
    pub security: SecurityConfig,
    pub plugins: PluginsConfig,
    /// The settings of the log. Its file is relative to the project.
    pub log: LogSettings,
    pub metrics: MetricsConfig,
    pub telemetry: TelemetryConfig,
    pub cache: CacheConfig,
    pub pre_aggregations: PreaggregationsConfig,
    pub optimization: OptimizationConfig,
    pub governance: GovernanceConfig,
    pub search: SearchConfig,
    pub profiling: ProfilingConfig,
    pub anomaly: AnomalyConfig,
    pub data_tests: DataTestsConfig,
    pub unused: Vec<UnusedSetting>,
    pub ineffective: Vec<IneffectiveSetting>,
    /// All settings as text, without secrets.
    pub settings: Vec<Setting>,
}

/// The folders of the project's files, relative to the project.
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
    /// The type, which selects the dialect component and the connector.
    pub kind: String,
    pub place: Option<Place>,
    /// The file of an embedded engine, relative to the project.
    pub path: Option<WithPlace<String>>,
    pub url: Option<Secret>,
    /// The ADBC driver; `None` to use the connector of the type.
    pub adbc: Option<AdbcConfig>,
    /// SQL that runs at each start, with the operator's privileges.
    pub init: Vec<WithPlace<String>>,
    pub threads: Option<u64>,
    /// A limit in the engine's notation, such as `4GB`.
    pub memory_limit: Option<String>,
    /// The files that SQL may read; `None` to derive them from the project's SQL.
    pub file_access: Option<FileAccess>,
    pub max_connections: Option<u64>,
    /// The timeout for connecting to a server.
    pub connect_timeout_seconds: Option<u64>,
    /// The timeout for building one model.
    pub build_timeout_seconds: u64,
}

/// The settings of an ADBC driver.
#[derive(Debug, Clone)]
pub struct AdbcConfig {
    /// The path of the library, relative to the project, or the name of a driver such as `postgresql`.
    pub driver: WithPlace<String>,
    /// The symbol that initializes the driver; `None` for the symbol that all drivers export.
    pub entrypoint: Option<String>,
    /// The options of the database, in the driver's own notation.
    pub options: Vec<(String, Secret)>,
    pub options_place: Option<Place>,
    /// Statements that each new connection runs; `None` for the default statements of the warehouse's type.
    pub session: Option<Vec<WithPlace<String>>>,
}

impl WarehouseConfig {
    /// Returns the name of the dialect in which SQL is written.
    pub fn dialect(&self) -> &str {
        match self.kind.as_str() {
            "databricks" => "spark",
            // The protocol has no SQL of its own. Most servers that speak it follow PostgreSQL.
            "flightsql" => "postgres",
            kind => kind,
        }
    }
}

/// The settings of the result cache.
#[derive(Debug, Clone)]
pub struct CacheConfig {
    pub enabled: bool,
    /// The URL of a Redis server.
    pub url: Option<Secret>,
    /// The time for which results over data without a version are used.
    pub ttl_seconds: u64,
    /// The largest size in memory, in bytes.
    pub max_size: u64,
    /// The largest size of one result, in bytes.
    pub max_entry: u64,
    /// The time for which outdated results may be used while new ones are computed.
    pub stale_seconds: u64,
}

/// The settings of pre-aggregations.
#[derive(Debug, Clone)]
pub struct PreaggregationsConfig {
    pub enabled: bool,
    /// True if the operator set `enabled`. Then definitions that have no effect are intended, and are not reported.
    pub is_chosen: bool,
    /// The place of the tables: a schema in PostgreSQL, a database in MySQL and MariaDB, or the name of the second
    /// file in DuckDB.
    pub schema: String,
    /// The file of the tables of a DuckDB warehouse, relative to the project. `None` for a file beside the state
    /// database.
    pub path: Option<WithPlace<String>>,
    /// The time between two checks for changed rows, for pre-aggregations that state no interval of their own.
    pub refresh_seconds: u64,
    /// The timeout for one table.
    pub build_timeout_seconds: u64,
    /// The retention of builds that ended.
    pub history_days: u64,
}

/// The settings of the costs of queries.
#[derive(Debug, Clone)]
pub struct OptimizationConfig {
    pub enabled: bool,
    /// The retention of executed queries.
    pub history_days: u64,
    /// The number of past days whose queries recommendations consider.
    pub recommendation_days: u16,
    /// The prices of the warehouse.
    pub prices: Prices,
    /// The zone of the days and months of budgets. `None` for the zone of queries.
    pub timezone: Option<TimeZone>,
    /// The limits of every query.
    pub guardrails: Guardrails,
}

/// The settings of the module of governance.
#[derive(Debug, Clone)]
pub struct GovernanceConfig {
    pub enabled: bool,
    /// True if changes of existing records must name a version.
    pub require_if_match: bool,
    /// The effect of a changed definition on a certificate.
    pub on_change: OnChange,
    /// The number of days after the end of a certificate, after which the artifact is deprecated; 0: never.
    pub auto_deprecate_after_days: u64,
    /// True if the caller who submitted an artifact may certify it.
    pub allow_self_certification: bool,
    pub reviewer_roles: Vec<String>,
}

/// The settings of monitors.
#[derive(Debug, Clone)]
pub struct AnomalyConfig {
    /// True to serve monitors, detections and alerts.
    pub enabled: bool,
    pub channels: ChannelSettings,
    pub channels_place: Option<Place>,
}

/// The schedule of data tests.
#[derive(Debug, Clone)]
pub struct DataTestsConfig {
    /// A cron expression; `None` if tests run on request only.
    pub schedule: Option<String>,
    /// The zone of the schedule; `None` for that of queries.
    pub timezone: Option<TimeZone>,
}

/// The settings of profiling.
#[derive(Debug, Clone)]
pub struct ProfilingConfig {
    pub enabled: bool,
}

/// The settings of search.
#[derive(Debug, Clone)]
pub struct SearchConfig {
    pub enabled: bool,
    /// The language model; `None` if only the grammar reads questions.
    pub language_model: Option<LanguageModelConfig>,
}

/// The language model that reads questions: `search.llm`.
#[derive(Debug, Clone)]
pub struct LanguageModelConfig {
    pub url: WithPlace<String>,
    pub model: String,
    pub key: Option<Secret>,
    /// The largest number of tokens of a reply.
    pub max_tokens: u32,
    pub is_reasoning: bool,
    pub settings: ModelSettings,
}

#[derive(Debug, Clone)]
pub struct QueryConfig {
    pub timeout_seconds: f64,
    pub default_limit: u64,
    pub max_limit: u64,
    /// The maximum number of rows of CSV and Arrow.
    pub max_export_rows: u64,
    /// The maximum time for a client to read CSV and Arrow.
    pub export_timeout_seconds: f64,
    pub timezone: TimeZone,
}

#[derive(Debug, Clone)]
pub struct ServerConfig {
    pub host: String,
    pub port: u16,
    pub max_concurrent_queries: usize,
    pub max_queued_queries: usize,
    /// The number of threads. `None`: one per core.
    pub workers: Option<usize>,
    pub cors: CorsConfig,
    /// Host names that anonymous callers may use besides addresses and `localhost`.
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
    /// Folders that may contain projects loaded through the API, besides the folder of the served project.
    pub project_roots: Vec<WithPlace<String>>,
    /// True to reload the project when its files change.
    pub watch: bool,
}

#[derive(Debug, Clone)]
pub struct StateConfig {
    pub url: Secret,
    /// The retention of expired records.
    pub retention_days: u64,
    /// The interval at which authentications and denials are written to disk.
    pub audit_interval_ms: u64,
}

/// The settings of asynchronous queries.
#[derive(Debug, Clone)]
pub struct JobsConfig {
    /// The folder of results, relative to the project. All replicas share it.
    pub path: String,
    /// The place of `path`, unless it is the default.
    pub path_place: Option<Place>,
    /// The largest number of jobs that one process runs at once.
    pub concurrency: usize,
    pub timeout_seconds: u64,
    /// The time for which a result can be read.
    pub result_hours: u64,
    /// The time for which the records of ended jobs are stored.
    pub retention_days: u64,
    /// The largest number of open jobs of all callers.
    pub max_open: u64,
    pub max_open_per_tenant: Option<u64>,
    pub max_open_per_caller: u64,
    /// The disk space that results leave free.
    pub min_free_disk_mb: u64,
}

#[derive(Debug, Clone)]
pub struct MetricsConfig {
    pub enabled: bool,
    /// The absolute path of the route.
    pub path: String,
    pub path_place: Option<Place>,
    /// A separate address, host and port.
    pub address: Option<(String, u16)>,
    pub address_place: Option<Place>,
    pub is_public: bool,
    pub include_process: bool,
    pub include_runtime: bool,
}

/// The settings of traces for an OpenTelemetry collector.
#[derive(Debug, Clone)]
pub struct TelemetryConfig {
    /// The URL of the collector, which may contain a password. `None`: no traces.
    pub otlp_endpoint: Option<Secret>,
    pub service_name: String,
    /// The sampled share, from 0 to 1.
    pub sample_ratio: f64,
}

/// A setting that is checked and has no effect in this version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnusedSetting {
    pub key: String,
    pub place: Place,
}

/// Reads the configuration. Without a file, settings come from the environment and the defaults. Invalid values are
/// reported and replaced by their defaults.
pub fn read(file: Option<&str>, environment: &Environment) -> (Config, Vec<Diagnostic>) {
    let mut collected = Collected::default();
    let config = collect(file, environment, &mut collected);
    (config, collected.finish(environment))
}

fn collect(file: Option<&str>, environment: &Environment, collected: &mut Collected) -> Config {
    let file = file.map(|text| Arc::new(SourceFile { path: PROJECT_FILE.into(), text: text.into() }));
    let mut is_readable = true;
    let node = file.map(|file| {
        yaml::parse(&file).unwrap_or_else(|diagnostic| {
            collected.diagnostics.push(diagnostic);
            is_readable = false;
            yaml::readable_part(&file)
        })
    });
    let has_warehouse = |node: &Node| match &node.value {
        NodeValue::Map(entries) => entries.iter().any(|(key, _)| &*key.text == "warehouse"),
        _ => false,
    };
    let is_warehouse_unread = !is_readable && !node.as_ref().is_some_and(has_warehouse);
    let definitions = definitions::effective(node.as_ref(), environment, collected);
    let mut top = Section::top(node.as_ref(), environment, collected);
    let mut config = Config { definitions, is_warehouse_unread, ..sections::all(&mut top) };
    top.finish();
    config.plugins.cache = environment.cache_folder().map(|folder| folder.join("components"));
    config.settings = collected.read_keys.settings();
    config.ineffective = ineffective::find(&config, &collected.read_keys);
    config
}
