//! Measures how long each of many ordinary clients waits when all of them send requests.
//!
//! Every client keeps its connection. It sends the next request when it has received an answer, or after a pause.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::watch::{self, Watched};

const PATIENCE: Duration = Duration::from_secs(60);
/// The pause of a client after a refusal.
const REFUSED_PAUSE: Duration = Duration::from_millis(200);
const STACK_BYTES: usize = 256 * 1_024;
/// The route of queries.
pub const QUERIES: &str = "/api/v1/query";
/// Queries of the example project.
pub const BODIES: &[&str] = &[
    r#"{"measures":["flights.count"],"dimensions":["flights.origin"]}"#,
    r#"{"measures":["flights.count"],"dimensions":["flights.time_hour.month"],"filters":[{"dimension":"flights.origin","operator":"equals","value":"JFK"}]}"#,
    r#"{"metrics":["on_time_rate"],"dimensions":["airlines.name"]}"#,
];

#[derive(Debug, Default)]
pub struct LoadReport {
    /// The number of responses by status. Status 0 stands for connections that were refused or broken.
    pub answers: BTreeMap<u16, u64>,
    /// The waiting times, in ascending order.
    pub waits: Vec<Duration>,
    pub watched: Watched,
}

/// Clients that send the same few requests in turn.
#[derive(Debug, Clone, Copy)]
pub struct Crowd<'a> {
    /// The bearer token; empty for anonymous callers.
    pub bearer: &'a str,
    pub path: &'a str,
    pub bodies: &'a [&'a str],
    pub clients: usize,
    /// The pause between a response and the next request.
    pub pause: Duration,
}

/// Runs the clients for about this duration.
pub fn run(address: SocketAddr, process: u32, crowd: Crowd<'_>, duration: Duration) -> LoadReport {
    let (stop, begun) = (AtomicBool::new(false), Instant::now());
    let collected = Mutex::new(LoadReport::default());
    let mut watched = Watched::default();
    thread::scope(|scope| {
        let watching = scope.spawn(|| watch::watch(address, process, &stop));
        let asking: Vec<_> = (0..crowd.clients)
            .filter_map(|number| {
                let (body, collected) = (crowd.bodies[number % crowd.bodies.len()], &collected);
                let ask = move || ask(address, crowd, body, begun, duration, collected);
                thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, ask).ok()
            })
            .collect();
        for client in asking {
            let _ = client.join();
        }
        stop.store(true, Ordering::Relaxed);
        watched = watching.join().unwrap_or_default();
    });
    let mut report = collected.into_inner().unwrap_or_default();
    report.waits.sort_unstable();
    LoadReport { watched, ..report }
}

fn ask(
    address: SocketAddr,
    crowd: Crowd<'_>,
    body: &str,
    begun: Instant,
    duration: Duration,
    collected: &Mutex<LoadReport>,
) {
    let Crowd { bearer, path, .. } = crowd;
    let authorization = if bearer.is_empty() { String::new() } else { format!("Authorization: Bearer {bearer}\r\n") };
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\n{authorization}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = None;
    while begun.elapsed() < duration {
        let started = Instant::now();
        let status = exchange(&mut stream, address, &request);
        let wait = started.elapsed();
        if status.is_none() {
            stream = None;
        }
        let Ok(mut report) = collected.lock() else { return };
        *report.answers.entry(status.unwrap_or(0)).or_default() += 1;
        report.waits.push(wait);
        drop(report);
        let pause =
            if status.is_some_and(|status| status < 300) { crowd.pause } else { crowd.pause.max(REFUSED_PAUSE) };
        thread::sleep(pause);
    }
}

fn exchange(stream: &mut Option<TcpStream>, address: SocketAddr, request: &str) -> Option<u16> {
    if stream.is_none() {
        let fresh = TcpStream::connect_timeout(&address, PATIENCE).ok()?;
        fresh.set_read_timeout(Some(PATIENCE)).ok()?;
        *stream = Some(fresh);
    }
    let stream = stream.as_mut()?;
    stream.write_all(request.as_bytes()).ok()?;
    let (mut answer, mut piece) = (Vec::new(), [0; 8_192]);
    loop {
        let count = stream.read(&mut piece).ok().filter(|count| *count > 0)?;
        answer.extend_from_slice(&piece[..count]);
        let Some(end) = answer.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok())?;
        if answer.len() >= end + 4 + length {
            return head.get(9..12)?.parse().ok();
        }
    }
}

impl LoadReport {
    /// Returns the waiting time that the given percentage of requests does not exceed.
    pub fn percentile(&self, hundredths: usize) -> Duration {
        let at = (self.waits.len() * hundredths / 100).min(self.waits.len().saturating_sub(1));
        self.waits.get(at).copied().unwrap_or_default()
    }
}

impl fmt::Display for LoadReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} requests: {:?}", self.waits.len(), self.answers)?;
        let [p50, p99, p100] = [50, 99, 100].map(|hundredths| self.percentile(hundredths).as_millis());
        writeln!(f, "waits: {p50} ms for half, {p99} ms for 99 of 100, {p100} ms at most")?;
        let Watched { probes, slowest_probe, failed_probes, .. } = &self.watched;
        writeln!(
            f,
            "liveness: {probes} probes, {failed_probes} failed, the slowest took {} ms",
            slowest_probe.as_millis()
        )?;
        let most = self.watched.memory_bytes.iter().max().copied().unwrap_or_default();
        writeln!(f, "memory: {} MiB at most", most >> 20)
    }
}
