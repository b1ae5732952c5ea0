//! Splits series into turns and calls of bounded size.
//!
//! In: batches with the same series, such as points and their history. Out: ranges of series, and the part of a batch
//! for a range. A series is never split, because its scores depend on all its points.

use std::ops::Range;

use terrane_app::ports::detectors::{DetectorError, SeriesBatch};

use crate::bindings::detector::exports::terrane::anomaly::detector as wire;

/// A limit of points: the number of points in the first batch, and the number in all batches together.
#[derive(Debug, Clone, Copy)]
struct Size {
    first: usize,
    all: usize,
}

/// The largest size of one turn, and of a single series. A guest returns 41 bytes for each evaluated point, and a call
/// may transfer 4 MiB to the host. The host writes 16 bytes of each point into the guest's memory.
const TURN: Size = Size { first: 60_000, all: 500_000 };
/// The largest size of one call, unless it consists of a single larger series. The guest's memory must hold 60 bytes
/// for each evaluated point, 120 bytes for each point of history, and the guest's own values.
const CALL: Size = Size { first: 6_000, all: 18_000 };

/// Splits batches with the same number of series into turns.
///
/// # Errors
/// A single series is too long.
pub(super) fn turns(batches: &[&SeriesBatch]) -> Result<Vec<Range<usize>>, DetectorError> {
    turns_of(TURN, batches)
}

fn turns_of(most: Size, batches: &[&SeriesBatch]) -> Result<Vec<Range<usize>>, DetectorError> {
    let series = 0..batches.first().map_or(0, |batch| batch.count());
    for own in series.clone().map(|series| size(batches, series)) {
        for (points, limit) in [(own.first, most.first), (own.all, most.all)] {
            if points > limit {
                return Err(DetectorError::TooLong { points, limit });
            }
        }
    }
    Ok(split(batches, series, most))
}

/// Splits a turn into calls.
pub(super) fn calls(batches: &[&SeriesBatch], turn: Range<usize>) -> Vec<Range<usize>> {
    split(batches, turn, CALL)
}

fn split(batches: &[&SeriesBatch], within: Range<usize>, most: Size) -> Vec<Range<usize>> {
    let (mut ranges, mut start, mut sum) = (Vec::new(), within.start, Size { first: 0, all: 0 });
    for series in within.clone() {
        let own = size(batches, series);
        if series > start && (sum.first + own.first > most.first || sum.all + own.all > most.all) {
            ranges.push(start..series);
            (start, sum) = (series, Size { first: 0, all: 0 });
        }
        sum = Size { first: sum.first + own.first, all: sum.all + own.all };
    }
    if start < within.end {
        ranges.push(start..within.end);
    }
    ranges
}

fn size(batches: &[&SeriesBatch], series: usize) -> Size {
    let lengths = || batches.iter().map(|batch| points(batch, &(series..series + 1)).len());
    Size { first: lengths().next().unwrap_or(0), all: lengths().sum() }
}

/// Returns the range of points in a batch that belong to a range of series.
pub(super) fn points(batch: &SeriesBatch, series: &Range<usize>) -> Range<usize> {
    let at = |index: usize| batch.offsets.get(index).map_or(0, |offset| *offset as usize);
    let (start, end) = (at(series.start), at(series.end));
    start.min(batch.values.len())..end.clamp(start.min(batch.values.len()), batch.values.len())
}

/// Converts the series of a range to the contract's type. Infinities become missing values.
pub(super) fn to_wire(batch: &SeriesBatch, series: Range<usize>) -> wire::SeriesBatch {
    let of = points(batch, &series);
    let first = of.start;
    let offsets = batch.offsets[series.start..=series.end].iter();
    wire::SeriesBatch {
        offsets: offsets.map(|offset| offset.saturating_sub(u32::try_from(first).unwrap_or(u32::MAX))).collect(),
        timestamps_ms: batch.timestamps_ms[of.clone()].to_vec(),
        values: batch.values[of].iter().map(|value| if value.is_finite() { *value } else { f64::NAN }).collect(),
        step_ms: batch.step_ms,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

    use super::*;

    fn batch(lengths: &[usize]) -> SeriesBatch {
        let mut batch = SeriesBatch::new(None);
        lengths.iter().for_each(|length| batch.push((0..*length).map(|at| (at as i64, at as f64))));
        batch
    }

    fn most(first: usize, all: usize) -> Size {
        Size { first, all }
    }

    #[test]
    fn ranges_respect_both_limits_and_contain_each_series_once() {
        let (points, history) = (batch(&[5, 5, 1, 9, 0]), batch(&[1, 1, 20, 1, 0]));
        let both = [&points, &history];
        assert_eq!(turns_of(most(10, 100), &both).unwrap(), [0..2, 2..5]);
        assert_eq!(turns_of(most(10, 25), &both).unwrap(), [0..2, 2..3, 3..5]);
        assert!(turns_of(most(10, 25), &[&batch(&[])]).unwrap().is_empty());
    }

    #[test]
    fn turn_is_split_into_calls_and_long_series_have_their_own() {
        let points = batch(&[2_000, 3_000, 3_000, 9_000, 1, 1, 1]);
        assert_eq!(calls(&[&points], 1..6), [1..3, 3..4, 4..6]);
        assert!(calls(&[&points], 2..2).is_empty());
    }

    #[test]
    fn series_over_the_limit_is_rejected() {
        let error = turns_of(most(10, 100), &[&batch(&[3, 11])]).unwrap_err();
        assert_eq!(error, DetectorError::TooLong { points: 11, limit: 10 });
    }

    #[test]
    fn part_has_its_own_offsets_and_no_infinities() {
        let mut whole = batch(&[2, 3]);
        whole.values[3] = f64::INFINITY;
        let part = to_wire(&whole, 1..2);
        assert_eq!((part.offsets, part.timestamps_ms), (vec![0, 3], vec![0, 1, 2]));
        assert_eq!((part.values[0], part.values[1].is_nan(), part.values[2]), (0.0, true, 2.0));
    }
}
