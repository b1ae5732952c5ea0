//! Sessions of a client over pipes, with the example project.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

#[path = "session/client.rs"]
mod client;
#[path = "session/disk.rs"]
mod disk;

use std::fs;

use client::Client;
use serde_json::{Value, json};
use terrane_language_server::End;

const FLIGHTS: &str = "cubes/flights.yml";
const METRICS: &str = "metrics/metrics.yml";

#[test]
fn session_opens_and_shuts_down() {
    let client = Client::initialized();
    assert!(client.shut_down(), "the end was announced");
    assert_eq!(Client::initialized().exit(), End::Exit);
    assert_eq!(Client::initialized().hang_up().unwrap(), End::EndOfInput);
}

#[test]
fn requests_before_initialize_and_after_shutdown_are_refused() {
    let mut client = Client::start();
    assert_eq!(client.request("textDocument/hover", json!({}))["error"]["code"], -32002);
    client.request("initialize", json!({"processId": null, "rootUri": null, "capabilities": {}}));
    assert_eq!(client.request("initialize", json!({"capabilities": {}}))["error"]["code"], -32600);
    client.request("shutdown", Value::Null);
    assert_eq!(client.request("workspace/symbol", json!({"query": ""}))["error"]["code"], -32600);
}

#[test]
fn malformed_messages_are_answered() {
    let mut client = Client::initialized();
    client.send_bytes(b"Content-Length: 5\r\n\r\n{\"a\":");
    assert_eq!(client.receive()["error"]["code"], -32700);
    for (message, code) in [(json!(3), -32600), (json!([]), -32600), (json!({"id": 7}), -32600)] {
        client.send(&message);
        loop {
            let answer = client.receive();
            if answer.get("error").is_some() {
                assert_eq!(answer["error"]["code"], code, "{message}");
                break;
            }
        }
    }
    assert_eq!(client.request("no/such", json!({}))["error"]["code"], -32601);
    assert_eq!(client.request("textDocument/hover", json!({"textDocument": 1}))["error"]["code"], -32602);
    client.notify("textDocument/didChange", json!({"textDocument": null}));
    client.notify("$/unknown", json!([1, 2]));
    assert!(client.shut_down());
}

#[test]
fn header_without_a_length_ends_the_session() {
    let mut client = Client::initialized();
    client.send_bytes(b"Nonsense\r\n\r\n");
    assert!(client.hang_up().is_err());
}

#[test]
fn change_breaks_other_files_and_repairs_them() {
    let mut client = Client::initialized();
    let text = client.text(FLIGHTS);
    client.open(FLIGHTS, &text.replace("name: on_time,", "name: in_time,"));
    let found = client.next_diagnostics(FLIGHTS);
    // The rate in the cube and a pre-aggregation refer to the renamed member.
    assert!(found.iter().any(|(code, _)| code == "unknown-member"), "{found:?}");
    let found = match client.codes(METRICS) {
        found if found.is_empty() => client.next_diagnostics(METRICS),
        found => found,
    };
    assert_eq!(found, [8, 48].map(|line| ("unknown-member".to_owned(), line)));
    let of_metrics = &client.diagnostics[&client.uri(METRICS)][0];
    assert!(of_metrics["message"].as_str().unwrap().contains("`in_time`"), "{of_metrics}");
    assert_eq!(of_metrics["source"], "terrane");
    client.change(FLIGHTS, &text);
    while !(client.codes(METRICS).is_empty() && client.codes(FLIGHTS).is_empty()) {
        client.receive();
    }
    assert!(client.shut_down());
}

#[test]
fn cycle_has_related_places() {
    let mut client = Client::initialized();
    let text = client.text(METRICS);
    client.open(METRICS, &format!("{text}\n  - {{name: a_side, type: derived, expression: 1 + b_side}}\n  - {{name: b_side, type: derived, expression: 1 + a_side}}\n"));
    let found = client.next_diagnostics(METRICS);
    assert_eq!(found.len(), 1, "{found:?}");
    let related = &client.diagnostics[&client.uri(METRICS)][0]["relatedInformation"];
    assert_eq!(related.as_array().unwrap().len(), 2, "{related}");
}

