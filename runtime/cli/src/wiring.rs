//! Puts the adapters together as the configuration says: the only place that knows them all.
//!
//! In: a [`Project`]. Out: an [`Engine`]: ports with their adapters, and the use cases over them. Not
//! here: what any of them does.

mod network;
mod plugins;
mod projects;
mod providers;
mod security;
mod telemetry;
mod warehouse;

pub use network::serve_settings;
pub use plugins::REQUIRED_REFUSED;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use terrane_app::anomaly::AnomalyService;
use terrane_app::builds::Builds;
use terrane_app::catalog::{self, Catalog, Snapshot};
use terrane_app::described::Described;
use terrane_app::governance::Gatekeeper;
use terrane_app::ports::audit::{AuditEntry, AuditLog as _};
use terrane_app::ports::builder::ModelBuilder;
use terrane_app::ports::clock::Clock;
use terrane_app::ports::detectors::Detectors;
use terrane_app::ports::observer::{Observer, Unobserved};
use terrane_app::ports::plugins::Plugins;
use terrane_app::ports::projects::ProjectTexts;
use terrane_app::ports::registrations::Registrations as _;
use terrane_app::ports::store::Store;
use terrane_app::ports::tokens::Randomness as _;
use terrane_app::ports::warehouse::Warehouse;
use terrane_app::profiling::ProfilingService;
use terrane_app::projects::{ProjectPorts, ProjectService};
use terrane_app::query::{GateSettings, QueryService, QuerySettings};
use terrane_app::security::api_key;
use terrane_app::upkeep::{Upkeep, UpkeepSettings};
use terrane_compiler::SecurityContext;
use terrane_compiler::diagnostic::{Code, Diagnostic};
use terrane_compiler::project::{Inputs, RegisteredCube};
use terrane_compiler::{model, project};
use terrane_expectations::Subject;
use terrane_identity::OsRandomness;
use terrane_plugin_host::{ComponentChecks, ComponentDetectors, Hooks, PluginHost};
use terrane_server::telemetry::{LogOutput, LogSettings};
use terrane_server::{Anonymous, HttpSettings, Ports, Scopes, TrustedProxies};
use terrane_store::StateStore;

use crate::clock::SystemClock;
use crate::config::{Config, Place, Scope};
use crate::failure::Failure;
use crate::project::Project;
use crate::report;

pub use telemetry::{Watching, watching};

/// The workspace this program was built in, for components that `cargo xtask setup` prepared.
/// What is shipped knows nothing of it.
const WORKSPACE: Option<&str> = match option_env!("TERRANE_SHIPPED") {
    Some(_) => None,
    None => Some(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")),
};

/// A project with everything that answers questions about it.
pub struct Engine {
    pub catalog: Arc<Catalog>,
    pub queries: Arc<QueryService>,
    pub warehouse: Arc<dyn Warehouse>,
    pub builder: Arc<dyn ModelBuilder>,
    pub plugins: Arc<dyn Plugins>,
    pub detectors: Arc<dyn Detectors>,
    pub anomalies: Arc<AnomalyService>,
    pub profiling: Arc<ProfilingService>,
    pub hooks: Arc<Hooks>,
    pub clock: Arc<dyn Clock>,
}

impl Engine {
    /// Returns the parts of the engine that expectations need.
    pub fn subject(&self) -> Subject<'_> {
        Subject { queries: &self.queries, warehouse: &*self.warehouse, clock: &*self.clock }
    }
}

/// An engine, or nothing where something can't be had, and in both cases all that was found.
pub struct Checked {
    pub engine: Option<Engine>,
    /// Sorted, of the configuration, the files, the compiler, the plugins and the warehouse.
    pub problems: Vec<Diagnostic>,
}

/// Connects and loads a project that has no errors.
///
/// # Errors
/// Every problem of the project, if one of them is an error.
pub async fn load(project: &Project) -> Result<(Engine, Vec<Diagnostic>), Failure> {
    load_observed(project, Arc::new(Unobserved), Vec::new()).await
}

/// The same with registered cubes, and tells somebody how queries go.
///
/// # Errors
/// As [`load`].
pub async fn load_observed(
    project: &Project,
    observer: Arc<dyn Observer>,
    registered: Vec<RegisteredCube>,
) -> Result<(Engine, Vec<Diagnostic>), Failure> {
    whole(project, open(project, observer, registered, false).await)
}

/// The same with a warehouse that may be written.
///
/// # Errors
/// As [`load`].
pub async fn load_to_build(project: &Project) -> Result<(Engine, Vec<Diagnostic>), Failure> {
    whole(project, open(project, Arc::new(Unobserved), Vec::new(), true).await)
}

/// Whether what is built in the warehouse ends with this process.
pub fn is_in_memory(project: &Project) -> bool {
    warehouse::is_in_memory(project)
}

