//! Series cut into calls of bounded size.
//!
//! In: batches that belong together, series by series. Out: ranges of series, and the part of a batch that a
//! range means. A series is never cut: its judgement depends on all of it.

use std::ops::Range;

use terrane_app::ports::detectors::{DetectorError, SeriesBatch};

use crate::bindings::detector::exports::terrane::anomaly::detector as wire;

/// Ranges of series with at most `max_first` points of the first batch and `max_all` of all. All batches have
/// the same number of series.
///
/// # Errors
/// One series alone is too long.
pub(super) fn split(
    batches: &[&SeriesBatch],
    max_first: usize,
    max_all: usize,
) -> Result<Vec<Range<usize>>, DetectorError> {
    let count = batches.first().map_or(0, |batch| batch.count());
    let (mut ranges, mut start, mut sums) = (Vec::new(), 0, (0, 0));
    for series in 0..count {
        let lengths: Vec<usize> = batches.iter().map(|batch| points(batch, series..series + 1).len()).collect();
        let own = (lengths.first().copied().unwrap_or(0), lengths.iter().sum::<usize>());
        for (points, limit) in [(own.0, max_first), (own.1, max_all)] {
            if points > limit {
                return Err(DetectorError::TooLong { points, limit });
            }
        }
        if sums.0 + own.0 > max_first || sums.1 + own.1 > max_all {
            ranges.push(start..series);
            (start, sums) = (series, (0, 0));
        }
        sums = (sums.0 + own.0, sums.1 + own.1);
    }
    if start < count {
        ranges.push(start..count);
    }
    Ok(ranges)
}

/// The points of some series.
fn points(batch: &SeriesBatch, series: Range<usize>) -> Range<usize> {
    let at = |index: usize| batch.offsets.get(index).map_or(0, |offset| *offset as usize);
    let (start, end) = (at(series.start), at(series.end));
    start.min(batch.values.len())..end.clamp(start.min(batch.values.len()), batch.values.len())
}

/// A part of a batch, with infinities as missing values.
pub(super) fn to_wire(batch: &SeriesBatch, series: Range<usize>) -> wire::SeriesBatch {
    let of = points(batch, series.clone());
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

    #[test]
    fn calls_stay_within_both_bounds_and_hold_every_series_once() {
        let (points, history) = (batch(&[5, 5, 1, 9, 0]), batch(&[1, 1, 20, 1, 0]));
        assert_eq!(split(&[&points, &history], 10, 100).unwrap(), [0..2, 2..5]);
        assert_eq!(split(&[&points, &history], 10, 25).unwrap(), [0..2, 2..3, 3..5]);
        assert!(split(&[&batch(&[])], 10, 25).unwrap().is_empty());
    }

    #[test]
    fn a_series_that_is_too_long_alone_is_refused() {
        let error = split(&[&batch(&[3, 11])], 10, 100).unwrap_err();
        assert_eq!(error, DetectorError::TooLong { points: 11, limit: 10 });
    }

    #[test]
    fn a_part_begins_at_its_own_zero_and_has_no_infinities() {
        let mut whole = batch(&[2, 3]);
        whole.values[3] = f64::INFINITY;
        let part = to_wire(&whole, 1..2);
        assert_eq!((part.offsets, part.timestamps_ms), (vec![0, 3], vec![0, 1, 2]));
        assert_eq!((part.values[0], part.values[1].is_nan(), part.values[2]), (0.0, true, 2.0));
    }
}
