//! Answers of queries: the body is written in one go, the rows straight from Arrow columns.

use terrane_app::query::Answer;
use terrane_compiler::types::Value;

use super::query::QueryRequest;
use crate::json::{self, Numbers, write_string};

/// More rows are written on a thread of their own, so that other requests don't wait.
const MAX_INLINE_ROWS: u64 = 2_000;

/// `{data, query, meta}`.
pub(crate) async fn to_wire(answer: Answer, request: &QueryRequest) -> Vec<u8> {
    let cube = request.query.cube.clone();
    let numbers = request.numbers;
    if answer.returned_rows <= MAX_INLINE_ROWS {
        return write(&answer, cube.as_deref(), numbers);
    }
    let written = tokio::task::spawn_blocking(move || write(&answer, cube.as_deref(), numbers)).await;
    // A panic in there goes on in here, where the edge answers it.
    written.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}

fn write(answer: &Answer, cube: Option<&str>, numbers: Numbers) -> Vec<u8> {
    let mut out = Vec::with_capacity(512 + answer.sql.len());
    out.extend_from_slice(b"{\"data\":");
    json::write_rows(&answer.columns, &answer.batches, numbers, &mut out);
    out.extend_from_slice(b",\"query\":{\"sql\":");
    write_string(&answer.sql, &mut out);
    out.extend_from_slice(b",\"duration_ms\":");
    let duration_ms = answer.duration.as_secs_f64() * 1_000.0;
    write_milliseconds(duration_ms, &mut out);
    out.extend_from_slice(b"},\"meta\":{\"total_rows\":");
    match answer.total_rows {
        Some(rows) => write_integer(rows, &mut out),
        None => out.extend_from_slice(b"null"),
    }
    out.extend_from_slice(b",\"returned_rows\":");
    write_integer(answer.returned_rows, &mut out);
    out.extend_from_slice(b",\"cached\":false,\"cache_key\":");
    write_string(&answer.cache_key, &mut out);
    if let Some(cube) = cube {
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
