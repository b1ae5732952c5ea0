//! Tests pre-aggregations in database servers: answers from tables must equal those from rows. Also tests late rows,
//! kills, and servers that refuse statements.

use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, MySqlConnection, PgConnection};
use terrane_system_tests::engines::{Engine, Kind};
use terrane_system_tests::{Program, Scratch, Server, download, request, request_as};

use super::start;
use crate::preaggregations::{CUBE, answer, are_ready, off, reads_tables, status, wait_until};
use crate::{BINARY, program};

const SETTINGS: &str = "\
name: shop
security: {anonymous: {scopes: [read]}}
pre_aggregations: {enabled: true}
";

/// A pre-aggregation by day and region with one table per month. The tables of months with changed rows are rebuilt.
/// Another pre-aggregation reads rows that change by themselves.
const PREAGGREGATIONS: &str = "    pre_aggregations:
      - name: daily
        measures: [count, revenue, mean, largest]
        dimensions: [region]
        time_dimension: placed_at
        granularity: day
        partition_granularity: month
        indexes: [region]
        refresh: {every: 2 seconds, incremental: true}
  - name: unstable
    sql_table: preagg_unstable
    measures: [{name: total, type: sum, sql: amount}]
    pre_aggregations: [{name: all_rows, measures: [total], refresh: {every: 1 hour}}]
";

/// Returns the cube of the DuckDB tests, which here reads `preagg_orders` and has the further measure `largest`, and
/// the cube `unstable`.
fn cubes() -> String {
    let members = CUBE.split("    pre_aggregations:").next().unwrap_or_default();
    let members = members.replace("sql_table: orders", "sql_table: preagg_orders");
    let largest = "      - {name: largest, type: max, sql: amount}\n    dimensions:";
    format!("{}{PREAGGREGATIONS}", members.replace("    dimensions:", largest))
}

fn statements(kind: Kind) -> Vec<String> {
    let (numbers, moment, random) = match kind {
        Kind::Postgres => {
            ("generate_series(0, 1999) AS t(i)", "TIMESTAMP '2026-01-01' + i * INTERVAL '1 hour'", "random()")
        }
        _ => ("seq_0_to_1999", "TIMESTAMP('2026-01-01') + INTERVAL seq HOUR", "rand()"),
    };
    let i = if kind == Kind::Postgres { "i" } else { "seq" };
    vec![
        "DROP TABLE IF EXISTS preagg_orders".to_owned(),
        format!(
            "CREATE TABLE preagg_orders AS SELECT {i} AS id, CASE WHEN {i} % 3 = 0 THEN 'EU' ELSE 'us' END AS region, \
             CAST(({i} * 7) % 100 AS DECIMAL(12, 2)) AS amount, {moment} AS placed_at FROM {numbers}"
        ),
        format!("CREATE OR REPLACE VIEW preagg_unstable AS SELECT {random} AS amount FROM {numbers}"),
    ]
}

fn serve(project: &Scratch, engine: &Engine) -> Server {
    let mut serve = program("serve", project.path()).arguments(&["--port", "0"]);
    for (name, value) in engine.variables(&[], &[]) {
        serve = serve.variable(&name, &value);
    }
    serve.serve().expect("the server starts")
}

fn by_month() -> Value {
    json!({
        "measures": ["orders.revenue", "orders.count", "orders.mean", "orders.largest"],
        "dimensions": ["orders.region"],
        "time_dimensions": [{"dimension": "orders.placed_at", "granularity": "month"}]
    })
}

fn daily(found: &[Value]) -> &Value {
    found.iter().find(|status| status["name"] == "daily").expect("the pre-aggregation")
}

fn is_ready(found: &[Value]) -> bool {
    are_ready(std::slice::from_ref(daily(found)))
}

/// Runs a statement that writes in the engine's server.
fn ask(engine: &Engine, statement: &str) {
    let url = engine.url().expect("a server");
    let text = AssertSqlSafe(statement.to_owned());
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let done = runtime.block_on(async {
        match engine.kind {
            Kind::Postgres => PgConnection::connect(&url).await?.execute(sqlx::raw_sql(text)).await.map(drop),
            _ => MySqlConnection::connect(&url).await?.execute(sqlx::raw_sql(text)).await.map(drop),
        }
    });
    done.unwrap_or_else(|error: sqlx::Error| panic!("{statement}: {error}"));
}

