//! Pre-aggregations: builds their tables, publishes them to queries, and reports their state.
//!
//! In: the rollups of the served project, and the ports to state and tables. Out: [`ReadyRollups`] for queries, and
//! records of builds. Several processes may share a target. One of them builds for all, under a lease of the worker.
//! Each of them follows the published generations ([`Preaggregations::follow`]).
//!
//! - A generation is published only if the totals of each table are equal to the totals of the rows from which it was
//!   computed, in one snapshot of the warehouse. If a build fails, the last published generation stays.
//! - A generation is published as a whole, by one transaction of the state database. A retired table is dropped later,
//!   when no statement that could read it is running.
//! - A process that cannot read the state for a while stops reading tables, because they may be dropped in the
//!   meantime.
//!
//! Not here: the choice of the rollup for a query (`terrane_compiler::rollup`), and SQL of any engine.

mod build;
mod changes;
mod follow_status;
mod following;
mod recommend;
mod requests;
mod status;
mod task;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

pub use recommend::{Recommendation, RecommendedTable, recommend};
pub use requests::{RefreshError, RefreshRequest};
pub use status::{RollupStatus, ServedState, bucket_text};

use crate::catalog::{Catalog, Snapshot};
use crate::ports::clock::Clock;
use crate::ports::invalidations::Invalidations;
use crate::ports::observer::Observer;
use crate::ports::preaggregations::{PreaggregationState, Publication, RollupName};
use crate::ports::rollup_tables::RollupTables;
use crate::ports::store::StoreError;
use crate::ports::tokens::Randomness;
use crate::ports::warehouse::Warehouse;
use crate::query::QueryService;
use crate::security::AccessRecorder;
use crate::shared_reader::SharedReader;

/// The name of the worker's task and of its lease.
pub const BUILDING: &str = "preaggregations";

/// The operator's settings of pre-aggregations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PreaggregationSettings {
    /// The longest time that building one table may take.
    pub build_timeout: Duration,
    /// The time between two comparisons of a rollup with its rows, for rollups that state no interval.
    pub refresh_every: Duration,
    /// The time after which a retired table is dropped. No statement may read a table for longer than this.
    pub drop_after: Duration,
    /// The time for which ended builds stay recorded.
    pub history: Duration,
}

impl Default for PreaggregationSettings {
    fn default() -> Self {
        PreaggregationSettings {
            build_timeout: Duration::from_secs(3_600),
            refresh_every: Duration::from_secs(3_600),
            drop_after: Duration::from_secs(600),
            history: Duration::from_secs(7 * 86_400),
        }
    }
}

/// The place for tables, and the state of the builds and tables there.
#[derive(Clone)]
pub struct PreaggregationBackend {
    pub state: Arc<dyn PreaggregationState>,
    pub tables: Arc<dyn RollupTables>,
}

/// The ports of pre-aggregations.
#[derive(Clone)]
pub struct PreaggregationPorts {
    /// The backend; `None` if pre-aggregations are switched off.
    pub backend: Option<PreaggregationBackend>,
    pub warehouse: Arc<dyn Warehouse>,
    pub catalog: Arc<Catalog>,
    /// The services whose queries read tables.
    pub queries: Vec<Arc<QueryService>>,
    /// The port that informs the other servers of new generations.
    pub invalidations: Arc<dyn Invalidations>,
    pub access: Arc<AccessRecorder>,
    pub observer: Arc<dyn Observer>,
    pub randomness: Arc<dyn Randomness>,
    pub clock: Arc<dyn Clock>,
}

/// Builds, publishes and reports pre-aggregations.
pub struct Preaggregations {
    ports: PreaggregationPorts,
    settings: PreaggregationSettings,
    /// The generations that were published when the state was last read, with their version.
    published: Mutex<(u64, Arc<[Publication]>)>,
    progress: Mutex<TaskProgress>,
    /// The reader of the state that all callers who follow it share.
    reader: SharedReader<Arc<status::NewestBuilds>>,
}

/// The worker's progress in this process.
#[derive(Default)]
struct TaskProgress {
    /// The fence of the lease under which this process last took over the builds of the previous holder.
    fence: Option<u64>,
    /// The time of the last maintenance, as the clock's `elapsed`.
    maintained: Option<Duration>,
    /// The time at which a rollup is next compared with its rows.
    next_check: Option<Timestamp>,
    /// The project for which `next_check` was computed.
    snapshot: Option<Arc<Snapshot>>,
}

impl Preaggregations {
    pub fn new(ports: PreaggregationPorts, settings: PreaggregationSettings) -> Self {
        let published = Mutex::new((0, Arc::from([])));
        Preaggregations { ports, settings, published, progress: Mutex::default(), reader: SharedReader::default() }
    }

    /// Returns whether tables can be built.
    pub fn is_enabled(&self) -> bool {
        self.ports.backend.is_some()
    }

    /// Returns the generations that queries of this process may read.
    pub fn published(&self) -> Arc<[Publication]> {
        Arc::clone(&self.published.lock().unwrap_or_else(PoisonError::into_inner).1)
    }

    fn publication(&self, rollup: &RollupName) -> Option<Publication> {
        self.published().iter().find(|publication| publication.rollup == *rollup).cloned()
    }

    /// Returns random hexadecimal digits, two for each byte.
    fn random<const BYTES: usize>(&self) -> String {
        let mut bytes = [0; BYTES];
        self.ports.randomness.fill(&mut bytes);
        hex::encode(bytes)
    }

    /// Locks the progress. It is valid even after a panic.
    fn progress(&self) -> std::sync::MutexGuard<'_, TaskProgress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PreaggregationBackend {
    fn target(&self) -> &str {
        self.tables.target()
    }
}

/// Returns the time that is `wait` after `time`, or the largest time if the sum exceeds it.
fn after(time: Timestamp, wait: Duration) -> Timestamp {
    time.checked_add(wait).unwrap_or(Timestamp::MAX)
}

/// Returns the time that is `wait` before `time`.
fn before(time: Timestamp, wait: Duration) -> Timestamp {
    time.checked_sub(wait).unwrap_or(Timestamp::MIN)
}

impl Preaggregations {
    /// Reads the published generations, if their version has changed. Returns whether it had changed.
    async fn read_changes(&self) -> Result<bool, StoreError> {
        let Some(backend) = &self.ports.backend else { return Ok(false) };
        let known = self.published.lock().unwrap_or_else(PoisonError::into_inner).0;
        if backend.state.version(backend.target()).await? == known {
            return Ok(false);
        }
        self.read_published(backend).await
    }

    /// Reads the published generations, and the times at which they were last compared with the rows. These times do
    /// not change the version. Returns whether the version has changed.
    async fn read_published(&self, backend: &PreaggregationBackend) -> Result<bool, StoreError> {
        let (version, publications) = backend.state.publications(backend.target()).await?;
        let mut published = self.published.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = published.0 != version;
        *published = (version, publications.into());
        Ok(is_new)
    }
}
