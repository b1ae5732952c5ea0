//! Pre-aggregations: their state, requests to build them, and builds.
//!
//! In: bodies of requests, and the use case's records. Out: requests to build, and the records as JSON. Numbers of
//! rows, sizes and messages of the warehouse are for administrators; other callers get null.

mod definition;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;
use terrane_app::ports::preaggregations::{BuildOrigin, BuildState, PublishedTable, RollupBuild};
use terrane_app::preaggregations::{RefreshRequest, RollupStatus, ServedState, bucket_text};

pub use definition::definition_yaml;

use crate::body::parse;
use crate::fields::{FieldError, Fields, Path};
use crate::project::Audience;
use crate::schema;

pub(crate) const REFRESH: &[&str] = &["cube", "name", "partitions"];
const PARTITIONS: &str = "a list of dates or times, like [\"2026-01\"],";
const EXAMPLE: &str = "an object like {\"cube\": \"orders\", \"name\": \"daily\"}";

/// The pre-aggregations to build.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PreaggregationRefresh {
    /// The name of the cube. Default: all cubes.
    pub cube: Option<String>,
    /// The name of a pre-aggregation. Default: all pre-aggregations of the cubes.
    pub name: Option<String>,
    /// A date, time or period in each partition to build, such as `2026-01` or `2026-Q1`, in the pre-aggregation's time
    /// zone. All partitions if it is absent.
    pub partitions: Option<Vec<String>>,
}

/// The state of all pre-aggregations that the caller may see.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PreaggregationsStatus {
    /// True if this server builds pre-aggregations.
    pub enabled: bool,
    pub pre_aggregations: Vec<PreaggregationStatus>,
}

/// The state of one pre-aggregation.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PreaggregationStatus {
    pub cube: String,
    pub name: String,
    /// `not_built`, `ready`, or `outdated` if the tables were built from other definitions, so that no query reads
    /// them.
    #[schemars(schema_with = "served_state")]
    pub state: &'static str,
    /// A number that grows with each publication of new tables.
    pub generation: Option<u64>,
    /// The time since which queries read these tables.
    pub published_at: Option<String>,
    /// The time at which the rows of the cube were last compared with the tables.
    pub checked_at: Option<String>,
    pub next_refresh_at: Option<String>,
    /// The number of rows, for administrators only.
    pub rows: Option<u64>,
    /// The size in bytes, for administrators, if the warehouse reports it.
    pub size_bytes: Option<u64>,
    /// The tables. The list is empty for callers from whom policies or hooks may hide rows or times of the cube.
    pub partitions: Vec<PreaggregationPartition>,
    /// The newest build.
    pub build: Option<PreaggregationBuild>,
}

/// One table of a pre-aggregation.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PreaggregationPartition {
    /// The first bucket; null if the table has all rows.
    pub start: Option<String>,
    /// The bucket after the last one.
    pub end: Option<String>,
    /// The rows are at least as new as the data at this time.
    #[schemars(schema_with = "schema::timestamp")]
    pub built_at: String,
    /// The number of rows, for administrators only.
    pub rows: Option<u64>,
    /// The size in bytes, for administrators, if the warehouse reports it.
    pub size_bytes: Option<u64>,
}

/// Builds that were requested.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PreaggregationBuilds {
    pub builds: Vec<PreaggregationBuild>,
}

/// A build of a pre-aggregation.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PreaggregationBuild {
    pub id: String,
    pub cube: String,
    pub name: String,
    #[schemars(schema_with = "build_state")]
    pub status: &'static str,
    /// `schedule` or `request`.
    #[schemars(schema_with = "build_origin")]
    pub origin: &'static str,
    #[schemars(schema_with = "schema::timestamp")]
    pub created_at: String,
    /// The time before which a pending build does not start.
    #[schemars(schema_with = "schema::timestamp")]
    pub due_at: String,
    pub started_at: Option<String>,
    pub ended_at: Option<String>,
    /// The number of starts.
    pub attempts: u32,
    /// The number of built partitions; 0 for callers from whom policies or hooks may hide rows or times of the cube.
    pub partitions_done: u32,
    /// Null until it is known, and for callers from whom policies or hooks may hide rows or times of the cube.
    pub partitions_total: Option<u32>,
    /// The generation that it published; null also if nothing had changed.
    pub generation: Option<u64>,
    /// The code of the last failure, such as `NOT_VERIFIED`.
    pub error_code: Option<String>,
    /// The message of the last failure, for administrators only.
    pub error_message: Option<String>,
}

