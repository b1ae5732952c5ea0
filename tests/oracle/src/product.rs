//! The real pipeline in this process: project, model, types, SQL, DuckDB, JSON.
//!
//! In: a [`World`] and queries. Out: rows as a client of REST receives them, or the code of the refusal.

use std::collections::BTreeSet;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value as Json;
use terrane_app::catalog::{Snapshot, load};
use terrane_app::cost::Guardrails;
use terrane_app::dax::DaxError;
use terrane_app::introspection::SchemaIntrospection;
use terrane_app::ports::builder::{BuildsNothing, CantBuild};
use terrane_app::ports::checks::NoChecks;
use terrane_app::ports::clock::Clock;
use terrane_app::ports::detectors::NoDetectors;
use terrane_app::ports::observer::Unobserved;
use terrane_app::ports::plugins::{ChangeError, PluginError, PluginStatus, Plugins};
use terrane_app::ports::warehouse::{ResultSet, Statement, Warehouse};
use terrane_app::query::{
    Answer, CacheControl, CacheSettings, LimiterSettings, QueryRunError, QuerySettings, RequestContext,
};
use terrane_app::security::Scopes;
use terrane_app::services::{ServicePorts, Services};
use terrane_cache::MemoryCache;
use terrane_compiler::project::{Inputs, SourceTree};
use terrane_compiler::query::SemanticQuery;
use terrane_compiler::rollup::Flaw;
use terrane_compiler::sql::dialect_profile::{DialectProfile, Op};
use terrane_compiler::types::Value;
use terrane_compiler::{Attribute, SecurityContext};
use terrane_dax::ProblemKind;
use terrane_golden_tests::{duckdb_profile, duckdb_raw_profile, sqlite_raw_profile};
use terrane_lineage::Lineage;
use terrane_warehouse::{DuckDb, DuckDbSettings, FileAccess};
use terrane_wire::ErrorBody;
use terrane_wire::json::{Numbers, write_rows};

mod engines;
mod rollups;
pub mod translated;

use crate::hooks::WorldHooks;
use crate::oracle::{Code, Settings};
use crate::world::{
    BOOLEAN_ATTRIBUTES, Cell, NUMBER_ATTRIBUTES, TEXT_ATTRIBUTES, World, attribute, is_list, spark_statements,
    statements,
};

/// The size in bytes of the result cache of one world.
const CACHE_SIZE: u64 = 4 * 1024 * 1024;

/// The refusal of a DAX query.
#[derive(Debug)]
pub struct DaxRefusal {
    /// The error that a client receives.
    pub body: ErrorBody,
    /// The first problem of the query; `None` if the query was refused for another reason.
    pub problem: Option<ProblemKind>,
}

impl DaxRefusal {
    /// Returns the construct that is not supported; `None` if the query was refused for another reason.
    pub fn unsupported(&self) -> Option<&str> {
        match self.problem.as_ref()? {
            ProblemKind::UnknownFunction { name, .. } | ProblemKind::NotSupported { construct: name } => Some(name),
            ProblemKind::Replaceable { construct, .. } => Some(construct),
            _ => None,
        }
    }
}

/// The result of a query that a client receives.
#[derive(Debug, Clone, PartialEq)]
pub enum Answered {
    Rows {
        keys: Vec<String>,
        rows: Vec<Vec<Json>>,
        total_rows: Option<u64>,
        totals: Option<Vec<Json>>,
    },
    Refused(BTreeSet<Code>),
    /// A result that is always a fault: the warehouse refused the statement, or the JSON is invalid.
    Broken(String),
}

/// One engine, which serves one world after another.
pub struct Product {
    runtime: tokio::runtime::Runtime,
    warehouse: Arc<dyn Warehouse>,
    profile: Arc<DialectProfile>,
    settings: Settings,
    /// The flaw that is planted in the matching of pre-aggregations.
    pub flaw: Option<Flaw>,
    /// The limits of all queries.
    pub guardrails: Guardrails,
    _folder: tempfile::TempDir,
}

/// The caller of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asker {
    /// The caller for whom the oracle computes answers.
    Usual,
    /// A caller with other values of the attributes, so that the same policies show other rows.
    Other,
}

/// A project that the product serves.
pub struct Served<'p> {
    product: &'p Product,
    services: Services,
}

struct OneDialect(Arc<DialectProfile>);

impl Plugins for OneDialect {
    fn dialect(&self, _: &str) -> Result<Arc<DialectProfile>, PluginError> {
        Ok(Arc::clone(&self.0))
    }

