//! The tables of a pre-aggregation that a fact is read from, instead of its cube's rows.
//!
//! In: made by matching (`rollup`). Out: what `sql::lower` reads. A fact keeps its joins and filters: they say what is
//! read, and they apply to the stretch of time that no table covers. Absent: the choice of a pre-aggregation.

use jiff::Timestamp;

use crate::model::{ColumnName, Rollup};
use crate::query::Predicate;
use crate::types::Value;

/// The stored rows that answer one fact.
#[derive(Debug)]
pub struct StoredRows<'m> {
    pub rollup: &'m Rollup,
    pub generation: u64,
    /// Each moment of time is in one of them at most.
    pub tables: Vec<StoredTable>,
    /// Positions of the fact's row filters that apply to stored rows. The others are met by the choice of tables.
    pub filters: Vec<usize>,
    /// In the order of the fact's segments.
    pub segments: Vec<StoredSegment>,
    /// In the order of the plan's aggregates; `None` for those of other facts.
    pub states: Vec<Option<StoredState>>,
    /// The rows of the cube that no table covers, which are read from the cube. `None`: there are none.
    pub remainder: Option<Predicate>,
    /// Rows of the tables.
    pub rows: u64,
    /// The time at which the oldest of the tables was read from the cube.
    pub built_at: Timestamp,
}

/// One table, or a stretch of it.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredTable {
    pub relation: Vec<ColumnName>,
    /// The first bucket, and the first that is not read. `None`: all rows.
    pub cut: Option<[Option<Value>; 2]>,
}

/// The way in which a segment applies to stored rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredSegment {
    /// The stored flag at this position says which rows pass.
    Flag(usize),
    /// All stored rows pass.
    Passed,
    /// Its condition is evaluated on stored columns.
    Computed,
}

/// The computation of an aggregate from stored rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredState {
    pub source: StateSource,
    /// The aggregate's own filters are evaluated on stored rows. Else the state was computed under them.
    pub applies_filters: bool,
}

/// Positions are those of the rollup's states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateSource {
    /// States of one group are merged.
    Merged(usize),
    /// The mean of a sum over a count.
    Mean { sum: usize, count: usize },
    /// Each group has one stored row.
    Single(usize),
    /// The aggregate is taken over stored columns, and does not depend on how often a value occurs.
    Distinct,
}
