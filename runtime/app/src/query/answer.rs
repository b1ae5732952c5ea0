//! The answer of a query: its rows, whole or as a stream, and facts about them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{Array as _, AsArray as _, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, SchemaRef};
use futures_util::stream::BoxStream;
use jiff::Timestamp;
use terrane_compiler::model::CubeId;
use terrane_compiler::query::FactMatch;
use terrane_compiler::sql::{CompiledSql, ResultColumn};

use super::QueryRunError;
use crate::domain::DataVersion;
use crate::ports::result_cache::StoredResult;

/// The rows of a query, in columns.
#[derive(Debug)]
pub struct Answer {
    pub sql: String,
    /// The columns that a client sees: the first columns of the batches, in this order.
    pub columns: Vec<ResultColumn>,
    /// The schema of the batches, known even if the answer has no batches.
    pub schema: SchemaRef,
    pub batches: Vec<RecordBatch>,
    pub returned_rows: u64,
    /// The number of groups before paging; `None` if the query does not request it.
    pub total_rows: Option<u64>,
    /// The totals; `None` if the query does not request them, or has no measure.
    pub totals: Option<Totals>,
    /// True if groups follow after this page; `None` if this is unknown because the total was not requested.
    pub truncated: Option<bool>,
    /// Warnings for the reader of these rows.
    pub warnings: Vec<String>,
    pub cache_key: String,
    pub freshness: Freshness,
    /// For each fact, the pre-aggregation that was read, or the reasons why none was. Reasons that come from policies
    /// are left out.
    pub pre_aggregations: Vec<FactMatch>,
    /// The cubes whose rows determine the result, as ids of the project that the query ran over.
    pub cubes: Vec<CubeId>,
    /// The version of the data; `None` if it is unknown.
    pub version: Option<DataVersion>,
    /// True if another run over the same data may have a different result.
    pub is_changing: bool,
    /// The stored result that the rows come from, if other queries may get it too.
    pub shared: Option<Arc<StoredResult>>,
    pub duration: Duration,
}

/// The time and the source of the rows of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Freshness {
    /// The rows are at least as new as the data at this time.
    pub as_of: Timestamp,
    /// True if the rows come from the cache.
    pub is_cached: bool,
    /// True if the data has changed since `as_of`, or the time for which the rows may be reused has passed.
    pub is_stale: bool,
    /// The time since `as_of`.
    pub age: Duration,
}

impl Freshness {
    /// Returns the freshness of rows from pre-aggregated tables, which are only as new as the oldest table.
    #[must_use]
    pub(super) fn with_tables(self, oldest: Option<Timestamp>) -> Freshness {
        let as_of = oldest.map_or(self.as_of, |oldest| oldest.min(self.as_of));
        let since = Duration::try_from(self.as_of.duration_since(as_of)).unwrap_or_default();
        Freshness { as_of, age: self.age.saturating_add(since), ..self }
    }
}

/// The value of each measure without dimensions, in one row.
#[derive(Debug, Clone)]
pub struct Totals {
    pub columns: Vec<ResultColumn>,
    pub batches: Vec<RecordBatch>,
}

/// An answer whose rows are read as a stream.
pub struct AnswerStream {
    pub sql: String,
    /// The columns that a client sees: the first columns of the batches, in this order.
    pub columns: Vec<ResultColumn>,
    pub schema: SchemaRef,
    /// The number of groups before paging; `None` if the query does not request it.
    pub total_rows: Option<u64>,
    /// The totals; `None` if the query does not request them, or has no measure.
    pub totals: Option<Totals>,
    /// True if groups follow after this page; `None` if this is unknown before the rows are read.
    pub truncated: Option<bool>,
    pub warnings: Vec<String>,
    pub cache_key: String,
    pub freshness: Freshness,
    /// The pre-aggregations, as in [`Answer::pre_aggregations`].
    pub pre_aggregations: Vec<FactMatch>,
    /// The rows. A stream without a [`Piece::End`] is incomplete.
    pub pieces: BoxStream<'static, Result<Piece, QueryRunError>>,
}

/// A part of a streamed answer.
#[derive(Debug)]
pub enum Piece {
    Rows(RecordBatch),
    End { returned_rows: u64, truncated: Option<bool>, duration: Duration },
}

/// The answer to an opened query. A small answer is read whole before it is returned, so that a failure in its last
/// rows is still an error. A large answer is read as a stream, in bounded memory.
#[derive(Debug)]
pub enum Opened {
    Whole(Answer),
    Streamed(AnswerStream),
}

impl fmt::Debug for AnswerStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnswerStream").field("sql", &self.sql).finish_non_exhaustive()
    }
}

/// Returns whether groups follow after a page; `None` if this is unknown.
pub(super) fn truncated(sql: &CompiledSql, returned: u64, total: Option<u64>) -> Option<bool> {
    match total {
        // A page that begins after the last group cuts nothing off.
        Some(total) => Some(total > sql.offset.saturating_add(returned)),
        None if sql.limit.is_some_and(|limit| returned >= limit) => None,
        None => Some(false),
    }
}

/// Returns the warnings for the reader of a page.
pub(super) fn warnings(
    sql: &CompiledSql,
    has_limit: bool,
    truncated: Option<bool>,
    returned: u64,
    total: Option<u64>,
) -> Vec<String> {
    let mut warnings = sql.warnings.clone();
    let is_full = sql.limit.is_some_and(|limit| returned >= limit);
    match (sql.most_rows, truncated, total) {
        (Some(most), Some(true) | None, _) if is_full => {
            let rows = if most == 1 { "row" } else { "rows" };
            warnings.push(format!("a policy allows at most {most} {rows}"));
        }
        (_, Some(true), Some(total)) if !has_limit => {
            warnings.push(format!("the result has {returned} of {total} rows, because the query has no `limit`"));
        }
        _ => {}
    }
    warnings
}

pub(super) fn row_count(batches: &[RecordBatch]) -> u64 {
    batches.iter().map(|batch| batch.num_rows() as u64).sum()
}

/// Returns the first value of a column as an integer. The cast is needed because engines differ in the type of sums.
pub(super) fn first_integer(batches: &[RecordBatch], column: usize) -> Option<u64> {
    let batch = batches.iter().find(|batch| batch.num_rows() > 0)?;
    let array = batch.columns().get(column)?.slice(0, 1);
    let integers = cast(&array, &DataType::Int64).ok()?;
    let integers = integers.as_primitive_opt::<Int64Type>()?;
    integers.is_valid(0).then(|| u64::try_from(integers.value(0)).ok())?
}
