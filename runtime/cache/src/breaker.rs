//! A circuit breaker: it stops calls of a server that does not answer. The pause between calls grows with the failures.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The number of consecutive failures that open the breaker.
const THRESHOLD: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// Counts consecutive failures. All times are elapsed times of a monotonic clock.
#[derive(Debug, Default)]
pub(crate) struct Breaker(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    failures: u32,
    open_until: Duration,
}

impl Breaker {
    /// Returns true if a call may be tried. While the breaker is open, it allows one call after each pause.
    pub(crate) fn allows(&self, now: Duration) -> bool {
        let mut state = self.lock();
        if state.failures < THRESHOLD {
            return true;
        }
        if now < state.open_until {
            return false;
        }
        state.open_until = now + pause(state.failures);
        true
    }

    pub(crate) fn succeed(&self) {
        self.lock().failures = 0;
    }

    /// Records a failure. Returns true if it opened the circuit breaker.
    pub(crate) fn fail(&self, now: Duration) -> bool {
        let mut state = self.lock();
        state.failures = state.failures.saturating_add(1);
        state.open_until = now + pause(state.failures);
        state.failures == THRESHOLD
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn pause(failures: u32) -> Duration {
    FIRST_PAUSE.saturating_mul(1 << failures.saturating_sub(THRESHOLD).min(8)).min(MAX_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_delays_grow_until_a_call_succeeds() {
        let breaker = Breaker::default();
        let at = Duration::from_secs;
        assert!(!breaker.fail(at(0)) && !breaker.fail(at(0)) && breaker.allows(at(0)));
        assert!(breaker.fail(at(0)));
        assert!(!breaker.allows(Duration::from_millis(999)));
        assert!(breaker.allows(at(1)), "one call is tried");
        assert!(!breaker.allows(at(1)), "and no second one meanwhile");
        assert!(!breaker.fail(at(1)));
        assert!(!breaker.allows(Duration::from_millis(2_999)));
        assert!(breaker.allows(at(3)));
        breaker.succeed();
        assert!(breaker.allows(at(3)) && breaker.allows(at(3)));
    }
}
