//! Tests the commands of the optional modules over a real state database: the same checks, versions and audit records
//! as the routes.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::fs;

use serde_json::{Value, json};
use terrane_system_tests::{Output, Program, Scratch};

use crate::BINARY;

const SETTINGS: &str = "name: scratch\nwarehouse: {type: duckdb, init: [\"CREATE TABLE t AS SELECT i AS id, \
                        DATE '2024-01-01' + i::INTEGER AS day FROM range(60) r(i)\"]}\n\
                        governance: {allow_self_certification: true}\n";
const CUBES: &str = "cubes:\n  - name: t\n    sql_table: t\n    dimensions:\n      - {name: id, type: number, sql: id, \
                     primary_key: true}\n      - {name: day, type: time, sql: day, primary_time: true}\n    measures:\n      - \
                     {name: count, type: count}\n";

fn project() -> Scratch {
    Scratch::project().with("service_project.yml", SETTINGS).with("cubes/t.yml", CUBES)
}

fn run(command: &[&str], project: &Scratch, arguments: &[&str]) -> Output {
    Program::new(BINARY, command, project.path()).arguments(arguments).run().unwrap()
}

/// Runs a command whose arguments before the folder include values.
fn record(command: &[&str], project: &Scratch, arguments: &[&str]) -> Value {
    let arguments: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
    let output = run(command, project, &arguments);
    assert_eq!(output.code, Some(0), "{command:?} {output:?}");
    serde_json::from_str(&output.stdout).expect(&output.stdout)
}

/// Asserts that a command fails with a message and changes nothing.
fn refusal(command: &[&str], project: &Scratch, arguments: &[&str], words: &str) {
    let output = run(command, project, arguments);
    assert_eq!(output.code, Some(1), "{command:?} {output:?}");
    assert!(output.stderr.contains(words), "{command:?} {words}: {}", output.stderr);
}

#[test]
fn guardrails_of_a_user_are_set_and_hold_for_checks() {
    let project = project();
    let set = record(&["cost", "set-guardrails", "{\"max_rows_returned\": 10}"], &project, &["--user", "ada"]);
    assert_eq!(set["guardrails"]["max_rows_returned"], 10, "{set}");
    let shown = record(&["cost", "show-guardrails"], &project, &["--user", "ada"]);
    assert_eq!(shown["guardrails"], set["guardrails"], "{shown}");
    let query = r#"{"measures": ["t.count"], "dimensions": ["t.id"], "limit": 50}"#;
    let check = Program::new(BINARY, &["cost", "check-guardrails"], project.path());
    let checked = check.arguments(&[query, "--user", "ada", "--json"]).run().unwrap();
    assert_eq!(checked.code, Some(0), "{checked:?}");
    let checked: Value = serde_json::from_str(&checked.stdout).unwrap();
    assert_eq!(checked["allowed"], false, "{checked}");
    refusal(
        &["cost", "set-guardrails", "{\"max_rows_returned\": -1}"],
        &project,
        &["--user", "ada"],
        "max_rows_returned",
    );
    refusal(&["cost", "set-guardrails", "{\"max_rows\": 1}"], &project, &["--user", "ada"], "max_rows");
    refusal(
        &["cost", "set-guardrails", "{\"max_rows_returned\": 5}"],
        &project,
        &["--user", "ada", "--if-match", "99"],
        "version",
    );
    let removed = run(&["cost", "remove-guardrails"], &project, &["--user", "ada"]);
    assert_eq!(removed.code, Some(0), "{removed:?}");
    let effective = record(&["cost", "effective-guardrails"], &project, &["--user", "ada"]);
    assert!(!effective.to_string().contains("\"max_rows_returned\":10"), "{effective}");
    let audit = run(&["audit", "list"], &project, &["--json"]).stdout;
    assert!(audit.contains("guardrail"), "{audit}");
}

