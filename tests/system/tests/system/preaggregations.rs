//! Tests pre-aggregations of a served project on DuckDB: builds, answers from tables, and faults.

#![allow(clippy::unwrap_used, reason = "a test stops at its first fault")]

use std::fs;
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use terrane_app::ports::preaggregations::PreaggregationState as _;
use terrane_store::StateStore;
use terrane_system_tests::builds::{BuildKills, Rows};
use terrane_system_tests::engines::Kind;
use terrane_system_tests::{Answer, Program, Scratch, request, request_as};

use crate::BINARY;

/// The time limit of a build, longer than any build takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(100);

const ORDERS: &str = "\
CREATE TABLE IF NOT EXISTS orders AS SELECT i AS id, CASE WHEN i % 3 = 0 THEN 'EU' ELSE 'US' END AS region, \
(i * 7) % 100 AS amount, TIMESTAMP '2026-01-01' + INTERVAL (i) HOUR AS placed_at FROM range(2000) t(i)";

/// A cube with two pre-aggregations: one by day and region with one table per month, and one without a time.
pub(crate) const CUBE: &str = "\
cubes:
  - name: orders
    sql_table: orders
    measures:
      - {name: count, type: count}
      - {name: revenue, type: sum, sql: amount}
      - {name: mean, type: avg, sql: amount}
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: region, type: string, sql: region}
      - {name: placed_at, type: time, sql: placed_at}
    pre_aggregations:
      - name: daily
        measures: [count, revenue, mean]
        dimensions: [region]
        time_dimension: placed_at
        granularity: day
        partition_granularity: month
        refresh: {every: 1 hour}
      - name: totals
        measures: [count, revenue]
        refresh: {every: 1 hour}
";

const SCHEMA: &str = "terrane_preaggregations";

fn settings(more: &str) -> String {
    format!(
        "name: shop\nsecurity: {{anonymous: {{scopes: [read]}}}}\npre_aggregations: {{enabled: true}}\n\
         warehouse: {{type: duckdb, path: shop.duckdb, init: [\"{ORDERS}\"]}}\n{more}"
    )
}

fn project() -> Scratch {
    Scratch::empty().with("service_project.yml", &settings("")).with("cubes/orders.yml", CUBE)
}

fn program(project: &Scratch) -> Program {
    Program::new(BINARY, &["serve"], project.path()).arguments(&["--port", "0"])
}

pub(crate) fn status(address: SocketAddr) -> Vec<Value> {
    let answer = request(address, "GET", "/api/v1/preaggregations/status", None).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.json().unwrap()["pre_aggregations"].as_array().unwrap().clone()
}

/// Waits until `wanted` is true for the status of all pre-aggregations, and returns the status.
pub(crate) fn wait_until(address: SocketAddr, wanted: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let mut waited = Duration::ZERO;
    loop {
        let found = status(address);
        if wanted(&found) {
            return found;
        }
        assert!(waited < LIMIT, "{found:#?}");
        thread::sleep(PAUSE);
        waited += PAUSE;
    }
}

pub(crate) fn are_ready(found: &[Value]) -> bool {
    found.iter().all(|status| status["state"] == "ready")
}

fn post(address: SocketAddr, path: &str, body: &Value) -> Answer {
    request(address, "POST", path, Some(&body.to_string())).unwrap()
}

pub(crate) fn answer(address: SocketAddr, query: &Value) -> Value {
    let answer = post(address, "/api/v1/query", query);
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.json().unwrap()
}

pub(crate) fn reads_tables(address: SocketAddr, query: &Value) -> bool {
    let answer = post(address, "/api/v1/query/sql", query);
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.body.contains(SCHEMA)
}

fn by_month() -> Value {
    json!({
        "measures": ["orders.revenue", "orders.count", "orders.mean"],
        "dimensions": ["orders.region"],
        "time_dimensions": [{"dimension": "orders.placed_at", "granularity": "month"}]
    })
}

/// Returns the same query without pre-aggregations.
pub(crate) fn off(query: &Value) -> Value {
    let mut query = query.clone();
    query["pre_aggregations"] = "off".into();
    query
}

fn key(project: &Scratch, scopes: &str) -> String {
    let made = Program::new(BINARY, &["auth", "create-key"], project.path());
    let output = made.arguments(&["--name", "k", "--scopes", scopes, "--json"]).run().unwrap();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    serde_json::from_str::<Value>(&output.stdout).unwrap()["key"].as_str().unwrap().to_owned()
}

