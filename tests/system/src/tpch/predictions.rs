//! Measures predicted bytes and seconds against those of the queries.
//!
//! In: the tables of TPC-H as Parquet files, and a number of queries. Out: percentiles of the q-error, which is the
//! larger of predicted/actual and actual/predicted, and the share of queries within their predicted ninetieth
//! percentile. Each query is predicted over HTTP before it runs, by a server whose history has only the queries before
//! it. Actual bytes are those that the server's process read while the query ran; DuckDB's cache of files is off.
//! Actual seconds are those of the server's own history. Queries are drawn from a fixed seed. Not here: other engines.

use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::connection::PersistentConnection;
use super::database::Database;
use super::{FILE, read};
use crate::soak::random::Random;
use crate::{Program, Scratch};

const TABLES: &[&str] = &["region", "nation", "supplier", "part", "customer", "orders", "lineitem"];
const SEED: u64 = 26;
/// The time in which the server writes its history after the last query.
const WRITTEN: Duration = Duration::from_secs(4);
/// The fewest bytes that are distinguished, and the shortest time in seconds.
const LEAST: [f64; 2] = [1_000.0, 0.000_1];

/// A root of queries: its measures, the dimensions that they can be grouped by, and its time.
struct Root {
    measures: &'static [&'static str],
    dimensions: &'static [&'static str],
    time: Option<&'static str>,
}

const ROOTS: &[Root] = &[
    Root {
        measures: &["lineitem.count", "lineitem.quantity", "lineitem.revenue", "lineitem.average_discount"],
        dimensions: &[
            "lineitem.returnflag",
            "lineitem.linestatus",
            "lineitem.shipmode",
            "orders.priority",
            "customer.segment",
            "nation.name",
            "region.name",
            "part.brand",
        ],
        time: Some("lineitem.shipdate"),
    },
    Root {
        measures: &["orders.count", "orders.totalprice", "orders.buyers"],
        dimensions: &["orders.status", "orders.priority", "customer.segment", "nation.name"],
        time: Some("orders.orderdate"),
    },
    Root {
        measures: &["customer.count", "customer.balance"],
        dimensions: &["customer.segment", "nation.name", "region.name"],
        time: None,
    },
];

/// The errors of the predictions of one quantity.
#[derive(Debug)]
pub struct Accuracy {
    /// The number of queries that had a prediction.
    pub predicted: usize,
    /// The q-error of half, nine of ten and 99 of 100 queries.
    pub errors: [f64; 3],
    /// The share of queries within the predicted ninetieth percentile; `None` if no prediction had one.
    pub covered: Option<f64>,
}

/// The accuracy of the predictions.
#[derive(Debug)]
pub struct PredictionReport {
    pub queries: usize,
    pub bytes: Accuracy,
    pub seconds: Accuracy,
}

/// One query: predicted and actual numbers.
#[derive(Default)]
struct Measured {
    predicted: [Option<f64>; 2],
    high: [Option<f64>; 2],
    actual: [f64; 2],
}

/// Writes the tables as files, serves them, and predicts and runs the queries.
pub(super) fn run(binary: &str, scale: f64, queries: usize) -> Result<PredictionReport> {
    ensure!(queries > 0 && scale > 0.0, "nothing to measure");
    let project = project(scale)?;
    let server = Program::new(binary, &["serve"], project.path());
    let server = server.serve_unheard(Stdio::null(), Stdio::inherit())?;
    let mut service = PersistentConnection::open(server.address)?;
    let (mut random, mut all) = (Random::new(SEED), Vec::new());
    for _ in 0..queries {
        let query = query(&mut random);
        all.push(measure(&mut service, server.child.id(), &query).with_context(|| query.to_string())?);
    }
    thread::sleep(WRITTEN);
    let history = Program::new(binary, &["cost", "history"], project.path());
    let history = history.arguments(&["--limit", "1000", "--json"]).run()?;
    let history: Value = serde_json::from_str(&history.stdout).context(history.stderr)?;
    let seconds = history["queries"].as_array().context("no history")?.iter().rev();
    let seconds: Vec<f64> = seconds.filter_map(|query| query["warehouse_seconds"].as_f64()).collect();
    ensure!(seconds.len() == all.len(), "the history has {} of {} queries", seconds.len(), all.len());
    all.iter_mut().zip(seconds).for_each(|(measured, seconds)| measured.actual[1] = seconds);
    Ok(PredictionReport { queries, bytes: accuracy(&all, 0)?, seconds: accuracy(&all, 1)? })
}

