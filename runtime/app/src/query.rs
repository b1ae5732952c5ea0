//! The use case of a query: compile, run, count.
//!
//! In: a [`SemanticQuery`] and who asks. Out: Arrow batches with what their columns mean, whole or as
//! they come. Every surface goes through [`QueryService`]. Not here: wire formats, status codes.

mod answer;
mod explain;
mod gate;
mod judgement;
mod key;
mod open;
mod profile;
mod rows;
mod tally;

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use terrane_compiler::query::{QueryError, SemanticQuery};
use terrane_compiler::sql::{CompiledSql, MAX_ADDED_ROWS};
use terrane_compiler::{Environment, SecurityContext, compile, compile_count, compile_inline, compile_totals};

pub use answer::{Answer, AnswerStream, Extent, Opened, Piece, Totals};
pub use gate::{Gate, GateSettings, Overloaded, Turn};
pub use judgement::Denied;

use crate::catalog::{Catalog, Snapshot};
use crate::governance::zone_name;
use crate::ports::clock::Clock;
use crate::ports::governance::{Governance, NoHooks, Surface};
use crate::ports::observer::{Observer, Outcome, QueryKind, Unobserved};
use crate::ports::traces::TraceContext;
use crate::ports::warehouse::{ResultSet, Statement, Warehouse, WarehouseError, WarehouseErrorKind};
use crate::security::{Journal, Scopes};
use judgement::Judged;
use tally::Tally;

/// Who asks, and under which number the request is logged.
#[derive(Debug, Clone, Default)]
pub struct RequestContext {
    pub caller: SecurityContext,
    pub correlation_id: Arc<str>,
    /// The request's own span, where traces are made.
    pub trace: Option<TraceContext>,
    /// Whose turn a query takes; `None` where there is only one.
    pub tenant: Option<Arc<str>>,
    /// The caller's scopes, which hooks can read.
    pub scopes: Scopes,
    pub surface: Surface,
    /// The address that the request came from; `None` where it came from no network.
    pub client: Option<IpAddr>,
}

/// What the operator set.
#[derive(Debug, Clone)]
pub struct QuerySettings {
    pub timeout: Duration,
    pub default_limit: u64,
    /// Of a page.
    pub max_limit: u64,
    /// Of an answer that is written out as it comes.
    pub max_export_rows: u64,
    /// How long such an answer may take to be read, be it by a slow client.
    pub export_timeout: Duration,
    pub timezone: TimeZone,
    /// How many run at once, and how many wait for a turn; one more is refused.
    pub gate: GateSettings,
}

