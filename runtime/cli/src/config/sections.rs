//! Every key of the configuration, with its type, its bounds and its default.
//!
//! In: the reader. Out: the typed sections of [`Config`]. A key that is not read here is unknown. Not here: security
//! settings (`security`).

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value as Json;
use terrane_app::cost::{Guardrails, Prices};
use terrane_app::cron_schedule::CronSchedule;
use terrane_app::governance::OnChange;
use terrane_app::limits::quota::QuotaSettings;
use terrane_app::live;
use terrane_compiler::diagnostic::{Code, Diagnostic};
use terrane_graphql::{GraphQlSettings, Limits};
use terrane_server::GraphQlHttpSettings;
use terrane_server::telemetry::{LogFile, LogFormat, LogLevel, LogOutput, LogSettings};
use terrane_warehouse::FileAccess;

use super::reader::Section;
use super::{
    AdbcConfig, AnomalyConfig, CacheConfig, Config, DataTestsConfig, Folders, GovernanceConfig, JobsConfig,
    MetricsConfig, OptimizationConfig, Place, PreaggregationsConfig, ProfilingConfig, QueryConfig, Secret,
    ServerConfig, StateConfig, TelemetryConfig, UnusedSetting, WarehouseConfig, channels, network, plugins, search,
    security,
};

pub(super) const DEFAULT_SCHEMA: &str = "terrane_preaggregations";
/// Schemas that may contain tables of other owners.
const RESERVED_SCHEMAS: &[&str] =
    &["information_schema", "performance_schema", "pg_catalog", "pg_toast", "public", "system"];

pub(super) const DEFAULT_STATE: &str = "sqlite://.terrane/state.db";

const DEFAULT_JOBS: &str = ".terrane/jobs";

/// Warehouses that this program connects to. Those after the first five need a driver in `warehouse.adbc`.
pub(crate) const WAREHOUSES: &[&str] = &[
    "duckdb",
    "postgres",
    "mysql",
    "sqlite",
    "spark",
    "snowflake",
    "bigquery",
    "redshift",
    "databricks",
    "trino",
    "clickhouse",
    "flightsql",
];

pub(super) fn all(top: &mut Section<'_>) -> Config {
    for key in ["name", "version", "models", "vars"] {
        top.skip(key);
    }
    let (graphql, subscriptions) = top.section("graphql", graphql);
    let place = top.place("optimization");
    let (optimization, unused) = top.section("optimization", |s| optimization(s, place.as_ref()));
    Config {
        definitions: None,
        is_warehouse_unread: false,
        folders: top.section("paths", folders),
        warehouse: top.section("warehouse", warehouse),
        query: top.section("query", query),
        server: top.section("server", server),
        limits: top.section("limits", network::limits),
        state: top.section("state", state),
        jobs: top.section("jobs", jobs),
        graphql,
        subscriptions,
        security: top.section("security", security::read),
        cache: top.section("cache", cache),
        pre_aggregations: top.section("pre_aggregations", pre_aggregations),
        optimization,
        governance: top.section("governance", governance),
        search: top.section("search", search::search),
        anomaly: top.section("anomaly", |s| AnomalyConfig {
            enabled: s.boolean("enabled").unwrap_or(true),
            channels: channels::channels(s),
            channels_place: s.place("channels"),
        }),
        data_tests: top.section("data_tests", data_tests),
        profiling: top.section("profiling", |s| ProfilingConfig { enabled: s.boolean("enabled").unwrap_or(true) }),
        plugins: plugins::read(top),
        log: top.section("log", log),
        metrics: top.section("metrics", metrics),
        telemetry: top.section("telemetry", telemetry),
        unused,
        settings: Vec::new(),
        ineffective: Vec::new(),
    }
}

fn state(s: &mut Section<'_>) -> StateConfig {
    StateConfig {
        url: s.secret("url").unwrap_or_else(|| Secret::new(DEFAULT_STATE)),
        retention_days: s.integer("retention_days", 1..=36_500).unwrap_or(30),
        audit_interval_ms: s.integer("audit_interval_ms", 10..=5_000).unwrap_or(100),
    }
}

