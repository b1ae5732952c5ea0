//! Pre-aggregations: builds their tables, publishes them to queries, and reports their state.
//!
//! In: the rollups of the served project, and the ports to state and tables. Out: [`ReadyRollups`] for queries, and
//! records of builds. One process builds for all that share a target, under a lease of the worker; each of them
//! follows what is published ([`Preaggregations::follow`]).
//!
//! - A generation is published only if each of its tables has the totals of the rows that it was made of, in one
//!   snapshot of the warehouse. If a build fails, the last good generation stays.
//! - A generation is published as a whole, by one transaction of the state database. A table is dropped some time
//!   after it was retired, when no statement that could read it runs any more.
//! - A process that cannot read the state for a while stops reading tables: they may be dropped meanwhile.
//!
//! Absent: which rollup answers a query (`terrane_compiler::rollup`), and SQL of any engine.

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

pub use recommend::{Recommendation, recommend};
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
    /// The time that one table may take.
    pub build_timeout: Duration,
    /// The time between two comparisons with the rows, for rollups that state none.
    pub refresh_every: Duration,
    /// The time after which no statement reads a table that was retired.
    pub drop_after: Duration,
    /// The time for which ended builds are kept.
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

/// The place for tables, and the state of what is in it.
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
    /// Servers learn of new generations here.
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
    /// The reader of the state for callers who follow it.
    reader: SharedReader<Arc<status::NewestBuilds>>,
}

/// The worker's progress in this process.
#[derive(Default)]
struct TaskProgress {
    /// The fence of the lease under which the state was put in order.
    fence: Option<u64>,
    /// The time of the last maintenance, as the clock's `elapsed`.
    maintained: Option<Duration>,
    /// The time at which a rollup is next compared with its rows.
    next_check: Option<Timestamp>,
    /// The project that this was computed for.
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

    /// Returns the state of the task, whole after any panic.
    fn progress(&self) -> std::sync::MutexGuard<'_, TaskProgress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PreaggregationBackend {
    fn target(&self) -> &str {
        self.tables.target()
    }
}

/// Returns a time that is a while after another one.
fn after(time: Timestamp, wait: Duration) -> Timestamp {
    time.checked_add(wait).unwrap_or(Timestamp::MAX)
}

/// Returns the time that is `wait` before `time`.
fn before(time: Timestamp, wait: Duration) -> Timestamp {
    time.checked_sub(wait).unwrap_or(Timestamp::MIN)
}

impl Preaggregations {
    /// Reads what is published, if its version has changed. Returns whether it had.
    async fn read_changes(&self) -> Result<bool, StoreError> {
        let Some(backend) = &self.ports.backend else { return Ok(false) };
        let known = self.published.lock().unwrap_or_else(PoisonError::into_inner).0;
        if backend.state.version(backend.target()).await? == known {
            return Ok(false);
        }
        self.read_published(backend).await
    }

    /// Reads what is published, and when it was last compared with the rows, which has no version. Returns whether the
    /// version has changed.
    async fn read_published(&self, backend: &PreaggregationBackend) -> Result<bool, StoreError> {
        let (version, publications) = backend.state.publications(backend.target()).await?;
        let mut published = self.published.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = published.0 != version;
        *published = (version, publications.into());
        Ok(is_new)
    }
}
