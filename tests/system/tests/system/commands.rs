//! `check`, `query` and `test` on the command line: output, streams, exit codes.

use serde_json::{Value, json};
use terrane_system_tests::{FLIGHTS, Program, Scratch, path};

use crate::{BINARY, program, run};

const QUERY: &str = r#"{"measures": ["flights.count"], "dimensions": ["flights.origin"], "limit": 1}"#;

#[test]
fn the_example_has_no_problem() {
    let output = run("check", &path(FLIGHTS), &[]);
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{}", output.stdout);
    assert!(output.stdout.starts_with("ok: "), "{}", output.stdout);
    let output = run("check", &path(FLIGHTS), &["--json"]);
    let json: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(json, json!({"ok": true, "errors": 0, "warnings": 0, "problems": []}));
}

#[test]
fn a_query_is_answered_as_json_or_as_sql() {
    let output = run("query", &path(FLIGHTS), &[QUERY]);
    assert_eq!(output.stdout, "[{\"flights.origin\":\"EWR\",\"flights.count\":120835}]\n", "{}", output.stderr);
    let output = program("query", &path(FLIGHTS)).arguments(&["-", "--json"]).input(QUERY).run().unwrap();
    assert!(output.code == Some(0) && output.stdout.contains("120835"), "{output:?}");
    let file = Scratch::empty().with("q.json", QUERY);
    let at = format!("@{}/q.json", file.path().display());
    let output = run("query", &path(FLIGHTS), &[&at, "--sql"]);
    assert!(output.code == Some(0) && output.stdout.contains("LIMIT 1"), "{output:?}");
}

#[test]
fn a_query_is_explained_as_a_tree_or_as_json() {
    let output = run("explain", &path(FLIGHTS), &[QUERY]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    for words in
        ["flights.count = measure flights.count", "├─ fact flights\n", "│  ├─ group flights.origin", "└─ warehouse\n"]
    {
        assert!(output.stdout.contains(words), "{words} is not in\n{}", output.stdout);
    }
    let output = run("explain", &path(FLIGHTS), &[QUERY, "--json"]);
    let json: Value = serde_json::from_str(&output.stdout).unwrap();
    assert!(json["warehouse_plan"].is_array() && json["sql"].as_str().unwrap().contains("LIMIT 1"), "{json}");
    let refused = run("explain", &path(FLIGHTS), &[r#"{"measures": ["flights.cuont"]}"#]);
    assert!(refused.code == Some(1) && refused.stderr.contains("INVALID_MEASURE"), "{refused:?}");
}

#[test]
fn a_refused_query_says_what_was_meant() {
    for (query, words) in [
        (r#"{"measures": ["flights.cuont"]}"#, &["INVALID_MEASURE", "flights.cuont", "flights.count"][..]),
        (r#"{"measure": ["flights.count"]}"#, &["INVALID_QUERY", "measure", "measures"][..]),
        ("{", &["INVALID_QUERY"][..]),
        ("@/no/such/file", &["/no/such/file", "hint:"][..]),
    ] {
        let output = run("query", &path(FLIGHTS), &[query]);
        assert_eq!(output.code, Some(1), "{query}");
        assert!(words.iter().all(|word| output.stderr.contains(word)), "{query}: {}", output.stderr);
    }
}

#[test]
fn expectations_pass_and_fail_visibly() {
    let cases = "tests:\n  - name: right\n    query: {measures: [t.count]}\n    rows: [{t.count: 1}]\n  \
                 - name: wrong\n    query: {measures: [t.count]}\n    sql: SELECT 2 AS \"t.count\"\n";
    let project = Scratch::project().with("tests/a.yml", cases);
    let output = run("test", project.path(), &[]);
    assert_eq!(output.code, Some(1), "{}", output.stderr);
    for words in
        ["pass right", "FAIL wrong (tests/a.yml:5:5)", "expected: {t.count: 2}", "actual:   {t.count: 1}", "SQL:"]
    {
        assert!(output.stdout.contains(words), "{words} is not in\n{}", output.stdout);
    }
    assert!(output.stdout.ends_with("s\n") && output.stdout.contains("1 passed, 1 failed"), "{}", output.stdout);
    let output = run("test", project.path(), &["--filter", "right", "--json"]);
    let json: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!((output.code, &json["ok"], &json["passed"]), (Some(0), &json!(true), &json!(1)));
    let output = run("test", project.path(), &["--filter", "nothing"]);
    assert!(output.code == Some(1) && output.stderr.contains("no case of 2 cases"), "{}", output.stderr);
}

#[test]
fn a_wrong_call_has_code_two() {
    for arguments in [&["--port", "many"][..], &["--no-such-switch"]] {
        let output = run("serve", &path(FLIGHTS), arguments);
        assert_eq!(output.code, Some(2), "{}", output.stderr);
    }
    let output = run("sreve", &path(FLIGHTS), &[]);
    assert!(output.code == Some(2) && output.stderr.contains("serve"), "{}", output.stderr);
}

#[test]
fn help_shows_a_newcomer_the_way() {
    for command in ["serve", "init", "check", "query", "explain", "test", "doctor"] {
        let output = run(command, &path(FLIGHTS), &["--help"]);
        assert!(output.code == Some(0) && output.stdout.contains("Examples:"), "{}", output.stdout);
    }
    let output = Program::new(BINARY, &["--help"], &path(FLIGHTS)).run().unwrap();
    for words in ["service_project.yml", "cubes/", "metrics/", "sources/", "models/", "policies/", "tests/"] {
        assert!(output.stdout.contains(words), "{words} is not in\n{}", output.stdout);
    }
    let output = run("query", &path(FLIGHTS), &["--help"]);
    for words in ["order_by, order ", "direction", "total, totals ", "numbers ", "date_range", "Without --as"] {
        assert!(output.stdout.contains(words), "{words} is not in\n{}", output.stdout);
    }
}
