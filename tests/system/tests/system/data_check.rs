//! Tests `check --data`: rows that contradict the project are reported at the project's place, with counts and keys.

use serde_json::{Value, json};
use terrane_system_tests::{FLIGHTS, Scratch, path};

use crate::run;

const BROKEN: &str = "tests/system/projects/broken_keys";

/// The expected findings: code, severity, line, and the end of the message.
const FOUND: &[(&str, &str, u64, &str)] = &[
    ("null-key", "error", 6, "the primary key of `customers` is null in 1 row: id null (1 row)"),
    ("repeated-key", "error", 6, "the primary key of `customers` repeats: 1 key in 2 rows: id \"2\" (2 rows)"),
    (
        "join-finds-nothing",
        "error",
        29,
        "but 3 rows of `orders` matched no row: customer_id \"9\" (2 rows); customer_id null (1 row)",
    ),
    (
        "repeated-join-key",
        "error",
        30,
        "to `regions` is many_to_one, but its name repeats: 1 key in 2 rows: name \"north\" (2 rows)",
    ),
    (
        "ambiguous-join",
        "error",
        33,
        "to `rates` is many_to_one, but 1 row of `orders` matched several rows: amount \"10\" (2 rows)",
    ),
    ("join-finds-nothing", "error", 33, "but 1 row of `orders` matched no row: amount \"25\" (1 row)"),
    (
        "one-to-one-repeats",
        "warning",
        35,
        "several rows of `orders` match the same row: 1 row of `invoices`: number \"101\" (2 rows)",
    ),
];

#[test]
fn broken_keys_and_joins_are_reported_with_their_rows() {
    let plain = run("check", &path(BROKEN), &["--json"]);
    assert_eq!(plain.code, Some(0), "without --data no row is read: {}", plain.stdout);
    let output = run("check", &path(BROKEN), &["--data", "--json"]);
    assert_eq!(output.code, Some(1), "{}", output.stderr);
    let json: Value = serde_json::from_str(&output.stdout).unwrap();
    let problems = json["problems"].as_array().unwrap();
    for (code, severity, line, words) in FOUND {
        let is_same = |problem: &&Value| {
            problem["code"] == *code
                && problem["severity"] == *severity
                && problem["line"] == *line
                && problem["message"].as_str().is_some_and(|message| message.contains(words))
        };
        assert!(problems.iter().any(|problem| is_same(&problem)), "{code} of line {line} is not in\n{json:#}");
    }
    assert_eq!(problems.len(), FOUND.len(), "{json:#}");
    assert_eq!((&json["errors"], &json["warnings"], &json["ok"]), (&json!(6), &json!(1), &json!(false)));
    assert!(problems.iter().all(|problem| problem["hint"].is_string()), "{json:#}");

    let drawn = run("check", &path(BROKEN), &["--data"]);
    assert_eq!((drawn.code, drawn.stderr.as_str()), (Some(1), ""), "{}", drawn.stdout);
    for words in ["cubes/all.yml:6:16: error[repeated-key]", "6 errors, 1 warning", "checks on rows"] {
        assert!(drawn.stdout.contains(words), "{words} is not in\n{}", drawn.stdout);
    }
}

#[test]
fn example_data_satisfies_its_claims() {
    let output = run("check", &path(FLIGHTS), &["--data"]);
    assert_eq!(output.code, Some(0), "{}", output.stdout);
    assert!(output.stdout.starts_with("ok: ") && output.stdout.contains("checks on rows"), "{}", output.stdout);
}

#[test]
fn one_to_many_join_of_many_rows_to_one_is_reported() {
    let settings = "name: t\nwarehouse: {type: duckdb}\n";
    let cubes = "cubes:\n  - name: orders\n    sql: SELECT unnest([1, 2, 3]) AS id, unnest([1, 1, 2]) AS customer_id\n    \
        joins: [{name: customers, relationship: one_to_many, sql: \"{orders}.customer_id = {customers}.id\"}]\n    \
        dimensions: [{name: id, type: number, sql: id, primary_key: true}]\n  \
        - name: customers\n    sql: SELECT unnest([1, 2]) AS id\n    \
        dimensions: [{name: id, type: number, sql: id, primary_key: true}]\n";
    let project = Scratch::empty().with("service_project.yml", settings).with("cubes/all.yml", cubes);
    let output = run("check", project.path(), &["--data"]);
    assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
    for words in [
        "warning[one-to-many-repeats]",
        "several rows of `orders` match the same row: 1 row of `customers`",
        "many_to_one",
    ] {
        assert!(output.stdout.contains(words), "{words} is not in\n{}", output.stdout);
    }
    let reversed =
        cubes.replace("name: customers, relationship: one_to_many", "name: customers, relationship: many_to_one");
    let project = project.with("cubes/all.yml", &reversed);
    assert!(run("check", project.path(), &["--data"]).stdout.starts_with("ok: "));
}
