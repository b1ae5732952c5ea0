//! Compares the answers of both sides, and checks that they contain no secret.
//!
//! In: the answers of both sides to one request. Out: the first fault. Not compared: the headers `Date` and
//! `Content-Length`, durations in bodies, which depend on the load of the machine, and the ids and times of executed
//! queries. Everything else is compared: status, headers, body, the text of errors and of SQL.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::http::{Answer, Request};
use crate::scenario::{CANARY, SECRET};

/// The headers that differ between any two servers. Cache keys and tags differ because they are keyed digests, and each
/// server has its own secret.
const VOLATILE_HEADERS: &[&str] = &["date", "content-length", "etag", "x-terrane-as-of", "x-terrane-cache-key"];
pub(crate) const VOLATILE_FIELDS: &[&str] = &[
    "duration_ms",
    "query_time_ms",
    "compile_time_ms",
    "load_time_ms",
    "execution_time_ms",
    "uptime_seconds",
    "cache_key",
    "as_of",
    "age_ms",
    "generated_at",
    "profiled_at",
];
/// The history of executed queries.
const HISTORY: &str = "/api/v1/optimization/history";
/// Fields of a record of the history that differ between any two servers.
const VOLATILE_HISTORY_FIELDS: &[&str] = &["id", "at", "seconds", "warehouse_seconds", "queries"];
/// The largest number of characters of an answer that a report quotes.
const MAX_QUOTED: usize = 4_000;

/// A rule that an answer breaks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    Status {
        left: u16,
        right: u16,
    },
    Headers {
        left: Vec<(String, String)>,
        right: Vec<(String, String)>,
    },
    Body,
    /// A restricted caller's request failed in the server or the warehouse.
    ServerError {
        status: u16,
    },
    /// The answer quotes a hidden value.
    HiddenValue {
        value: String,
    },
    /// One side does not answer.
    NoAnswer {
        message: String,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Status { left, right } => write!(f, "status {left} and {right}"),
            Fault::Headers { left, right } => write!(f, "headers {left:?} and {right:?}"),
            Fault::Body => write!(f, "the bodies differ"),
            Fault::ServerError { status } => write!(f, "both sides answer {status}"),
            Fault::HiddenValue { value } => write!(f, "the answer contains `{value}`, a hidden value"),
            Fault::NoAnswer { message } => write!(f, "no answer: {message}"),
        }
    }
}

/// Compares the answers of both sides to a request, and returns the first fault.
pub fn fault(request: &Request, left: &Answer, right: &Answer) -> Option<Fault> {
    if left.status != right.status {
        return Some(Fault::Status { left: left.status, right: right.status });
    }
    let (left_headers, right_headers) = (compared_headers(left), compared_headers(right));
    if left_headers != right_headers {
        return Some(Fault::Headers { left: left_headers, right: right_headers });
    }
    let is_history = request.path.split('?').next() == Some(HISTORY);
    let is_equal = match is_history.then(|| (executed_queries(left), executed_queries(right))) {
        Some((Some(left), Some(right))) => is_same_history(&left, &right),
        _ => compared_body(left) == compared_body(right),
    };
    if !is_equal {
        return Some(Fault::Body);
    }
    let is_asked = |value: &str| {
        let texts = [Some(&request.path), request.body.as_ref()];
        texts.into_iter().flatten().any(|text| text.contains(value))
    };
    for value in [CANARY, SECRET] {
        if !is_asked(value) && left.text().contains(value) {
            return Some(Fault::HiddenValue { value: value.to_owned() });
        }
    }
    (left.status >= 500).then_some(Fault::ServerError { status: left.status })
}

/// Returns an answer for a report: status, headers and body.
pub fn quoted(answer: &Answer) -> String {
    let headers: Vec<String> = answer.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    let body: String = answer.text().chars().take(MAX_QUOTED).collect();
    format!("{}\n{}\n\n{body}", answer.status, headers.join("\n"))
}

fn compared_headers(answer: &Answer) -> Vec<(String, String)> {
    let is_compared = |(name, _): &&(String, String)| !VOLATILE_HEADERS.contains(&name.as_str());
    answer.headers.iter().filter(is_compared).cloned().collect()
}

