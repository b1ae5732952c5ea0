//! Tests the scans that the compiler reports for a statement.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use serde_json::{Value as Json, json};
use terrane_compiler::model::Model;
use terrane_compiler::sql::{ScannedColumns, StatementShape, scan_statement};
use terrane_compiler::{Authorized, SecurityContext, compile};
use terrane_golden_tests::case::{environment, model, read_query};
use terrane_golden_tests::duckdb_profile;

const PROJECT: &str = r#"
cubes:
  - name: orders
    sql_table: raw.orders
    joins: [{name: customers, relationship: many_to_one, sql: "{orders}.customer_id = {customers}.id"}]
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: status, type: string, sql: "lower(status)"}
      - {name: is_large, type: boolean, sql: "amount > (SELECT avg(amount) FROM raw.orders)"}
    measures:
      - {name: count, type: count}
      - {name: revenue, type: sum, sql: amount}
      - {name: paid, type: sum, sql: amount, filters: [{sql: "state = 'paid'"}]}
  - name: customers
    sql_table: raw.customers
    joins: [{name: regions, relationship: many_to_one, sql: "{customers}.region_id = {regions}.id"}]
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: name, type: string, sql: "\"Full name\""}
    measures: [{name: count, type: count}]
  - name: regions
    sql: SELECT id, name FROM raw.regions WHERE NOT hidden
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: name, type: string, sql: name}
policies:
  - {name: own, cubes: [customers], row_filter: "{regions.name} = 'EU'", when: {roles: [local]}}
"#;

const TYPES: &str = r#"{"orders.id": integer, "orders.status": text, "orders.is_large": boolean,
  "orders.revenue": decimal, "orders.paid": decimal, "customers.id": integer, "customers.name": text, "regions.id": integer,
  "regions.name": text}"#;

fn shape(model: &Model, query: &Json, roles: &[&str]) -> StatementShape {
    let caller =
        SecurityContext { roles: roles.iter().map(|role| (*role).into()).collect(), ..SecurityContext::default() };
    let authorized = Authorized::without_hooks(model, &caller);
    let query = read_query(query).unwrap();
    let sql = compile(&duckdb_profile(), &query, &authorized, &environment()).unwrap();
    StatementShape::clone(&sql.shape)
}

/// Returns each scan as a statement on one line, sorted, with a mark if it is narrowed.
fn scans(model: &Model, query: &Json, roles: &[&str]) -> Vec<String> {
    let shape = shape(model, query, roles);
    let line = |scan| {
        let text = scan_statement(model, &duckdb_profile(), scan).unwrap();
        let words: Vec<&str> = text.split_whitespace().collect();
        format!("{}{}", words.join(" "), if scan.is_narrowed { " *" } else { "" })
    };
    let mut lines: Vec<String> = shape.scans.iter().map(line).collect();
    lines.sort();
    lines
}

#[test]
fn used_columns_of_each_relation_are_reported() {
    let model = model(PROJECT, TYPES);
    let query = json!({"measures": ["orders.revenue", "orders.paid"], "dimensions": ["orders.status"]});
    assert_eq!(
        scans(&model, &query, &[]),
        ["SELECT scanned.amount AS c0, scanned.state AS c1, scanned.status AS c2 FROM raw.orders AS scanned"]
    );
    let counted = json!({"measures": ["orders.count"]});
    assert_eq!(scans(&model, &counted, &[]), ["SELECT 1 AS c0 FROM raw.orders AS scanned"]);
}

#[test]
fn joins_and_filters_narrow_scans() {
    let model = model(PROJECT, TYPES);
    let query = json!({"measures": ["orders.revenue"], "dimensions": ["customers.name"]});
    assert_eq!(
        scans(&model, &query, &[]),
        [
            "SELECT scanned.\"Full name\" AS c0, scanned.id AS c1 FROM raw.customers AS scanned *",
            "SELECT scanned.amount AS c0, scanned.customer_id AS c1 FROM raw.orders AS scanned *",
        ]
    );
    let filtered = json!({"measures": ["orders.count"],
        "filters": [{"member": "orders.status", "operator": "equals", "value": "paid"}]});
    assert_eq!(scans(&model, &filtered, &[]), ["SELECT scanned.status AS c0 FROM raw.orders AS scanned *"]);
    assert_eq!(shape(&model, &query, &[]).joins, 1);
}

#[test]
fn relations_of_row_filters_are_scanned() {
    let model = model(PROJECT, TYPES);
    let query = json!({"measures": ["customers.count"], "dimensions": ["customers.name"]});
    let found = scans(&model, &query, &["local"]);
    assert_eq!(
        found,
        [
            "SELECT scanned.\"Full name\" AS c0, scanned.region_id AS c1 FROM raw.customers AS scanned *",
            "SELECT scanned.id AS c0, scanned.name AS c1 FROM ( SELECT id, name FROM raw.regions WHERE NOT hidden ) \
             AS scanned *",
        ]
    );
}

#[test]
fn queries_in_snippets_have_unknown_scans() {
    let model = model(PROJECT, TYPES);
    let query = json!({"measures": ["orders.count"], "dimensions": ["orders.is_large"]});
    assert!(shape(&model, &query, &[]).has_unknown_scans);
    let plain = shape(&model, &json!({"measures": ["orders.count"], "dimensions": ["orders.status"]}), &[]);
    assert!(!plain.has_unknown_scans);
    assert_eq!((plain.facts, plain.joins, plain.groups), (1, 0, 1));
    let ScannedColumns::Named(columns) = &plain.scans[0].columns else { panic!("named columns") };
    assert_eq!(columns.len(), 1);
}

#[test]
fn facts_are_scanned_separately() {
    let model = model(PROJECT, TYPES);
    let query = json!({"measures": ["orders.revenue", "customers.count"], "dimensions": ["customers.name"]});
    let shape = shape(&model, &query, &[]);
    assert_eq!((shape.facts, shape.groups, shape.scans.len()), (2, 1, 3));
}

const TIMES: &str = r#"
cubes:
  - name: visits
    sql_table: raw.visits
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: day, type: time, sql: day, timezone: none, primary_time: true}
    measures: [{name: count, type: count}]
policies:
  - {name: recent, cubes: [visits], row_filter: "{day} >= '2024-02-01'", when: {roles: [local]}}
"#;

#[test]
fn ranges_of_the_query_are_reported_without_those_of_policies() {
    let model = model(TIMES, r#"{"visits.id": integer, "visits.day": date}"#);
    let query = json!({"measures": ["visits.count"], "time_range": {"start": "2024-01-01", "end": "2024-01-31"}});
    let found = shape(&model, &query, &[]);
    let range = found.scans[0].range.clone().unwrap();
    assert_eq!((&*range.column.text, range.low), ("day", Some(1_704_067_200_000_000)));
    let days = found.range_seconds.unwrap() / 86_400;
    assert!((30..=31).contains(&days), "{days}");
    assert_eq!(shape(&model, &query, &["local"]).scans[0].range, None);
}
