//! Limits the number of attempts to guess a password.
//!
//! Failures are counted for a name from one address, for the name alone, and for the address alone. After [`FREE`]
//! failures in a row for a name from one address, each further attempt must wait. The wait doubles with each failure,
//! up to [`MAX_WAIT`]. Several people may share one address, and any caller can fail under any name. So a name alone or
//! an address alone may fail [`FREE_OF_MANY`] times, and waits at most [`MAX_WAIT_OF_MANY`]. A success removes the
//! failures of the name from this address, and one failure of each of the other two. Memory is bounded: old failures
//! and names with few failures are removed first.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::ports::clock::Clock;

const FREE: u32 = 5;
const MAX_WAIT: Duration = Duration::from_secs(300);
const FREE_OF_MANY: u32 = 100;
const MAX_WAIT_OF_MANY: Duration = Duration::from_secs(30);
const MAX_NAMES: usize = 10_000;

pub(super) struct LoginThrottle {
    clock: Arc<dyn Clock>,
    failures: Mutex<HashMap<String, (u32, Duration)>>,
}

impl LoginThrottle {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        LoginThrottle { clock, failures: Mutex::new(HashMap::new()) }
    }

    /// Returns the time to wait before the next attempt under these names; `None` if it is allowed now.
    pub(super) fn wait(&self, names: &[String]) -> Option<Duration> {
        let now = self.clock.elapsed();
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = names.iter().filter_map(|name| {
            let (count, last) = failures.get(name)?;
            let (free, longest) =
                if name.starts_with("both:") { (FREE, MAX_WAIT) } else { (FREE_OF_MANY, MAX_WAIT_OF_MANY) };
            let doublings = count.checked_sub(free)?.min(16);
            let wait = Duration::from_secs(1 << doublings).min(longest);
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
            // Failures before a pause longer than the longest wait do not count.
            *count = if now.saturating_sub(*last) > MAX_WAIT { 1 } else { *count + 1 };
            *last = now;
        }
    }

    /// Records a successful sign-in. Removes the failures of `name`, and one failure of each of the `others`. The other
    /// failures of `others` still count, so that an attacker gets no more guesses by signing in to another account.
    pub(super) fn succeeded(&self, name: &str, others: &[String]) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.remove(name);
        for other in others {
            if let Some((count, _)) = failures.get_mut(other) {
                *count = count.saturating_sub(1);
            }
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
        vec![format!("both:{name} a"), format!("name:{name}"), "address:a".to_owned()]
    }

    #[test]
    fn failures_increase_the_wait_and_success_resets_only_the_name() {
        let clock = Arc::new(Seconds::default());
        let attempts = LoginThrottle::new(clock.clone());
        for _ in 0..FREE {
            assert_eq!(attempts.wait(&names("ada")), None);
            attempts.failed(&names("ada"));
        }
        assert_eq!(attempts.wait(&names("ada")), Some(Duration::from_secs(1)));
        assert_eq!(attempts.wait(&names("bob")), None, "others behind the address are not shut out");
        let elsewhere = ["both:ada b", "name:ada", "address:b"].map(str::to_owned);
        assert_eq!(attempts.wait(&elsewhere), None, "nor is she, from elsewhere");
        clock.0.store(2, Ordering::Relaxed);
        assert_eq!(attempts.wait(&names("ada")), None);
        attempts.failed(&names("ada"));
        assert_eq!(attempts.wait(&names("ada")), Some(Duration::from_secs(2)));
        attempts.succeeded("both:ada a", &names("ada")[1..]);
        assert_eq!(attempts.wait(&names("ada")), None);
        clock.0.store(1_000, Ordering::Relaxed);
        assert_eq!(attempts.wait(&names("ada")), None);
    }

    #[test]
    fn failures_throttle_both_the_address_and_the_name() {
        let attempts = LoginThrottle::new(Arc::new(Seconds::default()));
        for number in 0..FREE_OF_MANY + 20 {
            attempts.failed(&names(&format!("user{number}")));
            attempts.failed(&[format!("both:ada {number}"), "name:ada".to_owned(), format!("address:{number}")]);
        }
        assert_eq!(attempts.wait(&names("bob")), Some(MAX_WAIT_OF_MANY));
        assert_eq!(attempts.wait(&["both:ada z".to_owned(), "name:ada".to_owned()]), Some(MAX_WAIT_OF_MANY));
        assert_eq!(attempts.wait(&["both:bob z".to_owned(), "name:bob".to_owned()]), None);
    }

    #[test]
    fn forged_names_do_not_evict_throttled_names() {
        let attempts = LoginThrottle::new(Arc::new(Seconds::default()));
        for _ in 0..=FREE {
            attempts.failed(&["both:ada".to_owned()]);
        }
        for number in 0..2 * MAX_NAMES {
            attempts.failed(&[format!("name:{number}")]);
        }
        assert!(attempts.wait(&["both:ada".to_owned()]).is_some());
        assert!(attempts.failures.lock().expect("a lock").len() <= MAX_NAMES);
    }
}
