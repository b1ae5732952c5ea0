//! Scales the times of earlier runs of a statement to the length of another range of time.
//!
//! In: seconds and lengths of ranges. Out: the seconds for one length. The time grows with a power of the length: from
//! 0, if the engine reads all rows for any range, to 1, if the time is proportional to the length. The power is learned
//! if enough runs had different lengths, and is otherwise 1.

/// The smallest number of runs with a known length from which the power is learned.
const MIN_RUNS: usize = 5;

/// Returns the seconds of each run as if its range had the given length. A run of unknown length is not changed.
pub(super) fn scaled(runs: &[(f64, Option<u64>)], length: Option<u64>) -> Vec<f64> {
    let known = |length: Option<u64>| length.filter(|length| *length > 0).map(|length| length as f64);
    let Some(wanted) = known(length) else { return runs.iter().map(|(seconds, _)| *seconds).collect() };
    let power = power(runs);
    let scaled = |(seconds, length): &(f64, Option<u64>)| match known(*length) {
        Some(own) => seconds * (wanted / own).powf(power),
        None => *seconds,
    };
    runs.iter().map(scaled).collect()
}

/// Returns the slope of the logarithm of the seconds over that of the length, from 0 to 1.
fn power(runs: &[(f64, Option<u64>)]) -> f64 {
    let point = |(seconds, length): &(f64, Option<u64>)| {
        let length = length.filter(|length| *length > 0)? as f64;
        (*seconds > 0.0).then(|| (length.ln(), seconds.ln()))
    };
    let points: Vec<(f64, f64)> = runs.iter().filter_map(point).collect();
    let count = points.len() as f64;
    let (x, y) =
        (points.iter().map(|(x, _)| x).sum::<f64>() / count, points.iter().map(|(_, y)| y).sum::<f64>() / count);
    let spread: f64 = points.iter().map(|(own, _)| (own - x).powi(2)).sum();
    if points.len() < MIN_RUNS || spread < 1e-6 {
        return 1.0;
    }
    let slope = points.iter().map(|(own, time)| (own - x) * (time - y)).sum::<f64>() / spread;
    slope.clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400;

    #[test]
    fn few_runs_scale_with_the_length() {
        assert_eq!(scaled(&[(2.0, Some(DAY)), (3.0, None)], Some(10 * DAY)), [20.0, 3.0]);
        assert_eq!(scaled(&[(2.0, Some(DAY))], None), [2.0]);
    }

    #[test]
    fn power_is_learned_from_different_lengths() {
        let constant: Vec<_> = (1..9).map(|days| (2.0, Some(days * DAY))).collect();
        assert!(scaled(&constant, Some(1_000 * DAY)).iter().all(|seconds| (seconds - 2.0).abs() < 1e-9));
        let root: Vec<_> = (1..9_u32).map(|days| (f64::from(days).sqrt(), Some(u64::from(days) * DAY))).collect();
        assert!(scaled(&root, Some(100 * DAY)).iter().all(|seconds| (seconds - 10.0).abs() < 1e-6));
    }
}