/// Returns the tables in the file that the state database does not contain. No server may be running.
fn orphans(project: &Scratch) -> Vec<String> {
    let file = project.path().join(".terrane/preaggregations.duckdb");
    let connection = duckdb::Connection::open(file).unwrap();
    let mut statement = connection.prepare("SELECT table_name FROM duckdb_tables()").unwrap();
    let tables = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
    let tables: Vec<String> = tables.map(Result::unwrap).collect();
    let target = tables.first().and_then(|table| table.split('_').next()).unwrap().to_owned();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let known = runtime.block_on(async {
        let store = StateStore::open("sqlite://.terrane/state.db", project.path()).await.unwrap();
        store.tables(&target).await.unwrap()
    });
    tables.into_iter().filter(|table| !known.iter().any(|known| **known == **table)).collect()
}

#[test]
fn pre_aggregated_results_equal_those_of_the_rows() {
    let project = project();
    let server = program(&project).serve().unwrap();
    let found = wait_until(server.address, are_ready);
    let daily = &found[0];
    assert_eq!((&daily["cube"], &daily["name"], &daily["rows"]), (&json!("orders"), &json!("daily"), &Value::Null));
    let partitions = daily["partitions"].as_array().unwrap();
    assert_eq!(partitions.len(), 3, "{daily:#}");
    assert_eq!((&partitions[0]["start"], &partitions[0]["end"]), (&json!("2026-01-01"), &json!("2026-02-01")));
    for query in [
        by_month(),
        json!({"measures": ["orders.count"]}),
        json!({"measures": ["orders.mean"], "time_dimensions": [{
            "dimension": "orders.placed_at", "granularity": "day", "date_range": ["2026-01-20", "2026-02-10"]}]}),
        // The parts of days at both ends of the range are read from the rows.
        json!({"measures": ["orders.revenue"], "time_dimensions": [{
            "dimension": "orders.placed_at", "date_range": ["2026-01-20T05:00:00", "2026-02-10T07:00:00"]}]}),
    ] {
        assert!(reads_tables(server.address, &query), "{query}");
        assert!(!reads_tables(server.address, &off(&query)), "{query}");
        let (from_tables, from_rows) = (answer(server.address, &query), answer(server.address, &off(&query)));
        assert_eq!(from_tables["data"], from_rows["data"], "{query}");
        // `as_of` of an answer from tables is the time at which the tables were built.
        assert!(from_tables["meta"]["as_of"].as_str().unwrap() < from_rows["meta"]["as_of"].as_str().unwrap());
    }
    let by_id = json!({"measures": ["orders.count"], "dimensions": ["orders.id"]});
    assert!(!reads_tables(server.address, &by_id));
    let (_, log) = server.terminate().unwrap();
    let events: Vec<Value> = log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let built = events.iter().filter(|event| event["event"] == "preagg_built").count();
    assert_eq!(built, 2, "{log}");
    let used = events.iter().filter(|event| event["event"] == "query_executed" && event["preagg_used"] == true);
    assert_eq!(used.count(), 4, "{log}");
}

#[test]
fn restarted_server_reads_built_tables() {
    let project = project();
    let server = program(&project).serve().unwrap();
    let generation = |found: &[Value]| found[0]["generation"].clone();
    let before = generation(&wait_until(server.address, are_ready));
    server.terminate().unwrap();
    let server = program(&project).serve().unwrap();
    // The first answer already comes from tables, and no build has run.
    assert!(reads_tables(server.address, &by_month()));
    assert_eq!(generation(&status(server.address)), before);
}

#[test]
fn changed_definitions_are_rebuilt_and_old_tables_are_ignored() {
    let project = project();
    let server = program(&project).serve().unwrap();
    let before = wait_until(server.address, are_ready);
    server.terminate().unwrap();
    fs::write(project.path().join("cubes/orders.yml"), CUBE.replace("sql: amount", "sql: amount + 1")).unwrap();
    let server = program(&project).serve().unwrap();
    let first = answer(server.address, &by_month());
    assert_eq!(first["data"], answer(server.address, &off(&by_month()))["data"]);
    let after = wait_until(server.address, |found| {
        are_ready(found) && found[0]["generation"].as_u64() > before[0]["generation"].as_u64()
    });
    assert!(after[0]["generation"].as_u64() > before[0]["generation"].as_u64());
    assert_eq!(answer(server.address, &by_month())["data"], first["data"]);
}

