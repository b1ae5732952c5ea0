//! An authorized query: compiles it, and runs it or returns its statement.
//!
//! In: a query with its authorization. Out: the statement, an explanation, or rows, whole or as a stream. The main
//! statement, its count and its totals are compiled from one authorization and run under one permit. If the warehouse
//! refuses a statement over pre-aggregated tables, and no part of the answer was sent, the query is answered from rows
//! instead. Not here: reading a stream to its end (`row_reader`).

use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use futures_util::StreamExt as _;
use jiff::Timestamp;
use terrane_compiler::Environment;
use terrane_compiler::explanation::{Explanation, explain};
use terrane_compiler::governance::inspect;
use terrane_compiler::model::Member;
use terrane_compiler::query::{FactMatch, PreAggregations, SemanticQuery};
use terrane_compiler::sql::{CompiledSql, MAX_WHOLE_ROWS, ResultColumn, StatementShape};
use terrane_compiler::{Access, compile, compile_count, compile_inline, compile_totals};

use super::answer::{self, Answer, AnswerStream, Freshness, Opened, Totals, first_integer, row_count};
use super::authorization::Authorization;
use super::cache::{CacheControl, Fetched};
use super::cache_use::{CacheUse, MissReason};
use super::job::{JobResult, QueryJob};
use super::limiter::Permit;
use super::recorder::{ExecutedStatement, QueryRecorder, row_bytes};
use super::row_reader::{RowReader, StreamRecord};
use super::runner::{OpenedStatement, Statements, within};
use super::session::QuerySession;
use super::{QueryRunError, key, milliseconds, outcome_of};
use crate::cost::GuardrailExceeded;
use crate::domain::DataVersion;
use crate::metadata;
use crate::ports::executed_queries::QueryOwner;
use crate::ports::observer::QueryOutcome;
use crate::ports::result_cache::CacheKey;
use crate::ports::warehouse::{ScanSize, WarehouseErrorKind};

/// An authorized query. It is run or shown once. If it is dropped without being run or shown, the query counts as
/// abandoned.
pub struct Prepared<'q> {
    pub(super) session: &'q QuerySession<'q>,
    pub(super) query: &'q SemanticQuery,
    /// The authorization for all statements of the query.
    pub(super) authorization: Authorization<'q>,
    pub(super) recorder: QueryRecorder,
    pub(super) cache: CacheControl,
    /// True if a result is computed from the rows. The guardrail of returned rows then applies to that result.
    pub(super) is_intermediate: bool,
    /// The environment without pre-aggregations; set after a table could not be read.
    pub(super) rows_only: Option<Box<Environment>>,
}

/// The facts about a query that are known before it runs.
#[derive(Debug, Clone)]
pub struct PlannedQuery {
    /// The hash of the statement with placeholders, as the log names it.
    pub query_hash: Arc<str>,
    /// The first pre-aggregation that the statement reads, as `cube.name`.
    pub pre_aggregation: Option<Arc<str>>,
    /// The hash of the statement without pre-aggregations; `None` if the statement reads none.
    pub rows_hash: Option<Arc<str>>,
    /// The first cube of the query.
    pub cube: Arc<str>,
    /// For each fact, the pre-aggregation that it reads or the reasons why it reads none.
    pub rollups: Vec<FactMatch>,
    /// The guardrails that refuse the query.
    pub exceeded: Vec<GuardrailExceeded>,
    /// The cubes that are read without a lower bound on time.
    pub without_time_bound: Vec<Arc<str>>,
    /// True if policies or hooks hide something from the caller.
    pub has_policies: bool,
    /// The scans of the statement, and the size of its plan.
    pub shape: Arc<StatementShape>,
    /// The shape of the statement without pre-aggregations; `None` if the statement reads none.
    pub rows_shape: Option<Arc<StatementShape>>,
    /// The estimated bytes of a row of the answer.
    pub row_bytes: u64,
    /// True if a guardrail limits the scanned bytes, and they are unknown.
    pub has_unknown_bytes: bool,
}

/// The beginning of a streamed answer.
struct Beginning {
    job: QueryJob,
    statement: OpenedStatement,
    total_rows: Option<u64>,
    totals: Option<Vec<RecordBatch>>,
    waited: Duration,
    permit: Permit,
    /// The time just before the statement began.
    as_of: Timestamp,
}