fn builds_of(kind: Kind) {
    let Some(engine) = start(kind) else { return };
    for statement in statements(kind) {
        ask(&engine, &statement);
    }
    let project = Scratch::empty().with("service_project.yml", SETTINGS).with("cubes/orders.yml", &cubes());
    let server = serve(&project, &engine);
    let first = wait_until(server.address, is_ready);
    assert_eq!(daily(&first)["partitions"].as_array().map(Vec::len), Some(3), "{first:#?}");
    assert!(reads_tables(server.address, &by_month()));
    assert_eq!(answer(server.address, &by_month())["data"], answer(server.address, &off(&by_month()))["data"]);

    // After rows arrive late, only the partition to which they belong is rebuilt.
    let late = "INSERT INTO preagg_orders SELECT id + 100000, region, amount + 1, placed_at FROM preagg_orders \
                WHERE id BETWEEN 800 AND 900";
    ask(&engine, late);
    let expected = answer(server.address, &off(&by_month()))["data"].clone();
    let later = wait_until(server.address, |found| {
        is_ready(found) && daily(found)["generation"].as_u64() > daily(&first)["generation"].as_u64()
    });
    assert_eq!(answer(server.address, &by_month())["data"], expected);
    let built_at = |found: &[Value], partition: usize| daily(found)["partitions"][partition]["built_at"].clone();
    assert_eq!(built_at(&later, 0), built_at(&first, 0));
    assert_ne!(built_at(&later, 1), built_at(&first, 1));

    // A table built from rows that change by themselves is never published.
    let unstable = later.iter().find(|status| status["cube"] == "unstable").expect("the pre-aggregation").clone();
    assert_eq!(unstable["state"], "not_built", "{unstable:#}");
    let code = if kind == Kind::Postgres { "NOT_VERIFIED" } else { "ROWS_CHANGED" };
    assert_eq!(unstable["build"]["error_code"], code, "{unstable:#}");
    assert_eq!(unstable["build"]["error_message"], Value::Null);

    // A killed build does not affect the previous generation.
    let writer = writer(&project, &engine);
    let path = "/api/v1/preaggregations/refresh";
    let asked = request_as(server.address, Some(&writer), "POST", path, Some("{\"cube\": \"orders\"}"));
    assert_eq!(asked.expect("an answer").status, 202);
    thread::sleep(Duration::from_millis(1_050));
    server.kill().expect("it ends");
    let server = serve(&project, &engine);
    assert!(is_ready(&status(server.address)));
    assert!(reads_tables(server.address, &by_month()));
    assert_eq!(answer(server.address, &by_month())["data"], expected);
    wait_until(server.address, |found| daily(found)["build"]["status"] == "success");
    assert_eq!(answer(server.address, &by_month())["data"], expected);

    // After all rows are deleted, the tables become empty as well.
    ask(&engine, "DELETE FROM preagg_orders");
    wait_until(server.address, |_| {
        let rows = answer(server.address, &json!({"measures": ["orders.count"], "pre_aggregations": "auto"}));
        rows["data"][0]["orders.count"] == 0
    });
}

/// Creates an API key with the scopes `read` and `write`, in the state database of the Terrane servers that use this
/// engine.
fn writer(project: &Scratch, engine: &Engine) -> String {
    let mut made = Program::new(BINARY, &["auth", "create-key"], project.path());
    for (name, value) in engine.variables(&[], &[]) {
        made = made.variable(&name, &value);
    }
    let output = made.arguments(&["--name", "k", "--scopes", "read,write", "--json"]).run().expect("it runs");
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let made: Value = serde_json::from_str(&output.stdout).expect("JSON");
    made["key"].as_str().expect("a key").to_owned()
}

#[test]
fn postgres_builds_and_serves_pre_aggregations() {
    builds_of(Kind::Postgres);
}

#[test]
fn mariadb_builds_and_serves_pre_aggregations() {
    builds_of(Kind::MariaDb);
}

