//! The use case of a query: compile, run, count.
//!
//! In: a [`SemanticQuery`] and who asks. Out: Arrow batches with what their columns mean, whole or as
//! they come. Every surface goes through [`QueryService`]. Not here: wire formats, status codes.

mod answer;
mod explain;
mod gate;
mod key;
mod open;
mod rows;

use std::sync::Arc;
use std::time::Duration;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use terrane_compiler::query::{QueryError, SemanticQuery};
use terrane_compiler::sql::{CompiledSql, MAX_ADDED_ROWS};
use terrane_compiler::{Environment, SecurityContext, compile, compile_count, compile_inline, compile_totals};

pub use answer::{Answer, AnswerStream, Extent, Opened, Piece, Totals};
pub use gate::{Gate, Overloaded};

use crate::catalog::{Catalog, Snapshot};
use crate::ports::clock::Clock;
use crate::ports::warehouse::{ResultSet, Statement, Warehouse, WarehouseError, WarehouseErrorKind};

/// Who asks, and under which number the request is logged.
#[derive(Debug, Clone, Default)]
pub struct RequestContext {
    pub caller: SecurityContext,
    pub correlation_id: Arc<str>,
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
    pub max_concurrent_queries: usize,
    /// Requests that wait for a turn; one more is refused.
    pub max_queued_queries: usize,
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
}

impl QueryService {
    pub fn new(
        catalog: Arc<Catalog>,
        warehouse: Arc<dyn Warehouse>,
        clock: Arc<dyn Clock>,
        settings: QuerySettings,
    ) -> Self {
        let gate = Gate::new(settings.max_concurrent_queries, settings.max_queued_queries);
        QueryService { catalog, warehouse, clock, zones: TimeZoneDatabase::bundled(), settings, gate }
    }

    /// The statement that [`QueryService::run`] would run; nothing is executed.
    ///
    /// # Errors
    /// What was asked can't be answered.
    pub fn sql(&self, context: &RequestContext, query: &SemanticQuery) -> Result<CompiledSql, QueryError> {
        let snapshot = self.catalog.snapshot();
        self.compile(&snapshot, context, query, &self.environment(Extent::Page))
    }

    /// One runnable text, with the values written into it.
    ///
    /// # Errors
    /// As [`QueryService::sql`].
    pub fn inline_sql(&self, context: &RequestContext, query: &SemanticQuery) -> Result<String, QueryError> {
        let snapshot = self.catalog.snapshot();
        let environment = self.environment(Extent::Page);
        compile_inline(&snapshot.model, &snapshot.profile, query, &context.caller, &environment)
    }

    /// Runs a query. The answer or the refusal comes at the timeout at the latest.
    ///
    /// # Errors
    /// [`RunError`]
    pub async fn run(&self, context: &RequestContext, query: &SemanticQuery) -> Result<Answer, RunError> {
        let asked = self.ask(context, query, Extent::Page)?;
        self.logged(query, self.run_whole(&asked).await)
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
        let asked = self.ask(context, query, extent)?;
        if asked.is_large() {
            return self.logged(query, self.run_streamed(&asked).await);
        }
        self.logged(query, self.run_whole(&asked).await).map(Opened::Whole)
    }

    fn ask<'a>(
        &self,
        context: &'a RequestContext,
        query: &'a SemanticQuery,
        extent: Extent,
    ) -> Result<Asked<'a>, QueryError> {
        let started = self.clock.elapsed();
        let snapshot = self.catalog.snapshot();
        let environment = self.environment(extent);
        let sql = self.compile(&snapshot, context, query, &environment)?;
        Ok(Asked { context, query, started, snapshot, environment, sql })
    }

    async fn run_whole(&self, asked: &Asked<'_>) -> Result<Answer, RunError> {
        let run = async {
            let _turn = self.gate.enter().await?;
            let since = self.clock.elapsed();
            let rows = self.execute(&asked.sql).await?;
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
        let Asked { context, query, snapshot, environment, .. } = asked;
        if !query.totals {
            return Ok(None);
        }
        let sql = compile_totals(&snapshot.model, &snapshot.profile, query, &context.caller, environment)?;
        let Some(sql) = sql else { return Ok(None) };
        let rows = self.execute(&sql).await?;
        Ok(Some(Totals { columns: sql.columns, batches: rows.batches }))
    }

    fn whole(
        &self,
        asked: &Asked<'_>,
        rows: ResultSet,
        total_rows: Option<u64>,
        totals: Option<Totals>,
        warehouse_duration: Duration,
    ) -> Answer {
        let Asked { query, sql, .. } = asked;
        let returned_rows = row_count(&rows.batches);
        let duration = self.clock.elapsed().saturating_sub(asked.started);
        tracing::info!(
            event = "query_executed",
            cube = cube_label(query),
            warehouse = self.warehouse.name(),
            warehouse_duration_ms = milliseconds(warehouse_duration),
            total_duration_ms = milliseconds(duration),
            rows_returned = returned_rows,
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

    fn logged<T>(&self, query: &SemanticQuery, outcome: Result<T, RunError>) -> Result<T, RunError> {
        if let Err(error) = &outcome {
            tracing::error!(
                event = "query_failed",
                cube = cube_label(query),
                error_type = error_type(error),
                error_message = %error,
                retry_count = 0,
            );
        }
        outcome
    }

    fn compile(
        &self,
        snapshot: &Snapshot,
        context: &RequestContext,
        query: &SemanticQuery,
        environment: &Environment,
    ) -> Result<CompiledSql, QueryError> {
        let started = self.clock.elapsed();
        let sql = compile(&snapshot.model, &snapshot.profile, query, &context.caller, environment)?;
        if tracing::enabled!(tracing::Level::INFO) {
            tracing::info!(
                event = "query_compiled",
                cube = cube_label(query),
                sql_hash = key::sql_hash(&sql.text),
                compile_duration_ms = milliseconds(self.clock.elapsed().saturating_sub(started)),
            );
        }
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

    async fn execute(&self, sql: &CompiledSql) -> Result<ResultSet, RunError> {
        let timeout = self.settings.timeout;
        let rows = self.warehouse.execute(Statement::from(sql), timeout).await;
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
        let Asked { context, query, snapshot, environment, .. } = asked;
        let count = compile_count(&snapshot.model, &snapshot.profile, query, &context.caller, environment)?;
        let counted = self.execute(&count).await?;
        check_added_rows(&count, &counted.batches)?;
        Ok(first_integer(&counted.batches, 0))
    }
}

/// A query that was compiled, with what it was compiled from.
struct Asked<'a> {
    context: &'a RequestContext,
    query: &'a SemanticQuery,
    /// As the clock's `elapsed` said then.
    started: Duration,
    snapshot: Arc<Snapshot>,
    environment: Environment,
    sql: CompiledSql,
}

impl Asked<'_> {
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

/// The cube of the first member, as the client named it.
fn cube_label(query: &SemanticQuery) -> &str {
    let first = query.values.first().or(query.dimensions.first());
    first.and_then(|member| member.cube()).or(query.cube.as_deref()).unwrap_or("")
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
    }
}
