//! Collects executed queries and writes them in batches, outside the path of a query.
//!
//! In: one [`Execution`] for each answered query. Out: records in the history. A query adds its record to a queue in
//! memory and does not wait. Cached answers to the same statement and caller are added to one record until that
//! record is written, so that a busy dashboard does not fill the database. The queue is bounded: if the state database
//! accepts no records for long, further queries are counted and dropped. A batch stays in the queue until it is
//! written, so an interrupted write loses nothing. A process that is killed loses the records since its last batch. The
//! sizes of scanned relations are asked for while a record waits, if the query did not need them itself.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use terrane_compiler::sql::StatementShape;
use tokio::sync::{Notify, OnceCell};

use super::cost_model::{CostModel, usage_of};
use super::member_use::MemberUse;
use super::observations::Observations;
use super::prices::{Prices, Usage};
use super::scan_sizes::{ScanSizes, plan_size};
use crate::catalog::Snapshot;
use crate::domain::{QueryKind, Surface};
use crate::ports::clock::Clock;
use crate::ports::executed_queries::{ExecutedQueries, ExecutedQuery, HistoryFilter};
use crate::ports::store::StoreError;
use crate::ports::tokens::Randomness;
use crate::ports::warehouse::ScanSize;

/// The largest number of records that wait to be written.
pub(super) const MAX_WAITING: usize = 50_000;
/// The number of records of the history that a new process adds to its cost model.
const LEARNED: u32 = 10_000;
/// The largest number of queries in one transaction.
const BATCH: usize = 2_000;
/// The time in which sizes of scanned relations are asked for before a batch is written.
const SIZES_TIMEOUT: Duration = Duration::from_secs(1);
/// The time between two batches, and between two attempts while the state database accepts none.
const INTERVAL: Duration = Duration::from_secs(1);

/// An answered query.
pub struct Execution<'e> {
    pub query_hash: &'e str,
    pub cube: &'e Arc<str>,
    pub user_id: &'e Arc<str>,
    pub tenant: Option<&'e Arc<str>>,
    pub kind: QueryKind,
    pub surface: Surface,
    pub duration: Duration,
    /// The time spent on the warehouse; zero for a cached answer.
    pub warehouse: Duration,
    pub rows: u64,
    pub is_cached: bool,
    /// The pre-aggregation that was read, `cube.name`.
    pub pre_aggregation: Option<Arc<str>>,
    /// The dimensions that the query filters by, in the form of [`ExecutedQuery::filters`].
    pub filters: Option<&'e Arc<str>>,
    /// The members that the query names, in the form of [`ExecutedQuery::members`].
    pub members: Option<&'e Arc<str>>,
    /// The plan of the statement; `None` if it is unknown.
    pub plan: Option<ExecutedPlan>,
}

/// The plan of an executed statement.
#[derive(Clone)]
pub struct ExecutedPlan {
    pub snapshot: Arc<Snapshot>,
    pub shape: Arc<StatementShape>,
    /// The size of the scanned relations; `None` if the query did not need it.
    pub scan_size: Option<ScanSize>,
    /// The estimated bytes of a row of the answer.
    pub row_bytes: u64,
}

/// A record, and the plan whose sizes are still unknown.
#[derive(Clone)]
struct WaitingRecord {
    query: ExecutedQuery,
    unsized_plan: Option<ExecutedPlan>,
}

/// Records that wait to be written, in the order of the first query of each record.
#[derive(Default)]
struct Waiting {
    records: VecDeque<WaitingRecord>,
    /// The number of records that were removed from the front so far.
    removed: u64,
    /// The positions of the records to which further cached answers are added, by statement and caller. Positions are
    /// numbered from the start of the process, so they include the removed records.
    open: HashMap<CachedStatement, u64>,
}

/// The statement and the caller of cached answers.
#[derive(PartialEq, Eq, Hash)]
struct CachedStatement {
    query_hash: Arc<str>,
    user_id: Arc<str>,
    tenant: Option<Arc<str>>,
    kind: Arc<str>,
    surface: Arc<str>,
}

/// Queries that wait to be written to the history.
pub struct ExecutionLog {
    history: Arc<dyn ExecutedQueries>,
    clock: Arc<dyn Clock>,
    prices: Prices,
    model: Arc<CostModel>,
    observations: Observations,
    uses: MemberUse,
    /// The sizes of scanned relations; `None` if they are not asked for.
    sizes: Option<Arc<ScanSizes>>,
    /// Set after the newest records of the history were read.
    learned: OnceCell<()>,
    /// Set after the members of the newest records were counted.
    counted: OnceCell<()>,
    waiting: Mutex<Waiting>,
    /// A random number that is part of each record's id, so that ids are unique among processes.
    process: u64,
    recorded: AtomicU64,
    dropped: AtomicU64,
    noted: Notify,
    /// The lock that is held while batches are written.
    writing: tokio::sync::Mutex<()>,
}

