//! Faults of a cluster in the middle of queries: lost and frozen servers, clients that leave, and load.
//!
//! In: the running cluster. Out: a line of the report for each fault, with what was measured. The statements run through
//! the real connector. Deliberately absent: faults of the program's own servers, which `cargo xtask cluster` has.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::ReportLine;
use super::client::Request;
use super::servers::Servers;
use super::suites::Suites;
use crate::http;
use crate::process::{resident_bytes, wait_until};

/// A query of several seconds in many tasks, whose answer does not depend on their order.
const LONG: &str = "SELECT g, count(*) AS n, sum(h) AS s, min(h) AS low FROM \
    (SELECT id % 7 AS g, CAST(xxhash64(id, id % 13) AS DECIMAL(38, 0)) AS h FROM range(0, 12000000, 1, 48)) \
    GROUP BY g ORDER BY g";
/// A query that runs for hours.
const ENDLESS: &str = "SELECT sum(id % 7) AS s FROM range(100000000000000)";
const SMALL: &str = "SELECT sum(id) AS s FROM range(1000)";
const SMALL_ANSWER: &str = "499500";
const MANY_ROWS: u64 = 10_000_000;
const CONCURRENT: usize = 50;
/// The time in seconds after which a caller leaves, by which the tasks of its statement run.
const LEAVE: f64 = 20.0;
/// The time after which no executor may still run tasks of a client that has ended. A server notices the end when it
/// closes the stream of responses, after 2 minutes by default, and then waits for `detachedTimeout`.
const DEAD_LIMIT: Duration = Duration::from_secs(240);
const LIMIT: Duration = Duration::from_secs(180);
/// The memory that a client may need for a stream of any length.
const CLIENT_MEBIBYTES: u64 = 300;

