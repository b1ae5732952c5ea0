//! Tests compression of answers, whole or streamed, and of requests up to a limit.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::io::{Read as _, Write as _};

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::HeaderMap;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use http_body_util::BodyExt as _;
use serde_json::{Value as Json, json};
use terrane_conformance_tests::case::{Caller, World};
use terrane_conformance_tests::fakes::{Column, FakeBehavior};
use terrane_server::{Connection, Edge};

const CODINGS: [&str; 2] = ["gzip", "zstd"];
const FORMATS: [&str; 3] = ["application/json", "text/csv", "application/vnd.apache.arrow.stream"];

fn world(repeats: usize, stream_ends: FakeBehavior) -> World {
    let column = |ty: &str, value: Json| Column { ty: ty.to_owned(), values: vec![value; 200] };
    let columns = [("text", json!("a")), ("date", json!(19_737)), ("integer", json!(7)), ("integer", json!(200))];
    World { columns: columns.map(|(ty, value)| column(ty, value)).into(), repeats, stream_ends, ..World::default() }
}

fn query(format: &str, coding: Option<&str>, limit: u64) -> Request {
    let body = json!({
        "measures": ["orders.count"], "dimensions": ["orders.status", "orders.created_at.month"], "limit": limit
    });
    let request = Request::post("/api/v1/query").header("accept", format).header("content-type", "application/json");
    let request = coding.into_iter().fold(request, |request, coding| request.header("accept-encoding", coding));
    request.body(Body::from(body.to_string())).unwrap()
}

async fn ask(edge: &Edge, request: Request) -> (HeaderMap, Bytes) {
    let (parts, body) = edge.call(Connection::default(), request).await.into_parts();
    assert_eq!(parts.status, 200);
    (parts.headers, body.collect().await.unwrap().to_bytes())
}

fn coding_of(headers: &HeaderMap) -> Option<&str> {
    headers.get("content-encoding").map(|value| value.to_str().unwrap())
}

fn varies(headers: &HeaderMap) -> bool {
    let lines = headers.get_all("vary").iter().map(|line| line.to_str().unwrap());
    lines.flat_map(|line| line.split(',')).any(|name| name.trim() == "accept-encoding")
}