fn whole(project: &Project, checked: Checked) -> Result<(Engine, Vec<Diagnostic>), Failure> {
    let Checked { engine, problems } = checked;
    match engine {
        Some(engine) if !problems.iter().any(Diagnostic::is_error) => Ok((engine, problems)),
        _ => Err(Failure::Project { problems, tree: project.tree.clone() }),
    }
}

/// Connects and loads whatever can be, and collects every problem on the way.
pub async fn check(project: &Project) -> Checked {
    open(project, Arc::new(Unobserved), Vec::new(), false).await
}

async fn open(
    project: &Project,
    observer: Arc<dyn Observer>,
    registered: Vec<RegisteredCube>,
    is_written: bool,
) -> Checked {
    let mut problems = project.problems.clone();
    let plugins = plugins::host(project, &mut problems);
    let warehouse = warehouse::open(project, &registered, is_written, &mut problems).await;
    let mut loaded = None;
    let hooks = plugins.as_ref().map(|host| Hooks::new(Arc::clone(host)));
    if let (Some(plugins), Some(hooks), Some(warehouse)) = (plugins, hooks, warehouse) {
        let inputs = Inputs { registered, ..project.inputs.clone() };
        let known = Described::default();
        match catalog::load(&project.source, &inputs, &known, &*plugins, &*warehouse.0).await {
            Ok(mut snapshot) => {
                project::soften_registered(&mut snapshot.diagnostics);
                problems.extend(snapshot.diagnostics.iter().cloned());
                loaded = Some(engine(&project.config, snapshot, (plugins, hooks), warehouse, observer));
            }
            Err(error) => problems.push(Diagnostic::error(Code::NoDialect, error.to_string()).hint(
                "run `cargo xtask components` to build the components for this program, or put one that fits into the project's plugins/, in the place of one that does not",
            )),
        }
    }
    if loaded.is_none() {
        // The texts can be judged without a warehouse.
        let (definitions, found) = project::read(&project.source, &project.inputs);
        problems.extend(found);
        problems.extend(model::build(&definitions).1);
    }
    report::sort(&mut problems);
    Checked { engine: loaded, problems }
}

fn engine(
    config: &Config,
    snapshot: Snapshot,
    (plugins, hooks): (Arc<PluginHost>, Hooks),
    (warehouse, builder): warehouse::Opened,
    observer: Arc<dyn Observer>,
) -> Engine {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let catalog = Arc::new(Catalog::new(snapshot));
    let settings = QuerySettings {
        timeout: Duration::from_secs_f64(config.query.timeout_seconds),
        default_limit: config.query.default_limit,
        max_limit: config.query.max_limit,
        max_export_rows: config.query.max_export_rows,
        export_timeout: Duration::from_secs_f64(config.query.export_timeout_seconds),
        timezone: config.query.timezone.clone(),
        gate: GateSettings {
            running: config.server.max_concurrent_queries,
            queued: config.server.max_queued_queries,
            running_per_tenant: config.limits.max_concurrent_per_tenant,
            queued_per_tenant: config.limits.max_queued_per_tenant,
        },
    };
    let hooks = Arc::new(hooks);
    let queries = QueryService::new(Arc::clone(&catalog), Arc::clone(&warehouse), Arc::clone(&clock), settings);
    let queries = Arc::new(queries.observed_by(observer).governed_by(hooks.clone()));
    let detectors: Arc<dyn Detectors> = Arc::new(ComponentDetectors::new(Arc::clone(&plugins)));
    let checks = Arc::new(ComponentChecks::new(Arc::clone(&plugins)));
    let of = || (Arc::clone(&catalog), Arc::clone(&queries), Arc::clone(&clock));
    let (models, asked, time) = of();
    let anomalies = Arc::new(AnomalyService::new(models, asked, Arc::clone(&detectors), time));
    let (models, asked, time) = of();
    let profiling = Arc::new(ProfilingService::new(models, asked, checks, time));
    Engine { catalog, queries, warehouse, builder, plugins, detectors, anomalies, profiling, hooks, clock }
}

/// The state database.
///
/// # Errors
/// It can't be opened.
pub async fn state(project: &Project) -> Result<Arc<StateStore>, Failure> {
    let url = project.config.state.url.expose();
    let store = StateStore::open(url, project.folder.root()).await;
    store.map(Arc::new).map_err(|error| unwritable(&error))
}

fn unwritable(error: &dyn std::fmt::Display) -> Failure {
    Failure::new(error.to_string()).hint("check `state.url`: a file's folder must be yours to write, a server must be there and its name, user and password right")
}

/// Cubes that were registered while a server ran, oldest first.
///
/// # Errors
/// The state database can't be read.
pub async fn registered(store: &StateStore) -> Result<Vec<RegisteredCube>, Failure> {
    let registrations = store.registrations().await.map_err(|error| unwritable(&error))?;
    Ok(registrations.into_iter().map(|registration| registration.cube).collect())
}

