//! Answers of queries: rows in the format that the client wants, and what is known of them.
//!
//! JSON has both in its body, `meta` behind `data`. CSV and Arrow are rows alone; there the headers
//! `x-terrane-*` say what can be said before the rows.

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, VARY};
use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use terrane_app::query::{Answer, AnswerStream, Opened, Piece, Totals};
use terrane_compiler::types::Value;

use super::format::Format;
use super::query::QueryRequest;
use crate::error::{ApiError, Code};
use crate::json::{self, write_string};
use crate::rows::{BrokenOff, RowEncoder};

/// More rows are written on a thread of their own, so that other requests don't wait.
const MAX_INLINE_ROWS: u64 = 2_000;

const TOTAL_ROWS: HeaderName = HeaderName::from_static("x-terrane-total-rows");
const TRUNCATED: HeaderName = HeaderName::from_static("x-terrane-truncated");
const CACHE_KEY: HeaderName = HeaderName::from_static("x-terrane-cache-key");

/// `{data, query, meta}`, or the rows alone.
pub(crate) async fn to_wire(opened: Opened, request: &QueryRequest, format: Format) -> Result<Response, ApiError> {
    match opened {
        Opened::Whole(answer) => whole(answer, request, format).await,
        Opened::Streamed(answer) => Ok(streamed(answer, request, format)),
    }
}

async fn whole(answer: Answer, request: &QueryRequest, format: Format) -> Result<Response, ApiError> {
    let encoder = encoder(answer.columns, &answer.schema, request, format);
    let facts = Facts {
        sql: answer.sql,
        total_rows: answer.total_rows,
        totals: answer.totals.map(|totals| totals_to_wire(&totals, request)),
        warnings: answer.warnings,
        cache_key: answer.cache_key,
        cube: request.query.cube.as_deref().map(str::to_owned),
    };
    let headers = facts.headers(format, answer.truncated);
    let (batches, returned_rows) = (answer.batches, answer.returned_rows);
    let (truncated, duration) = (answer.truncated, answer.duration);
    let write = move || {
        let end = Piece::End { returned_rows, truncated, duration };
        encoder.encode(before(format), &batches, &after(format, &facts, &end))
    };
    let written = if returned_rows <= MAX_INLINE_ROWS {
        write()
    } else {
        // A panic in there goes on in here, where the edge answers it.
        tokio::task::spawn_blocking(write).await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
    };
    let body = written.map_err(|error: BrokenOff| {
        tracing::error!(event = "answer_broken_off", error_message = %error);
        ApiError::new(Code::InternalError, "these rows cannot be written in this format; JSON can hold them")
    })?;
    Ok(respond(Body::from(body), format, headers))
}

fn streamed(answer: AnswerStream, request: &QueryRequest, format: Format) -> Response {
    let encoder = encoder(answer.columns, &answer.schema, request, format);
    let facts = Facts {
        sql: answer.sql,
        total_rows: answer.total_rows,
        totals: answer.totals.map(|totals| totals_to_wire(&totals, request)),
        warnings: answer.warnings,
        cache_key: answer.cache_key,
        cube: request.query.cube.as_deref().map(str::to_owned),
    };
    let headers = facts.headers(format, answer.truncated);
    let bytes = encoder.encode_stream(before(format), answer.pieces, move |end| after(format, &facts, end));
    respond(Body::from_stream(bytes), format, headers)
}

/// The one row of totals as an object.
fn totals_to_wire(totals: &Totals, request: &QueryRequest) -> Vec<u8> {
    let mut rows = Vec::new();
    json::write_rows(&totals.columns, &totals.batches, request.numbers, &mut rows);
    rows.strip_prefix(b"[").and_then(|rows| rows.strip_suffix(b"]")).map_or(rows.clone(), <[u8]>::to_vec)
}

fn encoder(
    columns: Vec<terrane_compiler::sql::ResultColumn>,
    stored: &arrow::datatypes::Schema,
    request: &QueryRequest,
    format: Format,
) -> RowEncoder {
    match format {
        Format::Json => RowEncoder::json(columns, request.numbers),
        Format::Csv => RowEncoder::csv(columns),
        Format::Arrow => RowEncoder::arrow(columns, stored),
    }
}

