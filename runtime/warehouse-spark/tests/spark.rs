//! Runs the adapter against a real server, and compares its rows with those of DuckDB.
//!
//! The server is Sail, which supports Spark Connect and starts within a second; `cargo xtask setup` installs it. The
//! variable `TERRANE_TEST_SPARK_URL` names another server, such as Apache Spark itself. Cases that stop the server are
//! then left out. Without any server, the cases are reported as skipped, which is a failure in CI.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

#[path = "spark/answers.rs"]
mod answers;
#[path = "spark/builds.rs"]
mod builds;
#[path = "spark/catalog.rs"]
mod catalog;
#[path = "spark/faults.rs"]
mod faults;
#[path = "spark/rollups.rs"]
mod rollups;
#[path = "spark/server.rs"]
mod server;
#[path = "spark/sessions.rs"]
mod sessions;

use std::time::Duration;

use arrow::array::AsArray as _;
use arrow::datatypes::Int64Type;
use terrane_app::ports::warehouse::{ResultSet, Statement, Warehouse, WarehouseError};
use terrane_warehouse_spark::{SparkSettings, SparkWarehouse, connect};

/// A query that runs for hours. Spark checks for an interruption every thousand rows of a range.
const ENDLESS: &str = "SELECT sum(id % 7) AS s FROM range(100000000000000)";

/// The named exception of Sail: a session does not find the schemas, tables and views that another session created.
/// Cases that need a shared catalog run on Apache Spark, by `cargo xtask dialects --engine spark-cluster`.
const CATALOG_OF_SESSION: &str = "CATALOG_OF_SESSION: each session has its own catalog";

/// The time limit of statements that must succeed. The first statements on Spark take long.
const LIMIT: Duration = Duration::from_secs(60);

fn settings(url: &str) -> SparkSettings {
    SparkSettings { url: url.to_owned(), init: Vec::new(), connections: 2, connect_timeout: Duration::from_secs(20) }
}

async fn open(url: &str) -> SparkWarehouse {
    connect(&settings(url)).await.unwrap()
}

async fn ask(warehouse: &dyn Warehouse, text: &str) -> Result<ResultSet, WarehouseError> {
    warehouse.execute(Statement::plain(text), LIMIT).await
}

/// Returns the number of rows in all batches.
fn count(rows: &ResultSet) -> usize {
    rows.batches.iter().map(|batch| batch.num_rows()).sum()
}

/// Returns the integer in the first row of a query.
async fn number(warehouse: &dyn Warehouse, text: &str) -> i64 {
    let rows = ask(warehouse, text).await.unwrap_or_else(|error| panic!("{text}: {error}"));
    rows.batches[0].column(0).as_primitive::<Int64Type>().value(0)
}