#[test]
fn certification_moves_by_commands() {
    let project = project();
    let moves = |action: &str, more: &[&str]| {
        record(&["governance", "certification", action, "measure/t.count"], &project, more)
    };
    assert_eq!(moves("submit", &["--notes", "Agreed."])["status"], "pending_review");
    refusal(
        &["governance", "certification", "deprecate", "measure/t.count"],
        &project,
        &["--reason", "old"],
        "deprecate",
    );
    let certified = moves("certify", &["--valid-until", "2099-12-31"]);
    assert_eq!((&certified["status"], &certified["valid_until"]), (&json!("certified"), &json!("2099-12-31")));
    let listed = record(&["governance", "certification", "list"], &project, &["--status", "certified"]);
    assert!(listed.to_string().contains("t.count"), "{listed}");
    refusal(&["governance", "certification", "status", "measure/t.nothing"], &project, &[], "t.nothing");
    refusal(&["governance", "certification", "list"], &project, &["--status", "submitted"], "submitted");
    assert_eq!(moves("deprecate", &["--reason", "old"])["status"], "deprecated");
}

#[test]
fn terms_and_owners_change_by_commands() {
    let project = project();
    let term = "{\"name\": \"Rows\", \"definition\": \"All rows.\"}";
    let created = record(&["governance", "glossary", "create", term], &project, &[]);
    let id = created["id"].as_str().expect("an id").to_owned();
    refusal(&["governance", "glossary", "create", term], &project, &[], "Rows");
    let changed = record(&["governance", "glossary", "change", &id, "definition: Each row."], &project, &[]);
    assert_eq!(changed["definition"], "Each row.", "{changed}");
    refusal(&["governance", "glossary", "change", &id, "definition: Late."], &project, &["--if-match", "1"], "version");
    let linked =
        run(&["governance", "glossary", "link", &id, "measure/t.count"], &project, &["--relationship", "defines"]);
    assert_eq!(linked.code, Some(0), "{linked:?}");
    let owners = record(&["governance", "owners", "assign", "cube/t", "ada"], &project, &["--role", "data_owner"]);
    assert!(owners.to_string().contains("ada"), "{owners}");
    refusal(&["governance", "owners", "assign", "cube/t", "ada"], &project, &["--role", "boss"], "boss");
    let history = record(&["governance", "history"], &project, &[]).to_string();
    assert!(history.contains("t.count") || history.contains("Rows"), "{history}");
}

#[test]
fn monitors_are_created_run_and_deleted_by_commands() {
    let project = project();
    let monitor = json!({
        "name": "Rows of a day", "cube_name": "t", "measure_name": "count", "granularity": "day", "detector_type": "z_score",
        "schedule": "0 6 * * *",
    });
    fs::write(project.path().join("monitor.json"), monitor.to_string()).unwrap();
    let file = format!("@{}", project.path().join("monitor.json").display());
    let created = record(&["anomaly", "create-monitor", &file], &project, &[]);
    let id = created["id"].as_str().expect("an id").to_owned();
    let shown = record(&["anomaly", "show-monitor", &id], &project, &[]);
    assert_eq!(shown["name"], "Rows of a day", "{shown}");
    let round = run(&["anomaly", "run-monitor", &id], &project, &["--json"]);
    assert_eq!(round.code, Some(0), "{round:?}");
    let nameless = "{\"name\": \"x\", \"schedule\": \"0 6 * * *\"}";
    refusal(&["anomaly", "create-monitor", nameless], &project, &[], "measure_name");
    refusal(&["anomaly", "show-monitor", "unknown"], &project, &[], "monitor");
    let deleted = run(&["anomaly", "delete-monitor", &id], &project, &[]);
    assert_eq!(deleted.code, Some(0), "{deleted:?}");
    refusal(&["anomaly", "show-monitor", &id], &project, &[], "monitor");
}

#[test]
fn stored_profiles_are_read_by_commands() {
    let project = project();
    let stored = run(&["profile"], &project, &["t", "--store", "--json"]);
    assert_eq!(stored.code, Some(0), "{stored:?}");
    let stored: Value = serde_json::from_str(&stored.stdout).unwrap();
    let newest = run(&["profile"], &project, &["t", "--newest", "--json"]);
    assert_eq!(newest.code, Some(0), "{newest:?}");
    let newest: Value = serde_json::from_str(&newest.stdout).unwrap();
    assert_eq!(stored["overall_quality_score"], newest["overall_quality_score"]);
    assert!(newest["overall_quality_score"].is_number(), "{newest}");
    refusal(&["profile"], &project, &["nothing", "--newest"], "nothing");
}
