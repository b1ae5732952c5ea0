//! Measures the memory of a server that writes a large result and reads it in pages.
//!
//! DuckDB generates the rows in the process of the server, so DuckDB's memory counts as well. `memory_limit` is its
//! bound.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use super::{PATIENCE, World, id, read_result, state};
use crate::soak::watch::memory_bytes;

const COLUMNS: u64 = 8;
const PAGE: u64 = 10_000;

/// Memory in bytes above the memory of the idle server, and durations.
#[derive(Debug, Default)]
pub struct MemoryReport {
    pub idle: u64,
    pub writing: u64,
    pub paging: u64,
    /// The memory after the same pages were read a second time. It shows whether memory grows with each page.
    pub paging_again: u64,
    pub streaming: u64,
    pub write_duration: Duration,
    pub page_duration: Duration,
    pub result_bytes: u64,
}

/// Writes a result of `rows` rows with ten columns. Reads it in pages of JSON, and once as a whole in CSV.
///
/// # Errors
/// The server does not start, or the job fails.
pub fn run(binary: &str, rows: u64, memory_limit: &str) -> Result<MemoryReport> {
    let columns: Vec<String> = (1..=COLUMNS).map(|number| format!("c{number}")).collect();
    let select: String = columns.iter().zip(1..).map(|(name, n)| format!(", i * {n} % 1000003 AS {name}")).collect();
    let settings = format!(
        "warehouse: {{type: duckdb, threads: 2, memory_limit: {memory_limit}, \
         init: [\"CREATE VIEW t AS SELECT i AS id{select} FROM range({rows}) AS r(i)\"]}}\nquery: {{timeout: 600}}\n"
    );
    let dimensions: String =
        columns.iter().map(|name| format!("      - {{name: {name}, type: number, sql: {name}}}\n")).collect();
    let world = World::new(binary, "sqlite://state.db", &settings, &dimensions);
    let server = world.serve()?;
    let (address, process) = (server.address, server.child.id());
    let mut names = vec!["t.id".to_owned()];
    names.extend(columns.iter().map(|name| format!("t.{name}")));
    let submit = |limit: u64| -> Result<String> {
        let filters = json!([{"dimension": "t.id", "operator": "lt", "value": limit}]);
        let query = json!({"measures": ["t.count"], "dimensions": names, "filters": filters, "limit": limit});
        let answer = crate::request(address, "POST", super::JOBS, Some(&query.to_string()))?;
        ensure!(answer.status == 202, "{}", answer.body);
        let (id, started) = (id(&answer)?, Instant::now());
        loop {
            let job = state(address, &id)?;
            match job["status"].as_str() {
                Some("complete") => return Ok(id),
                Some("pending" | "running") => {}
                _ => anyhow::bail!("{job}"),
            }
            ensure!(started.elapsed() < 3 * PATIENCE, "the job takes too long");
            thread::sleep(Duration::from_millis(100));
        }
    };
    // A small job first loads the code and data that every job needs.
    let small = submit(20_000)?;
    read_result(address, "application/json", &small, "?limit=10000", |_| {})?;
    thread::sleep(Duration::from_secs(2));
    let idle = memory_bytes(process).context("no memory")?;
    let started = Instant::now();
    let (writing, id) = peak(process, || submit(rows));
    let (id, write_duration) = (id?, started.elapsed());
    let started = Instant::now();
    let read_pages = || {
        (0..rows.div_ceil(PAGE)).try_for_each(|page| {
            let place = format!("?offset={}&limit={PAGE}", page * PAGE);
            read_result(address, "application/json", &id, &place, |_| {}).map(drop)
        })
    };
    let (paging, pages) = peak(process, read_pages);
    pages?;
    let page_duration = started.elapsed();
    let (paging_again, pages) = peak(process, read_pages);
    pages?;
    let mut lines = 0;
    let (streaming, read) = peak(process, || {
        read_result(address, "text/csv", &id, "", |part| lines += part.iter().filter(|byte| **byte == b'\n').count())
    });
    read?;
    ensure!(lines as u64 == rows + 1, "{lines} lines of {rows} rows");
    let files = std::fs::read_dir(world.project.path().join(".terrane/jobs"))?;
    let sizes = files.map(|file| Ok(file?.metadata()?.len())).collect::<Result<Vec<u64>>>()?;
    let result_bytes = sizes.into_iter().max().unwrap_or(0);
    let above = |peak: u64| peak.saturating_sub(idle);
    Ok(MemoryReport {
        idle,
        writing: above(writing),
        paging: above(paging),
        paging_again: above(paging_again),
        streaming: above(streaming),
        write_duration,
        page_duration,
        result_bytes,
    })
}

/// Runs some work, and returns the largest memory of the process while it ran.
fn peak<T>(process: u32, work: impl FnOnce() -> T) -> (u64, T) {
    let (is_over, peak) = (AtomicBool::new(false), Mutex::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let seen = memory_bytes(process).unwrap_or(0);
                let mut peak = peak.lock().expect("a lock");
                *peak = seen.max(*peak);
                drop(peak);
                thread::sleep(Duration::from_millis(20));
            }
        });
        let done = work();
        is_over.store(true, Ordering::Relaxed);
        let peak = *peak.lock().expect("a lock");
        (peak, done)
    })
}
