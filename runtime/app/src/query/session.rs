//! The queries of one request, over one snapshot of the project.
//!
//! In: a request. Out: authorized queries ([`Prepared`]), column statistics, the warehouse's plan of an explained
//! statement. Every failure passes through [`QuerySession::finish`], which counts and logs it, and has it audited if it
//! is a denial. Not here: running statements (`runner`), asking hooks (`authorization`).

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use arrow::array::{AsArray as _, RecordBatch};
use arrow::datatypes::DataType;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use terrane_compiler::column_statistics::{
    NoSample, SamplingStrategy, Statistic, StatisticsColumn, StatisticsQuery, compile_statistics, has_quantiles,
    no_sample, statistics_as_query, statistics_columns,
};
use terrane_compiler::explanation::Explanation;
use terrane_compiler::query::{DateRange, QueryError, SemanticQuery};
use terrane_compiler::sql::CompiledSql;
use terrane_compiler::{Authorized, Environment, SecurityContext, compile};

use super::answer::row_count;
use super::authorization::Authorization;
use super::cache::{CacheControl, CacheSettings, CallerOfJob, Fetched};
use super::job::QueryJob;
use super::prepared::Prepared;
use super::recorder::{ExecutedStatement, HistoryEntry, QueryRecorder, StatementOrigin, cube_of};
use super::runner::within;
use super::{QueryRunError, QueryService, key, outcome_of};
use crate::catalog::Snapshot;
use crate::cost::{GuardrailExceeded, Guardrails};
use crate::domain::{QueryKind, RequestContext};
use crate::ports::executed_queries::QueryOwner;
use crate::ports::observer::QueryOutcome;
use crate::ports::warehouse::{ResultSet, ScanSize, Statement};
use crate::security::access;

/// The queries of one request. All of them see one snapshot of the project and one current time.
pub struct QuerySession<'s> {
    pub(super) service: &'s QueryService,
    pub(super) context: &'s RequestContext,
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) environment: Environment,
    /// The limits of the caller's queries.
    pub(super) guardrails: Guardrails,
    /// The time of the oldest data of the statistics that were run; `None` before the first ones.
    pub(super) oldest_rows: Mutex<Option<Timestamp>>,
}