#[test]
fn closed_file_has_its_text_on_disk() {
    let mut client = Client::initialized();
    client.open(METRICS, "metrics: nothing\n");
    assert_eq!(client.next_diagnostics(METRICS), [("wrong-type".to_owned(), 0)]);
    let uri = client.uri(METRICS);
    client.notify("textDocument/didClose", json!({"textDocument": {"uri": uri}}));
    assert_eq!(client.next_diagnostics(METRICS), []);
}

#[test]
fn files_that_are_created_and_deleted_are_read() {
    let mut client = Client::initialized();
    let new = "cubes/new ü.yml";
    fs::write(
        client.path(new),
        "cubes:\n  - {name: new_cube, sql_table: t, measures: [{name: count, type: summ, sql: a}]}\n",
    )
    .unwrap();
    let uri = client.uri(new);
    client.notify("workspace/didChangeWatchedFiles", json!({"changes": [{"uri": uri, "type": 1}]}));
    assert_eq!(client.next_diagnostics(new), [("unknown-value".to_owned(), 1)]);
    fs::remove_file(client.path(new)).unwrap();
    client.notify("workspace/didChangeWatchedFiles", json!({"changes": [{"uri": uri, "type": 3}]}));
    assert_eq!(client.next_diagnostics(new), []);
}

#[test]
fn file_watchers_are_registered_if_supported() {
    let mut client = Client::start();
    let root = client.uri("");
    let capabilities = json!({"workspace": {"didChangeWatchedFiles": {"dynamicRegistration": true}}});
    client.request("initialize", json!({"processId": null, "rootUri": root, "capabilities": capabilities}));
    client.notify("initialized", json!({}));
    let message = client.receive();
    assert_eq!(message["method"], "client/registerCapability");
    client.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": null}));
    assert!(client.shut_down());
}

#[test]
fn project_of_a_file_is_found_without_a_root() {
    let mut client = Client::start();
    client.request("initialize", json!({"processId": null, "rootUri": null, "capabilities": {}}));
    client.open(METRICS, "metrics: nothing\n");
    assert_eq!(client.next_diagnostics(METRICS), [("wrong-type".to_owned(), 0)]);
}

#[test]
fn unknown_documents_have_null_answers() {
    let mut client = Client::initialized();
    for uri in
        ["untitled:Untitled-1", "file:///no/such/file.yml", "https://example.com/a.yml", "file://", "file:///%FF"]
    {
        let at = json!({"textDocument": {"uri": uri}, "position": {"line": 3, "character": 1}});
        for method in ["textDocument/hover", "textDocument/completion", "textDocument/definition"] {
            assert_eq!(client.request(method, at.clone())["result"], Value::Null, "{method} {uri}");
        }
        client.notify(
            "textDocument/didOpen",
            json!({"textDocument": {"uri": uri, "languageId": "yaml", "version": 1, "text": "a: b"}}),
        );
        client.notify("textDocument/didClose", json!({"textDocument": {"uri": uri}}));
    }
    assert!(client.shut_down());
}

#[test]
fn positions_beyond_the_end_have_answers() {
    let mut client = Client::initialized();
    let uri = client.uri(FLIGHTS);
    for (line, character) in [(0, 9_999), (99_999, 0), (u32::MAX, u32::MAX)] {
        let at = json!({"textDocument": {"uri": uri}, "position": {"line": line, "character": character}});
        for method in
            ["textDocument/hover", "textDocument/completion", "textDocument/definition", "textDocument/prepareRename"]
        {
            let answer = client.request(method, at.clone());
            assert!(answer.get("error").is_none(), "{method}: {answer}");
        }
    }
}

