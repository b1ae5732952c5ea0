//! The port to time, so that nothing in the use cases reads a clock by itself.

use std::time::Duration;

use jiff::Timestamp;

/// The current time, and a clock that never steps.
pub trait Clock: Send + Sync {
    fn now(&self) -> Timestamp;

    /// Returns the time since a fixed moment. Only differences are meaningful.
    fn elapsed(&self) -> Duration;
}
