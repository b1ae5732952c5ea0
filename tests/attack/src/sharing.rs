//! Callers of several tenants and policies, on servers that share a result cache.
//!
//! In: a seed, a number of queries, the address of a Redis server. Out: counts, and every answer that differs from the
//! answer of a server without a cache to the same caller. The servers have one project, one state database and one
//! DuckDB file. Every caller sends every query to both servers that share the cache, so that most answers come from
//! entries that other callers caused.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value as Json, json};
use terrane_app::ports::warehouse::{Statement, Warehouse as _};
use terrane_oracle_tests::generate::{Features, Generator, query};
use terrane_oracle_tests::oracle::Paths;
use terrane_oracle_tests::random::Random;
use terrane_warehouse::{DuckDb, DuckDbSettings, FileAccess};

use crate::caller::Caller;
use crate::compare::VOLATILE_FIELDS;
use crate::http::{Answer, Request};
use crate::scenario::{Constructs, Sabotage, Scenario};
use crate::server::{Files, Server, Stage};
use crate::surface::SURFACES;

const QUERIES_PER_SCENARIO: usize = 25;
const CALLERS: [Caller; 4] = [Caller::Reader, Caller::Acme, Caller::Globex, Caller::Visitor];
const DATABASE: &str = "shared.duckdb";
/// The file of the database while it is written. The connection holds the file's lock until some time after it is
/// dropped, so the servers read a copy.
const WRITTEN_DATABASE: &str = "written.duckdb";
const SETTINGS: &str = "service_project.yml";
/// Fields that report whether an answer is cached.
const CACHE_FIELDS: &[&str] = &["cached", "stale"];

/// The counts of a run. A run without cache hits, or without callers whose answers differ, proves nothing.
#[derive(Debug, Default)]
pub struct Report {
    pub scenarios: usize,
    pub queries: usize,
    pub answers: usize,
    /// The number of answers from a cache.
    pub hits: usize,
    /// The number of answers from the cache to queries that their caller had not sent to this server before.
    pub shared_hits: usize,
    /// The number of queries to which callers receive different rows.
    pub distinguishing: usize,
    /// The faults: each request with the answer of a server that shares a cache, and the correct answer.
    pub faults: Vec<String>,
}

/// Runs until `queries` queries have been sent.
///
/// # Errors
/// The servers do not start or do not answer.
pub fn run(stage: &Stage, queries: usize, seed: u64, redis: &str) -> Result<Report> {
    let mut report = Report::default();
    while report.queries < queries && report.faults.len() < 5 {
        let seed = seed.wrapping_add(report.scenarios as u64);
        let constructs = Constructs { registrations: false, ..Constructs::default() };
        let scenario = Scenario::new(seed, constructs, Sabotage::None);
        let count = QUERIES_PER_SCENARIO.min(queries - report.queries);
        compare(stage, (seed, &scenario), count, redis, &mut report)?;
        report.scenarios += 1;
    }
    Ok(report)
}

fn compare(
    stage: &Stage,
    (seed, scenario): (u64, &Scenario),
    count: usize,
    redis: &str,
    report: &mut Report,
) -> Result<()> {
    let sharing = [("SERVICE_CACHE__URL", redis)];
    let uncached = [("SERVICE_CACHE__ENABLED", "false")];
    let prepare = |project: &Path| with_database(scenario, project);
    let mut servers = stage.serve_replicas(prepare, &[&sharing, &sharing, &uncached])?;
    let reference = servers.pop().context("no server")?;
    let mut group = Group { sharing: servers, reference };
    let (seen, whole) = (Paths::new(&scenario.seen), Paths::new(&scenario.whole));
    for index in 0..count {
        let mut random = Random::new(seed.wrapping_mul(0x9E37_79B9).wrapping_add(index as u64));
        let mut generator = Generator { random: Random::new(random.draw()), features: Features::default() };
        let body = match random.chance(70) {
            true => query(&mut generator, &scenario.seen, &seen),
            false => query(&mut generator, &scenario.whole, &whole),
        };
        let request = random.of(SURFACES).query(&mut random, &body);
        group.ask_all(&request, &mut random, report).with_context(|| format!("seed {seed}, query {index}"))?;
        report.queries += 1;
    }
    Ok(())
}

