//! Measures the result cache over HTTP with `wrk`: answers from memory and from Redis, the cost of a miss, and equal
//! queries at once.
//!
//! In: the program, the number of connections and the duration of each measurement. Out: figures. It is an error if an
//! answer has another status than 200, or if answers of a measurement do not come from the expected source. `wrk` runs
//! on the same cores as the server. Not here: budgets, which a busy machine would exceed.

#![allow(clippy::disallowed_methods, reason = "what is measured here is time itself")]

mod wrk;

use std::net::SocketAddr;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::engines::Redis;
use crate::{Program, Scratch, Unheard, request};
use wrk::Script;
pub use wrk::{Wrk, missing};

const QUERY: &str = "/api/v1/query";
/// The number of groups, which is the number of rows of a cached answer.
const GROUPS: u64 = 25;
/// The number of equal queries at once.
const EQUAL: usize = 100;
/// The number of pairs of measurements with and without the cache.
const PAIRS: usize = 5;

const PROJECT: &str = "\
name: cached
security: {anonymous: {scopes: [read]}}
log: {requests: false, queries: false}
server: {max_queued_queries: 1000}
warehouse:
  type: duckdb
  init:
    - CREATE TABLE t AS SELECT i AS id, 'region ' || (i % 25) AS region, i % 1000 AS amount FROM range(100000) AS r(i)
    - CREATE TABLE few AS SELECT i AS id, 'region ' || i AS region, i AS amount FROM range(25) AS r(i)
    - CREATE TABLE many AS SELECT i AS id, i % 7 AS part FROM range(5000000) AS r(i)
";
const CUBES: &str = "\
cubes:
  - name: t
    sql_table: t
    measures:
      - {name: count, type: count}
      - {name: amount, type: sum, sql: amount}
      - {name: mean, type: avg, sql: amount}
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: region, type: string, sql: region}
  - name: few
    sql_table: few
    measures:
      - {name: count, type: count}
      - {name: amount, type: sum, sql: amount}
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: region, type: string, sql: region}
  - name: many
    sql_table: many
    measures:
      - {name: ids, type: count_distinct, sql: id}
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: part, type: number, sql: part}
";

/// The figures of a run.
#[derive(Debug)]
pub struct CacheFigures {
    /// Answers from the memory of the server.
    pub memory: Wrk,
    /// Answers from Redis, with a server that stores nothing in its memory; `None` without Redis on this machine.
    pub redis: Option<Wrk>,
    /// The processor time of a computed query without the cache, and of a miss, in seconds: the medians.
    pub computed: f64,
    pub missed: f64,
    /// The median of the differences between a miss and a computed query of the same pair, in seconds.
    pub miss_cost: f64,
    /// The processor time of the server for one slow query, and for many equal ones at once.
    pub slow: Duration,
    pub equal: Duration,
}

/// The settings of a run.
#[derive(Debug, Clone, Copy)]
pub struct CacheLoad<'a> {
    pub binary: &'a str,
    pub connections: u64,
    /// The duration of each measurement.
    pub seconds: u64,
}