/// Why a query has no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Query(#[from] QueryError),
    #[error(transparent)]
    Warehouse(#[from] WarehouseError),
    #[error("the query ran longer than {} seconds", timeout.as_secs_f64())]
    Timeout { timeout: Duration },
    #[error(transparent)]
    Overloaded(#[from] Overloaded),
    /// A governance hook said no.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// A governance hook that has to agree gave no answer.
    #[error("a policy that has to agree can't be asked now")]
    PolicyUnavailable,
}

impl RunError {
    fn from_warehouse(error: WarehouseError, timeout: Duration) -> Self {
        match error.kind {
            WarehouseErrorKind::Timeout => RunError::Timeout { timeout },
            _ => RunError::Warehouse(error),
        }
    }
}

/// An answer that may have more rows is read as it comes.
const MAX_WHOLE_ROWS: u64 = 10_000;

/// Compiles and runs queries.
pub struct QueryService {
    catalog: Arc<Catalog>,
    warehouse: Arc<dyn Warehouse>,
    clock: Arc<dyn Clock>,
    zones: TimeZoneDatabase,
    settings: QuerySettings,
    gate: Gate,
    observer: Arc<dyn Observer>,
    governance: Arc<dyn Governance>,
    /// Where what hooks did is noted, once there is one.
    journal: OnceLock<Arc<Journal>>,
    /// The project's, as hooks are told.
    time_zone: String,
}

impl QueryService {
    pub fn new(
        catalog: Arc<Catalog>,
        warehouse: Arc<dyn Warehouse>,
        clock: Arc<dyn Clock>,
        settings: QuerySettings,
    ) -> Self {
        let gate = Gate::new(settings.gate);
        QueryService {
            catalog,
            warehouse,
            clock,
            zones: TimeZoneDatabase::bundled(),
            time_zone: zone_name(&settings.timezone),
            settings,
            gate,
            observer: Arc::new(Unobserved),
            governance: Arc::new(NoHooks),
            journal: OnceLock::new(),
        }
    }

    /// Lets governance hooks have a say in every query.
    #[must_use]
    pub fn governed_by(self, governance: Arc<dyn Governance>) -> Self {
        QueryService { governance, ..self }
    }

    /// Notes what hooks do in the audit log from now on; the first journal stays.
    pub fn audited_by(&self, journal: Arc<Journal>) {
        let _ = self.journal.set(journal);
    }

    /// Tells somebody how queries go.
    #[must_use]
    pub fn observed_by(self, observer: Arc<dyn Observer>) -> Self {
        QueryService { observer, ..self }
    }

    /// Queries that run and that wait.
    pub fn load(&self) -> (usize, usize) {
        self.gate.load()
    }

    /// The most rows that [`QueryService::run`] answers with.
    pub fn max_limit(&self) -> u64 {
        self.settings.max_limit
    }

    /// The statement that [`QueryService::run`] would run; nothing is executed.
    ///
    /// # Errors
    /// What was asked can't be answered, or a policy has it refused.
    pub async fn sql(&self, context: &RequestContext, query: &SemanticQuery) -> Result<CompiledSql, RunError> {
        let snapshot = self.catalog.snapshot();
        let mut tally = self.tally(&snapshot, context, query, QueryKind::Sql);
        let environment = self.environment(Extent::Page);
        let compiled = match self.judge(&snapshot, context, query, &environment, &tally).await {
            Ok(judged) => self.compile(&snapshot, &judged, query, &environment, &tally).map_err(RunError::from),
            Err(refusal) => Err(refusal),
        };
        tally.end(&compiled);
        compiled
    }

    /// One runnable text, with the values written into it.
    ///
    /// # Errors
    /// As [`QueryService::sql`].
    pub async fn inline_sql(&self, context: &RequestContext, query: &SemanticQuery) -> Result<String, RunError> {
        let snapshot = self.catalog.snapshot();
        let mut tally = self.tally(&snapshot, context, query, QueryKind::Sql);
        let environment = self.environment(Extent::Page);
        let judged = self.judge(&snapshot, context, query, &environment, &tally).await;
        let compiled = judged.and_then(|judged| {
            compile_inline(&snapshot.profile, query, &judged.authorized, &environment).map_err(RunError::from)
        });
        tally.end(&compiled);
        compiled
    }

    /// Runs a query. The answer or the refusal comes at the timeout at the latest.
    ///
    /// # Errors
    /// [`RunError`]
    pub async fn run(&self, context: &RequestContext, query: &SemanticQuery) -> Result<Answer, RunError> {
        let snapshot = self.catalog.snapshot();
        let mut asked = self.ask(&snapshot, context, query, Extent::Page).await?;
        let outcome = self.run_whole(&mut asked).await;
        asked.tally.end(&outcome);
        logged(&asked.tally, outcome)
    }

    /// Runs a query whose answer may be large. The answer begins, or the refusal comes, at the timeout
    /// at the latest.
    ///
    /// # Errors
    /// [`RunError`]; what happens later is in the stream.
    pub async fn open(
        &self,
        context: &RequestContext,
        query: &SemanticQuery,
        extent: Extent,
    ) -> Result<Opened, RunError> {
        let snapshot = self.catalog.snapshot();
        let mut asked = self.ask(&snapshot, context, query, extent).await?;
        if asked.is_large() {
            return self.run_streamed(asked).await;
        }
        let outcome = self.run_whole(&mut asked).await;
        asked.tally.end(&outcome);
        logged(&asked.tally, outcome).map(Opened::Whole)
    }

    async fn ask<'a>(
        &self,
        snapshot: &'a Snapshot,
        context: &'a RequestContext,
        query: &'a SemanticQuery,
        extent: Extent,
    ) -> Result<Asked<'a>, RunError> {
        let kind = match extent {
            Extent::Page => QueryKind::Rest,
            Extent::Export => QueryKind::Export,
        };
        let mut tally = self.tally(snapshot, context, query, kind);
        let environment = self.environment(extent);
        let asked = match self.judge(snapshot, context, query, &environment, &tally).await {
            Ok(judged) => match self.compile(snapshot, &judged, query, &environment, &tally) {
                Ok(sql) => Ok((judged, sql)),
                Err(error) => Err(error.into()),
            },
            Err(refusal) => Err(refusal),
        };
        if asked.is_err() {
            tally.end(&asked);
        }
        let (judged, sql) = asked?;
        Ok(Asked { context, query, tally, snapshot, judged, environment, sql })
    }

    fn tally(&self, snapshot: &Snapshot, context: &RequestContext, query: &SemanticQuery, kind: QueryKind) -> Tally {
        Tally {
            observer: Arc::clone(&self.observer),
            clock: Arc::clone(&self.clock),
            trace: context.trace,
            cube: tally::cube_of(&snapshot.model, query),
            warehouse: self.warehouse.name().into(),
            kind,
            started: self.clock.elapsed(),
            asked: None,
            waited: None,
            rows: 0,
            outcome: Outcome::Abandoned,
        }
    }

    async fn run_whole(&self, asked: &mut Asked<'_>) -> Result<Answer, RunError> {
        let run = async {
            let _turn = self.gate.enter(asked.context.tenant.as_ref()).await?;
            let since = asked.tally.ask();
            let rows = self.execute(asked, &asked.sql).await?;
            check_added_rows(&asked.sql, &rows.batches)?;
            let total_rows = self.total_rows(asked, &rows).await?;
            let totals = self.totals(asked).await?;
            Ok((rows, total_rows, totals, self.clock.elapsed().saturating_sub(since)))
        };
        let (rows, total_rows, totals, warehouse_duration) = self.in_time(run).await?;
        Ok(self.whole(asked, rows, total_rows, totals, warehouse_duration))
    }

    /// Each measure without dimensions, where the query asks for it.
    async fn totals(&self, asked: &Asked<'_>) -> Result<Option<Totals>, RunError> {
        let Asked { query, snapshot, judged, environment, .. } = asked;
        if !query.totals {
            return Ok(None);
        }
        let sql = compile_totals(&snapshot.profile, query, &judged.authorized, environment)?;
        let Some(sql) = sql else { return Ok(None) };
        let rows = self.execute(asked, &sql).await?;
        Ok(Some(Totals { columns: sql.columns, batches: rows.batches }))
    }

    fn whole(
        &self,
        asked: &mut Asked<'_>,
        rows: ResultSet,
        total_rows: Option<u64>,
        totals: Option<Totals>,
        warehouse_duration: Duration,
    ) -> Answer {
        let Asked { query, sql, tally, .. } = asked;
        let returned_rows = row_count(&rows.batches);
        (tally.waited, tally.rows) = (Some(warehouse_duration), returned_rows);
        let duration = self.clock.elapsed().saturating_sub(tally.started);
        tracing::info!(
            event = "query_executed",
            cube = &*tally.cube,
            warehouse = self.warehouse.name(),
            warehouse_duration_ms = milliseconds(warehouse_duration),
            total_duration_ms = milliseconds(duration),
            rows_returned = returned_rows,
            // No engine here tells how much it read.
            bytes_scanned = tracing::field::Empty,
            cache_hit = false,
            preagg_used = false,
        );
        let truncated = answer::truncated(sql, returned_rows, total_rows);
        Answer {
            sql: sql.text.clone(),
            columns: sql.columns.clone(),
            schema: rows.schema,
            batches: rows.batches,
            returned_rows,
            total_rows,
            totals,
            truncated,
            warnings: answer::warnings(sql, query.limit.is_some(), truncated, returned_rows, total_rows),
            cache_key: key::cache_key(self.warehouse.name(), sql),
            duration,
        }
    }

    async fn in_time<T>(&self, work: impl Future<Output = Result<T, RunError>>) -> Result<T, RunError> {
        let timeout = self.settings.timeout;
        tokio::time::timeout(timeout, work).await.unwrap_or(Err(RunError::Timeout { timeout }))
    }

    fn compile(
        &self,
        snapshot: &Snapshot,
        judged: &Judged<'_>,
        query: &SemanticQuery,
        environment: &Environment,
        tally: &Tally,
    ) -> Result<CompiledSql, QueryError> {
        let started = self.clock.elapsed();
        let compiled = compile(&snapshot.profile, query, &judged.authorized, environment);
        let duration = self.clock.elapsed().saturating_sub(started);
        tally.compiled(duration, outcome(&compiled));
        let mut sql = compiled?;
        sql.warnings.extend(judged.warnings.iter().cloned());
        tracing::info!(
            event = "query_compiled",
            cube = &*tally.cube,
            sql_hash = key::sql_hash(&sql.text),
            compile_duration_ms = milliseconds(duration),
        );
        Ok(sql)
    }

    fn environment(&self, extent: Extent) -> Environment {
        Environment {
            now: self.clock.now(),
            zones: self.zones.clone(),
            default_timezone: self.settings.timezone.clone(),
            default_limit: self.settings.default_limit,
            max_limit: match extent {
                Extent::Page => self.settings.max_limit,
                Extent::Export => self.settings.max_export_rows,
            },
        }
    }

    async fn execute(&self, asked: &Asked<'_>, sql: &CompiledSql) -> Result<ResultSet, RunError> {
        let timeout = self.settings.timeout;
        let mut execution = asked.tally.execution(asked.hash_of(sql), timeout);
        let rows = self.warehouse.execute(Statement::from(sql), timeout).await;
        execution.outcome = Some(rows.as_ref().map_or_else(|error| error.kind.into(), |_| Outcome::Success));
        execution.rows = rows.as_ref().map_or(0, |rows| row_count(&rows.batches));
        rows.map_err(|error| RunError::from_warehouse(error, timeout))
    }

    /// The number of groups before paging: from the rows themselves, or, where there are none to
    /// carry it, from a statement that counts. That one tells of added rows too, which no page may hide.
    async fn total_rows(&self, asked: &Asked<'_>, rows: &ResultSet) -> Result<Option<u64>, RunError> {
        let Asked { query, sql, .. } = asked;
        let returned = row_count(&rows.batches);
        if returned == 0 && sql.added_column.is_some() {
            let total = self.count(asked).await?;
            return Ok(total.filter(|_| !query.skip_total));
        }
        if query.skip_total {
            return Ok(None);
        }
        if let Some(column) = sql.total_column
            && let Some(total) = first_integer(&rows.batches, column)
        {
            return Ok(Some(total));
        }
        let is_whole_page = returned > 0 && sql.limit.is_none_or(|limit| returned < limit);
        let is_first_page = sql.offset == 0 && sql.limit != Some(0);
        if is_whole_page || is_first_page {
            return Ok(Some(sql.offset + returned));
        }
        self.count(asked).await
    }

    async fn count(&self, asked: &Asked<'_>) -> Result<Option<u64>, RunError> {
        let Asked { query, snapshot, judged, environment, .. } = asked;
        let count = compile_count(&snapshot.profile, query, &judged.authorized, environment)?;
        let counted = self.execute(asked, &count).await?;
        check_added_rows(&count, &counted.batches)?;
        Ok(first_integer(&counted.batches, 0))
    }
}