/// Reads the body of a request to build pre-aggregations, which may be empty.
///
/// # Errors
/// Names the field that is invalid.
pub fn refresh_from_wire(body: &[u8]) -> Result<RefreshRequest, FieldError> {
    if body.is_empty() {
        return Ok(RefreshRequest::default());
    }
    let value = parse(body)?;
    let fields = Fields::new(&value, &Path::ROOT, EXAMPLE, REFRESH)?;
    Ok(RefreshRequest {
        cube: fields.string("cube", "a cube's name")?.map(str::to_owned),
        name: fields.string("name", "a pre-aggregation's name")?.map(str::to_owned),
        partitions: match fields.get("partitions") {
            None => Vec::new(),
            Some(_) => fields.list("partitions", PARTITIONS, partition)?,
        },
    })
}

fn partition(value: &Json, path: &Path<'_>) -> Result<String, FieldError> {
    match value {
        Json::String(text) => Ok(text.clone()),
        other => Err(path.invalid_type(other, "a date or time such as \"2026-01\"")),
    }
}

impl PreaggregationsStatus {
    pub fn new(enabled: bool, found: &[RollupStatus], audience: Audience) -> Self {
        let pre_aggregations = found.iter().map(|status| PreaggregationStatus::new(status, audience)).collect();
        PreaggregationsStatus { enabled, pre_aggregations }
    }
}

impl PreaggregationStatus {
    pub fn new(status: &RollupStatus, audience: Audience) -> Self {
        let publication = status.publication.as_ref();
        let tables = publication.map(|published| &*published.tables).unwrap_or_default();
        let sizes: Option<u64> = tables.iter().map(|table| table.bytes).sum();
        PreaggregationStatus {
            cube: status.rollup.cube.to_string(),
            name: status.rollup.name.to_string(),
            state: status.state.as_str(),
            generation: publication.map(|published| published.generation),
            published_at: publication.map(|published| published.published_at.to_string()),
            checked_at: publication.map(|published| published.checked_at.to_string()),
            next_refresh_at: status.next_refresh_at.map(|at| at.to_string()),
            rows: publication
                .filter(|_| !status.is_limited)
                .and_then(|_| audience.see(tables.iter().map(|table| table.rows).sum())),
            size_bytes: publication.filter(|_| !status.is_limited).and(sizes).and_then(|size| audience.see(size)),
            partitions: tables.iter().map(|table| PreaggregationPartition::new(table, audience)).collect(),
            build: status.build.as_ref().map(|build| PreaggregationBuild::new(build, audience)),
        }
    }
}

impl PreaggregationPartition {
    fn new(table: &PublishedTable, audience: Audience) -> Self {
        PreaggregationPartition {
            start: table.range.map(|range| bucket_text(range.start)),
            end: table.range.map(|range| bucket_text(range.end)),
            built_at: table.built_at.to_string(),
            rows: audience.see(table.rows),
            size_bytes: table.bytes.and_then(|size| audience.see(size)),
        }
    }
}

impl PreaggregationBuild {
    pub fn new(build: &RollupBuild, audience: Audience) -> Self {
        PreaggregationBuild {
            id: build.id.to_string(),
            cube: build.rollup.cube.to_string(),
            name: build.rollup.name.to_string(),
            status: build.state.as_str(),
            origin: build.origin.as_str(),
            created_at: build.created_at.to_string(),
            due_at: build.due_at.to_string(),
            started_at: build.started_at.map(|at| at.to_string()),
            ended_at: build.ended_at.map(|at| at.to_string()),
            attempts: build.attempts,
            partitions_done: build.tables_done,
            partitions_total: build.tables_total,
            generation: build.generation,
            error_code: build.error_code.as_deref().map(str::to_owned),
            error_message: build.error.as_deref().and_then(|error| audience.see(error.to_owned())),
        }
    }
}

fn served_state(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let states = [ServedState::NotBuilt, ServedState::Ready, ServedState::Outdated];
    schema::words(&states.map(ServedState::as_str))
}

fn build_state(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schema::words(&BuildState::ALL.map(BuildState::as_str))
}

fn build_origin(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schema::words(&[BuildOrigin::Schedule, BuildOrigin::Request].map(BuildOrigin::as_str))
}
