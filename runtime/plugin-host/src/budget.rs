//! The resources that all guests of a host share: memory, and permits for concurrent calls.
//!
//! In: numbers. Out: permits, and reserved bytes. Calls that take milliseconds get their permits here, including calls
//! that describe a component. Calls that take seconds have a limiter of their own (`call_limiter`), so that a detector
//! never delays a hook. The number of waiting callers is bounded. Not here: the limits of one guest (`limits`).

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostLimits {
    /// The largest size in bytes of the linear memories of all guests together.
    pub memory_bytes: usize,
    /// The largest number of calls of dialects and hooks at once, including calls that describe a component of any
    /// role.
    pub short_calls: usize,
    /// The largest number of calls of detectors and checks at once.
    pub long_calls: usize,
    /// The time that a short call waits for a permit.
    pub short_wait: Duration,
    pub long_wait: Duration,
    /// The largest number of waiting callers for each kind of call.
    pub waiting: usize,
}

/// The upper bounds of the numbers of concurrent calls in [`HostLimits`]. The engine's pool has one instance for each
/// of these calls.
const MAX_SHORT_CALLS: usize = 48;
pub(crate) const MAX_LONG_CALLS: usize = 16;

impl Default for HostLimits {
    /// Allows two short calls per core, because a guest that waits for a core uses up its time.
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

/// The resources of a host.
#[derive(Debug)]
pub(crate) struct Budget {
    memory_free: AtomicUsize,
    short: Arc<ConcurrencyLimiter>,
}

impl Budget {
    pub(crate) fn new(limits: HostLimits) -> Arc<Budget> {
        let permits = limits.short_calls.clamp(1, MAX_SHORT_CALLS);
        Arc::new(Budget {
            memory_free: AtomicUsize::new(limits.memory_bytes),
            short: Arc::new(ConcurrencyLimiter::new(permits, limits.waiting, limits.short_wait)),
        })
    }

    /// Returns a permit for a short call, or `None` if no permit became free in time.
    pub(crate) fn permit(&self) -> Option<Permit> {
        ConcurrencyLimiter::permit(&self.short)
    }

    /// Reserves memory. Returns `false` if too little is left.
    pub(crate) fn reserve(&self, bytes: usize) -> bool {
        let reserve = |free: usize| free.checked_sub(bytes);
        self.memory_free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, reserve).is_ok()
    }

    pub(crate) fn release(&self, bytes: usize) {
        self.memory_free.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Permits, and the callers that wait for one.
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
    fn new(permits: usize, most_waiting: usize, wait: Duration) -> ConcurrencyLimiter {
        let state = Mutex::new(State { free: permits, waiting: 0 });
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

    /// Locks the state. Its two numbers change in one step each, so a panic leaves them consistent.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Permits one call until it is dropped.
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
    fn permits_are_returned() {
        let budget = budget(1);
        let first = budget.permit().unwrap();
        let second = budget.permit().unwrap();
        assert!(budget.permit().is_none());
        drop(first);
        assert!(budget.permit().is_some());
        drop(second);
    }

    #[test]
    fn full_queue_rejects_at_once() {
        let budget = budget(0);
        let held = [budget.permit().unwrap(), budget.permit().unwrap()];
        assert!(budget.permit().is_none());
        drop(held);
        assert!(budget.permit().is_some());
    }

    #[test]
    fn waiting_callers_get_returned_permits() {
        let limits = HostLimits { short_calls: 2, short_wait: Duration::from_secs(60), ..HostLimits::default() };
        let budget = Budget::new(limits);
        let ran = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..200 {
                scope.spawn(|| {
                    let _permit = budget.permit().unwrap();
                    ran.fetch_add(1, Ordering::Relaxed);
                });
            }
        });
        assert_eq!(ran.into_inner(), 200);
        assert_eq!(budget.short.lock().free, 2);
    }

    #[test]
    fn reserved_bytes_are_released() {
        let budget = budget(0);
        assert!(budget.reserve(60) && !budget.reserve(41) && budget.reserve(40) && !budget.reserve(1));
        budget.release(40);
        assert!(budget.reserve(40));
    }
}