#[test]
fn writer_refreshes_partitions_and_cancels_builds() {
    let project = project();
    let (writer, admin) = (key(&project, "read,write"), key(&project, "read,write,admin"));
    let server = program(&project).serve().unwrap();
    let before = wait_until(server.address, are_ready);
    let refresh = |key: Option<&str>, body: Value| {
        let path = "/api/v1/preaggregations/refresh";
        request_as(server.address, key, "POST", path, Some(&body.to_string())).unwrap()
    };
    assert_eq!(refresh(None, json!({})).status, 403);
    let one = json!({"cube": "orders", "name": "daily", "partitions": ["2026-02"]});
    let asked = refresh(Some(&writer), one);
    assert_eq!(asked.status, 202, "{}", asked.body);
    let build = asked.json().unwrap()["builds"][0].clone();
    assert_eq!((&build["status"], &build["origin"]), (&json!("pending"), &json!("request")));
    let after = wait_until(server.address, |found| {
        found[0]["build"]["status"] == "success" && found[0]["build"]["id"] == build["id"]
    });
    let built_at = |found: &[Value], partition: usize| found[0]["partitions"][partition]["built_at"].clone();
    assert_eq!(built_at(&after, 0), built_at(&before, 0));
    assert_ne!(built_at(&after, 1), built_at(&before, 1));
    assert_eq!(built_at(&after, 2), built_at(&before, 2));
    let quarter = refresh(Some(&writer), json!({"cube": "orders", "name": "daily", "partitions": ["2026-Q1"]}));
    assert_eq!(quarter.status, 202, "{}", quarter.body);
    for (body, code, field) in [
        (json!({"cube": "ordrs"}), 404, Value::Null),
        (json!({"cube": "orders", "name": "weekly"}), 404, Value::Null),
        (json!({"cube": "orders", "name": "daily", "partitions": ["soon"]}), 400, json!("partitions")),
        (json!({"cube": "orders", "name": "totals", "partitions": ["2026-01"]}), 400, json!("partitions")),
        (json!({"name": "daily"}), 400, json!("cube")),
        (json!({"cube": 7}), 400, json!("cube")),
    ] {
        let refused = refresh(Some(&writer), body.clone());
        assert_eq!(refused.status, code, "{body}: {}", refused.body);
        assert_eq!(refused.json().unwrap()["error"]["details"]["field"], field, "{body}");
    }
    let cancel = |id: &str| {
        let path = format!("/api/v1/preaggregations/builds/{id}");
        request_as(server.address, Some(&writer), "DELETE", &path, None).unwrap()
    };
    assert_eq!(cancel(&"0".repeat(32)).status, 404);
    // A cancellation does not change a build that has ended.
    let ended = cancel(build["id"].as_str().unwrap());
    assert_eq!((ended.status, ended.json().unwrap()["status"].clone()), (200, json!("success")));
    // Only administrators see numbers of rows.
    let path = "/api/v1/preaggregations/status";
    let seen = |key: &str| request_as(server.address, Some(key), "GET", path, None).unwrap().json().unwrap();
    assert_eq!(seen(&writer)["pre_aggregations"][0]["rows"], Value::Null);
    assert_eq!(seen(&admin)["pre_aggregations"][0]["rows"], 168);
    let audit = request_as(server.address, Some(&admin), "GET", "/api/v1/audit?event=preagg_refresh_requested", None);
    // Refused requests have no record.
    assert_eq!(audit.unwrap().json().unwrap()["records"].as_array().unwrap().len(), 2);
}

