//! Asynchronous queries: jobs as JSON, and the text around the pages of their results. See "Asynchronous queries" in
//! `runtime/docs/reference/query.md`.
//!
//! In: a [`Job`], parameters, headers. Out: bodies and numbers. The query of a job is the body of a query
//! (`query`), stored as it was sent.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use terrane_app::jobs::JobTexts;
use terrane_app::jobs::{MAX_LISTED, MAX_WAIT};
use terrane_app::ports::jobs::{Job, JobFailure, JobKind, JobState};
use terrane_app::profiling::{ProfileError, RequestedProfile};
use terrane_app::query::{CacheControl, QueryRunError};
use terrane_app::security::Scopes;
use terrane_compiler::query::SemanticQuery;

use crate::answer::Row;
use crate::error::ErrorBody;
use crate::fields::{FieldError, Path};
use crate::profile::{DimensionProfile, StoredCubeProfile, profile_of_job};
use crate::query;
use crate::rows::RowFormat;
use crate::schema;

const PAGE: &[&str] = &["offset", "limit"];
const WAIT: &[&str] = &["wait"];
const LIST: &[&str] = &["limit"];
/// The number of rows of a JSON page if no limit is given. CSV and Arrow contain all rows.
const DEFAULT_PAGE_ROWS: u64 = 10_000;
const DEFAULT_LISTED: u32 = 20;

/// An asynchronous query.
#[derive(Debug, Serialize, JsonSchema)]
pub struct JobAnswer {
    pub job_id: String,
    /// `query` or `profile`.
    pub kind: &'static str,
    /// `pending`, `running`, `complete`, `failed`, `cancelled` or `expired`.
    pub status: &'static str,
    pub created_at: String,
    pub poll_url: String,
    /// The written share of the rows in percent; null if it is unknown.
    pub progress: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<String>,
    /// The time at which the result is deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub result_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub row_count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub error: Option<JobErrorAnswer>,
}

/// The reason why a job failed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct JobErrorAnswer {
    pub code: String,
    pub message: String,
}

/// The jobs of a caller, newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub struct JobList {
    pub jobs: Vec<JobAnswer>,
}

/// A job as the operator sees it.
#[derive(Debug, Serialize)]
pub struct OperatorJob {
    #[serde(flatten)]
    pub job: JobAnswer,
    /// The user id of the caller who submitted the job; empty for anonymous callers.
    pub user_id: String,
    pub tenant: Option<String>,
    pub attempts: u32,
    /// The query as it was sent.
    pub query: String,
    pub correlation_id: Option<String>,
}

