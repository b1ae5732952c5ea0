//! The clocks of the machine, for the `Clock` port.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use terrane_app::ports::clock::Clock;

/// The time of this machine.
#[derive(Debug)]
pub struct SystemClock {
    started: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        #[allow(clippy::disallowed_methods, reason = "this is the adapter of the Clock port")]
        let started = Instant::now();
        SystemClock { started }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        #[allow(clippy::disallowed_methods, reason = "this is the adapter of the Clock port")]
        Timestamp::now()
    }

    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }
}
