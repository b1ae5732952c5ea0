//! Tests many clients and harmful clients of GraphQL on the real program: floods of sockets and subscriptions, slow
//! readers, revoked keys, and documents that are made to be expensive.
//!
//! In: a server over a project. Out: no 5xx, a server that answers, memory that does not grow with the attacks, shared
//! statements, and the close codes of the protocol. The conformance tests test the limits of single documents.

#![allow(clippy::unwrap_used, reason = "a test stops at its first fault")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use terrane_system_tests::soak::watch::{memory_bytes, watch};
use terrane_system_tests::{GraphQlSocket, Scratch, request, request_as};

use crate::clients::Service;
use crate::program;

const MIB: u64 = 1024 * 1024;
/// The largest growth of the resident memory in bytes. Pools, caches and the allocator's own pages need some memory.
const MAX_GROWTH: u64 = 64 * MIB;
const IDLE_SOCKETS: usize = 1_000;
const PAUSE: Duration = Duration::from_millis(100);
/// A subscription whose rows are about 6 MB.
const MANY_ROWS: &str = "subscription { queryResult(limit: 50000, dimensions: [\"flights.carrier\", \
                         \"flights.flight_number\", \"flights.origin\", \"flights.dest\", \"flights.tailnum\", \
                         \"flights.departs_at\"]) { data } }";
const COUNT: &str = "subscription { queryResult(measures: [\"flights.count\"]) { data } }";

/// Starts a server that allows the number of sockets that the attacks open.
fn service() -> Service {
    let (all, own) = ((IDLE_SOCKETS + 100).to_string(), IDLE_SOCKETS.to_string());
    Service::with(&[
        ("SERVICE_GRAPHQL__MAX_SOCKETS", all.as_str()),
        ("SERVICE_GRAPHQL__MAX_SOCKETS_PER_CALLER", own.as_str()),
        ("SERVICE_GRAPHQL__MAX_OPENING_SOCKETS_PER_ADDRESS", own.as_str()),
        ("SERVICE_LOG_REQUESTS", "false"),
        ("SERVICE_METRICS__PUBLIC", "true"),
    ])
}

/// Returns the number of open sockets in the server's metrics.
fn open_sockets(address: SocketAddr) -> usize {
    let metrics = request(address, "GET", "/metrics", None).unwrap().body;
    let number = metrics.lines().find_map(|line| line.strip_prefix("service_graphql_sockets "));
    number.unwrap_or_else(|| panic!("{metrics}")).trim().parse().unwrap()
}

/// Waits until the server has `count` open sockets.
fn wait_for_sockets(address: SocketAddr, count: usize) {
    for _ in 0..600 {
        if open_sockets(address) == count {
            return;
        }
        thread::sleep(PAUSE);
    }
    panic!("{} sockets are open; expected {count}", open_sockets(address));
}

fn memory(service: &Service) -> u64 {
    memory_bytes(service.process()).unwrap()
}

/// Waits until the memory has fallen to the allowed growth. On a busy machine, the allocator returns the pages of ended
/// threads late.
fn wait_for_memory(service: &Service, before: u64, cause: &str) {
    let mut growth = 0;
    for _ in 0..100 {
        growth = memory(service).saturating_sub(before);
        if growth <= MAX_GROWTH {
            return;
        }
        assert_eq!(request(service.address(), "GET", "/health/live", None).unwrap().status, 200);
        thread::sleep(PAUSE);
    }
    panic!("{cause} took {} MiB", growth / MIB);
}

fn post(service: &Service, body: &Value) -> u16 {
    request_as(service.address(), Some(service.key()), "POST", "/graphql", Some(&body.to_string())).unwrap().status
}

#[test]
fn idle_sockets_are_bounded_and_cost_little_memory() {
    let service = service();
    let address = service.address();
    let mut first = GraphQlSocket::acknowledged(address, service.key()).unwrap();
    let before = memory(&service);
    let open = || GraphQlSocket::acknowledged(address, service.key());
    let idle: Vec<GraphQlSocket> = (1..IDLE_SOCKETS).map(|_| open().unwrap()).collect();
    wait_for_sockets(address, IDLE_SOCKETS);
    // A further socket of this caller is refused, and other callers are still served.
    let mut surplus = GraphQlSocket::open(address).unwrap();
    let payload = json!({"authorization": format!("Bearer {}", service.key())});
    surplus.send(&json!({"type": "connection_init", "payload": payload})).unwrap();
    assert_eq!(surplus.receive().unwrap(), json!({"close": 1013}));
    assert_eq!(request(address, "GET", "/health/live", None).unwrap().status, 200);
    assert_eq!(post(&service, &json!({"query": "{ cubes { name } }"})), 200);
    first.subscribe("1", COUNT).unwrap();
    assert_eq!(first.receive().unwrap()["payload"]["data"]["queryResult"]["data"][0]["flights.count"], 336_776);
    let growth = memory(&service).saturating_sub(before);
    assert!(growth <= MAX_GROWTH, "{IDLE_SOCKETS} sockets took {} MiB", growth / MIB);
    drop((idle, first, surplus));
    wait_for_sockets(address, 0);
}