/// The result of a job: a page of rows, or the profile of a cube or a dimension.
#[derive(Debug, JsonSchema)]
#[schemars(untagged)]
pub enum JobOutputBody<'a> {
    Rows(JobResult),
    Cube(Box<StoredCubeProfile<'a>>),
    Dimension(Box<DimensionProfile<'a>>),
}

/// A page of a result.
#[derive(Debug, JsonSchema)]
pub struct JobResult {
    pub data: Vec<Row>,
    pub meta: JobResultMeta,
}

/// Metadata of a page of a result.
#[derive(Debug, Serialize, JsonSchema)]
pub struct JobResultMeta {
    /// The number of rows of the whole result.
    pub total_rows: u64,
    pub returned_rows: u64,
    pub warnings: Vec<String>,
    /// The rows are at least as new as the data was at this time. Results of older versions of the server have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::timestamp")]
    pub as_of: Option<String>,
}

/// Returns the path of a job.
pub fn poll_url(id: &str) -> String {
    format!("/api/v1/query/async/{id}")
}

impl From<&Job> for JobAnswer {
    fn from(job: &Job) -> Self {
        let time = |time: Option<Timestamp>| time.map(|time| time.to_string());
        let is_complete = job.state == JobState::Complete;
        let rows = job.manifest.as_ref().filter(|_| is_complete && job.kind == JobKind::Query);
        JobAnswer {
            job_id: job.id.to_string(),
            kind: job.kind.as_str(),
            status: job.state.as_str(),
            created_at: job.created_at.to_string(),
            poll_url: poll_url(&job.id),
            progress: job.progress,
            started_at: time(job.started_at),
            completed_at: time(job.completed_at),
            expires_at: time(job.expires_at),
            result_url: is_complete.then(|| format!("{}/result", poll_url(&job.id))),
            row_count: rows.map(|manifest| manifest.rows),
            error: job
                .failure
                .as_ref()
                .map(|failure| JobErrorAnswer { code: failure.code.to_string(), message: failure.message.to_string() }),
        }
    }
}

impl From<&Job> for OperatorJob {
    fn from(job: &Job) -> Self {
        OperatorJob {
            job: JobAnswer::from(job),
            user_id: job.owner.caller.user_id.to_string(),
            tenant: job.owner.tenant.as_deref().map(str::to_owned),
            attempts: job.attempts,
            query: job.query.to_string(),
            correlation_id: job.correlation_id.as_deref().map(str::to_owned),
        }
    }
}

impl JobList {
    pub fn new(jobs: &[Job]) -> Self {
        JobList { jobs: jobs.iter().map(JobAnswer::from).collect() }
    }
}

/// Reads `wait`, in seconds.
///
/// # Errors
/// Names the parameter that is invalid.
pub fn wait_from_parameters(query: &str) -> Result<Duration, FieldError> {
    let [seconds] = numbers(query, WAIT, [MAX_WAIT.as_secs()])?;
    Ok(Duration::from_secs(seconds.unwrap_or(0)))
}

/// Reads the `limit` of a list.
///
/// # Errors
/// Names the parameter that is invalid.
pub fn list_from_parameters(query: &str) -> Result<u32, FieldError> {
    let [limit] = numbers(query, LIST, [u64::from(MAX_LISTED)])?;
    Ok(limit.and_then(|limit| u32::try_from(limit).ok()).unwrap_or(DEFAULT_LISTED))
}

/// Reads `offset` and `limit` of a page.
///
/// # Errors
/// Names the parameter that is invalid.
pub fn page_from_parameters(query: &str, format: RowFormat) -> Result<(u64, u64), FieldError> {
    let [offset, limit] = numbers(query, PAGE, [u64::MAX, u64::MAX])?;
    let all = if format == RowFormat::Json { DEFAULT_PAGE_ROWS } else { u64::MAX };
    Ok((offset.unwrap_or(0), limit.unwrap_or(all)))
}

fn numbers<const N: usize>(
    query: &str,
    known: &'static [&'static str],
    most: [u64; N],
) -> Result<[Option<u64>; N], FieldError> {
    let mut numbers = [None; N];
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        // The caller's credential, which every route accepts.
        if name == "api_key" {
            continue;
        }
        let place = known.iter().position(|known| *known == name);
        let place = place.ok_or_else(|| Path::ROOT.unknown_field(&name, known))?;
        let number = value.parse::<u64>().ok().filter(|number| *number <= most[place]);
        let expected = if most[place] == u64::MAX {
            "an integer, 0 or more,".to_owned()
        } else {
            format!("an integer from 0 to {}", most[place])
        };
        let number = number.ok_or_else(|| Path::ROOT.field(&name).invalid_value(&value, &expected))?;
        numbers[place] = Some(number);
    }
    Ok(numbers)
}

/// Returns the preference `wait` of a header `Prefer` (RFC 7240). Other preferences are ignored, and a wait above the
/// maximum is shortened to it.
pub fn preferred_wait(prefer: &str) -> Option<Duration> {
    let seconds = prefer.split([',', ';']).find_map(|preference| {
        let (name, value) = preference.split_once('=')?;
        name.trim().eq_ignore_ascii_case("wait").then(|| value.trim().trim_matches('"').parse::<u64>().ok())?
    })?;
    Some(Duration::from_secs(seconds).min(MAX_WAIT))
}

