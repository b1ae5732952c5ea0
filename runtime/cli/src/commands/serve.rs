//! `terrane serve`: serves a project over HTTP until it is stopped.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use terrane_app::cost::CostService;
use terrane_app::preaggregations::Preaggregations;
use terrane_app::security::AuditBuffer;
use terrane_app::services::ServerServices;
use terrane_compiler::diagnostic::Diagnostic;
use terrane_server::telemetry::Watch;
use terrane_server::{App, ServeError, Watchers, telemetry};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::check::contents;
use super::{Terminal, print_error, print_problems};
use crate::failure::Failure;
use crate::project::Project;
use crate::reload::{self, FolderWatch};
use crate::report::{self, plural};
use crate::shutdown_signal::ShutdownSignal;
use crate::{start_rules, wiring};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  terrane serve examples/flights
  terrane serve . --port 8080
  SERVICE_QUERY__TIMEOUT=60 SERVICE_LOG_FORMAT=pretty terrane serve .

Then send a query:
  curl -s http://127.0.0.1:8000/api/v1/query -H 'Content-Type: application/json' \\
    -d '{\"metrics\": [\"on_time_rate\"], \"dimensions\": [\"airlines.name\"]}'

Callers authenticate with API keys (`terrane auth create-key`) or tokens (`security.jwt`). With
`security: {anonymous: {scopes: [read]}}`, every user of this machine may read. On SIGTERM and Ctrl-C, the
server ends when the running requests are answered. SIGHUP reloads the project; if it has errors, the server
continues with the old one.")]
pub struct ServeArguments {
    /// The project folder, which contains service_project.yml
    #[arg(default_value = ".")]
    pub dir: PathBuf,
    /// The address to listen on; default: `server.host`, or 127.0.0.1
    #[arg(long)]
    pub host: Option<String>,
    /// The port to listen on, 0 for a free one; default: `server.port`, or 8000
    #[arg(long)]
    pub port: Option<u16>,
    /// Reload the project when its files change, like `server.watch`; SIGHUP always reloads
    #[arg(long)]
    pub watch: bool,
}

/// The time limit for the last writes to the state database.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);