    fn loaded(&self) -> Vec<PluginStatus> {
        Vec::new()
    }

    fn inventory(&self) -> Vec<PluginStatus> {
        Vec::new()
    }

    fn missing(&self) -> Vec<String> {
        Vec::new()
    }

    fn reload(&self, name: &str) -> Result<PluginStatus, ChangeError> {
        Err(ChangeError::Unknown { name: name.to_owned(), known: Vec::new() })
    }

    fn disable(&self, name: &str) -> Result<PluginStatus, ChangeError> {
        Err(ChangeError::Unknown { name: name.to_owned(), known: Vec::new() })
    }

    fn enable(&self, name: &str) -> Result<PluginStatus, ChangeError> {
        Err(ChangeError::Unknown { name: name.to_owned(), known: Vec::new() })
    }

    fn guest_calls(&self) -> u64 {
        0
    }
}

/// A clock that always returns the same time.
struct Stopped(Timestamp);

impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        self.0
    }

    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }
}

impl Product {
    /// Starts a product over an empty DuckDB.
    ///
    /// # Errors
    /// DuckDB cannot be opened.
    pub fn start(settings: Settings) -> Result<Self> {
        Product::start_with(settings, None, Vec::new())
    }

    /// Starts a product over DuckDB after running `init`, which may read files in the folder of a project.
    ///
    /// # Errors
    /// DuckDB cannot be opened.
    pub fn start_with(settings: Settings, project: Option<&Path>, init: Vec<String>) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let warehouse = DuckDb::open(&DuckDbSettings {
            path: None,
            project: project.unwrap_or(folder.path()).canonicalize()?,
            init,
            connections: 1,
            memory_limit: None,
            threads: Some(1),
            file_access: FileAccess::Project,
            is_written: false,
            rollups: None,
        })?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        let product = Product::over(settings, runtime, Arc::new(warehouse), duckdb_profile())?;
        Ok(Product { _folder: folder, ..product })
    }

    /// Starts a product over an empty DuckDB whose dialect computes percentiles from ranks, as those of SQLite and
    /// MySQL do.
    ///
    /// # Errors
    /// DuckDB cannot be opened.
    pub fn with_ranked_percentiles(settings: Settings) -> Result<Self> {
        let mut raw = duckdb_raw_profile();
        raw.ops.retain(|template| template.op != Op::Percentile);
        let ranked = sqlite_raw_profile().ops.into_iter().find(|op| op.name.as_deref() == Some("percentile_of_ranks"));
        raw.ops.push(ranked.context("the dialect of SQLite has no `percentile_of_ranks`")?);
        let Ok(profile) = DialectProfile::check(raw) else { bail!("the dialect was refused") };
        Ok(Product { profile: Arc::new(profile), ..Product::start(settings)? })
    }

    /// Recreates the tables and loads the project.
    ///
    /// # Errors
    /// A statement fails, or the project has a problem. A generated world causes neither.
    pub fn serve(&self, world: &World, tree: &SourceTree) -> Result<Served<'_>> {
        self.runtime.block_on(async {
            let statements = if world.is_on_spark { spark_statements(world) } else { statements(world) };
            for statement in statements {
                let ran = self.warehouse.execute(Statement::plain(&statement), Duration::from_secs(60));
                ran.await.with_context(|| statement.clone())?;
            }
            anyhow::Ok(())
        })?;
        let served = self.serve_tree(tree, WorldHooks::of(world))?;
        served.build_rollups(world)?;
        Ok(served)
    }

    /// Loads a project over the existing tables.
    ///
    /// # Errors
    /// The project has a problem.
    pub fn serve_tree(&self, tree: &SourceTree, hooks: WorldHooks) -> Result<Served<'_>> {
        self.runtime.block_on(async {
            let plugins = OneDialect(Arc::clone(&self.profile));
            let inputs = Inputs { warehouse: self.warehouse.name().into(), ..Inputs::default() };
            let known = SchemaIntrospection::default();
            let snapshot = load(tree, &inputs, &known, &plugins, &*self.warehouse).await?;
            let problems =
                snapshot.diagnostics.iter().filter(|d| d.is_error() || d.code.as_str() == "cube-not-described");
            let problems: Vec<String> = problems.map(ToString::to_string).collect();
            if !problems.is_empty() {
                let files: Vec<String> = tree.files.iter().map(|(path, text)| format!("{path}: {text}")).collect();
                bail!("the project has problems:\n{}\n{}", problems.join("\n"), files.join("\n"));
            }
            let settings = QuerySettings {
                timeout: Duration::from_secs(60),
                default_limit: self.settings.default_limit,
                max_limit: self.settings.max_limit,
                max_export_rows: self.settings.max_limit,
                export_timeout: Duration::from_secs(60),
                timezone: TimeZone::UTC,
                limiter: LimiterSettings { running: 1, queued: 1, running_per_tenant: None, queued_per_tenant: None },
                cache: CacheSettings {
                    tiers: vec![Arc::new(MemoryCache::new(CACHE_SIZE))],
                    max_entry: CACHE_SIZE,
                    ..CacheSettings::disabled()
                },
                pre_aggregations: true,
                guardrails: self.guardrails,
                limit_advice: |_| "",
            };
            let ports = ServicePorts {
                warehouse: self.warehouse.clone(),
                builder: Arc::new(BuildsNothing(CantBuild::ReadOnly)),
                plugins: Arc::new(plugins),
                governance: Arc::new(hooks),
                detectors: Arc::new(NoDetectors),
                checks: Arc::new(NoChecks),
                clock: Arc::new(Stopped(self.settings.now)),
                observer: Arc::new(Unobserved),
            };
            Ok(Served { product: self, services: Services::for_operator(snapshot, ports, settings) })
        })
    }
}