fn jobs(s: &mut Section<'_>) -> JobsConfig {
    JobsConfig {
        path: s.text("path").unwrap_or_else(|| DEFAULT_JOBS.to_owned()),
        path_place: s.place("path"),
        concurrency: s.integer("concurrency", 1..=64).map_or(2, |n| n as usize),
        timeout_seconds: s.integer("timeout_seconds", 1..=86_400).unwrap_or(3_600),
        result_hours: s.integer("result_hours", 1..=8_760).unwrap_or(24),
        retention_days: s.integer("retention_days", 1..=3_650).unwrap_or(7),
        max_open: s.integer("max_open", 1..=1_000_000).unwrap_or(1_000),
        max_open_per_tenant: s.integer("max_open_per_tenant", 1..=1_000_000),
        max_open_per_caller: s.integer("max_open_per_caller", 1..=1_000_000).unwrap_or(20),
        min_free_disk_mb: s.integer("min_free_disk_mb", 0..=1_000_000_000).unwrap_or(1_024),
    }
}

fn graphql(s: &mut Section<'_>) -> (GraphQlHttpSettings, QuotaSettings) {
    let defaults = GraphQlHttpSettings::default();
    let limits = defaults.schema.limits;
    let mut count = |key, default: usize, most| s.integer(key, 1..=most).map_or(default, |n| n as usize);
    let limits = Limits {
        depth: count("max_depth", limits.depth, 50),
        executions: count("max_executions", limits.executions, 100),
        items: count("max_items", limits.items, 100_000_000),
        complexity: count("max_complexity", limits.complexity as usize, 100_000_000) as u64,
        ..limits
    };
    let subscriptions = QuotaSettings {
        total: count("max_subscriptions", live::DEFAULT_QUOTA.total, 1_000_000),
        per_subject: count("max_subscriptions_per_caller", live::DEFAULT_QUOTA.per_subject, 1_000_000),
    };
    let graphql = GraphQlHttpSettings {
        max_sockets: count("max_sockets", defaults.max_sockets, 1_000_000),
        max_operations_per_socket: count("max_operations_per_socket", defaults.max_operations_per_socket, 1_000),
        max_sockets_per_caller: count("max_sockets_per_caller", defaults.max_sockets_per_caller, 1_000_000),
        max_opening_sockets_per_address: count(
            "max_opening_sockets_per_address",
            defaults.max_opening_sockets_per_address,
            1_000_000,
        ),
        is_enabled: s.boolean("enabled").unwrap_or(defaults.is_enabled),
        has_playground: s.boolean("playground").unwrap_or(defaults.has_playground),
        schema: GraphQlSettings {
            introspection: s.boolean("introspection").unwrap_or(defaults.schema.introspection),
            limits,
        },
        ..defaults
    };
    (graphql, subscriptions)
}

fn cache(s: &mut Section<'_>) -> CacheConfig {
    const SIZE: &str = "a size like 256MiB";
    CacheConfig {
        enabled: s.boolean("enabled").unwrap_or(true),
        url: s.secret("url").filter(|url| !url.expose().trim().is_empty()),
        ttl_seconds: s.integer("ttl_seconds", 0..=86_400).unwrap_or(10),
        max_size: s.size("max_size", SIZE).unwrap_or(256 * 1024 * 1024),
        max_entry: s.size("max_entry", SIZE).unwrap_or(8 * 1024 * 1024),
        stale_seconds: s.integer("stale", 0..=86_400).unwrap_or(0),
    }
}

fn pre_aggregations(s: &mut Section<'_>) -> PreaggregationsConfig {
    const SCHEMA: &str =
        "the name of a dedicated schema: 6 to 48 lower-case letters, digits and `_`, beginning with a letter";
    let enabled = s.boolean("enabled");
    PreaggregationsConfig {
        enabled: enabled.unwrap_or(false),
        is_chosen: enabled.is_some(),
        schema: s.checked("schema", SCHEMA, schema_name).unwrap_or_else(|| DEFAULT_SCHEMA.to_owned()),
        path: s.text_with_place("path"),
        refresh_seconds: s.integer("refresh_seconds", 1..=31_536_000).unwrap_or(3_600),
        build_timeout_seconds: s.integer("build_timeout_seconds", 1..=86_400).unwrap_or(3_600),
        history_days: s.integer("history_days", 1..=3_650).unwrap_or(7),
    }
}