#[test]
fn killed_builds_leave_no_partial_generation_and_no_orphans() {
    let project = project();
    let writer = key(&project, "read,write");
    let slow = ORDERS.replace("range(2000)", "range(300000)").replace("INTERVAL (i) HOUR", "INTERVAL (i) MINUTE");
    fs::write(project.path().join("service_project.yml"), settings("").replace(ORDERS, &slow)).unwrap();
    let server = program(&project).serve().unwrap();
    wait_until(server.address, are_ready);
    let mut expected = answer(server.address, &off(&by_month()))["data"].clone();
    let mut server = Some(server);
    for round in 0..6_u64 {
        let running = server.take().unwrap();
        let path = "/api/v1/preaggregations/refresh";
        let asked = request_as(running.address, Some(&writer), "POST", path, Some("{\"cube\": \"orders\"}")).unwrap();
        assert_eq!(asked.status, 202, "{}", asked.body);
        // The worker looks for builds every second, and a build takes about as long.
        thread::sleep(Duration::from_millis(700 + round * 170));
        running.kill().unwrap();
        let again = program(&project).serve().unwrap();
        assert!(are_ready(&status(again.address)));
        assert!(reads_tables(again.address, &by_month()));
        assert_eq!(answer(again.address, &by_month())["data"], expected, "round {round}");
        expected = answer(again.address, &off(&by_month()))["data"].clone();
        server = Some(again);
    }
    let server = server.unwrap();
    // After the lease of the killed process has expired, the requested build runs.
    let found = wait_until(server.address, |found| found.iter().all(|status| status["build"]["status"] == "success"));
    let served: usize = found.iter().map(|status| status["partitions"].as_array().unwrap().len()).sum();
    assert_eq!(answer(server.address, &by_month())["data"], expected);
    server.terminate().unwrap();
    // This build drops the retired tables. No other table may be left.
    let output =
        Program::new(BINARY, &["preagg", "build"], project.path()).arguments(&["orders.totals"]).run().unwrap();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert_eq!(orphans(&project), Vec::<String>::new(), "{served} are served");
}

/// The number of rounds. `cargo xtask jobs build-kills` runs 200.
const ROUNDS: u64 = 3;

fn assert_survives(kills: &BuildKills<'_>) {
    let report = kills.run().expect("the servers answer at the end");
    eprintln!("{report}");
    assert!(report.faults.is_empty(), "{report}");
    assert!(report.builds > 0 && report.invalidations > 0 && report.answers > 0, "{report}");
}

#[test]
fn kills_leave_no_stale_or_partial_tables() {
    let (state_url, rows) = ("sqlite://state.db", Rows::File);
    assert_survives(&BuildKills { binary: BINARY, state_url, rows, rounds: ROUNDS, replicas: 1, seed: 7 });
}

#[test]
fn kills_of_replicas_on_postgres_leave_no_stale_or_partial_tables() {
    let Some(engine) = crate::engines::start(Kind::Postgres) else { return };
    let (state_url, rows) = (engine.make_database("state").unwrap(), Rows::Postgres(&engine));
    let kills = BuildKills { binary: BINARY, state_url: &state_url, rows, rounds: ROUNDS, replicas: 2, seed: 7 };
    assert_survives(&kills);
}

#[test]
fn command_builds_or_waits_for_a_building_server() {
    let project = project();
    let built = Program::new(BINARY, &["preagg", "build"], project.path()).run().unwrap();
    assert_eq!(built.code, Some(0), "{}", built.stderr);
    assert!(built.stdout.contains("orders.daily  success  3 tables"), "{}", built.stdout);
    let shown = Program::new(BINARY, &["preagg", "status"], project.path()).arguments(&["--json"]).run().unwrap();
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!(
        (&shown["pre_aggregations"][0]["state"], &shown["pre_aggregations"][0]["rows"]),
        (&json!("ready"), &json!(168))
    );
    let explained = |query: &Value| {
        let text = query.to_string();
        let output = Program::new(BINARY, &["preagg", "explain"], project.path()).arguments(&[&text, "--json"]).run();
        let output = output.unwrap();
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        serde_json::from_str::<Value>(&output.stdout).unwrap()["facts"][0].clone()
    };
    let fact = explained(&by_month());
    assert_eq!((&fact["served"]["pre_aggregation"], &fact["served"]["rows"]), (&json!("daily"), &json!(168)));
    let missed = explained(&json!({"measures": ["orders.count"], "dimensions": ["orders.id"]}));
    assert_eq!((&missed["served"], &missed["misses"][0]["reason"]), (&Value::Null, &json!("DIMENSION_NOT_STORED")));
    assert_eq!(missed["misses"][0]["fix"], "dimensions: [orders.id]");
    let wrong = Program::new(BINARY, &["preagg", "build"], project.path()).arguments(&["orders.dayly"]).run().unwrap();
    assert_eq!(wrong.code, Some(1));
    assert!(wrong.stderr.contains("daily"), "{}", wrong.stderr);
}

