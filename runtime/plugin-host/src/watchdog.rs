//! Ends calls whose time limit has passed.
//!
//! In: the start of each call with its limit, and its end. Out: a new epoch after each deadline. At a new epoch, each
//! store checks its own deadline. One thread sleeps until the next deadline. While there are calls, the thread wakes
//! once per shortest limit. A new call then does not have to wake it, which would cost more than a short call. After a
//! second without calls, it sleeps until the next call.
//!
//! A limit is processor time. On a busy machine, a thread may wait for a core for longer than a hook may take, and that
//! is not the hook's fault. A guest never waits for anything else. Therefore a call also ends after [`CLOCK_FACTOR`]
//! times its limit in wall-clock time.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use wasmtime::{EngineWeak, Store, UpdateDeadline};

use crate::engine::EngineError;
use crate::monotonic_clock::MonotonicClock;

/// The interval at which an overdue call is interrupted again. The first interruption has no effect if the store was
/// about to set its deadline, or if the call was in the host.
const REPEAT: Duration = Duration::from_millis(1);
/// The longest wall-clock duration of a call, as a multiple of its processor-time limit.
const CLOCK_FACTOR: u32 = 10;
/// The time without a new call after which the thread sleeps until the next call.
const IDLE: Duration = Duration::from_secs(1);

pub(crate) struct Watchdog {
    clock: MonotonicClock,
    /// The processor time of the calling thread.
    worked: MonotonicClock,
    calls: Mutex<RunningCalls>,
    changed: Condvar,
}

struct RunningCalls {
    /// The deadlines of running calls, unordered. Permits bound their number (`budget`, `call_limiter`).
    deadlines: Vec<Duration>,
    last_began: Duration,
    /// The shortest limit of any call so far.
    shortest: Duration,
    /// The time at which the thread wakes; `None` if it sleeps until a call wakes it.
    wakes_at: Option<Duration>,
    has_ended: bool,
}

impl Watchdog {
    pub(crate) fn start(engine: EngineWeak) -> Result<Arc<Watchdog>, EngineError> {
        let watchdog = Arc::new(Watchdog {
            clock: MonotonicClock::default(),
            worked: MonotonicClock::of_the_thread(),
            calls: Mutex::new(RunningCalls::new()),
            changed: Condvar::new(),
        });
        let shared = Arc::clone(&watchdog);
        thread::Builder::new()
            .name("plugin-watchdog".to_owned())
            .spawn(move || shared.watch(&engine))
            .map_err(|error| EngineError { message: format!("the watchdog's thread did not start: {error}") })?;
        Ok(watchdog)
    }