/// Returns the settings of query costs, and the keys of the section that are set but have no effect yet.
fn optimization(s: &mut Section<'_>, place: Option<&Place>) -> (OptimizationConfig, Vec<UnusedSetting>) {
    let config = OptimizationConfig {
        enabled: s.boolean("enabled").unwrap_or(true),
        history_days: s.integer("history_days", 1..=3_650).unwrap_or(30),
        recommendation_days: recommendation_days(s),
        prices: s.section("prices", prices),
        timezone: s.checked("timezone", TIMEZONE, time_zone),
        guardrails: guardrails(s),
    };
    s.integer("cache_ttl_seconds", 0..=u64::MAX);
    let mut unused = Vec::new();
    note_unused(s, "optimization", ["cache_ttl_seconds"].into_iter(), place, &mut unused);
    (config, unused)
}

fn prices(s: &mut Section<'_>) -> Prices {
    const PRICE: &str = "a number from 0 to 1000000";
    let price = |text: &str| text.trim().parse::<f64>().ok().filter(|price| (0.0..=1_000_000.0).contains(price));
    Prices {
        second: s.number("second", PRICE, 0..=1_000_000, price),
        terabyte_scanned: s.number("terabyte_scanned", PRICE, 0..=1_000_000, price),
        terabyte_of_egress: s.number("terabyte_of_egress", PRICE, 0..=1_000_000, price),
    }
}

fn recommendation_days(s: &mut Section<'_>) -> u16 {
    let days = s.integer("recommendation_window_days", 1..=366);
    days.and_then(|days| u16::try_from(days).ok()).unwrap_or(7)
}

fn guardrails(s: &mut Section<'_>) -> Guardrails {
    const SECONDS: &str = "a number from 0.001 to 86400";
    let seconds = |text: &str| text.trim().parse::<f64>().ok().filter(|n| (0.001..=86_400.0).contains(n));
    const COST: &str = "a number from 0 to 1000000000 with at most six decimals";
    let cost = |text: &str| text.trim().parse::<f64>().ok().and_then(terrane_app::cost::micros);
    Guardrails {
        max_execution: s.number("max_execution_seconds", SECONDS, 0..=86_400, seconds).map(Duration::from_secs_f64),
        max_rows_returned: s.integer("max_rows_returned", 1..=u64::MAX),
        require_time_filter: s.boolean("require_time_filter").unwrap_or(false),
        require_partition_filter: s.boolean("require_partition_filter").unwrap_or(false),
        max_cost_micros: s.number("max_cost_per_query", COST, 0..=1_000_000_000, cost),
        max_scan_bytes: s.size("max_bytes_scanned", "a size like 10GB"),
        daily_budget_micros: s.number("daily_budget", COST, 0..=1_000_000_000, cost),
        monthly_budget_micros: s.number("monthly_budget", COST, 0..=1_000_000_000, cost),
        alert_at_percent: s.integer("alert_at_percent", 1..=100).and_then(|percent| u8::try_from(percent).ok()),
    }
}

fn governance(s: &mut Section<'_>) -> GovernanceConfig {
    const ON_CHANGE: &[(&str, OnChange)] = &[("warn", OnChange::Warn), ("revoke", OnChange::Revoke)];
    GovernanceConfig {
        enabled: s.boolean("enabled").unwrap_or(true),
        require_if_match: s.boolean("require_if_match").unwrap_or(false),
        on_change: s.choice("on_change", ON_CHANGE).unwrap_or(OnChange::Warn),
        auto_deprecate_after_days: s.integer("auto_deprecate_after_days", 0..=36_500).unwrap_or(0),
        allow_self_certification: s.boolean("allow_self_certification").unwrap_or(false),
        reviewer_roles: s
            .texts("reviewer_roles")
            .unwrap_or_else(|| vec!["data_steward".to_owned(), "reviewer".to_owned()]),
    }
}