impl Prepared<'_> {
    /// Sets the caller's settings for cached results.
    #[must_use]
    pub fn with_cache(self, cache: CacheControl) -> Self {
        Prepared { cache, ..self }
    }

    /// Marks the rows as rows from which a result is computed, so that the guardrail of returned rows does not apply to
    /// them.
    #[must_use]
    pub fn as_intermediate(self) -> Self {
        Prepared { is_intermediate: true, ..self }
    }

    /// Returns the statement that [`Prepared::run`] would run. Nothing is executed.
    ///
    /// # Errors
    /// The query does not compile for this caller.
    pub async fn sql(mut self) -> Result<CompiledSql, QueryRunError> {
        let compiled = self.compile();
        self.session.finish(&mut self.recorder, compiled).await
    }

    /// Returns the guardrails that refuse the query because of its plan. Nothing is executed.
    ///
    /// # Errors
    /// Returns the same errors as [`Prepared::sql`].
    pub async fn exceeded(mut self) -> Result<Vec<GuardrailExceeded>, QueryRunError> {
        let exceeded = match self.compile() {
            Ok(sql) => self.all_exceeded_by(&sql).await.map(|(exceeded, _)| exceeded),
            Err(error) => Err(error),
        };
        self.session.finish(&mut self.recorder, exceeded).await
    }

    /// Returns the facts about the query that are known before it runs. Nothing is executed.
    ///
    /// # Errors
    /// Returns the same errors as [`Prepared::sql`].
    pub async fn planned(mut self) -> Result<PlannedQuery, QueryRunError> {
        let planned = match self.compile() {
            Ok(sql) => self.plan(sql).await,
            Err(error) => Err(error),
        };
        self.session.finish(&mut self.recorder, planned).await
    }

    async fn plan(&self, sql: CompiledSql) -> Result<PlannedQuery, QueryRunError> {
        let QuerySession { snapshot, context, environment, guardrails, .. } = self.session;
        let (exceeded, scan_size) = self.all_exceeded_by(&sql).await?;
        let inspection = inspect(&snapshot.model, self.query, &context.caller, environment)?;
        let statement = ExecutedStatement::new(&sql, false);
        let over_rows = match statement.pre_aggregation() {
            None => None,
            Some(_) => {
                let rows = Environment { rollups: Arc::default(), ..environment.clone() };
                Some(compile(&snapshot.profile, self.query, &self.authorization.authorized, &rows)?)
            }
        };
        Ok(PlannedQuery {
            query_hash: key::sql_hash(&sql.text).into(),
            pre_aggregation: statement.pre_aggregation().cloned(),
            rows_hash: over_rows.as_ref().map(|rows| key::sql_hash(&rows.text).into()),
            rows_shape: over_rows.map(|rows| rows.shape),
            row_bytes: row_bytes(&sql.columns),
            shape: sql.shape,
            has_unknown_bytes: guardrails.max_scan_bytes.is_some() && scan_size.is_none(),
            cube: Arc::clone(&self.recorder.origin.cube),
            rollups: visible(sql.rollups),
            exceeded,
            without_time_bound: inspection.facts().without_time_bound.to_vec(),
            has_policies: self.has_policies(),
        })
    }

    /// Returns whether policies or hooks mask a dimension, by its name `cube.dimension`.
    pub(crate) fn masks(&self, dimension: &str) -> bool {
        let model = &self.session.snapshot.model;
        let named = dimension.split_once('.').and_then(|(cube, name)| model.cube_named(cube)?.member(name));
        match named {
            Some(Member::Dimension(id)) => self.authorization.authorized.access().mask(id).is_some(),
            _ => false,
        }
    }

    /// Returns whether policies or hooks hide something from the caller.
    fn has_policies(&self) -> bool {
        !self.authorization.authorized.access().is_open()
    }

    /// Returns the statement as one runnable string, with its values as literals.
    ///
    /// # Errors
    /// Returns the same errors as [`Prepared::sql`].
    pub async fn inline_sql(mut self) -> Result<String, QueryRunError> {
        let QuerySession { snapshot, environment, .. } = self.session;
        let text = compile_inline(&snapshot.profile, self.query, &self.authorization.authorized, environment);
        self.session.finish(&mut self.recorder, text.map_err(QueryRunError::from)).await
    }

    /// Explains the statement. Nothing is executed. The explanation includes reasons that come from policies.
    ///
    /// # Errors
    /// Returns the same errors as [`Prepared::sql`].
    pub async fn explain(mut self) -> Result<Explanation, QueryRunError> {
        let QuerySession { snapshot, environment, .. } = self.session;
        let explanation = explain(&snapshot.profile, self.query, &self.authorization.authorized, environment);
        self.session.finish(&mut self.recorder, explanation.map_err(QueryRunError::from)).await
    }

    /// Runs the query. Returns the answer or an error at the latest when the timeout has passed.
    ///
    /// # Errors
    /// [`QueryRunError`]
    pub async fn run(mut self) -> Result<Answer, QueryRunError> {
        let answer = match self.admitted().await {
            Ok(sql) => self.run_whole(sql).await,
            Err(error) => Err(error),
        };
        let answer = match answer {
            Err(error) if self.may_read_rows(&error) => self.run_over_rows(error).await,
            answer => answer,
        };
        self.session.finish(&mut self.recorder, answer).await
    }

    /// Runs the query. A large answer is read as a stream. Returns the beginning of the answer or an error at the
    /// latest when the timeout has passed.
    ///
    /// # Errors
    /// [`QueryRunError`]. Later failures are items of the stream.
    pub async fn open(mut self) -> Result<Opened, QueryRunError> {
        let sql = match self.admitted().await {
            Ok(sql) => sql,
            error => self.session.finish(&mut self.recorder, error).await?,
        };
        if !self.is_large(&sql) {
            let answer = match self.run_whole(sql).await {
                Err(error) if self.may_read_rows(&error) => self.run_over_rows(error).await,
                answer => answer,
            };
            return self.session.finish(&mut self.recorder, answer).await.map(Opened::Whole);
        }
        let begun = match self.begin(&sql).await {
            Err(error) if self.may_read_rows(&error) => self.begin_over_rows(error).await,
            begun => begun.map(|beginning| (sql, beginning)),
        };
        let (sql, beginning) = match begun {
            Ok(begun) => begun,
            error => self.session.finish(&mut self.recorder, error).await?,
        };
        if let Some(first) = beginning.statement.rows.batches.first().cloned() {
            return Ok(Opened::Streamed(self.streamed(sql, beginning, first)));
        }
        let Beginning { job, mut statement, total_rows, totals, waited, as_of, .. } = beginning;
        statement.recorder.outcome = Some(QueryOutcome::Success);
        let done = JobResult { rows: statement.rows, total_rows, totals, waited };
        let result = Arc::new(done.stored(DataVersion::UNKNOWN, as_of));
        let used = CacheUse::Miss(MissReason::Streamed);
        let (key, oldest) = (self.key(&job), job.oldest_table());
        let QueryJob { main, totals, .. } = job;
        let columns = totals.map(|totals| totals.columns);
        let (age, is_changing) = (Duration::ZERO, false);
        let fetched = Fetched { result, key, used, is_stale: false, is_shared: false, age, is_changing };
        Ok(Opened::Whole(self.whole(main, columns, fetched, oldest)))
    }

    fn environment(&self) -> &Environment {
        self.rows_only.as_deref().unwrap_or(&self.session.environment)
    }

    /// Returns whether the query can be answered from the rows of its cubes after its statement failed. This is the case
    /// if the warehouse refused a statement that reads a pre-aggregation, because its table may be gone.
    fn may_read_rows(&self, error: &QueryRunError) -> bool {
        let is_refused = matches!(error, QueryRunError::Warehouse(error) if error.kind == WarehouseErrorKind::Refused);
        is_refused
            && self.rows_only.is_none()
            && self.query.pre_aggregations == PreAggregations::Auto
            && !self.session.environment.rollups.is_empty()
            && self.compile_silently().is_ok_and(|sql| sql.rollups.iter().any(|fact| fact.served.is_some()))
    }

    fn compile_silently(&self) -> Result<CompiledSql, QueryRunError> {
        let snapshot = &self.session.snapshot;
        Ok(compile(&snapshot.profile, self.query, &self.authorization.authorized, self.environment())?)
    }

    /// Answers from rows within the rest of the timeout. If this fails too, the pre-aggregations stay in use, because
    /// they did not cause the error.
    async fn run_over_rows(&mut self, error: QueryRunError) -> Result<Answer, QueryRunError> {
        let (sql, tables) = self.forget_tables()?;
        let left = self.time_left();
        let answer = tokio::time::timeout(left, self.run_whole(sql)).await.unwrap_or_else(|_| Err(self.timeout()))?;
        self.session.service.suspend_rollups(&tables, &error);
        Ok(answer)
    }

    /// Begins to answer from rows, like [`Prepared::run_over_rows`].
    async fn begin_over_rows(&mut self, error: QueryRunError) -> Result<(CompiledSql, Beginning), QueryRunError> {
        let (sql, tables) = self.forget_tables()?;
        let left = self.time_left();
        let begun = tokio::time::timeout(left, self.begin(&sql)).await.unwrap_or_else(|_| Err(self.timeout()))?;
        self.session.service.suspend_rollups(&tables, &error);
        Ok((sql, begun))
    }

    /// Compiles the query again without pre-aggregations. Returns the statement, and the tables that the previous
    /// statement read.
    fn forget_tables(&mut self) -> Result<(CompiledSql, Vec<FactMatch>), QueryRunError> {
        let tables = self.compile_silently()?.rollups;
        let environment = Environment { rollups: Arc::default(), ..self.session.environment.clone() };
        self.rows_only = Some(Box::new(environment));
        Ok((self.compile()?, tables))
    }

    fn time_left(&self) -> Duration {
        self.session.timeout().saturating_sub(self.recorder.duration())
    }

    fn timeout(&self) -> QueryRunError {
        self.session.overdue()
    }

    /// Compiles a query that will run, and reserves its cost, if the caller's guardrails and budgets allow it.
    async fn admitted(&self) -> Result<CompiledSql, QueryRunError> {
        let sql = self.compile_allowed()?;
        self.session.reserve(&sql, &self.recorder).await?;
        Ok(sql)
    }

    /// Compiles a query that will run, if the caller's guardrails allow it.
    fn compile_allowed(&self) -> Result<CompiledSql, QueryRunError> {
        let sql = self.compile()?;
        match self.exceeded_by(&sql)?.into_iter().next() {
            Some(exceeded) => Err(exceeded.into()),
            None => Ok(sql),
        }
    }

    /// Returns the guardrails that a statement exceeds, its bytes included. Returns also the size of its scans if it is
    /// known and needed.
    async fn all_exceeded_by(
        &self,
        sql: &CompiledSql,
    ) -> Result<(Vec<GuardrailExceeded>, Option<ScanSize>), QueryRunError> {
        let mut exceeded = self.exceeded_by(sql)?;
        let size = self.session.needed_scan_size(sql).await;
        exceeded.extend(self.session.guardrails.check_bytes(size.map(|size| size.bytes)).err());
        Ok((exceeded, size))
    }

    /// Returns the guardrails that the plan of a statement exceeds.
    fn exceeded_by(&self, sql: &CompiledSql) -> Result<Vec<GuardrailExceeded>, QueryRunError> {
        let QuerySession { snapshot, context, environment, guardrails, .. } = self.session;
        // An answer without dimensions has one row, so the limit of rows does not apply.
        let is_limited = !self.is_intermediate && sql.columns.iter().any(|column| !column.is_measure);
        let most_rows = sql.most_rows.into_iter().chain(sql.limit).min();
        let mut exceeded = Vec::new();
        exceeded.extend(is_limited.then(|| guardrails.check_rows(most_rows).err()).flatten());
        if guardrails.require_time_filter || guardrails.require_partition_filter {
            let inspection = inspect(&snapshot.model, self.query, &context.caller, environment)?;
            let facts = inspection.facts();
            let access = Access::of(&snapshot.model, &context.caller);
            let has_time = |cube: &str| metadata::has_time_dimension(&access, cube);
            exceeded.extend(guardrails.check_time_filter(&facts.without_time_bound, has_time).err());
            // The caller can neither filter by a partition that it may not see, nor learn its name, so the guardrail
            // does not apply.
            let is_visible = |member: &&Arc<str>| metadata::has_dimension(&access, member);
            let visible: Vec<Arc<str>> = facts.without_partition_filter.iter().filter(is_visible).cloned().collect();
            exceeded.extend(guardrails.check_partition_filter(&visible).err());
        }
        if guardrails.max_cost_micros.is_some()
            && let Some(log) = &self.session.service.executions
        {
            let owner = QueryOwner { user_id: Arc::clone(&context.caller.user_id), tenant: context.tenant.clone() };
            let predicted = log.model().cost_micros(&key::sql_hash(&sql.text), &owner, !self.has_policies());
            exceeded.extend(guardrails.check_cost(predicted).err());
        }
        Ok(exceeded)
    }

    fn compile(&self) -> Result<CompiledSql, QueryRunError> {
        let (service, snapshot, environment) = (self.session.service, &self.session.snapshot, self.environment());
        let started = service.clock.elapsed();
        let compiled = compile(&snapshot.profile, self.query, &self.authorization.authorized, environment);
        let duration = service.clock.elapsed().saturating_sub(started);
        self.recorder.compiled(duration, outcome_of(&compiled));
        let mut sql = compiled?;
        sql.warnings.extend(self.authorization.warnings.iter().cloned());
        tracing::info!(
            event = "query_compiled",
            cube = &*self.recorder.origin.cube,
            sql_hash = key::sql_hash(&sql.text),
            compile_duration_ms = milliseconds(duration),
        );
        Ok(sql)
    }

    async fn admit(&self) -> Result<Statements<'_>, QueryRunError> {
        let QuerySession { service, context, .. } = self.session;
        service.runner.admit(context.tenant.as_ref(), &self.recorder.origin).await
    }

    async fn run_whole(&mut self, sql: CompiledSql) -> Result<Answer, QueryRunError> {
        let job = self.job(sql)?;
        let (main, totals) = (job.main.clone(), job.totals.as_ref().map(|totals| totals.columns.clone()));
        let oldest = job.oldest_table();
        let fetched = self.session.fetch(job, self.cache, &self.recorder).await?;
        Ok(self.whole(main, totals, fetched, oldest))
    }

    /// Compiles the statements that the query may need besides the main one.
    fn job(&self, main: CompiledSql) -> Result<QueryJob, QueryRunError> {
        let (profile, authorized) = (&self.session.snapshot.profile, &self.authorization.authorized);
        let environment = self.environment();
        let skip_total = self.query.skip_total;
        let may_count = QueryJob::may_count(&main, skip_total);
        let totals = match self.query.totals {
            true => compile_totals(profile, self.query, authorized, environment)?,
            false => None,
        };
        Ok(QueryJob {
            count: may_count.then(|| compile_count(profile, self.query, authorized, environment)),
            main,
            totals,
            skip_total,
        })
    }

    fn key(&self, job: &QueryJob) -> CacheKey {
        self.session.service.results.key(job, self.session.context.tenant.as_ref())
    }

    async fn begin(&self, sql: &CompiledSql) -> Result<Beginning, QueryRunError> {
        let as_of = self.session.service.clock.now();
        let job = self.job(sql.clone())?;
        let begin = async {
            let statements = self.admit().await?;
            let statement = statements.open(&job.main).await?;
            let totals = job.totals(&statements).await?;
            let batches = &statement.rows.batches;
            let total_rows = match batches.is_empty() {
                true => job.total_rows(&statements, &statement.rows).await?,
                // The total can only be read from a column of the first rows, because the rest of the stream is not
                // read yet.
                false => job.main.total_column.and_then(|column| first_integer(batches, column)),
            };
            let (waited, permit) = (statements.elapsed(), statements.into_permit());
            Ok((statement, total_rows, totals, waited, permit))
        };
        let begun = within(self.session.timeout(), self.session.overdue(), begin).await?;
        let (statement, total_rows, totals, waited, permit) = begun;
        Ok(Beginning { job, statement, total_rows, totals, waited, permit, as_of })
    }

    /// Counts the query's shape, from which pre-aggregations are recommended.
    fn record_shape(&self, sql: &CompiledSql, waited: Duration) {
        let QuerySession { service, snapshot, .. } = self.session;
        service.history.record(&snapshot.model, self.query, sql, waited, service.clock.now());
    }

    /// Returns whether the answer may have many rows, and can be streamed: its total is in the first row or not
    /// requested.
    fn is_large(&self, sql: &CompiledSql) -> bool {
        let knows_total = sql.total_column.is_some() || self.query.skip_total;
        let has_groups = sql.columns.iter().any(|column| !column.is_measure);
        has_groups && knows_total && sql.limit.is_none_or(|limit| limit > MAX_WHOLE_ROWS)
    }

    /// Returns a whole answer. `oldest` is the time at which the data of the oldest pre-aggregated table was read.
    fn whole(
        &mut self,
        sql: CompiledSql,
        totals: Option<Vec<ResultColumn>>,
        fetched: Fetched,
        oldest: Option<Timestamp>,
    ) -> Answer {
        let Fetched { result, key, used, is_stale, is_shared, age, is_changing } = fetched;
        let returned_rows = row_count(&result.rows.batches);
        let waited = if used.is_hit() { Duration::ZERO } else { result.waited };
        self.recorder.succeed(waited, returned_rows);
        let duration = self.recorder.duration();
        let statement = ExecutedStatement::new(&sql, oldest.is_some());
        self.recorder.log_executed(waited, duration, returned_rows, used, &statement);
        self.recorder.used_rollups(&sql);
        if !used.is_hit() {
            self.record_shape(&sql, waited);
        }
        let total_rows = result.total_rows;
        let truncated = answer::truncated(&sql, returned_rows, total_rows);
        Answer {
            warnings: answer::warnings(&sql, self.query.limit.is_some(), truncated, returned_rows, total_rows),
            cache_key: shown(&key),
            sql: sql.text,
            columns: sql.columns,
            schema: result.rows.schema.clone(),
            batches: result.rows.batches.clone(),
            returned_rows,
            total_rows,
            totals: with_columns(totals, result.totals.clone()),
            truncated,
            freshness: Freshness { as_of: result.as_of, is_cached: used.is_hit(), is_stale, age }.with_tables(oldest),
            pre_aggregations: visible(sql.rollups),
            cubes: sql.cubes,
            version: Some(result.version).filter(|version| *version != DataVersion::UNKNOWN),
            is_changing,
            shared: is_shared.then_some(result),
            duration,
        }
    }

    fn streamed(self, sql: CompiledSql, beginning: Beginning, first: RecordBatch) -> AnswerStream {
        let (key, oldest) = (self.key(&beginning.job), beginning.job.oldest_table());
        let Prepared { session, query, recorder, .. } = self;
        recorder.used_rollups(&sql);
        let Beginning { job, statement, total_rows, totals, waited, permit, as_of } = beginning;
        let totals = with_columns(job.totals.map(|totals| totals.columns), totals);
        let settings = &session.service.settings;
        let returned = total_rows.map(|total| total.saturating_sub(sql.offset).min(sql.limit.unwrap_or(u64::MAX)));
        let truncated = returned.and_then(|returned| answer::truncated(&sql, returned, total_rows));
        let export_timeout = settings.export_timeout;
        let left = session.guardrails.max_execution.map(|limit| (limit, limit.saturating_sub(recorder.duration())));
        let (stream_timeout, overdue) = match left {
            Some((limit, left)) if left < export_timeout => (left, GuardrailExceeded::ExecutionTime { limit }.into()),
            _ => (export_timeout, QueryRunError::Timeout { timeout: export_timeout }),
        };
        let reader = RowReader {
            first: Some(first),
            batches: statement.batches,
            statement_timeout: settings.timeout,
            deadline: Box::pin(tokio::time::sleep(stream_timeout)),
            overdue,
            limit: sql.limit,
            truncated,
            record: StreamRecord {
                span: tracing::Span::current(),
                query: recorder,
                statement: statement.recorder,
                waited,
                rows: 0,
                cache: CacheUse::Miss(MissReason::Streamed),
                executed: ExecutedStatement::new(&sql, oldest.is_some()),
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
            cache_key: shown(&key),
            freshness: Freshness { as_of, is_cached: false, is_stale: false, age: Duration::ZERO }.with_tables(oldest),
            pre_aggregations: visible(sql.rollups),
            sql: sql.text,
            columns: sql.columns,
            pieces: reader.pieces().boxed(),
        }
    }
}

fn with_columns(columns: Option<Vec<ResultColumn>>, batches: Option<Vec<RecordBatch>>) -> Option<Totals> {
    columns.zip(batches).map(|(columns, batches)| Totals { columns, batches })
}

/// Removes what the caller may not see: hidden rollups, and the reasons that come from policies. Only explanations
/// contain such reasons.
fn visible(facts: Vec<FactMatch>) -> Vec<FactMatch> {
    facts.into_iter().filter(|fact| !fact.is_hidden).map(FactMatch::without_policies).collect()
}

/// Returns the first half of a key, in hexadecimal, which callers see.
fn shown(key: &CacheKey) -> String {
    hex::encode(&key.0[..16])
}