/// Runs a command with a query that only tables may answer. Returns whether it was answered.
fn is_answered_from_tables(project: &Scratch) -> bool {
    let mut query = by_month();
    query["pre_aggregations"] = "only".into();
    let output =
        Program::new(BINARY, &["query"], project.path()).arguments(&[&query.to_string(), "--json"]).run().unwrap();
    assert!(output.code == Some(0) || output.stderr.contains("NOT_BUILT"), "{}", output.stderr);
    output.code == Some(0)
}

#[test]
fn commands_read_published_tables() {
    let tests = "tests:\n  - name: from_tables\n    \
                 query: {measures: [orders.count], dimensions: [orders.region], order_by: [{field: orders.region}], pre_aggregations: only}\n    \
                 sql: SELECT region AS \"orders.region\", count(*) AS \"orders.count\" FROM orders GROUP BY 1 ORDER BY 1\n";
    let project = project().with("tests/orders.yml", tests);
    assert!(!is_answered_from_tables(&project), "nothing is built");
    let built = Program::new(BINARY, &["preagg", "build"], project.path()).run().unwrap();
    assert_eq!(built.code, Some(0), "{}", built.stderr);
    assert!(is_answered_from_tables(&project));
    let tested = || {
        let output = Program::new(BINARY, &["test"], project.path()).arguments(&["--json"]).run().unwrap();
        let outcome: Value = serde_json::from_str(&output.stdout).unwrap();
        outcome["cases"][0]["failure"].as_str().map(str::to_owned)
    };
    assert_eq!(tested(), None);
    let connection = duckdb::Connection::open(project.path().join("shop.duckdb")).unwrap();
    connection.execute_batch("DELETE FROM orders WHERE id = 0").unwrap();
    drop(connection);
    let failure = tested().unwrap();
    assert!(failure.contains("orders.daily"), "{failure}");
}

#[test]
fn commands_read_rows_while_a_server_has_the_tables_open() {
    let in_memory = settings("").replace("path: shop.duckdb, ", "");
    let project = Scratch::empty().with("service_project.yml", &in_memory).with("cubes/orders.yml", CUBE);
    let server = program(&project).serve().unwrap();
    wait_until(server.address, are_ready);
    assert!(reads_tables(server.address, &by_month()));
    assert!(!is_answered_from_tables(&project));
    let query = by_month().to_string();
    let output = Program::new(BINARY, &["query"], project.path()).arguments(&[&query, "--json"]).run().unwrap();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    server.terminate().unwrap();
    assert!(is_answered_from_tables(&project));
}

#[test]
fn project_that_names_the_schema_is_refused() {
    let spy = format!(
        "cubes:\n  - name: spy\n    sql: SELECT * FROM {SCHEMA}.main.x\n    measures: [{{name: n, type: count}}]\n"
    );
    let project = project().with("cubes/spy.yml", &spy);
    let output = Program::new(BINARY, &["check"], project.path()).run().unwrap();
    assert_eq!(output.code, Some(1));
    assert!(output.stdout.contains("cubes/spy.yml:3:24: error[reserved-name]"), "{}", output.stdout);
}

#[test]
fn policies_apply_to_stored_rows() {
    let policies = "\
policies:
  - name: own_region
    cubes: [orders]
    row_filter: \"{orders}.region = {{ user.attributes.region }}\"
";
    let project = project().with("policies/orders.yml", policies);
    let made = Program::new(BINARY, &["auth", "create-key"], project.path());
    let output = made.arguments(&["--name", "eu", "--attribute", "region=EU", "--json"]).run().unwrap();
    let eu = serde_json::from_str::<Value>(&output.stdout).unwrap()["key"].as_str().unwrap().to_owned();
    let server = program(&project).serve().unwrap();
    wait_until(server.address, are_ready);
    let ask = |query: &Value| {
        let answer = request_as(server.address, Some(&eu), "POST", "/api/v1/query", Some(&query.to_string())).unwrap();
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.json().unwrap()["data"].clone()
    };
    let query = by_month();
    assert_eq!(ask(&query), ask(&off(&query)));
    let regions: Vec<Value> = ask(&query).as_array().unwrap().iter().map(|row| row["orders.region"].clone()).collect();
    assert!(regions.iter().all(|region| region == "EU"), "{regions:?}");
    // The table of totals has no region, so it cannot serve callers with a row filter by region.
    assert_eq!(ask(&json!({"measures": ["orders.count"]})), json!([{"orders.count": 667}]));
}

