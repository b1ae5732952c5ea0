//! The query pipeline: the only way from a semantic query to rows.
//!
//! In: a [`SemanticQuery`](terrane_compiler::query::SemanticQuery) and a [`RequestContext`]. Out: the statement, an
//! explanation, or Arrow batches, whole or as a stream. Every surface uses this pipeline. Not here: wire formats and
//! status codes.
//!
//! # Flow
//! 1. [`QueryService::session`] fixes one snapshot of the project and one current time for a request. A
//!    request with several statements (an explanation with its plan, a profile) uses one snapshot for all of them.
//! 2. [`QuerySession::prepare`] authorizes the query (`authorization`): governance hooks decide, and their
//!    obligations become part of the caller's rights. The limit of rows is already known from the context's
//!    [`QueryKind`](crate::domain::QueryKind), because hooks see the limit that will apply.
//! 3. [`Prepared`] compiles the query under that authorization. [`Prepared::sql`],
//!    [`Prepared::inline_sql`] and [`Prepared::explain`] end here.
//! 4. [`Prepared::run`] and [`Prepared::open`] run the query. Only the statement runner (`runner`) acquires a
//!    permit of the [`ConcurrencyLimiter`]; the main statement, its count and its totals share the permit
//!    and the timeout. A large answer is read as a stream (`row_reader`), which keeps the permit.
//! 5. `QuerySession::finish` is the only exit: it reports the outcome to the observer (`recorder`), logs
//!    `query_failed`, and has denials recorded ([`AccessRecorder`]).
//!
//! If a denial cannot be recorded, the caller gets [`QueryRunError::Unrecorded`] instead of the denial.

mod answer;
mod authorization;
mod cache;
mod cache_use;
mod error;
mod explained;
mod flights;
mod history;
mod job;
mod key;
mod limiter;
mod prepared;
mod recorder;
mod row_reader;
mod runner;
mod session;

use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use terrane_compiler::query::{FactMatch, QueryError};
use terrane_compiler::rollup::ReadyRollups;
use terrane_compiler::{Environment, SecurityContext};

pub use answer::{Answer, AnswerStream, Freshness, Opened, Piece, Totals};
pub use authorization::Denied;
pub use cache::{CacheControl, CacheSettings};
pub use error::QueryRunError;
pub use explained::{Explained, PlanOfWarehouse};
pub(crate) use history::member_named;
pub use key::{CacheSecret, statement_digest_of};
pub use limiter::{ConcurrencyLimiter, LimiterSettings, Overloaded, Permit};
pub use prepared::{PlannedQuery, Prepared};
pub use recorder::log_unreadable;
pub use session::QuerySession;

use crate::catalog::{Catalog, Snapshot};
use crate::cost::{BudgetLedger, ExecutionLog, GuardrailTable, Guardrails, ScanSizes};
use crate::data_versions::DataVersions;
pub use crate::domain::{QueryKind, RequestContext};
use crate::governance::zone_name;
use crate::ports::clock::Clock;
use crate::ports::governance::Governance;
use crate::ports::observer::{Observer, QueryOutcome};
use crate::ports::preaggregations::ComputedQueries;
use crate::ports::result_cache::{CacheStatistics, ResultCache};
use crate::ports::warehouse::Warehouse;
use crate::security::AccessRecorder;
use cache::CachedExecutor;
use flights::Executor;
use history::QueryHistory;
use runner::StatementRunner;

/// The operator's settings of queries.
#[derive(Clone)]
pub struct QuerySettings {
    /// The longest time from the arrival of a query until its answer begins.
    pub timeout: Duration,
    pub default_limit: u64,
    /// The largest number of rows of a page.
    pub max_limit: u64,
    /// The largest number of rows of an export.
    pub max_export_rows: u64,
    /// The longest time from the arrival of an export until its last row is read.
    pub export_timeout: Duration,
    /// The time zone of queries that name none.
    pub timezone: TimeZone,
    pub limiter: LimiterSettings,
    pub cache: CacheSettings,
    /// True if queries may read pre-aggregations.
    pub pre_aggregations: bool,
    /// The limits that apply to every query.
    pub guardrails: Guardrails,
    /// Returns the end of the message about a limit that a request exceeds: advice on how to get more rows.
    pub limit_advice: fn(&RequestContext) -> &'static str,
}

