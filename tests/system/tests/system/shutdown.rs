//! Tests the shutdown under load: running requests finish, no response is truncated, and the process ends by itself.

#![allow(clippy::disallowed_methods, reason = "what is measured here is time itself")]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use terrane_system_tests::Program;
use terrane_system_tests::Scratch;

use crate::BINARY;

const CLIENTS: usize = 40;
/// The table of a query that takes so long that each client has a running query when the signal arrives.
const SLOW: &str = "CREATE TABLE n AS SELECT range AS id, range % 1000 AS a FROM range(40000)";
const SETTINGS: &str = "name: scratch\nsecurity: {anonymous: {scopes: [read]}}\n";
const CUBE: &str = "cubes:\n  - name: pairs\n    sql: SELECT x.id, y.a FROM n AS x JOIN n AS y ON x.a = y.a\n    \
                    measures: [{name: total, type: sum, sql: sqrt(id) * a}]\n    \
                    dimensions: [{name: a, type: number, sql: a}]\n";
const BODY: &str = r#"{"measures": ["pairs.total"], "dimensions": ["pairs.a"], "limit": 2000}"#;

/// The outcome of one request.
enum Outcome {
    Answered(u16),
    /// No byte of a response arrived, because the connection was refused, or was closed while it was idle.
    NotTaken,
    CutOff(String),
}

fn ask(address: std::net::SocketAddr) -> Outcome {
    let Ok(mut stream) = TcpStream::connect(address) else { return Outcome::NotTaken };
    let length = BODY.len();
    let head = format!(
        "POST /api/v1/query HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    if stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(BODY.as_bytes())).is_err() {
        return Outcome::NotTaken;
    }
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    let text = String::from_utf8_lossy(&answer);
    if answer.is_empty() {
        return Outcome::NotTaken;
    }
    let whole = text.split_once("\r\n\r\n").and_then(|(head, body)| {
        let lower = head.to_ascii_lowercase();
        let length = lower.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok())?;
        (body.len() == length).then(|| head.get(9..12)?.parse().ok())?
    });
    match (read, whole) {
        (Ok(_), Some(status)) => Outcome::Answered(status),
        _ => Outcome::CutOff(text.chars().take(200).collect()),
    }
}

#[test]
fn requests_in_flight_at_sigterm_are_answered() {
    let settings = format!("{SETTINGS}warehouse: {{type: duckdb, init: [\"{SLOW}\"]}}\n");
    let project = Scratch::empty().with("service_project.yml", &settings).with("cubes/pairs.yml", CUBE);
    let server = Program::new(BINARY, &["serve"], project.path()).arguments(&["--port", "0"]).serve().unwrap();
    let address = server.address;
    let (stop, answered) = (AtomicBool::new(false), AtomicU64::new(0));
    let (cut_off, (code, log), took) = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                scope.spawn(|| {
                    let mut cut_off = Vec::new();
                    while !stop.load(Ordering::Relaxed) {
                        match ask(address) {
                            Outcome::Answered(200) => drop(answered.fetch_add(1, Ordering::Relaxed)),
                            Outcome::Answered(status) => cut_off.push(format!("answered {status}")),
                            Outcome::NotTaken => break,
                            Outcome::CutOff(text) => cut_off.push(text),
                        }
                    }
                    cut_off
                })
            })
            .collect();
        // Each client has received an answer, so each of them is waiting for the next one.
        while answered.load(Ordering::Relaxed) < CLIENTS as u64 {
            thread::sleep(Duration::from_millis(10));
        }
        let before = Instant::now();
        let ended = server.terminate().unwrap();
        let took = before.elapsed();
        stop.store(true, Ordering::Relaxed);
        let cut_off: Vec<String> = clients.into_iter().flat_map(|client| client.join().unwrap()).collect();
        (cut_off, ended, took)
    });
    assert!(cut_off.is_empty(), "{cut_off:?}");
    assert_eq!(code, Some(0), "{log}");
    assert!(took < Duration::from_secs(30), "{took:?}");
    // The log reports that the server was under load when it ended, and that all requests were answered.
    let draining = log.lines().find(|line| line.contains("server_draining")).unwrap_or_default();
    let draining: serde_json::Value = serde_json::from_str(draining).unwrap();
    assert!(draining["connections"].as_u64().unwrap() > 0, "{draining}");
    assert!(log.contains("\"is_finished\":true"), "{log}");
}
