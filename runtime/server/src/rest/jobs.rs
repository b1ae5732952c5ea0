//! Asynchronous queries: submit, list, read, cancel, and page through results. Profiles that run as jobs are listed,
//! read and cancelled here as well.

use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, LOCATION, RETRY_AFTER, VARY};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::Response;
use futures_util::{StreamExt as _, stream};
use terrane_app::jobs::{JobError, JobOutput, JobPage, MAX_KEY_CHARS, Submission};
use terrane_app::ports::jobs::Job;
use terrane_app::ports::results::ResultDescription;
use terrane_app::query::Piece;
use terrane_wire::jobs::{self as wire, JobAnswer, JobList, JobOutputBody, JobResultMeta};
use terrane_wire::query::{self, Query};
use terrane_wire::rows::RowFormat;
use terrane_wire::{Code, ErrorBody, RowEncoder, RowsError, schema};

use super::answer::{AS_OF, TOTAL_ROWS};
use super::{format, stored_profile};
use crate::app::{App, Scope};
use crate::edge::{ApiError, Call, RouteAccess, Routes, json_answer};
use crate::openapi::{Compression, Content, Doc, Parameter, ParameterKind, RequestBody, ResponseDoc};

const READ: RouteAccess = RouteAccess::Scoped(Scope::Read);
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const PREFER: HeaderName = HeaderName::from_static("prefer");

pub(super) fn register(routes: Routes) -> Routes {
    routes
        .post("/api/v1/query/async", READ, &SUBMIT, submit)
        .get("/api/v1/query/async", READ, &LIST, list)
        .get("/api/v1/query/async/{id}", READ, &SHOW, show)
        .on(Method::DELETE, "/api/v1/query/async/{id}", READ, &CANCEL, cancel)
        .get("/api/v1/query/async/{id}/result", READ, &RESULT, result)
}

async fn submit(app: App, call: Call) -> Result<Response, ApiError> {
    let (identity, context) = (call.identity(), call.context.clone());
    let idempotency_key = idempotency_key(call.headers())?;
    let wait = prefer(call.headers()).and_then(wire::preferred_wait).unwrap_or(Duration::ZERO);
    let body = call.json_body(&app).await?;
    let request = query::from_wire(&body)?;
    let text = String::from_utf8_lossy(&body).into();
    let submission = Submission { text, query: &request.query, idempotency_key };
    let refused = |error| self::error(error, &context.scopes);
    let jobs = &app.services.jobs;
    let job = jobs.submit(&identity, &context, submission).await.map_err(refused)?;
    let job = if wait.is_zero() { job } else { jobs.wait(&identity, &job.id, wait).await.map_err(refused)? };
    // An open job has no result yet, so the status is 202.
    Ok(if job.state.is_open() { accepted(&job) } else { located(&job) })
}

/// Returns whether a header `Prefer` asks for a job.
pub(super) fn prefers_async(headers: &HeaderMap) -> bool {
    prefer(headers).is_some_and(wire::prefers_async)
}

fn prefer(headers: &HeaderMap) -> Option<&str> {
    headers.get(PREFER).and_then(|value| value.to_str().ok())
}

/// Returns the response to a submission whose job runs later.
pub(super) fn accepted(job: &Job) -> Response {
    let mut response = located(job);
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

/// Returns the state of a job with its address.
fn located(job: &Job) -> Response {
    let mut response = state(job);
    if let Ok(location) = HeaderValue::from_str(&wire::poll_url(&job.id)) {
        response.headers_mut().insert(LOCATION, location);
    }
    response
}

async fn list(app: App, call: Call) -> Result<Response, ApiError> {
    let limit = wire::list_from_parameters(call.query_string())?;
    let jobs = app.services.jobs.list(&call.identity(), limit).await;
    Ok(json_answer(&JobList::new(&jobs.map_err(|error| self::error(error, &call.scopes))?)))
}

async fn show(app: App, mut call: Call) -> Result<Response, ApiError> {
    let wait = wire::wait_from_parameters(call.query_string())?;
    let id = call.path_parameter().await?;
    let job = app.services.jobs.wait(&call.identity(), &id, wait).await;
    Ok(state(&job.map_err(|error| self::error(error, &call.scopes))?))
}

async fn cancel(app: App, mut call: Call) -> Result<Response, ApiError> {
    let id = call.path_parameter().await?;
    let job = app.services.jobs.cancel(&call.identity(), &call.origin(), &id).await;
    Ok(state(&job.map_err(|error| self::error(error, &call.scopes))?))
}

async fn result(app: App, mut call: Call) -> Result<Response, ApiError> {
    let format = format::accepted(call.headers())?;
    let (offset, limit) = wire::page_from_parameters(call.query_string(), format)?;
    let id = call.path_parameter().await?;
    let output = app.services.jobs.output(&call.identity(), &call.context, &id, offset, limit).await;
    match output.map_err(|error| self::error(error, &call.scopes))? {
        JobOutput::Rows(page) => rows(*page, format, offset, limit),
        JobOutput::Profile(text) => stored_profile::answer(&text),
    }
}

fn rows(page: JobPage, format: RowFormat, offset: u64, limit: u64) -> Result<Response, ApiError> {
    let JobPage { job, total_rows, page } = page;
    let numbers = query::from_wire(job.query.as_bytes())?.numbers;
    let returned_rows = limit.min(total_rows.saturating_sub(offset));
    let end = Piece::End { returned_rows, truncated: None, duration: Duration::ZERO };
    let rows = page.rows.map(|batch| batch.map(Piece::Rows).map_err(RowsError::from)).chain(stream::iter([Ok(end)]));
    let ResultDescription { columns, as_of, warnings } = page.description;
    let encoder = RowEncoder::new(format, columns, &page.schema, numbers);
    let as_of = as_of.map(|as_of| as_of.to_string());
    let as_of_header = as_of.as_deref().and_then(|as_of| HeaderValue::from_str(as_of).ok());
    let meta = JobResultMeta { total_rows, returned_rows, warnings, as_of };
    let after = move |_: &Piece| wire::after_page(format, &meta);
    let bytes = encoder.encode_stream(wire::before_page(format), rows.boxed(), after);
    let mut response = Response::new(Body::from_stream(bytes));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(format.content_type()));
    headers.insert(VARY, HeaderValue::from_static("accept, accept-encoding"));
    if format != RowFormat::Json {
        headers.insert(TOTAL_ROWS, HeaderValue::from(total_rows));
        headers.extend(as_of_header.map(|as_of| (AS_OF, as_of)));
    }
    Ok(response)
}

