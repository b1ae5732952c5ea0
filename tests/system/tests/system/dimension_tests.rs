//! Tests rules for the values of dimensions, and cases with other callers: their outcomes, the report for CI servers,
//! and mistakes in their files.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use serde_json::{Value, json};
use terrane_system_tests::{Program, Scratch};

use crate::BINARY;

const SETTINGS: &str = "name: shop\nwarehouse: {type: duckdb}\n";
const CUBES: &str = r#"cubes:
  - name: customers
    sql: "SELECT * FROM read_csv('customers.csv')"
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: region, type: string, sql: region, tests: [not_null, {accepted_values: [north, south]}]}
      - {name: email, type: string, sql: email, tests: [unique]}
  - name: orders
    sql: "SELECT * FROM read_csv('orders.csv')"
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true, tests: [unique, not_null]}
      - {name: customer_id, type: number, sql: customer_id, tests: [{relationships: customers.id}]}
      - {name: rating, type: number, sql: rating, tests: [{accepted_values: [1, 2, 3]}]}
      - {name: region, type: string, sql: "{customers.region}", tests: [not_null]}
    measures:
      - {name: count, type: count}
    joins:
      - {name: customers, relationship: many_to_one, sql: "{CUBE}.customer_id = {customers.id}"}
"#;
const POLICIES: &str = r#"policies:
  - {name: region, cubes: [customers], when: {roles: [seller]}, row_filter: "{customers}.region = {{ user.attributes.region }}"}
"#;
const CUSTOMERS: &str = "id,region,email\n1,north,a@x.org\n2,south,b@x.org\n3,East,a@x.org\n4,,\n5,,\n";
const ORDERS: &str = "id,customer_id,rating\n1,1,1\n2,2,3\n3,9,4\n4,,2\n5,9,4\n6,4,\n";
const CASES: &str = r#"tests:
  - name: seller_sees_own_region
    ordered: false
    as: {user_id: s1, roles: [seller], attributes: {region: north}}
    query: {measures: [orders.count], dimensions: [customers.region]}
    rows: [{customers.region: north, orders.count: 1}, {customers.region: null, orders.count: 5}]
"#;

fn project() -> Scratch {
    let project = Scratch::empty().with("service_project.yml", SETTINGS).with("cubes/all.yml", CUBES);
    let project = project.with("policies/all.yml", POLICIES).with("tests/all.yml", CASES);
    project.with("customers.csv", CUSTOMERS).with("orders.csv", ORDERS)
}

fn output(project: &Scratch, command: &str, arguments: &[&str]) -> (Option<i32>, Value) {
    let output = Program::new(BINARY, &[command], project.path()).arguments(arguments).run().unwrap();
    let json = serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{}{}", output.stdout, output.stderr));
    (output.code, json)
}

#[test]
fn values_that_violate_a_rule_are_listed() {
    let project = project();
    let report = project.path().join("report.xml");
    let (code, outcome) = output(&project, "test", &["--json", "--junit", report.to_str().unwrap()]);
    assert_eq!(code, Some(1), "{outcome:#}");
    let failed: Vec<[&str; 2]> = outcome["cases"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|case| case["ok"] == false)
        .map(|case| [case["name"].as_str().unwrap(), case["failure"].as_str().unwrap()])
        .collect();
    let expected = [
        ["customers.region: not_null", "`customers.region` is null in 2 rows: id \"4\" (1 row); id \"5\" (1 row)"],
        [
            "customers.region: accepted_values",
            "`customers.region` has 1 value outside of its `accepted_values`, in 1 row: region \"East\" (1 row)",
        ],
        ["customers.email: unique", "`customers.email` repeats: 1 value in 2 rows: email \"a@x.org\" (2 rows)"],
        [
            "orders.customer_id: relationships customers.id",
            "`orders.customer_id` has 1 value that `customers.id` lacks, in 2 rows: customer_id \"9\" (2 rows)",
        ],
        [
            "orders.rating: accepted_values",
            "`orders.rating` has 1 value outside of its `accepted_values`, in 2 rows: rating \"4\" (2 rows)",
        ],
        [
            "orders.region: not_null",
            "`orders.region` is null in 4 rows: id \"3\" (1 row); id \"4\" (1 row); id \"5\" (1 row); id \"6\" (1 row)",
        ],
    ];
    assert_eq!(failed, expected);
    assert_eq!((&outcome["passed"], &outcome["failed"]), (&json!(3), &json!(6)));
    let xml = std::fs::read_to_string(report).unwrap();
    assert!(xml.contains("tests=\"9\" failures=\"6\"") && xml.contains("<testsuite name=\"cubes/all.yml\""), "{xml}");

    let (code, checked) = output(&project, "check", &["--data", "--json"]);
    assert_eq!(code, Some(1), "{checked:#}");
    let errors = checked["problems"].as_array().unwrap().iter().filter(|problem| problem["severity"] == "error");
    let codes: Vec<&str> = errors.filter_map(|problem| problem["code"].as_str()).collect();
    let expected =
        ["null-value", "unexpected-value", "repeated-value", "unmatched-value", "unexpected-value", "null-value"];
    assert_eq!(codes, expected, "{checked:#}");

    let (code, chosen) = output(&project, "test", &["--json", "--filter", "orders.id"]);
    assert_eq!((code, &chosen["passed"]), (Some(0), &json!(2)), "{chosen:#}");
}

