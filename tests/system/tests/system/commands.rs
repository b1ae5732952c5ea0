//! Tests `check`, `query` and `test` on the command line: output, streams, exit codes.
#![allow(clippy::unwrap_used, reason = "a test stops at its first fault")]

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use terrane_system_tests::{FLIGHTS, Program, Scratch, path};

use crate::{BINARY, program, run};

const QUERY: &str = r#"{"measures": ["flights.count"], "dimensions": ["flights.origin"], "limit": 1}"#;

#[test]
fn example_has_no_problem() {
    let output = run("check", &path(FLIGHTS), &[]);
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{}", output.stdout);
    assert!(output.stdout.starts_with("ok: "), "{}", output.stdout);
    let output = run("check", &path(FLIGHTS), &["--json"]);
    let json: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(json, json!({"ok": true, "errors": 0, "warnings": 0, "problems": []}));
}

#[test]
fn members_are_listed_as_far_as_the_caller_may_see_them() {
    let project = "name: shop\nwarehouse: {type: duckdb}\n";
    let cube = "cubes:\n  - name: orders\n    sql_table: orders\n    description: Sales of the shop.\n    dimensions:\n      \
                - {name: id, type: number, sql: id, primary_key: true}\n      - {name: margin, type: number, sql: margin}\n    \
                measures:\n      - {name: count, type: count, description: \"Orders,\\nall of them.\"}\n      \
                - {name: middle, type: median, sql: margin, title: Median margin}\n    segments: [{name: large, sql: \
                \"margin > 9\"}]\n";
    let policy = "policies:\n  - {name: margins, cubes: [orders], deny: [margin, middle], when: {roles: [clerk]}}\n";
    let scratch = Scratch::empty()
        .with("service_project.yml", project)
        .with("cubes/orders.yml", cube)
        .with("metrics/all.yml", "metrics:\n  - {name: orders_total, type: simple, expression: orders.count}\n")
        .with("policies/all.yml", policy)
        .with("clerk.json", r#"{"user_id": "c", "roles": ["clerk"]}"#);
    let clerk = scratch.path().join("clerk.json").display().to_string();
    let list = |options: &[&str]| run("list", scratch.path(), options);
    let all = list(&[]);
    assert_eq!((all.code, all.stderr.as_str()), (Some(0), ""), "{}", all.stdout);
    let expected = "\
cube orders: Sales of the shop.
  measures
    orders.count   count   Orders, all of them.
    orders.middle  median  Median margin
  dimensions
    orders.id      number  Id
    orders.margin  number  Margin
  segments
    orders.large  Large

metrics
    orders_total  simple  Orders total
";
    assert_eq!(all.stdout, expected);
    let seen = list(&["--as", &clerk, "--json"]);
    let seen: Value = serde_json::from_str(&seen.stdout).unwrap();
    assert_eq!(seen.pointer("/cubes/0/measures/0/name"), Some(&json!("count")), "{seen}");
    assert!(!seen.to_string().contains("middle") && !seen.to_string().contains("margin"), "{seen}");
    let unknown = list(&["--cube", "ordrs"]);
    assert_eq!(unknown.code, Some(1));
    insta::assert_snapshot!(unknown.stderr, @r"
    error: unknown cube `ordrs`
      hint: Similar names: orders.
    ");
}

#[test]
fn queries_of_dax_are_read_one_after_the_other() {
    let project = "name: shop\nwarehouse:\n  type: duckdb\n  init: [\"CREATE TABLE orders AS SELECT 1 AS id\"]\n";
    let cube = "cubes:\n  - name: orders\n    sql_table: orders\n    dimensions:\n      - {name: id, type: number, sql: id, \
                primary_key: true}\n    measures: [{name: count, type: count}]\n";
    let scratch = Scratch::empty().with("service_project.yml", project).with("cubes/orders.yml", cube);
    let queries = "EVALUATE\n  ROW(\"a\", orders[count]);\n\nEVALUATE ordrs\n\nEVALUATE orders";
    let output = program("dax", scratch.path()).input(queries).run().unwrap();
    let answers: Vec<Value> = output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let data: Vec<&Value> = answers.iter().map(|answer| &answer["data"]).collect();
    assert_eq!(data, [&json!([{"[a]": 1}]), &json!([{"orders[id]": 1}])], "{}", output.stderr);
    // If one query of a script fails, the exit code is 1, and the other queries are still answered.
    assert_eq!(output.code, Some(1), "{}", output.stderr);
    insta::assert_snapshot!(output.stderr, @"line 1, column 10: unknown table or variable `ordrs`. Did you mean `orders`?");
    on_a_terminal(&scratch);
}

/// Types queries into a pseudo-terminal, which the program `script` of util-linux creates.
fn on_a_terminal(scratch: &Scratch) {
    let command = format!("{BINARY} dax {}", scratch.path().display());
    let mut script = Command::new("script");
    script.args(["-qec", &command, "/dev/null"]).env("TERM", "xterm").stdin(Stdio::piped()).stdout(Stdio::piped());
    let Ok(mut child) = script.spawn() else {
        return crate::skip("a session of DAX on a terminal", "`script` of util-linux is missing");
    };
    let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let (mut shown, mut position) = (String::new(), 0);
    // Keys that are typed while a query runs can be lost, so each line is typed after the prompt.
    for (line, expected) in [("", "dax> "), ("EVALUATE orders;\r", " ms"), ("", "dax> "), ("exit\r", "exit")] {
        input.write_all(line.as_bytes()).unwrap();
        loop {
            if let Some(at) = shown[position..].find(expected) {
                position += at + expected.len();
                break;
            }
            let mut bytes = [0; 4096];
            let read = output.read(&mut bytes).unwrap();
            assert_ne!(read, 0, "{shown}");
            shown.push_str(&String::from_utf8_lossy(&bytes[..read]));
        }
    }
    output.read_to_end(&mut Vec::new()).unwrap();
    assert!(child.wait().unwrap().success(), "{shown}");
    assert!(shown.contains("orders[id]"), "{shown}");
    let history = std::fs::read_to_string(scratch.path().join(".terrane/dax_history")).unwrap();
    assert!(history.contains("EVALUATE orders;"), "{history}");
}

#[test]
fn model_that_the_warehouse_refuses_is_reported_once() {
    let project = "name: shop\nwarehouse:\n  type: duckdb\n  init: [\"CREATE TABLE orders AS SELECT 1 AS id\"]\n";
    let cube = "cubes:\n  - name: orders\n    sql_table: \"{{ ref('staged') }}\"\n    measures: [{name: count, type: count}]\n";
    let scratch = Scratch::empty()
        .with("service_project.yml", project)
        .with("models/staged.sql", "SELECT\n  idd\nFROM orders\n")
        .with("models/over_it.sql", "SELECT * FROM {{ ref('staged') }}\n")
        .with("models/unread.sql", "SELECT id FROM ordesr\n")
        .with("cubes/orders.yml", cube);
    let output = run("check", scratch.path(), &["--json"]);
    let json: Value = serde_json::from_str(&output.stdout).unwrap();
    let problems = json["problems"].as_array().unwrap();
    let reported: Vec<_> =
        problems.iter().map(|reported| (&reported["code"], &reported["file"], &reported["line"])).collect();
    let (code, staged, unread) = (json!("model-not-described"), json!("models/staged.sql"), json!("models/unread.sql"));
    assert_eq!(reported, [(&code, &staged, &json!(2)), (&code, &unread, &json!(1))], "{json}");
    assert!(output.code == Some(1) && !output.stdout.contains("LINE 1"), "{json}");
}

#[test]
fn misspelled_folders_and_invalid_settings_are_reported() {
    let project = "name: shop\nwarehouse:\n  type: duckdb\n  init: [\"CREATE TABLE orders AS SELECT 1 AS id\"]\n\
                   security:\n  jwt: {secret: short}\n";
    let cube = "cubes:\n  - name: orders\n    sql_table: orders\n    measures: [{name: count, type: count}]\n";
    let scratch = Scratch::empty()
        .with("service_project.yml", project)
        .with("cubes/orders.yml", cube)
        .with("docs/notes.yml", "nothing: here")
        .with("model/staged.sql", "SELECT 1 AS one")
        .with("models/loud.SQL", "SELECT 1 AS one")
        .with("test/a.yml", "tests: []")
        .with("monitors/a.yml", "monitors: []")
        .with("guardrails.yml", "max_rows: 1")
        .with("policy/a.yml", "policies: [{name: own, cubes: [orders], deny: [count]}]");
    let reported = |scratch: &Scratch| -> Vec<(String, String, String)> {
        let json: Value = serde_json::from_str(&run("check", scratch.path(), &["--json"]).stdout).unwrap();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let problems = json["problems"].as_array().unwrap().iter();
        problems
            .map(|reported| (text(&reported["severity"]), text(&reported["file"]), text(&reported["message"])))
            .collect()
    };
    let found = reported(&scratch);
    for (severity, file, words) in [
        ("warning", "model", "is not read"),
        ("warning", "models/loud.SQL", "is not read"),
        ("warning", "test", "is not read"),
        ("warning", "monitors", "is not read"),
        ("warning", "guardrails.yml", "is not read"),
        ("error", "policy", "is not read"),
        ("error", "service_project.yml", "`security.jwt.secret`"),
    ] {
        let is_it = |reported: &(String, String, String)| {
            reported.0 == severity && reported.1 == file && reported.2.contains(words)
        };
        assert_eq!(found.iter().filter(|reported| is_it(reported)).count(), 1, "{file} {words}: {found:#?}");
    }
    assert!(found.iter().all(|reported| reported.1 != "docs"), "{found:#?}");
    let refused = run("query", scratch.path(), &[r#"{"measures": ["orders.count"]}"#]);
    assert!(refused.code == Some(1), "without its policies, all cubes are closed: {refused:?}");
}

#[test]
fn query_is_answered_as_json_or_as_sql() {
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
fn query_is_explained_as_a_tree_or_as_json() {
    let output = run("explain", &path(FLIGHTS), &[QUERY, "--full"]);
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
fn rejected_query_has_a_suggestion() {
    for (query, words) in [
        (r#"{"measures": ["flights.cuont"]}"#, &["INVALID_MEASURE", "flights.cuont", "flights.count"][..]),
        (r#"{"measure": ["flights.count"]}"#, &["INVALID_QUERY", "measure", "measures"][..]),
        ("{", &["INVALID_QUERY"][..]),
        (
            r#"{"measures": ["flights.count"], "dimensions": ["flights.orign"]}"#,
            &["flights.origin", "field: dimensions[0]"],
        ),
        (
            r#"{"measures": ["flights.count"], "filters": [{"dimension": "flights.cuont", "operator": "gt", "value": 1}]}"#,
            &["INVALID_MEASURE", "available measures: flights.count", "field: filters[0].dimension"],
        ),
        (
            r#"{"cube": "flights", "measures": ["count"], "filters": [{"dimension": "orign", "operator": "set"}]}"#,
            &["INVALID_DIMENSION", "available dimensions: flights.origin"],
        ),
        (
            r#"{"cube": "flights", "measures": ["count"], "dimensions": ["flight_date.month"]}"#,
            &["INVALID_DIMENSION", "available dimensions: flights.flight_date.month"],
        ),
        (r#"{"dimensions": ["flights.origin.month"]}"#, &["only time dimensions have granularities"]),
        (
            r#"{"time_dimensions": [{"dimension": "flights.origin", "granularity": "month"}]}"#,
            &["`flights.origin` is a string dimension, not a time dimension"],
        ),
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
    assert_eq!(output.code, Some(1), "{output:?}");
    insta::assert_snapshot!(output.messages(project.path()), @r"
    error: no case has `nothing` in its name or file
      hint: There are 2 cases: right, wrong.
    ");
}

#[test]
fn wrong_arguments_exit_with_code_two() {
    for arguments in [&["--port", "many"][..], &["--no-such-switch"]] {
        let output = run("serve", &path(FLIGHTS), arguments);
        assert_eq!(output.code, Some(2), "{}", output.stderr);
    }
    let output = run("sreve", &path(FLIGHTS), &[]);
    assert!(output.code == Some(2) && output.stderr.contains("serve"), "{}", output.stderr);
}

#[test]
fn help_lists_the_first_steps() {
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

#[test]
fn missing_query_is_reported_with_an_example_of_the_project() {
    let output = run("query", &path(FLIGHTS), &[]);
    assert_eq!(output.code, Some(1), "{output:?}");
    insta::assert_snapshot!(output.messages(&path(FLIGHTS)), @r#"
    error: missing query
      hint: Write one, as in `terrane query [folder] '{"measures": ["airlines.count"]}'`
    "#);
}

const POLICY: &str = "policies:\n  - {name: own, cubes: [t], row_filter: \"{t}.a IN {{ user.attributes.a }}\"}\n";

#[test]
fn warnings_of_an_answer_go_to_standard_error() {
    let query = r#"{"measures": ["flights.count"], "dimensions": ["flights.tailnum"]}"#;
    let mut warnings = Vec::new();
    for form in ["--csv", "--json", "--md"] {
        let output = run("query", &path(FLIGHTS), &[query, form]);
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        assert!(!output.stdout.contains("warning"), "{form}");
        warnings.push(output.stderr);
    }
    assert_eq!(warnings, vec![warnings[0].clone(); 3]);
    insta::assert_snapshot!(warnings[0], @"warning: the result has 1000 of 4044 rows, because the query has no `limit`");
    let limited = run("query", &path(FLIGHTS), &[&query.replace('{', "{\"limit\": 3, "), "--csv"]);
    assert!(limited.code == Some(0) && !limited.stderr.contains("warning"), "{}", limited.stderr);
}

#[test]
fn row_filters_of_a_caller_without_attributes_are_noted() {
    let query = "{\"measures\": [\"t.count\"]}";
    let project = Scratch::project().with("caller.json", "{\"attributes\": {\"a\": 1}}");
    assert_eq!(run("query", project.path(), &[query]).stderr, "");
    let settings = "name: t\nwarehouse: {type: duckdb}\n";
    let cubes = "cubes:\n  - {name: t, sql: SELECT 1 AS a, measures: [{name: count, type: count}]}\n";
    let project = Scratch::empty().with("service_project.yml", settings).with("cubes/t.yml", cubes);
    let project = project.with("policies/t.yml", POLICY).with("caller.json", "{\"attributes\": {\"a\": 1}}");
    let hidden = run("query", project.path(), &[query]);
    assert_eq!(hidden.stdout, "[{\"t.count\":0}]\n", "{hidden:?}");
    insta::assert_snapshot!(hidden.stderr, @"note: row filters apply to `t`, and this caller has no roles and attributes; try --as FILE");
    let caller = project.path().join("caller.json").display().to_string();
    let shown = run("query", project.path(), &[query, "--as", &caller]);
    assert_eq!((shown.stdout.as_str(), shown.stderr.as_str()), ("[{\"t.count\":1}]\n", ""));
    let nulls = project.with("nulls.json", "{\"attributes\": {\"a\": [1, null]}}");
    let caller = nulls.path().join("nulls.json").display().to_string();
    assert_eq!(run("query", nulls.path(), &[query, "--as", &caller]).stdout, "[{\"t.count\":0}]\n");
}

#[test]
fn operator_sees_the_message_of_the_warehouse() {
    let settings = "name: t\nwarehouse: {type: duckdb}\n";
    let cubes = "cubes:\n  - name: t\n    sql: SELECT 'x' AS a\n    \
                 measures: [{name: total, type: sum, sql: \"CAST({t}.a AS INTEGER)\"}]\n";
    let project = Scratch::empty().with("service_project.yml", settings).with("cubes/t.yml", cubes);
    let output = run("query", project.path(), &["{\"measures\": [\"t.total\"]}"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    // The message does not refer to the log, which the command does not write.
    insta::assert_snapshot!(output.messages(project.path()), @r#"
    error: WAREHOUSE_ERROR: the warehouse rejected the statement: Conversion Error: Could not convert string 'x' to INT32 when casting from source column a

    LINE 2:   sum(CAST(t.a AS INTEGER)) AS "t.total"
                  ^
    "#);
}
