//! Case files: the server, the request, and the expected answer.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode};
use futures_util::stream;
use http_body_util::BodyExt as _;
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::Value as Json;
use terrane_app::cost::{Guardrails, Prices};
use terrane_app::data_tests::{DataTestSettings, NoCases};
use terrane_app::governance::GovernanceSettings;
use terrane_app::limits::RateSettings;
use terrane_app::limits::quota::QuotaSettings;
use terrane_app::live;
use terrane_app::ports::checks::NoChecks;
use terrane_app::ports::clock::Clock as _;
use terrane_app::ports::detectors::NoDetectors;
use terrane_app::ports::result_cache::ResultCache;
use terrane_app::ports::warehouse::ScanSize;
use terrane_app::preaggregations::PreaggregationSettings;
use terrane_app::query::{CacheSettings, LimiterSettings, QuerySettings};
use terrane_app::security::oauth::StateTokenKey;
use terrane_app::security::{AcknowledgeKey, SessionSettings};
use terrane_app::services::{CostBackend, CostSettings, ServerPorts, ServerServices, ServerSettings, ServicePorts};
use terrane_app::worker::LeaseSettings;
use terrane_cache::{MemoryCache, RedisCache, RedisSettings};
use terrane_identity::{Argon2Passwords, OsRandomness};
use terrane_server::telemetry::Watch;
use terrane_server::{
    Anonymous, App, Connection, Cors, Edge, GraphQlHttpSettings, HttpSettings, MetricsRoute, Scopes, TrustedProxies,
    Watchers,
};

use crate::builds::{MemoryBuilder, MemoryInvalidations};
use crate::compare::differences;
use crate::cost::{MemoryBudgets, MemoryGuardrails, MemoryHistory};
use crate::data_tests::MemoryDataTests;
use crate::fakes::{
    Column, FakeAnswer, FakeBehavior, FakeClock, FakePlugins, FakeRetention, FakeStore, FakeWarehouse, SECRET,
    dialect_out_of_fuel, missing_dialect,
};
use crate::hooks::{FakeHook, FakeHooks};
use crate::monitors::{MemoryMonitors, channels};
use crate::preaggregations::{self, MemoryPreaggregations};
use crate::profiles::MemoryProfiles;
use crate::project;
use crate::projects::{self, FakeProjects, FakeRegistrations};
use crate::security::Security;
use terrane_app::jobs::JobSettings;
use terrane_wire::jobs::Texts;
use terrane_wire::profile::StoredProfileTexts;

/// One file, which contains cases that belong together.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    pub about: String,
    pub cases: Vec<Case>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    pub name: String,
    #[serde(default)]
    pub world: World,
    pub request: TestRequest,
    pub response: Expected,
}

