//! The state of built pre-aggregations.
//!
//! In: the published generations, which the caller reads. Out: the input of matching. Not here: builds that run or
//! failed.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use rustc_hash::FxHashMap;

use crate::model::{ColumnName, Fingerprint};
use crate::types::Granularity;

/// A range of buckets, given by the starts of its first bucket and of the first bucket after it, in microseconds since
/// 1970. The starts are local times if buckets of an instant last a day or more. Otherwise they are values of the
/// column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BucketRange {
    pub start: i64,
    pub end: i64,
}

impl BucketRange {
    pub fn is_empty(&self) -> bool {
        self.end <= self.start
    }

    /// Returns the buckets that both ranges contain.
    #[must_use]
    pub fn intersection(&self, other: &BucketRange) -> BucketRange {
        BucketRange { start: self.start.max(other.start), end: self.end.min(other.end) }
    }
}

/// The pre-aggregations that queries may read. The default has none.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReadyRollups {
    /// The tables by the names of the cube and of the rollup.
    cubes: FxHashMap<Arc<str>, FxHashMap<Arc<str>, ReadyTables>>,
    /// True if pre-aggregations are switched off, so that none is ever built.
    pub(crate) is_disabled: bool,
    planted: PlantedFlaw,
}

/// A published generation, and its timeline, which matching computes at first use.
#[derive(Debug, Clone)]
pub(crate) struct ReadyTables {
    pub(crate) rollup: ReadyRollup,
    timeline: OnceLock<Timeline>,
}

/// Compares the generations only, because the timeline is computed from the generation.
impl PartialEq for ReadyTables {
    fn eq(&self, other: &Self) -> bool {
        self.rollup == other.rollup
    }
}

/// The steps of time that determine where partitions begin and end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeSteps<'z> {
    pub(crate) step: Granularity,
    /// The zone of local steps.
    pub(crate) zone: Option<&'z TimeZone>,
}

/// The partitions of a generation, as stretches of the time column.
#[derive(Debug, Clone)]
pub(crate) struct Timeline {
    step: Granularity,
    zone: Option<TimeZone>,
    /// The partitions in the order of their starts; `None` if a range does not begin and end on edges of buckets.
    partitions: Option<Vec<TimedPartition>>,
    /// True if each partition ends before the next one begins.
    is_disjoint: bool,
    /// The sums over the partitions before each position, and over all of them; empty unless the partitions are
    /// disjoint and none of them is empty.
    sums: Vec<TimelineSums>,
}

/// Sums over the first partitions of a timeline.
#[derive(Debug, Clone, Copy, Default)]
struct TimelineSums {
    rows: u64,
    /// The number of gaps: partitions that begin after the end of the previous partition.
    gaps: usize,
}

/// The partitions of a timeline that have rows in a stretch of time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimelineRun {
    pub(crate) first: TimedPartition,
    pub(crate) last: TimedPartition,
    /// The number of rows in all partitions from the first to the last.
    pub(crate) rows: u64,
    /// True if there is a gap between two of the partitions.
    pub(crate) has_gap: bool,
}

/// A partition by its position, and its stretch of time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimedPartition {
    pub(crate) position: usize,
    pub(crate) moments: Stretch,
}

/// A half-open stretch of time in microseconds; an open side is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) start: Option<i64>,
    pub(crate) end: Option<i64>,
}

/// The deliberate mistake of matching, for tests that must find it. Programs without the feature `planted-flaws` never
/// make one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PlantedFlaw {
    #[cfg(feature = "planted-flaws")]
    flaw: Option<Flaw>,
}

#[cfg(feature = "planted-flaws")]
impl PlantedFlaw {
    pub(crate) fn is(self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }
}

