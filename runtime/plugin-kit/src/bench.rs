//! Measures the call of a case file.
//!
//! In: a component, a case, a number of calls. Out: the p50 and p99 of a call with its instantiation, and its fuel and
//! memory, which are equal for each call. The calls run one after another, while a server runs calls at the same time.

use std::path::Path;
use std::time::Duration;

use crate::case::Case;
use crate::component::open;
use crate::error::KitError;

/// The number of calls before the measured ones.
const WARMUP: u32 = 20;

/// The measured cost of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    /// The function of the contract that was called.
    pub call: String,
    pub calls: u32,
    pub p50: Duration,
    pub p99: Duration,
    pub fuel: u64,
    pub memory_bytes: usize,
}

/// Makes the call of the case file `input` many times.
///
/// # Errors
/// The component or the case cannot be read, or a call fails.
pub fn measure(file: &Path, input: &Path, calls: u32) -> Result<Measurement, KitError> {
    let bench = open(file)?;
    let case = Case::read(input, &bench)?;
    let call = || {
        let called = bench.call(&case.call, &case.arguments);
        called.map_err(|error| KitError::Call { path: input.to_owned(), error })
    };
    for _ in 0..WARMUP.min(calls) {
        call()?;
    }
    let (mut times, mut fuel, mut memory_bytes) = (Vec::new(), 0, 0);
    for _ in 0..calls {
        let report = call()?;
        times.push(report.duration);
        (fuel, memory_bytes) = (fuel.max(report.fuel), memory_bytes.max(report.memory_bytes));
    }
    times.sort_unstable();
    let (p50, p99) = (quantile(&times, 0.5), quantile(&times, 0.99));
    Ok(Measurement { call: case.call, calls, p50, p99, fuel, memory_bytes })
}

/// Returns the quantile by nearest rank, or zero for an empty list.
fn quantile(sorted: &[Duration], fraction: f64) -> Duration {
    let rank = (fraction * sorted.len() as f64).ceil().max(1.0) as usize - 1;
    sorted.get(rank).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_the_nearest_rank() {
        let times: Vec<Duration> = (1..=100).map(Duration::from_micros).collect();
        let micros = |fraction| quantile(&times, fraction).as_micros();
        assert_eq!((micros(0.5), micros(0.99)), (50, 99));
        assert_eq!((quantile(&times[..1], 0.5).as_micros(), quantile(&[], 0.5)), (1, Duration::ZERO));
    }
}