/// Serves until SIGTERM or Ctrl-C. A second signal cancels running requests.
///
/// # Errors
/// The server cannot start.
pub async fn run(arguments: &ServeArguments, mut project: Project, terminal: Terminal) -> Result<(), Failure> {
    allow_open_files();
    let address = address(arguments, &project)?;
    let settings = wiring::serve_settings(&project)?;
    // Bind before slow work, so that a conflict is reported at once.
    let listener = terrane_server::bind(address).await.map_err(|error| explain_bind(&error))?;
    let bound = listener.local_addr().unwrap_or(address);
    let host = arguments.host.as_deref().unwrap_or(&project.config.server.host);
    let public_url = start_rules::default_public_url(host, bound, settings.tls.is_some());
    project.config.security.oauth.default_public_url = public_url;
    let metrics_listener = bind_metrics(&project).await?;
    let process_id = wiring::process_id();
    let watching = wiring::watching(&project.config, &process_id)?;
    let (mut first, mut second) = (ShutdownSignal::listen()?, ShutdownSignal::listen()?);
    // If a signal arrives while the project is loaded, the command ends at once, since there are no requests to finish.
    let store = wiring::state(&project).await?;
    let registered = wiring::registered(&store).await?;
    let rollups = wiring::rollup_place(&project, &store).await?;
    let (loaded, mut problems) = tokio::select! {
        loaded = wiring::load_for_server(&project, Arc::new(watching.watch.clone()), registered.clone(), rollups) => loaded?,
        () = first.received() => return Ok(()),
    };
    problems.extend(start_rules::warnings(&project.config));
    let start = wiring::start_problems(&project).into_iter().map(|problem| problem.diagnostic);
    problems.extend(start.filter(|problem| !problem.is_error()));
    problems.extend(start_rules::unused_definitions(&project.config, &loaded.snapshot.definitions));
    problems.extend(
        settings.tls.as_ref().and_then(|tls| start_rules::certificate(tls.validity(), loaded.ports.clock.now())),
    );
    problems.extend(start_rules::closed_cubes(&loaded.snapshot.model));
    print_problems(&problems, &project.tree, terminal.stderr);
    let services = wiring::server_services(&project, loaded, &store, registered, process_id).await?;
    let is_watched = arguments.watch || project.config.server.watch;
    let watch = is_watched.then(|| FolderWatch::of(project.folder.root())).transpose()?;
    // The first queries can already be served from published pre-aggregations.
    if let Err(error) = services.preaggregations.reload().await {
        return Err(Failure::new(error.to_string()).hint("Check `state.url`."));
    }
    let reloading = tokio::spawn(reload::keep_loaded(services.projects.clone(), watch)?);
    // When the guard is dropped, it writes the remaining lines.
    let log = telemetry::init(&wiring::log_settings(&project), Arc::clone(&services.clock))
        .map_err(|error| Failure::new(error.to_string()).hint("Check the keys of `log`."))?;

    let snapshot = services.catalog.snapshot();
    let name = snapshot.model.project.to_string();
    if terminal.is_stderr_terminal {
        let warnings = plural(problems.len(), "warning");
        let scheme = if settings.tls.is_some() { "https" } else { "http" };
        print_error(&format!("terrane serves {name} on {scheme}://{bound}: {}; {warnings}\n", contents(&snapshot)));
    }
    let metrics_bound = metrics_listener.as_ref().and_then(|listener| listener.local_addr().ok());
    let metrics_address = metrics_bound.map(tracing::field::display);
    tracing::info!(event = "server_started", address = %bound, metrics_address, project = name, warnings = problems.len());
    wiring::log_shared_results(&project);
    let background = Background::start(&project, &services, watching.watch.clone());
    let watchers = Watchers { watch: watching.watch.clone(), dropped_lines: Some(log.dropped_lines()) };
    let app = App::watched(services, wiring::http_settings(&project.config), watchers);
    let scrapes = metrics_listener.map(|listener| tokio::spawn(terrane_server::serve_metrics(listener, app.clone())));
    let is_finished = tokio::select! {
        is_finished = terrane_server::serve(listener, app, settings, first.received()) => is_finished,
        () = second.received_twice() => false,
    };
    reloading.abort();
    tokio::join!(background.stop(), watching.close());
    if let Some(scrapes) = scrapes {
        scrapes.abort();
    }
    tracing::info!(event = "server_stopped", is_finished);
    Ok(())
}

/// Raises the limit of open files to the hard limit. The soft limit of a login is often 1,024, less than the possible
/// number of connections.
fn allow_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // If the limit cannot be raised, `doctor` reports the consequence.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// Binds the separate address of metrics, if there is one.
async fn bind_metrics(project: &Project) -> Result<Option<TcpListener>, Failure> {
    let refuse = |problem| Failure::Project { problems: vec![problem], tree: project.tree.clone() };
    let Some(address) = start_rules::metrics_address(&project.config).map_err(refuse)? else { return Ok(None) };
    let bound = terrane_server::bind(address).await;
    let bound =
        bound.map_err(|error| Failure::new(format!("`metrics.address`: {error}")).hint("Choose another port."))?;
    Ok(Some(bound))
}

/// The background tasks of the server.
struct Background {
    audit_buffer: Arc<AuditBuffer>,
    writing: JoinHandle<()>,
    /// The history of queries, and the task that writes it.
    cost: Option<(Arc<CostService>, JoinHandle<()>)>,
    /// Reads the guardrails that other servers change, and renews the leases of budgets.
    guardrails: Option<JoinHandle<()>>,
    preaggregations: Arc<Preaggregations>,
    /// Reads the published pre-aggregations.
    following: JoinHandle<()>,
    worker: JoinHandle<()>,
    /// The senders that stop the worker and the runner of jobs.
    ends: [oneshot::Sender<()>; 2],
}