fn respond(body: Body, format: Format, headers: Vec<(HeaderName, HeaderValue)>) -> Response {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(format.content_type()));
    response.headers_mut().insert(VARY, HeaderValue::from_static("accept, accept-encoding"));
    response.headers_mut().extend(headers);
    response
}

/// What is known before the rows.
struct Facts {
    sql: String,
    total_rows: Option<u64>,
    /// As JSON; other formats have no place for them.
    totals: Option<Vec<u8>>,
    warnings: Vec<String>,
    cache_key: String,
    cube: Option<String>,
}

impl Facts {
    /// JSON says it in its body. What is not known has no header.
    fn headers(&self, format: Format, truncated: Option<bool>) -> Vec<(HeaderName, HeaderValue)> {
        if format == Format::Json {
            return Vec::new();
        }
        let truncated = truncated.map(|truncated| if truncated { "true" } else { "false" });
        let total_rows = self.total_rows.map(|rows| (TOTAL_ROWS, HeaderValue::from(rows)));
        let truncated = truncated.map(|word| (TRUNCATED, HeaderValue::from_static(word)));
        let cache_key = HeaderValue::from_str(&self.cache_key).ok().map(|key| (CACHE_KEY, key));
        [total_rows, truncated, cache_key].into_iter().flatten().collect()
    }
}

fn before(format: Format) -> Vec<u8> {
    if format == Format::Json { b"{\"data\":[".to_vec() } else { Vec::new() }
}

/// What stands behind the rows.
fn after(format: Format, facts: &Facts, end: &Piece) -> Vec<u8> {
    let (Format::Json, Piece::End { returned_rows, truncated, duration }) = (format, end) else { return Vec::new() };
    let mut out = Vec::with_capacity(512 + facts.sql.len());
    out.extend_from_slice(b"],\"query\":{\"sql\":");
    write_string(&facts.sql, &mut out);
    out.extend_from_slice(b",\"duration_ms\":");
    let duration_ms = duration.as_secs_f64() * 1_000.0;
    write_milliseconds(duration_ms, &mut out);
    out.extend_from_slice(b"},\"meta\":{\"total_rows\":");
    match facts.total_rows {
        Some(rows) => write_integer(rows, &mut out),
        None => out.extend_from_slice(b"null"),
    }
    out.extend_from_slice(b",\"returned_rows\":");
    write_integer(*returned_rows, &mut out);
    out.extend_from_slice(b",\"truncated\":");
    out.extend_from_slice(truncated.map_or("null", |truncated| if truncated { "true" } else { "false" }).as_bytes());
    out.extend_from_slice(b",\"warnings\":[");
    for (index, warning) in facts.warnings.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_string(warning, &mut out);
    }
    out.push(b']');
    if let Some(totals) = &facts.totals {
        out.extend_from_slice(b",\"totals\":");
        out.extend_from_slice(totals);
    }
    out.extend_from_slice(b",\"cached\":false,\"cache_key\":");
    write_string(&facts.cache_key, &mut out);
    if let Some(cube) = &facts.cube {
        out.extend_from_slice(b",\"cube\":");
        write_string(cube, &mut out);
        out.extend_from_slice(b",\"query_time_ms\":");
        write_milliseconds(duration_ms, &mut out);
    }
    out.extend_from_slice(b"}}");
    out
}

/// `{sql, params}`.
pub(crate) fn sql_to_wire(sql: &str, params: &[Value]) -> Vec<u8> {
    let mut out = Vec::with_capacity(sql.len() + sql.len() / 8 + 64);
    out.extend_from_slice(b"{\"sql\":");
    write_string(sql, &mut out);
    out.extend_from_slice(b",\"params\":[");
    for (index, param) in params.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        json::write_value(param, &mut out);
    }
    out.extend_from_slice(b"]}");
    out
}

fn write_integer(number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// With three decimals at most.
fn write_milliseconds(duration_ms: f64, out: &mut Vec<u8>) {
    let rounded = (duration_ms * 1_000.0).round() / 1_000.0;
    out.extend_from_slice(ryu::Buffer::new().format(rounded).as_bytes());
}
