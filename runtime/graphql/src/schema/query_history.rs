//! The history of executed queries.
//!
//! In: records of the use case. Out: the fields that REST sends, under names in GraphQL's convention.

use async_graphql::{Context, ID, SimpleObject};
use jiff::Timestamp;
use terrane_app::ports::executed_queries::HistoryFilter;
use terrane_wire::cost::{self as wire, DEFAULT_LISTED_QUERIES, MAX_LISTED_QUERIES, history_position};

use super::cost::cost;
use super::inputs::{checked_limit, malformed};
use super::request::state;
use crate::failure::Failure;

/// A page of executed queries, newest first.
#[derive(SimpleObject)]
pub(crate) struct QueryHistory {
    queries: Vec<QueryExecution>,
    /// The value of `before` for the next page; null on the last page.
    next: Option<String>,
}

/// An executed query, without its values and rows. Cached answers of one statement to one caller share a record if they
/// follow each other within a moment.
#[derive(SimpleObject)]
pub(crate) struct QueryExecution {
    id: ID,
    /// The number of queries: 1, or more if the cache answered.
    queries: u64,
    /// The end of the last query.
    at: String,
    /// Names the statement with placeholders, as `sql_hash` does in the log.
    query_hash: String,
    /// Null if the caller may not see the cube.
    cube: Option<String>,
    /// The caller's user id; empty for an anonymous caller.
    user_id: String,
    /// The purpose, such as `rest`, `graphql`, `export`, `job` or `profile`.
    kind: String,
    /// The interface: `rest`, `graphql`, `dax`, `xmla`, `async_job`, `sql_only` or `internal`.
    surface: String,
    /// The time until the last row, added up for all queries.
    seconds: f64,
    /// The time spent on the warehouse; 0 for a cached answer.
    warehouse_seconds: f64,
    /// The rows of all answers.
    rows: f64,
    /// Null if the warehouse does not report it.
    bytes_scanned: Option<f64>,
    /// Null without prices; 0 for a cached answer.
    cost: Option<f64>,
    cached: bool,
    /// The pre-aggregation that was read, `cube.name`.
    pre_aggregation: Option<String>,
}

/// The arguments of the field, as the caller wrote them.
pub(crate) struct HistoryArguments {
    pub(crate) user_id: Option<String>,
    pub(crate) query_hash: Option<String>,
    pub(crate) since: Option<String>,
    pub(crate) until: Option<String>,
    pub(crate) before: Option<String>,
    pub(crate) limit: Option<i64>,
}

impl HistoryArguments {
    /// Returns the filter of the use case.
    ///
    /// # Errors
    /// An argument is invalid. The error names it.
    fn filter(self) -> Result<HistoryFilter, Failure> {
        let before = |text: String| {
            let page = || malformed("expected the `next` of the page before at `before`", "before");
            history_position(&text).ok_or_else(page)
        };
        Ok(HistoryFilter {
            user_id: self.user_id.map(Into::into),
            query_hash: self.query_hash.map(Into::into),
            since: timestamp("since", self.since)?,
            until: timestamp("until", self.until)?,
            before: self.before.map(before).transpose()?,
            limit: checked_limit(self.limit, DEFAULT_LISTED_QUERIES, MAX_LISTED_QUERIES)?,
            ..HistoryFilter::default()
        })
    }
}

/// Returns executed queries of the caller; with `admin`, those of all callers.
///
/// # Errors
/// Costs are switched off, an argument is invalid, or the caller asks for another user without the scope `admin`.
pub(crate) async fn history(context: &Context<'_>, arguments: HistoryArguments) -> Result<QueryHistory, Failure> {
    let state = state(context);
    state.count_items(0)?;
    let service = cost(context)?;
    let filter = arguments.filter()?;
    let limit = filter.limit;
    let found = service.history(&state.parts.context.request, filter).await?;
    state.count(context, 1, &|list| (list == "queries").then_some(found.len()))?;
    Ok(QueryHistory::from(wire::QueryHistory::new(&found, limit)))
}

fn timestamp(name: &str, text: Option<String>) -> Result<Option<Timestamp>, Failure> {
    let expected = || malformed(&format!("expected a timestamp, like 2024-01-31T00:00:00Z, at `{name}`"), name);
    text.map(|text| text.parse().map_err(|_| expected())).transpose()
}

impl From<wire::QueryHistory<'_>> for QueryHistory {
    fn from(history: wire::QueryHistory<'_>) -> Self {
        QueryHistory { queries: history.queries.into_iter().map(QueryExecution::from).collect(), next: history.next }
    }
}

impl From<wire::QueryExecution<'_>> for QueryExecution {
    fn from(query: wire::QueryExecution<'_>) -> Self {
        QueryExecution {
            id: query.id.into(),
            queries: query.queries,
            at: query.at,
            query_hash: query.query_hash.to_owned(),
            cube: query.cube.map(str::to_owned),
            user_id: query.user_id.to_owned(),
            kind: query.kind.to_owned(),
            surface: query.surface.to_owned(),
            seconds: query.seconds,
            warehouse_seconds: query.warehouse_seconds,
            rows: query.rows as f64,
            bytes_scanned: query.bytes_scanned.map(|bytes| bytes as f64),
            cost: query.cost,
            cached: query.cached,
            pre_aggregation: query.pre_aggregation.map(str::to_owned),
        }
    }
}
