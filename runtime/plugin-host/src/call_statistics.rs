//! Counts and durations of calls, in constant memory.
//!
//! In: the end of each call. Out: counts and quantiles. Durations are counted in buckets, eight per doubling, so that a
//! quantile is at most 9 % too high.

use std::time::Duration;

/// The number of buckets per doubling.
const STEPS: u32 = 8;
/// The number of buckets, for durations from 1 µs to 2³¹ µs, about 36 minutes.
const BUCKETS: usize = 32 * STEPS as usize;

/// The statistics of one function.
#[derive(Debug)]
pub(crate) struct CallStatistics {
    pub(crate) calls: u64,
    pub(crate) faults: u64,
    /// The number of calls that were rejected before they ran.
    pub(crate) refused: u64,
    pub(crate) fuel: u64,
    buckets: Box<[u64; BUCKETS]>,
}

impl Default for CallStatistics {
    fn default() -> Self {
        CallStatistics { calls: 0, faults: 0, refused: 0, fuel: 0, buckets: Box::new([0; BUCKETS]) }
    }
}

impl CallStatistics {
    pub(crate) fn count(&mut self, is_fault: bool, took: Duration, fuel: u64) {
        self.calls += 1;
        self.faults += u64::from(is_fault);
        self.fuel = self.fuel.saturating_add(fuel);
        self.buckets[bucket(took)] += 1;
    }

    /// Returns a duration that this share of the calls (from 0 to 1) did not exceed, or `None` before the first call.
    pub(crate) fn quantile(&self, share: f64) -> Option<Duration> {
        let rank = (self.calls as f64 * share).ceil().max(1.0) as u64;
        let mut seen = 0;
        let reaches = |count: &u64| {
            seen += count;
            seen >= rank
        };
        let at = self.buckets.iter().position(reaches)?;
        Some(Duration::from_secs_f64(2_f64.powf((at + 1) as f64 / f64::from(STEPS)) / 1e6))
    }
}

fn bucket(took: Duration) -> usize {
    let micros = (took.as_secs_f64() * 1e6).max(1.0);
    ((micros.log2() * f64::from(STEPS)) as usize).min(BUCKETS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_close_to_exact_values() {
        let mut statistics = CallStatistics::default();
        assert_eq!(statistics.quantile(0.5), None);
        for micros in 1..=1_000 {
            statistics.count(micros % 10 == 0, Duration::from_micros(micros), 7);
        }
        assert_eq!((statistics.calls, statistics.faults, statistics.fuel), (1_000, 100, 7_000));
        for (share, truth) in [(0.5, 500.0), (0.99, 990.0), (1.0, 1_000.0)] {
            let found = statistics.quantile(share).unwrap().as_secs_f64() * 1e6;
            assert!(found >= truth && found < truth * 1.1, "{share}: {found}");
        }
    }

    #[test]
    fn shortest_and_longest_durations_have_a_bucket() {
        let mut statistics = CallStatistics::default();
        statistics.count(false, Duration::ZERO, 0);
        assert!(statistics.quantile(0.99).unwrap() < Duration::from_micros(2));
        statistics.count(false, Duration::from_secs(u32::MAX.into()), u64::MAX);
        statistics.count(false, Duration::ZERO, u64::MAX);
        assert!(statistics.quantile(1.0).unwrap() > Duration::from_secs(2_000));
        assert_eq!(statistics.fuel, u64::MAX);
    }
}