fn state(job: &Job) -> Response {
    let mut response = json_answer(&JobAnswer::from(job));
    if job.state.is_open() {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

pub(super) fn idempotency_key(headers: &HeaderMap) -> Result<Option<std::sync::Arc<str>>, ApiError> {
    let Some(value) = headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    let is_valid =
        |key: &&str| (1..=MAX_KEY_CHARS).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic());
    let key = value.to_str().ok().filter(is_valid);
    key.map(|key| Some(key.into())).ok_or_else(|| {
        let message = format!("header `Idempotency-Key` has 1 to {MAX_KEY_CHARS} visible ASCII characters");
        ApiError::new(Code::InvalidQuery, message).detail("field", "Idempotency-Key")
    })
}

pub(super) fn error(error: JobError, scopes: &crate::app::Scopes) -> ApiError {
    let is_caller_full = matches!(error, JobError::CallerFull { .. } | JobError::TenantFull { .. });
    let refusal = ApiError::from(ErrorBody::from_job(error, *scopes));
    if is_caller_full { refusal.header(RETRY_AFTER, HeaderValue::from_static("5")) } else { refusal }
}

const TAG: &str = "query";
const ID: Parameter = Parameter::path("id", "the `job_id`");
pub(super) const KEY_OF_JOB: Parameter = Parameter::header(
    "Idempotency-Key",
    ParameterKind::Visible(MAX_KEY_CHARS),
    "a name that the caller chooses for the job; repeating the same body with the same name returns the same job",
);
pub(super) const JOB: &[Content] = &[Content::Json(schema::of::<JobAnswer>())];

pub(super) const fn answer(status: u16, description: &'static str, content: &'static [Content]) -> ResponseDoc {
    ResponseDoc { status, description, content, compression: Compression::Accepted }
}

static SUBMIT: Doc = Doc {
    id: "submit_job",
    tag: TAG,
    summary: "Run a query as a job; `Prefer: wait=N` waits for it, `Idempotency-Key` makes repeating safe",
    parameters: &[
        KEY_OF_JOB,
        Parameter::header(
            "Prefer",
            ParameterKind::String,
            "`wait=N`: wait at most N seconds for the end of the job; N is at most 30",
        ),
    ],
    body: Some(RequestBody::required(schema::of::<Query>())),
    answers: &[
        answer(202, "the job is stored; `Location` contains its address", JOB),
        answer(200, "the job ended while the request waited", JOB),
    ],
    errors: &[
        Code::InvalidQuery,
        Code::InvalidMeasure,
        Code::InvalidDimension,
        Code::InvalidFilter,
        Code::NoJoinPath,
        Code::UnsupportedMediaType,
        Code::ValidationError,
    ],
    detail_errors: &[],
};

static LIST: Doc = Doc {
    id: "list_jobs",
    tag: TAG,
    summary: "List the caller's own jobs, newest first",
    parameters: &[Parameter::query("limit", ParameterKind::Within(0, 100), "the maximum number of jobs; default 20")],
    body: None,
    answers: &[answer(200, "the jobs", &[Content::Json(schema::of::<JobList>())])],
    errors: &[Code::InvalidQuery],
    detail_errors: &[],
};

static SHOW: Doc = Doc {
    id: "show_job",
    tag: TAG,
    summary: "Read the state of a job",
    parameters: &[
        ID,
        Parameter::query("wait", ParameterKind::Within(0, 30), "the number of seconds to wait for the end of the job"),
    ],
    body: None,
    answers: &[answer(200, "the job", JOB)],
    errors: &[Code::InvalidQuery, Code::NotFound],
    detail_errors: &[],
};

static CANCEL: Doc = Doc {
    id: "cancel_job",
    tag: TAG,
    summary: "Cancel a job that has not ended, or delete the result of one that is complete",
    parameters: &[ID],
    body: None,
    answers: &[answer(200, "the job; `running` if it has not ended within 5 seconds", JOB)],
    errors: &[Code::NotFound],
    detail_errors: &[],
};

static RESULT: Doc = Doc {
    id: "job_result",
    tag: TAG,
    summary: "Read rows of the result of a complete job, or its profile",
    parameters: &[
        ID,
        Parameter::query("offset", ParameterKind::Integer(0), "the number of rows to skip"),
        Parameter::query(
            "limit",
            ParameterKind::Integer(0),
            "the maximum number of rows; default 10000 for JSON, all rows for other formats",
        ),
    ],
    body: None,
    answers: &[answer(
        200,
        "the rows; none if `offset` is beyond the end",
        &[
            Content::Json(schema::of::<JobOutputBody>()),
            Content::Text("text/csv"),
            Content::Binary("application/vnd.apache.arrow.stream"),
        ],
    )],
    errors: &[
        Code::InvalidQuery,
        Code::NotFound,
        Code::Conflict,
        Code::Gone,
        Code::UnsupportedMediaType,
        Code::ResultsUnavailable,
    ],
    detail_errors: &[],
};