/// The ports of the query pipeline.
#[derive(Clone)]
pub struct QueryPorts {
    pub catalog: Arc<Catalog>,
    pub warehouse: Arc<dyn Warehouse>,
    pub clock: Arc<dyn Clock>,
    pub governance: Arc<dyn Governance>,
    pub observer: Arc<dyn Observer>,
    pub access: Arc<AccessRecorder>,
    pub versions: Arc<DataVersions>,
    /// The log of executed queries; `None` if no history is written.
    pub executions: Option<Arc<ExecutionLog>>,
    /// The guardrails of users and groups; `None` if only those of the settings apply.
    pub guardrails: Option<Arc<GuardrailTable>>,
    /// The budgets of users; `None` without budgets.
    pub budgets: Option<Arc<BudgetLedger>>,
}

/// Compiles and runs queries.
pub struct QueryService {
    catalog: Arc<Catalog>,
    governance: Arc<dyn Governance>,
    observer: Arc<dyn Observer>,
    access: Arc<AccessRecorder>,
    clock: Arc<dyn Clock>,
    runner: Arc<StatementRunner>,
    results: CachedExecutor,
    zones: TimeZoneDatabase,
    settings: QuerySettings,
    /// The pre-aggregations that queries may read.
    rollups: RwLock<Arc<ReadyRollups>>,
    history: QueryHistory,
    executions: Option<Arc<ExecutionLog>>,
    guardrails: Option<Arc<GuardrailTable>>,
    budgets: Option<Arc<BudgetLedger>>,
    /// The sizes of what statements scan.
    sizes: Arc<ScanSizes>,
    /// The project's time zone, as hooks see it.
    time_zone: String,
    warehouse_name: Arc<str>,
}

impl QueryService {
    pub fn new(ports: QueryPorts, settings: QuerySettings) -> Self {
        let QueryPorts {
            catalog,
            warehouse,
            clock,
            governance,
            observer,
            access,
            versions,
            executions,
            guardrails,
            budgets,
        } = ports;
        let warehouse_name = warehouse.name().into();
        let known_sizes = executions.as_ref().and_then(|log| log.sizes().cloned());
        let sizes = known_sizes.unwrap_or_else(|| Arc::new(ScanSizes::new(Arc::clone(&warehouse), Arc::clone(&clock))));
        let limiter = ConcurrencyLimiter::new(settings.limiter);
        let runner = StatementRunner { warehouse, limiter, clock: Arc::clone(&clock), timeout: settings.timeout };
        let runner = Arc::new(runner);
        let results = CachedExecutor {
            executor: Executor {
                runner: Arc::clone(&runner),
                tiers: settings.cache.tiers.clone().into(),
                max_entry: settings.cache.max_entry,
                flights: Arc::default(),
            },
            clock: Arc::clone(&clock),
            versions,
            settings: Arc::new(settings.cache.clone()),
        };
        let rollups = match settings.pre_aggregations {
            true => ReadyRollups::default(),
            false => ReadyRollups::disabled(),
        };
        QueryService {
            catalog,
            governance,
            observer,
            access,
            clock,
            runner,
            results,
            zones: TimeZoneDatabase::bundled(),
            rollups: RwLock::new(Arc::new(rollups)),
            history: QueryHistory::default(),
            executions,
            guardrails,
            budgets,
            sizes,
            time_zone: zone_name(&settings.timezone),
            settings,
            warehouse_name,
        }
    }

    /// Replaces the pre-aggregations that queries may read from now on.
    pub fn publish_rollups(&self, ready: Arc<ReadyRollups>) {
        *self.rollups.write().unwrap_or_else(PoisonError::into_inner) = ready;
    }

    /// Stops reading pre-aggregations whose tables the warehouse refused to read, until a new generation is published.
    fn suspend_rollups(&self, facts: &[FactMatch], error: &QueryRunError) {
        let mut ready = self.rollups.write().unwrap_or_else(PoisonError::into_inner);
        let mut left = ReadyRollups::clone(&ready);
        for (cube, served) in facts.iter().filter_map(|fact| Some((&fact.cube, fact.served.as_ref()?))) {
            let name = &served.rollup;
            // If a new generation was published in the meantime, it has different tables and is kept.
            if left.get(cube, name).is_some_and(|rollup| rollup.generation == served.generation) {
                left.remove(cube, name);
                tracing::warn!(
                    event = "preagg_table_unreadable",
                    cube = &**cube,
                    preagg = &**name,
                    error_message = %error
                );
            }
        }
        *ready = Arc::new(left);
    }

