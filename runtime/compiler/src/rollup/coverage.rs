//! The tables that cover a stretch of time, and the rows of the stretch that no table covers.
//!
//! In: the ready partitions of a rollup and the stretch that a fact reads. Out: tables, cut to whole buckets, and the
//! condition of the rows that no table covers. Each moment is either in a table or in the condition, because ranges are
//! half-open and never widened.

use std::borrow::Cow;

use jiff::Timestamp;

use super::RollupOf;
use crate::calendar::Calendar;
use crate::model::RollupTime;
use crate::plan::StoredTable;
use crate::query::{Bound, MissReason, Operand, Predicate, Test};
use crate::ready_rollups::{Flaw, PlantedFlaw, ReadyPartition, ReadyTables, Stretch, TimedPartition, Timeline};

/// The reason for which a rollup does not serve a fact, and the members that the reason is about.
pub(super) struct Refusal {
    pub(super) reason: MissReason,
    pub(super) members: Vec<String>,
    /// The lines to add to the rollup's definition; `None` if no line helps or the request does not show them.
    pub(super) fix: Option<String>,
}

impl Refusal {
    pub(super) fn of(reason: MissReason, members: Vec<String>) -> Self {
        Refusal { reason, members, fix: None }
    }
}

impl From<MissReason> for Refusal {
    fn from(reason: MissReason) -> Self {
        Refusal::of(reason, Vec::new())
    }
}

/// The part of a stretch of time that the tables of one generation answer.
pub(super) struct Coverage<'r> {
    source: Source<'r>,
    /// The stretch that the tables cover.
    pub(super) stretch: Stretch,
    /// True if some rows in the range are read from the cube.
    pub(super) has_remainder: bool,
    /// The number of tables.
    pub(super) tables: usize,
    /// The number of rows in the tables.
    pub(super) rows: u64,
    /// The time at which the data of the oldest table was read.
    pub(super) built_at: Timestamp,
}

/// The tables that may be read.
enum Source<'r> {
    /// The only table of a rollup without a time.
    Table(&'r ReadyPartition),
    Timed(Timed<'r>),
}

/// The tables of a rollup with a time.
struct Timed<'r> {
    time: &'r RollupTime,
    calendar: Calendar<'r>,
    timeline: Cow<'r, Timeline>,
    partitions: &'r [ReadyPartition],
    wanted: Stretch,
    planted: PlantedFlaw,
}

/// A stretch of a table, given both by moments of the time column and by buckets.
struct Piece<'r> {
    partition: &'r ReadyPartition,
    moments: Stretch,
    /// The buckets that are read; `None` for the whole table.
    buckets: Option<Stretch>,
}

/// Returns the tables that cover a stretch. Nothing is allocated.
pub(super) fn cover<'r>(
    of: RollupOf<'r>,
    ready: &'r ReadyTables,
    wanted: Stretch,
    planted: PlantedFlaw,
) -> Result<Coverage<'r>, Refusal> {
    let partitions = &ready.rollup.partitions;
    let Some(time) = &of.rollup.time else {
        let partition = partitions.first().ok_or(MissReason::NotBuilt)?;
        return Ok(Coverage {
            source: Source::Table(partition),
            stretch: Stretch::default(),
            has_remainder: false,
            tables: 1,
            rows: partition.rows,
            built_at: partition.built_at,
        });
    };
    let calendar = Calendar::new(of.model, time);
    let timeline = ready.timeline(calendar.steps(), |range| calendar.moments(range));
    Timed { time, calendar, timeline, partitions, wanted, planted }.covered()
}

/// The cost of a match: whether rows of the cube are read, and the number of rows in the tables. Rows of the cube cost
/// more than any number of rows in tables.
pub(super) type Cost = (bool, u64);

