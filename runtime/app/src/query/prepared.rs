//! An authorized query: compiles it, and runs it or shows its statement.
//!
//! In: a query with its authorization. Out: the statement, an explanation, or rows, whole or as a stream.
//! The main statement, its count and its totals are compiled from one authorization and run under one
//! permit. Absent: reading a stream to its end (`row_reader`).

use std::time::Duration;

use arrow::array::RecordBatch;
use futures_util::StreamExt as _;
use terrane_compiler::explanation::{Explanation, explain};
use terrane_compiler::query::{QueryError, SemanticQuery};
use terrane_compiler::sql::CompiledSql;
use terrane_compiler::{compile, compile_count, compile_inline, compile_totals};

use super::answer::{self, Answer, AnswerStream, Opened, Totals, first_integer, row_count};
use super::authorization::Authorization;
use super::limiter::Permit;
use super::recorder::QueryRecorder;
use super::row_reader::{RowReader, StreamRecord};
use super::runner::{OpenedStatement, Statements};
use super::session::QuerySession;
use super::{QueryRunError, key, milliseconds, outcome_of};
use crate::ports::observer::QueryOutcome;
use crate::ports::warehouse::ResultSet;

/// Answers with more rows are read as a stream.
const MAX_WHOLE_ROWS: u64 = 10_000;

/// An authorized query. It is run or shown once; dropped before, it counts as abandoned.
pub struct Prepared<'q> {
    pub(super) session: &'q QuerySession<'q>,
    pub(super) query: &'q SemanticQuery,
    /// The authorization for all statements of the query.
    pub(super) authorization: Authorization<'q>,
    pub(super) recorder: QueryRecorder,
}

/// The rows of a query with their totals, from one permit.
struct Rows {
    rows: ResultSet,
    total_rows: Option<u64>,
    totals: Option<Totals>,
    waited: Duration,
}

/// The beginning of a streamed answer.
struct Beginning {
    statement: OpenedStatement,
    total_rows: Option<u64>,
    totals: Option<Totals>,
    waited: Duration,
    permit: Permit,
}