#[cfg(not(feature = "planted-flaws"))]
impl PlantedFlaw {
    #[inline]
    pub(crate) const fn is(self, _: Flaw) -> bool {
        false
    }
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
    /// Buckets of weeks are added up to months.
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
    /// Members are taken from joins that differ from those of the query.
    OtherPath,
    /// Conditions on rows behind to-many joins are left out.
    ToManyFilter,
    /// Groups that a mask merges are used as stored groups.
    MaskedGroups,
    /// Several tables over the same time are all read.
    Overlapping,
    /// Stored steps are used for queries that need finer ones.
    FinerSteps,
    /// Rows without a time are left out.
    LostNulls,
    /// Conditions on times are evaluated on steps.
    RawTimes,
    /// States over other columns are used as a measure's own.
    OtherArgument,
    /// Masks that need columns or times that are not stored are applied to what is stored.
    AnyMask,
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
    /// The partitions, which are disjoint and in any order.
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
    /// Returns the state of a server whose pre-aggregations are switched off.
    pub fn disabled() -> Self {
        ReadyRollups { is_disabled: true, ..ReadyRollups::default() }
    }

    /// Adds a rollup, or replaces its earlier generation.
    pub fn insert(&mut self, cube: impl Into<Arc<str>>, name: impl Into<Arc<str>>, rollup: ReadyRollup) {
        let tables = ReadyTables { rollup, timeline: OnceLock::new() };
        self.cubes.entry(cube.into()).or_default().insert(name.into(), tables);
    }

    /// Removes a rollup, so that queries read the rows of the cube.
    pub fn remove(&mut self, cube: &str, name: &str) {
        if let Some(rollups) = self.cubes.get_mut(cube) {
            rollups.remove(name);
        }
    }

    pub fn get(&self, cube: &str, name: &str) -> Option<&ReadyRollup> {
        Some(&self.of_cube(cube)?.get(name)?.rollup)
    }

    pub fn is_empty(&self) -> bool {
        self.cubes.values().all(FxHashMap::is_empty)
    }

    /// Switches off a condition of matching, so that a test can check that the wrong answers are found. `None` keeps
    /// all conditions.
    #[cfg(feature = "planted-flaws")]
    #[doc(hidden)]
    pub fn plant(&mut self, flaw: Option<Flaw>) {
        self.planted = PlantedFlaw { flaw };
    }

    pub(crate) fn planted(&self) -> PlantedFlaw {
        self.planted
    }

    /// Returns the rollups of a cube, by their names.
    pub(crate) fn of_cube(&self, cube: &str) -> Option<&FxHashMap<Arc<str>, ReadyTables>> {
        self.cubes.get(cube)
    }
}

impl ReadyTables {
    /// Returns the partitions as stretches of time. The timeline for the steps of the first call is cached. Later calls
    /// normally have the same steps, because the rollup's fingerprint decides them.
    pub(crate) fn timeline(
        &self,
        steps: TimeSteps<'_>,
        moments: impl Fn(BucketRange) -> Option<Stretch>,
    ) -> Cow<'_, Timeline> {
        let timeline = self.timeline.get_or_init(|| self.compute(steps, &moments));
        match timeline.is_of(steps) {
            true => Cow::Borrowed(timeline),
            false => Cow::Owned(self.compute(steps, &moments)),
        }
    }

    fn compute(&self, steps: TimeSteps<'_>, moments: &impl Fn(BucketRange) -> Option<Stretch>) -> Timeline {
        let timed = |(position, partition): (usize, &ReadyPartition)| {
            let moments = partition.range.map_or(Some(Stretch::default()), moments)?;
            Some(TimedPartition { position, moments })
        };
        let mut partitions: Option<Vec<TimedPartition>> =
            self.rollup.partitions.iter().enumerate().map(timed).collect();
        if let Some(partitions) = &mut partitions {
            partitions.sort_by_key(|partition| partition.moments.start);
        }
        let is_before = |pair: &[TimedPartition]| pair[0].moments.is_before(pair[1].moments);
        let is_disjoint = partitions.iter().all(|partitions| partitions.windows(2).all(is_before));
        let sums = match &partitions {
            Some(all) if is_disjoint && all.iter().all(|each| !each.moments.is_empty()) => self.sums(all),
            _ => Vec::new(),
        };
        Timeline { step: steps.step, zone: steps.zone.cloned(), partitions, is_disjoint, sums }
    }

    fn sums(&self, sorted: &[TimedPartition]) -> Vec<TimelineSums> {
        let mut sum = TimelineSums::default();
        let mut sums = vec![sum];
        for (index, timed) in sorted.iter().enumerate() {
            sum.rows += self.rollup.partitions[timed.position].rows;
            sum.gaps += usize::from(index > 0 && sorted[index - 1].moments.end != timed.moments.start);
            sums.push(sum);
        }
        sums
    }
}