#[test]
fn hostile_files_are_reported() {
    let mut client = Client::initialized();
    let large = format!("cubes:\n{}", "  - {name: a, sql_table: t}\n".repeat(400_000));
    assert!(large.len() > 10_000_000);
    client.open(METRICS, &large);
    assert_eq!(client.next_diagnostics(METRICS), [("file-too-large".to_owned(), 0)]);
    client.change(METRICS, &format!("metrics: {}", "[".repeat(200_000)));
    assert_eq!(client.next_diagnostics(METRICS)[0].0, "yaml-limit");
    client.change(
        METRICS,
        &format!("metrics:\n{}", (0..5_000).map(|depth| format!("{}- \n", " ".repeat(depth))).collect::<String>()),
    );
    assert_eq!(client.next_diagnostics(METRICS).len(), 1);
    client.change(METRICS, "metrics:\n  - \u{0}\n\t- x: [\n");
    client.next_diagnostics(METRICS);
    assert!(client.shut_down());
}

#[test]
fn braces_complete_members_and_joined_cubes() {
    let mut client = Client::initialized();
    let measure = |sql: &str| format!("      - {{name: fresh, type: number, sql: \"{sql}");
    let text = client.text(FLIGHTS);
    let with = |line: String| text.replacen("    segments:\n", &format!("{line}\n    segments:\n"), 1);
    let labels = Client::labels(&client.at("textDocument/completion", FLIGHTS, &with(measure("{canc¦")), json!({})));
    assert!(labels.contains(&"cancelled".to_owned()) && labels.contains(&"CUBE".to_owned()), "{labels:?}");
    let answer = client.at("textDocument/completion", FLIGHTS, &with(measure("{planes.¦} / 2\"}")), json!({}));
    let labels = Client::labels(&answer);
    assert!(
        labels.contains(&"planes.total_seats".to_owned()) && !labels.iter().any(|label| label == "cancelled"),
        "{labels:?}"
    );
    let edit = &answer["result"][0]["textEdit"];
    let length =
        edit["range"]["end"]["character"].as_u64().unwrap() - edit["range"]["start"]["character"].as_u64().unwrap();
    assert_eq!(length, "planes.".len() as u64, "the typed word is replaced");
    let dimension = "      - {name: fresh, type: string, sql: \"{is_canc¦".to_owned();
    let labels = Client::labels(&client.at("textDocument/completion", FLIGHTS, &with(dimension), json!({})));
    assert!(labels.contains(&"is_cancelled".to_owned()) && !labels.contains(&"cancelled".to_owned()), "{labels:?}");
}

