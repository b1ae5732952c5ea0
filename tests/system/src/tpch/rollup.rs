//! Measures the benefit and the build of a pre-aggregation by day and region.
//!
//! In: a project with its tables. Out: the time of a query for one year by month, from the rows and from the
//! pre-aggregation's table, and the time of the build compared with a hand-written `CREATE TABLE AS`. Not here: the
//! verification of the numbers, which is part of each build.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::connection::PersistentConnection;
use super::database::Database;
use super::{WARM_UP, median, time};
use crate::{Program, Scratch, request};

/// Hand-written SQL for the groups and states of the pre-aggregation.
const BY_HAND: &str = "SELECT r_name, l_shipdate, count(*), sum(l_extendedprice * (1 - l_discount)), sum(l_quantity) \
    FROM tpch.raw.lineitem JOIN tpch.raw.orders ON l_orderkey = o_orderkey \
    JOIN tpch.raw.customer ON o_custkey = c_custkey JOIN tpch.raw.nation ON c_nationkey = n_nationkey \
    JOIN tpch.raw.region ON n_regionkey = r_regionkey GROUP BY 1, 2";
const PAUSE: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(600);

/// The times of a pre-aggregation.
#[derive(Debug)]
pub struct RollupTiming {
    /// The duration of the query over HTTP when it reads the rows.
    pub rows: Duration,
    /// The duration of the query over HTTP when it reads the pre-aggregation's table.
    pub table: Duration,
    /// The time from the start of the build to the publication, including the comparison with the rows.
    pub build: Duration,
    /// The time of a hand-written `CREATE TABLE AS` with the same groups.
    pub by_hand: Duration,
}

/// Builds the pre-aggregation and measures it. `file` contains the tables, which the server opens for reading.
pub(super) fn run(binary: &str, project: &Scratch, file: &Path, rounds: u64) -> Result<RollupTiming> {
    let by_hand = by_hand(file, &project.path().join("by_hand.duckdb"))?;
    let program = Program::new(binary, &["serve"], project.path());
    let program = program.variable("SERVICE_PRE_AGGREGATIONS__ENABLED", "true");
    let server = program.serve_unheard(Stdio::null(), Stdio::inherit())?;
    let build = built(server.address)?;
    let mut service = PersistentConnection::open(server.address)?;
    let question = |mode: &str| {
        let range = json!(["1996-01-01", "1996-12-31"]);
        let time = json!([{"dimension": "lineitem.shipdate", "granularity": "month", "date_range": range}]);
        json!({"measures": ["lineitem.revenue"], "dimensions": ["region.name"], "time_dimensions": time,
               "pre_aggregations": mode})
        .to_string()
    };
    let [from_rows, from_table] = [question("off"), question("only")];
    let data = |answer: &str| -> Result<Value> { Ok(serde_json::from_str::<Value>(answer)?["data"].clone()) };
    let [expected, found] = [service.post("/api/v1/query", &from_rows)?, service.post("/api/v1/query", &from_table)?];
    ensure!(data(&expected)? == data(&found)?, "the rows differ: {expected}\n{found}");
    let mut times: [Vec<f64>; 2] = Default::default();
    for round in 0..WARM_UP + rounds {
        for (query, all) in [&from_rows, &from_table].into_iter().zip(&mut times) {
            let (took, _) = time(std::process::id(), || service.post("/api/v1/query", query).map(drop))?;
            if round >= WARM_UP {
                all.push(took.as_secs_f64());
            }
        }
    }
    let [rows, table] = times.map(|all| Duration::from_secs_f64(median(all)));
    Ok(RollupTiming { rows, table, build, by_hand })
}

/// Waits for the first build and returns the duration of the build.
fn built(address: SocketAddr) -> Result<Duration> {
    let mut waited = Duration::ZERO;
    loop {
        let answer = request(address, "GET", "/api/v1/preaggregations/status", None)?.json()?;
        let status = &answer["pre_aggregations"][0];
        if status["state"] == "ready" {
            let at = |key: &str| -> Result<Timestamp> {
                Ok(status["build"][key].as_str().with_context(|| format!("{status}"))?.parse()?)
            };
            return Ok(Duration::try_from(at("ended_at")?.duration_since(at("started_at")?))?);
        }
        ensure!(status["build"]["status"] != "failed" && waited < PATIENCE, "no table was built: {status}");
        thread::sleep(PAUSE);
        waited += PAUSE;
    }
}

fn by_hand(tables: &Path, file: &Path) -> Result<Duration> {
    let database = Database::attach(tables, file)?;
    // The query runs once before the measurement, so that the pages of the tables are in memory, as for the build.
    database.run(BY_HAND)?;
    let create = format!("CREATE TABLE by_hand AS {BY_HAND}; CHECKPOINT");
    Ok(time(std::process::id(), || database.execute(&create))?.0)
}
