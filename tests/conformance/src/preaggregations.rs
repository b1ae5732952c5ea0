//! The state of pre-aggregations in memory, with builds that no worker runs, and without tables.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use jiff::Timestamp;
use terrane_app::ports::audit::AuditEntry;
use terrane_app::ports::leases::Lease;
use terrane_app::ports::preaggregations::{
    BuildEnding, BuildOrigin, BuildState, ComputedQueries, PreaggregationState, Publication, RollupBuild, RollupName,
};
use terrane_app::ports::rollup_tables::TablesElsewhere;
use terrane_app::ports::store::StoreError;
use terrane_app::preaggregations::PreaggregationBackend;

/// The id of a build that is pending from the start.
pub const WAITING: &str = "00112233445566778899aabbccddeeff";
const TARGET: &str = "r1";

/// Pending builds. Requests add builds and cancel them.
#[derive(Debug)]
pub struct MemoryPreaggregations {
    builds: Mutex<Vec<RollupBuild>>,
    readings: AtomicUsize,
}

/// Returns a backend whose tables are in another warehouse.
pub fn backend(state: Arc<MemoryPreaggregations>) -> PreaggregationBackend {
    let tables = TablesElsewhere { target: TARGET.to_owned(), schema: "stored_elsewhere".to_owned() };
    PreaggregationBackend { state, tables: Arc::new(tables) }
}

impl Default for MemoryPreaggregations {
    fn default() -> Self {
        MemoryPreaggregations { builds: Mutex::new(vec![waiting()]), readings: AtomicUsize::default() }
    }
}

fn waiting() -> RollupBuild {
    let rollup = RollupName { cube: "orders".into(), name: "removed".into() };
    RollupBuild::pending(WAITING, TARGET, rollup, BuildOrigin::Schedule, Timestamp::UNIX_EPOCH)
}

impl MemoryPreaggregations {
    /// Returns the number of times that the list of all builds was requested.
    pub fn readings(&self) -> usize {
        self.readings.load(Ordering::Relaxed)
    }

    fn builds(&self) -> MutexGuard<'_, Vec<RollupBuild>> {
        self.builds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl PreaggregationState for MemoryPreaggregations {
    async fn version(&self, _: &str) -> Result<u64, StoreError> {
        Ok(0)
    }

    async fn publications(&self, _: &str) -> Result<(u64, Vec<Publication>), StoreError> {
        Ok((0, Vec::new()))
    }

    async fn builds(&self, _: &str, _: u32) -> Result<Vec<RollupBuild>, StoreError> {
        self.readings.fetch_add(1, Ordering::Relaxed);
        Ok(self.builds().clone())
    }

    async fn build(&self, id: &str) -> Result<Option<RollupBuild>, StoreError> {
        Ok(self.builds().iter().find(|build| &*build.id == id).cloned())
    }

    async fn enqueue(&self, build: &RollupBuild, _: Option<AuditEntry>) -> Result<RollupBuild, StoreError> {
        self.builds().push(build.clone());
        Ok(build.clone())
    }

    async fn next_due(&self, _: &str) -> Result<Option<Timestamp>, StoreError> {
        Ok(None)
    }

    async fn claim(&self, _: &Lease, _: &str, _: Timestamp) -> Result<Option<RollupBuild>, StoreError> {
        Ok(None)
    }

    async fn requeue(&self, _: &Lease, _: &str, _: Timestamp) -> Result<u64, StoreError> {
        Ok(0)
    }

    async fn advance(&self, _: &Lease, _: &str, _: u32, _: u32) -> Result<Option<BuildState>, StoreError> {
        Ok(None)
    }

    async fn publish(&self, _: &Lease, _: &RollupBuild, _: &Publication, _: AuditEntry) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn end(&self, _: &Lease, _: &RollupBuild, _: &BuildEnding, _: Timestamp) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn cancel(&self, id: &str, now: Timestamp, _: AuditEntry) -> Result<Option<RollupBuild>, StoreError> {
        let mut builds = self.builds();
        let Some(build) = builds.iter_mut().find(|build| &*build.id == id) else { return Ok(None) };
        (build.state, build.ended_at) = (BuildState::Cancelled, Some(now));
        Ok(Some(build.clone()))
    }

    async fn withdraw(&self, _: &Lease, _: &str, _: &[RollupName], _: Timestamp) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn tables(&self, _: &str) -> Result<Vec<Arc<str>>, StoreError> {
        Ok(Vec::new())
    }

    async fn retired(&self, _: &str, _: Timestamp) -> Result<Vec<Arc<str>>, StoreError> {
        Ok(Vec::new())
    }

    async fn forget(&self, _: &Lease, _: &[Arc<str>]) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn record_queries(&self, _: &str, _: &[ComputedQueries]) -> Result<(), StoreError> {
        Ok(())
    }

    async fn computed_queries(&self, _: &str) -> Result<Vec<ComputedQueries>, StoreError> {
        Ok(Vec::new())
    }

    async fn prune_builds(&self, _: &Lease, _: &str, _: Timestamp) -> Result<u64, StoreError> {
        Ok(0)
    }
}
