//! Tests string dimensions over columns of other types: enums, UUIDs, times of day, JSON and integers compare, sort and
//! search as strings, by code point.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use serde_json::Value;
use terrane_system_tests::{Program, Scratch};

use crate::BINARY;

const CUBES: &str = r#"cubes:
  - name: t
    sql: |
      SELECT id, CAST(mood AS ENUM('sad', 'ok', 'happy')) AS mood, CAST(code AS UUID) AS code, CAST(opens AS TIME) AS opens,
             CAST(note AS JSON) AS note
      FROM (VALUES
        (1, 'sad', '00000000-0000-0000-0000-00000000000a', '08:30', '"x"'),
        (2, 'ok', '00000000-0000-0000-0000-00000000000b', '17:00', '{}'),
        (10, 'happy', NULL, NULL, NULL)) AS v(id, mood, code, opens, note)
    dimensions:
      - {name: key, type: number, sql: id, primary_key: true}
      - {name: id, type: string, sql: id}
      - {name: mood, type: string, sql: mood}
      - {name: code, type: string, sql: code}
      - {name: opens, type: string, sql: opens}
      - {name: note, type: string, sql: note}
    measures:
      - {name: count, type: count}
      - {name: last_mood, type: max, sql: mood}
      - {name: moods, type: count_distinct, sql: mood}
"#;
const CASES: &str = r#"tests:
  - name: enums_sort_by_code_point
    query: {measures: [t.count], dimensions: [t.mood], order_by: [{field: t.mood}]}
    rows: [{t.mood: happy, t.count: 1}, {t.mood: ok, t.count: 1}, {t.mood: sad, t.count: 1}]
  - name: the_largest_enum_is_by_code_point
    query: {measures: [t.last_mood, t.moods]}
    rows: [{t.last_mood: sad, t.moods: 3}]
  - name: integers_sort_as_strings
    query: {measures: [t.count], dimensions: [t.id], order_by: [{field: t.id}]}
    rows: [{t.id: "1", t.count: 1}, {t.id: "10", t.count: 1}, {t.id: "2", t.count: 1}]
  - name: integers_are_compared_with_any_string
    query: {measures: [t.count], filters: [{dimension: t.id, operator: equals, value: sad}]}
    rows: [{t.count: 0}]
  - name: parts_of_integers_are_found
    query: {measures: [t.count], filters: [{dimension: t.id, operator: contains, value: "1"}]}
    rows: [{t.count: 2}]
  - name: uuids_are_compared_with_any_string
    query: {measures: [t.count], filters: [{dimension: t.code, operator: equals, value: nosuch}]}
    rows: [{t.count: 0}]
  - name: parts_of_uuids_are_found
    query: {measures: [t.count], filters: [{dimension: t.code, operator: endsWith, value: "0b"}]}
    rows: [{t.count: 1}]
  - name: parts_of_times_are_found
    query: {measures: [t.count], filters: [{dimension: t.opens, operator: startsWith, value: "08"}]}
    rows: [{t.count: 1}]
  - name: documents_are_compared_as_strings
    query: {measures: [t.count], filters: [{dimension: t.note, operator: equals, value: "{}"}]}
    rows: [{t.count: 1}]
"#;

#[test]
fn strings_over_other_types_compare_by_code_point() {
    let project = Scratch::empty().with("service_project.yml", "name: special\nwarehouse: {type: duckdb}\n");
    let project = project.with("cubes/t.yml", CUBES).with("tests/all.yml", CASES);
    let output = Program::new(BINARY, &["test"], project.path()).arguments(&["--json"]).run().unwrap();
    let json: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{}", output.stderr));
    assert_eq!(output.code, Some(0), "{json:#}");
    assert_eq!(json["passed"], 9, "{json:#}");
}
