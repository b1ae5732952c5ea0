//! Tests data tests on a real server: runs on request and on a schedule, and callers with different rights.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::time::Duration;

use serde_json::{Value, json};
use terrane_system_tests::{Program, Scratch, Server, request_as};

use crate::BINARY;

const SETTINGS: &str = "name: shop\nwarehouse: {type: duckdb}\nmetrics: {enabled: true, public: true}\n";
const CUBES: &str = r#"cubes:
  - name: orders
    sql: "SELECT * FROM (VALUES (1, 'open', 7), (2, 'paid', 7), (2, 'lost', 8)) AS o (id, status, customer)"
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true, tests: [not_null, unique]}
      - {name: status, type: string, sql: status, tests: [{accepted_values: [open, paid]}]}
      - {name: customer, type: number, sql: customer, tests: [{relationships: customers.id}]}
    measures:
      - {name: count, type: count}
  - name: customers
    sql: "SELECT * FROM (VALUES (7), (8)) AS c (id)"
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
  - name: broken
    sql_table: no_such_table
    dimensions:
      - {name: id, type: number, sql: id, tests: [not_null]}
"#;
const POLICIES: &str = "policies:\n  - {name: p, cubes: [orders], when: {roles: [seller]}, deny: [status]}\n";

fn key(project: &Scratch, role: &str, scopes: &str) -> String {
    let arguments = ["--name", role, "--roles", role, "--scopes", scopes, "--json"];
    let made = Program::new(BINARY, &["auth", "create-key"], project.path()).arguments(&arguments).run().unwrap();
    let key: Value = serde_json::from_str(&made.stdout).unwrap_or_else(|_| panic!("{}", made.stderr));
    key["key"].as_str().unwrap().to_owned()
}

fn ask(server: &Server, key: &str, method: &str, path: &str) -> (u16, Value) {
    let answer = request_as(server.address, Some(key), method, path, None).unwrap();
    (answer.status, answer.json().unwrap_or_default())
}

