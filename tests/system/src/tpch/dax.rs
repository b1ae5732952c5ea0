//! Compares general DAX queries over HTTP with hand-written SQL: iterators, ratios of totals, first rows of groups, and
//! time functions.
//!
//! In: the program, a scale factor, a number of rounds. Out: medians for each query. It is an error if the rows of a
//! query differ from those of the hand-written SQL. Each round runs the two ways one after the other, and the way that
//! is first changes with each round. The foreign keys of the model never miss, as those of a star schema that a client
//! of DAX reads.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::connection::PersistentConnection;
use super::database::Database;
use super::{WARM_UP, median, project, read, time};
use crate::{Program, Scratch};

/// The relative difference of two equal doubles.
const EQUAL: f64 = 1e-9;

/// The times of one DAX query.
#[derive(Debug)]
pub struct DaxTiming {
    pub name: String,
    /// The time of the hand-written SQL, in this process's DuckDB.
    pub by_hand: Duration,
    /// The time of the request over HTTP, from the first byte sent to the last byte read.
    pub dax: Duration,
    /// The time of the request divided by the time of the hand-written SQL: the median of all rounds.
    pub ratio: f64,
    pub rows: usize,
    pub statements: usize,
}

/// Serves the project, and measures all queries.
pub(super) fn run(binary: &str, scale: f64, rounds: u64) -> Result<Vec<DaxTiming>> {
    let (project, file) = project(scale, rounds)?;
    let project = with_keys_that_never_miss(project)?;
    let server = Program::new(binary, &["serve"], project.path());
    let server = server.serve_unheard(Stdio::null(), Stdio::inherit())?;
    let mut service = PersistentConnection::open(server.address)?;
    let database = Database::open(&file)?;
    let queries: Vec<Value> = serde_json::from_str(&read("dax.json")?)?;
    let measured = queries.iter().map(|query| {
        let text = |key: &str| query[key].as_str().map(str::to_owned).with_context(|| format!("no `{key}`"));
        let (name, by_hand, dax) = (text("name")?, text("by_hand")?, text("dax")?);
        let statements = Program::new(binary, &["dax"], project.path()).arguments(&[&dax, "--sql"]).run()?;
        ensure!(statements.code == Some(0), "{name}: {}", statements.stderr);
        let statements = statements.stdout.matches(";\n\n").count() + 1;
        let timing = measure(&mut service, &database, &dax, &by_hand, rounds).with_context(|| name.clone())?;
        Ok(DaxTiming { name, statements, ..timing })
    });
    measured.collect()
}

fn with_keys_that_never_miss(project: Scratch) -> Result<Scratch> {
    let cubes = read("cubes/star.yml")?;
    let (before, after) = ("relationship: many_to_one, ", "relationship: many_to_one, always: true, ");
    ensure!(cubes.contains(before), "no join of the cubes leads to one row");
    Ok(project.with("cubes/star.yml", &cubes.replace(before, after)))
}

fn measure(
    service: &mut PersistentConnection,
    database: &Database,
    dax: &str,
    by_hand: &str,
    rounds: u64,
) -> Result<DaxTiming> {
    let request = json!({"query": dax}).to_string();
    let mut execute = || service.post("/api/v1/dax/execute", &request);
    let answer: Value = serde_json::from_str(&execute()?)?;
    let rows = rows_of(&answer)?;
    check(&rows, &database.rows(by_hand)?)?;
    let mut times: [Vec<f64>; 2] = Default::default();
    for round in 0..WARM_UP + rounds {
        let own = std::process::id();
        let mut both = [Duration::ZERO; 2];
        for way in [round % 2, (round + 1) % 2] {
            both[way as usize] = match way {
                0 => time(own, || database.run(by_hand))?.0,
                _ => time(own, || execute().map(drop))?.0,
            };
        }
        if round >= WARM_UP {
            times.iter_mut().zip(both).for_each(|(all, took)| all.push(took.as_secs_f64()));
        }
    }
    let ratios = times[1].iter().zip(&times[0]).map(|(dax, by_hand)| dax / by_hand).collect();
    let ratio = median(ratios);
    let [by_hand, dax] = times.map(|all| Duration::from_secs_f64(median(all)));
    Ok(DaxTiming { name: String::new(), by_hand, dax, ratio, rows: rows.len(), statements: 0 })
}

/// Returns the rows of an answer as text, in the order of the columns.
fn rows_of(answer: &Value) -> Result<Vec<Vec<String>>> {
    ensure!(answer["from_cache"] != true, "the answer is from the cache");
    let columns = answer["columns"].as_array().context("no `columns`")?;
    let names: Vec<&str> = columns.iter().filter_map(|column| column["name"].as_str()).collect();
    let rows = answer["data"].as_array().context("no `data`")?;
    let cell = |value: &Value| match value {
        Value::String(text) => text.trim_end_matches("T00:00:00").to_owned(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    Ok(rows.iter().map(|row| names.iter().map(|name| cell(&row[*name])).collect()).collect())
}

/// Compares two sets of rows. Numbers are equal within [`EQUAL`].
fn check(found: &[Vec<String>], expected: &[Vec<String>]) -> Result<()> {
    ensure!(found.len() == expected.len(), "{} rows instead of {}", found.len(), expected.len());
    let sorted = |rows: &[Vec<String>]| {
        let mut rows = rows.to_vec();
        rows.sort();
        rows
    };
    for (found, expected) in sorted(found).iter().zip(&sorted(expected)) {
        let is_equal = |(one, two): (&String, &String)| match (one.parse::<f64>(), two.parse::<f64>()) {
            (Ok(one), Ok(two)) => (one - two).abs() <= EQUAL * one.abs().max(two.abs()),
            _ => one == two,
        };
        let are_equal = found.len() == expected.len() && found.iter().zip(expected).all(is_equal);
        ensure!(are_equal, "the rows differ: {found:?} instead of {expected:?}");
    }
    Ok(())
}
