//! Compares Terrane's SQL and the whole service with hand-written SQL, for questions over the tables of TPC-H.
//!
//! In: the program, a scale factor, a number of rounds. Out: medians for each question. It is an error if the rows of a
//! question differ from those of the hand-written SQL. Each round runs the three ways one after the other, so that
//! other load on the machine affects all of them. Ratios are medians of the rounds' ratios. Processor times depend less
//! on the load of the machine. Not here: budgets, which a busy machine would exceed.

#![allow(clippy::disallowed_methods, reason = "what is measured here is time itself")]

mod connection;
mod database;
mod dax;
mod predictions;
mod rollup;

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::{Program, Scratch, path};
use connection::PersistentConnection;
use database::Database;
pub use dax::DaxTiming;
pub use predictions::{Accuracy, PredictionReport};
pub use rollup::RollupTiming;

const FOLDER: &str = "tests/load/tpch";
/// The name of the database file in `service_project.yml`.
const FILE: &str = "tpch.duckdb";
/// The number of unmeasured rounds before the measured ones.
const WARM_UP: u64 = 3;

/// The times of one question.
#[derive(Debug)]
pub struct Timing {
    pub name: String,
    /// The time of the hand-written SQL, in this process's DuckDB.
    pub by_hand: Duration,
    /// The time of Terrane's SQL, in the same DuckDB.
    pub sql: Duration,
    /// The time of Terrane's SQL divided by the time of the hand-written SQL.
    pub ratio: f64,
    /// The time of the request over HTTP, from the first byte sent to the last byte read.
    pub http: Duration,
    /// The time of the request minus the time of Terrane's SQL, in seconds. Noise can make it negative.
    pub service: f64,
    /// The processor time of Terrane's SQL divided by that of the hand-written SQL.
    pub processor_ratio: f64,
    /// The processor time of the server for a request minus that of Terrane's SQL, in seconds.
    pub service_processor: f64,
}

/// Creates the data, serves it, and measures all questions.
///
/// # Errors
/// The server does not start, a query fails, or the rows of a question differ.
pub fn run(binary: &str, scale: f64, rounds: u64) -> Result<Vec<Timing>> {
    let (project, file) = project(scale, rounds)?;
    let server = Program::new(binary, &["serve"], project.path());
    let server = server.serve_unheard(Stdio::null(), Stdio::inherit())?;
    let mut world = World {
        service: PersistentConnection::open(server.address)?,
        server: server.child.id(),
        database: Database::open(&file)?,
        rounds,
    };
    let questions: Vec<Value> = serde_json::from_str(&read("questions.json")?)?;
    questions.iter().map(|question| world.measure(question)).collect()
}

/// Creates the data, builds the pre-aggregation of the project, and measures it.
///
/// # Errors
/// The server does not start, the build fails, or the rows differ.
pub fn run_rollup(binary: &str, scale: f64, rounds: u64) -> Result<RollupTiming> {
    let (project, file) = project(scale, rounds)?;
    rollup::run(binary, &project, &file, rounds)
}

/// Creates the data, serves it, and measures general DAX queries.
///
/// # Errors
/// The server does not start, a query fails, or the rows of a query differ.
pub fn run_dax(binary: &str, scale: f64, rounds: u64) -> Result<Vec<DaxTiming>> {
    dax::run(binary, scale, rounds)
}

/// Writes the tables as Parquet files, and compares the predicted with the actual bytes and seconds of queries.
///
/// # Errors
/// The server does not start, or a query fails.
pub fn run_predictions(binary: &str, scale: f64, queries: usize) -> Result<PredictionReport> {
    predictions::run(binary, scale, queries)
}

/// Creates the project and its data. Returns the project and the path of the database file.
fn project(scale: f64, rounds: u64) -> Result<(Scratch, PathBuf)> {
    ensure!(rounds > 0 && scale > 0.0, "nothing to measure");
    let project = Scratch::empty()
        .with("service_project.yml", &read("service_project.yml")?)
        .with("cubes/star.yml", &read("cubes/star.yml")?);
    let file = project.path().join(FILE);
    Database::make(&file, scale, &read("data.sql")?)?;
    Ok((project, file))
}

fn read(name: &str) -> Result<String> {
    fs::read_to_string(path(FOLDER).join(name)).with_context(|| name.to_owned())
}

/// The server and the database that are measured.
struct World {
    service: PersistentConnection,
    /// The process id of the server.
    server: u32,
    database: Database,
    rounds: u64,
}

/// The number of ways to compute an answer: by hand, by Terrane's SQL, and over HTTP.
const WAYS: usize = 3;

impl World {
    fn measure(&mut self, question: &Value) -> Result<Timing> {
        let text = |key: &str| question[key].as_str().map(str::to_owned).with_context(|| format!("no `{key}`"));
        let (name, by_hand, query) = (text("name")?, text("by_hand")?, question["query"].to_string());
        let mut inline = question["query"].clone();
        inline["inline"] = true.into();
        let sql = self.service.post("/api/v1/query/sql", &inline.to_string())?;
        let sql: Value = serde_json::from_str(&sql)?;
        let sql = sql["sql"].as_str().context("no `sql`")?;
        ensure!(self.database.has_same_rows(sql, &by_hand)?, "{name}: the rows differ\n{sql}");
        let mut times: [Vec<f64>; WAYS] = Default::default();
        let mut processor = [Duration::ZERO; WAYS];
        for round in 0..WARM_UP + self.rounds {
            let database = &self.database;
            let own = std::process::id();
            let measured = [
                time(own, || database.run(&by_hand))?,
                time(own, || database.run(sql))?,
                time(self.server, || self.service.post("/api/v1/query", &query).map(drop))?,
            ];
            if round >= WARM_UP {
                for (way, (took, spent)) in measured.into_iter().enumerate() {
                    times[way].push(took.as_secs_f64());
                    processor[way] += spent;
                }
            }
        }
        let ratios = times[1].iter().zip(&times[0]).map(|(sql, by_hand)| sql / by_hand).collect();
        let service = times[2].iter().zip(&times[1]).map(|(http, sql)| http - sql).collect();
        let (ratio, service) = (median(ratios), median(service));
        let [by_hand, sql, http] = times.map(|all| Duration::from_secs_f64(median(all)));
        let [spent_by_hand, spent, spent_http] = processor.map(|spent| spent.as_secs_f64() / self.rounds as f64);
        Ok(Timing {
            name,
            by_hand,
            sql,
            ratio,
            http,
            service,
            processor_ratio: spent / spent_by_hand,
            service_processor: spent_http - spent,
        })
    }
}

/// Runs some work. Returns its duration, and the processor time that a process used while it ran.
fn time(process: u32, work: impl FnOnce() -> Result<()>) -> Result<(Duration, Duration)> {
    let before = processor_time(process)?;
    let started = Instant::now();
    work()?;
    let took = started.elapsed();
    Ok((took, processor_time(process)?.saturating_sub(before)))
}

/// Returns the processor time of all running threads of a process.
fn processor_time(process: u32) -> Result<Duration> {
    let mut spent = 0;
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        // A thread may have ended after the folder was listed.
        let Ok(text) = fs::read_to_string(thread?.path().join("schedstat")) else { continue };
        spent += text.split(' ').next().unwrap_or_default().parse::<u64>()?;
    }
    Ok(Duration::from_nanos(spent))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
