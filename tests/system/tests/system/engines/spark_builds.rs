//! Tests models and pre-aggregations on a server of Spark Connect.
//!
//! In Sail, each session has a catalog of its own, so nothing can be built on it: `terrane run` explains that, and a
//! server reads the rows. On Apache Spark (`TERRANE_TEST_SPARK_URL`), both are built and read.

use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use terrane_app::ports::builder::CantBuild;
use terrane_system_tests::engines::{Engine, Kind};
use terrane_system_tests::{Program, Scratch};

use super::start;
use crate::preaggregations::{answer, are_ready, off, reads_tables, status};
use crate::program;

const SETTINGS: &str = "\
name: shop
security: {anonymous: {scopes: [read]}}
";

const CUBES: &str = "\
cubes:
  - name: clean_orders
    sql_table: \"{{ ref('clean') }}\"
    measures: [{name: count, type: count}]
  - name: orders
    sql_table: spark_orders
    measures:
      - {name: count, type: count}
      - {name: revenue, type: sum, sql: amount}
      - {name: mean, type: avg, sql: amount}
      - {name: largest, type: max, sql: amount}
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: region, type: string, sql: region}
      - {name: placed_at, type: time, sql: placed_at}
    pre_aggregations:
      - name: daily
        measures: [count, revenue, mean, largest]
        dimensions: [region]
        time_dimension: placed_at
        granularity: day
        partition_granularity: month
        refresh: {every: 1 hour}
";

const ROWS: &str = "\
CREATE TABLE IF NOT EXISTS spark_orders AS SELECT id, CASE WHEN id % 3 = 0 THEN 'EU' ELSE 'us' END AS region, \
CAST((id * 7) % 100 AS DECIMAL(12, 2)) AS amount, \
TIMESTAMP_NTZ '2026-01-01 00:00:00' + make_dt_interval(0, CAST(id AS INT)) AS placed_at FROM range(1200)";

/// A build of all tables lasts longer than on other engines: each statement is a job of the cluster.
const LIMIT: Duration = Duration::from_secs(300);
const PAUSE: Duration = Duration::from_millis(500);

fn project(settings: &str) -> Scratch {
    Scratch::empty()
        .with("service_project.yml", &format!("{SETTINGS}{settings}"))
        .with("cubes/orders.yml", CUBES)
        .with("models/large.sql", "SELECT id FROM spark_orders WHERE amount > 50")
        .with("models/clean.sql", "{{ config(materialized='table') }} SELECT id FROM {{ ref('large') }}")
}

/// Returns a command with the engine's variables. The models, like the sources, are in a schema of this process.
fn command(name: &str, project: &Scratch, engine: &Engine) -> Program {
    let schema = format!("models_of_process_{}", std::process::id());
    let mut program = program(name, project.path()).variable("SERVICE_MODELS__SCHEMA", &schema);
    for (name, value) in engine.variables(&[], &[ROWS.to_owned()]) {
        program = program.variable(&name, &value);
    }
    program
}

#[test]
fn models_are_built_on_spark_if_sessions_share_a_catalog() {
    let Some(engine) = start(Kind::Spark) else { return };
    let project = project("");
    let output = command("run", &project, &engine).arguments(&["--json"]).run().expect("it runs");
    if engine.is_sail() {
        assert_eq!(output.code, Some(1), "{output:?}");
        let reason = CantBuild::CatalogOfSession { warehouse: "spark".to_owned() };
        assert!(output.stderr.contains(&reason.to_string()) && output.stderr.contains(&reason.hint()), "{output:?}");
        return;
    }
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!(output.stdout.matches("\"status\":\"built\"").count(), 2, "{output:?}");
    // A second run replaces both.
    let again = command("run", &project, &engine).run().expect("it runs");
    assert_eq!(again.code, Some(0), "{again:?}");
    let query = "{\"measures\": [\"clean_orders.count\"]}";
    let explained = command("explain", &project, &engine).arguments(&[query]).run().expect("it runs");
    assert!(explained.stdout.contains("models_of_process_"), "the built table is read: {explained:?}");
}

#[test]
fn pre_aggregations_are_built_on_spark_if_sessions_share_a_catalog() {
    let Some(engine) = start(Kind::Spark) else { return };
    let project = project("pre_aggregations: {enabled: true}\n");
    let server = command("serve", &project, &engine).arguments(&["--port", "0"]).serve().expect("the server starts");
    let by_month = json!({
        "measures": ["orders.revenue", "orders.count", "orders.mean", "orders.largest"],
        "dimensions": ["orders.region"],
        "time_dimensions": [{"dimension": "orders.placed_at", "granularity": "month"}]
    });
    let rows = answer(server.address, &off(&by_month))["data"].clone();
    assert_eq!(rows.as_array().map(Vec::len), Some(4), "two regions in two months");
    // On Sail, the first attempt already shows that nothing can be built.
    let is_refused = |one: &Value| engine.is_sail() && one["build"]["error_code"].is_string();
    let is_over = |found: &[Value]| {
        are_ready(found) || found.iter().any(|one| is_refused(one) || one["build"]["status"] == "failed")
    };
    let mut waited = Duration::ZERO;
    while !is_over(&status(server.address)) {
        assert!(waited < LIMIT, "{:#?}", status(server.address));
        thread::sleep(PAUSE);
        waited += PAUSE;
    }
    let found = status(server.address);
    assert_eq!(reads_tables(server.address, &by_month), !engine.is_sail(), "{found:#?}");
    assert_eq!(answer(server.address, &by_month)["data"], rows, "{found:#?}");
}
