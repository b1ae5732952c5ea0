//! Tests slow clients on a real socket. Each may hold a connection for a limited time only.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::time::Duration;

use serde_json::json;
use terrane_conformance_tests::case::World;
use terrane_conformance_tests::fakes::{Column, FakeBehavior};
use terrane_conformance_tests::socket::{PROBE, receive, send, start};
use terrane_server::ServeSettings;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const SHORT: Duration = Duration::from_millis(200);
/// The time limit of each step, longer than any step on a busy machine.
const LIMIT: Duration = Duration::from_secs(10);
const HEAD: &str = "POST /api/v1/query HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";

/// Sends bytes one by one, with pauses that are shorter than the allowed ones, until the server closes the connection.
/// Returns the server's answer.
async fn trickle(mut stream: TcpStream, bytes: &[u8]) -> String {
    let mut answer = Vec::new();
    let trickling = async {
        let (mut reading, mut writing) = stream.split();
        let mut turns = tokio::time::interval(SHORT / 10);
        let writes = async {
            for byte in bytes.iter().cycle() {
                turns.tick().await;
                if writing.write_all(&[*byte]).await.is_err() {
                    break;
                }
            }
        };
        tokio::select! {
            _ = reading.read_to_end(&mut answer) => {}
            () = writes => {}
        }
    };
    tokio::time::timeout(LIMIT, trickling).await.expect("the server ends it");
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn slow_head_has_one_total_time_limit() {
    let settings = ServeSettings { header_timeout: SHORT, ..ServeSettings::default() };
    let server = start(&World::default(), settings).await;
    let stream = send(server.address, b"GET /health/live HTTP/1.1\r\nhost: ").await;
    let answer = trickle(stream, b"x").await;
    assert!(!answer.contains("200 OK"), "{answer}");
}

#[tokio::test]
async fn idle_connection_is_closed_after_its_timeout() {
    let settings = ServeSettings { header_timeout: SHORT, ..ServeSettings::default() };
    let server = start(&World::default(), settings).await;
    let mut stream = send(server.address, PROBE).await;
    assert!(receive(&mut stream).await.starts_with("HTTP/1.1 200"));
    let ended = tokio::time::timeout(LIMIT, stream.read_to_end(&mut Vec::new())).await;
    assert!(ended.is_ok(), "the connection is still there");
}

#[tokio::test]
async fn slow_body_has_one_total_time_limit() {
    let world = World { body_timeout: Some(SHORT), ..World::default() };
    let server = start(&world, ServeSettings::default()).await;
    for framing in ["content-length: 1000\r\n\r\n", "transfer-encoding: chunked\r\n\r\n3e8\r\n"] {
        let stream = send(server.address, format!("{HEAD}{framing}").as_bytes()).await;
        let answer = trickle(stream, b" ").await;
        assert!(answer.starts_with("HTTP/1.1 408 ") && answer.contains("REQUEST_TIMEOUT"), "{framing}: {answer}");
    }
}

#[tokio::test]
async fn oversized_body_is_rejected_with_or_without_a_length() {
    let server = start(&World::default(), ServeSettings::default()).await;
    let announced = send(server.address, format!("{HEAD}content-length: 262145\r\n\r\n").as_bytes()).await;
    let expected = format!("{HEAD}expect: 100-continue\r\ncontent-length: 262145\r\n\r\n");
    let expected = send(server.address, expected.as_bytes()).await;
    let mut chunked = send(server.address, format!("{HEAD}transfer-encoding: chunked\r\n\r\n").as_bytes()).await;
    let chunk = format!("8000\r\n{}\r\n", " ".repeat(0x8000));
    for _ in 0..9 {
        // The server may close the connection before the client has sent everything.
        let _ = chunked.write_all(chunk.as_bytes()).await;
    }
    for (name, mut stream) in [("announced", announced), ("expected", expected), ("chunked", chunked)] {
        let answer = tokio::time::timeout(LIMIT, receive(&mut stream)).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 413 ") && answer.contains("PAYLOAD_TOO_LARGE"), "{name}: {answer}");
    }
}

/// Returns a server whose answer is a stream of twenty megabytes, with one permit for all queries and no queue.
fn much() -> World {
    let text = json!("x".repeat(100_000));
    let column = |ty: &str, value: serde_json::Value| Column { ty: ty.to_owned(), values: vec![value] };
    let columns = vec![column("text", text), column("integer", json!(7)), column("integer", json!(200))];
    World { columns, repeats: 200, is_busy: true, ..World::default() }
}

const EXPORT: &[u8] =
    b"GET /api/v1/query?measures=orders.count&dimensions=orders.status&limit=20000 HTTP/1.1\r\nhost: localhost\r\n\
      accept: text/csv\r\n\r\n";

/// Repeats a request until the permit is free. Returns false if the permit is not free within the time limit.
async fn is_free_again(address: std::net::SocketAddr) -> bool {
    let asking = async {
        loop {
            let mut stream = send(address, EXPORT).await;
            if receive(&mut stream).await.starts_with("HTTP/1.1 200") {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LIMIT, asking).await.is_ok()
}

#[tokio::test]
async fn unread_answer_is_abandoned() {
    let settings = ServeSettings { write_timeout: SHORT, ..ServeSettings::default() };
    let server = start(&much(), settings).await;
    let mut stream = send(server.address, EXPORT).await;
    assert!(receive(&mut stream).await.starts_with("HTTP/1.1 200"));
    assert!(is_free_again(server.address).await, "the turn is still taken");
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest).await;
    assert!(rest.len() < 20_000_000, "all of it was written");
}

#[tokio::test]
async fn disconnected_client_returns_its_permit() {
    let server = start(&much(), ServeSettings::default()).await;
    let mut reading = send(server.address, EXPORT).await;
    assert!(receive(&mut reading).await.starts_with("HTTP/1.1 200"));
    let mut refused = send(server.address, EXPORT).await;
    assert!(receive(&mut refused).await.starts_with("HTTP/1.1 503"), "the turn is not taken");
    drop(reading);
    assert!(is_free_again(server.address).await, "in the middle of an answer");

    let world = World { warehouse: FakeBehavior::Hangs, is_busy: true, ..World::default() };
    let server = start(&world, ServeSettings::default()).await;
    for _ in 0..3 {
        let waiting = takes_the_turn(server.address).await;
        let mut refused = send(server.address, EXPORT).await;
        assert!(receive(&mut refused).await.starts_with("HTTP/1.1 503"), "the turn is not taken");
        drop(waiting);
    }
}

/// Sends a query that takes the permit and waits for a warehouse that never answers.
async fn takes_the_turn(address: std::net::SocketAddr) -> TcpStream {
    let asking = async {
        loop {
            let mut stream = send(address, EXPORT).await;
            match tokio::time::timeout(SHORT, receive(&mut stream)).await {
                Ok(answer) => assert!(answer.starts_with("HTTP/1.1 503"), "{answer}"),
                Err(_) => return stream,
            }
        }
    };
    tokio::time::timeout(LIMIT, asking).await.expect("the one before gave it back")
}
