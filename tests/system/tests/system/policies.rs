//! Tests policies over real rows: values from claims that an unsafe cast would accept, and hidden rows that error
//! messages must not reveal.

use std::fs;

use serde_json::Value;
use terrane_system_tests::Scratch;

use crate::run;

const SETTINGS: &str = "name: wards\nsecurity: {anonymous: {scopes: [read]}}\nwarehouse:\n  type: duckdb\n  init:\n    \
    - \"CREATE TABLE visits AS SELECT * FROM (VALUES (1, '5', DATE '2024-05-01'), (2, '5 or so', DATE '2024-05-02'), \
    (3, 'x', NULL)) AS v(id, ward, day)\"\n";
const CUBE: &str = "cubes:\n  - name: visits\n    sql_table: visits\n    dimensions:\n      \
    - {name: id, type: number, sql: id, primary_key: true}\n    measures:\n      - {name: count, type: count}\n";
/// Policies over plain columns, whose types are only known to the warehouse.
const POLICIES: &str = "policies:\n  - {name: ward, cubes: [visits], when: {roles: [nurse]}, row_filter: \"{visits}.ward = {{ user.attributes.ward }}\"}\n  \
    - {name: ids, cubes: [visits], when: {roles: [clerk]}, row_filter: \"{visits}.id IN {{ user.attributes.ids }}\"}\n  \
    - {name: since, cubes: [visits], when: {roles: [archivist]}, row_filter: \"{visits}.day >= {{ user.attributes.since }}\"}\n";