/// Reads the name of a schema. The name must be in lower case, so that no engine changes it, and at least six
/// characters long, so that unrelated SQL is unlikely to contain it by accident.
fn schema_name(text: &str) -> Option<String> {
    let is_plain = text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    let is_name = text.starts_with(|c: char| c.is_ascii_lowercase()) && (6..=48).contains(&text.len());
    (is_plain && is_name && !RESERVED_SCHEMAS.contains(&text)).then(|| text.to_owned())
}

fn folders(s: &mut Section<'_>) -> Folders {
    let mut folder = |key: &'static str| s.text(key).unwrap_or_else(|| key.to_owned());
    Folders {
        sources: folder("sources"),
        models: folder("models"),
        cubes: folder("cubes"),
        metrics: folder("metrics"),
        policies: folder("policies"),
    }
}

fn warehouse(s: &mut Section<'_>) -> WarehouseConfig {
    // The operator's own dialect component may have a different name, so unknown names are accepted here.
    let is_name = |text: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c))
    };
    WarehouseConfig {
        kind: s.name("type", WAREHOUSES, r"^[a-z0-9_-]+$", is_name).unwrap_or_else(|| "duckdb".to_owned()),
        place: s.place("type").or_else(|| s.place("url")),
        path: s.text_with_place("path"),
        url: s.secret("url"),
        adbc: adbc(s),
        init: s.texts_with_places("init").unwrap_or_default(),
        threads: s.integer("threads", 1..=1_024),
        memory_limit: s.checked("memory_limit", "a size like 4GB", size),
        file_access: s
            .choice(
                "file_access",
                &[("auto", None), ("project", Some(FileAccess::Project)), ("none", Some(FileAccess::None))],
            )
            .flatten(),
        max_connections: s.integer("max_connections", 1..=1_000),
        connect_timeout_seconds: s.integer("connect_timeout_seconds", 1..=600),
        build_timeout_seconds: s.integer("build_timeout_seconds", 1..=86_400).unwrap_or(3_600),
    }
}

fn adbc(s: &mut Section<'_>) -> Option<AdbcConfig> {
    let place = s.place("adbc");
    let driver = s.section("adbc", |adbc| {
        let driver = adbc.text_with_place("driver").filter(|driver| !driver.value.trim().is_empty());
        let entrypoint = adbc.text("entrypoint");
        let (options, options_place) = (driver_options(adbc), adbc.place("options"));
        let session = adbc.texts_with_places("session");
        driver.map(|driver| AdbcConfig { driver, entrypoint, options, options_place, session })
    });
    if let (None, Some(place)) = (&driver, place) {
        let problem = Diagnostic::error(Code::MissingField, "`warehouse.adbc` needs the key `driver`");
        s.report(place.mark(problem.hint("Name the driver's library, or its name such as `postgresql`.")));
    }
    driver
}

/// Reads the options of a driver. Numbers and booleans are passed as text.
fn driver_options(s: &mut Section<'_>) -> Vec<(String, Secret)> {
    let Some(Json::Object(options)) = s.json("options") else { return Vec::new() };
    let mut read = Vec::new();
    for (name, value) in options {
        let value = match value {
            Json::String(text) => text,
            Json::Bool(_) | Json::Number(_) => value.to_string(),
            Json::Null => continue,
            Json::Array(_) | Json::Object(_) => {
                let message = format!("option `{name}` in `warehouse.adbc.options` must be one value");
                let problem = Diagnostic::error(Code::WrongType, message);
                let problem = problem.hint("Write the value as text, in the notation of the driver.");
                match s.place("options") {
                    Some(place) => s.report(place.mark(problem)),
                    None => s.report(problem),
                }
                continue;
            }
        };
        read.push((name, Secret::new(&value)));
    }
    read
}

/// Reads a size such as `4GB`, `512 MiB` or `80%`: digits and a unit, so that the text is safe in SQL.
fn size(text: &str) -> Option<String> {
    let text = text.trim();
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').trim_start();
    let has_digits = text.starts_with(|c: char| c.is_ascii_digit());
    let known = ["B", "KB", "MB", "GB", "TB", "KIB", "MIB", "GIB", "TIB", "%"];
    (has_digits && known.contains(&unit.to_ascii_uppercase().as_str())).then(|| text.to_owned())
}

