//! Pre-aggregations and their builds.

use async_graphql::{ID, SimpleObject};
use terrane_wire::preaggregations::{PreaggregationBuild, PreaggregationPartition, PreaggregationStatus};

/// The state of a pre-aggregation.
#[derive(Debug, Clone, PartialEq, SimpleObject)]
pub(crate) struct PreAggregation {
    cube: String,
    name: String,
    /// `not_built`, `ready`, or `outdated` if the tables were built from other definitions, so that no query reads
    /// them.
    state: String,
    /// A number that grows with each publication of new tables.
    generation: Option<u64>,
    /// The time since which queries read these tables.
    published_at: Option<String>,
    /// The time at which the rows of the cube were last compared with the tables.
    checked_at: Option<String>,
    next_refresh_at: Option<String>,
    /// The number of rows, for administrators only.
    rows: Option<f64>,
    /// The size in bytes, for administrators only; null if the warehouse does not report it.
    size_bytes: Option<f64>,
    /// The tables. The list is empty for callers from whom policies or hooks may hide rows or times of the cube.
    partitions: Vec<PreAggregationPartition>,
    /// The newest build.
    build: Option<PreAggregationBuild>,
}

/// One table of a pre-aggregation.
#[derive(Debug, Clone, PartialEq, SimpleObject)]
pub(crate) struct PreAggregationPartition {
    /// The first bucket; null if the table has all rows.
    start: Option<String>,
    /// The bucket after the last one.
    end: Option<String>,
    /// The rows are at least as new as the data at this time.
    built_at: String,
    /// The number of rows, for administrators only.
    rows: Option<f64>,
    /// The size in bytes, for administrators only; null if the warehouse does not report it.
    size_bytes: Option<f64>,
}

/// A build of a pre-aggregation.
#[derive(Debug, Clone, PartialEq, SimpleObject)]
pub(crate) struct PreAggregationBuild {
    id: ID,
    cube: String,
    name: String,
    /// `pending`, `running`, `success`, `failed` or `cancelled`.
    status: String,
    /// `schedule` or `request`.
    origin: String,
    created_at: String,
    /// The time before which a pending build does not start.
    due_at: String,
    started_at: Option<String>,
    ended_at: Option<String>,
    /// The number of starts.
    attempts: u32,
    partitions_done: u32,
    /// Null until it is known.
    partitions_total: Option<u32>,
    /// The generation that it published; null also if nothing had changed.
    generation: Option<u64>,
    /// The code of the last failure, such as `NOT_VERIFIED`.
    error_code: Option<String>,
    /// The message of the last failure, for administrators only.
    error_message: Option<String>,
}

impl PreAggregation {
    pub(crate) fn partition_count(&self) -> usize {
        self.partitions.len()
    }
}

impl From<PreaggregationStatus> for PreAggregation {
    fn from(status: PreaggregationStatus) -> Self {
        PreAggregation {
            cube: status.cube,
            name: status.name,
            state: status.state.to_owned(),
            generation: status.generation,
            published_at: status.published_at,
            checked_at: status.checked_at,
            next_refresh_at: status.next_refresh_at,
            rows: status.rows.map(|rows| rows as f64),
            size_bytes: status.size_bytes.map(|size| size as f64),
            partitions: status.partitions.into_iter().map(PreAggregationPartition::from).collect(),
            build: status.build.map(PreAggregationBuild::from),
        }
    }
}

impl From<PreaggregationPartition> for PreAggregationPartition {
    fn from(partition: PreaggregationPartition) -> Self {
        PreAggregationPartition {
            start: partition.start,
            end: partition.end,
            built_at: partition.built_at,
            rows: partition.rows.map(|rows| rows as f64),
            size_bytes: partition.size_bytes.map(|size| size as f64),
        }
    }
}

impl From<PreaggregationBuild> for PreAggregationBuild {
    fn from(build: PreaggregationBuild) -> Self {
        PreAggregationBuild {
            id: build.id.into(),
            cube: build.cube,
            name: build.name,
            status: build.status.to_owned(),
            origin: build.origin.to_owned(),
            created_at: build.created_at,
            due_at: build.due_at,
            started_at: build.started_at,
            ended_at: build.ended_at,
            attempts: build.attempts,
            partitions_done: build.partitions_done,
            partitions_total: build.partitions_total,
            generation: build.generation,
            error_code: build.error_code,
            error_message: build.error_message,
        }
    }
}