/// Serves a cube with different pre-aggregations, and compares the answers from tables with those from rows.
fn assert_equal_answers(pre_aggregations: &str, queries: &[Value]) {
    let at = CUBE.find("    pre_aggregations:").unwrap();
    let cube = format!("{}{pre_aggregations}", &CUBE[..at]);
    let project = project().with("cubes/orders.yml", &cube);
    let server = program(&project).serve().unwrap();
    wait_until(server.address, are_ready);
    for query in queries {
        assert!(reads_tables(server.address, query), "{query}");
        let (from_tables, from_rows) = (answer(server.address, query), answer(server.address, &off(query)));
        assert_eq!(from_tables["data"], from_rows["data"], "{query}");
    }
}

#[test]
fn rows_outside_of_the_build_range_are_counted() {
    let some_days = "    pre_aggregations:
      - name: some_days
        measures: [count, revenue, mean]
        dimensions: [region]
        time_dimension: placed_at
        granularity: day
        partition_granularity: month
        build_range: {start: 2026-01-15, end: 2026-02-10}
";
    assert_equal_answers(some_days, &[by_month(), json!({"measures": ["orders.count", "orders.mean"]})]);
}

#[test]
fn days_with_a_change_of_clocks_are_complete() {
    let local_days = "    pre_aggregations:
      - name: local_days
        measures: [count, revenue]
        time_dimension: placed_at
        granularity: day
        partition_granularity: week
        timezone: America/New_York
";
    // In New York, clocks go forward on 8 March 2026.
    let by = |granularity: &str| {
        json!({"measures": ["orders.count", "orders.revenue"], "timezone": "America/New_York", "time_dimensions": [{
            "dimension": "orders.placed_at", "granularity": granularity, "date_range": ["2026-02-20", "2026-03-20"]}]})
    };
    let instants = "AT TIME ZONE 'UTC' AS placed_at FROM range(2000)";
    let at = CUBE.find("    pre_aggregations:").unwrap();
    let cube = CUBE[..at].replace("type: time, sql: placed_at", "type: time, timezone: utc, sql: placed_at");
    let settings = settings("").replace("AS placed_at FROM range(2000)", instants);
    let settings =
        settings.replace("TIMESTAMP '2026-01-01' + INTERVAL (i) HOUR", "(TIMESTAMP '2026-01-01' + INTERVAL (i) HOUR)");
    let project = Scratch::empty()
        .with("service_project.yml", &settings)
        .with("cubes/orders.yml", &format!("{cube}{local_days}"));
    let server = program(&project).serve().unwrap();
    wait_until(server.address, are_ready);
    for query in ["day", "week", "month"].map(by) {
        assert!(reads_tables(server.address, &query), "{query}");
        assert_eq!(answer(server.address, &query)["data"], answer(server.address, &off(&query))["data"], "{query}");
    }
}

#[test]
fn recommended_pre_aggregations_serve_the_recorded_queries() {
    let at = CUBE.find("    pre_aggregations:").unwrap();
    let project = project().with("cubes/orders.yml", &CUBE[..at]);
    let queries = [
        by_month(),
        json!({"measures": ["orders.mean"], "time_dimensions": [{
            "dimension": "orders.placed_at", "granularity": "day", "date_range": ["2026-01-20", "2026-02-10"]}]}),
        json!({"measures": ["orders.count"], "filters": [
            {"dimension": "orders.region", "operator": "equals", "value": "EU"}]}),
    ];
    let server = program(&project).serve().unwrap();
    for query in &queries {
        assert!(!reads_tables(server.address, query));
        answer(server.address, query);
    }
    server.terminate().unwrap();
    let output = Program::new(BINARY, &["preagg", "recommend"], project.path()).arguments(&["--json"]).run().unwrap();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let found: Value = serde_json::from_str(&output.stdout).unwrap();
    let recommended = found["recommendations"].as_array().unwrap();
    assert_eq!((recommended.len(), &recommended[0]["queries"]), (1, &json!(3)), "{recommended:#?}");
    let entry: String =
        recommended[0]["yaml"].as_str().unwrap().lines().map(|line| format!("      {line}\n")).collect();
    assert_equal_answers(&format!("    pre_aggregations:\n{entry}"), &queries);
}