impl Prepared<'_> {
    /// Returns the statement that [`Prepared::run`] would run. Nothing is executed.
    ///
    /// # Errors
    /// The query does not compile for this caller.
    pub async fn sql(mut self) -> Result<CompiledSql, QueryRunError> {
        let compiled = self.compile();
        self.session.finish(&mut self.recorder, compiled).await
    }

    /// Returns one runnable text, with the values written into it.
    ///
    /// # Errors
    /// As [`Prepared::sql`].
    pub async fn inline_sql(mut self) -> Result<String, QueryRunError> {
        let QuerySession { snapshot, environment, .. } = self.session;
        let text = compile_inline(&snapshot.profile, self.query, &self.authorization.authorized, environment);
        self.session.finish(&mut self.recorder, text.map_err(QueryRunError::from)).await
    }

    /// Explains the statement. Nothing is executed.
    ///
    /// # Errors
    /// As [`Prepared::sql`].
    pub async fn explain(mut self) -> Result<Explanation, QueryRunError> {
        let QuerySession { snapshot, environment, .. } = self.session;
        let explanation = explain(&snapshot.profile, self.query, &self.authorization.authorized, environment);
        self.session.finish(&mut self.recorder, explanation.map_err(QueryRunError::from)).await
    }

    /// Runs the query. The answer or the error comes at the timeout at the latest.
    ///
    /// # Errors
    /// [`QueryRunError`]
    pub async fn run(mut self) -> Result<Answer, QueryRunError> {
        let answer = match self.compile() {
            Ok(sql) => self.run_whole(sql).await,
            Err(error) => Err(error),
        };
        self.session.finish(&mut self.recorder, answer).await
    }

    /// Runs the query; a large answer is read as a stream. The answer begins, or the error comes, at the
    /// timeout at the latest.
    ///
    /// # Errors
    /// [`QueryRunError`]; what happens later is in the stream.
    pub async fn open(mut self) -> Result<Opened, QueryRunError> {
        let sql = match self.compile() {
            Ok(sql) => sql,
            error => self.session.finish(&mut self.recorder, error).await?,
        };
        if !self.is_large(&sql) {
            let answer = self.run_whole(sql).await;
            return self.session.finish(&mut self.recorder, answer).await.map(Opened::Whole);
        }
        let beginning = match self.begin(&sql).await {
            Ok(beginning) => beginning,
            error => self.session.finish(&mut self.recorder, error).await?,
        };
        if let Some(first) = beginning.statement.rows.batches.first().cloned() {
            return Ok(Opened::Streamed(self.streamed(sql, beginning, first)));
        }
        let Beginning { mut statement, total_rows, totals, waited, .. } = beginning;
        statement.recorder.outcome = Some(QueryOutcome::Success);
        Ok(Opened::Whole(self.whole(sql, Rows { rows: statement.rows, total_rows, totals, waited })))
    }

    fn compile(&self) -> Result<CompiledSql, QueryRunError> {
        let QuerySession { service, snapshot, environment, .. } = self.session;
        let started = service.clock.elapsed();
        let compiled = compile(&snapshot.profile, self.query, &self.authorization.authorized, environment);
        let duration = service.clock.elapsed().saturating_sub(started);
        self.recorder.compiled(duration, outcome_of(&compiled));
        let mut sql = compiled?;
        sql.warnings.extend(self.authorization.warnings.iter().cloned());
        tracing::info!(
            event = "query_compiled",
            cube = &*self.recorder.cube,
            sql_hash = key::sql_hash(&sql.text),
            compile_duration_ms = milliseconds(duration),
        );
        Ok(sql)
    }

    async fn admit(&self) -> Result<Statements<'_>, QueryRunError> {
        let QuerySession { service, context, .. } = self.session;
        service.runner.admit(context.tenant.as_ref(), &self.recorder).await
    }

    async fn run_whole(&mut self, sql: CompiledSql) -> Result<Answer, QueryRunError> {
        let run = async {
            let statements = self.admit().await?;
            let rows = statements.execute(&sql).await?;
            let total_rows = self.total_rows(&statements, &sql, &rows).await?;
            let totals = self.totals(&statements).await?;
            Ok(Rows { rows, total_rows, totals, waited: statements.elapsed() })
        };
        let rows = self.session.service.runner.in_time(run).await?;
        Ok(self.whole(sql, rows))
    }

    async fn begin(&self, sql: &CompiledSql) -> Result<Beginning, QueryRunError> {
        let begin = async {
            let statements = self.admit().await?;
            let statement = statements.open(sql).await?;
            let totals = self.totals(&statements).await?;
            let batches = &statement.rows.batches;
            let total_rows = match batches.is_empty() {
                true => self.total_rows(&statements, sql, &statement.rows).await?,
                // More rows follow, so only a column of these can hold the total.
                false => sql.total_column.and_then(|column| first_integer(batches, column)),
            };
            let waited = statements.elapsed();
            Ok(Beginning { statement, total_rows, totals, waited, permit: statements.into_permit() })
        };
        self.session.service.runner.in_time(begin).await
    }

    /// Returns whether the answer may have many rows and its first row holds their number.
    fn is_large(&self, sql: &CompiledSql) -> bool {
        let knows_total = sql.total_column.is_some() || self.query.skip_total;
        let has_groups = sql.columns.iter().any(|column| !column.is_measure);
        has_groups && knows_total && sql.limit.is_none_or(|limit| limit > MAX_WHOLE_ROWS)
    }

    /// Returns each measure without dimensions, if the query asks for totals.
    async fn totals(&self, statements: &Statements<'_>) -> Result<Option<Totals>, QueryRunError> {
        if !self.query.totals {
            return Ok(None);
        }
        let QuerySession { snapshot, environment, .. } = self.session;
        let sql = compile_totals(&snapshot.profile, self.query, &self.authorization.authorized, environment)?;
        let Some(sql) = sql else { return Ok(None) };
        let rows = statements.execute(&sql).await?;
        Ok(Some(Totals { columns: sql.columns, batches: rows.batches }))
    }

    /// Returns the number of groups before paging: from the rows themselves, or from a counting statement
    /// where no row carries it. The counting statement also reports added rows, which no page may hide.
    async fn total_rows(
        &self,
        statements: &Statements<'_>,
        sql: &CompiledSql,
        rows: &ResultSet,
    ) -> Result<Option<u64>, QueryRunError> {
        let returned = row_count(&rows.batches);
        if returned == 0 && sql.added_column.is_some() {
            let total = self.count(statements).await?;
            return Ok(total.filter(|_| !self.query.skip_total));
        }
        if self.query.skip_total {
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
        self.count(statements).await
    }

    async fn count(&self, statements: &Statements<'_>) -> Result<Option<u64>, QueryRunError> {
        let QuerySession { snapshot, environment, .. } = self.session;
        let count: Result<CompiledSql, QueryError> =
            compile_count(&snapshot.profile, self.query, &self.authorization.authorized, environment);
        let counted = statements.execute(&count?).await?;
        Ok(first_integer(&counted.batches, 0))
    }

    fn whole(&mut self, sql: CompiledSql, Rows { rows, total_rows, totals, waited }: Rows) -> Answer {
        let returned_rows = row_count(&rows.batches);
        self.recorder.succeed(waited, returned_rows);
        let duration = self.recorder.duration();
        self.recorder.log_executed(waited, duration, returned_rows);
        let truncated = answer::truncated(&sql, returned_rows, total_rows);
        Answer {
            warnings: answer::warnings(&sql, self.query.limit.is_some(), truncated, returned_rows, total_rows),
            cache_key: key::cache_key(&self.recorder.warehouse, &sql),
            sql: sql.text,
            columns: sql.columns,
            schema: rows.schema,
            batches: rows.batches,
            returned_rows,
            total_rows,
            totals,
            truncated,
            duration,
        }
    }

    fn streamed(self, sql: CompiledSql, beginning: Beginning, first: RecordBatch) -> AnswerStream {
        let Prepared { session, query, recorder, .. } = self;
        let Beginning { statement, total_rows, totals, waited, permit } = beginning;
        let settings = &session.service.settings;
        let returned = total_rows.map(|total| total.saturating_sub(sql.offset).min(sql.limit.unwrap_or(u64::MAX)));
        let truncated = returned.and_then(|returned| answer::truncated(&sql, returned, total_rows));
        let warehouse = recorder.warehouse.clone();
        let reader = RowReader {
            first: Some(first),
            batches: statement.batches,
            statement_timeout: settings.timeout,
            stream_timeout: settings.export_timeout,
            deadline: Box::pin(tokio::time::sleep(settings.export_timeout)),
            limit: sql.limit,
            truncated,
            record: StreamRecord {
                span: tracing::Span::current(),
                query: recorder,
                statement: statement.recorder,
                waited,
                rows: 0,
                is_open: true,
            },
            _permit: permit,
        };
        AnswerStream {
            schema: statement.rows.schema,
            total_rows,
            totals,
            truncated,
            warnings: answer::warnings(&sql, query.limit.is_some(), truncated, returned.unwrap_or(0), total_rows),
            cache_key: key::cache_key(&warehouse, &sql),
            sql: sql.text,
            columns: sql.columns,
            pieces: reader.pieces().boxed(),
        }
    }
}
