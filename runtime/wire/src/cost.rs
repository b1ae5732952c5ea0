//! The costs of queries: the history of executed queries, the totals of statements, guardrails, predictions, budgets
//! and recommendations.
//!
//! In: parameters, and the use case's records. Out: filters, and JSON. Inside the program, costs are integers in
//! millionths of the currency. In JSON, costs are numbers in the currency of `optimization.prices`.

mod budget;
mod guardrails;
mod prediction;
mod recommendations;

use std::sync::Arc;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use terrane_app::cost::{PredictionAccuracy, VisibleQuery};
use terrane_app::ports::executed_queries::{HistoryFilter, HistoryPosition, StatementTotals};

pub use budget::{BudgetUsage, usage_from_parameters};
pub use guardrails::{
    EffectiveGuardrails, GuardrailAnswer, GuardrailChange, GuardrailLimits, GuardrailList, GuardrailQuestion,
    SourceOfGuardrails, SubjectGuardrails, limits_from_wire, question_from_wire,
};
pub use prediction::{
    CostBreakdown, CostPrediction, GuardrailStatus, PreaggregationMatch, PredictedNumbers, PredictionBases,
    PredictionRequest, prediction_from_wire,
};

pub use recommendations::{
    ExpectedSaving, MAX_RECOMMENDATION_DAYS, Recommendation, RecommendationEvidence, Recommendations,
    recommendations_from_parameters,
};

use crate::fields::{FieldError, Path};
use crate::schema;

const KNOWN: &[&str] = &["user_id", "query_hash", "since", "until", "before", "limit"];
/// The largest number of queries of a page if the request has no `limit`.
pub const DEFAULT_LISTED_QUERIES: u32 = 100;
/// The largest number of queries of a page.
pub const MAX_LISTED_QUERIES: u32 = 1_000;
const TIMESTAMP: &str = "a timestamp, like 2024-01-31T00:00:00Z,";
const POSITION: &str = "the `next` of the page before";

/// Reads `user_id`, `query_hash`, `since`, `until` (timestamps), `before` (the `next` of a page) and `limit`.
///
/// # Errors
/// Names the parameter that is invalid.
pub fn history_from_parameters(query: &str) -> Result<HistoryFilter, FieldError> {
    let mut filter = HistoryFilter { limit: DEFAULT_LISTED_QUERIES, ..HistoryFilter::default() };
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let path = Path::ROOT.field(&name);
        let time = || value.parse::<Timestamp>().map_err(|_| path.invalid_value(&value, TIMESTAMP));
        match &*name {
            "user_id" => filter.user_id = Some(value.into()),
            "query_hash" => filter.query_hash = Some(value.into()),
            "since" => filter.since = Some(time()?),
            "until" => filter.until = Some(time()?),
            "before" => {
                filter.before = Some(history_position(&value).ok_or_else(|| path.invalid_value(&value, POSITION))?);
            }
            "limit" => {
                let limit = value.parse::<u32>().ok().filter(|limit| (1..=MAX_LISTED_QUERIES).contains(limit));
                filter.limit = limit.ok_or_else(|| path.invalid_value(&value, "an integer from 1 to 1000"))?;
            }
            // The caller's credential, which every route accepts.
            "api_key" => {}
            other => return Err(Path::ROOT.unknown_field(other, KNOWN)),
        }
    }
    Ok(filter)
}

/// Reads the parameter `user_id`.
///
/// # Errors
/// Names the parameter that is invalid.
pub fn user_from_parameters(query: &str) -> Result<Option<Arc<str>>, FieldError> {
    let mut user_id = None;
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "user_id" => user_id = Some(value.into()),
            // The caller's credential, which every route accepts.
            "api_key" => {}
            other => return Err(Path::ROOT.unknown_field(other, &["user_id"])),
        }
    }
    Ok(user_id)
}

/// Reads the position of a page, `{microseconds}.{id}`. Returns `None` for any other form.
pub fn history_position(text: &str) -> Option<HistoryPosition> {
    let (at, id) = text.split_once('.')?;
    let at = Timestamp::from_microsecond(at.parse().ok()?).ok()?;
    let is_id = !id.is_empty() && id.len() <= 64 && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_id.then(|| HistoryPosition { at, id: id.into() })
}