impl Timeline {
    fn is_of(&self, steps: TimeSteps<'_>) -> bool {
        let is_zone = match (&self.zone, steps.zone) {
            (None, None) => true,
            // Zones are compared by name, because all of them come from one database.
            (Some(own), Some(zone)) => own.iana_name().is_some() && own.iana_name() == zone.iana_name(),
            _ => false,
        };
        is_zone && self.step == steps.step
    }

    /// Returns all partitions that may have rows of a stretch. The result may contain other partitions too. `None` if
    /// `partitions` is `None`.
    pub(crate) fn near(&self, wanted: Stretch) -> Option<&[TimedPartition]> {
        let partitions = self.partitions.as_ref()?;
        Some(&partitions[self.positions(partitions, wanted)])
    }

    /// Returns the partitions that have rows of a stretch, without a look at each of them. `None` if none has, or if
    /// the partitions overlap.
    pub(crate) fn run(&self, wanted: Stretch) -> Option<TimelineRun> {
        let partitions = self.partitions.as_ref().filter(|_| !self.sums.is_empty())?;
        let near = self.positions(partitions, wanted);
        let (first, last) = (partitions[near.clone()].first()?, partitions[near.clone()].last()?);
        let (before, after) = (self.sums[near.start], self.sums[near.end]);
        let has_gap = after.gaps != self.sums[near.start + 1].gaps;
        Some(TimelineRun { first: *first, last: *last, rows: after.rows - before.rows, has_gap })
    }

    fn positions(&self, partitions: &[TimedPartition], wanted: Stretch) -> Range<usize> {
        let end = wanted.end.map_or(partitions.len(), |end| {
            partitions.partition_point(|partition| partition.moments.start.is_none_or(|start| start < end))
        });
        let start = wanted.start.filter(|_| self.is_disjoint).map_or(0, |start| {
            partitions[..end].partition_point(|partition| partition.moments.end.is_some_and(|end| end <= start))
        });
        start..end
    }
}

impl Stretch {
    pub(crate) fn is_empty(self) -> bool {
        self.start.zip(self.end).is_some_and(|(start, end)| start >= end)
    }

    #[inline]
    pub(crate) fn overlaps(self, other: Stretch) -> bool {
        let start = self.start.max(other.start);
        let end = match (self.end, other.end) {
            (Some(end), Some(other)) => Some(end.min(other)),
            (end, other) => end.or(other),
        };
        !Stretch { start, end }.is_empty()
    }

    /// Returns whether the whole stretch is before another stretch.
    pub(crate) fn is_before(self, other: Stretch) -> bool {
        self.end.is_some() && self.end <= other.start
    }
}

impl ReadyPartition {
    /// Creates a table's name from its parts, which are quoted when they are printed.
    pub fn relation_of<'a>(parts: impl IntoIterator<Item = &'a str>) -> Vec<ColumnName> {
        parts.into_iter().map(|part| ColumnName { text: part.into(), quoted: true }).collect()
    }
}

#[cfg(feature = "planted-flaws")]
impl Flaw {
    pub const ALL: [Flaw; 27] = [
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
        Flaw::OtherArgument,
        Flaw::AnyMask,
    ];
}
