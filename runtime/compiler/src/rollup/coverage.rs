//! The tables that cover a stretch of time, and the rest that they leave.
//!
//! In: the ready partitions of a rollup and the stretch that a fact reads. Out: tables, cut to whole buckets, and the
//! condition of the rows that no table covers. Each moment is in one of them: ranges are half-open and never widened.

use jiff::Timestamp;

use super::RollupOf;
use crate::calendar::Calendar;
use crate::model::RollupTime;
use crate::plan::StoredTable;
use crate::query::{Bound, MissReason, Operand, Predicate, Test};
use crate::ready_rollups::{Flaw, ReadyPartition, ReadyRollup};

/// The reason for which a rollup does not serve a fact, and the members that it is about.
pub(super) struct Refusal {
    pub(super) reason: MissReason,
    pub(super) members: Vec<String>,
    /// The line of the definition that would help, if members alone do not tell it.
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

/// The time of a fact's rows, in microseconds; an open side is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) start: Option<i64>,
    pub(super) end: Option<i64>,
}

/// The tables of one generation that answer a stretch of time.
pub(super) struct Coverage {
    pub(super) tables: Vec<StoredTable>,
    /// The rows of the stretch that are read from the cube. `None`: there are none.
    pub(super) remainder: Option<Predicate>,
    /// The stretch that the tables cover.
    pub(super) stretch: Stretch,
    /// Rows of the tables.
    pub(super) rows: u64,
    /// The oldest of the tables.
    pub(super) built_at: Timestamp,
}

/// A stretch of a table by moments of the column and by buckets.
struct Piece<'r> {
    partition: &'r ReadyPartition,
    moments: Stretch,
    /// `None`: the whole table.
    buckets: Option<Stretch>,
}

pub(super) fn cover(
    of: RollupOf<'_>,
    ready: &ReadyRollup,
    wanted: Stretch,
    flaw: Option<Flaw>,
) -> Result<Coverage, Refusal> {
    let Some(time) = &of.rollup.time else {
        let partition = ready.partitions.first().ok_or(MissReason::NotBuilt)?;
        let piece = Piece { partition, moments: Stretch::default(), buckets: None };
        return Ok(Coverage {
            tables: vec![table(&piece, None)],
            remainder: None,
            stretch: Stretch::default(),
            rows: partition.rows,
            built_at: partition.built_at,
        });
    };
    let calendar = Calendar::new(of.model, time);
    let mut overlaps = false;
    let mut pieces: Vec<Piece<'_>> = Vec::new();
    for partition in &ready.partitions {
        pieces.extend(piece(&calendar, partition, wanted, flaw, &mut overlaps)?);
    }
    pieces.sort_by_key(|piece| piece.moments.start);
    if pieces.is_empty() {
        let reason = match (ready.partitions.is_empty(), overlaps) {
            (true, _) => MissReason::NotBuilt,
            (false, true) => MissReason::RangeNotAligned,
            (false, false) => MissReason::RangeNotCovered,
        };
        return Err(reason.into());
    }
    // Two tables of one moment would count it twice.
    let is_before =
        |one: &Piece<'_>, next: &Piece<'_>| one.moments.end.is_some() && one.moments.end <= next.moments.start;
    let reads_all = flaw == Some(Flaw::Overlapping);
    if !pieces.windows(2).all(|pair| is_before(&pair[0], &pair[1])) && !reads_all {
        return Err(MissReason::NotBuilt.into());
    }
    let gaps = gaps(&pieces, wanted);
    let drops_gaps = match flaw {
        Some(Flaw::NarrowerRange | Flaw::WiderRange) => true,
        Some(Flaw::Uncovered) => pieces.iter().any(|piece| piece.partition.range.is_some()),
        _ => false,
    };
    let remainder = match flaw {
        Some(Flaw::ReadTwice) if !gaps.is_empty() => Some(Predicate::And(Vec::new())),
        _ if drops_gaps => None,
        _ => remainder(&calendar, time, &gaps, wanted, flaw),
    };
    Ok(Coverage {
        tables: pieces.iter().map(|piece| table(piece, Some(&calendar))).collect(),
        remainder,
        stretch: Stretch {
            start: pieces.first().and_then(|piece| piece.moments.start),
            end: pieces.last().and_then(|piece| piece.moments.end),
        },
        rows: pieces.iter().map(|piece| piece.partition.rows).sum(),
        built_at: pieces.iter().map(|piece| piece.partition.built_at).min().unwrap_or(Timestamp::UNIX_EPOCH),
    })
}