impl Background {
    fn start(project: &Project, services: &ServerServices, watch: Watch) -> Self {
        let interval = Duration::from_millis(project.config.state.audit_interval_ms);
        let audit_buffer = services.audit_buffer.clone();
        let writing = tokio::spawn({
            let audit_buffer = audit_buffer.clone();
            async move { audit_buffer.keep_writing(interval, &watch).await }
        });
        let cost = services.cost.clone().map(|cost| {
            let log = Arc::clone(cost.log());
            (cost, tokio::spawn(async move { log.keep_writing().await }))
        });
        let guardrails = services.guardrails.clone().map(|guardrails| {
            tokio::spawn(async move {
                tokio::join!(guardrails.table().follow(), guardrails.budgets().keep_renewing());
            })
        });
        let preaggregations = services.preaggregations.clone();
        let following = tokio::spawn({
            let preaggregations = preaggregations.clone();
            async move { preaggregations.follow().await }
        });
        let (end, ended) = oneshot::channel::<()>();
        // A dropped sender stops the task too.
        let (end_jobs, jobs_ended) = oneshot::channel::<()>();
        let worker = services.worker().run(async { drop(ended.await) });
        let jobs = services.job_runner().run(async { drop(jobs_ended.await) });
        let worker = tokio::spawn(async {
            tokio::join!(worker, jobs);
        });
        Background {
            audit_buffer,
            writing,
            cost,
            guardrails,
            preaggregations,
            following,
            worker,
            ends: [end, end_jobs],
        }
    }

    /// Writes the remaining audit records, and releases the leases of background tasks.
    async fn stop(self) {
        self.writing.abort();
        self.following.abort();
        if let Some(guardrails) = &self.guardrails {
            guardrails.abort();
        }
        for end in self.ends {
            let _ = end.send(());
        }
        let flush = tokio::time::timeout(SHUTDOWN_TIMEOUT, self.audit_buffer.flush());
        let recorded = tokio::time::timeout(SHUTDOWN_TIMEOUT, self.preaggregations.record_queries());
        let stopped = tokio::time::timeout(SHUTDOWN_TIMEOUT, self.worker);
        // Queries that cannot be recorded in time are lost.
        let (flushed, stopped, _) = tokio::join!(flush, stopped, recorded);
        // Jobs add queries to the history until they end, so the history is written last.
        write_history(self.cost).await;
        match flushed {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(event = "audit_lost", error_message = %error),
            Err(_) => {
                tracing::error!(event = "audit_lost", error_message = "the state database did not respond in time")
            }
        }
        if stopped.is_err() {
            tracing::warn!(event = "lease_not_released", error_message = "the background tasks did not end in time");
        }
    }
}

/// Writes the queries that are not in the history yet.
async fn write_history(cost: Option<(Arc<CostService>, JoinHandle<()>)>) {
    let Some((cost, writing)) = cost else { return };
    writing.abort();
    match tokio::time::timeout(SHUTDOWN_TIMEOUT, cost.log().flush()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::error!(event = "query_history_lost", error_message = %error),
        Err(_) => {
            let error_message = "the state database did not respond in time";
            tracing::error!(event = "query_history_lost", error_message);
        }
    }
}

/// Returns the address to listen on, if this configuration may be served there.
fn address(arguments: &ServeArguments, project: &Project) -> Result<SocketAddr, Failure> {
    let config = &project.config;
    // After an error in the configuration, the values below may be defaults instead of the operator's settings.
    let mut refused: Vec<_> = project.problems.iter().filter(|problem| problem.is_error()).cloned().collect();
    refused.extend(start_rules::refusals(config));
    let start = wiring::start_problems(project).into_iter().map(|problem| problem.diagnostic);
    refused.extend(start.filter(Diagnostic::is_error));
    let host = arguments.host.as_deref().unwrap_or(&config.server.host);
    match start_rules::address(&config.security, host, arguments.port.unwrap_or(config.server.port)) {
        Ok(address) if refused.is_empty() => return Ok(address),
        Ok(_) => {}
        Err(problem) => refused.push(problem),
    }
    report::sort(&mut refused);
    Err(Failure::Project { problems: refused, tree: project.tree.clone() })
}

fn explain_bind(error: &ServeError) -> Failure {
    let failure = Failure::new(error.to_string());
    match error {
        ServeError::PortInUse { address } => {
            let next = address.port().checked_add(1).unwrap_or(8_000);
            failure.hint(format!("Use `--port {next}`, or `--port 0` for any free port."))
        }
        ServeError::NotAllowed { .. } => failure.hint("Use a port from 1024 on, such as `--port 8000`."),
        _ => failure,
    }
}
