//! Answers of queries: rows in the format that the client prefers.
//!
//! In: an answer of the use case, whole or streamed. Out: a response. In JSON, the body contains the facts about the
//! rows. With CSV and Arrow, headers `x-terrane-*` contain the facts that are known before the rows.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, VARY};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use terrane_app::blocking::{MAX_INLINE_ROWS, over_rows};
use terrane_app::ports::result_cache::StoredResult;
use terrane_app::query::{Answer, AnswerStream, Opened, Piece};
use terrane_wire::answer::{AnswerFacts, after, before};
use terrane_wire::json::shared_rows;
use terrane_wire::query::QueryRequest;
use terrane_wire::rows::RowFormat;
use terrane_wire::{Code, RowEncoder, RowsError};

use super::conditional::ConditionalHeaders;
use crate::edge::ApiError;

pub(super) const TOTAL_ROWS: HeaderName = HeaderName::from_static("x-terrane-total-rows");
const TRUNCATED: HeaderName = HeaderName::from_static("x-terrane-truncated");
const CACHE_KEY: HeaderName = HeaderName::from_static("x-terrane-cache-key");
pub(super) const AS_OF: HeaderName = HeaderName::from_static("x-terrane-as-of");

/// Returns the response: `{data, query, meta}` in JSON, only the rows in CSV and Arrow.
pub(super) async fn respond(
    opened: Opened,
    request: &QueryRequest,
    format: RowFormat,
    conditions: &ConditionalHeaders,
) -> Result<Response, ApiError> {
    match opened {
        Opened::Whole(answer) => {
            let tag = answer.shared.as_ref().map(|shared| entity_tag(&answer, shared, request, format));
            if let Some(tag) = tag.as_deref().filter(|tag| conditions.has_entity(tag)) {
                let mut unchanged = Response::new(Body::empty());
                *unchanged.status_mut() = StatusCode::NOT_MODIFIED;
                add_tag(&mut unchanged, tag);
                return Ok(unchanged);
            }
            let mut response = whole(answer, request, format).await?;
            if let Some(tag) = tag {
                add_tag(&mut response, &tag);
            }
            Ok(response)
        }
        Opened::Streamed(answer) => Ok(streamed(answer, request, format)),
    }
}

/// Returns the entity tag of an answer's rows. The tag is weak, because answers with the same rows differ in facts such
/// as the age of the rows.
fn entity_tag(answer: &Answer, shared: &StoredResult, request: &QueryRequest, format: RowFormat) -> String {
    let form = request.numbers.form() + 16 * format as u8;
    let at = shared.as_of.as_nanosecond();
    let mut names = DefaultHasher::new();
    for column in &answer.columns {
        (&column.key, format!("{:?}", column.format)).hash(&mut names);
    }
    (&request.query.cube, answer.returned_rows).hash(&mut names);
    format!("W/\"{}-{}-{at:x}-{form:x}-{:x}\"", answer.cache_key, shared.version, names.finish())
}

/// Adds the headers that let clients store an answer and revalidate it later.
fn add_tag(response: &mut Response, tag: &str) {
    let headers = response.headers_mut();
    if let Ok(tag) = HeaderValue::from_str(tag) {
        headers.insert(ETAG, tag);
    }
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    headers.insert(VARY, HeaderValue::from_static("authorization, accept, accept-encoding"));
}

/// Returns `{data, query, meta}` of a small stored result, whose encoded rows all queries share.
fn stored(answer: &Answer, shared: &StoredResult, request: &QueryRequest) -> Vec<u8> {
    let rows = shared_rows(shared, &answer.columns, request.numbers);
    let end =
        Piece::End { returned_rows: answer.returned_rows, truncated: answer.truncated, duration: answer.duration };
    let mut body = before(RowFormat::Json);
    body.reserve(rows.len() + answer.sql.len() + 1_024);
    body.extend_from_slice(&rows);
    body.extend_from_slice(&after(RowFormat::Json, &facts(answer, request), &end));
    body
}