/// The state of the server and of its dependencies.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct World {
    pub caller: Caller,
    pub warehouse: FakeBehavior,
    pub warehouse_ping: FakeBehavior,
    /// The behavior of lookups in the warehouse's catalog.
    pub warehouse_catalog: FakeBehavior,
    pub database_ping: FakeBehavior,
    /// The columns of every result set.
    pub columns: Vec<Column>,
    /// The columns of statements without groups, if they differ from `columns`.
    #[serde(skip)]
    pub ungrouped_columns: Arc<Mutex<Option<Vec<Column>>>>,
    /// The columns of statements with certain texts.
    #[serde(skip)]
    pub answers: Arc<Mutex<Vec<FakeAnswer>>>,
    /// The size of every scan.
    #[serde(skip)]
    pub scan_size: Arc<Mutex<Option<ScanSize>>>,
    /// The price of 10¹² scanned bytes.
    pub price_of_terabyte: Option<f64>,
    /// The number of times that a streamed answer contains the rows.
    pub repeats: usize,
    /// The behavior of the stream after its last batch.
    pub stream_ends: FakeBehavior,
    pub is_dialect_missing: bool,
    pub is_dialect_out_of_fuel: bool,
    /// The required plugins that are not available.
    pub missing_plugins: Vec<String>,
    pub is_draining: bool,
    /// True if another query holds the only permit, and no query may wait for it.
    pub is_busy: bool,
    /// True if the operator has disabled the interface's OpenAPI description.
    pub has_no_docs: bool,
    pub has_no_costs: bool,
    /// True if the warehouse has no prices.
    pub has_no_prices: bool,
    /// The guardrails of every query.
    pub max_execution_seconds: Option<u64>,
    pub max_rows_returned: Option<u64>,
    pub requires_time_filter: bool,
    pub requires_partition_filter: bool,
    pub max_cost_micros: Option<u64>,
    #[serde(skip)]
    pub executed_queries: Arc<MemoryHistory>,
    /// The guardrails of users and groups.
    #[serde(skip)]
    pub guardrails: Arc<MemoryGuardrails>,
    /// The governance hooks.
    pub hooks: Vec<FakeHook>,
    /// The models whose builds the warehouse refuses.
    pub refused_models: Vec<String>,
    /// True if the warehouse builds no models.
    pub is_read_only: bool,
    /// The origins whose pages may read answers; `*` allows all.
    pub cors: Vec<String>,
    /// True if the settings name a Redis server, which does not answer.
    pub has_cache_url: bool,
    /// True if results are stored in memory.
    pub has_cache: bool,
    /// True if pre-aggregations are switched on, without a worker that builds them.
    pub has_preaggregations: bool,
    /// The builds of the project's pre-aggregations.
    #[serde(skip)]
    pub preaggregations: Arc<MemoryPreaggregations>,
    /// True if the project has pre-aggregations with tables, which are one hour old.
    pub has_tables: bool,
    /// Further files of the project, by their paths.
    pub files: BTreeMap<String, String>,
    /// The number of statements that the warehouse ran.
    #[serde(skip)]
    pub statements: Arc<AtomicUsize>,
    /// The number of statements that the warehouse runs now.
    #[serde(skip)]
    pub running: Arc<AtomicUsize>,
    /// True if the module of governance is switched off.
    pub has_no_governance: bool,
    /// True if search is switched off.
    pub has_no_search: bool,
    /// True if profiling is switched off.
    pub has_no_profiling: bool,
    /// True if monitors are switched off.
    pub has_no_monitors: bool,
    #[serde(skip)]
    pub governance: GovernanceSettings,
    #[serde(skip)]
    pub jobs: JobSettings,
    #[serde(skip)]
    pub graphql: GraphQlHttpSettings,
    /// The bounds on subscriptions.
    #[serde(skip)]
    pub subscriptions: Option<QuotaSettings>,
    #[serde(skip)]
    pub trusted_proxies: TrustedProxies,
    #[serde(skip)]
    pub rates: RateSettings,
    #[serde(skip)]
    pub body_timeout: Option<Duration>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Caller {
    #[default]
    Reader,
    Admin,
    /// A caller who may register cubes.
    Writer,
    /// An anonymous caller who is admitted and has no scopes.
    Powerless,
    /// An anonymous caller who is not admitted.
    Stranger,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestRequest {
    #[serde(default = "get")]
    pub method: String,
    pub path: String,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    pub json: Option<Json>,
    pub text: Option<String>,
    /// The size in bytes of the body, which is a JSON string.
    pub size: Option<usize>,
    /// True if the client sends only the beginning of the body.
    #[serde(default)]
    pub stalls: bool,
    /// True if the request uses a connection beyond the limit of connections.
    #[serde(default)]
    pub is_surplus: bool,
}

fn get() -> String {
    "GET".to_owned()
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    pub status: u16,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    #[serde(default)]
    pub json: Json,
    /// The whole body.
    pub text: Option<String>,
    #[serde(default)]
    pub lacks: Vec<String>,
}

/// The answer of the server.
#[derive(Debug)]
pub struct Answered {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// Returns every case of `cases/`, with the name of its file.
///
/// # Panics
/// A file cannot be read.
pub fn all() -> Vec<(String, Case)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let mut paths: Vec<_> = folder.read_dir().expect("cases/").map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    let mut cases = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).expect("a case file");
        let file: File = serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        cases.extend(file.cases.into_iter().map(|case| (stem.clone(), case)));
    }
    cases
}

