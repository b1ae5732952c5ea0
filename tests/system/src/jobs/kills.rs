//! Kills servers at random moments while clients submit jobs.
//!
//! In: rounds and replicas. Out: numbers, and each violation of the promises: an acknowledged job stays known and ends;
//! a complete job has every row; an attempt that is cut off is repeated once, and no more; a repeated submission
//! creates no second job; the folder of results contains only results at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::{World, read_result, state, submit};
use crate::Unheard;
use crate::soak::random::Random;

/// The number of rows of each result. It is larger than a page that a server holds in memory.
const ROWS: u64 = 12_000;
/// The largest number of jobs, so that one list shows all of them.
const MAX_JOBS: u64 = 9_500;
const CLIENTS: u64 = 2;
const DRAIN: Duration = Duration::from_secs(900);
/// The time limit of the cleanup, longer than the period of the task that deletes unused records and files.
const SWEEP: Duration = Duration::from_secs(120);
const MAX_FAULTS: usize = 20;

#[derive(Debug, Clone, Copy)]
pub struct KillSettings {
    pub rounds: u64,
    /// The number of servers that share one state database.
    pub replicas: usize,
    pub seed: u64,
}

/// The counts and faults of a run.
#[derive(Debug, Default)]
pub struct KillReport {
    pub rounds: u64,
    pub kills: u64,
    pub acknowledged: usize,
    /// The number of submissions without a response, which were repeated.
    pub repeated: usize,
    pub complete: usize,
    pub interrupted: usize,
    pub second_attempts: usize,
    pub faults: Vec<String>,
    pub duration: Duration,
}

/// The submissions of all clients.
#[derive(Default)]
struct Submissions {
    /// The ids of acknowledged jobs, by their idempotency keys.
    acknowledged: Mutex<BTreeMap<String, String>>,
    unanswered: Mutex<BTreeSet<String>>,
    count: AtomicU64,
}

fn query() -> Value {
    json!({"measures": ["t.count"], "dimensions": ["t.id"], "limit": 20_000})
}

/// Kills servers for the configured number of rounds, then waits for all jobs and checks them.
///
/// # Errors
/// A server does not start, or does not answer at the end.
pub fn run(binary: &str, state_url: &str, settings: KillSettings) -> Result<KillReport> {
    let table = format!(
        "warehouse: {{type: duckdb, threads: 1, init: [\"CREATE TABLE t AS SELECT i AS id FROM range({ROWS}) AS r(i)\"]}}\n"
    );
    let world = World::new(binary, state_url, &table, "");
    let (mut random, started) = (Random::new(settings.seed), Instant::now());
    let submissions = Submissions::default();
    let mut servers: Vec<Option<Unheard>> = (0..settings.replicas).map(|_| None).collect();
    let mut report = KillReport { rounds: settings.rounds, ..KillReport::default() };
    for round in 0..settings.rounds {
        start_missing(&world, &mut servers)?;
        let addresses: Vec<SocketAddr> = servers.iter().flatten().map(|server| server.address).collect();
        let victim = random.below(servers.len() + 1);
        let pause = Duration::from_millis(random.below(600) as u64);
        submissions.while_running(round, &addresses, || {
            thread::sleep(pause);
            for (number, server) in servers.iter_mut().enumerate() {
                // If the number is greater than that of the last server, all servers are killed.
                if (number == victim || victim == settings.replicas)
                    && let Some(mut killed) = server.take()
                {
                    let _ = killed.child.kill();
                    let _ = killed.child.wait();
                    report.kills += 1;
                }
            }
        });
    }
    start_missing(&world, &mut servers)?;
    let address = servers.iter().flatten().next().context("no server")?.address;
    submissions.repeat(address, &mut report)?;
    wait_for_ends(&world)?;
    check(&world, address, &submissions, &mut report)?;
    Ok(KillReport { duration: started.elapsed(), ..report })
}

fn start_missing(world: &World<'_>, servers: &mut [Option<Unheard>]) -> Result<()> {
    for server in servers.iter_mut().filter(|server| server.is_none()) {
        *server = Some(world.serve()?);
    }
    Ok(())
}

impl Submissions {
    /// Runs clients that submit jobs until `kill` has returned.
    fn while_running(&self, round: u64, addresses: &[SocketAddr], kill: impl FnOnce()) {
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            for (number, address) in (0..CLIENTS * addresses.len() as u64).zip(addresses.iter().cycle()) {
                let is_over = &is_over;
                scope.spawn(move || {
                    for turn in 0.. {
                        let is_full = self.count.fetch_add(1, Ordering::Relaxed) >= MAX_JOBS;
                        if is_over.load(Ordering::Relaxed) || is_full {
                            return;
                        }
                        self.submit(*address, format!("{round}-{number}-{turn}"));
                        thread::sleep(Duration::from_millis(15));
                    }
                });
            }
            kill();
            is_over.store(true, Ordering::Relaxed);
        });
    }

    fn submit(&self, address: SocketAddr, key: String) {
        if let Ok(id) = submit(address, &key, &query()) {
            self.acknowledged.lock().expect("a lock").insert(key, id);
        } else {
            self.unanswered.lock().expect("a lock").insert(key);
        }
    }

    /// Repeats the submissions without an answer. Each leads to the job that was stored, or to a new one.
    fn repeat(&self, address: SocketAddr, report: &mut KillReport) -> Result<()> {
        let mut acknowledged = self.acknowledged.lock().expect("a lock");
        for key in self.unanswered.lock().expect("a lock").iter() {
            let id = submit(address, key, &query())?;
            let again = submit(address, key, &query())?;
            ensure!(id == again, "the key {key} names two jobs");
            acknowledged.insert(key.clone(), id);
            report.repeated += 1;
        }
        Ok(())
    }
}