/// A page of executed queries, newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub struct QueryHistory<'a> {
    pub queries: Vec<QueryExecution<'a>>,
    /// The value of `before` for the next page.
    pub next: Option<String>,
}

/// An executed query, without its values and rows. Cached answers of one statement to one caller share a record if they
/// follow each other within a moment.
#[derive(Debug, Serialize, JsonSchema)]
pub struct QueryExecution<'a> {
    pub id: &'a str,
    /// The number of queries: 1, or more if the cache answered.
    pub queries: u64,
    /// The end of the last query.
    #[schemars(schema_with = "schema::timestamp")]
    pub at: String,
    /// Names the statement with placeholders, as `sql_hash` does in the log.
    pub query_hash: &'a str,
    /// Null if the caller may not see the cube.
    pub cube: Option<&'a str>,
    /// The caller's user id; empty for an anonymous caller.
    pub user_id: &'a str,
    /// The purpose, such as `rest`, `graphql`, `export`, `job` or `profile`.
    pub kind: &'a str,
    /// The interface: `rest`, `graphql`, `dax`, `xmla`, `async_job`, `sql_only` or `internal`.
    pub surface: &'a str,
    /// The time until the last row, added up for all queries.
    pub seconds: f64,
    /// The time spent on the warehouse; 0 for a cached answer.
    pub warehouse_seconds: f64,
    /// The rows of all answers.
    pub rows: u64,
    /// Null if the warehouse does not report it.
    pub bytes_scanned: Option<u64>,
    /// Null without prices; 0 for a cached answer.
    pub cost: Option<f64>,
    pub cached: bool,
    /// The pre-aggregation that was read, `cube.name`.
    pub pre_aggregation: Option<&'a str>,
}

impl<'a> QueryHistory<'a> {
    pub fn new(queries: &'a [VisibleQuery], limit: u32) -> Self {
        let next = queries.last().filter(|_| queries.len() == limit as usize);
        QueryHistory {
            queries: queries.iter().map(QueryExecution::from).collect(),
            next: next.map(|VisibleQuery { query, .. }| format!("{}.{}", query.at.as_microsecond(), query.id)),
        }
    }
}

impl<'a> From<&'a VisibleQuery> for QueryExecution<'a> {
    fn from(VisibleQuery { query, is_cube_visible }: &'a VisibleQuery) -> Self {
        QueryExecution {
            id: &query.id,
            queries: query.queries,
            at: query.at.to_string(),
            query_hash: &query.query_hash,
            cube: is_cube_visible.then_some(&query.cube),
            user_id: &query.user_id,
            kind: &query.kind,
            surface: &query.surface,
            seconds: query.duration.as_secs_f64(),
            warehouse_seconds: query.warehouse.as_secs_f64(),
            rows: query.rows,
            bytes_scanned: query.scan_bytes,
            cost: query.cost_micros.map(currency),
            cached: query.is_cached,
            pre_aggregation: query.pre_aggregation.as_deref().filter(|_| *is_cube_visible),
        }
    }
}

/// The statements that took the most time on the warehouse.
#[derive(Debug, Serialize)]
pub struct CostReport<'a> {
    pub since: String,
    pub statements: Vec<StatementCost<'a>>,
    /// Null if no query had a prediction.
    pub predictions: Option<Accuracy>,
}

/// The accuracy of the predicted times of queries. The q-error is the larger of predicted/actual and actual/predicted.
#[derive(Debug, Serialize)]
pub struct Accuracy {
    /// The number of newest queries that had a prediction.
    pub queries: usize,
    pub median_q_error: f64,
    pub p90_q_error: f64,
    pub p99_q_error: f64,
    /// The share of queries, from 0 to 1, that took at most their predicted ninetieth percentile.
    pub covered: f64,
}

/// The totals of all queries with the same statement.
#[derive(Debug, Serialize)]
pub struct StatementCost<'a> {
    pub query_hash: &'a str,
    pub cube: &'a str,
    pub queries: u64,
    pub cached: u64,
    pub rows: u64,
    pub warehouse_seconds: f64,
    /// The longest time of one query on the warehouse.
    pub longest_seconds: f64,
    /// Null if no query has a known cost.
    pub cost: Option<f64>,
    pub last_at: String,
}