/// A cube with rows in three months. One of its pre-aggregations is rebuilt if the result of a query changes; the other
/// one rebuilds the months of its window.
const EVENTS: &str = "\
cubes:
  - name: events
    sql_table: preagg_events
    measures:
      - {name: total, type: sum, sql: amount}
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: at, type: time, sql: at}
    pre_aggregations:
      - {name: marked, measures: [total], refresh: {every: 1 second, sql: SELECT max(n) FROM preagg_marks}}
      - name: windowed
        measures: [total]
        time_dimension: at
        granularity: day
        partition_granularity: month
        refresh: {every: 1 second, incremental: true, update_window: 40 days}
";

const EVENT_ROWS: [&str; 5] = [
    "DROP TABLE IF EXISTS preagg_events",
    "CREATE TABLE preagg_events AS SELECT i AS id, 10 AS amount, TIMESTAMP '2026-01-15' + i * INTERVAL '1 month' AS at \
     FROM generate_series(0, 2) AS t(i)",
    "DROP TABLE IF EXISTS preagg_marks",
    "CREATE TABLE preagg_marks (n integer)",
    "INSERT INTO preagg_marks VALUES (1)",
];

#[test]
fn refreshes_follow_their_query_and_their_window() {
    let Some(engine) = start(Kind::Postgres) else { return };
    EVENT_ROWS.iter().for_each(|statement| ask(&engine, statement));
    let settings = format!("{SETTINGS}cache: {{enabled: false}}\n");
    let project = Scratch::empty().with("service_project.yml", &settings).with("cubes/events.yml", EVENTS);
    let server = serve(&project, &engine);
    let total = json!({"measures": ["events.total"]});
    let by_month = json!({
        "measures": ["events.total"], "time_dimensions": [{"dimension": "events.at", "granularity": "month"}]
    });
    let totals = |query: &Value| -> Vec<Value> {
        let rows = answer(server.address, query)["data"].as_array().expect("rows").clone();
        rows.iter().map(|row| row["events.total"].clone()).collect()
    };
    let named = |found: &[Value], name: &str| {
        found.iter().find(|status| status["name"] == name).expect("the pre-aggregation").clone()
    };
    let first = wait_until(server.address, are_ready);
    assert_eq!((totals(&total), totals(&by_month)), (vec![json!(30)], vec![json!(10), json!(10), json!(10)]));

    // Rows are changed in place: their number stays the same, and no column shows that they changed.
    ask(&engine, "UPDATE preagg_events SET amount = 20");
    let reads_window = |_: &[Value]| totals(&by_month)[1] == 20;
    wait_until(server.address, reads_window);
    // The window is from 3 February to 15 March, so January is not rebuilt.
    assert_eq!(totals(&by_month), [json!(10), json!(20), json!(20)]);
    assert_eq!(totals(&off(&by_month)), [json!(20), json!(20), json!(20)]);
    let later = status(server.address);
    let built_at =
        |found: &[Value], partition: usize| named(found, "windowed")["partitions"][partition]["built_at"].clone();
    assert_eq!(built_at(&later, 0), built_at(&first, 0));
    assert_ne!(built_at(&later, 1), built_at(&first, 1));

    // The result of the refresh query of `marked` stays the same, so the next two builds do not build a table.
    for _ in 0..2 {
        let before = named(&status(server.address), "marked");
        wait_until(server.address, |found| {
            let now = named(found, "marked");
            now["build"]["id"] != before["build"]["id"] && now["build"]["status"] == "success"
        });
    }
    let unchanged = named(&status(server.address), "marked");
    assert_eq!(unchanged["generation"], named(&first, "marked")["generation"]);
    assert_eq!(totals(&total), [json!(30)]);
    ask(&engine, "UPDATE preagg_marks SET n = 2");
    wait_until(server.address, |found| named(found, "marked")["generation"] != unchanged["generation"]);
    assert_eq!(totals(&total), [json!(60)]);
}

