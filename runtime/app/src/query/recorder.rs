//! Records one query and each statement that it runs.
//!
//! In: the query's progress. Out: one [`EndedQuery`] for the observer when the recorder is dropped, a [`Step`] for each
//! part, and one log line if the query failed. If the caller disconnected, the query ends as abandoned. Not here: audit
//! records (`security::access`).

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use terrane_compiler::model::{CubeId, DimensionType, MetricId, Model, Snippet, SqlPart};
use terrane_compiler::query::SemanticQuery;
use terrane_compiler::sql::{CompiledSql, ResultColumn, StatementShape};

use super::cache_use::CacheUse;
use super::history::{filtered_dimensions, named_members};
use super::{QueryRunError, key, milliseconds};
use crate::catalog::Snapshot;
use crate::cost::{ExecutedPlan, Execution, ExecutionLog, GuardrailExceeded, Reservation};
use crate::domain::{QueryKind, RequestContext, Surface, TraceContext};
use crate::ports::clock::Clock;
use crate::ports::observer::{EndedQuery, Executed, Observer, QueryOutcome, Step, UNKNOWN_CUBE, WarehouseShare};
use crate::ports::warehouse::{ScanSize, WarehouseErrorKind};

/// The facts that the records of a query's statements share. All clones belong to the same query.
#[derive(Clone)]
pub(super) struct StatementOrigin {
    pub(super) observer: Arc<dyn Observer>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) trace: Option<TraceContext>,
    pub(super) cube: Arc<str>,
    pub(super) warehouse: Arc<str>,
    /// The clock's `elapsed` when the query got its permit.
    pub(super) admitted: Arc<OnceLock<Duration>>,
}

/// The record of a query, from its arrival to its last row.
pub(super) struct QueryRecorder {
    pub(super) origin: StatementOrigin,
    pub(super) kind: QueryKind,
    /// True if the query is answered from rows after a refusal, which the caller does not see.
    pub(super) is_attempt: bool,
    /// The entry for the history; `None` if no history is written.
    pub(super) history: Option<HistoryEntry>,
    /// The reservations of the query in the budgets of its caller.
    pub(super) reservations: Mutex<Vec<Reservation>>,
    /// The size of what the statement scans, if it was needed before the query ran.
    pub(super) scan_size: OnceLock<Option<ScanSize>>,
    /// The clock's `elapsed` at the start.
    pub(super) started: Duration,
    /// The time spent on the warehouse; `None` if it is the time since admission.
    pub(super) waited: Option<Duration>,
    pub(super) rows: u64,
    pub(super) outcome: QueryOutcome,
}

/// The history to which a query is added, and the caller of the query.
pub(super) struct HistoryEntry {
    log: Arc<ExecutionLog>,
    user_id: Arc<str>,
    tenant: Option<Arc<str>>,
    surface: Surface,
    /// The dimensions that the query filters by.
    filters: Option<Arc<str>>,
    /// The members that the query names.
    members: Option<Arc<str>>,
    snapshot: Arc<Snapshot>,
}

/// The facts about an executed statement that its records need after the statement is dropped.
pub(super) struct ExecutedStatement {
    query_hash: String,
    /// The first pre-aggregation that the statement reads, `cube.name`.
    pre_aggregation: Option<Arc<str>>,
    /// True if some rows come from pre-aggregated tables.
    uses_tables: bool,
    shape: Arc<StatementShape>,
    /// The estimated bytes of a row of the answer.
    row_bytes: u64,
}

impl HistoryEntry {
    pub(super) fn new(
        log: &Arc<ExecutionLog>,
        context: &RequestContext,
        snapshot: &Arc<Snapshot>,
        query: &SemanticQuery,
    ) -> Self {
        HistoryEntry {
            log: Arc::clone(log),
            user_id: Arc::clone(&context.caller.user_id),
            tenant: context.tenant.clone(),
            surface: context.surface,
            filters: filtered_dimensions(&snapshot.model, query),
            members: named_members(&snapshot.model, query),
            snapshot: Arc::clone(snapshot),
        }
    }
}

