//! The output of the compiler: one statement, its bound values, and the meanings of its columns.

use std::sync::Arc;

use jiff::tz::TimeZone;

use super::scans::StatementShape;
use crate::model::{CubeId, DimensionType};
use crate::query::FactMatch;
use crate::types::{Granularity, Value};

/// A statement that is ready to run. Only the printer creates one, from a secured plan.
#[derive(Debug, Clone)]
pub struct CompiledSql {
    pub text: String,
    /// The values to bind, in the order of their placeholders.
    pub params: Vec<Value>,
    /// The columns a client sees: the first `columns.len()` of the result set, in this order.
    pub columns: Vec<ResultColumn>,
    /// The index of an additional column that contains the number of groups before paging, in each row.
    pub total_column: Option<usize>,
    /// The index of an additional column that contains the number of all added rows, in each row. If this number
    /// exceeds [`MAX_ADDED_ROWS`], the query is refused.
    pub added_column: Option<usize>,
    /// The requested page. `total_rows` follows from it if the page is not full.
    pub limit: Option<u64>,
    pub offset: u64,
    /// The number of rows that policies allow for all pages together, if this page would exceed it.
    pub most_rows: Option<u64>,
    /// Every cube whose rows affect the result, including those that only policies and filters read. Each cube occurs
    /// once; an alias counts as its cube.
    pub cubes: Vec<CubeId>,
    /// For each fact of the query, the pre-aggregation that it reads or the reasons why it reads none. Empty if no cube
    /// of the query has pre-aggregations.
    pub rollups: Vec<FactMatch>,
    /// The rows that the statement scans, and the size of its plan.
    pub shape: Arc<StatementShape>,
    /// Notes for the author of the query, such as a path between cubes that is as good as another.
    pub warnings: Vec<String>,
}

/// The largest number of rows that may be added to a result for steps of time without rows.
pub const MAX_ADDED_ROWS: u64 = crate::query::MAX_STEPS;

/// One column of the answer.
#[derive(Debug, Clone, PartialEq)]
pub struct ResultColumn {
    /// The key of the value in a row: the member as the client wrote it.
    pub key: Arc<str>,
    pub is_measure: bool,
    /// The type of the values, independent of the warehouse's type.
    pub ty: DimensionType,
    pub format: ColumnFormat,
}

/// The format of a column's values.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnFormat {
    /// The value as its Arrow type represents it.
    Plain,
    /// A time bucket of a day or more, as a local date or timestamp at its start.
    Date(Granularity),
    /// A bucket of less than a day, of a wall-clock time or of an instant in UTC. It is printed without an offset.
    Clock(Granularity),
    /// A bucket of less than a day as an instant, printed in this time zone with its offset.
    InstantBucket(Granularity, TimeZone),
    /// An instant without granularity, in ISO 8601: with `Z` in UTC, else with the time zone's offset.
    Instant(TimeZone),
    /// A wall-clock time without granularity, in ISO 8601 without an offset. A DATE is printed as a date.
    WallClock,
}
