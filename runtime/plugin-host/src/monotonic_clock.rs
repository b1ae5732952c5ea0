//! Time for measuring calls and waiting out faults. No guest sees it.
//!
//! In: a clock of the caller's, or none. Out: the time since some fixed moment, which never steps.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use terrane_app::ports::clock::Clock;

/// Only differences mean something.
#[derive(Clone)]
pub struct MonotonicClock(Arc<dyn Fn() -> Duration + Send + Sync>);

impl MonotonicClock {
    /// A clock of one's own: tests don't wait.
    pub fn new(clock: impl Fn() -> Duration + Send + Sync + 'static) -> MonotonicClock {
        MonotonicClock(Arc::new(clock))
    }

    /// What the processor has given to the thread that asks: differences mean something on one thread alone.
    pub(crate) fn of_the_thread() -> MonotonicClock {
        MonotonicClock::new(|| clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default())
    }

    pub(crate) fn now(&self) -> Duration {
        (self.0)()
    }
}

/// The machine's.
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

    /// A clock that stands still until it is told.
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
    fn a_thread_that_sleeps_works_little() {
        let (clock, worked) = (MonotonicClock::default(), MonotonicClock::of_the_thread());
        let started = (clock.now(), worked.now());
        std::thread::sleep(Duration::from_millis(50));
        assert!(worked.now() - started.1 < clock.now() - started.0);
        let until = worked.now() + Duration::from_millis(1);
        while worked.now() < until {}
    }

    #[test]
    fn it_never_steps_back() {
        let elapsed = MonotonicClock::default();
        assert!(elapsed.now() <= elapsed.now());
    }
}