impl World {
    fn cache(&self) -> CacheSettings {
        let mut tiers: Vec<Arc<dyn ResultCache>> = Vec::new();
        if self.has_cache {
            tiers.push(Arc::new(MemoryCache::new(64 * 1024 * 1024)));
        }
        let settings = CacheSettings { max_entry: 1024 * 1024, ..CacheSettings::disabled() };
        if self.has_cache_url {
            let redis = RedisSettings {
                url: "redis://127.0.0.1:1".to_owned(),
                authorities: None,
                secret: settings.secret.clone(),
                max_entry: settings.max_entry,
                stale: Duration::ZERO,
            };
            tiers.push(Arc::new(RedisCache::new(redis, Arc::new(FakeClock::default())).expect("an address")));
        }
        CacheSettings { tiers, ..settings }
    }

    pub fn edge(&self) -> Edge {
        self.edge_with(Security::of_anonymous())
    }

    /// Returns an edge that checks credentials.
    pub fn edge_with(&self, security: Security) -> Edge {
        self.edge_watched(security, Watch::default(), false)
    }

    /// Returns an edge with metrics and traces.
    pub fn edge_watched(&self, security: Security, watch: Watch, is_public: bool) -> Edge {
        let snapshot = match self.has_tables {
            true => project::snapshot_with_tables(),
            false => project::snapshot_with_files(&self.files),
        };
        let tables = self.has_tables.then(|| project::tables(&snapshot, FakeClock::default().now()));
        let profile = match (self.is_dialect_missing, self.is_dialect_out_of_fuel) {
            (true, _) => Err(missing_dialect()),
            (_, true) => Err(dialect_out_of_fuel()),
            _ => Ok(snapshot.profile.clone()),
        };
        let columns = self.columns.clone();
        let builder = MemoryBuilder {
            refuses: self.refused_models.iter().cloned().collect(),
            is_read_only: self.is_read_only,
            ..MemoryBuilder::default()
        };
        let warehouse = Arc::new(FakeWarehouse {
            behavior: self.warehouse,
            ping: self.warehouse_ping,
            columns,
            ungrouped_columns: Arc::clone(&self.ungrouped_columns),
            answers: Arc::clone(&self.answers),
            scan_size: Arc::clone(&self.scan_size),
            batches: self.repeats + 1,
            stream_ends: self.stream_ends,
            catalog: self.warehouse_catalog,
            builder: builder.clone(),
            statements: Arc::clone(&self.statements),
            running: Arc::clone(&self.running),
        });
        let queries = QuerySettings {
            timeout: Duration::from_secs(30),
            default_limit: 1_000,
            max_limit: 50_000,
            max_export_rows: 1_000_000,
            export_timeout: Duration::from_secs(600),
            timezone: TimeZone::UTC,
            limiter: LimiterSettings {
                running: 1,
                queued: if self.is_busy { 0 } else { 8 },
                running_per_tenant: None,
                queued_per_tenant: None,
            },
            cache: self.cache(),
            pre_aggregations: true,
            guardrails: Guardrails {
                max_execution: self.max_execution_seconds.map(Duration::from_secs),
                max_rows_returned: self.max_rows_returned,
                require_time_filter: self.requires_time_filter,
                require_partition_filter: self.requires_partition_filter,
                max_cost_micros: self.max_cost_micros,
                ..Guardrails::default()
            },
            limit_advice: terrane_wire::limit_advice::limit_advice,
        };
        let metrics = watch.metrics.is_some().then_some(MetricsRoute { path: "/metrics", is_public });
        let ports = ServicePorts {
            warehouse,
            builder: Arc::new(builder),
            plugins: Arc::new(FakePlugins { profile, missing: self.missing_plugins.clone() }),
            governance: Arc::new(FakeHooks(self.hooks.clone())),
            detectors: Arc::new(NoDetectors),
            checks: Arc::new(NoChecks),
            clock: Arc::new(FakeClock::default()),
            observer: Arc::new(watch.clone()),
        };
        let monitors = Arc::<MemoryMonitors>::default();
        let server = ServerPorts {
            store: Arc::new(FakeStore { ping: self.database_ping }),
            audit: security.audit,
            credentials: security.credentials,
            registrations: Arc::new(FakeRegistrations::new(!matches!(self.database_ping, FakeBehavior::Answers))),
            governance_records: security.governance,
            leases: security.jobs.leases,
            invalidations: Arc::new(MemoryInvalidations::default()),
            jobs: security.jobs.jobs,
            results: security.jobs.results,
            job_texts: Arc::new(Texts),
            profiles: Arc::<MemoryProfiles>::default(),
            profile_texts: Arc::new(StoredProfileTexts),
            monitors: Arc::clone(&monitors) as _,
            data_tests: Arc::<MemoryDataTests>::default(),
            cases: Arc::new(NoCases),
            deliveries: monitors,
            channels: Arc::new(channels()),
            retention: Arc::new(FakeRetention),
            tokens: security.tokens,
            passwords: Arc::new(Argon2Passwords::default()),
            randomness: Arc::new(OsRandomness),
            files: Arc::new(FakeProjects),
            providers: security.providers,
            preaggregations: self
                .has_preaggregations
                .then(|| preaggregations::backend(Arc::clone(&self.preaggregations))),
            cost: (!self.has_no_costs).then(|| CostBackend {
                history: Arc::clone(&self.executed_queries) as _,
                guardrails: Arc::clone(&self.guardrails) as _,
                budgets: Arc::new(MemoryBudgets::new(Arc::clone(&self.executed_queries))) as _,
            }),
            language_model: None,
        };
        let settings = ServerSettings {
            queries,
            jobs: self.jobs.clone(),
            subscriptions: self.subscriptions.unwrap_or(live::DEFAULT_QUOTA),
            sessions: SessionSettings::default(),
            state_token_key: StateTokenKey::derived_from(b"tests"),
            acknowledge_key: AcknowledgeKey::derived_from(b"tests"),
            transport: security.transport,
            build_timeout: Duration::from_secs(60),
            preaggregations: PreaggregationSettings::default(),
            cost: CostSettings {
                prices: Prices {
                    second: (!self.has_no_prices).then_some(0.5),
                    terabyte_scanned: self.price_of_terabyte,
                    terabyte_of_egress: None,
                },
                history: Duration::from_secs(86_400),
                timezone: TimeZone::UTC,
                recommendation_days: 7,
            },
            governance: (!self.has_no_governance).then(|| self.governance.clone()),
            search: !self.has_no_search,
            profiling: !self.has_no_profiling,
            monitors: !self.has_no_monitors,
            data_tests: DataTestSettings { schedule: None, timeout: Duration::from_secs(30) },
            retention: Duration::from_secs(86_400),
            leases: LeaseSettings::default(),
            process_id: "w1".into(),
        };
        let texts = projects::texts(None).expect("the project");
        let services = ServerServices::new(snapshot, texts, ports, server, settings);
        if let Some(tables) = tables {
            services.queries.publish_rollups(Arc::new(tables));
        }
        let app = App::watched(
            services,
            HttpSettings {
                version: "1.2.3".into(),
                anonymous: self.caller.anonymous(),
                docs: !self.has_no_docs,
                metrics,
                cors: self.cors(),
                trusted_proxies: self.trusted_proxies.clone(),
                rates: self.rates,
                graphql: self.graphql.clone(),
                body_timeout: self.body_timeout.unwrap_or(HttpSettings::default().body_timeout),
                ..HttpSettings::default()
            },
            Watchers { watch, dropped_lines: None },
        );
        if self.is_draining {
            app.start_draining();
        }
        Edge::new(app)
    }