fn compared_body(answer: &Answer) -> Vec<u8> {
    if !answer.header("content-type").is_some_and(|kind| kind.starts_with("application/json")) {
        return answer.body.clone();
    }
    let mut text = answer.text();
    for field in VOLATILE_FIELDS {
        text = without_value(&text, field);
    }
    text.into_bytes()
}

/// A page of the history: the queries that were executed, without ids and times.
struct ExecutedPage {
    /// The records, newest first.
    records: Vec<Json>,
    is_last: bool,
}

/// Parses a page of the history; `None` if the body has a different form. Records of cached answers are removed: such a
/// record adds up all cached answers between two writes, so the number of records depends on the clock.
fn executed_queries(answer: &Answer) -> Option<ExecutedPage> {
    let mut body: Json = serde_json::from_slice(&answer.body).ok()?;
    let is_last = body.get("next")?.is_null();
    let mut records = std::mem::take(body.get_mut("queries")?.as_array_mut()?);
    records.retain(|record| record["cached"] != true);
    for record in &mut records {
        record.as_object_mut()?.retain(|name, _| !VOLATILE_HISTORY_FIELDS.contains(&name.as_str()));
    }
    Some(ExecutedPage { records, is_last })
}

/// Returns whether two pages have the same records up to the end of the shorter page, which must not be the last page
/// of its history.
fn is_same_history(left: &ExecutedPage, right: &ExecutedPage) -> bool {
    let common = match (left.is_last, right.is_last) {
        (true, true) => return left.records == right.records,
        (true, false) if left.records.len() < right.records.len() => return false,
        (false, true) if right.records.len() < left.records.len() => return false,
        _ => left.records.len().min(right.records.len()),
    };
    left.records[..common] == right.records[..common]
}

/// Returns the JSON text without the numbers and strings that are values of the field.
fn without_value(text: &str, field: &str) -> String {
    let key = format!("\"{field}\":");
    let mut parts = text.split(&key);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str(&key);
        let rest = match part.strip_prefix('"') {
            Some(string) => string.split_once('"').map_or("", |(_, rest)| rest),
            None => part.trim_start_matches(|c: char| c.is_ascii_digit() || "-+.eE".contains(c)),
        };
        out.push_str(rest);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::Caller;

    fn answer(body: &str) -> Answer {
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        Answer { status: 200, headers, body: body.as_bytes().to_vec() }
    }

    #[test]
    fn durations_are_not_compared() {
        let request = Request::get(Caller::Reader, "/");
        let (left, right) = (answer(r#"{"duration_ms":1.25,"a":1}"#), answer(r#"{"duration_ms":7,"a":1}"#));
        assert_eq!(fault(&request, &left, &right), None);
        assert_eq!(fault(&request, &left, &answer(r#"{"duration_ms":7,"a":2}"#)), Some(Fault::Body));
    }

    #[test]
    fn histories_are_compared_without_ids_and_times() {
        let request = Request::get(Caller::Reader, HISTORY);
        let page = |id: u32, rows: u32, cached: bool| {
            answer(&format!(
                r#"{{"queries":[{{"id":"{id}","queries":1,"rows":{rows},"cached":{cached}}}],"next":null}}"#
            ))
        };
        assert_eq!(fault(&request, &page(1, 5, false), &page(2, 5, false)), None);
        assert_eq!(fault(&request, &page(1, 5, false), &page(1, 6, false)), Some(Fault::Body));
        assert_eq!(fault(&request, &page(1, 5, false), &page(1, 5, true)), Some(Fault::Body));
        assert_eq!(
            fault(&Request::get(Caller::Reader, "/"), &page(1, 5, false), &page(2, 5, false)),
            Some(Fault::Body)
        );
    }

    #[test]
    fn disclosed_hidden_values_are_a_fault() {
        let leak = answer(&format!("{{\"a\":\"{CANARY}-1\"}}"));
        let request = Request::get(Caller::Reader, "/");
        assert!(matches!(fault(&request, &leak, &leak), Some(Fault::HiddenValue { .. })));
        let asked = Request::get(Caller::Reader, &format!("/{CANARY}"));
        assert_eq!(fault(&asked, &leak, &leak), None);
    }

    #[test]
    fn equal_failures_are_a_fault() {
        let failed = Answer { status: 502, ..answer("{}") };
        let request = Request::get(Caller::Reader, "/");
        assert_eq!(fault(&request, &failed, &failed), Some(Fault::ServerError { status: 502 }));
    }
}
