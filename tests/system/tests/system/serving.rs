//! Tests the server as clients and process supervisors use it.

use serde_json::json;
use terrane_system_tests::{FLIGHTS, Scratch, Server, path, request};

use crate::program;

/// Serves the example project with its state in a separate folder.
fn flights(state: &Scratch) -> Server {
    program("serve", &path(FLIGHTS))
        .arguments(&["--port", "0"])
        .variable("SERVICE_STATE__URL", &format!("sqlite://{}/state.db", state.path().display()))
        .serve()
        .expect("the server starts")
}

#[test]
fn server_answers_over_http_and_ends_on_sigterm() {
    let state = Scratch::empty();
    let server = flights(&state);
    let body = json!({
        "metrics": ["flights.count", "on_time_rate"],
        "dimensions": ["flights.origin"],
        "order_by": [{"field": "flights.count", "direction": "desc"}],
        "limit": 2
    });
    let answer = request(server.address, "POST", "/api/v1/query", Some(&body.to_string())).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.body);
    let json = answer.json().unwrap();
    assert_eq!(json["data"][0]["flights.origin"], "EWR");
    assert_eq!(json["data"][0]["flights.count"], 120_835);
    assert_eq!(json["data"][1]["flights.count"], 111_279);
    assert_eq!((&json["meta"]["total_rows"], &json["meta"]["returned_rows"]), (&json!(3), &json!(2)));

    let sql = request(server.address, "POST", "/api/v1/query/sql", Some(&body.to_string())).unwrap();
    assert!(sql.status == 200 && sql.json().unwrap()["sql"].as_str().unwrap().contains("GROUP BY"), "{}", sql.body);
    for path in ["/health/live", "/health/ready", "/api/v1/query/meta/cubes", "/api/v1/query/meta/metrics"] {
        let answer = request(server.address, "GET", path, None).unwrap();
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    }
    let refused = request(server.address, "POST", "/api/v1/query", Some(r#"{"measures": ["flights.cuont"]}"#)).unwrap();
    assert_eq!((refused.status, &refused.json().unwrap()["error"]["code"]), (400, &json!("INVALID_MEASURE")));

    let (code, log) = server.terminate().unwrap();
    assert_eq!(code, Some(0), "{log}");
    let events: Vec<String> = log
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect(line)["event"].as_str().unwrap().to_owned())
        .collect();
    for event in
        ["http_request_started", "query_compiled", "query_executed", "http_request_completed", "server_stopped"]
    {
        assert!(events.iter().any(|found| found == event), "{event} is not in {events:?}");
    }
}

#[test]
fn log_settings_reach_the_log() {
    let project = Scratch::project();
    let server = program("serve", project.path())
        .arguments(&["--port", "0"])
        .variable("SERVICE_LOG_REQUESTS", "false")
        .variable("SERVICE_LOG_TIMESTAMPS", "false")
        .serve()
        .expect("the server starts");
    assert_eq!(request(server.address, "GET", "/health/live", None).unwrap().status, 200);
    let (code, log) = server.terminate().unwrap();
    assert_eq!(code, Some(0));
    assert!(!log.contains("http_request") && !log.contains("timestamp") && log.contains("server_stopped"), "{log}");
}

#[test]
fn log_file_is_in_the_project_folder() {
    let project = Scratch::project();
    let output = program("serve", project.path())
        .arguments(&["--port", "0"])
        .variable("SERVICE_LOG_OUTPUT", "file")
        .variable("SERVICE_LOG_FILE", "/proc/no/such/folder.log")
        .run()
        .unwrap();
    assert_eq!(output.code, Some(1));
    insta::assert_snapshot!(output.messages(project.path()), @r"
    error: cannot open the log file /proc/no/such/folder.log: No such file or directory (os error 2)
      hint: Check the keys of `log`.
    ");
}

#[test]
fn settings_without_effect_are_warned_of() {
    let settings = "name: a\nsecurity: {anonymous: {scopes: [read]}}\noptimization: {cache_ttl_seconds: 8}\n";
    let project = Scratch::project().with("service_project.yml", settings);
    let output = crate::run("check", project.path(), &[]);
    assert!(
        output.stdout.contains("service_project.yml:3:15: warning[not-yet]: `optimization.cache_ttl_seconds`"),
        "{}",
        output.stdout
    );
    let cube = "cubes:\n  - name: o\n    sql: SELECT 1 AS id\n    measures: [{name: n, type: count}]\n    pre_aggregations:\n      - {name: all_rows, measures: [n], refresh: {every: 10 minutes}}\n";
    let output = crate::run("check", project.with("cubes/o.yml", cube).path(), &[]);
    assert!(
        output.stdout.contains("cubes/o.yml:6:16: warning[preaggregations-off]: `pre_aggregations`"),
        "{}",
        output.stdout
    );
}

/// Returns a project with two orders, one of them without a time, and customers. Orders have string keys, customers
/// have numbers.
fn undated_orders() -> Scratch {
    let settings = "name: a\nsecurity: {anonymous: {scopes: [read]}}\n\
        warehouse:\n  type: duckdb\n  path: a.duckdb\n  init:\n    \
        - CREATE OR REPLACE TABLE customers AS SELECT 7 AS id, 'EU' AS region\n    \
        - CREATE OR REPLACE TABLE orders AS SELECT '7' AS customer_id, 1 AS id, NULL::TIMESTAMP AS placed_at, 5 AS amount \
        UNION ALL SELECT '8', 2, TIMESTAMP '2024-01-01', 6\n";
    let cubes = "cubes:\n  - name: orders\n    sql_table: orders\n    \
        joins: [{name: customers, relationship: many_to_one, sql: \"{orders}.customer_id = {customers}.id\"}]\n    \
        dimensions:\n      - {name: id, type: number, sql: id, primary_key: true}\n      \
        - {name: placed_at, type: time, timezone: none, sql: placed_at}\n    \
        measures:\n      - {name: count, type: count}\n      - {name: so_far, type: running_total, sql: amount}\n  \
        - name: customers\n    sql_table: customers\n    dimensions: [{name: region, type: string, sql: region}]\n";
    Scratch::empty().with("service_project.yml", settings).with("cubes/orders.yml", cubes)
}

#[test]
fn join_of_text_and_number_is_found_by_check() {
    let project = undated_orders();
    let output = crate::run("check", project.path(), &[]);
    assert!(output.stdout.contains("cubes/orders.yml:4:20: warning[column-mismatch]"), "{}", output.stdout);
    assert!(output.stdout.contains("0 errors, 1 warning"), "{}", output.stdout);
}

#[test]
fn totals_of_a_running_total_leave_out_undated_rows() {
    let project = undated_orders();
    let server = program("serve", project.path()).arguments(&["--port", "0"]).serve().unwrap();
    let query = r#"{"measures": ["orders.so_far", "orders.count"], "totals": true,
        "time_dimensions": [{"dimension": "orders.placed_at", "granularity": "day"}]}"#;
    let answer = request(server.address, "POST", "/api/v1/query", Some(query)).unwrap();
    let answer: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
    let totals = &answer["meta"]["totals"];
    assert_eq!((totals["orders.so_far"].as_i64(), totals["orders.count"].as_i64()), (Some(6), Some(2)), "{answer}");
}