/// Returns the cost of the tables that cover a stretch, mostly without a look at each table. `None` if no table does.
pub(super) fn cost_of(of: RollupOf<'_>, ready: &ReadyTables, wanted: Stretch, planted: PlantedFlaw) -> Option<Cost> {
    let Some(time) = &of.rollup.time else { return cover(of, ready, wanted, planted).ok().map(|all| all.cost()) };
    let calendar = Calendar::new(of.model, time);
    let timeline = ready.timeline(calendar.steps(), |range| calendar.moments(range));
    let timed = Timed { time, calendar, timeline, partitions: &ready.rollup.partitions, wanted, planted };
    timed.cost().or_else(|| timed.covered().ok().map(|all| all.cost()))
}

impl Coverage<'_> {
    pub(super) fn cost(&self) -> Cost {
        (self.has_remainder, self.rows)
    }

    /// Returns the tables, cut to the stretch.
    pub(super) fn stored_tables(&self) -> Vec<StoredTable> {
        match &self.source {
            Source::Table(partition) => vec![StoredTable { relation: partition.relation.clone(), cut: None }],
            Source::Timed(timed) => timed.pieces().map(|piece| timed.table(&piece)).collect(),
        }
    }

    /// Returns the condition of the rows that are read from the cube; `None` if no rows are.
    pub(super) fn remainder(&self) -> Option<Predicate> {
        match &self.source {
            Source::Timed(timed) if self.has_remainder => timed.remainder(),
            _ => None,
        }
    }
}

impl<'r> Timed<'r> {
    /// Returns the cost that `covered` would find. `None` if only a look at each table shows it.
    fn cost(&self) -> Option<Cost> {
        let run = self.timeline.run(self.wanted)?;
        let piece = |timed: TimedPartition| self.piece(&self.partitions[timed.position], timed.moments);
        let start = piece(run.first)?.moments.start;
        let end = piece(run.last)?.moments.end;
        let has_gap = run.has_gap || start != self.wanted.start || (end.is_some() && end != self.wanted.end);
        Some((has_gap, run.rows))
    }