/// Returns whether a header `Prefer` (RFC 7240) has the preference `respond-async`.
pub fn prefers_async(prefer: &str) -> bool {
    prefer.split([',', ';']).any(|preference| preference.trim().eq_ignore_ascii_case("respond-async"))
}

/// Returns the text before the rows of a page.
pub fn before_page(format: RowFormat) -> Vec<u8> {
    crate::answer::before(format)
}

/// Returns the text after the rows of a page.
pub fn after_page(format: RowFormat, meta: &JobResultMeta) -> Vec<u8> {
    match format {
        RowFormat::Json => {
            // Strings and numbers always serialize.
            let meta = serde_json::to_string(meta).unwrap_or_default();
            format!("],\"meta\":{meta}}}").into_bytes()
        }
        RowFormat::Csv | RowFormat::Arrow => Vec::new(),
    }
}

/// Converts the stored queries of jobs, and their failures.
#[derive(Debug, Clone, Copy)]
pub struct Texts;

impl JobTexts for Texts {
    fn query(&self, text: &str) -> Result<(SemanticQuery, CacheControl), JobFailure> {
        let request = query::from_wire(text.as_bytes()).map_err(|error| failure(ErrorBody::from(error)))?;
        Ok((request.query, request.cache))
    }

    fn profile(&self, text: &str) -> Result<RequestedProfile, JobFailure> {
        profile_of_job(text).map_err(|error| failure(ErrorBody::from(error)))
    }

    fn failure(&self, error: QueryRunError, scopes: Scopes) -> JobFailure {
        failure(ErrorBody::from_run(error, scopes))
    }

    fn profile_failure(&self, error: ProfileError, scopes: Scopes) -> JobFailure {
        failure(ErrorBody::from_profile(error, scopes))
    }
}

fn failure(body: ErrorBody) -> JobFailure {
    let code: Arc<str> = body.code.as_str().into();
    JobFailure { code, message: body.message.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preferences_are_read() {
        let seconds = |text: &str| preferred_wait(text).map(|wait| wait.as_secs());
        assert_eq!(seconds("wait=5"), Some(5));
        assert_eq!(seconds("respond-async, Wait = \"7\""), Some(7));
        assert_eq!(seconds("wait=400"), Some(30));
        assert_eq!(seconds("wait=soon"), None);
        assert_eq!(seconds("respond-async"), None);
        assert!(prefers_async("respond-async") && prefers_async("wait=5, Respond-Async"));
        assert!(!prefers_async("wait=5") && !prefers_async("respond-async=no"));
    }

    #[test]
    fn parameters_are_checked() {
        assert_eq!(page_from_parameters("offset=3", RowFormat::Json).unwrap(), (3, DEFAULT_PAGE_ROWS));
        assert_eq!(page_from_parameters("limit=4", RowFormat::Csv).unwrap(), (0, 4));
        assert_eq!(wait_from_parameters("wait=30").unwrap(), Duration::from_secs(30));
        for wrong in ["wait=31", "wait=-1", "wait=x", "waite=1"] {
            assert!(wait_from_parameters(wrong).is_err(), "{wrong}");
        }
        assert!(list_from_parameters("limit=101").is_err());
        assert!(page_from_parameters("offset=1.5", RowFormat::Json).is_err());
    }

    #[test]
    fn page_has_the_specified_form() {
        let as_of = Some("2024-01-01T00:00:00Z".to_owned());
        let meta = JobResultMeta { total_rows: 9, returned_rows: 0, warnings: vec!["cut".to_owned()], as_of };
        let text = [before_page(RowFormat::Json), after_page(RowFormat::Json, &meta)].concat();
        let page: serde_json::Value = serde_json::from_slice(&text).unwrap();
        let meta = serde_json::json!({"total_rows": 9, "returned_rows": 0, "warnings": ["cut"], "as_of": "2024-01-01T00:00:00Z"});
        assert_eq!(page, serde_json::json!({"data": [], "meta": meta}));
    }
}
