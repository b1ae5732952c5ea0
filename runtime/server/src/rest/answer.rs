//! Answers of queries: rows in the format that the client prefers.
//!
//! In: an answer of the use case, whole or streamed. Out: a response. JSON has the facts about the rows in its body;
//! CSV and Arrow have those that are known before the rows in headers `x-terrane-*`.

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, VARY};
use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use terrane_app::query::{Answer, AnswerStream, Opened, Piece};
use terrane_wire::answer::{AnswerFacts, after, before};
use terrane_wire::query::QueryRequest;
use terrane_wire::rows::RowFormat;
use terrane_wire::{Code, RowEncoder, RowsError};

use crate::edge::ApiError;

/// The number of rows that are encoded in place. More are encoded on a thread of their own, so that other requests
/// don't wait.
const MAX_INLINE_ROWS: u64 = 2_000;

const TOTAL_ROWS: HeaderName = HeaderName::from_static("x-terrane-total-rows");
const TRUNCATED: HeaderName = HeaderName::from_static("x-terrane-truncated");
const CACHE_KEY: HeaderName = HeaderName::from_static("x-terrane-cache-key");

/// Returns `{data, query, meta}`, or the rows alone.
pub(super) async fn respond(opened: Opened, request: &QueryRequest, format: RowFormat) -> Result<Response, ApiError> {
    match opened {
        Opened::Whole(answer) => whole(answer, request, format).await,
        Opened::Streamed(answer) => Ok(streamed(answer, request, format)),
    }
}

async fn whole(answer: Answer, request: &QueryRequest, format: RowFormat) -> Result<Response, ApiError> {
    let encoder = RowEncoder::new(format, answer.columns, &answer.schema, request.numbers);
    let facts = AnswerFacts {
        sql: answer.sql,
        total_rows: answer.total_rows,
        totals: answer.totals,
        warnings: answer.warnings,
        cache_key: answer.cache_key,
        cube: request.query.cube.as_deref().map(str::to_owned),
        numbers: request.numbers,
    };
    let headers = headers(&facts, format, answer.truncated);
    let (batches, returned_rows) = (answer.batches, answer.returned_rows);
    let (truncated, duration) = (answer.truncated, answer.duration);
    let encode = move || {
        let end = Piece::End { returned_rows, truncated, duration };
        encoder.encode(before(format), &batches, &after(format, &facts, &end))
    };
    let encoded = if returned_rows <= MAX_INLINE_ROWS {
        encode()
    } else {
        // A panic of the thread goes on here, where the edge answers it.
        tokio::task::spawn_blocking(encode).await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
    };
    let body = encoded.map_err(|error: RowsError| {
        tracing::error!(event = "answer_broken_off", error_message = %error);
        ApiError::new(Code::InternalError, "the rows cannot be written in this format; JSON can hold them")
    })?;
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

/// Returns the headers of the known facts. JSON has them in its body.
fn headers(facts: &AnswerFacts, format: RowFormat, truncated: Option<bool>) -> Vec<(HeaderName, HeaderValue)> {
    if format == RowFormat::Json {
        return Vec::new();
    }
    let total_rows = facts.total_rows.map(|rows| (TOTAL_ROWS, HeaderValue::from(rows)));
    let truncated = truncated.map(|truncated| if truncated { "true" } else { "false" });
    let truncated = truncated.map(|word| (TRUNCATED, HeaderValue::from_static(word)));
    let cache_key = HeaderValue::from_str(&facts.cache_key).ok().map(|key| (CACHE_KEY, key));
    [total_rows, truncated, cache_key].into_iter().flatten().collect()
}