    /// Returns and clears the queries that were computed from rows since the last call.
    pub fn take_computed_queries(&self) -> Vec<ComputedQueries> {
        self.history.take()
    }

    /// Returns the pre-aggregations that queries may read.
    pub fn ready_rollups(&self) -> Arc<ReadyRollups> {
        Arc::clone(&self.rollups.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns whether governance hooks decide about queries. If so, a later decision may differ from an earlier one.
    pub(crate) fn has_hooks(&self) -> bool {
        !self.governance.is_silent()
    }

    /// Starts a session for the queries of a request, over the project that is served now.
    pub fn session<'s>(&'s self, context: &'s RequestContext) -> QuerySession<'s> {
        self.session_at(context, self.clock.now())
    }

    /// Starts a session with a current time that was fixed before.
    pub fn session_at<'s>(&'s self, context: &'s RequestContext, now: Timestamp) -> QuerySession<'s> {
        self.session_over(context, self.catalog.snapshot(), now)
    }

    /// Starts a session with a project and a current time that were fixed before, for a request with several sessions.
    pub fn session_over<'s>(
        &'s self,
        context: &'s RequestContext,
        snapshot: Arc<Snapshot>,
        now: Timestamp,
    ) -> QuerySession<'s> {
        let guardrails = self.guardrails_of(&context.caller);
        self.session_under(context, snapshot, now, guardrails)
    }

    /// Starts a session in which the limits of another caller apply.
    pub fn session_within<'s>(&'s self, context: &'s RequestContext, guardrails: Guardrails) -> QuerySession<'s> {
        self.session_under(context, self.catalog.snapshot(), self.clock.now(), guardrails)
    }

    /// Returns the limits of a caller's queries.
    fn guardrails_of(&self, caller: &SecurityContext) -> Guardrails {
        let defaults = self.settings.guardrails;
        self.guardrails.as_ref().map_or(defaults, |table| defaults.narrowed_by(table.guardrails_of(caller)))
    }

    fn session_under<'s>(
        &'s self,
        context: &'s RequestContext,
        snapshot: Arc<Snapshot>,
        now: Timestamp,
        guardrails: Guardrails,
    ) -> QuerySession<'s> {
        let max_rows = guardrails.max_rows_returned.unwrap_or(u64::MAX);
        let environment = Environment {
            now,
            zones: self.zones.clone(),
            default_timezone: self.settings.timezone.clone(),
            default_limit: self.settings.default_limit.min(max_rows),
            max_limit: match context.kind {
                QueryKind::Export | QueryKind::Job => self.settings.max_export_rows,
                _ => self.settings.max_limit,
            },
            limit_advice: (self.settings.limit_advice)(context),
            rollups: self.ready_rollups(),
        };
        QuerySession { service: self, context, snapshot, environment, guardrails, oldest_rows: Mutex::default() }
    }

    /// Runs work of the operator, such as a data test, under a permit of the limiter.
    ///
    /// # Errors
    /// [`QueryRunError::Overloaded`]
    pub async fn admitted<T>(&self, work: impl Future<Output = T>) -> Result<T, QueryRunError> {
        let _permit = self.runner.limiter.acquire(None).await?;
        Ok(work.await)
    }

    /// Returns the numbers of queries that run and that wait.
    pub fn load(&self) -> (usize, usize) {
        self.runner.limiter.load()
    }

    /// Returns the statistics of each tier of the result cache by its name.
    pub fn cache_statistics(&self) -> Vec<(&'static str, CacheStatistics)> {
        self.settings.cache.tiers.iter().map(|tier| (tier.name(), tier.statistics())).collect()
    }

    /// Returns the tiers of the result cache, in the order in which they are asked.
    pub fn cache_tiers(&self) -> &[Arc<dyn ResultCache>] {
        &self.settings.cache.tiers
    }

    /// Returns the largest number of rows of a page.
    pub fn max_limit(&self) -> u64 {
        self.settings.max_limit
    }
}

fn outcome_of<T>(compiled: &Result<T, QueryError>) -> QueryOutcome {
    if compiled.is_ok() { QueryOutcome::Success } else { QueryOutcome::Refused }
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}