#[test]
fn claims_have_the_type_of_the_compared_column() {
    let project = Scratch::empty().with("service_project.yml", SETTINGS).with("cubes/visits.yml", CUBE);
    let project = project.with("policies/visits.yml", POLICIES);
    for (caller, count) in [
        (r#"{"roles": ["nurse"], "attributes": {"ward": 5}}"#, 1),
        (r#"{"roles": ["nurse"], "attributes": {"ward": "5"}}"#, 1),
        (r#"{"roles": ["nurse"], "attributes": {"ward": 5.0}}"#, 1),
        (r#"{"roles": ["nurse"], "attributes": {"ward": 5.5}}"#, 0),
        (r#"{"roles": ["clerk"], "attributes": {"ids": ["1", 3]}}"#, 2),
        (r#"{"roles": ["clerk"], "attributes": {"ids": ["1", "3 or so"]}}"#, 0),
        (r#"{"roles": ["archivist"], "attributes": {"since": "2024-05-02"}}"#, 1),
        (r#"{"roles": ["archivist"], "attributes": {"since": "long ago"}}"#, 0),
    ] {
        let as_caller = project.path().join("caller.json");
        fs::write(&as_caller, caller).unwrap();
        let query = r#"{"measures": ["visits.count"]}"#;
        let output = run("query", project.path(), &[query, "--json", "--as", as_caller.to_str().unwrap()]);
        assert_eq!(output.code, Some(0), "{caller}: {}", output.stderr);
        let answer: Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!(answer[0]["visits.count"], count, "{caller}: {}", output.stdout);
    }
}

/// A project in which codes and days can be cast only in the rows that a policy shows.
const CODES: &str = r#"name: codes
security: {anonymous: {scopes: [read]}}
warehouse:
  type: duckdb
  init:
    - "CREATE TABLE orders AS SELECT i AS id, i // 1000 AS customer_id, i % 1000 = 0 AS is_ours, CASE WHEN is_ours THEN 'EU' ELSE 'US' END AS region, CASE WHEN is_ours THEN '' ELSE 'x' END || i AS code, CASE WHEN is_ours THEN '2024-01-0' || (1 + i // 200000) ELSE 'never' END AS day FROM range(1000000) AS t(i)"
    - "CREATE TABLE customers AS SELECT i AS id, i % 1000 AS district_id, CASE WHEN i % 1000 = 0 THEN '' ELSE 'x' END || i AS code FROM range(1000000) AS t(i)"
    - "CREATE TABLE districts AS SELECT i AS id, CASE WHEN i = 0 THEN 'north' ELSE 'south' END AS name FROM range(1000) AS t(i)"
"#;
const CODED: &str = r#"cubes:
  - name: orders
    sql_table: orders
    joins:
      - {name: customers, relationship: many_to_one, sql: "{orders}.customer_id = {customers}.id"}
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: number, type: number, sql: "CAST({orders}.code AS INTEGER)"}
      - {name: day, type: time, timezone: none, sql: "CAST({orders}.day AS DATE)"}
    measures:
      - {name: count, type: count}
    segments:
      - {name: even, sql: "{number} % 2000 = 0"}
  - name: customers
    sql_table: customers
    joins:
      - {name: orders, relationship: one_to_many, sql: "{customers}.id = {orders}.customer_id"}
      - {name: districts, relationship: many_to_one, sql: "{customers}.district_id = {districts}.id"}
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: number, type: number, sql: "CAST({customers}.code AS INTEGER)"}
    measures:
      - {name: count, type: count}
  - name: districts
    sql_table: districts
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: name, type: string, sql: name}
"#;
const SHOWN: &str = r#"policies:
  - {name: region, cubes: [orders], when: {roles: [seller]}, row_filter: "{orders}.region = {{ user.attributes.region }}"}
  - {name: district, cubes: [customers], when: {roles: [agent]}, row_filter: "{districts}.name = {{ user.attributes.district }}"}
"#;

/// Tests that the conditions of a caller are never evaluated on hidden rows, because an error could disclose values.
/// Without a protection, an engine may evaluate these conditions before the condition of the policy.
#[test]
fn caller_conditions_are_never_evaluated_on_hidden_rows() {
    let project = Scratch::empty().with("service_project.yml", CODES).with("cubes/orders.yml", CODED);
    let project = project.with("policies/orders.yml", SHOWN);
    let seller = r#"{"roles": ["seller"], "attributes": {"region": "EU"}}"#;
    let agent = r#"{"roles": ["agent"], "attributes": {"district": "north"}}"#;
    let by_number = r#"{"measures": ["orders.count"], "filters": [{"member": "orders.number", "operator": "gt", "value": 500000}]}"#;
    let by_day = r#"{"measures": ["orders.count"], "time_range": {"dimension": "orders.day", "start": "2024-01-01", "end": "2024-01-02"}}"#;
    let by_segment = r#"{"measures": ["orders.count"], "segments": ["orders.even"]}"#;
    let by_group = r#"{"measures": ["orders.count"], "dimensions": ["orders.number"], "filters": [{"or": [{"member": "orders.number", "operator": "equals", "value": 7000}, {"member": "orders.count", "operator": "gt", "value": 1}]}]}"#;
    let by_orders = r#"{"measures": ["customers.count"], "filters": [{"member": "orders.number", "operator": "gt", "value": 500000}]}"#;
    let by_customer = r#"{"measures": ["customers.count"], "filters": [{"member": "customers.number", "operator": "gt", "value": 500000}]}"#;
    let of_customers =
        r#"{"measures": ["orders.count"], "filters": [{"member": "customers.number", "operator": "lt", "value": 5}]}"#;
    for (caller, query, measure, count) in [
        (seller, by_number, "orders.count", 499),
        (seller, by_day, "orders.count", 400),
        (seller, by_segment, "orders.count", 500),
        (seller, by_group, "orders.count", 1),
        (seller, by_orders, "customers.count", 499),
        (agent, by_customer, "customers.count", 499),
        (agent, of_customers, "orders.count", 1000),
    ] {
        let as_caller = project.path().join("caller.json");
        fs::write(&as_caller, caller).unwrap();
        let output = run("query", project.path(), &[query, "--json", "--as", as_caller.to_str().unwrap()]);
        assert_eq!(output.code, Some(0), "{query}: {}", output.stderr);
        let answer: Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!(answer[0][measure], count, "{query}: {}", output.stdout);
    }
}