/// The whole buckets of a partition that lie in a stretch.
fn piece<'r>(
    calendar: &Calendar<'_>,
    partition: &'r ReadyPartition,
    wanted: Stretch,
    flaw: Option<Flaw>,
    overlaps: &mut bool,
) -> Result<Option<Piece<'r>>, Refusal> {
    let (mut moments, mut buckets) = (Stretch::default(), Stretch::default());
    if let Some(range) = partition.range {
        let edge = |bucket| calendar.moment(bucket).ok_or(MissReason::NotBuilt);
        moments = Stretch { start: Some(edge(range.start)?), end: Some(edge(range.end)?) };
        buckets = Stretch { start: Some(range.start), end: Some(range.end) };
    }
    let starts_later = wanted.start.filter(|start| moments.start.is_none_or(|own| *start > own));
    let ends_earlier = wanted.end.filter(|end| moments.end.is_none_or(|own| *end < own));
    let latest_start = starts_later.or(moments.start);
    let earliest_end = ends_earlier.or(moments.end);
    if latest_start.zip(earliest_end).is_some_and(|(start, end)| start >= end) {
        return Ok(None);
    }
    *overlaps = true;
    let is_cut = starts_later.is_some() || ends_earlier.is_some();
    let widens = flaw == Some(Flaw::WiderRange);
    if let Some(start) = starts_later {
        let first = if widens { calendar.floor(start) } else { calendar.ceil(start) };
        let Some((bucket, moment)) = first else { return Ok(None) };
        (buckets.start, moments.start) = (Some(bucket), Some(moment));
    }
    if let Some(end) = ends_earlier {
        let last = if widens { calendar.ceil(end) } else { calendar.floor(end) };
        let Some((bucket, moment)) = last else { return Ok(None) };
        (buckets.end, moments.end) = (Some(bucket), Some(moment));
    }
    if moments.start.zip(moments.end).is_some_and(|(start, end)| start >= end) {
        return Ok(None);
    }
    Ok(Some(Piece { partition, moments, buckets: is_cut.then_some(buckets) }))
}

fn table(piece: &Piece<'_>, calendar: Option<&Calendar<'_>>) -> StoredTable {
    let cut = piece.buckets.zip(calendar).map(|(buckets, calendar)| {
        [buckets.start, buckets.end].map(|bucket| bucket.map(|bucket| calendar.stored_value(bucket)))
    });
    StoredTable { relation: piece.partition.relation.clone(), cut }
}

/// The parts of a stretch that no piece covers.
fn gaps(pieces: &[Piece<'_>], wanted: Stretch) -> Vec<Stretch> {
    let mut gaps = Vec::new();
    // The end of what is covered from the start on; at first the start itself.
    let mut covered = wanted.start;
    let mut is_first = true;
    for piece in pieces {
        let starts_there = match (is_first, covered, piece.moments.start) {
            (true, None, start) => start.is_none(),
            (_, covered, start) => covered == start,
        };
        if !starts_there {
            gaps.push(Stretch { start: covered, end: piece.moments.start });
        }
        covered = piece.moments.end;
        is_first = false;
        if covered.is_none() {
            return gaps;
        }
    }
    if covered != wanted.end {
        gaps.push(Stretch { start: covered, end: wanted.end });
    }
    gaps
}

/// The condition of the rows in the gaps, and of those without a time if no range leaves them out.
fn remainder(
    calendar: &Calendar<'_>,
    time: &RollupTime,
    gaps: &[Stretch],
    wanted: Stretch,
    flaw: Option<Flaw>,
) -> Option<Predicate> {
    if gaps.is_empty() {
        return None;
    }
    let bound = |moment: i64, inclusive| Bound { value: calendar.column_value(moment), inclusive };
    let mut tests: Vec<Test> = gaps
        .iter()
        .map(|gap| Test::Range { low: gap.start.map(|at| bound(at, true)), high: gap.end.map(|at| bound(at, false)) })
        .collect();
    if wanted == Stretch::default() && flaw != Some(Flaw::LostNulls) {
        tests.push(Test::IsNull);
    }
    let operand = Operand::Dimension { id: time.dimension, granularity: None };
    Some(Predicate::Test { operand, test: Test::AnyOf(tests) })
}
