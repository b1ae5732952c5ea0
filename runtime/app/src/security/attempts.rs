//! How often somebody may guess a password.
//!
//! After [`FREE`] failures in a row for a name, or for an address, each further try must wait, twice as
//! long each time, up to [`MAX_WAIT`]. A success clears the name, not the address. Bounded: those with the fewest failures are forgotten first.

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

    /// The last try of `name` was none that failed, and neither was that of `address`: its earlier ones
    /// still count, so that an account of one's own doesn't buy more guesses.
    pub(super) fn succeeded(&self, name: &str, address: Option<&str>) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.remove(name);
        if let Some((count, _)) = address.and_then(|address| failures.get_mut(address)) {
            *count = count.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use jiff::Timestamp;

    use super::*;

    #[derive(Default)]
    struct Seconds(AtomicU64);

    impl Clock for Seconds {
        fn now(&self) -> Timestamp {
            Timestamp::UNIX_EPOCH
        }

        fn elapsed(&self) -> Duration {
            Duration::from_secs(self.0.load(Ordering::Relaxed))
        }
    }

    fn names(name: &str) -> Vec<String> {
        vec![format!("name:{name}"), "address:a".to_owned()]
    }

    #[test]
    fn guessing_costs_more_each_time_and_success_forgives_the_name_only() {
        let clock = Arc::new(Seconds::default());
        let attempts = Attempts::new(clock.clone());
        for _ in 0..FREE {
            assert_eq!(attempts.wait(&names("ada")), None);
            attempts.failed(&names("ada"));
        }
        assert_eq!(attempts.wait(&names("ada")), Some(Duration::from_secs(1)));
        assert!(attempts.wait(&names("bob")).is_some(), "the address waits whoever is tried");
        assert_eq!(attempts.wait(&["name:bob".to_owned()]), None);
        clock.0.store(2, Ordering::Relaxed);
        assert_eq!(attempts.wait(&names("ada")), None);
        attempts.failed(&names("ada"));
        assert_eq!(attempts.wait(&names("ada")), Some(Duration::from_secs(2)));
        attempts.succeeded("name:ada", Some("address:a"));
        assert_eq!(attempts.wait(&["name:ada".to_owned()]), None);
        assert_eq!(attempts.wait(&names("ada")), Some(Duration::from_secs(1)), "of the address' earlier ones");
        clock.0.store(1_000, Ordering::Relaxed);
        assert_eq!(attempts.wait(&names("ada")), None);
    }

    #[test]
    fn made_up_names_cannot_push_out_those_that_wait() {
        let attempts = Attempts::new(Arc::new(Seconds::default()));
        for _ in 0..=FREE {
            attempts.failed(&["name:ada".to_owned()]);
        }
        for number in 0..2 * MAX_NAMES {
            attempts.failed(&[format!("name:{number}")]);
        }
        assert!(attempts.wait(&["name:ada".to_owned()]).is_some());
        assert!(attempts.failures.lock().expect("a lock").len() <= MAX_NAMES);
    }
}
