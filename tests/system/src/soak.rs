//! Attacks a real server: many connections at once, each with a harmful request.
//!
//! In: the number of requests, and a seed. Out: a [`Report`]: responses by status, violated rules, the time of the
//! liveness probe, and the memory at the end compared with the memory after a fifth of the time. Each attack can be
//! repeated by its seed and number. Not here: starting the server, which the program or a test does.

#![allow(clippy::disallowed_methods, reason = "what is measured here is time itself")]

pub mod hostile;
pub mod load;
pub mod looping;
pub mod random;
pub mod rules;
pub mod stage;
pub mod watch;

use std::collections::BTreeMap;
use std::fmt;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hostile::{Attack, Credentials, Ending, attack};
use watch::Watched;

/// The time limit of a response, longer than any timeout of the server under test.
const PATIENCE: Duration = Duration::from_secs(60);
const MAX_ANSWER_BYTES: u64 = 64 * 1_024 * 1_024;
const MAX_FAULTS: usize = 20;

#[derive(Debug, Clone, Copy)]
pub struct Settings {
    pub requests: u64,
    pub seed: u64,
    /// The number of simultaneous connections.
    pub clients: usize,
}

/// The measurements and faults of an attack.
#[derive(Debug, Default)]
pub struct Report {
    pub answers: BTreeMap<Option<u16>, u64>,
    /// The first faults: the number and the kind of the attack, and the violated rule.
    pub faults: Vec<(u64, &'static str, String)>,
    pub duration: Duration,
    pub watched: Watched,
}

/// Attacks a server. The id of its process is needed to measure its memory.
pub fn run(address: SocketAddr, process: u32, credentials: &Credentials, settings: Settings) -> Report {
    let (next, stop, started) = (AtomicU64::new(0), AtomicBool::new(false), Instant::now());
    let collected = Mutex::new(Report::default());
    let mut watched = Watched::default();
    thread::scope(|scope| {
        let watching = scope.spawn(|| watch::watch(address, process, &stop));
        let clients: Vec<_> = (0..settings.clients)
            .map(|_| scope.spawn(|| attack_on(address, credentials, settings, &next, &collected)))
            .collect();
        for client in clients {
            // If a client panics, the test itself is faulty and ends below.
            let _ = client.join();
        }
        stop.store(true, Ordering::Relaxed);
        watched = watching.join().unwrap_or_default();
    });
    let collected = collected.into_inner().unwrap_or_default();
    Report { duration: started.elapsed(), watched, ..collected }
}

fn attack_on(
    address: SocketAddr,
    credentials: &Credentials,
    settings: Settings,
    next: &AtomicU64,
    collected: &Mutex<Report>,
) {
    let secrets = [credentials.admin.as_str(), credentials.reader.as_str(), credentials.token.as_str(), "panicked at"];
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= settings.requests {
            return;
        }
        let attack = attack(settings.seed, number, credentials);
        let verdict = send(address, &attack).and_then(|answer| match answer {
            Some(answer) => rules::check(attack.bytes.starts_with(b"HEAD "), &answer, &secrets),
            None => Ok(None),
        });
        let Ok(mut report) = collected.lock() else { return };
        match verdict {
            Ok(status) => *report.answers.entry(status).or_default() += 1,
            Err(fault) if report.faults.len() < MAX_FAULTS => report.faults.push((number, attack.kind, fault)),
            Err(_) => {}
        }
    }
}

/// Sends an attack and returns the answer; `None` if either side closed the connection early.
fn send(address: SocketAddr, attack: &Attack) -> Result<Option<Vec<u8>>, String> {
    let mut stream =
        TcpStream::connect_timeout(&address, PATIENCE).map_err(|error| format!("no connection: {error}"))?;
    let _ = stream.set_write_timeout(Some(PATIENCE));
    let _ = stream.set_read_timeout(Some(PATIENCE));
    // A server may answer before it has read the whole request, so the answer is read in any case.
    let _ = stream.write_all(&attack.bytes);
    match attack.ending {
        Ending::GoesAway => return Ok(None),
        Ending::HangsUp => drop(stream.shutdown(Shutdown::Write)),
        Ending::Reads => {}
    }
    let mut answer = Vec::new();
    match stream.take(MAX_ANSWER_BYTES).read_to_end(&mut answer) {
        Ok(_) => Ok(Some(answer)),
        Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {
            Err(format!("no end of the answer within {} s", PATIENCE.as_secs()))
        }
        Err(_) => Ok(None),
    }
}

impl Report {
    /// Returns the resident memory in bytes after a fifth of the time and at the end. Each number is the median of
    /// several measurements.
    pub fn memory(&self) -> Option<(u64, u64)> {
        let seen = &self.watched.memory_bytes;
        let width = (seen.len() / 20).max(1);
        let middle = |start: usize| {
            let mut part = seen.get(start..(start + width).min(seen.len()))?.to_vec();
            part.sort_unstable();
            part.get(part.len() / 2).copied()
        };
        Some((middle(seen.len() / 5)?, middle(seen.len().checked_sub(width)?)?))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total: u64 = self.answers.values().sum();
        writeln!(f, "{total} attacks in {:.1} s", self.duration.as_secs_f64())?;
        for (status, count) in &self.answers {
            match status {
                Some(status) => writeln!(f, "  {status}: {count}")?,
                None => writeln!(f, "  closed without an answer: {count}")?,
            }
        }
        let Watched { probes, slowest_probe, failed_probes, .. } = &self.watched;
        writeln!(
            f,
            "liveness: {probes} probes, {failed_probes} failed, the slowest took {} ms",
            slowest_probe.as_millis()
        )?;
        if let Some((early, late)) = self.memory() {
            writeln!(
                f,
                "memory: {} MiB after a fifth, {} MiB at the end, {:.2} times",
                early >> 20,
                late >> 20,
                late as f64 / early as f64
            )?;
        }
        for (number, kind, fault) in &self.faults {
            writeln!(f, "FAULT {number} ({kind}): {fault}")?;
        }
        Ok(())
    }
}
