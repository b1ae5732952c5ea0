//! What comes of a query: its rows, all at once or as they come, and what is known of them.

use std::fmt;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures_util::stream::BoxStream;
use terrane_compiler::sql::{CompiledSql, ResultColumn};

use super::RunError;

/// The rows of a query, in columns.
#[derive(Debug)]
pub struct Answer {
    pub sql: String,
    /// The first columns of the batches, in order.
    pub columns: Vec<ResultColumn>,
    /// Of the batches, also where there are none.
    pub schema: SchemaRef,
    pub batches: Vec<RecordBatch>,
    pub returned_rows: u64,
    /// `None` when it was not asked for.
    pub total_rows: Option<u64>,
    /// `None` when they were not asked for, or there is no measure.
    pub totals: Option<Totals>,
    /// More groups follow behind this page. `None`: not known, since the total was not asked for.
    pub truncated: Option<bool>,
    /// What a person should know of these rows.
    pub warnings: Vec<String>,
    pub cache_key: String,
    pub duration: Duration,
}

/// Each measure without dimensions: one row.
#[derive(Debug)]
pub struct Totals {
    pub columns: Vec<ResultColumn>,
    pub batches: Vec<RecordBatch>,
}

/// An answer whose rows are still to come.
pub struct AnswerStream {
    pub sql: String,
    /// The first columns of the batches, in order.
    pub columns: Vec<ResultColumn>,
    pub schema: SchemaRef,
    /// `None` when it was not asked for.
    pub total_rows: Option<u64>,
    /// `None` when they were not asked for, or there is no measure.
    pub totals: Option<Totals>,
    /// As far as it can be told before the rows.
    pub truncated: Option<bool>,
    pub warnings: Vec<String>,
    pub cache_key: String,
    /// Without a [`Piece::End`] the answer is not whole.
    pub pieces: BoxStream<'static, Result<Piece, RunError>>,
}

#[derive(Debug)]
pub enum Piece {
    Rows(RecordBatch),
    End { returned_rows: u64, truncated: Option<bool>, duration: Duration },
}

/// Small answers are whole, so that a late failure is still a refusal; large ones come as they are
/// read, in bounded memory.
#[derive(Debug)]
pub enum Opened {
    Whole(Answer),
    Streamed(AnswerStream),
}

/// How much a caller may ask for at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Up to `max_limit` rows.
    Page,
    /// Up to `max_export_rows` rows.
    Export,
}

impl fmt::Debug for AnswerStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnswerStream").field("sql", &self.sql).finish_non_exhaustive()
    }
}

/// Whether groups follow behind a page.
pub(super) fn truncated(sql: &CompiledSql, returned: u64, total: Option<u64>) -> Option<bool> {
    match total {
        // A page behind the end cuts nothing off.
        Some(total) => Some(total > sql.offset.saturating_add(returned)),
        None if sql.limit.is_some_and(|limit| returned >= limit) => None,
        None => Some(false),
    }
}

/// What a person should know of the rows of a page.
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
            warnings.push(format!("these are {returned} of {total} rows, since no `limit` was sent"));
        }
        _ => {}
    }
    warnings
}
