//! Tests the commands of governance over a real state database: report, export, import, and the check of a project
//! against an export.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use terrane_system_tests::{Output, Program, Scratch, request_as, request_with};

use crate::{BINARY, run};

const SETTINGS: &str = "name: scratch\nwarehouse: {type: duckdb, init: [\"CREATE TABLE t AS SELECT 1 AS id\"]}\n\
                        governance: {allow_self_certification: true}\n";
const MEASURE: &str = "{name: count, type: count}";

/// Runs a command of governance on a project.
fn governance(action: &str, project: &Scratch, arguments: &[&str]) -> Output {
    run_with(&["governance", action], project, arguments)
}

fn run_with(command: &[&str], project: &Scratch, arguments: &[&str]) -> Output {
    Program::new(BINARY, command, project.path()).arguments(arguments).run().unwrap()
}

/// Runs `terrane governance import FILE` on a project.
fn import(file: &Path, project: &Scratch, arguments: &[&str]) -> Output {
    run_with(&["governance", "import", file.to_str().unwrap()], project, arguments)
}

/// Creates a project whose measure `t.count` is certified and has a term.
fn governed() -> Scratch {
    let project = Scratch::project().with("service_project.yml", SETTINGS);
    let key = run_with(&["auth", "create-key"], &project, &["--name", "ada", "--scopes", "read,write,admin", "--json"]);
    let key: Value = serde_json::from_str(&key.stdout).expect(&key.stderr);
    let key = key["key"].as_str().unwrap();
    let server = Program::new(BINARY, &["serve"], project.path()).arguments(&["--port", "0"]).serve().unwrap();
    let post = |path: &str, body: Value| -> Value {
        let path = format!("/api/v1/governance{path}");
        let answer = request_as(server.address, Some(key), "POST", &path, Some(&body.to_string())).unwrap();
        assert!(answer.status < 300, "{path}: {}", answer.body);
        answer.json().unwrap()
    };
    let measure = json!({"artifact_type": "measure", "artifact_id": "t.count"});
    let with = |more: Value| {
        let mut body = measure.clone();
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    post("/certification/submit", with(json!({"notes": "Agreed."})));
    post("/certification/certify", with(json!({})));
    let term = post("/glossary/terms", json!({"name": "Number", "definition": "The number of rows."}));
    let link = format!("/glossary/terms/{}/links", term["id"].as_str().unwrap());
    post(&link, with(json!({"relationship": "defines"})));
    let headers = [("Authorization", &*format!("Bearer {key}"))];
    let exported = request_with(server.address, &headers, "GET", "/api/v1/governance/export", None).unwrap();
    fs::write(project.path().join("served.yml"), exported.body).unwrap();
    server.terminate().unwrap();
    project
}

/// Exports the records of a project into a file of its folder.
fn export(project: &Scratch, name: &str) -> std::path::PathBuf {
    let file = project.path().join(name);
    let exported = governance("export", project, &["--out", file.to_str().unwrap()]);
    assert_eq!(exported.code, Some(0), "{exported:?}");
    file
}

#[test]
fn records_are_exported_and_imported_by_commands() {
    let first = governed();
    let file = export(&first, "exported.yml");
    let text = fs::read_to_string(&file).unwrap();
    assert_eq!(text, fs::read_to_string(first.path().join("served.yml")).unwrap(), "the server exports the same");
    assert_eq!(governance("export", &first, &[]).stdout, text);
    for words in ["version: 1", "name: Number", "artifact_id: t.count", "status: certified", "notes: Agreed."] {
        assert!(text.contains(words), "{words}: {text}");
    }

    let second = Scratch::project().with("service_project.yml", SETTINGS);
    let empty = governance("export", &second, &[]).stdout;
    let tried = import(&file, &second, &["--dry-run"]);
    assert_eq!(tried.code, Some(0), "{tried:?}");
    assert_eq!(tried.stdout, "2 created, 0 changed, 0 unchanged (nothing was written)\n");
    assert_eq!(governance("export", &second, &[]).stdout, empty);
    let imported = import(&file, &second, &[]);
    assert_eq!((imported.code, &*imported.stdout), (Some(0), "2 created, 0 changed, 0 unchanged\n"), "{imported:?}");
    assert_eq!(governance("export", &second, &[]).stdout, text);
    assert_eq!(import(&file, &second, &[]).stdout, "0 created, 0 changed, 2 unchanged\n");
    let renamed = second.path().join("renamed.yml");
    fs::write(&renamed, text.replace("name: Number", "name: Count")).unwrap();
    assert_eq!(import(&renamed, &second, &[]).stdout, "0 created, 1 changed, 1 unchanged\n");
    let audit = run_with(&["audit", "list"], &second, &["--event", "governance_record_imported", "--json"]);
    assert_eq!(audit.stdout.lines().count(), 3, "{audit:?}");
}

#[test]
fn wrong_files_are_refused_with_the_places_of_their_problems() {
    let project = governed();
    let text = fs::read_to_string(export(&project, "exported.yml")).unwrap();
    let id = text.lines().find_map(|line| line.trim().strip_prefix("- id: ")).unwrap();
    for (wrong, places) in [
        (text.replace("version: 1", "version: 9"), vec!["version"]),
        (text.replace("status: certified", "status: good"), vec!["certifications[0].status"]),
        (text.replace("name: Number", "title: Number"), vec!["terms[0].title", "terms[0].name"]),
        (text.replace(id, "another"), vec!["terms[0].name"]),
        ("words".to_owned(), vec![]),
    ] {
        let file = project.path().join("wrong.yml");
        fs::write(&file, &wrong).unwrap();
        for arguments in [&[][..], &["--dry-run"]] {
            let refused = import(&file, &project, arguments);
            assert!(refused.code == Some(1) && refused.stdout.is_empty(), "{wrong}: {refused:?}");
            assert!(refused.stderr.contains("wrong.yml has"), "{wrong}: {refused:?}");
            for place in &places {
                let name = place.rsplit('.').next().unwrap();
                assert!(refused.stderr.contains(name), "{place}: {refused:?}");
            }
        }
    }
    let missing = import(&project.path().join("nowhere.yml"), &project, &[]);
    assert_eq!(missing.code, Some(1), "{missing:?}");
    insta::assert_snapshot!(missing.messages(project.path()), @"error: [folder]/nowhere.yml cannot be read: No such file or directory (os error 2)");
    assert_eq!(governance("export", &project, &[]).stdout, text, "nothing was changed");
}

#[test]
fn report_is_printed_in_all_formats() {
    let project = governed();
    let plain = governance("report", &project, &[]);
    assert!(plain.code == Some(0) && plain.stdout.contains("scratch: "), "{plain:?}");
    assert!(plain.stdout.contains("t.count") && plain.stdout.contains("certified"), "{plain:?}");
    let report: Value = serde_json::from_str(&governance("report", &project, &["--json"]).stdout).unwrap();
    assert_eq!(report["summary"]["by_status"]["certified"], 1, "{report}");
    let csv = governance("report", &project, &["--csv"]).stdout;
    assert_eq!(csv.lines().count(), report["artifacts"].as_array().unwrap().len() + 1, "{csv}");
    let page = project.path().join("report.html");
    let written = governance("report", &project, &["--html", "--out", page.to_str().unwrap()]);
    assert!(written.code == Some(0) && written.stdout.is_empty(), "{written:?}");
    assert!(fs::read_to_string(&page).unwrap().contains("<td>t.count</td>"));

    // A caller from whom the measure is hidden.
    let policy = "policies: [{name: p, cubes: [t], when: {roles: [analyst]}, deny: [count]}]\n";
    let project = project.with("policies/p.yml", policy).with("caller.json", r#"{"roles": ["analyst"]}"#);
    let caller = project.path().join("caller.json");
    let seen = governance("report", &project, &["--json", "--as", caller.to_str().unwrap()]);
    assert!(seen.code == Some(0) && !seen.stdout.contains("t.count"), "{seen:?}");
    let off = SETTINGS.replace("{allow_self", "{enabled: false, allow_self");
    let refused = governance("report", &project.with("service_project.yml", &off), &[]);
    assert!(refused.code == Some(1) && refused.stderr.contains("governance.enabled"), "{refused:?}");
}

#[test]
fn check_reports_breaking_changes_of_certified_members() {
    let project = governed();
    let file = export(&project, "exported.yml");
    let against = ["--against", file.to_str().unwrap()];
    let cube = fs::read_to_string(project.path().join("cubes/t.yml")).unwrap();
    let unchanged = run("check", project.path(), &against);
    assert!(unchanged.code == Some(0), "{unchanged:?}");
    assert!(unchanged.stdout.contains("1 certified artifact compared"), "{unchanged:?}");
    for (measure, code, words) in [
        ("{name: count, type: count, filters: [{sql: \"{t}.id > 1\"}]}", "certified-changed", "+ filter: {t}.id > 1"),
        ("{name: number, type: count}", "certified-renamed", "was renamed to `t.number`"),
        ("{name: ids, type: max, sql: id}", "certified-removed", "certified measure `t.count` was removed"),
    ] {
        fs::write(project.path().join("cubes/t.yml"), cube.replace(MEASURE, measure)).unwrap();
        let plain = run("check", project.path(), &against);
        assert_eq!(plain.code, Some(1), "{plain:?}");
        for expected in [&*format!("error[{code}]"), words, "cubes/t.yml:", "hint: Restore the "] {
            assert!(plain.stdout.contains(expected), "{expected}: {plain:?}");
        }
        let json = run("check", project.path(), &[&against[..], &["--json"]].concat());
        let answer: Value = serde_json::from_str(&json.stdout).unwrap();
        assert_eq!((json.code, &answer["ok"], &answer["certified"]), (Some(1), &json!(false), &json!(1)), "{answer}");
        let problem = &answer["problems"][0];
        assert_eq!((&problem["code"], &problem["file"]), (&json!(code), &json!("cubes/t.yml")), "{answer}");
        assert_eq!(run("check", project.path(), &[]).code, Some(0), "without an export, the check succeeds");
    }
    fs::write(project.path().join("cubes/t.yml"), cube).unwrap();
    fs::write(&file, "version: 1\ncertifications: [{}]").unwrap();
    let wrong = run("check", project.path(), &against);
    assert!(wrong.code == Some(1) && wrong.stderr.contains("exported.yml has"), "{wrong:?}");
    fs::remove_file(&file).unwrap();
    let missing = run("check", project.path(), &against);
    assert_eq!(missing.code, Some(1), "{missing:?}");
    insta::assert_snapshot!(missing.messages(project.path()), @"error: [folder]/exported.yml cannot be read: No such file or directory (os error 2)");
}

#[test]
fn search_shows_certifications_owners_and_values() {
    const ROWS: &str = "CREATE TABLE t AS SELECT * FROM (VALUES (1, 'Air One'), (2, 'Blue Sky')) AS t(id, airline)";
    let governed = governed();
    let state = fs::read_dir(governed.path()).unwrap().count();
    let found = run("search", governed.path(), &["number"]);
    assert!(found.stdout.contains("t.count") && found.stdout.contains("certified"), "{found:?}");
    let certified = run("search", governed.path(), &["number", "--certification", "certified", "--json"]);
    let certified: Value = serde_json::from_str(&certified.stdout).expect(&certified.stderr);
    assert_eq!(certified["results"][0]["certification"]["status"], "certified", "{certified}");
    assert_eq!(run("search", governed.path(), &["number", "--certification", "draft"]).code, Some(1));
    assert_eq!(fs::read_dir(governed.path()).unwrap().count(), state);

    let cube = "cubes:\n  - name: t\n    sql_table: t\n    meta: {owner: 'team:ops', tags: [fleet]}\n    dimensions:\n      \
                - {name: id, type: number, sql: id, primary_key: true}\n      \
                - {name: airline, type: string, sql: airline, meta: {searchable: true, tags: [fleet]}}\n";
    let settings = format!("name: scratch\nwarehouse: {{type: duckdb, init: [\"{ROWS}\"]}}\n");
    let project = Scratch::empty().with("service_project.yml", &settings).with("cubes/t.yml", cube);
    let value = run("search", project.path(), &["blue", "--tag", "fleet", "--json"]);
    let value: Value = serde_json::from_str(&value.stdout).expect(&value.stderr);
    let hit = &value["results"][0];
    assert_eq!((&hit["type"], &hit["name"], &hit["value"]), (&json!("value"), &json!("t.airline"), &json!("Blue Sky")));
    assert_eq!((&hit["certification"], &value["warnings"]), (&Value::Null, &json!([])), "no state database");
    let table = run("search", project.path(), &["blue", "--type", "value"]);
    assert!(table.stdout.contains("value Blue Sky"), "{table:?}");
    assert_eq!(run("search", project.path(), &["blue", "--tag", "other"]).code, Some(1));
    assert!(!project.path().join(".terrane/state.db").exists(), "a search creates no state database");
}
