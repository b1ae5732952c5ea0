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
    /// A mistake that matching is to make, for tests that must find it.
    #[doc(hidden)]
    pub flaw: Option<Flaw>,
}

/// A condition of matching that a test can switch off.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// States under other filters are taken for a measure's own.
    OtherFilters,
    /// The number of rows is taken for the number of values.
    RowsForValues,
    /// Counts of distinct values are added up.
    AddedDistinct,
    /// Row filters over columns that are not stored are left out.
    MissingFilter,
    /// Segments that are not stored are left out.
    MissingSegment,
    /// A rollup of some rows is taken for one of all.
    FilteredRollup,
    /// Weeks are put together to months.
    NestedWeeks,
    /// Buckets of one zone are taken for those of another.
    OtherZone,
    /// Buckets of hours serve zones with other offsets.
    BrokenHours,
    /// Ends of ranges are moved out to edges of buckets.
    WiderRange,
    /// Rows beside whole buckets are left out.
    NarrowerRange,
    /// Partitions that are not ready count as empty.
    Uncovered,
    /// Rows of tables are also read from the cube.
    ReadTwice,
    /// Tables of other definitions are read.
    OtherDefinition,
    /// Row filters of policies on the cube are left out.
    OpenRows,
    /// Row filters of policies on joined cubes are left out.
    OpenJoins,
    /// Tables of any age are read.
    AnyAge,
    /// A mean is a sum over the number of rows.
    MeanOverRows,
    /// Members are taken from other joins than those of the query.
    OtherPath,
    /// Conditions on rows behind to-many joins are left out.
    ToManyFilter,
    /// Groups that a mask merges are taken for stored groups.
    MaskedGroups,
    /// Tables of the same time are all read.
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
    /// The fingerprint of the definitions that it was built of.
    pub fingerprint: Fingerprint,
    pub generation: u64,
    /// The smallest and the largest value of the time column in the data that was read, in microseconds since 1970.
    /// `None`: unknown, or the rollup has no time.
    pub extent: Option<[i64; 2]>,
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

    /// Removes a rollup: queries read the rows instead.
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
    /// Makes the parts of a table's name from what they are called, to be quoted.
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
