//! Watches the server from outside while it is attacked: its liveness probe and its memory.

use std::fs;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::http::request;

const PAUSE: Duration = Duration::from_millis(100);

/// The measurements.
#[derive(Debug, Clone, Default)]
pub struct Watched {
    /// The resident memory in bytes at each measurement.
    pub memory_bytes: Vec<u64>,
    pub probes: usize,
    pub slowest_probe: Duration,
    pub failed_probes: usize,
}

/// Measures periodically until `stop` is true.
pub fn watch(address: SocketAddr, process: u32, stop: &AtomicBool) -> Watched {
    let mut watched = Watched::default();
    while !stop.load(Ordering::Relaxed) {
        let started = Instant::now();
        let alive = request(address, "GET", "/health/live", None);
        watched.probes += 1;
        watched.slowest_probe = watched.slowest_probe.max(started.elapsed());
        watched.failed_probes += usize::from(!alive.is_ok_and(|answer| answer.status == 200));
        watched.memory_bytes.extend(memory_bytes(process));
        thread::sleep(PAUSE);
    }
    watched
}

/// Returns the resident memory of the process in bytes, as Linux reports it.
pub fn memory_bytes(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().ok().map(|kib| kib * 1_024)
}