impl ExecutedStatement {
    pub(super) fn new(sql: &CompiledSql, uses_tables: bool) -> Self {
        let served = sql.rollups.iter().find_map(|fact| Some((&fact.cube, fact.served.as_ref()?)));
        ExecutedStatement {
            query_hash: key::sql_hash(&sql.text),
            pre_aggregation: served.map(|(cube, served)| format!("{cube}.{}", served.rollup).into()),
            uses_tables,
            shape: Arc::clone(&sql.shape),
            row_bytes: row_bytes(&sql.columns),
        }
    }
}

/// Returns the estimated bytes of a row of an answer.
pub(super) fn row_bytes(columns: &[ResultColumn]) -> u64 {
    let bytes = |column: &ResultColumn| match column.ty {
        DimensionType::Boolean => 1,
        DimensionType::Number | DimensionType::Time => 8,
        DimensionType::String | DimensionType::Geo => 24,
    };
    columns.iter().map(bytes).sum()
}

impl ExecutedStatement {
    pub(super) fn pre_aggregation(&self) -> Option<&Arc<str>> {
        self.pre_aggregation.as_ref()
    }
}

impl QueryRecorder {
    pub(super) fn duration(&self) -> Duration {
        self.origin.clock.elapsed().saturating_sub(self.started)
    }

    pub(super) fn compiled(&self, duration: Duration, outcome: QueryOutcome) {
        self.origin.observer.compiled(&Step { trace: self.origin.trace, cube: &self.origin.cube, duration, outcome });
    }

    /// Records that the query succeeded, with the time on the warehouse and the number of rows.
    pub(super) fn succeed(&mut self, waited: Duration, rows: u64) {
        (self.waited, self.rows, self.outcome) = (Some(waited), rows, QueryOutcome::Success);
    }

    /// Records a failure and logs it.
    pub(super) fn fail(&mut self, error: &QueryRunError) {
        self.outcome = QueryOutcome::from(error);
        tracing::error!(
            event = "query_failed",
            cube = &*self.origin.cube,
            error_type = error_type(error),
            error_message = %error,
            retry_count = retry_count(error),
            exception = exception(error),
        );
    }

    /// Records and logs a failure after the first rows were read.
    pub(super) fn fail_after_rows(&mut self, error: &QueryRunError) {
        self.outcome = QueryOutcome::from(error);
        tracing::error!(
            event = "query_failed",
            cube = &*self.origin.cube,
            error_type = error_type(error),
            error_message = %error,
            rows_returned = self.rows,
            retry_count = retry_count(error),
            exception = exception(error),
        );
    }

    /// Reports the pre-aggregations that the statement reads.
    pub(super) fn used_rollups(&self, sql: &CompiledSql) {
        for fact in &sql.rollups {
            if let Some(served) = &fact.served {
                self.origin.observer.rollup_used(&fact.cube, &served.rollup);
            }
        }
    }

    /// Logs that all rows were read, and adds the query to the history.
    pub(super) fn log_executed(
        &self,
        waited: Duration,
        duration: Duration,
        rows: u64,
        cache: CacheUse,
        statement: &ExecutedStatement,
    ) {
        self.add_to_history(waited, duration, rows, cache, statement);
        tracing::info!(
            event = "query_executed",
            cube = &*self.origin.cube,
            warehouse = &*self.origin.warehouse,
            warehouse_duration_ms = milliseconds(waited),
            total_duration_ms = milliseconds(duration),
            rows_returned = rows,
            // No engine reports the number of bytes that it read.
            bytes_scanned = tracing::field::Empty,
            cache_hit = cache.is_hit(),
            cache_miss_reason = cache.miss_reason(),
            preagg_used = statement.uses_tables,
        );
    }