impl Product {
    /// Runs a statement unchanged.
    ///
    /// # Errors
    /// Returns the error of DuckDB.
    pub fn execute(&self, sql: &str) -> Result<ResultSet> {
        let ran = self.warehouse.execute(Statement::plain(sql), Duration::from_secs(60));
        self.runtime.block_on(ran).with_context(|| sql.to_owned())
    }
}

impl Served<'_> {
    /// Calls `read` with the snapshot and its lineage, which includes the columns that the warehouse reports.
    pub fn with_lineage<T>(&self, read: impl FnOnce(&Snapshot, &Lineage) -> T) -> T {
        let snapshot = self.services.catalog.snapshot();
        let lineage = self.product.runtime.block_on(snapshot.lineage(&*self.product.warehouse));
        read(&snapshot, lineage)
    }

    /// Runs a query without the cache, and reads the answer as a client does.
    pub fn run(&self, query: &SemanticQuery) -> Answered {
        self.run_as(query, Asker::Usual, CacheControl { bypass: true, ..CacheControl::default() }).0
    }

    /// Runs a query for a caller. Also returns whether the answer came from the cache.
    pub fn run_as(&self, query: &SemanticQuery, asker: Asker, cache: CacheControl) -> (Answered, bool) {
        let context = context(asker);
        let session = self.services.queries.session(&context);
        let run = async { session.prepare(query).await?.with_cache(cache).run().await };
        let tables = self.services.queries.ready_rollups();
        let outcome = self.product.runtime.block_on(run);
        if !Arc::ptr_eq(&tables, &self.services.queries.ready_rollups()) {
            // DuckDB refused the tables of pre-aggregations, so the answer came from rows. The next query reads tables.
            self.services.queries.publish_rollups(tables);
            return (Answered::Broken("DuckDB refused the statement over tables".to_owned()), false);
        }
        match outcome {
            Ok(answer) => {
                let is_cached = answer.freshness.is_cached;
                (read_answer(answer), is_cached)
            }
            Err(QueryRunError::Query(error)) => (Answered::Refused(BTreeSet::from([error.code().into()])), false),
            Err(error) => (Answered::Broken(error.to_string()), false),
        }
    }

    /// Returns the use cases, over which a test can build another interface.
    pub fn services(&self) -> &Services {
        &self.services
    }

    /// Runs a future of another interface to its end.
    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.product.runtime.block_on(future)
    }

    /// Runs a query as REST does. Also returns the scopes of its caller.
    pub fn answer(&self, query: &SemanticQuery, asker: Asker) -> (Result<Answer, QueryRunError>, Scopes) {
        let context = context(asker);
        let session = self.services.queries.session(&context);
        let run = async { session.prepare(query).await?.run().await };
        (self.product.runtime.block_on(run), context.scopes)
    }

    /// Runs a DAX query and reads the answer as a client does.
    ///
    /// # Errors
    /// Returns the message of the refusal, with its place in the query.
    pub fn run_dax(&self, text: &str) -> Result<Json, String> {
        self.dax(text).map_err(|refusal| refusal.body.message)
    }

    /// Runs a DAX query and reads the answer as a client does.
    ///
    /// # Errors
    /// Returns the refusal of the query.
    pub fn dax(&self, text: &str) -> Result<Json, Box<DaxRefusal>> {
        let context = context(Asker::Usual);
        let run = terrane_app::dax::execute(&self.services.queries, &context, text);
        let answer = self.product.runtime.block_on(run);
        let refusal = |error| {
            let problem = match &error {
                DaxError::Problems(problems) => problems.first().map(|problem| problem.kind.clone()),
                _ => None,
            };
            Box::new(DaxRefusal { body: terrane_wire::dax::refusal(text, error, context.scopes), problem })
        };
        let body = terrane_wire::dax::result(&answer.map_err(refusal)?);
        serde_json::from_slice(&body).map_err(|error| {
            let body = ErrorBody::new(terrane_wire::Code::InternalError, error.to_string());
            Box::new(DaxRefusal { body, problem: None })
        })
    }

    /// Reports to the cache that all data has changed.
    pub fn invalidate(&self) {
        self.product.runtime.block_on(self.services.versions.invalidate_all());
    }

    /// Returns the SQL of a query, for reports.
    pub fn sql(&self, query: &SemanticQuery) -> String {
        let context = context(Asker::Usual);
        let session = self.services.queries.session(&context);
        let inline = async { session.prepare(query).await?.inline_sql().await };
        let sql = self.product.runtime.block_on(inline);
        sql.unwrap_or_else(|error| format!("refused: {error}"))
    }
}

