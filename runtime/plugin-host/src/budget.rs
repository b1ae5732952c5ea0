//! What all guests of a host may use together: memory, and instances at once.
//!
//! In: numbers. Out: turns, of which there are so many, and bytes that are given back. Calls that reserve
//! milliseconds, describing included, have their turns here; those that reserve seconds have turns of their own
//! (`call_limiter`), so that detectors never keep a hook waiting. The limiter has an end: who comes then is told to
//! come again. Not here: what one guest may use (`limits`).

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Bounds of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostLimits {
    /// Linear memories of all guests together.
    pub memory_bytes: usize,
    /// Calls of dialects and hooks at once, and calls that describe a component of any role.
    pub short_calls: usize,
    /// Calls of detectors and checks at once.
    pub long_calls: usize,
    /// How long a short call waits for its permit.
    pub short_wait: Duration,
    pub long_wait: Duration,
    /// Callers that wait, of each kind.
    pub waiting: usize,
}

/// As many as the engine has room for.
const MAX_SHORT_CALLS: usize = 48;
pub(crate) const MAX_LONG_CALLS: usize = 16;

impl Default for HostLimits {
    /// Two short calls a core, since a guest that waits for a core runs out of its time meanwhile.
    fn default() -> Self {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        HostLimits {
            memory_bytes: 1024 * 1024 * 1024,
            short_calls: (2 * cores).clamp(4, MAX_SHORT_CALLS),
            long_calls: cores.clamp(4, MAX_LONG_CALLS),
            short_wait: Duration::from_millis(250),
            long_wait: Duration::from_secs(10),
            waiting: 1_024,
        }
    }
}

/// Shared by all guests of a host.
#[derive(Debug)]
pub(crate) struct Budget {
    memory_free: AtomicUsize,
    short: Arc<ConcurrencyLimiter>,
}

impl Budget {
    pub(crate) fn new(limits: HostLimits) -> Arc<Budget> {
        let turns = limits.short_calls.clamp(1, MAX_SHORT_CALLS);
        Arc::new(Budget {
            memory_free: AtomicUsize::new(limits.memory_bytes),
            short: Arc::new(ConcurrencyLimiter::new(turns, limits.waiting, limits.short_wait)),
        })
    }

    /// A permit for a short call, or none within the time that it may wait.
    pub(crate) fn permit(&self) -> Option<Permit> {
        ConcurrencyLimiter::permit(&self.short)
    }

    /// Whether there were so many bytes; they are then taken.
    pub(crate) fn reserve(&self, bytes: usize) -> bool {
        let reserve = |free: usize| free.checked_sub(bytes);
        self.memory_free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, reserve).is_ok()
    }

    pub(crate) fn release(&self, bytes: usize) {
        self.memory_free.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Turns and who waits for one.
#[derive(Debug)]
struct ConcurrencyLimiter {
    state: Mutex<State>,
    freed: Condvar,
    most_waiting: usize,
    wait: Duration,
}

#[derive(Debug)]
struct State {
    free: usize,
    waiting: usize,
}

impl ConcurrencyLimiter {
    fn new(turns: usize, most_waiting: usize, wait: Duration) -> ConcurrencyLimiter {
        let state = Mutex::new(State { free: turns, waiting: 0 });
        ConcurrencyLimiter { state, freed: Condvar::new(), most_waiting, wait }
    }

    fn permit(limiter: &Arc<ConcurrencyLimiter>) -> Option<Permit> {
        let mut state = limiter.lock();
        if state.free == 0 {
            if state.waiting >= limiter.most_waiting {
                return None;
            }
            state.waiting += 1;
            let waited = limiter.freed.wait_timeout_while(state, limiter.wait, |state| state.free == 0);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            state.waiting -= 1;
        }
        state.free = state.free.checked_sub(1)?;
        drop(state);
        Some(Permit(Arc::clone(limiter)))
    }

    /// Two numbers that are changed in one step each can't be left half changed.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// May run until it is dropped.
#[derive(Debug)]
pub(crate) struct Permit(Arc<ConcurrencyLimiter>);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.lock().free += 1;
        self.0.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(waiting: usize) -> Arc<Budget> {
        let short_wait = Duration::from_millis(5);
        Budget::new(HostLimits { memory_bytes: 100, short_calls: 2, short_wait, waiting, ..HostLimits::default() })
    }

    #[test]
    fn turns_end_and_come_back() {
        let budget = budget(1);
        let first = budget.permit().unwrap();
        let second = budget.permit().unwrap();
        assert!(budget.permit().is_none());
        drop(first);
        assert!(budget.permit().is_some());
        drop(second);
    }

    #[test]
    fn a_line_without_room_is_refused_at_once() {
        let budget = budget(0);
        let held = [budget.permit().unwrap(), budget.permit().unwrap()];
        assert!(budget.permit().is_none());
        drop(held);
        assert!(budget.permit().is_some());
    }

    #[test]
    fn callers_that_wait_get_the_turns_of_those_that_leave() {
        let limits = HostLimits { short_calls: 2, short_wait: Duration::from_secs(60), ..HostLimits::default() };
        let budget = Budget::new(limits);
        let ran = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..200 {
                scope.spawn(|| {
                    let _turn = budget.permit().unwrap();
                    ran.fetch_add(1, Ordering::Relaxed);
                });
            }
        });
        assert_eq!(ran.into_inner(), 200);
        assert_eq!(budget.short.lock().free, 2);
    }

    #[test]
    fn bytes_are_given_back() {
        let budget = budget(0);
        assert!(budget.reserve(60) && !budget.reserve(41) && budget.reserve(40) && !budget.reserve(1));
        budget.release(40);
        assert!(budget.reserve(40));
    }
}
