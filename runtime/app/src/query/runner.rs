//! Runs statements on the warehouse: the only code that acquires permits.
//!
//! In: compiled statements of one query. Out: their rows, whole or as a stream that has begun. All statements of a
//! query run under one permit and within one timeout, and each is recorded. Not here: compiling, and the interpretation
//! of rows.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use futures_util::StreamExt as _;
use terrane_compiler::query::QueryError;
use terrane_compiler::sql::{CompiledSql, MAX_ADDED_ROWS};

use super::QueryRunError;
use super::answer::{first_integer, row_count};
use super::limiter::{ConcurrencyLimiter, Permit};
use super::recorder::{StatementOrigin, StatementRecorder};
use crate::ports::clock::Clock;
use crate::ports::observer::QueryOutcome;
use crate::ports::warehouse::{BatchStream, ResultSet, Statement, Warehouse, WarehouseError};

/// Runs the statements of queries. The limiter bounds the number of queries that run at once.
pub(super) struct StatementRunner {
    pub(super) warehouse: Arc<dyn Warehouse>,
    pub(super) limiter: ConcurrencyLimiter,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) timeout: Duration,
}

/// The statements of one query, which run under one permit.
pub(super) struct Statements<'r> {
    runner: &'r StatementRunner,
    origin: &'r StatementOrigin,
    permit: Permit,
    admitted: Duration,
}

/// A statement whose first rows were read, or whose result is empty.
pub(super) struct OpenedStatement {
    pub(super) batches: BatchStream,
    /// The schema, and the first batch with rows.
    pub(super) rows: ResultSet,
    pub(super) recorder: StatementRecorder,
}

impl StatementRunner {
    /// Waits for a permit.
    ///
    /// # Errors
    /// [`QueryRunError::Overloaded`]
    pub(super) async fn admit<'r>(
        &'r self,
        tenant: Option<&Arc<str>>,
        origin: &'r StatementOrigin,
    ) -> Result<Statements<'r>, QueryRunError> {
        let permit = self.limiter.acquire(tenant).await?;
        let admitted = *origin.admitted.get_or_init(|| self.clock.elapsed());
        Ok(Statements { runner: self, origin, permit, admitted })
    }

    /// Runs work within the timeout of queries, which includes the wait for a permit.
    ///
    /// # Errors
    /// [`QueryRunError::Timeout`], or the error of the work.
    pub(super) async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, QueryRunError>>,
    ) -> Result<T, QueryRunError> {
        within(self.timeout, QueryRunError::Timeout { timeout: self.timeout }, work).await
    }
}

impl Statements<'_> {
    /// Runs a statement, and checks the number of rows that gap filling added.
    pub(super) async fn execute(&self, sql: &CompiledSql) -> Result<ResultSet, QueryRunError> {
        let rows = self.execute_statement(Statement::from(sql)).await?;
        check_added_rows(sql, &rows.batches)?;
        Ok(rows)
    }

    pub(super) async fn execute_statement(&self, statement: Statement<'_>) -> Result<ResultSet, QueryRunError> {
        let timeout = self.runner.timeout;
        let mut recorder = self.origin.statement(statement.text, timeout);
        let rows = self.runner.warehouse.execute(statement, timeout).await;
        recorder.outcome = Some(rows.as_ref().map_or_else(|error| error.kind.into(), |_| QueryOutcome::Success));
        recorder.rows = rows.as_ref().map_or(0, |rows| row_count(&rows.batches));
        rows.map_err(|error| QueryRunError::from_warehouse(error, timeout))
    }

    /// Starts a statement whose rows are read as a stream, and reads its first rows.
    pub(super) async fn open(&self, sql: &CompiledSql) -> Result<OpenedStatement, QueryRunError> {
        let timeout = self.runner.timeout;
        let mut recorder = self.origin.statement(&sql.text, timeout);
        let mut failed = |error: WarehouseError| {
            recorder.outcome = Some(error.kind.into());
            QueryRunError::from_warehouse(error, timeout)
        };
        let mut batches = self.runner.warehouse.stream(Statement::from(sql), timeout).await.map_err(&mut failed)?;
        let first = loop {
            match batches.next().await.transpose().map_err(&mut failed)? {
                Some(batch) if batch.num_rows() == 0 => {}
                first => break first,
            }
        };
        let rows = ResultSet { schema: batches.schema.clone(), batches: first.into_iter().collect() };
        check_added_rows(sql, &rows.batches)?;
        Ok(OpenedStatement { batches, rows, recorder })
    }

    /// Returns the time since the query got its permit.
    pub(super) fn elapsed(&self) -> Duration {
        self.runner.clock.elapsed().saturating_sub(self.admitted)
    }

    /// Ends the statements and returns their permit, under which a stream continues.
    pub(super) fn into_permit(self) -> Permit {
        self.permit
    }
}

/// Runs work within a limit of time.
///
/// # Errors
/// `overdue` if the limit is reached, or the error of the work.
pub(super) async fn within<T>(
    limit: Duration,
    overdue: QueryRunError,
    work: impl Future<Output = Result<T, QueryRunError>>,
) -> Result<T, QueryRunError> {
    tokio::time::timeout(limit, work).await.unwrap_or(Err(overdue))
}

/// Rejects a result to which gap filling added too many rows.
fn check_added_rows(sql: &CompiledSql, batches: &[RecordBatch]) -> Result<(), QueryError> {
    let added = sql.added_column.and_then(|column| first_integer(batches, column));
    match added {
        Some(added) if added > MAX_ADDED_ROWS => Err(QueryError::TooManySteps { limit: MAX_ADDED_ROWS }),
        _ => Ok(()),
    }
}
