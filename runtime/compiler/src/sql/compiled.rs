//! The output of the compiler: one statement, its bound values, and the meanings of its columns.

use std::sync::Arc;

use jiff::tz::TimeZone;

use crate::model::{CubeId, DimensionType};
use crate::query::FactMatch;
use crate::types::{Granularity, Value};

/// A statement ready to run. Only the printer makes one, from a secured plan.
#[derive(Debug, Clone)]
pub struct CompiledSql {
    pub text: String,
    /// In the order of their placeholders.
    pub params: Vec<Value>,
    /// The columns a client sees: the first `columns.len()` of the result set, in this order.
    pub columns: Vec<ResultColumn>,
    /// Index of a further column that holds the number of groups before paging, the same in each row.
    pub total_column: Option<usize>,
    /// Index of a further column that holds how many rows were added for steps of time, the same in
    /// each row; over [`MAX_ADDED_ROWS`] the query is refused.
    pub added_column: Option<usize>,
    /// The page as asked for, so that `total_rows` can be told when it isn't full.
    pub limit: Option<u64>,
    pub offset: u64,
    /// The rows of all pages together that policies allow, where this page was to reach beyond them.
    pub most_rows: Option<u64>,
    /// Every cube whose rows decide the result, also those that only policies and filters read. Each comes once, an
    /// alias as the cube behind it.
    pub cubes: Vec<CubeId>,
    /// For each part of the query that is aggregated on its own: the pre-aggregation that it reads, or why none.
    /// Empty if no cube that it reads has pre-aggregations.
    pub rollups: Vec<FactMatch>,
    /// Notes about the answer for people, such as a path between cubes that another equals.
    pub warnings: Vec<String>,
}

/// Rows that one answer may get for steps of time that have none (semantics, rule 8).
pub const MAX_ADDED_ROWS: u64 = crate::query::MAX_STEPS;

/// One column of the answer.
#[derive(Debug, Clone, PartialEq)]
pub struct ResultColumn {
    /// The row's key: the member as the client wrote it.
    pub key: Arc<str>,
    pub is_measure: bool,
    /// The type of the values, independent of the warehouse's type.
    pub ty: DimensionType,
    pub format: ColumnFormat,
}

/// The format of a column's values (semantics, rules 16 and 18).
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnFormat {
    /// As its Arrow type says.
    Plain,
    /// A time bucket of a day or more, as a local date or timestamp at its start.
    Date(Granularity),
    /// A bucket finer than a day of a wall clock, or of an instant in UTC: no offset is written.
    Clock(Granularity),
    /// A bucket finer than a day as an instant, written in this zone with its offset.
    InstantBucket(Granularity, TimeZone),
    /// A time without granularity that is an instant: ISO 8601, `Z` in UTC, else the zone's offset.
    Instant(TimeZone),
    /// A time without granularity that is a wall clock: ISO 8601 without offset; a DATE as a date.
    WallClock,
}
