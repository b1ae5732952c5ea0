//! Creates the adapters that the configuration names. Only this module refers to all of them.
//!
//! In: a [`Project`]. Out: ports with their adapters, from which `terrane_app::services` assembles the use cases. Not
//! here: the behaviour of the adapters.

mod cache;
mod cases;
mod channels;
mod language_model;
mod modules;
mod network;
mod plugins;
mod preaggregations;
mod projects;
mod providers;
mod queries;
mod security;
mod start_check;
mod telemetry;
mod warehouse;

pub use language_model::language_model;
pub use modules::{close_modules, modules};
pub use network::serve_settings;
pub use plugins::REQUIRED_REFUSED;
pub use preaggregations::place as rollup_place;
pub use queries::{CommandDuration, load_for_queries};
pub use start_check::{StartProblem, start_problems, try_to_create_in};

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use terrane_app::builds::Builds;
use terrane_app::catalog::{self, Snapshot};
use terrane_app::cost::{ExecutionLog, Guardrails};
use terrane_app::cron_schedule::CronSchedule;
use terrane_app::data_tests::{DataTestSchedule, DataTestSettings};
use terrane_app::governance::{ApprovalService, GovernancePorts, GovernanceService, GovernanceSettings};
use terrane_app::introspection::SchemaIntrospection;
use terrane_app::jobs::JobSettings;
use terrane_app::ports::audit::{AuditEntry, AuditLog as _, Details};
use terrane_app::ports::clock::Clock;
use terrane_app::ports::governance::NoHooks;
use terrane_app::ports::jobs::JobQuota;
use terrane_app::ports::observer::{Observer, Unobserved};
use terrane_app::ports::projects::ProjectTexts;
use terrane_app::ports::registrations::Registrations as _;
use terrane_app::ports::rollup_tables::{RollupPlace, RollupTables, TablesElsewhere};
use terrane_app::ports::store::Store as _;
use terrane_app::ports::tokens::Randomness as _;
use terrane_app::preaggregations::{PreaggregationBackend, Preaggregations};
use terrane_app::query::{CacheSettings, LimiterSettings, QuerySettings};
use terrane_app::security::{AcknowledgeKey, Scope, Scopes, api_key};
use terrane_app::services::{
    CostBackend, CostSettings, ServerPorts, ServerServices, ServerSettings, ServicePorts, Services,
};
use terrane_app::worker::LeaseSettings;
use terrane_compiler::SecurityContext;
use terrane_compiler::diagnostic::{Code, Diagnostic};
use terrane_compiler::project::{Inputs, RegisteredCube};
use terrane_compiler::{model, project};
use terrane_expectations::Subject;
use terrane_identity::{Argon2Passwords, OsRandomness};
use terrane_plugin_host::{ComponentChecks, ComponentDetectors, Hooks};
use terrane_results::ResultFolder;
use terrane_server::telemetry::{LogOutput, LogSettings};
use terrane_server::{Anonymous, HttpSettings, TrustedProxies};
use terrane_store::{OpenError, StateStore};
use terrane_wire::jobs::Texts;
use terrane_wire::profile::StoredProfileTexts;

use crate::clock::SystemClock;
use crate::config::{Config, Place};
use crate::failure::Failure;
use crate::project::Project;
use crate::report;

pub use telemetry::{Watching, watching};

/// The workspace in which this program was built, where `cargo xtask setup` puts components. `None` in shipped
/// programs.
const WORKSPACE: Option<&str> = match option_env!("TERRANE_SHIPPED") {
    Some(_) => None,
    None => Some(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")),
};

const RESULTS_HINT: &str = "Name a folder that the server may write and that all replicas share.";

/// A loaded project and the ports of its use cases.
pub struct Loaded {
    pub snapshot: Snapshot,
    pub ports: ServicePorts,
    /// The tables of pre-aggregations; `None` if they are switched off.
    pub rollups: Option<Arc<dyn RollupTables>>,
}

/// The result of a check: the use cases, unless a part is missing, and all problems.
pub struct Checked {
    pub engine: Option<Services>,
    /// Problems of the configuration, the files, the compiler, the plugins and the warehouse, sorted.
    pub problems: Vec<Diagnostic>,
}

/// The way in which a command uses the warehouse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WarehouseUse {
    Read,
    /// Tables of pre-aggregations are read that a server or another command has built at this place.
    ReadTables(RollupPlace),
    /// Models are built in the warehouse.
    Build,
    /// Tables of pre-aggregations are built at this place, and read.
    Rollups(RollupPlace),
}