fn wait_for_ends(world: &World<'_>) -> Result<()> {
    let started = Instant::now();
    loop {
        let open = world.jobs(&["--state", "pending"])?.len() + world.jobs(&["--state", "running"])?.len();
        if open == 0 {
            return Ok(());
        }
        ensure!(started.elapsed() < DRAIN, "{open} jobs have not ended within {} s", DRAIN.as_secs());
        thread::sleep(Duration::from_millis(500));
    }
}

fn check(world: &World<'_>, address: SocketAddr, submissions: &Submissions, report: &mut KillReport) -> Result<()> {
    let stored = world.jobs(&[])?;
    let acknowledged = submissions.acknowledged.lock().expect("a lock").clone();
    report.acknowledged = acknowledged.len();
    let ids: BTreeSet<&str> = acknowledged.values().map(String::as_str).collect();
    let known: BTreeSet<&str> = stored.iter().filter_map(|job| job["job_id"].as_str()).collect();
    let mut faults: Vec<String> = ids.difference(&known).map(|id| format!("{id} is lost")).collect();
    faults.extend(known.difference(&ids).map(|id| format!("{id} was stored and not acknowledged")));
    if ids.len() != acknowledged.len() {
        faults.push(format!("{} keys name {} jobs", acknowledged.len(), ids.len()));
    }
    for (number, job) in stored.iter().enumerate() {
        let (id, attempts) = (job["job_id"].as_str().unwrap_or_default(), job["attempts"].as_u64().unwrap_or(0));
        report.second_attempts += usize::from(attempts == 2);
        let code = &job["error"]["code"];
        match job["status"].as_str() {
            Some("complete") if (1..=2).contains(&attempts) => {
                report.complete += 1;
                // Checks all rows of some results, and the last row of each result.
                let is_whole = attempts == 2 || number % 10 == 0;
                faults.extend(check_result(address, id, is_whole).err().map(|fault| format!("{id}: {fault:#}")));
            }
            Some("failed") if code == "INTERRUPTED" && attempts == 2 => report.interrupted += 1,
            _ => faults.push(format!("{id} ended wrongly: {job}")),
        }
    }
    for (id, starts) in starts(world)? {
        if starts.len() > 2 || starts.iter().collect::<BTreeSet<_>>().len() != starts.len() {
            faults.push(format!("{id} was started {} times: {starts:?}", starts.len()));
        }
    }
    faults.extend(unneeded_files(world, report.complete)?);
    let audit = world.command(&["audit", "verify"]).run()?;
    if audit.code != Some(0) {
        faults.push(audit.stdout);
    }
    faults.truncate(MAX_FAULTS);
    report.faults = faults;
    Ok(())
}

fn check_result(address: SocketAddr, id: &str, is_whole: bool) -> Result<()> {
    let job = state(address, id)?;
    ensure!(job["row_count"] == ROWS, "it has {} rows", job["row_count"]);
    let mut text = Vec::new();
    let (page, first) = if is_whole { (String::new(), 0) } else { (format!("?offset={}", ROWS - 1), ROWS - 1) };
    let head = read_result(address, "text/csv", id, &page, |part| text.extend_from_slice(part))?;
    ensure!(head.to_lowercase().contains(&format!("x-terrane-total-rows: {ROWS}")), "{head}");
    let text = String::from_utf8(text)?;
    let rows: BTreeSet<&str> = text.lines().skip(1).collect();
    let expected: BTreeSet<String> = (first..ROWS).map(|id| format!("{id},1")).collect();
    ensure!(rows.len() == expected.len(), "{} rows were read", rows.len());
    if is_whole {
        ensure!(rows.iter().all(|row| expected.contains(*row)), "rows differ");
    }
    Ok(())
}

/// Returns the attempts of each job in the servers' logs. The last lines of a killed server may be missing.
fn starts(world: &World<'_>) -> Result<BTreeMap<String, Vec<u64>>> {
    let mut starts: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for line in fs::read_to_string(world.log())?.lines() {
        // The last line of a killed server may be incomplete.
        let Ok(record) = serde_json::from_str::<Value>(line) else { continue };
        if record["event"] == "job_started"
            && let (Some(id), Some(attempt)) = (record["job_id"].as_str(), record["attempt"].as_u64())
        {
            starts.entry(id.to_owned()).or_default().push(attempt);
        }
    }
    Ok(starts)
}

/// Waits until the folder contains one file for each result. If the two numbers still differ after the time limit,
/// returns them as text.
fn unneeded_files(world: &World<'_>, results: usize) -> Result<Option<String>> {
    let started = Instant::now();
    loop {
        let files = world.result_files()?;
        if files == results {
            return Ok(None);
        }
        if started.elapsed() > SWEEP {
            return Ok(Some(format!("{files} files for {results} results")));
        }
        thread::sleep(Duration::from_millis(500));
    }
}

impl fmt::Display for KillReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let KillReport { rounds, kills, acknowledged, repeated, complete, interrupted, second_attempts, .. } = self;
        writeln!(f, "{rounds} rounds with {kills} kills in {:.0} s", self.duration.as_secs_f64())?;
        writeln!(
            f,
            "{acknowledged} jobs, {repeated} of them submitted again: {complete} complete, {interrupted} interrupted \
             twice, {second_attempts} with a second attempt"
        )?;
        for fault in &self.faults {
            writeln!(f, "FAULT {fault}")?;
        }
        Ok(())
    }
}