    /// Adds a query to the history after all of its rows were read.
    pub(super) fn add_to_history(
        &self,
        waited: Duration,
        duration: Duration,
        rows: u64,
        cache: CacheUse,
        statement: &ExecutedStatement,
    ) {
        let Some(HistoryEntry { log, user_id, tenant, surface, filters, members, snapshot }) = &self.history else {
            return;
        };
        let plan = ExecutedPlan {
            snapshot: Arc::clone(snapshot),
            shape: Arc::clone(&statement.shape),
            scan_size: self.scan_size.get().copied().flatten(),
            row_bytes: statement.row_bytes,
        };
        let cost = log.record(&Execution {
            query_hash: &statement.query_hash,
            cube: &self.origin.cube,
            user_id,
            tenant: tenant.as_ref(),
            kind: self.kind,
            surface: *surface,
            duration,
            warehouse: waited,
            rows,
            is_cached: cache.is_hit(),
            pre_aggregation: statement.pre_aggregation.clone(),
            filters: filters.as_ref(),
            members: members.as_ref(),
            plan: Some(plan),
        });
        let mut reservations = self.reservations.lock().unwrap_or_else(PoisonError::into_inner);
        for mut reservation in reservations.drain(..) {
            reservation.settle(cost.unwrap_or(0));
        }
    }
}

impl StatementOrigin {
    /// Starts the record of a statement.
    pub(super) fn statement(&self, text: &str, limit: Duration) -> StatementRecorder {
        // Only spans show the hash, so it is computed only for sampled traces.
        let sql_hash = match self.trace {
            Some(trace) if trace.is_sampled => key::sql_hash(text),
            _ => String::new(),
        };
        StatementRecorder {
            observer: Arc::clone(&self.observer),
            clock: Arc::clone(&self.clock),
            trace: self.trace,
            cube: Arc::clone(&self.cube),
            warehouse: Arc::clone(&self.warehouse),
            sql_hash,
            started: self.clock.elapsed(),
            limit,
            rows: 0,
            outcome: None,
        }
    }
}

impl Drop for QueryRecorder {
    fn drop(&mut self) {
        let now = self.origin.clock.elapsed();
        let share = self.origin.admitted.get().map(|admitted| WarehouseShare {
            name: &self.origin.warehouse,
            waited: self.waited.unwrap_or(now.saturating_sub(*admitted)),
            rows: self.rows,
        });
        self.origin.observer.query_ended(&EndedQuery {
            cube: &self.origin.cube,
            kind: self.kind,
            outcome: self.outcome,
            duration: now.saturating_sub(self.started),
            warehouse: share,
        });
    }
}

/// The record of a statement that the warehouse runs. If it is dropped without an outcome, the caller stopped waiting.
pub(super) struct StatementRecorder {
    observer: Arc<dyn Observer>,
    clock: Arc<dyn Clock>,
    trace: Option<TraceContext>,
    cube: Arc<str>,
    warehouse: Arc<str>,
    sql_hash: String,
    started: Duration,
    limit: Duration,
    pub(super) rows: u64,
    pub(super) outcome: Option<QueryOutcome>,
}

impl Drop for StatementRecorder {
    fn drop(&mut self) {
        let duration = self.clock.elapsed().saturating_sub(self.started);
        let left = if duration >= self.limit { QueryOutcome::Timeout } else { QueryOutcome::Abandoned };
        let outcome = self.outcome.unwrap_or(left);
        let step = Step { trace: self.trace, cube: &self.cube, duration, outcome };
        let statement = Executed { warehouse: &self.warehouse, sql_hash: &self.sql_hash, rows: self.rows };
        self.observer.executed(&step, &statement);
    }
}

impl From<&QueryRunError> for QueryOutcome {
    fn from(error: &QueryRunError) -> Self {
        match error {
            QueryRunError::Query(_)
            | QueryRunError::Denied(_)
            | QueryRunError::PolicyUnavailable
            | QueryRunError::Unrecorded(_) => QueryOutcome::Refused,
            QueryRunError::Timeout { .. } | QueryRunError::Guardrail(GuardrailExceeded::ExecutionTime { .. }) => {
                QueryOutcome::Timeout
            }
            QueryRunError::Guardrail(_) | QueryRunError::BudgetUnavailable(_) => QueryOutcome::Refused,
            QueryRunError::Overloaded(_) => QueryOutcome::Overloaded,
            QueryRunError::Warehouse(error) => QueryOutcome::from(error.kind),
        }
    }
}