impl WarehouseUse {
    fn place(&self) -> Option<&RollupPlace> {
        match self {
            WarehouseUse::Rollups(place) => Some(place),
            WarehouseUse::Read | WarehouseUse::ReadTables(_) | WarehouseUse::Build => None,
        }
    }

    /// Returns the place of tables that are only read.
    fn read_place(&self) -> Option<&RollupPlace> {
        match self {
            WarehouseUse::ReadTables(place) => Some(place),
            _ => None,
        }
    }

    /// Returns the port to tables that are only read.
    fn read_tables(&self) -> Option<Arc<dyn RollupTables>> {
        self.read_place().map(tables_elsewhere)
    }
}

/// Connects, loads a project that has no errors, and assembles the use cases of a command.
///
/// # Errors
/// Every problem of the project, if one of them is an error.
pub async fn load(project: &Project, usage: WarehouseUse) -> Result<(Services, Vec<Diagnostic>), Failure> {
    let (loaded, problems) = whole(project, open(project, Arc::new(Unobserved), Vec::new(), usage).await)?;
    Ok((for_operator(project, loaded), problems))
}

/// The use cases of a command, the tables of pre-aggregations, and the problems of the project.
pub type WithTables = (Services, Option<Arc<dyn RollupTables>>, Vec<Diagnostic>);

/// Loads a project like [`load`], and returns the port to the tables of pre-aggregations as well.
///
/// # Errors
/// Returns the same errors as [`load`].
pub async fn load_with_tables(project: &Project, usage: WarehouseUse) -> Result<WithTables, Failure> {
    let opened = open(project, Arc::new(Unobserved), Vec::new(), usage).await;
    let (mut loaded, problems) = whole(project, opened)?;
    let tables = loaded.rollups.take();
    Ok((for_operator(project, loaded), tables, problems))
}

/// Connects and loads a project without errors for a server, with the registered cubes.
///
/// # Errors
/// Returns the same errors as [`load`].
pub async fn load_for_server(
    project: &Project,
    observer: Arc<dyn Observer>,
    registered: Vec<RegisteredCube>,
    rollups: Option<RollupPlace>,
) -> Result<(Loaded, Vec<Diagnostic>), Failure> {
    let usage = rollups.map_or(WarehouseUse::Read, WarehouseUse::Rollups);
    whole(project, open(project, observer, registered, usage).await)
}

/// Checks a warehouse type that is not read from a project file.
///
/// # Errors
/// This version does not connect to warehouses of that type.
pub fn check_warehouse_type(kind: &str) -> Result<(), Failure> {
    warehouse::check_type(kind)
}

/// Loads the ADBC driver that the project names, without connecting, and describes it. Returns `None` if the project
/// names none.
pub fn adbc_driver(project: &Project) -> Option<Result<String, Diagnostic>> {
    warehouse::driver(project)
}

/// Returns whether the warehouse is in memory, so that relations that are built there end with this process.
pub fn is_in_memory(project: &Project) -> bool {
    warehouse::is_in_memory(project)
}

fn whole(
    project: &Project,
    (loaded, problems): (Option<Loaded>, Vec<Diagnostic>),
) -> Result<(Loaded, Vec<Diagnostic>), Failure> {
    match loaded {
        Some(loaded) if !problems.iter().any(Diagnostic::is_error) => Ok((loaded, problems)),
        _ => Err(Failure::Project { problems, tree: project.tree.clone() }),
    }
}

/// Connects and loads as much as possible, and collects every problem on the way.
pub async fn check(project: &Project) -> Checked {
    let (loaded, problems) = open(project, Arc::new(Unobserved), Vec::new(), WarehouseUse::Read).await;
    Checked { engine: loaded.map(|loaded| for_operator(project, loaded)), problems }
}

fn for_operator(project: &Project, Loaded { snapshot, ports, .. }: Loaded) -> Services {
    let cache = cache::of_process(project);
    Services::for_operator(snapshot, ports, QuerySettings { cache, ..query_settings(&project.config) })
}