/// Waits until a run has ended, and returns it.
fn last(server: &Server, key: &str, id: Option<&str>) -> Value {
    for _ in 0..500 {
        let (status, tests) = ask(server, key, "GET", "/api/v1/data-tests");
        assert_eq!(status, 200, "{tests}");
        let last = &tests["last"];
        if !last.is_null() && id.is_none_or(|id| last["id"] == id) {
            return last.clone();
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    panic!("no run of data tests ended within 100 seconds");
}

#[test]
fn requested_run_reports_each_test() {
    let project = Scratch::empty().with("service_project.yml", SETTINGS).with("cubes/orders.yml", CUBES);
    let project = project.with("policies/orders.yml", POLICIES);
    let (admin, seller) = (key(&project, "boss", "read,write,admin"), key(&project, "seller", "read,write,admin"));
    let reader = key(&project, "reader", "read,write");
    let server = Program::new(BINARY, &["serve"], project.path()).arguments(&["--port", "0"]).serve().unwrap();
    for (method, path) in [("GET", "/api/v1/data-tests"), ("POST", "/api/v1/data-tests/run")] {
        assert_eq!(ask(&server, &reader, method, path).0, 403);
    }
    let (status, run) = ask(&server, &admin, "POST", "/api/v1/data-tests/run");
    assert_eq!((status, &run["status"], &run["requested_by"].is_string()), (202, &json!("waiting"), &true), "{run}");
    let last = last(&server, &admin, run["id"].as_str());
    let outcomes: Vec<(&str, &str)> = last["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| (result["name"].as_str().unwrap(), result["outcome"].as_str().unwrap()))
        .collect();
    let expected = [
        ("orders.id: not_null", "passed"),
        ("orders.id: unique", "failed"),
        ("orders.status: accepted_values", "failed"),
        ("orders.customer: relationships customers.id", "passed"),
        ("broken.id: not_null", "unchecked"),
    ];
    assert_eq!(outcomes, expected, "{last}");
    let counts = ["passed", "failed", "unchecked"].map(|outcome| last[outcome].as_u64().unwrap());
    assert_eq!((&last["status"], counts), (&json!("failed"), [2, 2, 1]), "{last}");
    let lost = &last["results"][2];
    assert!(lost["message"].as_str().unwrap().contains("lost"), "{lost}");
    assert_eq!((&lost["file"], &lost["line"]), (&json!("cubes/orders.yml"), &json!(6)), "{lost}");
    // Policies hide a column from this administrator, so the answer contains no values.
    let path = format!("/api/v1/data-tests/runs/{}", last["id"].as_str().unwrap());
    let (status, seen) = ask(&server, &seller, "GET", &path);
    assert_eq!((status, &seen["failed"]), (200, &json!(2)), "{seen}");
    assert!(!seen.to_string().contains("lost"), "{seen}");
    let metrics = request_as(server.address, Some(&admin), "GET", "/metrics", None).unwrap();
    assert!(metrics.body.contains("service_data_tests_total{outcome=\"failed\"} 2"), "{}", metrics.body);
}

const CASES: &str = r#"tests:
  - {name: three_orders, query: {measures: [orders.count]}, rows: [{orders.count: 3}]}
  - {name: four_orders, query: {measures: [orders.count]}, rows: [{orders.count: 4}]}
  - {name: by_hand, query: {measures: [orders.count]}, sql: 'SELECT 3 AS "orders.count"'}
  - {name: no_table, query: {measures: [orders.count]}, sql: 'SELECT x AS "orders.count" FROM no_such_table'}
  - name: sellers_do_not_see_status
    as: {roles: [seller]}
    query: {dimensions: [orders.status]}
    error: {code: INVALID_DIMENSION}
"#;

#[test]
fn cases_run_with_the_tests_of_dimensions() {
    let project = Scratch::empty().with("service_project.yml", SETTINGS).with("cubes/orders.yml", CUBES);
    let project = project.with("policies/orders.yml", POLICIES).with("tests/orders.yml", CASES);
    let project = project.with("tests/wrong.yml", "tests:\n  - {name: wrong, qeury: {}}\n");
    let (admin, seller) = (key(&project, "boss", "read,admin"), key(&project, "seller", "read,admin"));
    let server = Program::new(BINARY, &["serve"], project.path()).arguments(&["--port", "0"]).serve().unwrap();
    let (_, run) = ask(&server, &admin, "POST", "/api/v1/data-tests/run");
    let ended = last(&server, &admin, run["id"].as_str());
    let result = |name: &str| {
        let results = ended["results"].as_array().unwrap().iter();
        results.clone().find(|result| result["name"] == name).unwrap_or_else(|| panic!("{name}: {ended}")).clone()
    };
    for (name, outcome, line) in [
        ("orders.id: unique", "failed", 5),
        ("three_orders", "passed", 2),
        ("four_orders", "failed", 3),
        ("by_hand", "passed", 4),
        ("no_table", "unchecked", 5),
        ("sellers_do_not_see_status", "passed", 6),
    ] {
        let found = result(name);
        assert_eq!((&found["outcome"], &found["line"]), (&json!(outcome), &json!(line)), "{found}");
    }
    assert!(result("four_orders")["message"].as_str().unwrap().contains('4'), "{ended}");
    let wrong = result("tests/wrong.yml");
    assert_eq!((&wrong["outcome"], &wrong["file"]), (&json!("unchecked"), &json!("tests/wrong.yml")), "{wrong}");
    let path = format!("/api/v1/data-tests/runs/{}", ended["id"].as_str().unwrap());
    let (_, seen) = ask(&server, &seller, "GET", &path);
    let messages = seen["results"].as_array().unwrap().iter().filter(|result| !result["message"].is_null()).count();
    assert_eq!(messages, 0, "policies hide values from this administrator: {seen}");
    // The next run reads the file as it is then.
    std::fs::write(project.path().join("tests/orders.yml"), CASES.replace("orders.count: 4", "orders.count: 3"))
        .unwrap();
    let (_, run) = ask(&server, &admin, "POST", "/api/v1/data-tests/run");
    let corrected = last(&server, &admin, run["id"].as_str());
    let outcomes = corrected["results"].as_array().unwrap().iter();
    assert!(outcomes.clone().any(|result| result["name"] == "four_orders" && result["outcome"] == "passed"));
}

#[test]
fn last_results_are_printed() {
    let project = Scratch::empty().with("service_project.yml", SETTINGS).with("cubes/orders.yml", CUBES);
    let admin = key(&project, "boss", "read,admin");
    let print =
        |arguments: &[&str]| Program::new(BINARY, &["test"], project.path()).arguments(arguments).run().unwrap();
    let none = print(&["--last"]);
    insta::assert_snapshot!(none.messages(project.path()), @r"
    error: no server has run the data tests yet
      hint: Set `data_tests.schedule`, or request a run with POST /api/v1/data-tests/run.
    ");
    assert!(print(&["--last", "--filter", "id"]).stderr.contains("--filter"));
    let server = Program::new(BINARY, &["serve"], project.path()).arguments(&["--port", "0"]).serve().unwrap();
    ask(&server, &admin, "POST", "/api/v1/data-tests/run");
    let ended = last(&server, &admin, None);
    let printed = print(&["--last"]);
    assert!(printed.stdout.contains("pass orders.id: not_null"), "{}", printed.stdout);
    assert!(printed.stdout.contains("FAIL orders.status: accepted_values (cubes/orders.yml:6)"), "{}", printed.stdout);
    assert!(printed.stdout.contains("2 passed, 2 failed, 1 unchecked, at "), "{}", printed.stdout);
    let json: Value = serde_json::from_str(&print(&["--last", "--json"]).stdout).unwrap();
    assert_eq!(json["id"], ended["id"], "{json}");
}

#[test]
fn schedule_runs_the_tests() {
    let settings = format!("{SETTINGS}data_tests: {{schedule: \"* * * * *\", timezone: Europe/Berlin}}\n");
    let project = Scratch::empty().with("service_project.yml", settings.as_str()).with("cubes/orders.yml", CUBES);
    let admin = key(&project, "boss", "read,admin");
    let server = Program::new(BINARY, &["serve"], project.path()).arguments(&["--port", "0"]).serve().unwrap();
    let (_, tests) = ask(&server, &admin, "GET", "/api/v1/data-tests");
    assert_eq!((&tests["schedule"], &tests["timezone"]), (&json!("* * * * *"), &json!("Europe/Berlin")), "{tests}");
    assert!(tests["next_run_at"].is_string(), "{tests}");
    let last = last(&server, &admin, None);
    assert_eq!((&last["requested_by"], &last["status"]), (&Value::Null, &json!("failed")), "{last}");
}

#[test]
fn invalid_schedules_are_refused() {
    for (section, text) in [
        ("{schedule: daily}", "data_tests.schedule"),
        ("{schedule: \"0 0 31 2 *\"}", "data_tests.schedule"),
        ("{schedule: \"0 6 * * *\", timezone: Mars/Olympus}", "data_tests.timezone"),
        ("{shedule: \"0 6 * * *\"}", "schedule"),
    ] {
        let settings = format!("{SETTINGS}data_tests: {section}\n");
        let project = Scratch::empty().with("service_project.yml", settings.as_str()).with("cubes/orders.yml", CUBES);
        let refused = Program::new(BINARY, &["check"], project.path()).run().unwrap();
        assert!(refused.stdout.contains(text), "{section}: {} {}", refused.stdout, refused.stderr);
    }
}