fn encode(coding: &str, plain: &[u8]) -> Vec<u8> {
    if coding == "zstd" {
        return zstd::encode_all(plain, 19).unwrap();
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

fn decode(coding: &str, packed: &[u8]) -> std::io::Result<Vec<u8>> {
    if coding == "zstd" {
        return zstd::decode_all(packed);
    }
    let mut plain = Vec::new();
    GzDecoder::new(packed).read_to_end(&mut plain).map(|_| plain)
}

/// Removes the fields of a JSON answer that differ between runs.
fn timeless(json: &[u8]) -> Vec<u8> {
    let Ok(mut json) = serde_json::from_slice::<Json>(json) else { return json.to_vec() };
    json["query"]["duration_ms"] = Json::Null;
    json.to_string().into_bytes()
}

#[tokio::test]
async fn buffered_and_streamed_answers_are_compressed() {
    // The second limit is high enough for a streamed answer.
    for limit in [1_000, 20_000] {
        let edge = world(100, FakeBehavior::Answers).edge();
        for format in FORMATS {
            let (headers, plain) = ask(&edge, query(format, None, limit)).await;
            assert_eq!(coding_of(&headers), None);
            assert!(varies(&headers), "{format} {limit}");
            for coding in CODINGS {
                let (headers, packed) = ask(&edge, query(format, Some(coding), limit)).await;
                assert_eq!(coding_of(&headers), Some(coding), "{format} {limit}");
                assert!(varies(&headers) && !headers.contains_key("content-length"));
                assert!(packed.len() < plain.len() / 2, "{format} {coding} {limit}: {} bytes", packed.len());
                let unpacked = decode(coding, &packed).unwrap();
                assert_eq!(timeless(&unpacked), timeless(&plain), "{format} {coding} {limit}");
            }
        }
    }
}

#[tokio::test]
async fn client_chooses_the_coding() {
    let edge = world(0, FakeBehavior::Answers).edge();
    for (accepts, coding) in [
        ("gzip, deflate, br, zstd", Some("zstd")),
        ("gzip", Some("gzip")),
        ("GZIP;q=0.5, br", Some("gzip")),
        ("zstd;q=0.5, gzip", Some("gzip")),
        ("gzip;q=0, *;q=0", None),
        ("br", None),
        ("identity", None),
        ("", None),
    ] {
        let (headers, _) = ask(&edge, query("application/json", Some(accepts), 1_000)).await;
        assert_eq!(coding_of(&headers), coding, "{accepts}");
        assert!(varies(&headers), "{accepts}");
    }
}

#[tokio::test]
async fn small_answers_are_not_compressed() {
    let edge = World::default().edge();
    let request = Request::get("/health/live").header("accept-encoding", "gzip, zstd");
    let (headers, body) = ask(&edge, request.body(Body::empty()).unwrap()).await;
    assert_eq!((coding_of(&headers), varies(&headers)), (None, false));
    assert!(serde_json::from_slice::<Json>(&body).is_ok());
}

#[tokio::test]
async fn aborted_compressed_stream_is_incomplete() {
    for format in FORMATS {
        for coding in CODINGS {
            for ends in [FakeBehavior::Refuses, FakeBehavior::TimesOut, FakeBehavior::Unavailable] {
                let edge = world(30, ends).edge();
                let response = edge.call(Connection::default(), query(format, Some(coding), 20_000)).await;
                assert_eq!(response.headers()["content-encoding"], coding);
                let mut body = response.into_body();
                let mut received = Vec::new();
                let error = loop {
                    match body.frame().await {
                        Some(Ok(frame)) => received.extend_from_slice(&frame.into_data().unwrap()),
                        Some(Err(error)) => break Some(error),
                        None => break None,
                    }
                };
                assert!(error.is_some(), "{format} {coding} {ends:?} looked whole");
                assert!(decode(coding, &received).is_err(), "{format} {coding} {ends:?} has the coding's end");
            }
        }
    }
}

#[tokio::test]
async fn compressed_rows_are_sent_without_delay() {
    for coding in CODINGS {
        let edge = world(30, FakeBehavior::Hangs).edge();
        let response = edge.call(Connection::default(), query("text/csv", Some(coding), 20_000)).await;
        let mut body = response.into_body();
        // The warehouse never sends the rest of the rows.
        let first = tokio::time::timeout(std::time::Duration::from_secs(20), body.frame()).await;
        assert!(first.is_ok_and(|frame| frame.is_some_and(|frame| frame.is_ok())), "{coding}");
    }
}

#[tokio::test]
async fn disconnected_reader_of_a_compressed_stream_returns_its_permit() {
    // The server runs one query at a time.
    let edge = World { is_busy: true, ..world(1_000, FakeBehavior::Answers) }.edge();
    for coding in CODINGS {
        let response = edge.call(Connection::default(), query("text/csv", Some(coding), 20_000)).await;
        assert_eq!(response.status(), 200);
        let mut body = response.into_body();
        assert!(body.frame().await.unwrap().is_ok());
        drop(body);
    }
}

fn sent(path: &str, coding: &str, body: Vec<u8>) -> Request {
    let request = Request::post(path).header("content-type", "application/json").header("content-encoding", coding);
    request.body(Body::from(body)).unwrap()
}

async fn refusal(edge: &Edge, request: Request) -> (u16, String, Json) {
    let (parts, body) = edge.call(Connection::default(), request).await.into_parts();
    let body: Json = serde_json::from_slice(&body.collect().await.unwrap().to_bytes()).unwrap();
    let error = &body["error"];
    (parts.status.as_u16(), error["code"].as_str().unwrap_or_default().to_owned(), error["details"].clone())
}

#[tokio::test]
async fn compressed_request_bodies_are_read() {
    let edge = World { caller: Caller::Admin, ..World::default() }.edge();
    let body = json!({"measures": ["orders.count"]}).to_string();
    for coding in CODINGS {
        for path in ["/api/v1/query/sql", "/api/v1/query/explain"] {
            let (_, answer) = ask(&edge, sent(path, coding, encode(coding, body.as_bytes()))).await;
            assert!(serde_json::from_slice::<Json>(&answer).is_ok(), "{path} {coding}");
        }
    }
}

#[tokio::test]
async fn inflated_request_body_is_bounded() {
    let edge = World::default().edge();
    let limit = 256 * 1_024;
    for coding in CODINGS {
        let text = |bytes: usize| encode(coding, format!("\"{}\"", "x".repeat(bytes - 2)).as_bytes());
        let of_limit = refusal(&edge, sent("/api/v1/query", coding, text(limit))).await;
        assert_eq!((of_limit.0, &*of_limit.1), (400, "INVALID_QUERY"), "{coding}");
        for bytes in [limit + 1, 64 * 1_024 * 1_024] {
            let bomb = text(bytes);
            assert!(bomb.len() < limit, "{coding}");
            let refused = refusal(&edge, sent("/api/v1/query", coding, bomb)).await;
            let details = json!({"max_bytes": limit});
            assert_eq!(refused, (413, "PAYLOAD_TOO_LARGE".to_owned(), details), "{coding}");
        }
        let whole = text(1_000);
        let cut = whole[..whole.len() - 1].to_vec();
        let refused = refusal(&edge, sent("/api/v1/query", coding, cut)).await;
        assert_eq!((refused.0, &*refused.1), (400, "INVALID_QUERY"), "{coding}");
    }
}