async fn open(
    project: &Project,
    observer: Arc<dyn Observer>,
    registered: Vec<RegisteredCube>,
    usage: WarehouseUse,
) -> (Option<Loaded>, Vec<Diagnostic>) {
    let mut problems = project.problems.clone();
    let plugins = plugins::host(project, &mut problems);
    let warehouse = match project.config.is_warehouse_unread {
        true => None,
        false => warehouse::open(project, &registered, &usage, &mut problems).await,
    };
    let mut loaded = None;
    let hooks = plugins.as_ref().map(|host| Hooks::new(Arc::clone(host)));
    if let (Some(plugins), Some(hooks), Some(opened)) = (plugins, hooks, warehouse) {
        let warehouse::Opened { warehouse, builder, rollups } = opened;
        let inputs = Inputs { registered, ..project.inputs.clone() };
        let known = SchemaIntrospection::default();
        match catalog::load(&project.source, &inputs, &known, &*plugins, &*warehouse).await {
            Ok(mut snapshot) => {
                project::soften_registered(&mut snapshot.diagnostics);
                problems.extend(snapshot.diagnostics.iter().cloned());
                let ports = ServicePorts {
                    warehouse,
                    builder,
                    governance: Arc::new(hooks),
                    detectors: Arc::new(ComponentDetectors::new(Arc::clone(&plugins))),
                    checks: Arc::new(ComponentChecks::new(Arc::clone(&plugins))),
                    plugins,
                    clock: Arc::new(SystemClock::default()),
                    observer,
                };
                loaded = Some(Loaded { snapshot, ports, rollups });
            }
            Err(error) => problems.push(
                Diagnostic::error(Code::NoDialect, error.to_string())
                    .hint("Run `cargo xtask components`, or put a compatible component into the project's plugins/."),
            ),
        }
    }
    if loaded.is_none() {
        // Definitions can be checked without a warehouse.
        let (definitions, found) = project::read(&project.source, &project.inputs);
        problems.extend(found);
        problems.extend(model::build(&definitions).1);
    }
    report::sort(&mut problems);
    (loaded, problems)
}

fn query_settings(config: &Config) -> QuerySettings {
    QuerySettings {
        timeout: Duration::from_secs_f64(config.query.timeout_seconds),
        default_limit: config.query.default_limit,
        max_limit: config.query.max_limit,
        max_export_rows: config.query.max_export_rows,
        export_timeout: Duration::from_secs_f64(config.query.export_timeout_seconds),
        timezone: config.query.timezone.clone(),
        limiter: LimiterSettings {
            running: config.server.max_concurrent_queries,
            queued: config.server.max_queued_queries,
            running_per_tenant: config.limits.max_concurrent_per_tenant,
            queued_per_tenant: config.limits.max_queued_per_tenant,
        },
        cache: CacheSettings::disabled(),
        pre_aggregations: config.pre_aggregations.enabled,
        guardrails: match config.optimization.enabled {
            true => config.optimization.guardrails,
            false => Guardrails::default(),
        },
        limit_advice: terrane_wire::limit_advice::limit_advice,
    }
}

fn job_settings(config: &Config) -> JobSettings {
    let jobs = &config.jobs;
    // Jobs share less than half of the connections, but at least one. The other connections remain for interactive
    // queries.
    let share = (warehouse::connections(&config.warehouse).saturating_sub(1) / 2).max(1);
    JobSettings {
        concurrency: jobs.concurrency.min(share),
        timeout: Duration::from_secs(jobs.timeout_seconds),
        result_lifetime: Duration::from_secs(jobs.result_hours * 3_600),
        retention: Duration::from_secs(jobs.retention_days * 86_400),
        quota: JobQuota {
            open: jobs.max_open,
            open_per_tenant: jobs.max_open_per_tenant,
            open_per_caller: jobs.max_open_per_caller,
        },
    }
}

/// Assembles the use cases of governance over the state database, for reading; `None` if the module is switched off.
pub fn governance(project: &Project, services: &Services, store: &Arc<StateStore>) -> Option<GovernanceService> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let timezone = &project.config.query.timezone;
    let ports = GovernancePorts {
        records: store.clone(),
        catalog: Arc::clone(&services.catalog),
        access: Arc::clone(&services.access),
        approvals: ApprovalService::new(Arc::new(NoHooks), Arc::clone(&clock), timezone),
        randomness: Arc::new(OsRandomness),
        clock,
    };
    governance_settings(&project.config).map(|settings| GovernanceService::new(ports, settings))
}