#[test]
fn keys_and_words_complete_from_the_schema() {
    let mut client = Client::initialized();
    let labels = |client: &mut Client, file: &str, text: &str| {
        Client::labels(&client.at("textDocument/completion", file, text, json!({})))
    };
    let found =
        labels(&mut client, "cubes/x.yml", "cubes:\n  - name: x\n    sql_table: t\n    measures:\n      - {name: a, ¦");
    assert!(found.contains(&"type".to_owned()) && !found.contains(&"name".to_owned()), "{found:?}");
    let found =
        labels(&mut client, "cubes/x.yml", "cubes:\n  - name: x\n    measures:\n      - name: a\n        type: ¦\n");
    assert!(found.contains(&"count_distinct".to_owned()), "{found:?}");
    let found =
        labels(&mut client, "cubes/x.yml", "cubes:\n  - name: x\n    joins:\n      - {name: a, relationship: ¦}");
    assert_eq!(found, ["many_to_one", "one_to_many", "one_to_one"]);
    let found = labels(&mut client, "cubes/x.yml", "cubes:\n  - name: x\n    joins:\n      - {name: ¦}");
    assert!(found.contains(&"weather".to_owned()) && found.contains(&"origin_airport".to_owned()), "{found:?}");
    let found = labels(&mut client, METRICS, "metrics:\n  - {name: x, type: simple, expression: flights.o¦}");
    assert!(
        found.contains(&"flights.on_time".to_owned()) && !found.contains(&"flights.origin".to_owned()),
        "{found:?}"
    );
    let found = labels(&mut client, METRICS, "metrics:\n  - name: x\n    filters: [{member: flights.¦}]");
    assert!(found.contains(&"flights.origin".to_owned()), "{found:?}");
    let policy = "policies:\n  - name: p\n    cubes: [planes]\n";
    let found = labels(&mut client, "policies/p.yml", "policies:\n  - name: p\n    cubes: [¦");
    assert!(found.contains(&"planes".to_owned()), "{found:?}");
    let found = labels(&mut client, "policies/p.yml", &format!("{policy}    mask: {{¦"));
    assert!(found.contains(&"tailnum".to_owned()), "{found:?}");
    let found = labels(&mut client, "policies/p.yml", &format!("{policy}    mask: {{tailnum: ¦"));
    assert!(found.contains(&"hash".to_owned()), "{found:?}");
    let found = labels(&mut client, "policies/p.yml", &format!("{policy}    row_filter: \"{{CUBE}}.x = {{{{ us¦"));
    assert!(found.contains(&"user.roles".to_owned()), "{found:?}");
    let found = labels(&mut client, "tests/x.yml", "tests:\n  - name: a\n    query: {measures: [¦");
    // The metrics file is still open with the text above, so `x` is the only metric.
    assert!(found.contains(&"flights.count".to_owned()) && found.contains(&"x".to_owned()), "{found:?}");
    let found = labels(&mut client, "models/x.sql", "SELECT * FROM {{ ref('we¦");
    assert!(found.contains(&"ref('weather_hourly')".to_owned()), "{found:?}");
}

#[test]
fn items_of_block_lists_complete_members() {
    let mut client = Client::initialized();
    let mut labels = |file: &str, text: &str| {
        let answer = client.at("textDocument/completion", file, text, json!({}));
        let first = &answer["result"][0]["textEdit"]["range"]["start"]["character"];
        (Client::labels(&answer), first.as_u64())
    };
    let query = "tests:\n  - name: a\n    query:\n      measures:\n        - flights.count\n";
    for item in ["- ¦", "- fl¦", "- flights.¦", "- flights.average_arr¦"] {
        let (found, start) = labels("tests/x.yml", &format!("{query}        {item}\n"));
        assert!(found.contains(&"flights.on_time".to_owned()), "{item}: {found:?}");
        assert!(!found.contains(&"flights.origin".to_owned()), "{item}: {found:?}");
        assert_eq!(start, Some(10), "{item}");
        let (found, _) = labels("tests/x.yml", &format!("{query}      dimensions:\n      {item}\n"));
        assert!(found.contains(&"flights.origin".to_owned()), "{item}: {found:?}");
        assert!(!found.contains(&"flights.on_time".to_owned()), "{item}: {found:?}");
    }
    let stored = "cubes:\n  - name: flights\n    measures: [{name: count, type: count}]\n    pre_aggregations:\n";
    let (found, _) =
        labels("cubes/flights.yml", &format!("{stored}      - name: a\n        measures:\n          - co¦"));
    assert_eq!(found, ["count"]);
    let (found, _) = labels("cubes/x.yml", "cubes:\n  - name: x\n    measures:\n      - ¦\n");
    assert!(found.contains(&"name".to_owned()) && !found.contains(&"count".to_owned()), "{found:?}");
    let policy = "policies:\n  - name: p\n    cubes:\n      - planes\n    deny:\n      - t¦\n";
    assert!(labels("policies/p.yml", policy).0.contains(&"tailnum".to_owned()));
}