impl QuerySession<'_> {
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Returns the snapshot, for work that outlives the borrow of this session.
    pub fn shared_snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.snapshot)
    }

    pub(crate) fn context(&self) -> &RequestContext {
        self.context
    }

    pub fn caller(&self) -> &SecurityContext {
        &self.context.caller
    }

    /// Returns the reading of the service's clock, for measuring durations.
    pub fn elapsed(&self) -> Duration {
        self.service.clock.elapsed()
    }

    /// Returns the current time of the session as the local time of its zone.
    pub fn now(&self) -> jiff::civil::DateTime {
        self.environment.default_timezone.to_datetime(self.environment.now)
    }

    /// Returns the time zone of queries that name none.
    pub fn timezone(&self) -> &TimeZone {
        &self.environment.default_timezone
    }

    /// Returns the time of the oldest data of the statistics that were run; `None` before the first ones.
    pub fn oldest_rows(&self) -> Option<Timestamp> {
        *self.oldest_rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the limits of the caller's queries.
    pub fn guardrails(&self) -> Guardrails {
        self.guardrails
    }

    /// Returns the largest number of rows that a query of this session can return.
    pub fn max_rows(&self) -> u64 {
        self.environment.max_limit.min(self.guardrails.max_rows_returned.unwrap_or(u64::MAX))
    }

    /// Returns the largest number of rows of a query whose rows are read for a result, and are not the result itself.
    pub fn max_rows_read(&self) -> u64 {
        self.environment.max_limit
    }

    /// Returns the error for an answer that needs all rows but has more than `limit`; `None` unless a guardrail allows
    /// at most `limit` rows.
    pub fn exceeded_rows(&self, limit: u64) -> Option<QueryRunError> {
        let limit = self.guardrails.max_rows_returned.filter(|allowed| *allowed <= limit)?;
        Some(GuardrailExceeded::ResultRows { limit }.into())
    }

    /// Checks the number of rows of a result that was computed from the rows of queries.
    ///
    /// # Errors
    /// A guardrail allows fewer rows.
    pub fn check_result(&self, rows: u64) -> Result<(), QueryRunError> {
        Ok(self.guardrails.check_result(rows)?)
    }

    /// Returns the time limit within which the answer of a query must begin.
    pub fn timeout(&self) -> Duration {
        let timeout = self.service.settings.timeout;
        self.guardrails.max_execution.map_or(timeout, |limit| limit.min(timeout))
    }

    /// Returns the error for a query that takes longer than [`QuerySession::timeout`].
    pub fn overdue(&self) -> QueryRunError {
        let timeout = self.service.settings.timeout;
        match self.guardrails.max_execution {
            Some(limit) if limit < timeout => GuardrailExceeded::ExecutionTime { limit }.into(),
            _ => QueryRunError::Timeout { timeout },
        }
    }

    /// Authorizes a query: asks the governance hooks for their decisions.
    ///
    /// # Errors
    /// A policy or a hook denies the query; or, if hooks are configured, the query does not resolve.
    pub async fn prepare<'q>(&'q self, query: &'q SemanticQuery) -> Result<Prepared<'q>, QueryRunError> {
        let mut recorder = self.recorder(query, self.context.kind);
        let authorization = self.authorize(query, &recorder).await;
        let authorization = match authorization {
            Ok(authorization) => authorization,
            refused => self.finish(&mut recorder, refused).await?,
        };
        Ok(Prepared {
            session: self,
            query,
            authorization,
            recorder,
            cache: CacheControl::default(),
            is_intermediate: false,
            rows_only: None,
        })
    }

    /// Returns the warehouse's own plan of an explained statement, in the warehouse's words; `None` if the warehouse
    /// cannot explain statements. The numbers of a plan are statistics of all rows, so only operators may see it.
    ///
    /// # Errors
    /// [`QueryRunError`]
    pub async fn warehouse_plan(
        &self,
        query: &SemanticQuery,
        explanation: &Explanation,
    ) -> Result<Option<String>, QueryRunError> {
        let Some(printed) = &explanation.explain_statement else { return Ok(None) };
        let mut recorder = self.recorder(query, QueryKind::Plan);
        let runner = &self.service.runner;
        let run = async {
            let statements = runner.admit(self.context.tenant.as_ref(), &recorder.origin).await?;
            let statement = Statement { text: &printed.text, params: &printed.params, columns: &[] };
            statements.execute_statement(statement).await
        };
        let rows = within(self.timeout(), self.overdue(), run).await;
        let rows = self.finish(&mut recorder, rows).await?;
        let lines: Vec<String> = rows.batches.iter().flat_map(last_texts).collect();
        Ok(Some(lines.join("\n")))
    }

    /// Returns the columns of a cube that the caller may read unmasked, after policies and hooks.
    ///
    /// # Errors
    /// The cube is unknown or closed to the caller, or a hook denies the query.
    pub async fn profile_columns(
        &self,
        cube: &Arc<str>,
        range: Option<&DateRange>,
    ) -> Result<Vec<StatisticsColumn>, QueryRunError> {
        let all_of_cube = SemanticQuery { cube: Some(Arc::clone(cube)), ..SemanticQuery::default() };
        let columns =
            statistics_columns(&self.snapshot.profile, &self.without_hooks(), cube).map_err(QueryRunError::from);
        let columns = match columns {
            Ok(columns) if columns.is_empty() => return Ok(columns),
            Ok(columns) => columns,
            refused => self.finish(&mut self.recorder(&all_of_cube, self.context.kind), refused).await?,
        };
        let statistics = columns.iter().map(|column| (Some(Arc::clone(&column.name)), Statistic::Values));
        let all = StatisticsQuery {
            cube: Arc::clone(cube),
            range: range.cloned(),
            statistics: statistics.collect(),
            top: None,
            sample: None,
        };
        let query = self.statistics_query(&all)?;
        let mut recorder = self.recorder(&query, self.context.kind);
        let authorization = self.authorize(&query, &recorder).await;
        let authorization = self.finish(&mut recorder, authorization).await?;
        Ok(statistics_columns(&self.snapshot.profile, &authorization.authorized, cube)?)
    }

    /// Returns the digest of the caller's view of a cube: its rows, and the columns that the caller may read unmasked,
    /// after policies and hooks. Callers with the same view have the same digest.
    ///
    /// # Errors
    /// The cube is unknown or closed to the caller, or a hook denies the query.
    pub async fn profile_fingerprint(&self, cube: &Arc<str>) -> Result<Arc<str>, QueryRunError> {
        let columns = self.profile_columns(cube, None).await?;
        let values = columns.iter().map(|column| (Some(Arc::clone(&column.name)), Statistic::Values));
        let statistics = std::iter::once((None, Statistic::Rows)).chain(values).collect();
        let query = StatisticsQuery { cube: Arc::clone(cube), range: None, statistics, top: None, sample: None };
        let semantic = self.statistics_query(&query)?;
        let mut recorder = self.recorder(&semantic, self.context.kind);
        let authorization = self.authorize(&semantic, &recorder).await;
        let authorization = self.finish(&mut recorder, authorization).await?;
        let sql = self.compile_profile(&query, &authorization, &recorder).map_err(QueryRunError::from);
        let sql = self.finish(&mut recorder, sql).await?;
        let CacheSettings { secret, warehouse, .. } = &self.service.settings.cache;
        let tenant = self.context.tenant.as_deref();
        let key = secret.key(warehouse, tenant, std::iter::once(&sql), false);
        // Hooks may limit the number of rows, which bounds the lists of frequent values, so the limit is part of the
        // view.
        let limit = authorization.authorized.limit(u64::MAX, 0).to_le_bytes();
        Ok(hex::encode(secret.tag(b"profile", &[&key.0, &limit])).into())
    }

    /// Returns a query that reads the same members as a statement of statistics, for the decision of hooks.
    fn statistics_query(&self, query: &StatisticsQuery) -> Result<SemanticQuery, QueryError> {
        statistics_as_query(&self.without_hooks().access(), query)
    }

    /// Compiles a query without running it, without calling hooks, and without counting it.
    ///
    /// # Errors
    /// The query does not compile for this caller.
    pub(crate) fn statement(&self, query: &SemanticQuery) -> Result<CompiledSql, QueryError> {
        compile(&self.snapshot.profile, query, &self.without_hooks(), &self.environment)
    }

    /// Returns whether the limits of the caller's queries differ from those of all queries.
    pub(crate) fn has_own_guardrails(&self) -> bool {
        self.guardrails != self.service.settings.guardrails
    }

    /// Compiles statistics without running them and without calling hooks.
    ///
    /// # Errors
    /// The statistics do not compile.
    pub fn check_profile(&self, query: &StatisticsQuery) -> Result<(), QueryError> {
        compile_statistics(&self.snapshot.profile, query, &self.without_hooks(), &self.environment).map(|_| ())
    }

    /// Returns whether the warehouse computes quantiles.
    pub fn has_quantiles(&self) -> bool {
        has_quantiles(&self.snapshot.profile)
    }

    /// Returns the reason why a sample strategy cannot be applied for the caller, whom hooks may restrict; `None` if it
    /// can.
    ///
    /// # Errors
    /// The cube is closed to the caller, a hook denies the statement, or the strata are not a dimension that the caller
    /// may read unmasked.
    pub async fn no_sample(
        &self,
        query: &StatisticsQuery,
        strategy: &SamplingStrategy,
    ) -> Result<Option<NoSample>, QueryRunError> {
        let semantic = self.statistics_query(query)?;
        let mut recorder = self.recorder(&semantic, self.context.kind);
        let authorization = self.authorize(&semantic, &recorder).await;
        let authorization = self.finish(&mut recorder, authorization).await?;
        Ok(no_sample(&self.snapshot.profile, &authorization.authorized, &query.cube, strategy)?)
    }

    /// Runs statistics of a cube's columns, within the timeout of queries.
    ///
    /// # Errors
    /// [`QueryRunError`]
    pub async fn profile(&self, query: &StatisticsQuery) -> Result<ResultSet, QueryRunError> {
        let semantic = self.statistics_query(query)?;
        let mut recorder = self.recorder(&semantic, self.context.kind);
        let rows = match self.authorize(&semantic, &recorder).await {
            Ok(authorization) => match self.compile_profile(query, &authorization, &recorder) {
                Ok(sql) => self.run_profile(sql, &recorder).await,
                Err(error) => Err(error.into()),
            },
            Err(refusal) => Err(refusal),
        };
        recorder.rows = rows.as_ref().map_or(0, |rows| row_count(&rows.batches));
        self.finish(&mut recorder, rows).await
    }

    fn compile_profile(
        &self,
        query: &StatisticsQuery,
        authorization: &Authorization<'_>,
        recorder: &QueryRecorder,
    ) -> Result<CompiledSql, QueryError> {
        let started = self.service.clock.elapsed();
        let compiled = compile_statistics(&self.snapshot.profile, query, &authorization.authorized, &self.environment);
        recorder.compiled(self.service.clock.elapsed().saturating_sub(started), outcome_of(&compiled));
        compiled
    }

    async fn run_profile(&self, sql: CompiledSql, recorder: &QueryRecorder) -> Result<ResultSet, QueryRunError> {
        self.reserve(&sql, recorder).await?;
        let statement = ExecutedStatement::new(&sql, false);
        let found = self.fetch(QueryJob::of_rows(sql), CacheControl::default(), recorder).await?;
        let waited = if found.used.is_hit() { Duration::ZERO } else { found.result.waited };
        let rows = row_count(&found.result.rows.batches);
        let mut oldest = self.oldest_rows.lock().unwrap_or_else(PoisonError::into_inner);
        *oldest = [*oldest, Some(found.result.as_of)].into_iter().flatten().min();
        drop(oldest);
        recorder.add_to_history(waited, recorder.duration(), rows, found.used, &statement);
        Ok(found.result.rows.clone())
    }

    /// Returns the result of a query's statements, from the cache or the warehouse.
    ///
    /// # Errors
    /// The query fails, or takes longer than the timeout.
    pub(super) async fn fetch(
        &self,
        job: QueryJob,
        control: CacheControl,
        recorder: &QueryRecorder,
    ) -> Result<Fetched, QueryRunError> {
        let caller = CallerOfJob { model: &self.snapshot.model, tenant: self.context.tenant.as_ref() };
        let fetch = self.service.results.fetch(job, control, caller, &recorder.origin);
        within(self.timeout(), self.overdue(), fetch).await
    }

    /// Returns the size of what a statement scans; `None` if it is unknown, or if no guardrail and no price needs it.
    pub(super) async fn needed_scan_size(&self, sql: &CompiledSql) -> Option<ScanSize> {
        let has_price = self.service.executions.as_ref().is_some_and(|log| log.has_price_of_bytes());
        let is_needed = self.guardrails.max_scan_bytes.is_some() || has_price;
        if is_needed { self.service.sizes.of(&self.snapshot, &sql.shape).await } else { None }
    }

    /// Admits a statement whose plan is allowed: checks its bytes, and reserves its cost in the caller's budgets.
    pub(super) async fn reserve(&self, sql: &CompiledSql, recorder: &QueryRecorder) -> Result<(), QueryRunError> {
        let size = self.needed_scan_size(sql).await;
        // The value is set once, because a query is admitted once.
        let _ = recorder.scan_size.set(size);
        self.guardrails.check_bytes(size.map(|size| size.bytes))?;
        let has_budget = self.guardrails.daily_budget_micros.or(self.guardrails.monthly_budget_micros).is_some();
        let Some((budgets, log)) = self.service.budgets.as_ref().zip(self.service.executions.as_ref()) else {
            return Ok(());
        };
        if !has_budget || !log.has_price() {
            return Ok(());
        }
        let user_id = Arc::clone(&self.context.caller.user_id);
        let owner = QueryOwner { user_id, tenant: self.context.tenant.clone() };
        let estimate = log.model().highest_micros(&key::sql_hash(&sql.text), &owner);
        let reservations = budgets.reserve(&owner, &self.guardrails, estimate).await?;
        *recorder.reservations.lock().unwrap_or_else(PoisonError::into_inner) = reservations;
        Ok(())
    }

    fn without_hooks(&self) -> Authorized<'_> {
        Authorized::without_hooks(&self.snapshot.model, &self.context.caller)
    }

    fn recorder(&self, query: &SemanticQuery, kind: QueryKind) -> QueryRecorder {
        let log = self.service.executions.as_ref();
        QueryRecorder {
            origin: StatementOrigin {
                observer: Arc::clone(&self.service.observer),
                clock: Arc::clone(&self.service.clock),
                trace: self.context.trace,
                cube: cube_of(&self.snapshot.model, query),
                warehouse: Arc::clone(&self.service.warehouse_name),
                admitted: Arc::default(),
            },
            kind,
            is_attempt: !query.computed.is_empty(),
            reservations: Mutex::default(),
            scan_size: OnceLock::new(),
            history: log.map(|log| HistoryEntry::new(log, self.context, &self.snapshot, query)),
            started: self.service.clock.elapsed(),
            waited: None,
            rows: 0,
            outcome: QueryOutcome::Abandoned,
        }
    }

    /// Records the end of a query. A failure is logged. A denial is written to the audit log before it is returned. A
    /// computed value that reads a protected column is not denied: the query is then answered from rows, whose own
    /// denial is written.
    pub(super) async fn finish<T>(
        &self,
        recorder: &mut QueryRecorder,
        result: Result<T, QueryRunError>,
    ) -> Result<T, QueryRunError> {
        let Err(error) = &result else {
            recorder.outcome = QueryOutcome::Success;
            return result;
        };
        recorder.fail(error);
        let is_retried = recorder.is_attempt && matches!(error, QueryRunError::Query(_));
        if error.is_denial() && !is_retried {
            let recorded = self.service.access.denied(self.context, access::POLICY).await;
            recorded.map_err(|error| {
                tracing::error!(event = "state_unavailable", error_message = %error);
                QueryRunError::Unrecorded(error)
            })?;
        }
        result
    }
}

/// Returns the strings of the last column. Some engines write the kind of the plan in a column before it.
fn last_texts(batch: &RecordBatch) -> Vec<String> {
    let Some(column) = batch.columns().last() else { return Vec::new() };
    let Ok(texts) = arrow::compute::cast(column, &DataType::Utf8) else { return Vec::new() };
    let texts = texts.as_string::<i32>();
    texts.iter().flatten().map(str::to_owned).collect()
}