/// Returns a log that reads the history of queries; `None` if costs are switched off.
pub fn executions(project: &Project, store: &Arc<StateStore>) -> Option<ExecutionLog> {
    let optimization = &project.config.optimization;
    let clock = Arc::new(SystemClock::default());
    optimization.enabled.then(|| ExecutionLog::new(store.clone(), clock, &OsRandomness, optimization.prices))
}

/// Returns the settings of governance; `None` if the module is switched off.
fn governance_settings(config: &Config) -> Option<GovernanceSettings> {
    let governance = &config.governance;
    let days = i64::try_from(governance.auto_deprecate_after_days).unwrap_or(i64::MAX);
    governance.enabled.then(|| GovernanceSettings {
        require_if_match: governance.require_if_match,
        on_change: governance.on_change,
        auto_deprecate_after_days: Some(days).filter(|days| *days > 0),
        allow_self_certification: governance.allow_self_certification,
        reviewer_roles: governance.reviewer_roles.iter().map(|role| role.as_str().into()).collect(),
        timezone: config.query.timezone.clone(),
    })
}

/// Opens the folder of results.
///
/// # Errors
/// The folder cannot be created or written.
fn results(project: &Project) -> Result<ResultFolder, Failure> {
    let jobs = &project.config.jobs;
    let folder = project.folder.root().join(&jobs.path);
    let opened = ResultFolder::open(&folder, jobs.min_free_disk_mb.saturating_mul(1_048_576));
    opened.map_err(|error| {
        let message = format!("cannot use `jobs.path` {}: {error}", folder.display());
        Failure::new(message).hint(RESULTS_HINT)
    })
}

/// Logs a reminder if several servers can use the state database: they must share the folder of results too.
pub fn log_shared_results(project: &Project) {
    if project.config.state.url.expose().starts_with("postgres") {
        let folder = project.folder.root().join(&project.config.jobs.path);
        tracing::info!(event = "job_results_shared", path = %folder.display(), hint = "Use a folder that all replicas share.");
    }
}

/// Returns whether the state database exists. A database on a server counts as existing.
pub fn has_state(project: &Project) -> bool {
    StateStore::file_of(project.config.state.url.expose(), project.folder.root()).is_none_or(|file| file.is_file())
}

/// Opens the state database.
///
/// # Errors
/// The state database cannot be opened.
pub async fn state(project: &Project) -> Result<Arc<StateStore>, Failure> {
    let url = project.config.state.url.expose();
    let store = StateStore::open(url, project.folder.root()).await;
    store.map(Arc::new).map_err(|error| match &error {
        OpenError::Folder { folder, .. } => {
            let parent = folder.ancestors().skip(1).find(|parent| parent.is_dir()).unwrap_or(folder.as_path());
            let parent = parent.display();
            Failure::new(error.to_string())
                .hint(format!("Make {parent} writable for this user, or name another place in `state.url`."))
        }
        _ => unwritable(&error),
    })
}

fn unwritable(error: &dyn std::fmt::Display) -> Failure {
    Failure::new(error.to_string()).hint(
        "Check `state.url`: the file and its folder must be writable, or the server must accept the user and password.",
    )
}

/// Returns the cubes that were registered while a server ran, oldest first.
///
/// # Errors
/// The state database cannot be read.
pub async fn registered(store: &StateStore) -> Result<Vec<RegisteredCube>, Failure> {
    let registrations = store.registrations().await.map_err(|error| unwritable(&error))?;
    Ok(registrations.into_iter().map(|registration| registration.cube).collect())
}

/// Assembles the use cases of a server, and records this start in the state database.
///
/// # Errors
/// The state database cannot be written, or a key file cannot be used.
pub async fn server_services(
    project: &Project,
    loaded: Loaded,
    store: &Arc<StateStore>,
    registered: Vec<RegisteredCube>,
    process_id: Arc<str>,
) -> Result<ServerServices, Failure> {
    let clock = Arc::clone(&loaded.ports.clock);
    let now = clock.now();
    store.record_start(env!("CARGO_PKG_VERSION"), &now.to_string()).await.map_err(|error| unwritable(&error))?;
    store.append(vec![start_entry(project, now)]).await.map_err(|error| unwritable(&error))?;
    let cache = cache::settings(project, store, &clock).await?;
    assembled(project, loaded, store, registered, (process_id, cache)).await
}