/// A query that was compiled, with what it was compiled from.
struct Asked<'a> {
    context: &'a RequestContext,
    query: &'a SemanticQuery,
    tally: Tally,
    snapshot: &'a Snapshot,
    /// For all of its statements.
    judged: Judged<'a>,
    environment: Environment,
    sql: CompiledSql,
}

impl Asked<'_> {
    /// Of a statement of this query; only spans ask for it.
    fn hash_of(&self, sql: &CompiledSql) -> String {
        match self.context.trace {
            Some(trace) if trace.is_sampled => key::sql_hash(&sql.text),
            _ => String::new(),
        }
    }

    /// May have many rows, and the first of them says how many.
    fn is_large(&self) -> bool {
        let knows_total = self.sql.total_column.is_some() || self.query.skip_total;
        let has_groups = self.sql.columns.iter().any(|column| !column.is_measure);
        has_groups && knows_total && self.sql.limit.is_none_or(|limit| limit > MAX_WHOLE_ROWS)
    }
}

/// Steps of time may not add rows without end.
fn check_added_rows(sql: &CompiledSql, batches: &[RecordBatch]) -> Result<(), QueryError> {
    let added = sql.added_column.and_then(|column| first_integer(batches, column));
    match added {
        Some(added) if added > MAX_ADDED_ROWS => Err(QueryError::TooManySteps { limit: MAX_ADDED_ROWS }),
        _ => Ok(()),
    }
}

