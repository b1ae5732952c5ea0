//! The port for the current time and for measuring durations. The use cases read no other clock.

use std::time::Duration;

use jiff::Timestamp;

/// The current time, and a monotonic clock.
pub trait Clock: Send + Sync {
    fn now(&self) -> Timestamp;

    /// Returns the time since a fixed moment. Only differences are meaningful.
    fn elapsed(&self) -> Duration;
}
