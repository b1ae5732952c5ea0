//! The tables of a pre-aggregation that a fact is read from instead of its cube's rows.
//!
//! In: the outcome of matching (`rollup`). Out: the input of `sql::lower`. The fact's joins and filters are unchanged:
//! they define the rows, and they apply to the range of time that no table covers. Not here: the choice of a
//! pre-aggregation.

use jiff::Timestamp;

use crate::model::{ColumnName, Rollup};
use crate::query::Predicate;
use crate::types::Value;

/// The stored rows that answer one fact.
#[derive(Debug)]
pub struct StoredRows<'m> {
    pub rollup: &'m Rollup,
    pub generation: u64,
    /// The tables. Each moment of time is in at most one of them.
    pub tables: Vec<StoredTable>,
    /// The positions of the fact's row filters that apply to stored rows. The choice of tables ensures that all other
    /// row filters hold.
    pub filters: Vec<usize>,
    /// The segments, in the order of the fact's segments.
    pub segments: Vec<StoredSegment>,
    /// The states, in the order of the plan's aggregates; `None` for those of other facts.
    pub states: Vec<Option<StoredState>>,
    /// The condition of the rows that no table covers, which are read from the cube; `None` if there are none.
    pub remainder: Option<Predicate>,
    /// The number of rows in the tables.
    pub rows: u64,
    /// The time at which the oldest of the tables was read from the cube.
    pub built_at: Timestamp,
}

/// One table, or a range of its buckets.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredTable {
    pub relation: Vec<ColumnName>,
    /// The first bucket that is read, and the first bucket after the range. `None` reads all rows.
    pub cut: Option<[Option<Value>; 2]>,
}

/// The way in which a segment applies to stored rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredSegment {
    /// The stored flag at this position says which rows pass.
    Flag(usize),
    /// All stored rows pass.
    Passed,
    /// The segment's condition is evaluated on stored columns.
    Computed,
}

/// The computation of an aggregate from stored rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredState {
    pub source: StateSource,
    /// True if the aggregate's own filters are evaluated on stored rows; false if the state was computed under them.
    pub applies_filters: bool,
}

/// The computation from states, by their positions in the rollup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateSource {
    /// States of one group are merged.
    Merged(usize),
    /// A mean: a sum divided by a count.
    Mean { sum: usize, count: usize },
    /// Each group has one stored row.
    Single(usize),
    /// An aggregate over stored columns that does not depend on how often a value occurs.
    Distinct,
}
