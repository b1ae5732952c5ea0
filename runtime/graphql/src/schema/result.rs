//! The result of a query: rows, facts about them, and descriptions of their columns.
//!
//! In: the answer of the use case. Out: rows as REST sends them, except that decimals and integers beyond 2^53 are
//! strings. Rows that several queries share are encoded once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_graphql::{Context, Object, Result, SimpleObject};
use bytes::Bytes;
use serde_json::json;
use terrane_app::blocking::{MAX_INLINE_ROWS, over_rows};
use terrane_app::query::Answer;
use terrane_compiler::model::Member;
use terrane_compiler::model::{Model, Presentation};
use terrane_compiler::query::MemberRef;
use terrane_compiler::sql::{ColumnFormat, ResultColumn};
use terrane_wire::json::{Numbers, shared_rows, write_lists, write_objects, write_row};

use super::json::Json;
use super::request::{RequestParts, state};
use crate::enums::{DimensionType, TimeGranularity};
use crate::failure::Failure;

/// The rows of a query.
pub(crate) struct QueryResult {
    answer: Arc<Answer>,
    parts: Arc<RequestParts>,
    /// The cube to which members without a cube belong.
    cube: Option<String>,
    /// True after a field has written the rows. Also true from the start if another field of the document has requested
    /// an equal query. Rows that are written while this is true count as items.
    is_written: AtomicBool,
}

/// Metadata of the rows.
#[derive(SimpleObject)]
pub(crate) struct QueryMeta {
    /// The number of rows before paging; null if it is unknown or over 2,147,483,647.
    total_count: Option<i32>,
    execution_time_ms: f64,
    from_cache: bool,
    /// The pre-aggregations that were read, such as `orders.daily`, with commas between them.
    pre_aggregation_used: Option<String>,
    sql: Option<String>,
    /// The number of these rows.
    returned_count: i32,
    /// True if rows follow after this page; null if that is unknown.
    truncated: Option<bool>,
    warnings: Vec<String>,
    /// A digest of the statements and their values. Equal statements with equal values have the same digest.
    cache_key: String,
    /// The rows are at least as new as the data was at this time.
    as_of: String,
    /// True if the data changed since, or the time limit for cached rows has passed.
    stale: bool,
    /// Each measure without dimensions, if the query asks for totals.
    totals: Option<Json>,
}

/// The statement that was run.
#[derive(SimpleObject)]
#[graphql(rename_fields = "snake_case")]
pub(crate) struct ExecutedQuery {
    sql: String,
    duration_ms: f64,
}

/// A column of the rows.
#[derive(SimpleObject)]
pub(crate) struct QueryColumn {
    /// The member as the query names it: the key of the row's value.
    name: Arc<str>,
    #[graphql(name = "type")]
    ty: DimensionType,
    is_measure: bool,
    granularity: Option<TimeGranularity>,
}

#[Object]
impl QueryResult {
    /// The rows: a list of objects whose keys are the names of the columns.
    async fn data(&self, context: &Context<'_>) -> Result<Json> {
        self.count_repeated(context)?;
        let answer = Arc::clone(&self.answer);
        let rows = self.written(move || match &answer.shared {
            Some(shared) if answer.returned_rows <= MAX_INLINE_ROWS => {
                Bytes::from_owner(shared_rows(shared, &answer.columns, Numbers::Exact))
            }
            _ => {
                let mut out = Vec::new();
                write_objects(&answer.columns, &answer.batches, Numbers::Exact, &mut out);
                out.into()
            }
        });
        Ok(Json::list(rows.await))
    }

    /// Metadata of the rows.
    async fn meta(&self) -> QueryMeta {
        let answer = &*self.answer;
        let served = answer.pre_aggregations.iter().filter_map(|fact| {
            let served = fact.served.as_ref()?;
            Some(format!("{}.{}", fact.cube, served.rollup))
        });
        let served: Vec<String> = served.collect();
        let totals = answer.totals.as_ref().map(|totals| {
            let mut out = Vec::new();
            write_row(&totals.columns, &totals.batches, Numbers::Exact, &mut out);
            Json::text(out)
        });
        QueryMeta {
            total_count: answer.total_rows.and_then(|rows| i32::try_from(rows).ok()),
            execution_time_ms: milliseconds(answer),
            from_cache: answer.freshness.is_cached,
            pre_aggregation_used: Some(served.join(", ")).filter(|names| !names.is_empty()),
            sql: Some(answer.sql.clone()),
            returned_count: i32::try_from(answer.returned_rows).unwrap_or(i32::MAX),
            truncated: answer.truncated,
            warnings: answer.warnings.clone(),
            cache_key: answer.cache_key.clone(),
            as_of: answer.freshness.as_of.to_string(),
            stale: answer.freshness.is_stale,
            totals,
        }
    }