impl ExecutionLog {
    pub fn new(
        history: Arc<dyn ExecutedQueries>,
        clock: Arc<dyn Clock>,
        randomness: &dyn Randomness,
        prices: Prices,
    ) -> Self {
        let mut process = [0; 8];
        randomness.fill(&mut process);
        ExecutionLog {
            history,
            clock,
            prices,
            model: Arc::new(CostModel::new(prices)),
            observations: Observations::default(),
            uses: MemberUse::default(),
            sizes: None,
            learned: OnceCell::new(),
            counted: OnceCell::new(),
            waiting: Mutex::default(),
            process: u64::from_le_bytes(process),
            recorded: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            noted: Notify::new(),
            writing: tokio::sync::Mutex::default(),
        }
    }

    /// Returns a log whose records have the sizes of scanned relations.
    #[must_use]
    pub fn with_sizes(self, sizes: Arc<ScanSizes>) -> Self {
        ExecutionLog { sizes: Some(sizes), ..self }
    }

    /// Adds a query. It is counted as dropped if too many records wait.
    ///
    /// Returns its cost in millionths; `None` without prices.
    pub fn record(&self, execution: &Execution<'_>) -> Option<u64> {
        let number = self.recorded.fetch_add(1, Ordering::Relaxed);
        let is_computed = !execution.is_cached;
        let predicted = is_computed.then(|| self.model.time(execution.query_hash, execution.tenant)).flatten();
        let plan = execution.plan.as_ref().filter(|_| is_computed);
        let mut query = ExecutedQuery {
            id: format!("{:016x}{number:016x}", self.process).into(),
            queries: 1,
            at: self.clock.now(),
            query_hash: execution.query_hash.into(),
            cube: Arc::clone(execution.cube),
            user_id: Arc::clone(execution.user_id),
            tenant: execution.tenant.cloned(),
            kind: execution.kind.as_str().into(),
            surface: execution.surface.as_str().into(),
            duration: execution.duration,
            warehouse: execution.warehouse,
            rows: execution.rows,
            // No engine reports the number of bytes that it read.
            scan_bytes: None,
            cost_micros: Some(0),
            is_cached: execution.is_cached,
            pre_aggregation: execution.pre_aggregation.clone(),
            filters: execution.filters.cloned(),
            members: execution.members.cloned(),
            predicted,
            size: plan.map(|plan| plan_size(&plan.shape, plan.scan_size, plan.row_bytes)),
        };
        if is_computed {
            query.cost_micros = self.prices.cost_micros(usage_of(&query));
        }
        let cost_micros = query.cost_micros;
        self.model.add(&query);
        self.uses.add(&query);
        let is_unsized = self.sizes.is_some() && plan.is_some_and(|plan| plan.scan_size.is_none());
        let unsized_plan = plan.filter(|_| is_unsized).cloned();
        if !self.waiting().add(WaitingRecord { query, unsized_plan }) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return cost_micros;
        }
        self.noted.notify_one();
        cost_micros
    }

    /// Returns whether costs are known.
    pub fn has_price(&self) -> bool {
        self.prices.is_known()
    }

    /// Returns whether costs depend on the scanned bytes.
    pub(crate) fn has_price_of_bytes(&self) -> bool {
        self.prices.terabyte_scanned.is_some()
    }

    /// Returns the cost in millionths of a use of the warehouse; `None` without prices.
    pub(super) fn cost_micros(&self, usage: Usage) -> Option<u64> {
        self.prices.cost_micros(usage)
    }

    /// Returns the sizes of scanned relations; `None` if they are not asked for.
    pub(crate) fn sizes(&self) -> Option<&Arc<ScanSizes>> {
        self.sizes.as_ref()
    }

    /// Returns the queries that models of times are fitted to.
    pub(super) fn observations(&self) -> &Observations {
        &self.observations
    }

    /// Returns the cost model of the newest statements.
    pub fn model(&self) -> &Arc<CostModel> {
        &self.model
    }

    /// Adds the durations of the newest statements in the history to the cost model, unless this was done before.
    ///
    /// # Errors
    /// The state database is unavailable.
    pub async fn learn(&self) -> Result<(), StoreError> {
        let learn = async || {
            let newest = HistoryFilter { is_computed: true, limit: LEARNED, ..HistoryFilter::default() };
            let queries = self.history.executed(&newest).await?;
            for query in queries.iter().rev() {
                self.model.add(query);
                self.observations.add(query);
            }
            Ok::<(), StoreError>(())
        };
        self.learned.get_or_try_init(learn).await.map(|_| ())
    }

    /// Returns the numbers of recent queries that name each member. The first call adds the newest records of the
    /// history, unless the state database is unavailable.
    pub async fn uses(&self) -> &MemberUse {
        let count = async || {
            let newest = HistoryFilter { has_members: true, limit: LEARNED, ..HistoryFilter::default() };
            match self.history.executed(&newest).await {
                Ok(queries) => {
                    // Records of this process are counted already.
                    let own = format!("{:016x}", self.process);
                    let others = queries.iter().rev().filter(|query| !query.id.starts_with(&own));
                    others.for_each(|query| self.uses.add(query));
                }
                // The order of similar hits is not worth a second attempt, for which each search would wait.
                Err(error) => tracing::error!(event = "state_unavailable", error_message = %error),
            }
        };
        self.counted.get_or_init(count).await;
        &self.uses
    }

    /// Asks for the sizes that waiting records lack, for at most a second.
    pub async fn complete(&self) {
        let Some(sizes) = &self.sizes else { return };
        let pending = self.waiting().pending();
        let complete = async {
            for (position, plan) in pending {
                let size = sizes.plan_size(&plan.snapshot, &plan.shape, plan.row_bytes).await;
                if let Some(record) = self.waiting().at(position) {
                    record.query.size = Some(size);
                    record.unsized_plan = None;
                }
            }
        };
        // Records whose sizes are late are written without them.
        let _ = tokio::time::timeout(SIZES_TIMEOUT, complete).await;
    }

    /// Returns the number of queries that were dropped so far.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Writes the queries that wait now. If the state database refuses a batch, its queries stay in the queue.
    ///
    /// # Errors
    /// The state database is unavailable.
    pub async fn flush(&self) -> Result<(), StoreError> {
        let _writing = self.writing.lock().await;
        let mut left = self.waiting().records.len();
        while left > 0 {
            // Only the holder of the lock removes records, so the batch stays at the front until it is written.
            let records = self.waiting().front(BATCH.min(left));
            let mut batch: Vec<ExecutedQuery> =
                records.into_iter().map(|record| self.with_known_size(record)).collect();
            self.observations.predict(&mut batch);
            self.history.append_executed(&batch).await?;
            batch.iter().for_each(|query| self.observations.add(query));
            self.waiting().remove(batch.len());
            left -= batch.len();
        }
        Ok(())
    }

    /// Writes the waiting queries once per interval, if there are any. Never returns.
    pub async fn keep_writing(&self) {
        let mut reported = 0;
        loop {
            if self.waiting().records.is_empty() {
                self.noted.notified().await;
            }
            tokio::time::sleep(INTERVAL).await;
            self.complete().await;
            if let Err(error) = self.flush().await {
                tracing::error!(event = "state_unavailable", error_message = %error);
            }
            let dropped = self.dropped();
            if dropped > reported {
                tracing::warn!(event = "query_history_dropped", queries = dropped - reported);
                reported = dropped;
            }
        }
    }

    /// Returns a record, with the size of its scans if that was asked for before.
    fn with_known_size(&self, record: WaitingRecord) -> ExecutedQuery {
        let WaitingRecord { mut query, unsized_plan } = record;
        if let (Some(plan), Some(sizes)) = (unsized_plan, &self.sizes) {
            let known = sizes.remembered(&plan.snapshot, &plan.shape);
            query.size = Some(plan_size(&plan.shape, known, plan.row_bytes));
        }
        query
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    /// Adds a query. Returns false if too many records wait.
    fn add(&mut self, added: WaitingRecord) -> bool {
        let query = &added.query;
        let statement = query.is_cached.then(|| CachedStatement::of(query));
        let position = statement.as_ref().and_then(|statement| self.open.get(statement));
        let index = position.and_then(|position| usize::try_from(position - self.removed).ok());
        if let Some(WaitingRecord { query: record, .. }) = index.and_then(|index| self.records.get_mut(index)) {
            record.queries += 1;
            record.at = query.at;
            record.duration += query.duration;
            record.rows += query.rows;
            return true;
        }
        if self.records.len() >= MAX_WAITING {
            return false;
        }
        if let Some(statement) = statement {
            self.open.insert(statement, self.removed + self.records.len() as u64);
        }
        self.records.push_back(added);
        true
    }

    /// Returns the first records. From now on, cached answers are added to new records only, so that the returned
    /// records do not change while they are written.
    fn front(&mut self, count: usize) -> Vec<WaitingRecord> {
        self.open.clear();
        self.records.iter().take(count).cloned().collect()
    }

    /// Returns the plans whose sizes are unknown, with the positions of their records.
    fn pending(&self) -> Vec<(u64, ExecutedPlan)> {
        let positions = self.records.iter().zip(self.removed..);
        positions.filter_map(|(record, position)| Some((position, record.unsized_plan.clone()?))).collect()
    }

    /// Returns the record at a position, if it still waits.
    fn at(&mut self, position: u64) -> Option<&mut WaitingRecord> {
        let index = position.checked_sub(self.removed)?;
        self.records.get_mut(usize::try_from(index).ok()?)
    }

    fn remove(&mut self, count: usize) {
        self.records.drain(..count);
        self.removed += count as u64;
        // These positions belong to records that were removed.
        self.open.retain(|_, position| *position >= self.removed);
    }
}

impl CachedStatement {
    fn of(query: &ExecutedQuery) -> Self {
        CachedStatement {
            query_hash: Arc::clone(&query.query_hash),
            user_id: Arc::clone(&query.user_id),
            tenant: query.tenant.clone(),
            kind: Arc::clone(&query.kind),
            surface: Arc::clone(&query.surface),
        }
    }
}