    /// Starts the time of a call on this thread. The caller must hold the returned guard until the call returns.
    pub(crate) fn begin<T: 'static>(self: &Arc<Self>, store: &mut Store<T>, limit: Duration) -> RunningCall {
        let now = self.clock.now();
        let allowed = CallDeadline::new(now, self.worked.now(), limit);
        let (clock, worked) = (self.clock.clone(), self.worked.clone());
        store.epoch_deadline_callback(move |_| {
            let is_over = allowed.is_over(clock.now(), || worked.now());
            Ok(if is_over { UpdateDeadline::Interrupt } else { UpdateDeadline::Continue(1) })
        });
        store.set_epoch_deadline(1);
        if self.lock().begin(now, limit) {
            self.changed.notify_one();
        }
        RunningCall { watchdog: Arc::clone(self), deadline: allowed.earliest }
    }

    pub(crate) fn end(&self) {
        self.lock().has_ended = true;
        self.changed.notify_one();
    }

    fn watch(&self, engine: &EngineWeak) {
        let mut calls = self.lock();
        while !calls.has_ended {
            let now = self.clock.now();
            if calls.is_any_overdue(now) {
                let Some(engine) = engine.upgrade() else { return };
                engine.increment_epoch();
            }
            calls.wakes_at = calls.next(now);
            calls = match calls.wakes_at {
                Some(at) => {
                    let waited = self.changed.wait_timeout(calls, at.saturating_sub(now));
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(calls).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Locks the list of calls. No change of the list can be left incomplete by a panic.
    fn lock(&self) -> MutexGuard<'_, RunningCalls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The conditions under which one call ends.
#[derive(Clone, Copy)]
struct CallDeadline {
    /// The earliest end by the wall clock. Before it, the call cannot have used up its processor time.
    earliest: Duration,
    /// The latest end by the wall clock, even if the call got little processor time.
    latest: Duration,
    /// The end by the thread's processor time.
    worked: Duration,
}

impl CallDeadline {
    fn new(now: Duration, worked: Duration, limit: Duration) -> CallDeadline {
        CallDeadline {
            earliest: now.saturating_add(limit),
            latest: now.saturating_add(limit.saturating_mul(CLOCK_FACTOR)),
            worked: worked.saturating_add(limit),
        }
    }

    fn is_over(&self, now: Duration, worked: impl FnOnce() -> Duration) -> bool {
        now >= self.latest || (now >= self.earliest && worked() >= self.worked)
    }
}

impl RunningCalls {
    fn new() -> RunningCalls {
        RunningCalls {
            deadlines: Vec::new(),
            last_began: Duration::ZERO,
            shortest: IDLE,
            wakes_at: None,
            has_ended: false,
        }
    }

    /// Adds a call, and returns whether the watchdog's thread would sleep past the call's deadline.
    fn begin(&mut self, now: Duration, limit: Duration) -> bool {
        let deadline = now.saturating_add(limit);
        self.deadlines.push(deadline);
        self.last_began = self.last_began.max(now);
        self.shortest = self.shortest.min(limit).max(REPEAT);
        self.wakes_at.is_none_or(|at| at > deadline)
    }

    fn end(&mut self, deadline: Duration) {
        if let Some(at) = self.deadlines.iter().position(|other| *other == deadline) {
            self.deadlines.swap_remove(at);
        }
    }

    fn is_any_overdue(&self, now: Duration) -> bool {
        self.deadlines.iter().any(|deadline| *deadline <= now)
    }

    /// Returns the time at which the thread must wake; `None` if it may sleep until the next call.
    fn next(&self, now: Duration) -> Option<Duration> {
        let soonest = self.deadlines.iter().min().map(|deadline| (*deadline).max(now + REPEAT));
        let is_quiet = now.saturating_sub(self.last_began) >= IDLE;
        let for_the_next = (!is_quiet).then(|| now + self.shortest);
        soonest.into_iter().chain(for_the_next).min()
    }
}

/// Removes the deadline of a call from the watchdog when it is dropped.
pub(crate) struct RunningCall {
    watchdog: Arc<Watchdog>,
    deadline: Duration,
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        self.watchdog.lock().end(self.deadline);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(number: u64) -> Duration {
        Duration::from_millis(number)
    }

    #[test]
    fn waiting_for_the_processor_does_not_use_up_the_time_limit() {
        let allowed = CallDeadline::new(ms(5_000), ms(300), ms(10));
        assert!(!allowed.is_over(ms(5_009), || unreachable!("it can't have worked so long")));
        assert!(allowed.is_over(ms(5_010), || ms(310)), "it had all of the processor");
        assert!(!allowed.is_over(ms(5_060), || ms(309)));
        assert!(allowed.is_over(ms(5_060), || ms(310)));
        assert!(allowed.is_over(ms(5_100), || ms(300)), "by the clock, though it got nothing");
    }

    #[test]
    fn only_an_earlier_deadline_wakes_the_thread() {
        let mut calls = RunningCalls::new();
        assert!(calls.begin(ms(5_000), ms(100)), "the thread sleeps until a call wakes it");
        calls.wakes_at = calls.next(ms(5_000));
        assert_eq!(calls.wakes_at, Some(ms(5_100)));
        assert!(!calls.begin(ms(5_001), ms(100)));
        assert!(!calls.begin(ms(5_002), ms(5_000)));
        assert!(calls.begin(ms(5_003), ms(10)));
        assert_eq!(calls.next(ms(5_003)), Some(ms(5_013)));
    }

    #[test]
    fn watchdog_wakes_at_the_next_deadline() {
        let mut calls = RunningCalls::new();
        calls.begin(ms(5_000), ms(10));
        calls.end(ms(5_010));
        calls.wakes_at = calls.next(ms(5_010));
        assert_eq!(calls.wakes_at, Some(ms(5_020)));
        assert!(!calls.begin(ms(5_012), ms(10)));
        calls.end(ms(5_022));
        assert_eq!(calls.next(ms(6_012)), None, "nothing for a second");
    }

    #[test]
    fn overdue_call_is_interrupted_again() {
        let mut calls = RunningCalls::new();
        calls.begin(ms(5_000), ms(10));
        assert!(!calls.is_any_overdue(ms(5_009)));
        assert!(calls.is_any_overdue(ms(5_010)));
        assert_eq!(calls.next(ms(5_010)), Some(ms(5_011)));
        calls.end(ms(5_010));
        assert!(!calls.is_any_overdue(ms(5_020)));
    }

    #[test]
    fn calls_with_equal_deadlines_end_separately() {
        let mut calls = RunningCalls::new();
        calls.begin(ms(5_000), ms(10));
        calls.begin(ms(5_000), ms(10));
        calls.end(ms(5_010));
        assert!(calls.is_any_overdue(ms(5_010)));
    }

    #[test]
    fn zero_time_limit_does_not_keep_the_thread_awake() {
        let mut calls = RunningCalls::new();
        calls.begin(ms(5_000), ms(0));
        calls.end(ms(5_000));
        assert_eq!(calls.next(ms(5_000)), Some(ms(5_001)));
    }
}
