//! Measures the rate at which a server stores jobs. A submission is answered once the job is on disk.

use std::time::Duration;

use anyhow::Result;

use super::{JOBS, World};
use crate::soak::load::{self, Crowd, LoadReport};

const QUERY: &str = r#"{"measures":["t.count"],"dimensions":["t.id"]}"#;

/// Makes clients submit one job after another. Returns the responses, and the number of stored jobs per second.
///
/// # Errors
/// The server does not start.
pub fn run(binary: &str, state_url: &str, clients: usize, duration: Duration) -> Result<(LoadReport, f64)> {
    let table = "warehouse: {type: duckdb, init: [\"CREATE TABLE t AS SELECT 1 AS id\"]}\n";
    let world = World::new(binary, state_url, table, "");
    let server = world.serve()?;
    let crowd = Crowd { bearer: "", path: JOBS, bodies: &[QUERY], clients, pause: Duration::ZERO };
    let report = load::run(server.address, server.child.id(), crowd, duration);
    let stored = report.answers.get(&202).copied().unwrap_or(0);
    Ok((report, stored as f64 / duration.as_secs_f64()))
}