#[test]
fn query_detects_a_missing_pre_aggregation() {
    let Some(engine) = start(Kind::Postgres) else { return };
    for statement in statements(Kind::Postgres) {
        ask(&engine, &statement);
    }
    let settings = format!("{SETTINGS}cache: {{enabled: false}}\n");
    let cubes = cubes().replace("every: 2 seconds", "every: 1 hour");
    let project = Scratch::empty().with("service_project.yml", &settings).with("cubes/orders.yml", &cubes);
    let server = serve(&project, &engine);
    let first = wait_until(server.address, is_ready);
    let expected = answer(server.address, &by_month())["data"].clone();
    ask(&engine, "DROP SCHEMA terrane_preaggregations CASCADE");
    let only = json!({
        "measures": ["orders.count"], "dimensions": ["orders.region"], "pre_aggregations": "only"
    });
    // The query may read tables only, so it has no statement over rows to run instead.
    let refused = request(server.address, "POST", "/api/v1/query", Some(&only.to_string())).expect("an answer");
    assert_eq!(refused.status, 502, "{}", refused.body);
    // A large answer is a stream. The tables are refused before any part of it is sent, so rows are read instead.
    let large = json!({"measures": ["orders.count"], "dimensions": ["orders.region"], "limit": 20_000}).to_string();
    let rows = download(server.address, "text/csv", "/api/v1/query", &large).expect("an answer");
    assert!(String::from_utf8_lossy(&rows).contains("us,1333"), "{}", String::from_utf8_lossy(&rows));
    // The next query does not try the refused tables.
    assert!(!reads_tables(server.address, &by_month()));
    let writer = writer(&project, &engine);
    let path = "/api/v1/preaggregations/refresh";
    let asked = request_as(server.address, Some(&writer), "POST", path, Some("{\"cube\": \"orders\"}"));
    assert_eq!(asked.expect("an answer").status, 202);
    wait_until(server.address, |found| daily(found)["generation"].as_u64() > daily(&first)["generation"].as_u64());
    assert!(reads_tables(server.address, &by_month()));
    ask(&engine, "DROP SCHEMA terrane_preaggregations CASCADE");
    assert_eq!(answer(server.address, &by_month())["data"], expected);
    assert!(!reads_tables(server.address, &by_month()));
    let (_, log) = server.terminate().expect("it ends");
    let noticed = log.lines().filter(|line| line.contains("\"preagg_table_unreadable\"")).count();
    assert_eq!(noticed, 2, "{log}");
}

#[test]
fn pre_aggregations_are_rebuilt_after_a_restart_of_the_warehouse() {
    let Some(mut engine) = start(Kind::Postgres) else { return };
    for statement in statements(Kind::Postgres) {
        ask(&engine, &statement);
    }
    let project = Scratch::empty().with("service_project.yml", SETTINGS).with("cubes/orders.yml", &cubes());
    let server = serve(&project, &engine);
    let first = wait_until(server.address, is_ready);
    engine.server.as_mut().expect("a server").kill().expect("it ends");
    wait_until(server.address, |found| daily(found)["build"]["error_code"] == "WAREHOUSE_ERROR");
    // The last complete generation stays published.
    assert!(is_ready(&status(server.address)));
    engine.server.as_mut().expect("a server").restart().expect("it starts again");
    let writer = writer(&project, &engine);
    let path = "/api/v1/preaggregations/refresh";
    let asked = request_as(server.address, Some(&writer), "POST", path, Some("{\"cube\": \"orders\"}"));
    assert_eq!(asked.expect("an answer").status, 202);
    wait_until(server.address, |found| daily(found)["generation"].as_u64() > daily(&first)["generation"].as_u64());
    assert_eq!(answer(server.address, &by_month())["data"], answer(server.address, &off(&by_month()))["data"]);
}

#[test]
fn two_servers_share_tables_that_one_of_them_builds() {
    let Some(engine) = start(Kind::Postgres) else { return };
    for statement in statements(Kind::Postgres) {
        ask(&engine, &statement);
    }
    let state = engine.make_database("preagg_state").expect("a database for the state");
    let project = Scratch::empty().with("service_project.yml", SETTINGS).with("cubes/orders.yml", &cubes());
    let replica = || {
        let mut serve =
            program("serve", project.path()).arguments(&["--port", "0"]).variable("SERVICE_STATE__URL", &state);
        for (name, value) in engine.variables(&[], &[]) {
            serve = serve.variable(&name, &value);
        }
        serve.serve().expect("the server starts")
    };
    let (one, two) = (replica(), replica());
    wait_until(one.address, is_ready);
    // The other server reads the tables within a second.
    thread::sleep(Duration::from_secs(1));
    assert!(reads_tables(two.address, &by_month()));
    let ended = |server: Server| server.terminate().expect("it ends").1;
    let logs = [ended(one), ended(two)];
    let builders = logs.iter().filter(|log| log.contains("\"preagg_build_started\"")).count();
    assert_eq!(builders, 1, "{logs:?}");
}