/// The use case that changes what is served.
fn projects(
    project: &Project,
    engine: &Engine,
    store: &Arc<StateStore>,
    registered: Vec<RegisteredCube>,
) -> Arc<ProjectService> {
    let ports = ProjectPorts {
        files: Arc::new(projects::FolderProjects::of(project)),
        catalog: Arc::clone(&engine.catalog),
        plugins: Arc::clone(&engine.plugins),
        warehouse: Arc::clone(&engine.warehouse),
        registrations: store.clone(),
        audit: store.clone(),
        builds: builds(project, engine, store),
        clock: Arc::clone(&engine.clock),
    };
    let gatekeeper = Gatekeeper::new(engine.hooks.clone(), engine.clock.clone(), &project.config.query.timezone);
    let texts = ProjectTexts {
        folder: project.folder.root().display().to_string().into(),
        source: project.source.clone(),
        inputs: Inputs { registered, ..project.inputs.clone() },
        problems: project.problems.clone(),
    };
    Arc::new(ProjectService::new(ports, gatekeeper, texts))
}

/// What the server's handlers ask, with this start noted in the state database.
///
/// # Errors
/// The state database can't be written, or a key file can't be used.
pub async fn ports(
    project: &Project,
    engine: &Engine,
    store: &Arc<StateStore>,
    registered: Vec<RegisteredCube>,
) -> Result<Ports, Failure> {
    let now = engine.clock.now().to_string();
    store.record_start(env!("CARGO_PKG_VERSION"), &now).await.map_err(|error| unwritable(&error))?;
    store.append(vec![start_entry(project, engine.clock.now())]).await.map_err(|error| unwritable(&error))?;
    let security::Security { authenticator, journal, oauth } = security::open(project, store, &engine.clock).await?;
    engine.queries.audited_by(Arc::clone(&journal));
    Ok(Ports {
        queries: Arc::clone(&engine.queries),
        projects: projects(project, engine, store, registered),
        catalog: Arc::clone(&engine.catalog),
        warehouse: Arc::clone(&engine.warehouse),
        store: store.clone(),
        plugins: Arc::clone(&engine.plugins),
        clock: Arc::clone(&engine.clock),
        authenticator,
        journal,
        audit: store.clone(),
        oauth,
    })
}

/// The audit record of a start: the version, and a digest by which two starts with the same settings are
/// told. Secrets are not in it.
fn start_entry(project: &Project, at: Timestamp) -> AuditEntry {
    let lines = project.config.settings.iter().map(|setting| format!("{setting:?}\n"));
    let digest = api_key::hash(&lines.collect::<String>());
    let after = serde_json::json!({"version": env!("CARGO_PKG_VERSION"), "settings_sha256": hex::encode(digest)});
    AuditEntry {
        at,
        event: "server_started".into(),
        actor: "server".into(),
        auth_method: "start".into(),
        resource: "server".into(),
        after: Some(after.to_string().into()),
        count: 1,
        ..AuditEntry::default()
    }
}

/// What this server does for all on the same state database, if none of the others does.
pub fn upkeep(project: &Project, store: &Arc<StateStore>, clock: &Arc<dyn Clock>) -> Upkeep {
    let settings = UpkeepSettings {
        retention: Duration::from_secs(project.config.state.retention_days * 86_400),
        access_lifetime: Duration::from_secs(project.config.security.jwt.access_seconds),
    };
    Upkeep::new(store.clone(), store.clone(), clock.clone(), holder(), settings)
}

/// What builds models, one run of the project at a time.
pub fn builds(project: &Project, engine: &Engine, store: &Arc<StateStore>) -> Builds {
    Builds {
        builder: Arc::clone(&engine.builder),
        leases: store.clone(),
        audit: store.clone(),
        clock: Arc::clone(&engine.clock),
        holder: holder(),
        timeout: Duration::from_secs(project.config.warehouse.build_timeout_seconds),
    }
}

/// Tells this process from all others.
fn holder() -> Arc<str> {
    let mut random = [0; 16];
    OsRandomness.fill(&mut random);
    hex::encode(random).into()
}

/// Whether tokens are accepted, with keys that can be used.
///
/// # Errors
/// A key file can't be read or used, or others may read it.
pub fn token_keys(project: &Project) -> Result<bool, Failure> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    security::accepts_tokens(project, &clock)
}

pub fn http_settings(config: &Config) -> HttpSettings {
    let anonymous = config.security.anonymous.as_ref().map(|anonymous| Anonymous {
        caller: SecurityContext {
            roles: anonymous.roles.iter().map(|role| role.as_str().into()).collect(),
            ..SecurityContext::default()
        },
        // The start rules let nothing but `read` through.
        scopes: if anonymous.scopes.contains(&Scope::Read) { Scopes::READ } else { Scopes::default() },
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
        has_cache_url: config.unused.iter().any(|setting| setting.key == "cache.url"),
    }
}

/// The log's settings, its file in the project.
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