#[test]
fn hover_shows_title_type_description_and_sql() {
    let mut client = Client::initialized();
    let answer = client.behind("textDocument/hover", METRICS, "numerator: flights.on_t", json!({}));
    let text = answer["result"]["contents"]["value"].as_str().unwrap();
    for part in [
        "**On time**",
        "`flights.on_time` (measure, count)",
        "less than 15 minutes late",
        "{flights}.arr_delay < 15",
        "cubes/flights.yml:",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let answer = client.behind("textDocument/hover", FLIGHTS, "sql: \"{cancelled} / {cou", json!({}));
    assert!(answer["result"]["contents"]["value"].as_str().unwrap().contains("`flights.count`"), "{answer}");
    let answer = client.behind("textDocument/hover", FLIGHTS, "title: Fli", json!({}));
    assert_eq!(answer["result"], Value::Null);
}

#[test]
fn hover_works_while_another_file_is_broken() {
    let mut client = Client::initialized();
    client.behind("textDocument/hover", METRICS, "numerator: flights.on_t", json!({}));
    client.open(FLIGHTS, "cubes: [{name: \"");
    let answer = client.behind("textDocument/hover", METRICS, "numerator: flights.on_t", json!({}));
    assert!(answer["result"]["contents"]["value"].as_str().unwrap().contains("flights.on_time"), "{answer}");
}

#[test]
fn definition_and_references_cross_files() {
    let mut client = Client::initialized();
    let answer = client.behind("textDocument/definition", METRICS, "numerator: flights.on_t", json!({}));
    let found = answer["result"].as_array().unwrap();
    assert_eq!(found.len(), 1, "{answer}");
    assert_eq!(found[0]["uri"], client.uri(FLIGHTS).as_str());
    let line = found[0]["range"]["start"]["line"].as_u64().unwrap() as usize;
    assert!(client.text(FLIGHTS).lines().nth(line).unwrap().contains("name: on_time,"));
    let context = json!({"context": {"includeDeclaration": true}});
    let answer = client.behind("textDocument/references", METRICS, "numerator: flights.on_t", context);
    let files: Vec<&str> =
        answer["result"].as_array().unwrap().iter().map(|place| place["uri"].as_str().unwrap()).collect();
    for file in [FLIGHTS, METRICS, "tests/measures.yml"] {
        assert!(files.contains(&client.uri(file).as_str()), "{file}: {files:?}");
    }
    let answer = client.behind("textDocument/definition", "models/weather_hourly.sql", "ref('weather_r", json!({}));
    assert_eq!(answer["result"][0]["uri"], client.uri("models/weather_readings.sql").as_str(), "{answer}");
}

#[test]
fn symbols_are_listed() {
    let mut client = Client::initialized();
    let uri = client.uri("cubes/planes.yml");
    let answer = client.request("textDocument/documentSymbol", json!({"textDocument": {"uri": uri}}));
    assert_eq!(answer["result"][0]["name"], "planes");
    assert_eq!(answer["result"][0]["children"].as_array().unwrap().len(), 18, "{answer}");
    let answer = client.request("workspace/symbol", json!({"query": "ON_TIME"}));
    let names: Vec<&str> =
        answer["result"].as_array().unwrap().iter().map(|found| found["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["on_time", "on_time_rate", "long_haul_on_time_rate"], "{answer}");
}

/// Applies the edits of an answer to the files on disk, and returns the number of edits.
fn apply(client: &Client, answer: &Value) -> usize {
    let mut count = 0;
    for (uri, edits) in answer["result"]["changes"].as_object().unwrap() {
        let files = ["cubes", "metrics", "models", "policies", "sources", "tests"].iter().flat_map(|folder| {
            fs::read_dir(client.path(folder)).into_iter().flatten().flatten().map(|entry| entry.path())
        });
        let file = files
            .map(|path| path.strip_prefix(client.path("")).unwrap().to_str().unwrap().to_owned())
            .find(|file| client.uri(file) == *uri)
            .unwrap();
        let mut lines: Vec<Vec<u16>> =
            client.text(&file).split('\n').map(|line| line.encode_utf16().collect()).collect();
        let mut edits: Vec<&Value> = edits.as_array().unwrap().iter().collect();
        edits.sort_by_key(|edit| {
            std::cmp::Reverse((edit["range"]["start"]["line"].as_u64(), edit["range"]["start"]["character"].as_u64()))
        });
        for edit in edits {
            let number = |path: &str| edit["range"].pointer(path).unwrap().as_u64().unwrap() as usize;
            assert_eq!(number("/start/line"), number("/end/line"));
            let new: Vec<u16> = edit["newText"].as_str().unwrap().encode_utf16().collect();
            lines[number("/start/line")].splice(number("/start/character")..number("/end/character"), new);
            count += 1;
        }
        let lines: Vec<String> = lines.iter().map(|line| String::from_utf16(line).unwrap()).collect();
        fs::write(client.path(&file), lines.join("\n")).unwrap();
    }
    count
}

#[test]
fn rename_changes_all_files_and_the_project_still_compiles() {
    let mut client = Client::initialized();
    let answer = client.behind("textDocument/prepareRename", METRICS, "numerator: flights.on_t", json!({}));
    assert_eq!(answer["result"]["placeholder"], "on_time");
    let new = json!({"newName": "punctual_flights"});
    let answer = client.behind("textDocument/rename", METRICS, "numerator: flights.on_t", new);
    let count = apply(&client, &answer);
    assert!(count >= 6, "{answer}");
    let mut renamed = 0;
    for file in [FLIGHTS, METRICS, "tests/measures.yml", "tests/metrics.yml"] {
        let text = client.text(file);
        assert!(
            !text.contains("flights.on_time\"") && !text.contains("{on_time}") && !text.contains("flights.on_time,"),
            "{file}"
        );
        renamed += text.matches("punctual_flights").count();
    }
    assert!(renamed >= 6, "{renamed}");
    // A new server must find no errors in the files on disk.
    let root = client.path("");
    let mut server =
        terrane_language_server::Workspace::new(terrane_language_server::Projects::open(&disk::Disk, &root).unwrap());
    let errors: Vec<String> =
        server.diagnostics().iter().filter(|found| found.is_error()).map(ToString::to_string).collect();
    assert!(errors.is_empty(), "{errors:?}");
}

#[test]
fn rename_is_refused_with_a_reason() {
    let mut client = Client::initialized();
    let refused = |new: &str| {
        let answer = client.behind("textDocument/rename", METRICS, "numerator: flights.on_t", json!({"newName": new}));
        assert_eq!(answer["error"]["code"], -32803, "{new}: {answer}");
        answer["error"]["message"].as_str().unwrap().to_owned()
    };
    let reasons = ["late", "On Time", "", "metric_time"].map(refused);
    insta::assert_snapshot!(reasons.join("\n"), @r"
    the name `late` is already used
    `On Time` is not snake_case: use lower-case letters, digits and `_`, at most 200 characters
    `` is not snake_case: use lower-case letters, digits and `_`, at most 200 characters
    `metric_time` is reserved
    ");
    client.open(METRICS, "metrics: nothing\n");
    let answer = client.behind("textDocument/rename", FLIGHTS, "{name: on_t", json!({"newName": "fresh"}));
    insta::assert_snapshot!(answer["error"]["message"].as_str().unwrap(), @"the project has errors; solve them first: metrics/metrics.yml:1:10: `metrics` must be a list, found `nothing`");
}

#[test]
fn metrics_and_cubes_are_renamed() {
    let mut client = Client::initialized();
    for (text, new, file) in [
        ("name: cancellation_r", "share_cancelled", METRICS),
        ("- name: weath", "conditions_of_weather", "cubes/weather.yml"),
    ] {
        let answer = client.behind("textDocument/rename", file, text, json!({"newName": new}));
        assert!(apply(&client, &answer) > 1, "{answer}");
        let root = client.path("");
        let mut workspace = terrane_language_server::Workspace::new(
            terrane_language_server::Projects::open(&disk::Disk, &root).unwrap(),
        );
        let errors: Vec<String> =
            workspace.diagnostics().iter().filter(|found| found.is_error()).map(ToString::to_string).collect();
        assert!(errors.is_empty(), "{new}: {errors:?}");
        client = Client::initialized();
    }
}
