//! Tests asynchronous queries on real servers: a few rounds of kills, and the commands of the operator.

use std::time::Duration;

use serde_json::{Value, json};
use terrane_system_tests::engines::Kind;
use terrane_system_tests::jobs::kills::{KillSettings, run};
use terrane_system_tests::{Program, Scratch, Server, request};

use crate::BINARY;
use crate::engines::start;

/// The number of rounds. `cargo xtask jobs kills` runs 200.
const ROUNDS: u64 = 4;
const JOBS: &str = "/api/v1/query/async";

fn check(state_url: &str, replicas: usize) {
    let report = run(BINARY, state_url, KillSettings { rounds: ROUNDS, replicas, seed: 7 })
        .expect("the servers answer at the end");
    eprintln!("{report}");
    assert!(report.faults.is_empty(), "{report}");
    assert!(report.complete > 0, "{report}");
}

#[test]
fn killed_server_loses_no_job() {
    check("sqlite://state.db", 1);
}

#[test]
fn killed_replicas_on_one_postgres_lose_no_job() {
    let Some(engine) = start(Kind::Postgres) else { return };
    check(&engine.make_database("state").unwrap(), 2);
}

/// Returns a project with a query that runs for hours.
fn slow_project() -> Scratch {
    let settings = "name: slow\nwarehouse: {type: duckdb, init: [\"CREATE VIEW t AS SELECT a.i AS id \
                    FROM range(1000000) AS a(i), range(1000000) AS b(i)\"]}\n\
                    security: {anonymous: {scopes: [read]}}\nmetrics: {enabled: true, public: true}\n";
    Scratch::project().with("service_project.yml", settings)
}

fn command(call: &[&str], project: &Scratch) -> (Option<i32>, String, String) {
    let output = Program::new(BINARY, call, project.path()).arguments(&["--json"]).run().expect("it runs to its end");
    (output.code, output.stdout, output.stderr)
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Returns the number of statements that DuckDB is running, as a string from the metrics.
fn active(server: &Server) -> String {
    let metrics = request(server.address, "GET", "/metrics", None).expect("an answer").body;
    let line = metrics.lines().find(|line| line.starts_with("service_warehouse_connections_active"));
    line.and_then(|line| line.rsplit(' ').next()).unwrap_or_default().to_owned()
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..300 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("not within 30 s: {what}");
}

#[test]
fn operator_lists_shows_and_cancels_jobs() {
    let project = slow_project();
    let server = Program::new(BINARY, &["serve"], project.path()).arguments(&["--port", "0"]).serve().unwrap();
    let body = json!({"measures": ["t.count"], "dimensions": ["t.id"]}).to_string();
    let submitted = request(server.address, "POST", JOBS, Some(&body)).unwrap();
    assert_eq!(submitted.status, 202, "{}", submitted.body);
    let id = submitted.json().unwrap()["job_id"].as_str().unwrap().to_owned();
    let path = format!("{JOBS}/{id}");
    let status = || request(server.address, "GET", &path, None).unwrap().json().unwrap()["status"].clone();
    until("the job runs", || status() == "running" && active(&server) == "1");
    let (code, listed, _) = command(&["jobs", "list"], &project);
    let listed = json(&listed);
    assert_eq!((code, &listed["job_id"], &listed["attempts"]), (Some(0), &json!(id), &json!(1)), "{listed}");
    assert_eq!(json(listed["query"].as_str().unwrap()), json(&body));
    let (code, shown, _) = command(&["jobs", "show", &id], &project);
    assert_eq!((code, &json(&shown)["status"]), (Some(0), &json!("running")));
    for _ in 0..2 {
        let (code, cancelled, _) = command(&["jobs", "cancel", &id], &project);
        assert_eq!((code, &json(&cancelled)["status"]), (Some(0), &json!("cancelled")));
    }
    until("DuckDB stops the statement", || active(&server) == "0");
    let (code, audited, _) = command(&["audit", "list"], &project);
    assert_eq!(code, Some(0));
    let cancelled: Vec<Value> = audited.lines().map(json).filter(|record| record["event"] == "job_cancelled").collect();
    assert_eq!(cancelled.len(), 1, "{audited}");
    let (code, _, message) = command(&["jobs", "show", "unknown"], &project);
    assert_eq!(code, Some(1), "{message}");
    insta::assert_snapshot!(message, @r"
    error: unknown job `unknown`
      hint: Run `terrane jobs list` to see the newest jobs.
    ");
}
