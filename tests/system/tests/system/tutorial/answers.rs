//! Compares the answers that pages show with the answers of a server.
//!
//! In: the README and the ten questions of the flights example. Out: a failure for each command whose answer differs
//! from the JSON or the table after it. Not here: times and cache keys, which differ in each run.

use serde_json::Value;
use terrane_system_tests::{FLIGHTS, Scratch, Server, path};

use super::{ServerEnd, Step, page, run_all, run_in, steps, with_program};
use crate::program;

/// Serves the flights. Also returns a temporary folder in which the commands of readers run.
pub(super) fn flights() -> (Server, Scratch) {
    let scratch = Scratch::empty();
    with_program(scratch.path());
    std::os::unix::fs::symlink(path("examples").canonicalize().unwrap(), scratch.path().join("examples")).unwrap();
    let server = program("serve", &path(FLIGHTS))
        .arguments(&["--port", "0"])
        .variable("SERVICE_STATE__URL", &format!("sqlite://{}/state.db", scratch.path().display()))
        .serve()
        .unwrap();
    (server, scratch)
}

/// Returns the standard output of a command. `server` replaces the page's server, which has port 8000.
fn answer(step: &Step, server: &Server, scratch: &Scratch) -> Value {
    let script = step.script.replace("127.0.0.1:8000", &server.address.to_string());
    let output = run_in(&Step { script, ..Step::default() }, scratch.path());
    serde_json::from_str(&output).unwrap_or_else(|error| panic!("{error}\n{}\n{output}", step.script))
}

/// Returns the blocks of a language that follow the command blocks of a page, in order.
fn blocks(markdown: &str, language: &str) -> Vec<Value> {
    let opening = format!("```{language}\n");
    let texts = markdown.split(&opening).skip(1).filter_map(|rest| rest.split("```").next());
    texts.map(|text| serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))).collect()
}

/// Returns whether an answer contains everything that a page shows. `…` matches any value.
fn fits(shown: &Value, actual: &Value) -> bool {
    match (shown, actual) {
        (Value::Object(shown), Value::Object(actual)) => shown
            .iter()
            .all(|(key, value)| actual.get(key).is_some_and(|actual| key == "duration_ms" || fits(value, actual))),
        (Value::Array(shown), Value::Array(actual)) => {
            let is_short = shown.last().is_some_and(|last| last == "…");
            let length = shown.len() - usize::from(is_short);
            (is_short || length == actual.len()) && shown[..length].iter().zip(actual).all(|(a, b)| fits(a, b))
        }
        (Value::String(shown), Value::String(actual)) if shown.contains('…') => {
            actual.starts_with(shown.split('…').next().unwrap_or_default().trim_end())
        }
        (Value::Number(shown), Value::Number(actual)) => shown.as_f64() == actual.as_f64(),
        _ => shown == actual,
    }
}

#[test]
fn readme_works_as_written() {
    let text = page("README.md");
    let (steps, shown) = (steps(&text), blocks(&text, "json"));
    let (asked, local): (Vec<_>, Vec<_>) = steps.into_iter().partition(|step| step.script.contains("curl"));
    assert_eq!((asked.len(), local.len()), (shown.len(), 1));
    let (server, scratch) = flights();
    for (step, shown) in asked.iter().zip(&shown) {
        let actual = answer(step, &server, &scratch);
        assert!(fits(shown, &actual), "{}\n{actual:#}", step.script);
    }
    run_all(&local, &scratch);
}

/// Returns the table after each command, as (names of the columns, rows).
fn tables(markdown: &str) -> Vec<(Vec<String>, Vec<Vec<String>>)> {
    let cells = |line: &str| -> Vec<String> {
        line.trim().trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('`').to_owned()).collect()
    };
    let behind_commands = markdown.split("```sh\ncurl").skip(1).filter_map(|rest| rest.split_once("\n```\n"));
    let tables = behind_commands.map(|(_, rest)| rest.trim_start().lines().take_while(|line| line.starts_with('|')));
    let rows = tables.map(|lines| lines.map(cells).collect::<Vec<_>>());
    rows.map(|mut rows| (rows.remove(0), rows.split_off(1))).collect()
}

/// Returns whether a cell of a table shows a value. Numbers with a fraction have four digits after the decimal point.
fn shows(cell: &str, value: &Value) -> bool {
    match value {
        Value::Null => cell == "null",
        Value::String(text) => cell == text,
        Value::Number(number) if cell.contains('.') => {
            number.as_f64().is_some_and(|number| format!("{number:.4}") == cell)
        }
        other => cell.parse::<Value>().is_ok_and(|shown| shown == *other),
    }
}

#[test]
fn ten_questions_have_the_answers_of_the_page() {
    let text = page("examples/flights/README.md");
    let asked: Vec<Step> = steps(&text).into_iter().filter(|step| step.script.contains("curl")).collect();
    let tables = tables(&text);
    assert_eq!((asked.len(), tables.len()), (10, 10));
    let (server, scratch) = flights();
    for (step, (columns, rows)) in asked.iter().zip(&tables) {
        let actual = answer(step, &server, &scratch);
        let data = actual["data"].as_array().unwrap();
        assert_eq!(data.len(), rows.len(), "{}\n{actual:#}", step.script);
        for (row, cells) in data.iter().zip(rows) {
            for (column, cell) in columns.iter().zip(cells) {
                assert!(shows(cell, &row[column.as_str()]), "{column}: {cell}\n{}\n{row:#}", step.script);
            }
        }
    }
}

#[test]
fn backup_of_the_runbook_works_as_written() {
    let mut steps = steps(&page("runtime/deploy/RUNBOOK.md"));
    assert_eq!((steps.len(), steps.iter().filter(|step| step.stdout.is_some()).count()), (1, 0));
    let script = "terrane init shop > /dev/null\nterrane auth create-key shop --name a > /dev/null\n".to_owned();
    steps.insert(0, Step { script, ..Step::default() });
    run_all(&steps, &Scratch::empty());
}

#[test]
fn plugin_guide_works_as_written() {
    if !crate::plugin_kit::has_guest_target() {
        return crate::skip("the guide for plugins", crate::plugin_kit::NO_GUEST_TARGET);
    }
    let steps = steps(&page("sdk/README.md"));
    assert_eq!(steps.len(), 1);
    let scratch = Scratch::empty();
    let _end = ServerEnd(scratch.path().to_path_buf());
    run_all(&steps, &scratch);
}

#[test]
fn incomplete_answer_does_not_match() {
    let json = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let actual = json(r#"{"a": [1, 2], "b": "text", "duration_ms": 3}"#);
    for fine in [r#"{"a": [1.0, 2]}"#, r#"{"a": [1, "…"]}"#, r#"{"b": "te…", "duration_ms": 9}"#] {
        assert!(fits(&json(fine), &actual), "{fine}");
    }
    for other in [r#"{"a": [1]}"#, r#"{"a": [2, "…"]}"#, r#"{"b": "x…"}"#, r#"{"c": 1}"#] {
        assert!(!fits(&json(other), &actual), "{other}");
    }
}