impl CacheLoad<'_> {
    /// Runs all measurements.
    ///
    /// # Errors
    /// A server does not start, or an answer is wrong.
    pub fn run(&self) -> Result<CacheFigures> {
        let project = Scratch::empty().with("service_project.yml", PROJECT).with("cubes/t.yml", CUBES);
        let redis = Redis::missing().is_none().then(Redis::start).transpose()?;
        let memory = self.hits(&self.serve(&project, &[])?)?;
        let redis = redis.map(|redis| {
            let url = redis.url();
            let server =
                self.serve(&project, &[("SERVICE_CACHE__MAX_SIZE", "0"), ("SERVICE_CACHE__URL", url.as_str())])?;
            self.hits(&server)
        });
        let redis = redis.transpose()?;
        let mut pairs = self.pairs(&project)?;
        let (slow, equal) = equal_queries(&self.serve(&project, &[])?)?;
        let median = |values: &mut Vec<f64>| {
            values.sort_unstable_by(f64::total_cmp);
            values[values.len() / 2]
        };
        let mut differences: Vec<f64> = pairs.iter().map(|[computed, missed]| missed - computed).collect();
        let miss_cost = median(&mut differences);
        let [computed, missed] = [0, 1].map(|way| median(&mut pairs.iter_mut().map(|pair| pair[way]).collect()));
        Ok(CacheFigures { memory, redis, computed, missed, miss_cost, slow, equal })
    }

    fn serve(&self, project: &Scratch, variables: &[(&str, &str)]) -> Result<Unheard> {
        let program = Program::new(self.binary, &["serve"], project.path()).variable("SERVICE_CACHE__ENABLED", "true");
        let program = variables.iter().fold(program, |program, (name, value)| program.variable(name, value));
        program.serve_unheard(Stdio::null(), Stdio::inherit())
    }

    /// Measures the answers to one query that the cache has.
    fn hits(&self, server: &Unheard) -> Result<Wrk> {
        let query = by_region();
        ask(server.address, &query)?;
        let cached = ask(server.address, &query)?;
        ensure!(cached["meta"]["cached"] == true, "the second answer is not from the cache: {}", cached["meta"]);
        ensure!(cached["data"].as_array().map(Vec::len) == Some(GROUPS as usize), "{cached}");
        let measured = self.measure(server, Script::Same(&query.to_string()))?;
        let cached = ask(server.address, &query)?;
        ensure!(cached["meta"]["cached"] == true, "the last answer is not from the cache: {}", cached["meta"]);
        Ok(measured)
    }

    fn measure(&self, server: &Unheard, script: Script<'_>) -> Result<Wrk> {
        let url = format!("http://{}{QUERY}", server.address);
        wrk::run(&url, script, self.connections, Duration::from_secs(self.seconds))
    }

    /// Returns the processor time of a computed query without the cache and of a miss, for several pairs.
    fn pairs(&self, project: &Scratch) -> Result<Vec<[f64; 2]>> {
        let without = self.serve(project, &[("SERVICE_CACHE__ENABLED", "false")])?;
        let with = self.serve(project, &[])?;
        let mut first = 0;
        (0..PAIRS)
            .map(|_| {
                // Each measurement has its own queries, so that none of them is in the cache.
                let mut spent = |server: &Unheard| {
                    first += 10_000_000;
                    let before = processor_time(server)?;
                    let answers = self.measure(server, Script::Changing { first })?.requests;
                    let spent = processor_time(server)?.saturating_sub(before);
                    Ok::<f64, anyhow::Error>(spent.as_secs_f64() / answers as f64)
                };
                Ok([spent(&without)?, spent(&with)?])
            })
            .collect()
    }
}

fn by_region() -> Value {
    json!({"measures": ["t.count", "t.amount", "t.mean"], "dimensions": ["t.region"]})
}

fn ask(address: SocketAddr, query: &Value) -> Result<Value> {
    let answer = request(address, "POST", QUERY, Some(&query.to_string()))?;
    ensure!(answer.status == 200, "{}: {}", answer.status, answer.body);
    answer.json()
}

/// Sends one slow query, and then many equal ones at once. Returns the processor time of the server for each of both.
fn equal_queries(server: &Unheard) -> Result<(Duration, Duration)> {
    let slow = |part: u64| {
        let filter = json!({"dimension": "many.part", "operator": "notEquals", "value": part});
        json!({"measures": ["many.ids"], "filters": [filter]})
    };
    let started = processor_time(server)?;
    ask(server.address, &slow(0))?;
    let before = processor_time(server)?;
    let begun = Instant::now();
    thread::scope(|scope| {
        let asking: Vec<_> = (0..EQUAL).map(|_| scope.spawn(|| ask(server.address, &slow(1)))).collect();
        asking.into_iter().try_for_each(|asking| asking.join().expect("no panic").map(drop))
    })?;
    ensure!(begun.elapsed() < Duration::from_secs(600), "the equal queries took too long");
    Ok((before.saturating_sub(started), processor_time(server)?.saturating_sub(before)))
}

/// Returns the processor time that the server has used.
fn processor_time(server: &Unheard) -> Result<Duration> {
    const TICKS_PER_SECOND: u64 = 100;
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", server.child.id()))?;
    // The name of the process is in parentheses and may contain spaces.
    let (_, fields) = stat.rsplit_once(')').context("no name of a process")?;
    let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<u64>).sum::<Result<u64, _>>()?;
    Ok(Duration::from_millis(ticks * 1_000 / TICKS_PER_SECOND))
}