fn row_count(batches: &[RecordBatch]) -> u64 {
    batches.iter().map(|batch| batch.num_rows() as u64).sum()
}

/// Engines sum whole numbers in types of their own.
fn first_integer(batches: &[RecordBatch], column: usize) -> Option<u64> {
    let batch = batches.iter().find(|batch| batch.num_rows() > 0)?;
    let array = batch.columns().get(column)?.slice(0, 1);
    let integers = cast(&array, &DataType::Int64).ok()?;
    let integers = integers.as_primitive_opt::<Int64Type>()?;
    integers.is_valid(0).then(|| u64::try_from(integers.value(0)).ok())?
}

fn outcome<T>(compiled: &Result<T, QueryError>) -> Outcome {
    if compiled.is_ok() { Outcome::Success } else { Outcome::Refused }
}

/// Says in the log what failed.
fn logged<T>(tally: &Tally, outcome: Result<T, RunError>) -> Result<T, RunError> {
    if let Err(error) = &outcome {
        tracing::error!(
            event = "query_failed",
            cube = &*tally.cube,
            error_type = error_type(error),
            error_message = %error,
            retry_count = retry_count(error),
            exception = exception(error),
        );
    }
    outcome
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

fn error_type(error: &RunError) -> &'static str {
    match error {
        RunError::Query(_) => "query",
        RunError::Warehouse(_) => "warehouse",
        RunError::Timeout { .. } => "timeout",
        RunError::Overloaded(_) => "overloaded",
        RunError::Denied(_) | RunError::PolicyUnavailable => "policy",
    }
}

/// How often the statement was run again before its error was believed.
fn retry_count(error: &RunError) -> u32 {
    match error {
        RunError::Warehouse(error) => error.retries,
        _ => 0,
    }
}

/// The error's name in this code.
fn exception(error: &RunError) -> String {
    let named = match error {
        RunError::Query(error) => format!("QueryError::{error:?}"),
        RunError::Warehouse(error) => format!("WarehouseError::{:?}", error.kind),
        other => format!("RunError::{other:?}"),
    };
    named.split(|c: char| !c.is_alphanumeric() && c != ':').next().unwrap_or_default().to_owned()
}