pub(super) fn run(suites: &Suites<'_>, servers: &mut Servers) -> Result<Vec<ReportLine>> {
    type Fault = fn(&Suites<'_>, &mut Servers) -> Result<ReportLine>;
    let faults: [(&str, Fault); 7] = [
        ("a worker killed", killed_worker),
        ("a caller that leaves", client_that_leaves),
        ("a client killed", client_that_dies),
        ("the Connect server frozen", frozen_server),
        ("concurrent queries", concurrent_queries),
        ("many rows", many_rows),
        ("the Connect server killed", killed_server),
    ];
    let mut lines = Vec::new();
    for (name, fault) in faults {
        suites.ensure_wanted()?;
        let line = fault(suites, servers);
        lines.push(line.unwrap_or_else(|error| ReportLine::new(false, format!("{name}: {error:#}"))));
    }
    Ok(lines)
}

fn killed_worker(suites: &Suites<'_>, servers: &mut Servers) -> Result<ReportLine> {
    let mut client = suites.client(&servers.url(), 1)?;
    // The first run warms the executors up.
    client.ask(&Request::new(LONG))?;
    let expected = client.ask(&Request::new(LONG))?;
    ensure!(expected["rows"].is_array(), "{expected}");
    client.send(&Request::new(LONG))?;
    thread::sleep(Duration::from_secs_f64(seconds_of(&expected) * 0.4));
    servers.kill_worker(0)?;
    let found = client.next(LIMIT, || ())?;
    servers.restart_worker(0)?;
    let again = client.ask(&Request::new(LONG))?;
    let is_right = found["rows"] == expected["rows"] || found["error"].is_string();
    let text = format!(
        "a worker killed in a query of {:.1} s: {} after {:.1} s; with a new worker right: {}, in {:.1} s",
        seconds_of(&expected),
        outcome(&found, &expected),
        seconds_of(&found),
        again["rows"] == expected["rows"],
        seconds_of(&again),
    );
    Ok(ReportLine::new(is_right && again["rows"] == expected["rows"], text))
}

fn killed_server(suites: &Suites<'_>, servers: &mut Servers) -> Result<ReportLine> {
    let mut client = suites.client(&servers.url(), 2)?;
    client.ask(&Request::new(SMALL))?;
    client.send(&Request::new(ENDLESS))?;
    thread::sleep(Duration::from_secs(2));
    let killed = Instant::now();
    servers.connect.stop("KILL", LIMIT)?;
    let found = client.next(LIMIT, || ())?;
    let noticed = killed.elapsed();
    let down = client.ask(&Request::new(SMALL))?;
    servers.restart_connect()?;
    let again = client.ask(&Request::new(SMALL))?;
    let is_right = found["kind"] == "Unavailable" && down["kind"] == "Unavailable" && is_small_answer(&again);
    let text = format!(
        "the Connect server killed: the running query fails with {} after {:.1} s, the next one with {} after {:.1} s; \
         after a restart the same client is answered in {:.1} s",
        found["kind"],
        noticed.as_secs_f64(),
        down["kind"],
        seconds_of(&down),
        seconds_of(&again),
    );
    Ok(ReportLine::new(is_right, text))
}

fn frozen_server(suites: &Suites<'_>, servers: &mut Servers) -> Result<ReportLine> {
    let mut client = suites.client(&servers.url(), 1)?;
    client.ask(&Request::new(SMALL))?;
    signal("STOP", servers.connect.id())?;
    let frozen = client.ask(&Request { seconds: 3.0, ..Request::new(SMALL) });
    signal("CONT", servers.connect.id())?;
    let frozen = frozen?;
    let again = client.ask(&Request::new(SMALL))?;
    let text = format!(
        "the Connect server frozen: {} after {:.1} s with a limit of 3 s; thawed, the same client is answered in {:.1} s",
        frozen["kind"],
        seconds_of(&frozen),
        seconds_of(&again),
    );
    Ok(ReportLine::new(frozen["kind"] == "Timeout" && seconds_of(&frozen) < 4.0 && is_small_answer(&again), text))
}

fn client_that_leaves(suites: &Suites<'_>, servers: &mut Servers) -> Result<ReportLine> {
    let mut client = suites.client(&servers.url(), 1)?;
    client.ask(&Request::new(SMALL))?;
    let request = Request { leave_after: Some(LEAVE), ..Request::new(ENDLESS) };
    client.send(&request)?;
    wait_until("the executors work", LIMIT, || Ok(active_tasks(servers)? > 0))?;
    client.next(LIMIT, || ())?;
    let idle = wait_until("the executors are idle", LIMIT, || Ok(active_tasks(servers)? == 0))?;
    let again = client.ask(&Request::new(SMALL))?;
    let text = format!(
        "a caller that leaves: the executors are idle after {:.1} s, and the same session is answered in {:.1} s",
        idle.as_secs_f64(),
        seconds_of(&again)
    );
    Ok(ReportLine::new(idle < Duration::from_secs(10) && is_small_answer(&again), text))
}

fn client_that_dies(suites: &Suites<'_>, servers: &mut Servers) -> Result<ReportLine> {
    let mut client = suites.client(&servers.url(), 1)?;
    client.send(&Request::new(ENDLESS))?;
    wait_until("the executors work", LIMIT, || Ok(active_tasks(servers)? > 0))?;
    client.kill()?;
    let idle = wait_until("the executors are idle", DEAD_LIMIT, || Ok(active_tasks(servers)? == 0))?;
    let text = format!(
        "a client killed: the executors are idle after {:.1} s; the server closes its stream after 2 min, and ends the \
         statement 20 s later",
        idle.as_secs_f64()
    );
    Ok(ReportLine::new(idle < DEAD_LIMIT, text))
}

fn concurrent_queries(suites: &Suites<'_>, servers: &mut Servers) -> Result<ReportLine> {
    const ROWS: u64 = 300_000;
    let mut client = suites.client(&servers.url(), CONCURRENT)?;
    client.ask(&Request::new(SMALL))?;
    let started = Instant::now();
    for number in 0..CONCURRENT {
        client.send(&Request::new(format!("SELECT sum(id * {number}) AS s FROM range({ROWS})")))?;
    }
    let (mut seconds, mut wrong) = (Vec::new(), 0);
    for _ in 0..CONCURRENT {
        let answer = client.next(LIMIT, || ())?;
        // The first request of the client was another one.
        let number = answer["id"].as_u64().context("an answer without a number")? - 1;
        let right = (ROWS * (ROWS - 1) / 2 * number).to_string();
        wrong += usize::from(answer["rows"][0][0] != right.as_str());
        seconds.push(seconds_of(&answer));
    }
    seconds.sort_by(f64::total_cmp);
    let text = format!(
        "{CONCURRENT} concurrent queries on 4 cores of executors: {wrong} wrong or failed; {:.1} s in all, median {:.1} s, \
         longest {:.1} s",
        started.elapsed().as_secs_f64(),
        seconds[CONCURRENT / 2],
        seconds[CONCURRENT - 1],
    );
    Ok(ReportLine::new(wrong == 0, text))
}

fn many_rows(suites: &Suites<'_>, servers: &mut Servers) -> Result<ReportLine> {
    let mut client = suites.client(&servers.url(), 1)?;
    client.ask(&Request::new(SMALL))?;
    let (client_id, server_id) = (client.id(), servers.connect.id());
    let before = [resident_bytes(client_id)?, resident_bytes(server_id)?];
    let sql = format!("SELECT id, CAST(id AS STRING) AS name, id * 0.5D AS half FROM range({MANY_ROWS})");
    client.send(&Request { is_counted: true, ..Request::new(sql) })?;
    let mut peak = before;
    let answer = client.next(LIMIT, || {
        for (peak, id) in peak.iter_mut().zip([client_id, server_id]) {
            *peak = (*peak).max(resident_bytes(id).unwrap_or_default());
        }
    })?;
    let [client_before, server_before] = before.map(|bytes| bytes >> 20);
    let [client_peak, server_peak] = peak.map(|bytes| bytes >> 20);
    let is_whole = answer["count"].as_u64() == Some(MANY_ROWS);
    let text = format!(
        "{MANY_ROWS} rows to Arrow: {} rows in {} batches in {:.1} s; memory of the client {client_before} → {client_peak} \
         MiB, of the Connect server {server_before} → {server_peak} MiB",
        answer["count"],
        answer["batches"],
        seconds_of(&answer),
    );
    Ok(ReportLine::new(is_whole && client_peak < CLIENT_MEBIBYTES, text))
}

/// Returns the number of tasks that the executors run.
fn active_tasks(servers: &Servers) -> Result<u64> {
    let get = |path: &str| -> Result<Value> {
        let response = http::request(servers.monitoring_port, "GET", &format!("/api/v1/applications{path}"), None)?;
        serde_json::from_str(&response.body).with_context(|| response.body.clone())
    };
    let applications = get("")?;
    let id = applications[0]["id"].as_str().context("no application")?;
    let executors = get(&format!("/{id}/executors"))?;
    let executors = executors.as_array().context("no executors")?;
    Ok(executors.iter().filter_map(|executor| executor["activeTasks"].as_u64()).sum())
}

fn is_small_answer(answer: &Value) -> bool {
    answer["rows"][0][0] == SMALL_ANSWER
}

fn outcome(found: &Value, expected: &Value) -> &'static str {
    match (found["rows"] == expected["rows"], found["error"].is_string()) {
        (true, _) => "the same rows",
        (_, true) => "an error",
        _ => "OTHER ROWS",
    }
}

fn seconds_of(answer: &Value) -> f64 {
    answer["milliseconds"].as_f64().unwrap_or_default() / 1_000.0
}

fn signal(name: &str, process: u32) -> Result<()> {
    let status = Command::new("kill").args([&format!("-{name}"), &process.to_string()]).status()?;
    ensure!(status.success(), "kill: {status}");
    Ok(())
}