/// Converts an answer to the rows that a client receives.
fn read_answer(answer: Answer) -> Answered {
    let keys: Vec<String> = answer.columns.iter().map(|column| column.key.to_string()).collect();
    let mut body = Vec::new();
    write_rows(&answer.columns, &answer.batches, Numbers::Plain, &mut body);
    let rows: Vec<serde_json::Map<String, Json>> = match serde_json::from_slice(&body) {
        Ok(rows) => rows,
        Err(error) => return Answered::Broken(format!("{error}: {}", String::from_utf8_lossy(&body))),
    };
    let cells = |row: &serde_json::Map<String, Json>, keys: &[String]| -> Vec<Json> {
        keys.iter().map(|key| row.get(key).cloned().unwrap_or(Json::Null)).collect()
    };
    let totals = answer.totals.map(|totals| {
        let keys: Vec<String> = totals.columns.iter().map(|column| column.key.to_string()).collect();
        let mut body = Vec::new();
        write_rows(&totals.columns, &totals.batches, Numbers::Plain, &mut body);
        let rows: Vec<serde_json::Map<String, Json>> = serde_json::from_slice(&body).unwrap_or_default();
        rows.first().map(|row| cells(row, &keys)).unwrap_or_default()
    });
    let rows = rows.iter().map(|row| cells(row, &keys)).collect();
    Answered::Rows { rows, keys, total_rows: answer.total_rows, totals }
}

/// Returns the request context of a caller.
pub fn context(asker: Asker) -> RequestContext {
    let value = |cell: &Cell| match cell {
        Cell::Text(text) => Value::Text(text.as_str().into()),
        Cell::Int(value) => Value::Integer(*value),
        Cell::Bool(value) => Value::Boolean(*value),
        _ => Value::Null,
    };
    let mut caller = SecurityContext::default();
    for name in TEXT_ATTRIBUTES.iter().chain(NUMBER_ATTRIBUTES).chain(BOOLEAN_ATTRIBUTES) {
        let Some(mut cells) = attribute(name) else { continue };
        if asker == Asker::Other {
            cells = others(&cells);
        }
        let attribute = match (is_list(name), cells.first()) {
            (false, Some(cell)) => Attribute::One(value(cell)),
            _ => Attribute::Many(cells.iter().map(value).collect()),
        };
        caller.attributes.insert((*name).into(), attribute);
    }
    RequestContext { caller, ..RequestContext::default() }
}

/// Returns the attribute values of the other caller: the last one of several values, or a neighbor of a single value.
fn others(cells: &[Cell]) -> Vec<Cell> {
    match cells {
        [Cell::Int(value)] => vec![Cell::Int(1 - value)],
        [Cell::Bool(value)] => vec![Cell::Bool(!value)],
        [Cell::Text(text)] => vec![Cell::Text(format!("{text} "))],
        _ => cells.iter().rev().take(1).cloned().collect(),
    }
}