    fn covered(self) -> Result<Coverage<'r>, Refusal> {
        let near = self.timeline.near(self.wanted).ok_or(MissReason::NotBuilt)?;
        let mut gaps = Gaps::new(self.wanted);
        let mut has_gap = false;
        let mut stretch: Option<Stretch> = None;
        let (mut tables, mut rows) = (0, 0);
        let mut built_at: Option<Timestamp> = None;
        let mut is_ranged = false;
        for piece in self.pieces() {
            // Rows of a moment that is in two tables would count twice.
            if stretch.is_some_and(|before| !before.is_before(piece.moments)) && !self.planted.is(Flaw::Overlapping) {
                return Err(MissReason::NotBuilt.into());
            }
            has_gap |= gaps.add(piece.moments).is_some();
            let start = stretch.map_or(piece.moments.start, |before| before.start);
            stretch = Some(Stretch { start, end: piece.moments.end });
            tables += 1;
            rows += piece.partition.rows;
            let built = piece.partition.built_at;
            built_at = Some(built_at.map_or(built, |oldest| oldest.min(built)));
            is_ranged |= piece.partition.range.is_some();
        }
        let Some(stretch) = stretch else {
            let has_rows = |timed: &TimedPartition| timed.moments.overlaps(self.wanted);
            let reason = match (self.partitions.is_empty(), near.iter().any(has_rows)) {
                (true, _) => MissReason::NotBuilt,
                (false, true) => MissReason::RangeNotAligned,
                (false, false) => MissReason::RangeNotCovered,
            };
            return Err(reason.into());
        };
        let drops_gaps = self.planted.is(Flaw::NarrowerRange)
            || self.planted.is(Flaw::WiderRange)
            || (self.planted.is(Flaw::Uncovered) && is_ranged);
        Ok(Coverage {
            stretch,
            has_remainder: (has_gap || gaps.last().is_some()) && !drops_gaps,
            tables,
            rows,
            built_at: built_at.unwrap_or(Timestamp::UNIX_EPOCH),
            source: Source::Timed(self),
        })
    }

    /// Returns the parts of partitions whose whole buckets are in the wanted range, in the order of time.
    fn pieces(&self) -> impl Iterator<Item = Piece<'r>> {
        let near = self.timeline.near(self.wanted).unwrap_or_default();
        near.iter().filter_map(|timed| self.piece(&self.partitions[timed.position], timed.moments))
    }

    fn piece(&self, partition: &'r ReadyPartition, mut moments: Stretch) -> Option<Piece<'r>> {
        let Timed { calendar, wanted, .. } = self;
        if !moments.overlaps(*wanted) {
            return None;
        }
        let starts_later = wanted.start.filter(|start| moments.start.is_none_or(|own| *start > own));
        let ends_earlier = wanted.end.filter(|end| moments.end.is_none_or(|own| *end < own));
        let range = partition.range;
        let mut buckets = Stretch { start: range.map(|range| range.start), end: range.map(|range| range.end) };
        let widens = self.planted.is(Flaw::WiderRange);
        if let Some(start) = starts_later {
            let first = if widens { calendar.floor(start) } else { calendar.ceil(start) };
            let (bucket, moment) = first?;
            (buckets.start, moments.start) = (Some(bucket), Some(moment));
        }
        if let Some(end) = ends_earlier {
            let last = if widens { calendar.ceil(end) } else { calendar.floor(end) };
            let (bucket, moment) = last?;
            (buckets.end, moments.end) = (Some(bucket), Some(moment));
        }
        if moments.is_empty() {
            return None;
        }
        let is_cut = starts_later.is_some() || ends_earlier.is_some();
        Some(Piece { partition, moments, buckets: is_cut.then_some(buckets) })
    }

    fn table(&self, piece: &Piece<'_>) -> StoredTable {
        let value = |bucket: Option<i64>| bucket.map(|bucket| self.calendar.stored_value(bucket));
        let cut = piece.buckets.map(|buckets| [value(buckets.start), value(buckets.end)]);
        StoredTable { relation: piece.partition.relation.clone(), cut }
    }

    /// Returns the condition that selects the rows in the gaps, and the rows without a time unless a range excludes
    /// them.
    fn remainder(&self) -> Option<Predicate> {
        if self.planted.is(Flaw::ReadTwice) {
            return Some(Predicate::And(Vec::new()));
        }
        let bound = |moment: i64, inclusive| Bound { value: self.calendar.column_value(moment), inclusive };
        let test = |gap: Stretch| Test::Range {
            low: gap.start.map(|at| bound(at, true)),
            high: gap.end.map(|at| bound(at, false)),
        };
        let mut gaps = Gaps::new(self.wanted);
        let mut tests = Vec::new();
        tests.extend(self.pieces().filter_map(|piece| gaps.add(piece.moments)).map(test));
        tests.extend(gaps.last().map(test));
        if self.wanted == Stretch::default() && !self.planted.is(Flaw::LostNulls) {
            tests.push(Test::IsNull);
        }
        let operand = Operand::Dimension { id: self.time.dimension, granularity: None };
        Some(Predicate::Test { operand, test: Test::AnyOf(tests) })
    }
}

/// The parts of a stretch that no piece covers, as pieces are added in the order of time.
struct Gaps {
    wanted: Stretch,
    /// The end of the part that is covered without gaps so far; initially the start of `wanted`.
    covered: Option<i64>,
    is_first: bool,
}

impl Gaps {
    fn new(wanted: Stretch) -> Self {
        Gaps { wanted, covered: wanted.start, is_first: true }
    }

    /// Adds a piece, and returns the gap before it.
    fn add(&mut self, piece: Stretch) -> Option<Stretch> {
        if !self.is_first && self.covered.is_none() {
            // A piece with an open end has covered everything after it.
            return None;
        }
        let before = Stretch { start: self.covered, end: piece.start };
        let is_adjacent = self.covered == piece.start;
        self.covered = piece.end;
        self.is_first = false;
        (!is_adjacent).then_some(before)
    }

    /// Returns the gap after the last piece.
    fn last(&self) -> Option<Stretch> {
        let is_left = self.covered.is_some() && self.covered != self.wanted.end;
        is_left.then_some(Stretch { start: self.covered, end: self.wanted.end })
    }
}
