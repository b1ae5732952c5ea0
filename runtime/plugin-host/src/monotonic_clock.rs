//! The clock that measures calls and waits after faults. Guests cannot read it.
//!
//! In: the caller's own clock, or none. Out: the time since a fixed moment, which never decreases.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use terrane_app::ports::clock::Clock;

/// A clock whose zero has no meaning. Only differences between its times have a meaning.
#[derive(Clone)]
pub struct MonotonicClock(Arc<dyn Fn() -> Duration + Send + Sync>);

impl MonotonicClock {
    /// Creates a clock from a function, such as one that tests control.
    pub fn new(clock: impl Fn() -> Duration + Send + Sync + 'static) -> MonotonicClock {
        MonotonicClock(Arc::new(clock))
    }

    /// Returns a clock of the calling thread's processor time. Only differences between times of one thread have a
    /// meaning.
    pub(crate) fn of_the_thread() -> MonotonicClock {
        MonotonicClock::new(|| clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default())
    }

    pub(crate) fn now(&self) -> Duration {
        (self.0)()
    }
}

/// Returns the machine's monotonic clock.
impl Default for MonotonicClock {
    fn default() -> Self {
        #[allow(clippy::disallowed_methods, reason = "where no clock is given, as the adapter of the Clock port")]
        let started = Instant::now();
        MonotonicClock::new(move || started.elapsed())
    }
}

impl From<Arc<dyn Clock>> for MonotonicClock {
    fn from(clock: Arc<dyn Clock>) -> Self {
        MonotonicClock::new(move || clock.elapsed())
    }
}

impl fmt::Debug for MonotonicClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.now())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Mutex;

    use super::*;

    /// A clock that moves only when a test advances it.
    #[derive(Clone, Default)]
    pub(crate) struct ManualClock(Arc<Mutex<Duration>>);

    impl ManualClock {
        pub(crate) fn advance(&self, by: Duration) {
            *self.0.lock().unwrap() += by;
        }

        pub(crate) fn elapsed(&self) -> MonotonicClock {
            let time = Arc::clone(&self.0);
            MonotonicClock::new(move || *time.lock().unwrap())
        }
    }

    #[test]
    fn sleeping_thread_uses_little_processor_time() {
        let (clock, worked) = (MonotonicClock::default(), MonotonicClock::of_the_thread());
        let started = (clock.now(), worked.now());
        std::thread::sleep(Duration::from_millis(50));
        assert!(worked.now() - started.1 < clock.now() - started.0);
        let until = worked.now() + Duration::from_millis(1);
        while worked.now() < until {}
    }

    #[test]
    fn clock_never_goes_backwards() {
        let elapsed = MonotonicClock::default();
        assert!(elapsed.now() <= elapsed.now());
    }
}
