//! Clients of servers that are killed. They change rows and report the change, request builds, and read answers from
//! tables and from rows.
//!
//! In: addresses. Out: observations. An answer that a kill cut off proves nothing and is ignored.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::rows::{COUNT, Rows};
use crate::{request, request_as};

/// The time after which all servers must know an acknowledged change, with a margin for a busy machine.
const AGREEMENT: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(20);

/// The observations of all clients.
#[derive(Debug, Default, Clone)]
pub(super) struct Observations {
    /// The ids of acknowledged builds.
    pub(super) builds: BTreeSet<String>,
    pub(super) requested: usize,
    pub(super) invalidations: usize,
    pub(super) answers: usize,
    pub(super) faults: Vec<String>,
    /// The changes whose report was acknowledged, each with the time of the acknowledgement.
    acknowledged: Vec<(Instant, u64)>,
    /// The highest change that a table was seen to have, by month.
    months: BTreeMap<String, u64>,
}

pub(super) struct Clients<'a> {
    rows: &'a Rows<'a>,
    project: &'a Path,
    key: &'a str,
    version: AtomicU64,
    observed: Mutex<Observations>,
}

/// The lowest and the highest change in some rows, by month.
type Spans = BTreeMap<String, (u64, u64)>;

impl<'a> Clients<'a> {
    pub(super) fn new(rows: &'a Rows<'a>, project: &'a Path, key: &'a str) -> Self {
        Clients { rows, project, key, version: AtomicU64::new(1), observed: Mutex::default() }
    }

    pub(super) fn observations(&self) -> Observations {
        self.observed().clone()
    }

    fn observed(&self) -> MutexGuard<'_, Observations> {
        self.observed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs clients that send requests to all servers until `kill` has returned.
    pub(super) fn while_running(&self, round: u64, addresses: &[SocketAddr], kill: impl FnOnce()) {
        let is_over = AtomicBool::new(false);
        let repeat = |work: &dyn Fn()| {
            while !is_over.load(Ordering::Relaxed) {
                work();
                thread::sleep(PAUSE);
            }
        };
        let changed = addresses[usize::try_from(round).unwrap_or_default() % addresses.len()];
        thread::scope(|scope| {
            let repeat = &repeat;
            scope.spawn(move || repeat(&|| self.change(changed)));
            for address in addresses {
                scope.spawn(move || repeat(&|| self.request_build(*address)));
                scope.spawn(move || {
                    let mut known = BTreeMap::new();
                    // Each reader remembers the answers of its own server.
                    let known = Mutex::new(&mut known);
                    repeat(&|| {
                        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
                        self.read_tables(*address, &mut known);
                        self.read_rows(*address, self.agreed());
                    });
                });
            }
            kill();
            is_over.store(true, Ordering::Relaxed);
        });
    }

    /// Checks that a new server reads tables that are at least as new as the tables that other servers have read.
    pub(super) fn check_start(&self, address: SocketAddr) {
        let wanted = self.observed().months.clone();
        let started = Instant::now();
        loop {
            let found = self.tables(address).unwrap_or_default();
            let is_new = wanted.iter().all(|(month, version)| found.get(month).is_some_and(|(low, _)| low >= version));
            if is_new {
                return;
            }
            if started.elapsed() > AGREEMENT {
                return self.fault(format!("a started server reads {found:?}, and {wanted:?} was read before"));
            }
            thread::sleep(PAUSE);
        }
    }

    /// Changes all rows, reports the change, and reads the rows from the same server.
    fn change(&self, address: SocketAddr) {
        let version = self.version.fetch_add(1, Ordering::Relaxed) + 1;
        if let Err(error) = self.rows.change(self.project, version) {
            return self.fault(format!("the rows could not be changed: {error:#}"));
        }
        let reported = request_as(address, Some(self.key), "POST", "/api/v1/cache/invalidate", Some("{}"));
        let Ok(answer) = reported else { return };
        if answer.status != 200 {
            return self.unexpected("an invalidation", answer.status, &answer.body);
        }
        {
            let mut observed = self.observed();
            observed.invalidations += 1;
            observed.acknowledged.push((Instant::now(), version));
        }
        self.read_rows(address, version);
    }

