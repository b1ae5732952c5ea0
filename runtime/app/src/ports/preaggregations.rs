//! The port to the state of pre-aggregations: builds, and the tables that queries may read.
//!
//! A *target* is a place for tables: the warehouse with its schema, or a file. Several servers may share a target. A
//! *generation* is the set of tables from which queries of one rollup are answered until the next generation is
//! published. It is published as a whole, in one transaction, by the holder of the newest lease. Times are read from
//! the callers' clocks. Not here: the tables themselves (`rollup_tables`).

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
    /// A caller requested the build. Its partitions are built even if their rows have not changed.
    Request,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RollupBuild {
    /// The id of the build: 32 random hexadecimal digits.
    pub id: Arc<str>,
    pub target: Arc<str>,
    pub rollup: RollupName,
    pub state: BuildState,
    pub origin: BuildOrigin,
    /// The partitions that a request names, each as a time within the partition, in microseconds since 1970. Empty for
    /// all partitions.
    pub partitions: Vec<i64>,
    /// The user id of the caller who requested the build.
    pub requested_by: Option<Arc<str>>,
    pub created_at: Timestamp,
    /// The time before which a pending build does not start.
    pub due_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    /// The number of times that the build was started.
    pub attempts: u32,
    /// The number of tables that are built so far, out of `tables_total`.
    pub tables_done: u32,
    pub tables_total: Option<u32>,
    /// The number of rows in the built tables.
    pub rows: Option<u64>,
    /// The generation that the build published; `None` if it has published none, for example because the data had not
    /// changed.
    pub generation: Option<u64>,
    /// The code of the last failure.
    pub error_code: Option<Arc<str>>,
    /// The message of the last failure. It may contain the warehouse's own words.
    pub error: Option<Arc<str>>,
}

impl RollupBuild {
    /// Returns a pending build of all partitions that may start now.
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

/// The published generation of a rollup, which queries may read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publication {
    pub rollup: RollupName,
    /// The fingerprint of the definition: 32 hexadecimal digits.
    pub fingerprint: Arc<str>,
    pub generation: u64,
    /// The smallest and the largest value of the time column, in microseconds since 1970.
    pub extent: Option<[i64; 2]>,
    /// The digest of the result of `refresh.sql`, read before the build.
    pub refresh_digest: Option<Arc<str>>,
    /// The time at which the tables were last compared with the rows.
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
    /// The size on disk in bytes; `None` if the warehouse does not report it.
    pub bytes: Option<u64>,
    /// The time just before the rows of the table were read.
    pub built_at: Timestamp,
    /// The digest of the change marks of the table's rows.
    pub mark: Arc<str>,
}

/// The end of a build that published no generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BuildEnding {
    /// The data had not changed.
    Unchanged,
    /// The build is pending again, and may start at `due_at`.
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

/// The members of one cube that a query groups, filters and aggregates, without values.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueryShape {
    pub cube: Arc<str>,
    /// The names of measures of the cube, sorted.
    pub measures: Vec<Arc<str>>,
    /// The dimensions of groups and filters as `cube.dimension`, sorted.
    pub dimensions: Vec<Arc<str>>,
    /// The segments as `cube.segment`.
    pub segments: Vec<Arc<str>>,
    /// The time dimension as `cube.dimension`, with its finest granularity.
    pub time: Option<(Arc<str>, Granularity)>,
}

/// Queries of one shape that were computed from rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComputedQueries {
    pub shape: QueryShape,
    pub queries: u64,
    /// The time that the warehouse took for all of these queries.
    pub warehouse: Duration,
    pub last_at: Timestamp,
}

/// The builds and publications of pre-aggregations. A change under a lease that is not the newest changes nothing, and
/// returns false or `None`.
#[async_trait]
pub trait PreaggregationState: Send + Sync {
    /// Returns the version of the publications, a number that grows with each publication.
    async fn version(&self, target: &str) -> Result<u64, StoreError>;

    /// Returns all publications, with their version.
    async fn publications(&self, target: &str) -> Result<(u64, Vec<Publication>), StoreError>;

    /// Returns the builds of a target, newest first.
    async fn builds(&self, target: &str, limit: u32) -> Result<Vec<RollupBuild>, StoreError>;

    async fn build(&self, id: &str) -> Result<Option<RollupBuild>, StoreError>;

    /// Adds a pending build and returns it. If the same rollup has a pending build already, merges the two. The merged
    /// build is a request if one of the two is a request, and is due at the earlier of their times. It builds all
    /// partitions, unless both builds name partitions.
    async fn enqueue(&self, build: &RollupBuild, entry: Option<AuditEntry>) -> Result<RollupBuild, StoreError>;

    /// Returns the time at which the next pending build is due.
    async fn next_due(&self, target: &str) -> Result<Option<Timestamp>, StoreError>;

    /// Starts the pending build that has been due for the longest time; `None` if no build is due.
    async fn claim(&self, lease: &Lease, target: &str, now: Timestamp) -> Result<Option<RollupBuild>, StoreError>;

    /// Sets running builds to pending if no process runs them. Returns their number.
    async fn requeue(&self, lease: &Lease, target: &str, now: Timestamp) -> Result<u64, StoreError>;

    /// Records the progress of a running build, and returns its state: `Cancelled` if a caller has cancelled the build.
    async fn advance(&self, lease: &Lease, id: &str, done: u32, total: u32) -> Result<Option<BuildState>, StoreError>;

    /// Publishes the generation of a build that is still running, retires the tables that the new generation no longer
    /// contains, and ends the build.
    async fn publish(
        &self,
        lease: &Lease,
        build: &RollupBuild,
        publication: &Publication,
        entry: AuditEntry,
    ) -> Result<bool, StoreError>;

    /// Ends a running build without a publication. `Unchanged` sets `checked_at` of the publication to `now`.
    async fn end(
        &self,
        lease: &Lease,
        build: &RollupBuild,
        ending: &BuildEnding,
        now: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Cancels a pending or running build. Returns the build after the change; `None` if it does not exist.
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

    /// Removes the records of retired tables that were dropped.
    async fn forget(&self, lease: &Lease, tables: &[Arc<str>]) -> Result<bool, StoreError>;

    /// Adds to the recorded queries of a target further queries that were computed from rows.
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

    /// Returns whether the build has ended.
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
