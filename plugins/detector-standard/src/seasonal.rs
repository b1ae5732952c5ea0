//! The robust seasonal detector: a value against those of the same place in earlier seasons.
//!
//! In: the history of one series, the points of a season. Out: a [`Baseline`] for each place in the season.
//! The middle of a place is the median of its values, so a few odd days leave it where it is. The unit is
//! the median absolute deviation of all residuals (value minus its place's middle), divided by 0.6745: a
//! place alone has too few values for a spread of its own. Not here: trends; `training_size` says how far
//! back the comparison reaches.
//!
//! Places are counted by position, so a series must have one entry a step; a missing value is NaN.

use crate::baseline::{Baseline, MAD_SCALE};
use crate::statistics::{median, median_deviation};

/// A place is judged only where so many earlier seasons have a value there.
const FEWEST_SEASONS: usize = 2;

/// One baseline for each place of the season, beginning with the place of the first point behind the
/// history. `None` for a place with too few values.
pub(crate) fn baselines(history: &[f64], season: usize, sensitivity: f64) -> Vec<Option<Baseline>> {
    // The value `season` entries before the end has the place of the first point to come.
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