    /// Returns the newest change that all servers must know now.
    fn agreed(&self) -> u64 {
        let observed = self.observed();
        let old = observed.acknowledged.iter().filter(|(at, _)| at.elapsed() > AGREEMENT);
        old.map(|(_, version)| *version).max().unwrap_or(1)
    }

    fn request_build(&self, address: SocketAddr) {
        let asked = request_as(address, Some(self.key), "POST", "/api/v1/preaggregations/refresh", Some("{}"));
        let Ok(answer) = asked else { return };
        if answer.status != 202 {
            return self.unexpected("a request of builds", answer.status, &answer.body);
        }
        let Ok(body) = answer.json() else { return };
        let ids = body["builds"].as_array().into_iter().flatten().filter_map(|build| build["id"].as_str());
        let mut observed = self.observed();
        observed.requested += 1;
        observed.builds.extend(ids.map(str::to_owned));
        drop(observed);
        thread::sleep(PAUSE * 10);
    }

    /// Reads tables, and checks that the rows of each table are from one moment. This moment must not be before the
    /// last moment at which rows of the same month were read.
    fn read_tables(&self, address: SocketAddr, known: &mut BTreeMap<String, u64>) {
        let Some(found) = self.tables(address) else { return };
        for (month, (low, high)) in found {
            if low != high {
                self.fault(format!("the table of {month} has rows of the changes {low} to {high}"));
            }
            let before = known.insert(month.clone(), low).unwrap_or_default();
            if low < before {
                self.fault(format!("the table of {month} has change {low} after {before}"));
            }
            let mut observed = self.observed();
            let newest = observed.months.entry(month).or_default();
            *newest = low.max(*newest);
        }
    }

    /// Reads rows, possibly from the result cache, and records a fault if a row is older than the change.
    fn read_rows(&self, address: SocketAddr, change: u64) {
        let query = json!({"measures": ["events.lowest", "events.highest"], "pre_aggregations": "off"});
        let Some(row) = self.ask(address, &query).and_then(|rows| rows.into_iter().next()) else { return };
        let (low, high) = span(&row);
        if low < change {
            self.fault(format!("rows of change {low} to {high} were returned after {change} was acknowledged"));
        }
    }

    fn tables(&self, address: SocketAddr) -> Option<Spans> {
        let query = json!({
            "measures": ["events.count", "events.lowest", "events.highest"],
            "time_dimensions": [{"dimension": "events.day", "granularity": "month"}],
            "pre_aggregations": "auto",
        });
        let rows = self.ask(address, &query)?;
        let count: u64 = rows.iter().filter_map(|row| row["events.count"].as_u64()).sum();
        if count != COUNT {
            self.fault(format!("{count} of {COUNT} rows were counted"));
        }
        let month = |row: &Value| row["events.day.month"].as_str().unwrap_or_default().to_owned();
        Some(rows.iter().map(|row| (month(row), span(row))).collect())
    }

    /// Returns the rows of an answer; `None` if the server was killed before it answered.
    fn ask(&self, address: SocketAddr, query: &Value) -> Option<Vec<Value>> {
        let answer = request(address, "POST", "/api/v1/query", Some(&query.to_string())).ok()?;
        if answer.status != 200 {
            self.unexpected("a query", answer.status, &answer.body);
            return None;
        }
        self.observed().answers += 1;
        Some(answer.json().ok()?["data"].as_array()?.clone())
    }

    fn unexpected(&self, request: &str, status: u16, body: &str) {
        // Status 0 means that the server was killed, because it closes the connection before it has written a status.
        if status != 0 {
            self.fault(format!("{request} was answered with {status}: {body}"));
        }
    }

    fn fault(&self, fault: String) {
        self.observed().faults.push(fault);
    }
}

fn span(row: &Value) -> (u64, u64) {
    let number = |name: &str| row[name].as_u64().unwrap_or_default();
    (number("events.lowest"), number("events.highest"))
}