    fn cors(&self) -> Cors {
        match self.cors.as_slice() {
            [] => Cors::Closed,
            [any] if any == "*" => Cors::Any,
            listed => Cors::Listed(listed.iter().map(|origin| origin.parse().expect("an origin")).collect()),
        }
    }
}

impl Caller {
    fn anonymous(self) -> Option<Anonymous> {
        let scopes = match self {
            Caller::Reader => Scopes::READ,
            Caller::Admin => Scopes { admin: true, ..Scopes::default() },
            Caller::Writer => Scopes { write: true, ..Scopes::default() },
            Caller::Powerless => Scopes::default(),
            Caller::Stranger => return None,
        };
        Some(Anonymous { scopes, ..Anonymous::default() })
    }
}

impl TestRequest {
    /// Returns the request of the case.
    ///
    /// # Panics
    /// The case is not a valid HTTP request.
    pub fn request(&self) -> Request {
        let body = if let Some(json) = &self.json {
            Body::from(json.to_string())
        } else if let Some(size) = self.size {
            Body::from(format!("\"{}\"", "x".repeat(size.saturating_sub(2))))
        } else if self.stalls {
            let begun = stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"{"))]);
            Body::from_stream(stream::StreamExt::chain(begun, stream::pending()))
        } else {
            Body::from(self.text.clone().unwrap_or_default())
        };
        let mut request = Request::builder().method(self.method.as_str()).uri(&self.path);
        if matches!(&*self.method, "POST" | "PATCH" | "PUT") && !self.headers.contains_key("content-type") {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in self.headers.iter().filter(|(_, value)| *value != "absent") {
            request = request.header(name, value);
        }
        request.body(body).expect("a request")
    }
}

