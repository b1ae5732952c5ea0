//! The port to the history of executed queries: the time and rows that each one took.
//!
//! Values of filters and rows of results are never part of a record.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use super::leases::Lease;
use super::store::StoreError;

/// A record: one query that was answered in full, or several queries of the same caller that the cache answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutedQuery {
    /// The id, unique among all processes. If a record with a known id is appended, it is ignored.
    pub id: Arc<str>,
    /// The number of queries. It is 1 for a query that the cache did not answer.
    pub queries: u64,
    /// The end of the last query.
    pub at: Timestamp,
    /// The hash of the statement's text with placeholders, as the log names the statement.
    pub query_hash: Arc<str>,
    pub cube: Arc<str>,
    /// The caller's user id; empty for an anonymous caller.
    pub user_id: Arc<str>,
    pub tenant: Option<Arc<str>>,
    /// The purpose of the query, such as `rest` or `export`.
    pub kind: Arc<str>,
    /// The interface that the query came through.
    pub surface: Arc<str>,
    /// The sum of the times from each query's arrival to its last row.
    pub duration: Duration,
    /// The time spent on the warehouse; zero for a cached answer.
    pub warehouse: Duration,
    /// The number of rows in all answers.
    pub rows: u64,
    /// The number of scanned bytes; `None` if the warehouse does not report it.
    pub scan_bytes: Option<u64>,
    /// The cost in millionths; `None` without prices.
    pub cost_micros: Option<u64>,
    pub is_cached: bool,
    /// The pre-aggregation that was read, `cube.name`.
    pub pre_aggregation: Option<Arc<str>>,
    /// The dimensions that the query filters by, `cube.dimension`, sorted and separated by commas; `None` if unknown.
    pub filters: Option<Arc<str>>,
    /// The members and metrics that the query names, as `cube.member` or the name of the metric, sorted and separated by
    /// commas; `None` for a query without measures, and if they are unknown.
    pub members: Option<Arc<str>>,
    /// The predicted time; `None` for a cached answer, and for a statement without enough earlier runs.
    pub predicted: Option<PredictedTime>,
    /// The size of the statement and of what it reads; `None` for a cached answer.
    pub size: Option<PlanSize>,
}

/// The size of a statement and of the relations that it scans.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PlanSize {
    /// The stored bytes of the scanned columns; `None` if the warehouse does not report them.
    pub table_bytes: Option<u64>,
    pub table_rows: Option<u64>,
    pub facts: u32,
    pub joins: u32,
    /// The number of columns that rows are grouped by.
    pub groups: u32,
    /// The length of the range of time that is read; `None` without a range.
    pub range_seconds: Option<u64>,
    /// The estimated bytes of a row of the answer.
    pub row_bytes: u64,
}

/// A prediction of the time on the warehouse, made before the query ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PredictedTime {
    pub median: Duration,
    /// The time that nine of ten queries with the statement did not exceed.
    pub high: Duration,
}

/// The place of a record in the history, which is ordered newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryPosition {
    pub at: Timestamp,
    pub id: Arc<str>,
}

/// A user of a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryOwner {
    pub user_id: Arc<str>,
    pub tenant: Option<Arc<str>>,
}

/// A selection of records, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HistoryFilter {
    pub owner: Option<QueryOwner>,
    /// The user id, in any tenant.
    pub user_id: Option<Arc<str>>,
    pub query_hash: Option<Arc<str>>,
    pub cube: Option<Arc<str>>,
    /// The tenant, with any user. `Some(None)` selects records without a tenant.
    pub tenant: Option<Option<Arc<str>>>,
    /// True to leave out cached answers.
    pub is_computed: bool,
    /// True to leave out queries whose members are not recorded.
    pub has_members: bool,
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
    /// Selects records after this one in the order of the history, for the next page.
    pub before: Option<HistoryPosition>,
    pub limit: u32,
}

/// The totals of all queries with the same statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementTotals {
    pub query_hash: Arc<str>,
    pub cube: Arc<str>,
    pub queries: u64,
    /// The number of queries that were answered from the cache.
    pub cached: u64,
    pub rows: u64,
    pub warehouse: Duration,
    /// The longest time that one query took on the warehouse.
    pub longest: Duration,
    /// The cost in millionths of the queries with a known cost; `None` if no cost is known.
    pub cost_micros: Option<u64>,
    pub last_at: Timestamp,
}

/// The totals of the queries that read rows of a cube and filter by the same dimensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterTotals {
    pub cube: Arc<str>,
    /// The filters in the form of [`ExecutedQuery::filters`].
    pub filters: Arc<str>,
    pub queries: u64,
    pub warehouse: Duration,
    /// The cost in millionths; `None` if it is unknown.
    pub cost_micros: Option<u64>,
}

/// The history of executed queries.
#[async_trait]
pub trait ExecutedQueries: Send + Sync {
    /// Appends all records or none.
    async fn append_executed(&self, queries: &[ExecutedQuery]) -> Result<(), StoreError>;
    async fn executed(&self, filter: &HistoryFilter) -> Result<Vec<ExecutedQuery>, StoreError>;
    /// Returns the totals of the statements that took the warehouse the most time since `since`, the costliest first.
    async fn statement_totals(&self, since: Timestamp, limit: u32) -> Result<Vec<StatementTotals>, StoreError>;
    /// Returns the totals of the selected queries by cube and filters. The totals with the longest time on the
    /// warehouse come first. Cached answers, answers from pre-aggregations, and queries with unknown filters do not
    /// count.
    async fn filter_totals(&self, filter: &HistoryFilter) -> Result<Vec<FilterTotals>, StoreError>;
    /// Deletes a few records from before a time and returns their number. Returns `None` if another server has taken
    /// over the lease; then nothing was deleted.
    async fn prune_executed(&self, before: Timestamp, lease: &Lease) -> Result<Option<u64>, StoreError>;
}