    /// The type, kind, title, format, granularity and description of each column, by its name.
    async fn annotation(&self) -> Option<Json> {
        let model = &self.parts.snapshot.model;
        let annotations = self.answer.columns.iter().map(|column| {
            let found = presentation(model, &column.key, self.cube.as_deref());
            let annotation = json!({
                "type": column.ty.as_str(),
                "kind": if column.is_measure { "measure" } else { "dimension" },
                "title": found.map(|found| &*found.title),
                "format": found.and_then(|found| found.format.as_deref()),
                "description": found.and_then(|found| found.description.as_deref()),
                "granularity": granularity(column).map(|granularity| granularity.as_str()),
            });
            (column.key.to_string(), annotation)
        });
        Some(Json::object(annotations))
    }

    /// The columns of the rows, in the order of the query.
    async fn columns(&self, context: &Context<'_>) -> Result<Vec<QueryColumn>> {
        state(context).count(context, self.answer.columns.len(), &|_| None)?;
        let columns = self.answer.columns.iter().map(|column| QueryColumn {
            name: Arc::clone(&column.key),
            ty: column.ty.into(),
            is_measure: column.is_measure,
            granularity: granularity(column).map(Into::into),
        });
        Ok(columns.collect())
    }

    /// The rows as lists of values in the order of the columns.
    async fn rows(&self, context: &Context<'_>) -> Result<Json> {
        self.count_repeated(context)?;
        let answer = Arc::clone(&self.answer);
        let rows = self.written(move || {
            let mut out = Vec::new();
            write_lists(&answer.columns, &answer.batches, Numbers::Exact, &mut out);
            out.into()
        });
        Ok(Json::list(rows.await))
    }

    /// The statement that was run.
    async fn query(&self) -> ExecutedQuery {
        ExecutedQuery { sql: self.answer.sql.clone(), duration_ms: milliseconds(&self.answer) }
    }
}

impl QueryResult {
    pub(crate) fn new(answer: Arc<Answer>, parts: Arc<RequestParts>, cube: Option<String>, is_repeated: bool) -> Self {
        QueryResult { answer, parts, cube, is_written: AtomicBool::new(is_repeated) }
    }

    /// Counts the rows if they are written more than once. The limit `executions` does not cover repeated rows, because
    /// it counts only different queries.
    fn count_repeated(&self, context: &Context<'_>) -> Result<(), Failure> {
        let is_repeated = self.is_written.swap(true, Ordering::Relaxed);
        let rows = if is_repeated { self.answer.returned_rows } else { 0 };
        state(context).count_items(rows)
    }

    /// Writes rows on the current thread, or on a thread of their own if there are many.
    async fn written(&self, write: impl FnOnce() -> Bytes + Send + 'static) -> Bytes {
        over_rows(self.answer.returned_rows, write).await
    }
}

/// Returns the duration of a query in milliseconds, with at most three decimals.
fn milliseconds(answer: &Answer) -> f64 {
    (answer.duration.as_secs_f64() * 1_000_000.0).round() / 1_000.0
}

fn granularity(column: &ResultColumn) -> Option<terrane_compiler::types::Granularity> {
    match &column.format {
        ColumnFormat::Date(granularity)
        | ColumnFormat::Clock(granularity)
        | ColumnFormat::InstantBucket(granularity, _) => Some(*granularity),
        _ => None,
    }
}

/// Returns the presentation of a column's member, or `None` for a computed column.
fn presentation<'m>(model: &'m Model, key: &str, cube: Option<&str>) -> Option<&'m Presentation> {
    let member: MemberRef = key.parse().ok()?;
    let named = member.cube().or(cube).and_then(|cube| model.cube_named(cube)?.member(member.member()));
    match named {
        Some(Member::Measure(id)) => Some(&model.measure(id).presentation),
        Some(Member::Dimension(id)) => Some(&model.dimension(id).presentation),
        _ => model.metric_named(key).map(|id| &model.metric(id).presentation),
    }
}
