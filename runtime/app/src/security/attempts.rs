//! How often somebody may guess a password.
//!
//! After [`FREE`] failures in a row for a name, or for an address, each further try must wait, twice as
//! long each time, up to [`MAX_WAIT`]. A success clears the name. Bounded: those with the fewest failures are forgotten first.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::ports::clock::Clock;

const FREE: u32 = 5;
const MAX_WAIT: Duration = Duration::from_secs(300);
const MAX_NAMES: usize = 10_000;

pub(super) struct Attempts {
    clock: Arc<dyn Clock>,
    failures: Mutex<HashMap<String, (u32, Duration)>>,
}

impl Attempts {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Attempts { clock, failures: Mutex::new(HashMap::new()) }
    }

    /// How long these must wait, if they must.
    pub(super) fn wait(&self, names: &[String]) -> Option<Duration> {
        let now = self.clock.elapsed();
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = names.iter().filter_map(|name| {
            let (count, last) = failures.get(name)?;
            let doublings = count.checked_sub(FREE)?.min(16);
            let wait = Duration::from_secs(1 << doublings).min(MAX_WAIT);
            (*last + wait).checked_sub(now).filter(|wait| !wait.is_zero())
        });
        waits.max()
    }

    pub(super) fn failed(&self, names: &[String]) {
        let now = self.clock.elapsed();
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.len() + names.len() > MAX_NAMES {
            failures.retain(|_, (_, last)| now.saturating_sub(*last) <= MAX_WAIT);
            if failures.len() + names.len() > MAX_NAMES {
                failures.retain(|_, (count, _)| *count > FREE);
            }
        }
        for name in names {
            if failures.len() >= MAX_NAMES && !failures.contains_key(name) {
                continue;
            }
            let (count, last) = failures.entry(name.clone()).or_insert((0, now));
            // What is long ago is forgiven.
            *count = if now.saturating_sub(*last) > MAX_WAIT { 1 } else { *count + 1 };
            *last = now;
        }
    }

    pub(super) fn succeeded(&self, name: &str) {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }
}