/// Sends a request and returns the answer.
///
/// # Panics
/// The body cannot be read.
pub async fn ask(edge: &Edge, asked: &TestRequest) -> Answered {
    let connection = Connection { is_surplus: asked.is_surplus, ..Connection::default() };
    let (parts, body) = edge.call(connection, asked.request()).await.into_parts();
    let body = body.collect().await.expect("a body").to_bytes();
    Answered { status: parts.status, headers: parts.headers, body }
}

impl Case {
    /// Returns the differences from the expected answer.
    pub async fn run(&self) -> Vec<String> {
        let edge = self.world.edge();
        let other = self.world.is_busy.then(|| {
            let (edge, asked) = (edge.clone(), self.request.clone());
            tokio::spawn(async move { ask(&edge, &asked).await })
        });
        // Lets the other query take the permit.
        tokio::task::yield_now().await;
        let answered = ask(&edge, &self.request).await;
        if let Some(other) = other {
            other.abort();
        }
        self.response.differences(&answered)
    }
}

impl Expected {
    fn differences(&self, answered: &Answered) -> Vec<String> {
        let mut out = Vec::new();
        let text = String::from_utf8_lossy(&answered.body);
        if answered.status.as_u16() != self.status {
            out.push(format!("status is {}, expected {}: {text}", answered.status, self.status));
        }
        for (name, expected) in &self.headers {
            let found = answered.headers.get(name).map(|value| value.to_str().unwrap_or("unreadable"));
            let fits = match (expected.as_str(), found) {
                ("absent", found) => found.is_none(),
                ("*", found) => found.is_some(),
                (expected, found) => found == Some(expected),
            };
            if !fits {
                out.push(format!("header {name} is {found:?}, expected {expected}"));
            }
        }
        if !self.json.is_null() {
            match serde_json::from_slice(&answered.body) {
                Ok(found) => out.extend(differences(&self.json, &found)),
                Err(error) => out.push(format!("the body is not JSON ({error}): {text}")),
            }
        }
        if self.text.as_ref().is_some_and(|expected| *expected != text) {
            out.push(format!("the body is {text}"));
        }
        let lacks = self.lacks.iter().map(String::as_str).chain([SECRET]);
        out.extend(lacks.filter(|part| text.contains(part)).map(|part| format!("the body holds {part:?}: {text}")));
        out.extend(self.error_form(answered, &text));
        out
    }

    /// Checks that an error has the form of REST, GraphQL or XMLA with the correlation id of the response header, or
    /// has the field `detail`.
    fn error_form(&self, answered: &Answered, text: &str) -> Option<String> {
        if answered.status.as_u16() < 400 || answered.body.is_empty() {
            return None;
        }
        let body: Json = serde_json::from_str(text).unwrap_or_default();
        let id = answered.headers.get("x-correlation-id").and_then(|id| id.to_str().ok());
        let is_standard = body["error"]["code"].is_string()
            && body["error"]["message"].is_string()
            && body["error"]["correlation_id"].as_str() == id;
        let graphql = &body["errors"][0];
        let is_graphql = graphql["extensions"]["code"].is_string()
            && graphql["message"].is_string()
            && graphql["extensions"]["correlation_id"].as_str() == id;
        // XMLA reports errors as faults.
        let is_fault = text.contains(":Fault>") && id.is_some_and(|id| text.contains(id));
        (!is_standard && !is_graphql && !is_fault && !body["detail"].is_string())
            .then(|| format!("the body has no error's shape: {text}"))
    }
}
