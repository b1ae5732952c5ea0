//! The buckets of one limit: the arithmetic of the crate `governor`, over a bounded map and the clock of the port.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::StateStore;
use governor::state::keyed::ShrinkableKeyedStateStore;
use governor::{Quota, RateLimiter};

use super::{Rate, RateExceeded, RateScope, Subject};
use crate::ports::clock::Clock;

/// The largest number of buckets of one limit, each of about 100 bytes.
pub const MAX_SUBJECTS: usize = 65_536;
/// The shortest time between two searches for full buckets. Each search visits all buckets.
const SWEEP_PAUSE: Duration = Duration::from_secs(1);

pub(crate) struct Limit {
    rate: Rate,
    scope: RateScope,
    clock: PortClock,
    limiter: RateLimiter<Ask, Buckets, PortClock, NoOpMiddleware<Duration>>,
    /// The time of the last search for full buckets, in milliseconds on `clock`.
    swept: AtomicU64,
}

#[derive(Clone)]
struct PortClock(Arc<dyn Clock>);

impl governor::clock::Clock for PortClock {
    type Instant = Duration;

    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Ask {
    subject: Subject,
    /// True to take a token; false to check only whether a token is available.
    takes: bool,
}

/// The time at which each bucket will be full again, in the format of `governor`.
#[derive(Default)]
struct Buckets(Mutex<Shelf>);

#[derive(Default)]
struct Shelf {
    own: HashMap<Subject, Nanos>,
    /// The bucket that is shared by subjects without a bucket in `own`.
    shared: Option<Nanos>,
}

impl Buckets {
    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StateStore for Buckets {
    type Key = Ask;

    fn measure_and_replace<T, F, E>(&self, ask: &Ask, measure: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        let mut shelf = self.shelf();
        let own = shelf.own.get(&ask.subject).copied();
        let shares = own.is_none() && shelf.own.len() >= MAX_SUBJECTS;
        let (outcome, next) = measure(if shares { shelf.shared } else { own })?;
        if ask.takes && shares {
            shelf.shared = Some(next);
        } else if ask.takes {
            shelf.own.insert(ask.subject.clone(), next);
        }
        Ok(outcome)
    }
}

impl ShrinkableKeyedStateStore<Ask> for Buckets {
    fn retain_recent(&self, drop_below: Nanos) {
        self.shelf().own.retain(|_, full_at| *full_at > drop_below);
    }

    fn len(&self) -> usize {
        self.shelf().own.len()
    }

    fn is_empty(&self) -> bool {
        self.shelf().own.is_empty()
    }
}

impl Limit {
    pub(crate) fn new(rate: Rate, scope: RateScope, clock: Arc<dyn Clock>) -> Self {
        let period = Duration::try_from_secs_f64(1.0 / rate.requests_per_second).unwrap_or(Duration::MAX);
        // A rate so high that its period rounds to zero allows the highest quota.
        let quota = Quota::with_period(period).unwrap_or(Quota::per_second(NonZeroU32::MAX)).allow_burst(rate.burst);
        let clock = PortClock(clock);
        let limiter = RateLimiter::new(quota, Buckets::default(), clock.clone());
        Limit { rate, scope, clock, limiter, swept: AtomicU64::new(0) }
    }

    /// Consumes a token of a subject.
    pub(crate) fn take(&self, subject: Subject) -> Result<(), RateExceeded> {
        if self.limiter.len() >= MAX_SUBJECTS {
            self.sweep();
        }
        self.ask(&Ask { subject, takes: true })
    }

    /// Checks whether a subject has a token, without taking it.
    pub(super) fn look(&self, subject: Subject) -> Result<(), RateExceeded> {
        self.ask(&Ask { subject, takes: false })
    }

    fn ask(&self, ask: &Ask) -> Result<(), RateExceeded> {
        self.limiter.check_key(ask).map_err(|not_until| RateExceeded {
            scope: self.scope,
            rate: self.rate,
            wait: not_until.wait_time_from(governor::clock::Clock::now(&self.clock)),
        })
    }

    fn sweep(&self) {
        let now = self.clock.0.elapsed();
        let swept = self.swept.load(Ordering::Relaxed);
        if now.saturating_sub(Duration::from_millis(swept)) < SWEEP_PAUSE {
            return;
        }
        let now = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        if self.swept.compare_exchange(swept, now, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            self.limiter.retain_recent();
        }
    }

    #[cfg(test)]
    pub(super) fn subjects(&self) -> usize {
        self.limiter.len()
    }
}
