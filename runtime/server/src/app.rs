//! The state of the server that handlers share: the use cases, the settings of HTTP, and the anonymous caller.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use terrane_app::limits::{RateLimits, RateSettings};
use terrane_app::services::ServerServices;
use terrane_compiler::SecurityContext;
use terrane_graphql::{GraphQl, GraphQlServices};
use tokio::sync::watch;

use crate::edge::{Cors, Hosts, TrustedProxies};
use crate::graphql::{GraphQlHttpSettings, Places};
use crate::telemetry::{DroppedLines, Watch};

pub use terrane_app::security::{Scope, Scopes};

#[derive(Debug, Clone)]
pub struct HttpSettings {
    /// The version of the program, which the health status reports.
    pub version: Arc<str>,
    pub body_limit_bytes: usize,
    /// The timeout for receiving a request's body.
    pub body_timeout: Duration,
    /// The rights of anonymous callers. If it is `None`, routes that require a scope answer callers without credentials
    /// with 401.
    pub anonymous: Option<Anonymous>,
    /// True to serve the description of the interface, with a page to try it.
    pub docs: bool,
    /// The route of metrics, if they are served.
    pub metrics: Option<MetricsRoute>,
    /// The origins whose pages may read answers.
    pub cors: Cors,
    /// Proxies that report the addresses of their clients.
    pub trusted_proxies: TrustedProxies,
    pub rates: RateSettings,
    pub graphql: GraphQlHttpSettings,
}

/// The address and the audience of the metrics for Prometheus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricsRoute {
    /// An absolute path that no other route has.
    pub path: &'static str,
    /// True if every caller may read the metrics; false if only callers with the scope `admin` may.
    pub is_public: bool,
}

/// The observers of the server besides the log.
#[derive(Clone, Default)]
pub struct Watchers {
    pub watch: Watch,
    pub dropped_lines: Option<DroppedLines>,
}

/// The routes that depend on the settings of a server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServedRoutes {
    pub(crate) metrics: Option<MetricsRoute>,
    /// True if the module of costs is on.
    pub(crate) has_costs: bool,
    /// True if the module of governance is on.
    pub(crate) has_governance: bool,
    /// True if search is on.
    pub(crate) has_search: bool,
    /// True if profiling is on.
    pub(crate) has_profiling: bool,
    /// True if monitors are on.
    pub(crate) has_monitors: bool,
}

impl ServedRoutes {
    /// Every route, except that of metrics, whose path is a setting.
    pub(crate) const ALL: ServedRoutes = ServedRoutes {
        metrics: None,
        has_costs: true,
        has_governance: true,
        has_search: true,
        has_profiling: true,
        has_monitors: true,
    };

    /// Returns the routes of one server.
    pub(crate) fn of(app: &App) -> Self {
        let services = &app.services;
        ServedRoutes {
            metrics: app.settings.metrics,
            has_costs: services.cost.is_some(),
            has_governance: services.governance.is_some(),
            has_search: services.search.is_some(),
            has_profiling: services.profiles.is_some(),
            has_monitors: services.monitors.is_some(),
        }
    }
}

impl Default for HttpSettings {
    fn default() -> Self {
        HttpSettings {
            version: env!("CARGO_PKG_VERSION").into(),
            body_limit_bytes: 256 * 1024,
            body_timeout: Duration::from_secs(30),
            anonymous: None,
            docs: true,
            metrics: None,
            cors: Cors::default(),
            trusted_proxies: TrustedProxies::default(),
            rates: RateSettings::default(),
            graphql: GraphQlHttpSettings::default(),
        }
    }
}

/// The caller without credentials.
#[derive(Debug, Clone, Default)]
pub struct Anonymous {
    pub caller: SecurityContext,
    pub scopes: Scopes,
    /// The host names by which callers may address this server.
    pub hosts: Hosts,
}

/// The state of the server. All clones share it.
#[derive(Clone)]
pub struct App(Arc<State>);

/// The state of the server that all clones of [`App`] share.
pub struct State {
    pub services: ServerServices,
    pub settings: HttpSettings,
    pub watchers: Watchers,
    pub rates: RateLimits,
    pub(crate) graphql: GraphQl,
    pub(crate) graphql_places: Places,
    /// The clock's `elapsed` at the start.
    started: Duration,
    draining: watch::Sender<bool>,
    /// The OpenAPI document, made on first use.
    pub(crate) description: OnceLock<Bytes>,
    /// The time of the last check of the state database and the warehouse, and its results.
    pub(crate) dependencies: tokio::sync::Mutex<Option<(Duration, (bool, bool))>>,
}

impl App {
    /// Creates a server without observers. Its uptime begins now.
    pub fn new(services: ServerServices, settings: HttpSettings) -> Self {
        App::watched(services, settings, Watchers::default())
    }

    /// Creates the state of a server that starts now.
    pub fn watched(services: ServerServices, settings: HttpSettings, watchers: Watchers) -> Self {
        let started = services.clock.elapsed();
        let rates = RateLimits::new(&settings.rates, &services.clock);
        let graphql = GraphQl::new(GraphQlServices::from(&services), settings.graphql.schema.clone());
        let graphql_places = Places::new(&settings.graphql);
        App(Arc::new(State {
            services,
            settings,
            watchers,
            rates,
            graphql,
            graphql_places,
            started,
            draining: watch::Sender::new(false),
            description: OnceLock::new(),
            dependencies: tokio::sync::Mutex::default(),
        }))
    }

    pub fn uptime(&self) -> Duration {
        self.services.clock.elapsed().saturating_sub(self.started)
    }

    /// Makes the server report that it is not ready, so that it gets no new requests.
    pub fn start_draining(&self) {
        self.draining.send_replace(true);
    }

    pub fn is_draining(&self) -> bool {
        *self.draining.borrow()
    }

    /// Waits until the server drains, so that long-lived connections can be closed.
    pub(crate) async fn drained(&self) {
        // The sender lives as long as `self`.
        let _ = self.draining.subscribe().wait_for(|is_draining| *is_draining).await;
    }
}

impl Deref for App {
    type Target = State;

    fn deref(&self) -> &State {
        &self.0
    }
}
