//! Chooses ports for servers that cannot report a port of their own choice.

use std::net::TcpListener;
use std::process;
use std::sync::atomic::{AtomicU16, Ordering};

use anyhow::{Result, bail};

/// The first of the ports. They are below the range from which Linux takes ports for connections and for port 0. So no
/// other process gets a port between this choice and the start of the server.
const FIRST: u16 = 12_000;
/// The number of ports that one process tries first. Each test is a process, so that tests which run at the same time
/// have different ports.
const EACH: u16 = 16;
const PROCESSES: u16 = 1_200;

static NEXT: AtomicU16 = AtomicU16::new(0);

/// Returns a port on which nothing listens. It differs for each call and for processes that run at the same time.
///
/// # Errors
/// All ports are in use.
pub fn free_port() -> Result<u16> {
    let process = u16::try_from(process::id() % u32::from(PROCESSES))?;
    for _ in 0..EACH * PROCESSES {
        let place = (process * EACH + NEXT.fetch_add(1, Ordering::Relaxed)) % (EACH * PROCESSES);
        let port = FIRST + place;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("the ports from {FIRST} to {} are in use", FIRST + EACH * PROCESSES - 1)
}