#[test]
fn mistakes_in_rules_and_callers_have_a_place() {
    let cubes = r#"cubes:
  - name: orders
    sql: "SELECT * FROM read_csv('orders.csv')"
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true, tests: [uniqe, accepted_values, [unique]]}
      - {name: rating, type: number, sql: rating, tests: [{accepted_values: [one, null]}, {accepted_values: []}]}
      - {name: customer_id, type: number, sql: customer_id, tests: [{relationships: customer.id}]}
      - {name: other_id, type: number, sql: customer_id, tests: [{relationships: orders.idd}, {relationships: orders}]}
      - {name: day, type: time, sql: "DATE '2024-01-01'", tests: [{accepted_values: ["2024"]}, {uniqe: true}]}
"#;
    let cases = "tests:\n  - {name: a, as: {role: [seller]}, query: {measures: []}, rows: []}\n";
    let project = Scratch::empty().with("service_project.yml", SETTINGS).with("cubes/all.yml", cubes);
    let project = project.with("tests/all.yml", cases).with("orders.csv", ORDERS);
    let (code, checked) = output(&project, "check", &["--json"]);
    assert_eq!(code, Some(1), "{checked:#}");
    let found: Vec<(u64, &str)> = checked["problems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|problem| (problem["line"].as_u64().unwrap(), problem["code"].as_str().unwrap()))
        .collect();
    for expected in [
        (5, "unknown-value"),
        (5, "missing-value"),
        (5, "wrong-type"),
        (6, "value-mismatch"),
        (6, "missing-value"),
        (7, "unknown-cube"),
        (8, "unknown-member"),
        (8, "wrong-value"),
        (9, "misplaced-field"),
        (9, "unknown-key"),
        (2, "wrong-expectation"),
    ] {
        assert!(found.contains(&expected), "{expected:?} is not in {checked:#}");
    }
}

#[test]
fn duplicate_and_unknown_tests_are_reported_with_all_possible_ones() {
    let cubes = r#"cubes:
  - name: orders
    sql: "SELECT * FROM read_csv('orders.csv')"
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true, tests: [not_null, not_null]}
      - {name: rating, type: number, sql: rating, tests: [{accepted_values: [1]}, {accepted_values: [1]}]}
      - {name: other, type: number, sql: rating, tests: [{accepted_values: [1]}, {accepted_values: [2]}]}
      - {name: customer_id, type: number, sql: customer_id, tests: [bogus]}
      - {name: day, type: number, sql: rating, tests: [{not_null: true}]}
      - {name: month, type: number, sql: rating, tests: [{bogus: 1}]}
"#;
    let project = Scratch::empty().with("service_project.yml", SETTINGS).with("cubes/all.yml", cubes);
    let project = project.with("orders.csv", ORDERS);
    let (_, checked) = output(&project, "check", &["--json"]);
    let problems = checked["problems"].as_array().unwrap();
    let found: Vec<(u64, &str, &str)> = problems
        .iter()
        .map(|problem| {
            let text = |key: &str| problem[key].as_str().unwrap();
            (problem["line"].as_u64().unwrap(), text("code"), text("severity"))
        })
        .collect();
    let expected = [
        (5, "duplicate-name", "warning"),
        (6, "duplicate-name", "warning"),
        (8, "unknown-value", "error"),
        (9, "misplaced-field", "error"),
        (10, "unknown-key", "error"),
    ];
    assert_eq!(found, expected, "{checked:#}");
    for line in [8, 10] {
        let problem = problems.iter().find(|problem| problem["line"] == line).unwrap();
        let hint = problem["hint"].as_str().unwrap();
        for test in ["not_null", "unique", "accepted_values", "relationships"] {
            assert!(hint.contains(test), "{hint}");
        }
    }
    let once = cubes.lines().filter(|line| !["bogus", "true}]}"].iter().any(|part| line.contains(part)));
    let project = project.with("cubes/all.yml", &once.collect::<Vec<_>>().join("\n"));
    let (_, outcome) = output(&project, "test", &["--json"]);
    assert_eq!(outcome["cases"].as_array().map(Vec::len), Some(4), "{outcome:#}");
}

#[test]
fn run_without_cases_writes_an_empty_report() {
    let cubes = "cubes:\n  - {name: t, sql: SELECT 1 AS a, measures: [{name: count, type: count}]}\n";
    let project = Scratch::empty().with("service_project.yml", SETTINGS).with("cubes/all.yml", cubes);
    let report = project.path().join("report.xml");
    let run = Program::new(BINARY, &["test"], project.path()).arguments(&["--junit", report.to_str().unwrap()]);
    let output = run.run().unwrap();
    assert_eq!(output.code, Some(1), "{output:?}");
    insta::assert_snapshot!(output.messages(project.path()), @r"
    error: the project has no expectations
      hint: Write cases in tests/*.yml; `terrane test --help` describes them.
    ");
    let written = std::fs::read_to_string(report).unwrap();
    assert!(written.contains("<testsuites name=\"terrane test\" tests=\"0\" failures=\"0\""), "{written}");
}
