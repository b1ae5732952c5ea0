//! The port to the state of pre-aggregations: builds, and the tables that queries may read.
//!
//! A *target* is one place for tables: the warehouse and its schema, or a file. Several servers may share it. A
//! *generation* is the set of tables that answer for one rollup from one moment on; it is published as a whole, in one
//! transaction, by the holder of the newest lease. Times are those of the callers' clocks. Absent: the tables
//! themselves (`rollup_tables`).

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use terrane_compiler::rollup::BucketRange;
use terrane_compiler::types::Granularity;

use super::audit::AuditEntry;
use super::leases::Lease;
use super::store::StoreError;

/// The cube and the name of a rollup.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RollupName {
    pub cube: Arc<str>,
    pub name: Arc<str>,
}

/// The state of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BuildState {
    Pending,
    Running,
    Success,
    Failed,
    Cancelled,
}

/// The reason why a build was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuildOrigin {
    /// The rollup was due.
    Schedule,
    /// A caller requested the build: its partitions are built even if nothing has changed.
    Request,
}

/// A build of one rollup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RollupBuild {
    /// The id of the build: 32 random hexadecimal digits.
    pub id: Arc<str>,
    pub target: Arc<str>,
    pub rollup: RollupName,
    pub state: BuildState,
    pub origin: BuildOrigin,
    /// The moments whose partitions a request names, in microseconds since 1970 as ranges have them. Empty: all.
    pub partitions: Vec<i64>,
    /// The user id of a request.
    pub requested_by: Option<Arc<str>>,
    pub created_at: Timestamp,
    /// A pending build does not start before.
    pub due_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    /// The number of starts.
    pub attempts: u32,
    /// The number of tables that are built, of those that are to be built.
    pub tables_done: u32,
    pub tables_total: Option<u32>,
    /// The number of rows in the built tables.
    pub rows: Option<u64>,
    /// The generation that it published; `None` also if nothing has changed.
    pub generation: Option<u64>,
    /// The code of the last failure.
    pub error_code: Option<Arc<str>>,
    /// The message of the last failure, which may show the warehouse's own words.
    pub error: Option<Arc<str>>,
}

impl RollupBuild {
    /// Returns a build of all partitions that waits to be started from now on.
    pub fn pending(
        id: impl Into<Arc<str>>,
        target: impl Into<Arc<str>>,
        rollup: RollupName,
        origin: BuildOrigin,
        now: Timestamp,
    ) -> Self {
        RollupBuild {
            id: id.into(),
            target: target.into(),
            rollup,
            state: BuildState::Pending,
            origin,
            partitions: Vec::new(),
            requested_by: None,
            created_at: now,
            due_at: now,
            started_at: None,
            ended_at: None,
            attempts: 0,
            tables_done: 0,
            tables_total: None,
            rows: None,
            generation: None,
            error_code: None,
            error: None,
        }
    }
}

/// The generation of a rollup that queries may read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publication {
    pub rollup: RollupName,
    /// The fingerprint of the definition: 32 hexadecimal digits.
    pub fingerprint: Arc<str>,
    pub generation: u64,
    /// The smallest and the largest value of the time column, in microseconds since 1970.
    pub extent: Option<[i64; 2]>,
    /// The digest of the result of `refresh.sql` before the build.
    pub refresh_digest: Option<Arc<str>>,
    /// The time at which the rows were last compared with the tables.
    pub checked_at: Timestamp,
    pub published_at: Timestamp,
    pub tables: Vec<PublishedTable>,
}

/// An immutable table of a generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedTable {
    pub name: Arc<str>,
    pub range: Option<BucketRange>,
    pub rows: u64,
    /// The size on disk, if the warehouse knows it.
    pub bytes: Option<u64>,
    /// The time before its rows were read.
    pub built_at: Timestamp,
    /// A digest of the change marks of its rows.
    pub mark: Arc<str>,
}

/// The end of a build without a published generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BuildEnding {
    /// The data had not changed.
    Unchanged,
    /// The build is pending again, and may start at this time.
    Retry {
        due_at: Timestamp,
        code: Arc<str>,
        message: Arc<str>,
    },
    Failed {
        code: Arc<str>,
        message: Arc<str>,
    },
    Cancelled,
}

/// The members of one cube that a query groups, filters and aggregates. Values are absent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueryShape {
    pub cube: Arc<str>,
    /// Names of measures of the cube, sorted.
    pub measures: Vec<Arc<str>>,
    /// Groups and filters as `cube.dimension`, sorted.
    pub dimensions: Vec<Arc<str>>,
    /// The segments as `cube.segment`.
    pub segments: Vec<Arc<str>>,
    /// The time dimension as `cube.dimension`, with its finest step.
    pub time: Option<(Arc<str>, Granularity)>,
}

/// Queries of one shape that were computed from rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComputedQueries {
    pub shape: QueryShape,
    pub queries: u64,
    /// The time that the warehouse took for all of them.
    pub warehouse: Duration,
    pub last_at: Timestamp,
}

