//! Who works, when, and what becomes of a lease that was lost.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use async_trait::async_trait;

use super::*;
use crate::ports::observer::Unobserved;

/// A state database whose clock is the test's.
#[derive(Default)]
struct Shared {
    seconds: AtomicU64,
    lease: Mutex<Option<(Lease, Duration)>>,
    fences: AtomicU64,
    over: AtomicU64,
    horizons: Mutex<Vec<Horizon>>,
    is_down: AtomicBool,
}

impl Shared {
    fn now(&self) -> Duration {
        Duration::from_secs(self.seconds.load(Ordering::Relaxed))
    }

    fn answer(&self) -> Result<(), StoreError> {
        let is_down = self.is_down.load(Ordering::Relaxed);
        if is_down { Err(StoreError { message: "down".to_owned() }) } else { Ok(()) }
    }
}

impl Clock for Shared {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(1_700_000_000).expect("a time")
    }
    fn elapsed(&self) -> Duration {
        Shared::now(self)
    }
}

#[async_trait]
impl Leases for Shared {
    async fn acquire(&self, name: &str, holder: &str, ttl: Duration) -> Result<Option<Lease>, StoreError> {
        self.answer()?;
        let mut held = self.lease.lock().expect("a lock");
        if held.as_ref().is_some_and(|(_, end)| *end > Shared::now(self)) {
            return Ok(None);
        }
        let fence = self.fences.fetch_add(1, Ordering::Relaxed) + 1;
        let lease = Lease { name: name.into(), holder: holder.into(), fence };
        *held = Some((lease.clone(), Shared::now(self) + ttl));
        Ok(Some(lease))
    }

    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<bool, StoreError> {
        self.answer()?;
        let mut held = self.lease.lock().expect("a lock");
        match held.as_mut().filter(|(own, end)| own == lease && *end > Shared::now(self)) {
            Some((_, end)) => {
                *end = Shared::now(self) + ttl;
                Ok(true)
            }
            None => Ok(false),
        }
    }

    async fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        self.lease.lock().expect("a lock").take_if(|(own, _)| own == lease);
        Ok(())
    }
}

#[async_trait]
impl Retention for Shared {
    async fn prune(&self, horizon: &Horizon, lease: &Lease) -> Result<Option<Pruned>, StoreError> {
        self.answer()?;
        if lease.fence != self.fences.load(Ordering::Relaxed) {
            return Ok(None);
        }
        self.horizons.lock().expect("a lock").push(*horizon);
        let sessions = self.over.load(Ordering::Relaxed).min(1_000);
        self.over.fetch_sub(sessions, Ordering::Relaxed);
        Ok(Some(Pruned { sessions, ..Pruned::default() }))
    }
}

fn upkeep(shared: &Arc<Shared>, holder: &str) -> Upkeep {
    let day = Duration::from_secs(86_400);
    let settings = UpkeepSettings { retention: 30 * day, access_lifetime: day };
    Upkeep::new(shared.clone(), shared.clone(), shared.clone(), holder.into(), settings)
}

#[tokio::test]
async fn one_works_and_another_takes_over_when_it_has_gone() {
    let shared = Arc::new(Shared::default());
    let (first, second) = (upkeep(&shared, "a"), upkeep(&shared, "b"));
    let (mut of_first, mut of_second) = (Turns::default(), Turns::default());
    shared.over.store(2_500, Ordering::Relaxed);
    assert_eq!(first.turn(&mut of_first).await.expect("a turn").sessions, 2_500);
    let horizon = shared.horizons.lock().expect("a lock")[0];
    let days = |at: Timestamp| at.duration_until(Clock::now(&*shared)).as_hours() / 24;
    assert_eq!((days(horizon.ended), days(horizon.abandoned)), (30, 31));

    shared.over.store(7, Ordering::Relaxed);
    for seconds in [5, 10, 15, 20] {
        shared.seconds.store(seconds, Ordering::Relaxed);
        assert_eq!(first.turn(&mut of_first).await.expect("a turn").total(), 0, "it has just looked");
        assert_eq!(second.turn(&mut of_second).await.expect("a turn").total(), 0, "the first has the lease");
    }
    // The first is stopped for a while, and the second takes its place.
    shared.seconds.store(36, Ordering::Relaxed);
    assert_eq!(second.turn(&mut of_second).await.expect("a turn").sessions, 7);
    assert_eq!(first.turn(&mut of_first).await.expect("a turn").total(), 0);
    assert!(of_first.lease.is_none() && of_second.lease.is_some());
    shared.over.store(3, Ordering::Relaxed);
    for seconds in (40..=640).step_by(5) {
        shared.seconds.store(seconds, Ordering::Relaxed);
        second.turn(&mut of_second).await.expect("a turn");
    }
    assert_eq!(shared.over.load(Ordering::Relaxed), 0, "it looks again after a while");
}

#[tokio::test]
async fn a_store_that_is_down_is_asked_again() {
    let shared = Arc::new(Shared::default());
    let upkeep = upkeep(&shared, "a");
    let mut turns = Turns::default();
    upkeep.turn(&mut turns).await.expect("a turn");
    shared.is_down.store(true, Ordering::Relaxed);
    upkeep.turn(&mut turns).await.expect_err("it is down");
    shared.is_down.store(false, Ordering::Relaxed);
    shared.over.store(5, Ordering::Relaxed);
    shared.seconds.store(16, Ordering::Relaxed);
    assert_eq!(upkeep.turn(&mut turns).await.expect("a turn").sessions, 5);
    assert_eq!(shared.fences.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn whoever_ends_gives_the_lease_back() {
    let shared = Arc::new(Shared::default());
    upkeep(&shared, "a").run(&Unobserved, tokio::time::sleep(Duration::from_secs(12))).await;
    assert!(shared.lease.lock().expect("a lock").is_none());
    assert_eq!(shared.fences.load(Ordering::Relaxed), 1);
}