#[test]
fn slow_reader_is_dropped_and_others_are_served() {
    let service = service();
    let address = service.address();
    // The rows are read once before the measurement, so that the memory of the query itself does not count.
    let mut reader = GraphQlSocket::acknowledged(address, service.key()).unwrap();
    reader.subscribe("1", MANY_ROWS).unwrap();
    let rows = reader.receive().unwrap();
    assert_eq!(rows["payload"]["data"]["queryResult"]["data"].as_array().map(Vec::len), Some(50_000));
    reader.send(&json!({"type": "complete", "id": "1"})).unwrap();
    let before = memory(&service);
    let mut slow = GraphQlSocket::acknowledged(address, service.key()).unwrap();
    // These answers are larger than the buffers of the operating system.
    for id in 0..10 {
        slow.subscribe(&id.to_string(), MANY_ROWS).unwrap();
    }
    reader.subscribe("2", COUNT).unwrap();
    assert_eq!(reader.receive().unwrap()["payload"]["data"]["queryResult"]["data"][0]["flights.count"], 336_776);
    assert_eq!(request(address, "GET", "/health/live", None).unwrap().status, 200);
    // Only the socket of the reader stays open, although the slow client has not closed its socket.
    wait_for_sockets(address, 1);
    wait_for_memory(&service, before, "a slow reader");
    reader.subscribe("3", COUNT).unwrap();
    assert_eq!(reader.receive().unwrap()["id"], "3");
    drop(slow);
}

#[test]
fn revoked_key_ends_a_running_subscription() {
    let service = service();
    let mut socket = GraphQlSocket::acknowledged(service.address(), service.key()).unwrap();
    socket.subscribe("1", COUNT).unwrap();
    assert_eq!(socket.receive().unwrap()["type"], "next");
    service.revoke_key();
    let error = socket.receive().unwrap();
    assert_eq!((&error["type"], &error["id"]), (&json!("error"), &json!("1")), "{error}");
    assert_eq!(error["payload"][0]["extensions"]["code"], "UNAUTHORIZED", "{error}");
    assert_eq!(socket.receive().unwrap(), json!({"close": 4403}));
}

/// Returns documents that are expensive to execute, or even to parse.
fn documents() -> Vec<Value> {
    let repeated = |count: usize, field: &dyn Fn(usize) -> String| (0..count).map(field).collect::<String>();
    let mut bomb = "{ cubes { ...f30 } } fragment f0 on Cube { name }".to_owned();
    for n in 1..=30 {
        bomb += &format!(" fragment f{n} on Cube {{ ...f{0} ...f{0} }}", n - 1);
    }
    let aliases = repeated(2_000, &|n| format!("a{n}: cubes {{ name }} "));
    let queries =
        repeated(10, &|n| format!("q{n}: query(measures: [\"flights.count\"], limit: {}) {{ data }} ", n + 1));
    let introspection = "{ __schema { types { fields { type { fields { type { fields { name } } } } } } } }";
    let texts = [
        format!("{}name{}", "{ cubes ".repeat(5_000), "}".repeat(5_000)),
        format!("{{ cube(name: {}{}) {{ name }} }}", "[".repeat(20_000), "]".repeat(20_000)),
        format!("{{ {aliases} }}"),
        format!("{{ {queries} extra: query(measures: [\"flights.count\"], offset: 1) {{ data }} }}"),
        format!("{{ cubes {} {{ name }} }}", "@include(if: true) ".repeat(500)),
        format!("{{ cubes {{ {} name }} }}", "measures { name } ".repeat(3_000)),
        bomb,
        "{ cubes { ...a } } fragment a on Cube { ...b } fragment b on Cube { ...a }".to_owned(),
        "query a { cubes { name } } query a { cubes { title } }".to_owned(),
        introspection.to_owned(),
        format!("{{ {queries} }}"),
        "{ cubes { name measures { name type } dimensions { name type granularities } segments { name } } }".to_owned(),
    ];
    let large = json!({"query": "query ($name: String!) { cube(name: $name) { name } }",
                       "variables": {"name": "x".repeat(200_000)}});
    let wide = json!({"query": "query ($names: [String!]) { cubes(names: $names) { name } }",
                      "variables": {"names": vec!["x"; 40_000]}});
    let too_large = json!({"query": "{ cubes { name } }", "variables": {"x": "x".repeat(300_000)}});
    texts.into_iter().map(|text| json!({ "query": text })).chain([large, wide, too_large]).collect()
}