/// Assembles the use cases of a server with the id of the process and the settings of the result cache.
async fn assembled(
    project: &Project,
    Loaded { snapshot, ports, rollups }: Loaded,
    store: &Arc<StateStore>,
    registered: Vec<RegisteredCube>,
    (process_id, cache): (Arc<str>, CacheSettings),
) -> Result<ServerServices, Failure> {
    let config = &project.config;
    let security::Security { tokens, providers, state_token_key, transport, sessions } =
        security::open(project, store, &ports.clock).await?;
    let acknowledge_key = AcknowledgeKey::derived_from(&security::server_secret(store, "alert_links").await?);
    let texts = ProjectTexts {
        folder: project.folder.root().display().to_string().into(),
        source: project.source.clone(),
        inputs: Inputs { registered, ..project.inputs.clone() },
        problems: project.problems.clone(),
    };
    let server = ServerPorts {
        store: store.clone(),
        audit: store.clone(),
        credentials: store.clone(),
        registrations: store.clone(),
        governance_records: store.clone(),
        leases: store.clone(),
        invalidations: store.clone(),
        jobs: store.clone(),
        results: Arc::new(results(project)?),
        job_texts: Arc::new(Texts),
        profiles: store.clone(),
        profile_texts: Arc::new(StoredProfileTexts),
        monitors: store.clone(),
        data_tests: store.clone(),
        cases: Arc::new(cases::FolderCases::of(project)),
        deliveries: store.clone(),
        channels: channels::channels(project, &ports.clock, Some(acknowledge_key.clone()))?,
        retention: store.clone(),
        tokens,
        passwords: Arc::new(Argon2Passwords::default()),
        randomness: Arc::new(OsRandomness),
        files: Arc::new(projects::FolderProjects::of(project)),
        providers,
        preaggregations: rollups.map(|tables| PreaggregationBackend { state: store.clone(), tables }),
        cost: config.optimization.enabled.then(|| CostBackend {
            history: store.clone(),
            guardrails: store.clone(),
            budgets: store.clone(),
        }),
        language_model: language_model(project)?,
    };
    let settings = ServerSettings {
        queries: QuerySettings { cache, ..query_settings(config) },
        jobs: job_settings(config),
        subscriptions: config.subscriptions,
        sessions,
        state_token_key,
        acknowledge_key,
        transport,
        build_timeout: build_timeout(config),
        preaggregations: preaggregations::settings(config),
        cost: CostSettings {
            prices: config.optimization.prices,
            history: Duration::from_secs(config.optimization.history_days * 86_400),
            recommendation_days: config.optimization.recommendation_days,
            timezone: config.optimization.timezone.clone().unwrap_or_else(|| config.query.timezone.clone()),
        },
        governance: governance_settings(config),
        search: config.search.enabled,
        profiling: config.profiling.enabled,
        monitors: config.anomaly.enabled,
        data_tests: data_test_settings(config),
        retention: Duration::from_secs(config.state.retention_days * 86_400),
        leases: LeaseSettings::default(),
        process_id,
    };
    let services = ServerServices::new(snapshot, texts, ports, server, settings);
    if let Some(cost) = &services.cost {
        let learned = cost.log().learn().await;
        learned.map_err(|error| Failure::new(format!("the history of queries cannot be read: {error}")))?;
    }
    if let Some(guardrails) = &services.guardrails {
        // No query may run before the guardrails are known.
        let read = guardrails.table().refresh().await;
        read.map_err(|error| Failure::new(format!("the guardrails cannot be read: {error}")))?;
    }
    Ok(services)
}

fn data_test_settings(config: &Config) -> DataTestSettings {
    let zone = config.data_tests.timezone.clone().unwrap_or_else(|| config.query.timezone.clone());
    let schedule = config.data_tests.schedule.as_deref().and_then(|text| {
        // The reader of the settings has checked the expression.
        let times = CronSchedule::in_zone(text, zone.clone()).ok()?;
        let timezone = zone.iana_name().unwrap_or("UTC").into();
        Some(DataTestSchedule { text: text.into(), timezone, times })
    });
    DataTestSettings { schedule, timeout: Duration::from_secs_f64(config.query.timeout_seconds) }
}