impl From<WarehouseErrorKind> for QueryOutcome {
    fn from(kind: WarehouseErrorKind) -> Self {
        match kind {
            WarehouseErrorKind::Refused => QueryOutcome::Error,
            WarehouseErrorKind::Timeout => QueryOutcome::Timeout,
            WarehouseErrorKind::Unavailable => QueryOutcome::Unavailable,
        }
    }
}

fn error_type(error: &QueryRunError) -> &'static str {
    match error {
        QueryRunError::Query(_) if error.is_denial() => "policy",
        QueryRunError::Query(_) => "query",
        QueryRunError::Warehouse(_) => "warehouse",
        QueryRunError::Timeout { .. } => "timeout",
        QueryRunError::Overloaded(_) => "overloaded",
        QueryRunError::Guardrail(_) => "guardrail",
        QueryRunError::Denied(_) | QueryRunError::PolicyUnavailable => "policy",
        QueryRunError::BudgetUnavailable(_) => "budget",
        QueryRunError::Unrecorded(_) => "audit",
    }
}

/// Logs a query that could not be parsed. It has no cube, so it has no other record.
pub fn log_unreadable(message: &str) {
    tracing::error!(
        event = "query_failed",
        cube = UNKNOWN_CUBE,
        error_type = "query",
        error_message = message,
        retry_count = 0,
        exception = "UnreadableQuery",
    );
}

/// Returns the number of retries of the statement before its error was returned.
fn retry_count(error: &QueryRunError) -> u32 {
    match error {
        QueryRunError::Warehouse(error) => error.retries,
        _ => 0,
    }
}

/// Returns the error's name in this program, such as `QueryError::UnknownMeasure`.
fn exception(error: &QueryRunError) -> String {
    let named = match error {
        QueryRunError::Query(error) => format!("QueryError::{error:?}"),
        QueryRunError::Warehouse(error) => format!("WarehouseError::{:?}", error.kind),
        other => format!("QueryRunError::{other:?}"),
    };
    named.split(|c: char| !c.is_alphanumeric() && c != ':').next().unwrap_or_default().to_owned()
}

/// Returns the cube of the query's first member. If this is a metric, returns the cube of its first measure. Never
/// returns a name that the model lacks.
pub(super) fn cube_of(model: &Model, query: &SemanticQuery) -> Arc<str> {
    if let (None, Some(computed)) = (query.values.first(), query.computed.first()) {
        return model.cube_named(&computed.cube).map_or_else(|| UNKNOWN_CUBE.into(), |cube| Arc::clone(&cube.name));
    }
    let first = query.values.first().or(query.dimensions.first());
    let time = query.time_dimensions.first().map(|dimension| &dimension.member);
    let named = first.or(time).and_then(|member| member.cube()).or(query.cube.as_deref());
    let cube = match (named, first) {
        (Some(name), _) => model.cube_named(name),
        (None, Some(member)) => model
            .metric_named(&member.text)
            .and_then(|metric| first_cube(model, metric, &mut Vec::new()))
            .map(|id| model.cube(id)),
        (None, None) => None,
    };
    cube.map_or_else(|| UNKNOWN_CUBE.into(), |cube| Arc::clone(&cube.name))
}

/// Returns the cube of a metric's first measure. Visits each metric once.
fn first_cube(model: &Model, metric: MetricId, seen: &mut Vec<MetricId>) -> Option<CubeId> {
    if seen.contains(&metric) {
        return None;
    }
    seen.push(metric);
    let mut parts = Vec::new();
    let body: &Snippet = &model.metric(metric).body;
    body.for_each(&mut |part| parts.push(part));
    parts.into_iter().find_map(|part| match part {
        SqlPart::Measure(id) => Some(id.cube),
        SqlPart::Metric(id) => first_cube(model, *id, seen),
        _ => None,
    })
}