fn project(scale: f64) -> Result<Scratch> {
    let mut init = String::new();
    for table in TABLES {
        init += &format!("    - CREATE VIEW raw.{table} AS SELECT * FROM read_parquet('data/{table}.parquet')\n");
    }
    let settings = format!(
        "name: tpch\nwarehouse:\n  type: duckdb\n  threads: 2\n  init:\n    - SET enable_external_file_cache = false\n    \
         - CREATE SCHEMA raw\n{init}security: {{anonymous: {{scopes: [read]}}}}\nlog: {{requests: false, queries: false}}\n"
    );
    let project =
        Scratch::empty().with("service_project.yml", &settings).with("cubes/star.yml", &read("cubes/star.yml")?);
    let (data, file) = (project.path().join("data"), project.path().join(FILE));
    fs::create_dir_all(&data)?;
    Database::make(&file, scale, &read("data.sql")?)?;
    let database = Database::open(&file)?;
    TABLES.iter().try_for_each(|table| database.execute(&copy(table, &data)))?;
    drop(database);
    fs::remove_file(&file)?;
    Ok(project)
}

fn copy(table: &str, data: &Path) -> String {
    let path = data.join(format!("{table}.parquet")).display().to_string().replace('\'', "''");
    format!("COPY raw.{table} TO '{path}' (FORMAT parquet)")
}

/// Draws a query: one or two measures of a root, up to two dimensions, and for half of the queries a range of time.
fn query(random: &mut Random) -> Value {
    let root = &ROOTS[[0, 0, 0, 1, 1, 2][random.below(6)]];
    let (measures, dimensions) = (pick(random, root.measures, 1), pick(random, root.dimensions, 0));
    let mut query = json!({"measures": measures, "dimensions": dimensions});
    if let Some(time) = root.time.filter(|_| random.below(2) == 0) {
        let (first, length) = (1993 + random.below(4), 1 + random.below(3));
        let range = [format!("{first}-01-01"), format!("{}-12-31", first + length - 1)];
        query["time_dimensions"] = json!([{"dimension": time, "date_range": range}]);
    }
    query
}

/// Draws from `least` to two different names.
fn pick(random: &mut Random, names: &[&'static str], least: usize) -> Vec<&'static str> {
    let count = least + random.below(3 - least);
    let mut picked: Vec<&'static str> = Vec::new();
    while picked.len() < count {
        let one = names[random.below(names.len())];
        if !picked.contains(&one) {
            picked.push(one);
        }
    }
    picked
}

fn measure(service: &mut PersistentConnection, server: u32, query: &Value) -> Result<Measured> {
    let question = json!({"query": query}).to_string();
    let predicted: Value = serde_json::from_str(&service.post("/api/v1/optimization/predict-cost", &question)?)?;
    let before = bytes_read(server)?;
    service.post("/api/v1/query", &query.to_string())?;
    let bytes = bytes_read(server)?.saturating_sub(before);
    let numbers = |of: &Value| [of["scan_bytes"].as_f64(), of["estimated_seconds"].as_f64()];
    Ok(Measured { predicted: numbers(&predicted), high: numbers(&predicted["high"]), actual: [bytes as f64, 0.0] })
}

/// Returns the bytes that a process has read from files so far, from the disk or from the page cache.
fn bytes_read(process: u32) -> Result<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/io"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("rchar: ")).context("no `rchar`")?;
    Ok(line.trim().parse()?)
}

fn accuracy(all: &[Measured], quantity: usize) -> Result<Accuracy> {
    let least = LEAST[quantity];
    let mut errors = Vec::new();
    let (mut with_high, mut within) = (0_usize, 0_usize);
    for measured in all {
        let actual = measured.actual[quantity].max(least);
        let Some(predicted) = measured.predicted[quantity] else { continue };
        let ratio = predicted.max(least) / actual;
        errors.push(ratio.max(1.0 / ratio));
        if let Some(high) = measured.high[quantity] {
            with_high += 1;
            within += usize::from(actual <= high.max(least));
        }
    }
    ensure!(!errors.is_empty(), "no query had a prediction");
    errors.sort_by(f64::total_cmp);
    let at = |percent: usize| errors[(errors.len() * percent / 100).min(errors.len() - 1)];
    let covered = (with_high > 0).then(|| within as f64 / with_high as f64);
    Ok(Accuracy { predicted: errors.len(), errors: [at(50), at(90), at(99)], covered })
}

impl fmt::Display for Accuracy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [median, p90, p99] = self.errors;
        write!(f, "{} predicted, q-error {median:.2} (median), {p90:.2} (p90), {p99:.2} (p99)", self.predicted)?;
        match self.covered {
            Some(covered) => write!(f, ", {:.0} % within the predicted p90", covered * 100.0),
            None => Ok(()),
        }
    }
}
