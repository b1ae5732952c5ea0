//! The robust seasonal detector, which compares a value with the values at the same position in earlier seasons.
//!
//! In: the history of one series, and the number of points in a season. Out: a [`Baseline`] for each position in the
//! season. The center of a position is the median of its values, so a few odd days do not move it. The unit is the
//! median absolute deviation of all residuals (value minus its position's center), divided by 0.6745. All positions
//! share this unit, because a single position has too few values for its own. Not here: trends; `training_size` limits
//! the history.
//!
//! Positions are counted by entries, so a series must have one entry per step; a missing value is NaN.

use crate::baseline::{Baseline, MAD_SCALE};
use crate::statistics::{median, median_deviation};

/// The minimum number of earlier seasons with a value at a position. A position with fewer is not scored.
const FEWEST_SEASONS: usize = 2;

/// Returns one baseline for each position in the season, beginning with the position of the first point after the
/// history. `None` for a position with too few values.
pub(crate) fn baselines(history: &[f64], season: usize, sensitivity: f64) -> Vec<Option<Baseline>> {
    // The value `season` entries before the end has the same position as the first point after the history.
    let place = |index: usize| (index + season - history.len() % season) % season;
    let mut places: Vec<Vec<f64>> = vec![Vec::new(); season];
    for (index, value) in history.iter().enumerate().filter(|(_, value)| !value.is_nan()) {
        places[place(index)].push(*value);
    }
    let middles: Vec<Option<f64>> =
        places.iter_mut().map(|values| if values.len() < FEWEST_SEASONS { None } else { median(values) }).collect();
    let residuals: Vec<f64> = places
        .iter()
        .zip(&middles)
        .filter_map(|(values, middle)| middle.map(|middle| values.iter().map(move |value| value - middle)))
        .flatten()
        .collect();
    let unit = median_deviation(&residuals, 0.0).unwrap_or(0.0) / MAD_SCALE;
    middles.into_iter().map(|middle| middle.map(|middle| Baseline::around(middle, unit, sensitivity))).collect()
}