impl<'a> CostReport<'a> {
    pub fn new(since: Timestamp, totals: &'a [StatementTotals], accuracy: Option<PredictionAccuracy>) -> Self {
        let statements = totals.iter().map(StatementCost::from).collect();
        CostReport { since: since.to_string(), statements, predictions: accuracy.map(Accuracy::from) }
    }
}

impl From<PredictionAccuracy> for Accuracy {
    fn from(accuracy: PredictionAccuracy) -> Self {
        let PredictionAccuracy { queries, median, p90, p99, covered } = accuracy;
        Accuracy { queries, median_q_error: median, p90_q_error: p90, p99_q_error: p99, covered }
    }
}

impl<'a> From<&'a StatementTotals> for StatementCost<'a> {
    fn from(totals: &'a StatementTotals) -> Self {
        StatementCost {
            query_hash: &totals.query_hash,
            cube: &totals.cube,
            queries: totals.queries,
            cached: totals.cached,
            rows: totals.rows,
            warehouse_seconds: totals.warehouse.as_secs_f64(),
            longest_seconds: totals.longest.as_secs_f64(),
            cost: totals.cost_micros.map(currency),
            last_at: totals.last_at.to_string(),
        }
    }
}

/// Converts millionths to an amount of the currency.
fn currency(micros: u64) -> f64 {
    micros as f64 / 1_000_000.0
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

    use std::time::Duration;

    use terrane_app::ports::executed_queries::ExecutedQuery;

    use super::*;

    fn visible(is_cube_visible: bool) -> VisibleQuery {
        let query = ExecutedQuery {
            id: "00ff".into(),
            queries: 1,
            at: Timestamp::from_microsecond(1_707_912_000_000_001).unwrap(),
            query_hash: "abcd".into(),
            cube: "orders".into(),
            user_id: "ada".into(),
            tenant: None,
            kind: "rest".into(),
            surface: "dax".into(),
            duration: Duration::from_millis(1_500),
            warehouse: Duration::from_millis(1_250),
            rows: 3,
            scan_bytes: None,
            cost_micros: Some(2_500_000),
            is_cached: false,
            pre_aggregation: Some("orders.daily".into()),
            filters: None,
            members: None,
            predicted: None,
            size: None,
        };
        VisibleQuery { query, is_cube_visible }
    }

    #[test]
    fn next_page_begins_after_the_last_record_of_a_full_page() {
        let queries = [visible(true)];
        let next = QueryHistory::new(&queries, 1).next.unwrap();
        let filter = history_from_parameters(&format!("before={next}")).unwrap();
        assert_eq!(filter.before, Some(HistoryPosition { at: queries[0].query.at, id: "00ff".into() }));
        assert_eq!(QueryHistory::new(&queries, 2).next, None);
    }

    #[test]
    fn hidden_cubes_have_no_name() {
        let (shown, hidden) = (visible(true), visible(false));
        let (shown, hidden) = (QueryExecution::from(&shown), QueryExecution::from(&hidden));
        assert_eq!((shown.cube, shown.pre_aggregation), (Some("orders"), Some("orders.daily")));
        assert_eq!((hidden.cube, hidden.pre_aggregation), (None, None));
        assert_eq!((shown.cost, shown.seconds, shown.bytes_scanned), (Some(2.5), 1.5, None));
    }

    #[test]
    fn invalid_parameters_are_named() {
        for (query, field) in [
            ("before=x", "before"),
            ("before=1.", "before"),
            ("before=1.a%20b", "before"),
            ("before=99999999999999999999.a", "before"),
            ("limit=0", "limit"),
            ("limit=1001", "limit"),
            ("since=yesterday", "since"),
            ("users=ada", "users"),
        ] {
            let error = crate::ErrorBody::from(history_from_parameters(query).unwrap_err()).into_json("");
            assert_eq!(error["error"]["details"]["field"], field, "{query}");
        }
    }
}