const TIMEZONE: &str = "a timezone of the IANA database, like Europe/Berlin";

fn time_zone(text: &str) -> Option<TimeZone> {
    jiff::tz::TimeZoneDatabase::bundled().get(text.trim()).ok()
}

fn data_tests(s: &mut Section<'_>) -> DataTestsConfig {
    const SCHEDULE: &str = "a cron expression of five fields that occurs, like `0 6 * * *`";
    // An expression such as `0 0 31 2 *` is valid but never occurs.
    let occurs = |text: &str| {
        let schedule = CronSchedule::in_zone(text.trim(), TimeZone::UTC).ok()?;
        schedule.next(Timestamp::UNIX_EPOCH).map(|_| text.trim().to_owned())
    };
    DataTestsConfig {
        schedule: s.checked("schedule", SCHEDULE, occurs),
        timezone: s.checked("timezone", TIMEZONE, time_zone),
    }
}

fn query(s: &mut Section<'_>) -> QueryConfig {
    let seconds = |text: &str| text.trim().parse::<f64>().ok().filter(|n| (0.001..=86_400.0).contains(n));
    let zone = s.checked("timezone", TIMEZONE, time_zone);
    let config = QueryConfig {
        timeout_seconds: s.number("timeout", "seconds from 0.001 to 86400", 0..=86_400, seconds).unwrap_or(30.0),
        default_limit: s.integer("default_limit", 1..=u64::MAX).unwrap_or(1_000),
        max_limit: s.integer("max_limit", 1..=u64::MAX).unwrap_or(50_000),
        max_export_rows: s.integer("max_export_rows", 1..=u64::MAX).unwrap_or(10_000_000),
        export_timeout_seconds: s
            .number("export_timeout", "seconds from 0.001 to 86400", 0..=86_400, seconds)
            .unwrap_or(600.0),
        timezone: zone.unwrap_or(TimeZone::UTC),
    };
    if config.default_limit > config.max_limit {
        let message = format!(
            "`query.default_limit` is {}, over `query.max_limit` of {}",
            config.default_limit, config.max_limit
        );
        let diagnostic = Diagnostic::error(Code::WrongValue, message)
            .hint("Lower `query.default_limit` or raise `query.max_limit`.");
        let place = s.place("default_limit").or_else(|| s.place("max_limit"));
        s.report(match place {
            Some(place) => place.mark(diagnostic),
            None => diagnostic,
        });
    }
    config
}

fn server(s: &mut Section<'_>) -> ServerConfig {
    ServerConfig {
        host: s.text("host").unwrap_or_else(|| "127.0.0.1".to_owned()),
        port: s.integer("port", 0..=65_535).map_or(8_000, |port| port as u16),
        max_concurrent_queries: s.integer("max_concurrent_queries", 1..=10_000).map_or(32, |n| n as usize),
        max_queued_queries: s.integer("max_queued_queries", 0..=1_000_000).map_or(1_000, |n| n as usize),
        workers: s.integer("workers", 1..=1_024).map(|n| n as usize),
        cors: s.section("cors", network::cors),
        allowed_hosts: network::allowed_hosts(s),
        trusted_proxies: network::trusted_proxies(s),
        tls: s.section("tls", network::tls),
        max_connections: s.integer("max_connections", 1..=1_000_000).map_or(4_096, |n| n as usize),
        max_body_bytes: s.integer("max_body_bytes", 1_024..=1_073_741_824).unwrap_or(256 * 1024),
        header_timeout_seconds: s.integer("header_timeout_seconds", 1..=3_600).unwrap_or(20),
        body_timeout_seconds: s.integer("body_timeout_seconds", 1..=3_600).unwrap_or(30),
        write_timeout_seconds: s.integer("write_timeout_seconds", 1..=3_600).unwrap_or(30),
        shutdown_seconds: s.integer("shutdown_seconds", 1..=3_600).unwrap_or(25),
        docs: s.boolean("docs").unwrap_or(true),
        project_roots: s.texts_with_places("project_roots").unwrap_or_default(),
        watch: s.boolean("watch").unwrap_or(false),
    }
}