/// The builds and publications of pre-aggregations. A change under a lease that is not the newest does nothing and
/// returns false or `None`.
#[async_trait]
pub trait PreaggregationState: Send + Sync {
    /// Returns a number that grows with each publication.
    async fn version(&self, target: &str) -> Result<u64, StoreError>;

    /// Returns all publications, with the version that they are of.
    async fn publications(&self, target: &str) -> Result<(u64, Vec<Publication>), StoreError>;

    /// Returns the builds of a target, newest first.
    async fn builds(&self, target: &str, limit: u32) -> Result<Vec<RollupBuild>, StoreError>;

    async fn build(&self, id: &str) -> Result<Option<RollupBuild>, StoreError>;

    /// Adds a pending build. A pending one of the same rollup takes it in and is returned instead: as a request if
    /// either is, of all partitions unless both name some, at the earlier time.
    async fn enqueue(&self, build: &RollupBuild, entry: Option<AuditEntry>) -> Result<RollupBuild, StoreError>;

    /// Returns the time at which the next pending build is due.
    async fn next_due(&self, target: &str) -> Result<Option<Timestamp>, StoreError>;

    /// Starts the pending build that has been due for the longest time.
    async fn claim(&self, lease: &Lease, target: &str, now: Timestamp) -> Result<Option<RollupBuild>, StoreError>;

    /// Sets running builds without a runner to pending. Returns their number.
    async fn requeue(&self, lease: &Lease, target: &str, now: Timestamp) -> Result<u64, StoreError>;

    /// Records how far a running build is, and returns its state, which is `Cancelled` if a caller cancelled it.
    async fn advance(&self, lease: &Lease, id: &str, done: u32, total: u32) -> Result<Option<BuildState>, StoreError>;

    /// Publishes a generation, retires the tables that it no longer has, and ends the build, if it still runs.
    async fn publish(
        &self,
        lease: &Lease,
        build: &RollupBuild,
        publication: &Publication,
        entry: AuditEntry,
    ) -> Result<bool, StoreError>;

    /// Ends a running build without a publication. `Unchanged` moves `checked_at` of the publication to `now`.
    async fn end(
        &self,
        lease: &Lease,
        build: &RollupBuild,
        ending: &BuildEnding,
        now: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Cancels a pending or running build. Returns the build as it is afterwards; `None` if it does not exist.
    async fn cancel(&self, id: &str, now: Timestamp, entry: AuditEntry) -> Result<Option<RollupBuild>, StoreError>;

    /// Removes the publications of rollups and retires their tables.
    async fn withdraw(
        &self,
        lease: &Lease,
        target: &str,
        rollups: &[RollupName],
        now: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Returns the names of all tables that are published or retired.
    async fn tables(&self, target: &str) -> Result<Vec<Arc<str>>, StoreError>;

    /// Returns the tables that were retired before a time.
    async fn retired(&self, target: &str, before: Timestamp) -> Result<Vec<Arc<str>>, StoreError>;

    /// Forgets retired tables that were dropped.
    async fn forget(&self, lease: &Lease, tables: &[Arc<str>]) -> Result<bool, StoreError>;

    /// Adds queries of a target that were computed from rows.
    async fn record_queries(&self, target: &str, queries: &[ComputedQueries]) -> Result<(), StoreError>;

    /// Returns the recorded queries of a target, the costliest first.
    async fn computed_queries(&self, target: &str) -> Result<Vec<ComputedQueries>, StoreError>;

    /// Deletes the ended builds and recorded queries of a target that are older than a time. Returns the number of
    /// builds.
    async fn prune_builds(&self, lease: &Lease, target: &str, before: Timestamp) -> Result<u64, StoreError>;
}

impl BuildState {
    pub const ALL: [BuildState; 5] =
        [BuildState::Pending, BuildState::Running, BuildState::Success, BuildState::Failed, BuildState::Cancelled];

    pub fn as_str(self) -> &'static str {
        match self {
            BuildState::Pending => "pending",
            BuildState::Running => "running",
            BuildState::Success => "success",
            BuildState::Failed => "failed",
            BuildState::Cancelled => "cancelled",
        }
    }

    pub fn named(name: &str) -> Option<BuildState> {
        BuildState::ALL.into_iter().find(|state| state.as_str() == name)
    }

    /// Returns whether the build is over.
    pub fn is_ended(self) -> bool {
        !matches!(self, BuildState::Pending | BuildState::Running)
    }
}

impl BuildOrigin {
    pub fn as_str(self) -> &'static str {
        match self {
            BuildOrigin::Schedule => "schedule",
            BuildOrigin::Request => "request",
        }
    }

    pub fn named(name: &str) -> Option<BuildOrigin> {
        [BuildOrigin::Schedule, BuildOrigin::Request].into_iter().find(|origin| origin.as_str() == name)
    }
}
