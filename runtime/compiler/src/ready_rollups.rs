//! The state of built pre-aggregations.
//!
//! In: made by the caller from published generations. Out: the input of matching. Absent: builds that run or failed.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;

use crate::model::{ColumnName, Fingerprint};

/// A range of buckets by their starts, in microseconds since 1970, without its end: local time for buckets of a day or
/// more of an instant, else the column's own values.
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
    /// The rollups by the names of the cube and of the rollup.
    cubes: HashMap<Arc<str>, HashMap<Arc<str>, ReadyRollup>>,
    /// A fault that matching shall have, for tests that must detect it.
    #[doc(hidden)]
    pub flaw: Option<Flaw>,
}

/// A condition of matching that a test can switch off.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// States with other filters are used as a measure's own.
    OtherFilters,
    /// The number of rows is used as the number of values.
    RowsForValues,
    /// Counts of distinct values are added up.
    AddedDistinct,
    /// Row filters over columns that are not stored are left out.
    MissingFilter,
    /// Segments that are not stored are left out.
    MissingSegment,
    /// A rollup of some rows is used as one of all rows.
    FilteredRollup,
    /// Weeks are put together to months.
    NestedWeeks,
    /// Buckets of one time zone are used as those of another.
    OtherZone,
    /// Buckets of hours are used for time zones with other offsets.
    BrokenHours,
    /// Ranges are widened to whole buckets.
    WiderRange,
    /// Rows outside whole buckets are left out.
    NarrowerRange,
    /// Partitions that are not ready count as empty.
    Uncovered,
    /// Rows that tables cover are read from the cube as well.
    ReadTwice,
    /// Tables of other definitions are read.
    OtherDefinition,
    /// Row filters of policies on the cube are left out.
    OpenRows,
    /// Row filters of policies on joined cubes are left out.
    OpenJoins,
    /// Tables of any age are read.
    AnyAge,
    /// A mean is computed as a sum divided by the number of rows.
    MeanOverRows,
    /// Members are taken from other joins than those of the query.
    OtherPath,
    /// Conditions on rows behind to-many joins are left out.
    ToManyFilter,
    /// Groups that a mask merges are used as stored groups.
    MaskedGroups,
    /// Several tables over the same time are all read.
    Overlapping,
    /// Steps are taken for finer ones.
    FinerSteps,
    /// Rows without a time are left out.
    LostNulls,
    /// Conditions on times are evaluated on steps.
    RawTimes,
}

/// The published generation of one rollup.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadyRollup {
    /// The fingerprint of the definitions that the tables were built from.
    pub fingerprint: Fingerprint,
    pub generation: u64,
    /// The smallest and the largest value of the time column in the data that was read, in microseconds since the Unix
    /// epoch. `None` if they are unknown, or if the rollup has no time.
    pub extent: Option<[i64; 2]>,
    /// Disjoint, in any order.
    pub partitions: Vec<ReadyPartition>,
}

/// One immutable table.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadyPartition {
    /// The parts of the table's name, outermost first.
    pub relation: Vec<ColumnName>,
    /// The range of buckets; `None` for all rows, including those without a time.
    pub range: Option<BucketRange>,
    pub rows: u64,
    /// The time at which its data was read.
    pub built_at: Timestamp,
}

impl ReadyRollups {
    /// Adds a rollup, or replaces its earlier generation.
    pub fn insert(&mut self, cube: impl Into<Arc<str>>, name: impl Into<Arc<str>>, rollup: ReadyRollup) {
        self.cubes.entry(cube.into()).or_default().insert(name.into(), rollup);
    }

    /// Removes a rollup, so that queries read the rows of the cube.
    pub fn remove(&mut self, cube: &str, name: &str) {
        if let Some(rollups) = self.cubes.get_mut(cube) {
            rollups.remove(name);
        }
    }

    pub fn get(&self, cube: &str, name: &str) -> Option<&ReadyRollup> {
        self.cubes.get(cube)?.get(name)
    }

    pub fn is_empty(&self) -> bool {
        self.cubes.values().all(HashMap::is_empty)
    }
}

impl ReadyPartition {
    /// Makes a table's name of its parts, which are quoted when they are printed.
    pub fn relation_of<'a>(parts: impl IntoIterator<Item = &'a str>) -> Vec<ColumnName> {
        parts.into_iter().map(|part| ColumnName { text: part.into(), quoted: true }).collect()
    }
}

impl Flaw {
    pub const ALL: [Flaw; 25] = [
        Flaw::OtherFilters,
        Flaw::RowsForValues,
        Flaw::AddedDistinct,
        Flaw::MissingFilter,
        Flaw::MissingSegment,
        Flaw::FilteredRollup,
        Flaw::NestedWeeks,
        Flaw::OtherZone,
        Flaw::BrokenHours,
        Flaw::WiderRange,
        Flaw::NarrowerRange,
        Flaw::Uncovered,
        Flaw::ReadTwice,
        Flaw::OtherDefinition,
        Flaw::OpenRows,
        Flaw::OpenJoins,
        Flaw::AnyAge,
        Flaw::MeanOverRows,
        Flaw::OtherPath,
        Flaw::ToManyFilter,
        Flaw::MaskedGroups,
        Flaw::Overlapping,
        Flaw::FinerSteps,
        Flaw::LostNulls,
        Flaw::RawTimes,
    ];
}