/// Sends a POST request like a form on a page of another site, and returns the status.
fn forged(address: SocketAddr, content_type: &str) -> u16 {
    let mut stream = TcpStream::connect(address).unwrap();
    let body = r#"{"query": "mutation { invalidateCache { tenant } }"}"#;
    write!(
        stream,
        "POST /graphql HTTP/1.1\r\nHost: {address}\r\nOrigin: https://evil.example\r\nContent-Type: {content_type}\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

/// Opens sockets that break the rules of the protocol, and returns their close codes.
fn unruly_sockets(service: &Service) -> Vec<Value> {
    let address = service.address();
    let (foreign, _) = GraphQlSocket::handshake(address, &[("Origin", "https://evil.example")]).unwrap();
    assert_eq!(foreign, 403);
    let acknowledged = || GraphQlSocket::acknowledged(address, service.key()).unwrap();
    let mut eager = GraphQlSocket::open(address).unwrap();
    eager.subscribe("1", COUNT).unwrap();
    let mut large = GraphQlSocket::open(address).unwrap();
    // The server may close the socket before the client has sent everything.
    let _ = large.send(&json!({"type": "connection_init", "payload": {"x": "x".repeat(200_000)}}));
    let mut twice = acknowledged();
    twice.send(&json!({"type": "connection_init"})).unwrap();
    let mut duplicate = acknowledged();
    duplicate.subscribe("1", COUNT).unwrap();
    duplicate.subscribe("1", COUNT).unwrap();
    [eager, large, twice, duplicate].into_iter().map(|socket| last(socket)["close"].clone()).collect()
}

/// Returns the last message of a socket, which closes it.
fn last(mut socket: GraphQlSocket) -> Value {
    loop {
        let message = socket.receive().unwrap();
        if message["close"].is_u64() {
            return message;
        }
    }
}

/// Runs each attack once.
fn attack(service: &Service) {
    let address = service.address();
    for document in documents() {
        let status = post(service, &document);
        assert!(status < 500, "{status}: {}", document.to_string().chars().take(200).collect::<String>());
    }
    for content_type in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"] {
        assert_eq!(forged(address, content_type), 415, "{content_type}");
    }
    assert_eq!(unruly_sockets(service), [4401, 1009, 4429, 4409]);
    let silent: Vec<_> = (0..50).map(|_| GraphQlSocket::open(address).unwrap()).collect();
    let open = || GraphQlSocket::acknowledged(address, service.key()).unwrap();
    let idle: Vec<_> = (0..200).map(|_| open()).collect();
    let mut subscribed: Vec<_> = (0..20).map(|_| open()).collect();
    for socket in &mut subscribed {
        for id in 0..20 {
            socket.subscribe(&id.to_string(), COUNT).unwrap();
        }
    }
    for socket in &mut subscribed {
        assert_eq!(socket.receive().unwrap()["type"], "next");
    }
    drop((silent, idle, subscribed));
    wait_for_sockets(address, 0);
}

#[test]
fn memory_stays_flat_under_attacks() {
    let service = service();
    // The first rounds fill pools and caches, so their memory does not count.
    for _ in 0..2 {
        attack(&service);
    }
    let before = memory(&service);
    let (address, process, is_over) = (service.address(), service.process(), AtomicBool::new(false));
    let watched = thread::scope(|scope| {
        let watching = scope.spawn(|| watch(address, process, &is_over));
        for _ in 0..5 {
            attack(&service);
        }
        is_over.store(true, Ordering::Relaxed);
        watching.join().unwrap()
    });
    assert!(watched.probes > 0 && watched.failed_probes == 0, "{} of {} probes", watched.failed_probes, watched.probes);
    let growth = memory(&service).saturating_sub(before);
    assert!(growth <= MAX_GROWTH, "five rounds took {} MiB", growth / MIB);
}

/// The number of different queries with subscriptions.
const QUESTIONS: usize = 50;
/// The number of subscribers of each query.
const SUBSCRIBERS: usize = 100;
/// The number of subscriptions of one socket.
const PER_SOCKET: usize = 20;

/// Returns a project whose only cube reads a file. The version of the cube's data follows the file.
fn project_of_a_file() -> Scratch {
    let cube = "cubes:\n  - name: t\n    sql_table: t\n    refresh: {sql: \"SELECT max(id) FROM t\"}\n    measures:\n\
                \x20     - {name: count, type: count}\n    dimensions:\n\
                \x20     - {name: id, type: number, sql: id, primary_key: true}\n";
    let settings = "name: scratch\nwarehouse:\n  type: duckdb\n  init: [\"CREATE VIEW t AS SELECT * FROM \
                    read_csv('t.csv')\"]\nsecurity: {anonymous: {scopes: [read]}}\n";
    Scratch::empty().with("t.csv", &rows(1)).with("cubes/t.yml", cube).with("service_project.yml", settings)
}

/// Returns the rows of a round. Each round has one more row than the previous one.
fn rows(round: usize) -> String {
    let ids: String = (0..QUESTIONS + round).map(|id| format!("{id}\n")).collect();
    format!("id\n{ids}")
}

/// Returns the number of statements that queries ran in the warehouse.
fn statements(address: SocketAddr) -> usize {
    let metrics = request(address, "GET", "/metrics", None).unwrap().body;
    let counts = metrics.lines().filter(|line| line.starts_with("service_query_warehouse_duration_seconds_count"));
    counts.map(|line| line.rsplit(' ').next().unwrap().parse::<usize>().unwrap()).sum()
}

#[test]
fn subscribers_of_the_same_questions_share_statements() {
    let scratch = project_of_a_file();
    let server = program("serve", scratch.path())
        .arguments(&["--port", "0"])
        .variable("SERVICE_CACHE__ENABLED", "true")
        .variable("SERVICE_METRICS__ENABLED", "true")
        .variable("SERVICE_METRICS__PUBLIC", "true")
        .variable("SERVICE_LOG_REQUESTS", "false")
        .variable("SERVICE_LOG_QUERIES", "false")
        .variable("SERVICE_GRAPHQL__MAX_SOCKETS_PER_CALLER", "1000")
        .variable("SERVICE_GRAPHQL__MAX_SUBSCRIPTIONS_PER_CALLER", "10000")
        .serve()
        .unwrap();
    let address = server.address;
    let before = memory_bytes(server.process()).unwrap();
    let mut sockets: Vec<GraphQlSocket> = (0..QUESTIONS * SUBSCRIBERS / PER_SOCKET)
        .map(|_| GraphQlSocket::opened(address, &json!({})).unwrap())
        .collect();
    for (index, socket) in sockets.iter_mut().enumerate() {
        for id in 0..PER_SOCKET {
            let question = (index * PER_SOCKET + id) % QUESTIONS;
            let query = format!(
                "subscription {{ queryResult(measures: [\"t.count\"], filters: [{{member: \"t.id\", operator: GTE, \
                 values: [\"{question}\"]}}]) {{ data }} }}"
            );
            socket.subscribe(&question.to_string(), &query).unwrap();
        }
    }
    let mut read = 0;
    for round in 1..=4 {
        if round > 1 {
            // The file is replaced at once, so that no reader sees a part of it.
            let next = scratch.path().join("next.csv");
            fs::write(&next, rows(round)).unwrap();
            fs::rename(&next, scratch.path().join("t.csv")).unwrap();
        }
        for socket in &mut sockets {
            for _ in 0..PER_SOCKET {
                let message = socket.receive().unwrap();
                let question: usize = message["id"].as_str().unwrap().parse().unwrap();
                let row = &message["payload"]["data"]["queryResult"]["data"][0];
                assert_eq!(row["t.count"], QUESTIONS + round - question, "{message}");
            }
        }
        let now = statements(address);
        assert_eq!(now - read, QUESTIONS, "statements in round {round}");
        read = now;
    }
    let growth = memory_bytes(server.process()).unwrap().saturating_sub(before);
    println!("{} subscriptions took {} MiB", QUESTIONS * SUBSCRIBERS, growth / MIB);
    assert!(growth <= 300 * MIB, "{} subscriptions took {} MiB", QUESTIONS * SUBSCRIBERS, growth / MIB);
}
