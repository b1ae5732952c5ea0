//! Policies whose values come from claims, on rows that a careless cast would let through.

use std::fs;

use serde_json::Value;
use terrane_system_tests::Scratch;

use crate::run;

const SETTINGS: &str = "name: wards\nsecurity: {anonymous: {scopes: [read]}}\nwarehouse:\n  type: duckdb\n  init:\n    \
    - \"CREATE TABLE visits AS SELECT * FROM (VALUES (1, '5', DATE '2024-05-01'), (2, '5 or so', DATE '2024-05-02'), \
    (3, 'x', NULL)) AS v(id, ward, day)\"\n";
const CUBE: &str = "cubes:\n  - name: visits\n    sql_table: visits\n    dimensions:\n      \
    - {name: id, type: number, sql: id, primary_key: true}\n    measures:\n      - {name: count, type: count}\n";
/// Bare columns: only the warehouse knows their types.
const POLICIES: &str = "policies:\n  - {name: ward, cubes: [visits], when: {roles: [nurse]}, row_filter: \"{visits}.ward = {{ user.attributes.ward }}\"}\n  \
    - {name: ids, cubes: [visits], when: {roles: [clerk]}, row_filter: \"{visits}.id IN {{ user.attributes.ids }}\"}\n  \
    - {name: since, cubes: [visits], when: {roles: [archivist]}, row_filter: \"{visits}.day >= {{ user.attributes.since }}\"}\n";

#[test]
fn claims_are_read_as_the_type_that_they_are_compared_with() {
    let project = Scratch::empty().with("service_project.yml", SETTINGS).with("cubes/visits.yml", CUBE);
    let project = project.with("policies/visits.yml", POLICIES);
    for (caller, count) in [
        (r#"{"roles": ["nurse"], "attributes": {"ward": 5}}"#, 1),
        (r#"{"roles": ["nurse"], "attributes": {"ward": "5"}}"#, 1),
        (r#"{"roles": ["nurse"], "attributes": {"ward": 5.0}}"#, 0),
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
