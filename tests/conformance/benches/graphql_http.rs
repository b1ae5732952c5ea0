//! Measures the CPU time that the server takes for a request over HTTP with cached rows.
//!
//! 16 connections send the same query, by REST and by GraphQL. The server has its own runtime, and only the threads of
//! this runtime are measured, so that clients and other programs on the machine do not count. Budgets: 60 µs more for
//! GraphQL than for REST, and 8,000 requests a second, which two cores reach if a request takes 250 µs. Fakes of this
//! package replace the warehouse and the clock.

#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark reads the clock and prints its results"
)]

use std::fs;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use terrane_conformance_tests::case::World;
use terrane_conformance_tests::fakes::Column;
use terrane_conformance_tests::socket::start;
use terrane_server::ServeSettings;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};

const CONNECTIONS: usize = 16;
const WARM_UP: usize = 50;
const REQUESTS: usize = 1_000;
const ROUNDS: usize = 5;
const THREADS: &str = "served";
/// The unit of CPU times in `/proc` (`sysconf(_SC_CLK_TCK)` on Linux).
const TICKS_PER_SECOND: f64 = 100.0;

fn runtime(name: &str) -> Runtime {
    Builder::new_multi_thread().worker_threads(2).thread_name(name).enable_all().build().expect("a runtime")
}

/// Returns the CPU time of the server's threads.
fn server_time() -> Duration {
    let tasks = fs::read_dir("/proc/self/task").expect("Linux");
    let times = tasks.filter_map(|task| {
        let stat = fs::read_to_string(task.ok()?.path().join("stat")).ok()?;
        let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
        // Fields 14 and 15 of the line are the CPU times. `rest` begins with field 3.
        let ticks: f64 = rest.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum();
        (name == THREADS).then_some(ticks)
    });
    Duration::from_secs_f64(times.sum::<f64>() / TICKS_PER_SECOND)
}

/// Sends a request `count` times on one connection.
async fn send(address: SocketAddr, path: &'static str, body: String, count: usize) {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let length = body.len();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    let mut bytes = vec![0; 64 * 1024];
    for _ in 0..count {
        stream.write_all(request.as_bytes()).await.expect("a server that reads");
        let mut end = 0;
        loop {
            end += stream.read(&mut bytes[end..]).await.expect("an answer");
            if is_complete(&bytes[..end]) {
                break;
            }
        }
        assert!(bytes.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&bytes[..end]));
    }
}

/// Returns whether an answer with a `Content-Length` is complete.
fn is_complete(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    length.and_then(|length| length.parse::<usize>().ok()).is_some_and(|length| body.len() >= length)
}

async fn send_all(address: SocketAddr, path: &'static str, body: &Json, count: usize) {
    let clients = (0..CONNECTIONS).map(|_| tokio::spawn(send(address, path, body.to_string(), count)));
    for client in clients.collect::<Vec<_>>() {
        client.await.expect("a client without fault");
    }
}

fn main() {
    let (serving, asking) = (runtime(THREADS), runtime("asking"));
    let column =
        |ty: &str, values: Json| Column { ty: ty.to_owned(), values: values.as_array().cloned().unwrap_or_default() };
    let columns = vec![column("text", json!(["paid", "open"])), column("integer", json!([2, 1]))];
    let world = World { columns, has_cache: true, ..World::default() };
    let server = serving.block_on(async { start(&world, ServeSettings::default()).await });
    let rest = json!({"measures": ["orders.count"], "dimensions": ["orders.status"], "limit": 100});
    let document = "query Rows($measures: [String!], $dimensions: [String!]) { \
                    query(measures: $measures, dimensions: $dimensions, limit: 100) { \
                    data meta { totalCount fromCache } query { sql } } }";
    let variables = json!({"measures": ["orders.count"], "dimensions": ["orders.status"]});
    let graphql = json!({"query": document, "variables": variables});
    let surfaces = [("REST", "/api/v1/query", rest), ("GraphQL", "/graphql", graphql)];
    let mut totals = [Duration::ZERO; 2];
    let count = (CONNECTIONS * REQUESTS) as f64;
    for round in 0..=ROUNDS {
        for (index, (name, path, body)) in surfaces.iter().enumerate() {
            let requests = if round == 0 { WARM_UP } else { REQUESTS };
            let (before, started) = (server_time(), Instant::now());
            asking.block_on(send_all(server.address, path, body, requests));
            if round > 0 {
                let (time, wall) = (server_time() - before, started.elapsed());
                totals[index] += time;
                println!(
                    "{name}: {:.1} µs of CPU a request, {:.0} requests a second with clients on the same cores",
                    time.as_secs_f64() * 1e6 / count,
                    count / wall.as_secs_f64()
                );
            }
        }
    }
    let [rest, graphql] = totals.map(|total| total.as_secs_f64() * 1e6 / count / ROUNDS as f64);
    println!("GraphQL − REST: {:.1} µs ({graphql:.1} − {rest:.1})", graphql - rest);
}
