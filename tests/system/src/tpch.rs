//! Questions over the tables of TPC-H: the SQL of Terrane and the whole service against SQL written by hand.
//!
//! In: the program, a scale factor, a number of rounds. Out: medians for each question. A question whose rows differ
//! from those of the SQL by hand is an error. Each round runs the three one after the other, so that whatever else the
//! machine does disturbs all alike; ratios are medians of the rounds' ratios. Absent: budgets, which a busy machine
//! would break.

#![allow(clippy::disallowed_methods, reason = "what is measured here is time itself")]

mod connection;
mod database;

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::{Program, Scratch, path};
use connection::KeptConnection;
use database::Database;

const FOLDER: &str = "tests/load/tpch";
/// The file that `service_project.yml` names.
const FILE: &str = "tpch.duckdb";
/// Rounds whose times do not count.
const WARM_UP: u64 = 3;

/// The times of one question.
#[derive(Debug)]
pub struct Timing {
    pub name: String,
    /// SQL written by hand, in DuckDB of this process.
    pub by_hand: Duration,
    /// The SQL of Terrane, in the same DuckDB.
    pub sql: Duration,
    /// The SQL of Terrane, in units of the SQL by hand.
    pub ratio: f64,
    /// The request over HTTP, from the first byte sent to the last byte read.
    pub http: Duration,
    /// The request without the SQL of Terrane, in seconds; noise can make it negative.
    pub service: f64,
}

/// Makes the data, serves it, and measures all questions.
///
/// # Errors
/// The server does not start, a query fails, or the rows of a question differ.
pub fn run(binary: &str, scale: f64, rounds: u64) -> Result<Vec<Timing>> {
    ensure!(rounds > 0 && scale > 0.0, "nothing to measure");
    let read = |name: &str| fs::read_to_string(path(FOLDER).join(name)).with_context(|| name.to_owned());
    let project = Scratch::empty()
        .with("service_project.yml", &read("service_project.yml")?)
        .with("cubes/star.yml", &read("cubes/star.yml")?);
    let file = project.path().join(FILE);
    Database::make(&file, scale, &read("data.sql")?)?;
    let server = Program::new(binary, &["serve"], project.path());
    let server = server.serve_unheard(Stdio::null(), Stdio::inherit())?;
    let mut service = KeptConnection::open(server.address)?;
    let database = Database::open(&file)?;
    let questions: Vec<Value> = serde_json::from_str(&read("questions.json")?)?;
    questions.iter().map(|question| measure(question, rounds, &database, &mut service)).collect()
}

fn measure(question: &Value, rounds: u64, database: &Database, service: &mut KeptConnection) -> Result<Timing> {
    let text = |key: &str| question[key].as_str().map(str::to_owned).with_context(|| format!("no `{key}`"));
    let (name, by_hand, query) = (text("name")?, text("by_hand")?, question["query"].to_string());
    let mut inline = question["query"].clone();
    inline["inline"] = true.into();
    let sql = service.post("/api/v1/query/sql", &inline.to_string())?;
    let sql: Value = serde_json::from_str(&sql)?;
    let sql = sql["sql"].as_str().context("no `sql`")?;
    ensure!(database.has_same_rows(sql, &by_hand)?, "{name}: the rows differ\n{sql}");
    let mut times: [Vec<Duration>; 3] = Default::default();
    for round in 0..WARM_UP + rounds {
        let measured = [
            time(|| database.run(&by_hand))?,
            time(|| database.run(sql))?,
            time(|| service.post("/api/v1/query", &query).map(drop))?,
        ];
        if round >= WARM_UP {
            times.iter_mut().zip(measured).for_each(|(all, one)| all.push(one));
        }
    }
    let [by_hand, sql, http] = times;
    let ratios = sql.iter().zip(&by_hand).map(|(sql, by_hand)| sql.as_secs_f64() / by_hand.as_secs_f64());
    let service = http.iter().zip(&sql).map(|(http, sql)| http.as_secs_f64() - sql.as_secs_f64());
    let (ratio, service) = (median(ratios.collect()), median(service.collect()));
    let [by_hand, sql, http] = [by_hand, sql, http]
        .map(|all| Duration::from_secs_f64(median(all.iter().map(Duration::as_secs_f64).collect())));
    Ok(Timing { name, by_hand, sql, ratio, http, service })
}

fn time(work: impl FnOnce() -> Result<()>) -> Result<Duration> {
    let started = Instant::now();
    work()?;
    Ok(started.elapsed())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
