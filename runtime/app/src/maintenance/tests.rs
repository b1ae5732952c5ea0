//! Tests of maintenance: deleted records, batches and fences.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::ports::store::StoreError;

/// A state database with expired sessions.
#[derive(Default)]
struct FakeRetention {
    fence: AtomicU64,
    expired: AtomicU64,
    horizons: Mutex<Vec<Horizon>>,
}

impl Clock for FakeRetention {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(1_700_000_000).expect("a time")
    }
    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }
}

#[async_trait]
impl Retention for FakeRetention {
    async fn prune(&self, horizon: &Horizon, lease: &Lease) -> Result<Option<Pruned>, StoreError> {
        if lease.fence != self.fence.load(Ordering::Relaxed) {
            return Ok(None);
        }
        self.horizons.lock().expect("a lock").push(*horizon);
        let sessions = self.expired.load(Ordering::Relaxed).min(1_000);
        self.expired.fetch_sub(sessions, Ordering::Relaxed);
        Ok(Some(Pruned { sessions, ..Pruned::default() }))
    }
}

fn maintenance(retention: &Arc<FakeRetention>) -> Maintenance {
    let day = Duration::from_secs(86_400);
    let settings = MaintenanceSettings { retention: 30 * day, access_lifetime: day };
    Maintenance::new(retention.clone(), retention.clone(), settings)
}

fn lease(fence: u64) -> Lease {
    Lease { name: PRUNING.into(), holder: "a".into(), fence }
}

#[tokio::test]
async fn expired_records_are_deleted_in_steps() {
    let retention = Arc::new(FakeRetention { expired: 2_500.into(), ..FakeRetention::default() });
    assert_eq!(maintenance(&retention).run(&lease(0)).await.expect("a run"), Progress::Complete);
    assert_eq!(retention.expired.load(Ordering::Relaxed), 0);
    let horizons = retention.horizons.lock().expect("a lock").clone();
    assert_eq!(horizons.len(), 4, "the last step finds nothing");
    let days = |at: Timestamp| at.duration_until(retention.now()).as_hours() / 24;
    assert_eq!((days(horizons[0].ended), days(horizons[0].abandoned)), (30, 31));
}

#[tokio::test]
async fn remaining_work_is_done_by_the_next_run() {
    let retention = Arc::new(FakeRetention { expired: 150_000.into(), ..FakeRetention::default() });
    assert_eq!(maintenance(&retention).run(&lease(0)).await.expect("a run"), Progress::Incomplete);
    assert_eq!(retention.expired.load(Ordering::Relaxed), 50_000);
}

#[tokio::test]
async fn stale_fence_deletes_nothing() {
    let retention = Arc::new(FakeRetention { fence: 2.into(), expired: 7.into(), ..FakeRetention::default() });
    let outcome = maintenance(&retention).run(&lease(1)).await;
    assert!(matches!(outcome, Err(TaskError::LeaseLost)), "{outcome:?}");
    assert_eq!(retention.expired.load(Ordering::Relaxed), 7);
}
