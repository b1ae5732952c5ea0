//! The state of built pre-aggregations, as the compiler needs it.
//!
//! In: made by the caller from what was published. Out: what matching reads. Absent: builds that run or failed.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;

use crate::model::{ColumnName, Fingerprint};

/// A half-open range of buckets by their starts, in microseconds since 1970: local time for days and more of instants,
/// else as the column has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BucketRange {
    pub start: i64,
    pub end: i64,
}

impl BucketRange {
    pub fn is_empty(&self) -> bool {
        self.end <= self.start
    }

    /// Returns the buckets that both have.
    #[must_use]
    pub fn intersection(&self, other: &BucketRange) -> BucketRange {
        BucketRange { start: self.start.max(other.start), end: self.end.min(other.end) }
    }
}

/// The pre-aggregations that queries may read. The default has none.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReadyRollups {
    /// By the names of the cube and of the rollup.
    cubes: HashMap<Arc<str>, HashMap<Arc<str>, ReadyRollup>>,
}

/// The published generation of one rollup.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadyRollup {
    /// The fingerprint of the definitions that it was built of.
    pub fingerprint: Fingerprint,
    pub generation: u64,
    /// Disjoint, in any order.
    pub partitions: Vec<ReadyPartition>,
}

/// One immutable table.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadyPartition {
    /// The parts of the table's name, outermost first.
    pub relation: Vec<ColumnName>,
    /// `None`: all rows, those without a time included.
    pub range: Option<BucketRange>,
    pub rows: u64,
    /// The time at which its data was read.
    pub built_at: Timestamp,
}

impl ReadyRollups {
    /// Adds a rollup, or replaces the generation that it had.
    pub fn insert(&mut self, cube: impl Into<Arc<str>>, name: impl Into<Arc<str>>, rollup: ReadyRollup) {
        self.cubes.entry(cube.into()).or_default().insert(name.into(), rollup);
    }

    pub fn get(&self, cube: &str, name: &str) -> Option<&ReadyRollup> {
        self.cubes.get(cube)?.get(name)
    }

    pub fn is_empty(&self) -> bool {
        self.cubes.is_empty()
    }
}

impl ReadyPartition {
    /// Makes the parts of a table's name from what they are called, to be quoted.
    pub fn relation_of<'a>(parts: impl IntoIterator<Item = &'a str>) -> Vec<ColumnName> {
        parts.into_iter().map(|part| ColumnName { text: part.into(), quoted: true }).collect()
    }
}
