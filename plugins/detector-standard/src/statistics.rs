//! Numbers that describe a sample: mean, spread, quantiles.
//!
//! In: finite values. Out: `f64`. Sums are computed in the order of the values and nothing depends on the machine, so
//! the same sample gives the same bits everywhere. Not here: missing values (the callers leave NaN out) and anomalies
//! (`baseline`).

/// Returns the arithmetic mean and the standard deviation of a population (divided by n), in two passes.
///
/// For a sample of equal values, the mean is exactly that value and the deviation exactly zero. The quotient of the
/// plain sum would differ: ten times 0.1 divided by ten is not 0.1, because the sum is rounded.
pub(crate) fn mean_and_deviation(values: &[f64]) -> Option<(f64, f64)> {
    let first = *values.first()?;
    if values.iter().all(|value| *value == first) {
        return Some((first, 0.0));
    }
    let count = values.len() as f64;
    // Differences from one value of the sample are small even if the values are large, so the sum loses fewer digits.
    let mean = first + values.iter().map(|value| value - first).sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    Some((mean, (squares / count).sqrt()))
}

/// Sorts a sample, for [`quantile`].
pub(crate) fn sort(values: &mut [f64]) {
    values.sort_unstable_by(f64::total_cmp);
}

/// Returns the quantile of type 7 of Hyndman and Fan (1996): linear between the two nearest values, as NumPy's and
/// R's default. `sorted` is ascending, `fraction` from 0 to 1.
pub(crate) fn quantile(sorted: &[f64], fraction: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let position = last as f64 * fraction;
    let below = (position.floor() as usize).min(last);
    let (low, high) = (sorted[below], sorted[(below + 1).min(last)]);
    Some(low + (high - low) * (position - below as f64))
}

/// Returns the median of values in any order.
pub(crate) fn median(values: &mut [f64]) -> Option<f64> {
    sort(values);
    quantile(values, 0.5)
}

/// Returns the median of the distances from a center; `None` without values.
pub(crate) fn median_deviation(values: &[f64], centre: f64) -> Option<f64> {
    let mut distances: Vec<f64> = values.iter().map(|value| (value - centre).abs()).collect();
    median(&mut distances)
}