/// Servers that share one cache, and one server without a cache.
struct Group {
    sharing: Vec<Server>,
    reference: Server,
}

impl Group {
    fn ask_all(&mut self, request: &Request, random: &mut Random, report: &mut Report) -> Result<()> {
        let mut expected = Vec::new();
        for caller in CALLERS {
            let request = Request { caller, ..request.clone() };
            let answer = ask(&mut self.reference, &request)?;
            expected.push((request, answer));
        }
        let different: BTreeSet<&[u8]> = expected.iter().map(|(_, answer)| answer.compared.as_slice()).collect();
        report.distinguishing += usize::from(different.len() > 1);
        // Each caller sends the query twice to each server, in an order that differs from query to query.
        let mut turns: Vec<(usize, usize)> = Vec::new();
        for turn in 0..2 * self.sharing.len() * expected.len() {
            let turn = (turn % expected.len(), turn / expected.len() % self.sharing.len());
            turns.insert(random.below(turns.len() + 1), turn);
        }
        let mut asked = BTreeSet::new();
        for (caller, server) in turns {
            let (request, right) = &expected[caller];
            let answer = ask(&mut self.sharing[server], request)?;
            report.answers += 1;
            report.hits += usize::from(answer.is_cached);
            report.shared_hits += usize::from(asked.insert((caller, server)) && answer.is_cached);
            if (answer.status, &answer.compared) != (right.status, &right.compared) {
                let texts = [&answer, right].map(|answer| String::from_utf8_lossy(&answer.compared).into_owned());
                report
                    .faults
                    .push(format!("{request:?}\n{} {}\n{} {}", answer.status, texts[0], right.status, texts[1]));
            }
        }
        Ok(())
    }
}

/// The parts of an answer that a cache must not change.
struct Compared {
    status: u16,
    compared: Vec<u8>,
    is_cached: bool,
}

fn ask(server: &mut Server, request: &Request) -> Result<Compared> {
    server.client.send(request)?;
    let Answer { status, headers, body } = server.client.receive()?;
    let is_json = headers.iter().any(|(name, value)| name == "content-type" && value.starts_with("application/json"));
    let Some(mut json) = serde_json::from_slice::<Json>(&body).ok().filter(|_| is_json) else {
        return Ok(Compared { status, compared: body, is_cached: false });
    };
    let is_cached = json["meta"]["cached"] == true;
    remove_volatile(&mut json);
    Ok(Compared { status, compared: json.to_string().into_bytes(), is_cached })
}

fn remove_volatile(json: &mut Json) {
    match json {
        Json::Object(fields) => {
            fields.retain(|name, _| !VOLATILE_FIELDS.contains(&&**name) && !CACHE_FIELDS.contains(&&**name));
            fields.values_mut().for_each(remove_volatile);
        }
        Json::Array(items) => items.iter_mut().for_each(remove_volatile),
        _ => {}
    }
}

/// Creates the tables in a database file and returns the project's files. With an in-memory database, each server would
/// have a warehouse of its own.
fn with_database(scenario: &Scenario, project: &Path) -> Result<Files> {
    let mut files = scenario.files.clone();
    files.extend(scenario.left.clone());
    let settings: Json = serde_json::from_str(files.get(SETTINGS).context("no settings")?)?;
    let statements = settings["warehouse"]["init"].as_array().into_iter().flatten().filter_map(Json::as_str);
    let database = DuckDb::open(&DuckDbSettings {
        path: Some(project.join(WRITTEN_DATABASE)),
        project: project.canonicalize()?,
        init: Vec::new(),
        connections: 1,
        memory_limit: None,
        threads: Some(1),
        file_access: FileAccess::Project,
        is_written: true,
        rollups: None,
    })?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    for statement in statements.chain(["CHECKPOINT"]) {
        let ran = database.execute(Statement::plain(statement), Duration::from_secs(60));
        runtime.block_on(ran).with_context(|| statement.to_owned())?;
    }
    std::fs::copy(project.join(WRITTEN_DATABASE), project.join(DATABASE))?;
    let settings = json!({"name": "attack", "warehouse": {"type": "duckdb", "path": DATABASE}});
    files.insert(SETTINGS.to_owned(), settings.to_string());
    Ok(files)
}