fn facts(answer: &Answer, request: &QueryRequest) -> AnswerFacts {
    AnswerFacts {
        sql: answer.sql.clone(),
        total_rows: answer.total_rows,
        totals: answer.totals.clone(),
        warnings: answer.warnings.clone(),
        cache_key: answer.cache_key.clone(),
        freshness: answer.freshness,
        pre_aggregations: answer.pre_aggregations.clone(),
        cube: request.query.cube.as_deref().map(str::to_owned),
        numbers: request.numbers,
    }
}

fn unwritable(error: &RowsError) -> ApiError {
    tracing::error!(event = "answer_broken_off", error_message = %error);
    ApiError::new(Code::InternalError, "the rows cannot be encoded in this format; request JSON")
}

async fn whole(answer: Answer, request: &QueryRequest, format: RowFormat) -> Result<Response, ApiError> {
    if format == RowFormat::Json
        && answer.returned_rows <= MAX_INLINE_ROWS
        && let Some(shared) = &answer.shared
    {
        let body = stored(&answer, shared, request);
        return Ok(response(Body::from(body), format, Vec::new()));
    }
    let facts = facts(&answer, request);
    let encoder = RowEncoder::new(format, answer.columns, &answer.schema, request.numbers);
    let headers = headers(&facts, format, answer.truncated);
    let (batches, returned_rows) = (answer.batches, answer.returned_rows);
    let (truncated, duration) = (answer.truncated, answer.duration);
    let encode = move || {
        let end = Piece::End { returned_rows, truncated, duration };
        encoder.encode(before(format), &batches, &after(format, &facts, &end))
    };
    let body = over_rows(returned_rows, encode).await.map_err(|error| unwritable(&error))?;
    Ok(response(Body::from(body), format, headers))
}

fn streamed(answer: AnswerStream, request: &QueryRequest, format: RowFormat) -> Response {
    let encoder = RowEncoder::new(format, answer.columns, &answer.schema, request.numbers);
    let facts = AnswerFacts {
        sql: answer.sql,
        total_rows: answer.total_rows,
        totals: answer.totals,
        warnings: answer.warnings,
        cache_key: answer.cache_key,
        freshness: answer.freshness,
        pre_aggregations: answer.pre_aggregations,
        cube: request.query.cube.as_deref().map(str::to_owned),
        numbers: request.numbers,
    };
    let headers = headers(&facts, format, answer.truncated);
    let bytes = encoder.encode_stream(before(format), answer.pieces, move |end| after(format, &facts, end));
    response(Body::from_stream(bytes), format, headers)
}

fn response(body: Body, format: RowFormat, headers: Vec<(HeaderName, HeaderValue)>) -> Response {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(format.content_type()));
    response.headers_mut().insert(VARY, HeaderValue::from_static("accept, accept-encoding"));
    response.headers_mut().extend(headers);
    response
}

/// Returns the facts that are known before the rows as headers. JSON has them in its body.
fn headers(facts: &AnswerFacts, format: RowFormat, truncated: Option<bool>) -> Vec<(HeaderName, HeaderValue)> {
    if format == RowFormat::Json {
        return Vec::new();
    }
    let total_rows = facts.total_rows.map(|rows| (TOTAL_ROWS, HeaderValue::from(rows)));
    let truncated = truncated.map(|truncated| if truncated { "true" } else { "false" });
    let truncated = truncated.map(|word| (TRUNCATED, HeaderValue::from_static(word)));
    let cache_key = HeaderValue::from_str(&facts.cache_key).ok().map(|key| (CACHE_KEY, key));
    let as_of = HeaderValue::from_str(&facts.freshness.as_of.to_string()).ok().map(|as_of| (AS_OF, as_of));
    [total_rows, truncated, cache_key, as_of].into_iter().flatten().collect()
}