fn log(s: &mut Section<'_>) -> LogSettings {
    const LEVELS: &[(&str, LogLevel)] = &[
        ("DEBUG", LogLevel::Debug),
        ("INFO", LogLevel::Info),
        ("WARNING", LogLevel::Warning),
        ("ERROR", LogLevel::Error),
        ("CRITICAL", LogLevel::Critical),
    ];
    const FORMATS: &[(&str, LogFormat)] =
        &[("json", LogFormat::Json), ("console", LogFormat::Console), ("pretty", LogFormat::Pretty)];
    let file = LogFile {
        path: s.text("file").unwrap_or_else(|| ".terrane/terrane.log".to_owned()).into(),
        max_size_bytes: s.integer("max_size_mb", 1..=1_048_576).unwrap_or(100) * 1024 * 1024,
        backup_count: s.integer("backup_count", 0..=1_000).map_or(5, |n| n as u32),
    };
    let outputs = [("stdout", LogOutput::Stdout), ("stderr", LogOutput::Stderr), ("file", LogOutput::File(file))];
    LogSettings {
        level: s.choice("level", LEVELS).unwrap_or(LogLevel::Info),
        format: s.choice("format", FORMATS).unwrap_or(LogFormat::Json),
        timestamps: s.boolean("timestamps").unwrap_or(true),
        caller: s.boolean("caller").unwrap_or(false),
        output: s.choice("output", &outputs).unwrap_or(LogOutput::Stdout),
        requests: s.boolean("requests").unwrap_or(true),
        queries: s.boolean("queries").unwrap_or(true),
    }
}

fn metrics(s: &mut Section<'_>) -> MetricsConfig {
    MetricsConfig {
        enabled: s.boolean("enabled").unwrap_or(false),
        path: s.checked("path", "an absolute path like /metrics", plain_path).unwrap_or_else(|| "/metrics".to_owned()),
        path_place: s.place("path"),
        address: s.checked("address", "a host and a port like 127.0.0.1:9464", host_and_port),
        address_place: s.place("address"),
        is_public: s.boolean("public").unwrap_or(false),
        include_process: s.boolean("include_process").unwrap_or(true),
        include_runtime: s.boolean("include_runtime").unwrap_or(false),
    }
}

/// Reads a path without characters that need escaping or have a meaning for the router.
fn plain_path(text: &str) -> Option<String> {
    let is_step = |step: &str| {
        let is_plain = step.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte));
        is_plain && !matches!(step, "" | "." | "..")
    };
    let steps = text.strip_prefix('/')?;
    (text.len() <= 200 && steps.split('/').all(is_step)).then(|| text.to_owned())
}

fn host_and_port(text: &str) -> Option<(String, u16)> {
    let (host, port) = text.trim().rsplit_once(':')?;
    // An IPv6 address must be in brackets.
    let is_host = !host.is_empty() && (!host.contains(':') || host.starts_with('[') && host.ends_with(']'));
    Some((host.to_owned(), port.parse().ok()?)).filter(|_| is_host)
}

fn telemetry(s: &mut Section<'_>) -> TelemetryConfig {
    let ratio = |text: &str| text.trim().parse::<f64>().ok().filter(|ratio| (0.0..=1.0).contains(ratio));
    TelemetryConfig {
        otlp_endpoint: s.secret("otlp_endpoint").filter(|endpoint| !endpoint.expose().trim().is_empty()),
        service_name: s.text("service_name").unwrap_or_else(|| "terrane".to_owned()),
        sample_ratio: s.number("sample_ratio", "a number from 0 to 1", 0..=1, ratio).unwrap_or(1.0),
    }
}

/// Records the keys of a section that are set without effect. Keys on the line of the section get the section's place.
fn note_unused(
    s: &mut Section<'_>,
    section: &str,
    keys: impl Iterator<Item = &'static str>,
    around: Option<&Place>,
    found: &mut Vec<UnusedSetting>,
) {
    for key in keys {
        let Some(own) = s.place(key) else { continue };
        let place = match (&own, around) {
            (Place::File(own), Some(Place::File(around))) if own.line == around.line => Place::File(around.clone()),
            _ => own,
        };
        found.push(UnusedSetting { key: format!("{section}.{key}"), place });
    }
}
