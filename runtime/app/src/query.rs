//! The use case of a query: compile, run, count.
//!
//! In: a [`SemanticQuery`] and who asks. Out: Arrow batches with what their columns mean. Every
//! surface goes through [`QueryService`]. Not here: wire formats, status codes.

mod gate;
mod key;

use std::sync::Arc;
use std::time::Duration;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use terrane_compiler::query::{QueryError, SemanticQuery};
use terrane_compiler::sql::{CompiledSql, ResultColumn};
use terrane_compiler::{Environment, SecurityContext, compile, compile_count, compile_inline};

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
    pub max_limit: u64,
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

/// The rows of a query, in columns.
#[derive(Debug)]
pub struct Answer {
    pub sql: String,
    /// The first columns of the batches, in order.
    pub columns: Vec<ResultColumn>,
    pub batches: Vec<RecordBatch>,
    pub returned_rows: u64,
    /// `None` when it was not asked for.
    pub total_rows: Option<u64>,
    pub cache_key: String,
    pub duration: Duration,
}

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
        self.compile(&snapshot, context, query)
    }

    /// One runnable text, with the values written into it.
    ///
    /// # Errors
    /// As [`QueryService::sql`].
    pub fn inline_sql(&self, context: &RequestContext, query: &SemanticQuery) -> Result<String, QueryError> {
        let snapshot = self.catalog.snapshot();
        compile_inline(&snapshot.model, &snapshot.profile, query, &context.caller, &self.environment())
    }

    /// Runs a query. The answer or the refusal comes at the timeout at the latest.
    ///
    /// # Errors
    /// [`RunError`]
    pub async fn run(&self, context: &RequestContext, query: &SemanticQuery) -> Result<Answer, RunError> {
        let started = self.clock.elapsed();
        let timeout = self.settings.timeout;
        let snapshot = self.catalog.snapshot();
        let sql = self.compile(&snapshot, context, query)?;
        let run = async {
            let _turn = self.gate.enter().await?;
            let asked = self.clock.elapsed();
            let rows = self.execute(&sql).await?;
            let total_rows = self.total_rows(&snapshot, context, query, &sql, &rows).await?;
            Ok((rows, total_rows, self.clock.elapsed().saturating_sub(asked)))
        };
        let outcome = match tokio::time::timeout(timeout, run).await {
            Ok(outcome) => outcome,
            Err(_) => Err(RunError::Timeout { timeout }),
        };
        let duration = self.clock.elapsed().saturating_sub(started);
        match outcome {
            Ok((rows, total_rows, warehouse_duration)) => {
                let returned_rows = row_count(&rows.batches);
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
                let cache_key = key::cache_key(self.warehouse.name(), &sql);
                let CompiledSql { text, columns, .. } = sql;
                Ok(Answer { sql: text, columns, batches: rows.batches, returned_rows, total_rows, cache_key, duration })
            }
            Err(error) => {
                tracing::error!(
                    event = "query_failed",
                    cube = cube_label(query),
                    error_type = error_type(&error),
                    error_message = %error,
                    retry_count = 0,
                );
                Err(error)
            }
        }
    }

    fn compile(
        &self,
        snapshot: &Snapshot,
        context: &RequestContext,
        query: &SemanticQuery,
    ) -> Result<CompiledSql, QueryError> {
        let started = self.clock.elapsed();
        let sql = compile(&snapshot.model, &snapshot.profile, query, &context.caller, &self.environment())?;
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

    fn environment(&self) -> Environment {
        Environment {
            now: self.clock.now(),
            zones: self.zones.clone(),
            default_timezone: self.settings.timezone.clone(),
            default_limit: self.settings.default_limit,
            max_limit: self.settings.max_limit,
        }
    }

    async fn execute(&self, sql: &CompiledSql) -> Result<ResultSet, RunError> {
        let timeout = self.settings.timeout;
        self.warehouse.execute(Statement::from(sql), timeout).await.map_err(|error| match error.kind {
            WarehouseErrorKind::Timeout => RunError::Timeout { timeout },
            _ => RunError::Warehouse(error),
        })
    }

    /// The number of groups before paging: from the rows themselves, or, where there are none to
    /// carry it, from a statement that counts.
    async fn total_rows(
        &self,
        snapshot: &Snapshot,
        context: &RequestContext,
        query: &SemanticQuery,
        sql: &CompiledSql,
        rows: &ResultSet,
    ) -> Result<Option<u64>, RunError> {
        if query.skip_total {
            return Ok(None);
        }
        let returned = row_count(&rows.batches);
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
        let count = compile_count(&snapshot.model, &snapshot.profile, query, &context.caller, &self.environment())?;
        let counted = self.execute(&count).await?;
        Ok(first_integer(&counted.batches, 0))
    }
}

fn row_count(batches: &[RecordBatch]) -> u64 {
    batches.iter().map(|batch| batch.num_rows() as u64).sum()
}

fn first_integer(batches: &[RecordBatch], column: usize) -> Option<u64> {
    let batch = batches.iter().find(|batch| batch.num_rows() > 0)?;
    let array = batch.columns().get(column)?.as_primitive_opt::<Int64Type>()?;
    array.is_valid(0).then(|| u64::try_from(array.value(0)).ok())?
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