/// Returns the audit record of a start: the version, and a digest of the settings. It contains no secrets.
fn start_entry(project: &Project, at: Timestamp) -> AuditEntry {
    let lines = project.config.settings.iter().map(|setting| format!("{setting:?}\n"));
    let digest = api_key::hash(&lines.collect::<String>());
    let after = Details::fields([
        ("version", env!("CARGO_PKG_VERSION").into()),
        ("settings_sha256", hex::encode(digest).into()),
    ]);
    AuditEntry {
        at,
        event: "server_started".into(),
        actor: "server".into(),
        auth_method: "start".into(),
        resource: "server".into(),
        after: Some(after),
        count: 1,
        ..AuditEntry::default()
    }
}

/// Returns the parts of the use cases that expectations need.
pub fn subject(services: &Services) -> Subject<'_> {
    Subject { queries: &services.queries, warehouse: &*services.warehouse, clock: &*services.clock }
}

/// Returns the use case of building models, one run of the project at a time.
pub fn builds(project: &Project, services: &Services, store: &Arc<StateStore>) -> Builds {
    services.builds(store.clone(), store.clone(), store.clone(), process_id(), build_timeout(&project.config))
}

/// Returns the use case of pre-aggregations over some tables.
pub fn preaggregations(
    project: &Project,
    services: &Services,
    store: &Arc<StateStore>,
    tables: Arc<dyn RollupTables>,
) -> Preaggregations {
    let backend = PreaggregationBackend { state: store.clone(), tables };
    let settings = preaggregations::settings(&project.config);
    let queries = vec![Arc::clone(&services.queries)];
    let (randomness, observer) = (Arc::new(OsRandomness), Arc::new(Unobserved));
    services.preaggregations(Some(backend), queries, store.clone(), randomness, observer, settings)
}

/// Returns the port to tables that another process has open.
pub fn tables_elsewhere(place: &RollupPlace) -> Arc<dyn RollupTables> {
    Arc::new(TablesElsewhere { target: place.target.clone(), schema: place.schema.clone() })
}

fn build_timeout(config: &Config) -> Duration {
    Duration::from_secs(config.warehouse.build_timeout_seconds)
}

/// Returns a new id that distinguishes this process from all other replicas.
pub fn process_id() -> Arc<str> {
    let mut random = [0; 16];
    OsRandomness.fill(&mut random);
    hex::encode(random).into()
}

/// Returns whether tokens are accepted, and checks that their keys can be used.
///
/// # Errors
/// A key file cannot be read or used, or others may read it.
pub fn token_keys(project: &Project) -> Result<bool, Failure> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    security::accepts_tokens(project, &clock)
}

/// Returns whether Redis answers; `None` if the result cache does not use it.
///
/// # Errors
/// `cache.url` is invalid, or the file of its certificate authorities cannot be read.
pub async fn redis_answers(project: &Project) -> Result<Option<bool>, Failure> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    cache::redis_answers(project, &clock).await
}

pub fn http_settings(config: &Config) -> HttpSettings {
    let anonymous = config.security.anonymous.as_ref().map(|anonymous| Anonymous {
        caller: SecurityContext {
            roles: anonymous.roles.iter().map(|role| role.as_str().into()).collect(),
            ..SecurityContext::default()
        },
        // The start rules refuse every scope of anonymous callers except `read`.
        scopes: if anonymous.scopes.hold(Scope::Read) { Scopes::READ } else { Scopes::default() },
        hosts: network::hosts(config, anonymous.public),
    });
    HttpSettings {
        version: env!("CARGO_PKG_VERSION").into(),
        body_limit_bytes: config.server.max_body_bytes as usize,
        body_timeout: Duration::from_secs(config.server.body_timeout_seconds),
        anonymous,
        docs: config.server.docs,
        metrics: telemetry::metrics_route(config),
        cors: network::cors(&config.server.cors),
        trusted_proxies: TrustedProxies::new(&config.server.trusted_proxies),
        rates: config.limits.rates,
        graphql: config.graphql.clone(),
    }
}

/// Returns the log's settings. The log's file is relative to the project.
pub fn log_settings(project: &Project) -> LogSettings {
    let mut settings = project.config.log.clone();
    if let LogOutput::File(file) = &mut settings.output {
        file.path = project.folder.root().join(&file.path);
    }
    settings
}

fn mark(place: Option<&Place>, diagnostic: Diagnostic) -> Diagnostic {
    match place {
        Some(place) => place.mark(diagnostic),
        None => diagnostic,
    }
}
