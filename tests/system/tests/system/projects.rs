//! Tests changes of the served project while a real server runs: loads, reloads, registered cubes, and restarts.

#![allow(clippy::unwrap_used, reason = "a test stops at its first fault")]

use std::fs;
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use terrane_system_tests::{Program, Scratch, Server, request_as};

use crate::BINARY;

const SETTINGS: &str = "name: scratch\nwarehouse: {type: duckdb, init: [\"CREATE TABLE t AS SELECT * FROM (VALUES (1, 'EU', 10), (2, 'US', 20), (3, 'EU', 30)) AS v(id, region, amount)\"]}\n";
const CUBE: &str = "cubes:\n  - name: t\n    sql_table: t\n    measures: [{name: count, type: count}]\n    \
                    dimensions: [{name: id, type: number, sql: id, primary_key: true}, {name: region, type: string, sql: region}]\n";
const MORE: &str = "cubes:\n  - name: more\n    sql_table: t\n    measures: [{name: total, type: sum, sql: amount}]\n";
const POLICY: &str = "policies:\n  - {name: own, cubes: [t], when: {unless_roles: [boss]}, row_filter: \"{region} = {{ user.attributes.region }}\"}\n";
const PAUSE: Duration = Duration::from_millis(50);

fn project() -> Scratch {
    Scratch::empty().with("service_project.yml", SETTINGS).with("cubes/t.yml", CUBE)
}

fn key(project: &Scratch, arguments: &[&str]) -> String {
    let made =
        Program::new(BINARY, &["auth", "create-key"], project.path()).arguments(arguments).arguments(&["--json"]);
    let output = made.run().unwrap();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    serde_json::from_str::<Value>(&output.stdout).unwrap()["key"].as_str().unwrap().to_owned()
}

fn serve(project: &Scratch, arguments: &[&str]) -> Server {
    Program::new(BINARY, &["serve"], project.path()).arguments(&["--port", "0"]).arguments(arguments).serve().unwrap()
}

fn send(address: SocketAddr, key: &str, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let answer = request_as(address, Some(key), method, path, Some(&body)).unwrap();
    (answer.status, serde_json::from_str(&answer.body).unwrap_or_default())
}

fn sum(address: SocketAddr, key: &str, measure: &str) -> Value {
    send(address, key, "POST", "/api/v1/query", &json!({"measures": [measure]})).1["data"][0][measure].clone()
}

/// Repeats a request until it has the wanted answer. A failure shows the last answer.
fn eventually(mut ask: impl FnMut() -> Value, wanted: &Value) {
    let mut found = Value::Null;
    for _ in 0..200 {
        found = ask();
        if found == *wanted {
            return;
        }
        std::thread::sleep(PAUSE);
    }
    assert_eq!(found, *wanted);
}

fn new_cube() -> Value {
    json!({
        "name": "sales",
        "sql_table": "t",
        "title": "Sales",
        "measures": [{"name": "total", "type": "sum", "sql": "amount"}, {"name": "half", "type": "number", "sql": "{total} / 2"}],
        "dimensions": [{"name": "id", "type": "number", "sql": "id", "primary_key": true}, {"name": "region", "type": "string", "sql": "upper(region)"}],
    })
}

#[test]
fn registered_cube_survives_a_crash_and_is_deleted() {
    let project = project();
    let writer = key(&project, &["--name", "writer", "--scopes", "read,write"]);
    let server = serve(&project, &[]);
    let (status, cube) = send(server.address, &writer, "POST", "/api/v1/query/meta/cubes", &new_cube());
    assert_eq!((status, &cube["name"], &cube["segments"]), (201, &json!("sales"), &json!([])), "{cube}");
    server.kill().unwrap();

    let server = serve(&project, &[]);
    assert_eq!(sum(server.address, &writer, "sales.total"), json!(60));
    assert_eq!(sum(server.address, &writer, "sales.half"), json!(30.0));
    let (status, again) = send(server.address, &writer, "POST", "/api/v1/query/meta/cubes", &new_cube());
    assert_eq!((status, again), (400, json!({"detail": "cube `sales` already exists"})));
    // The registered cube still exists after a load, until it is deleted.
    let (status, loaded) = send(server.address, &writer, "POST", "/api/v1/unified/load", &json!({}));
    assert_eq!((status, &loaded["cube_count"]), (200, &json!(2)), "{loaded}");
    assert_eq!(send(server.address, &writer, "DELETE", "/api/v1/query/meta/cubes/sales", &Value::Null).0, 204);
    let (status, gone) = send(server.address, &writer, "DELETE", "/api/v1/query/meta/cubes/sales", &Value::Null);
    assert_eq!((status, gone), (404, json!({"detail": "cube `sales` not found"})));
    assert_eq!(server.terminate().unwrap().0, Some(0));
    let audit = Program::new(BINARY, &["audit", "list"], project.path()).run().unwrap().stdout;
    for event in ["cube_registered", "project_loaded", "cube_deleted"] {
        assert!(audit.contains(event), "{event}: {audit}");
    }
}

#[test]
fn file_takes_precedence_over_a_registered_cube() {
    let project = project();
    let writer = key(&project, &["--name", "writer", "--scopes", "read,write"]);
    let server = serve(&project, &[]);
    let cube =
        json!({"name": "more", "sql_table": "t", "measures": [{"name": "total", "type": "sum", "sql": "amount + 1"}]});
    assert_eq!(send(server.address, &writer, "POST", "/api/v1/query/meta/cubes", &cube).0, 201);
    assert_eq!(sum(server.address, &writer, "more.total"), json!(63));
    let project = project.with("cubes/more.yml", MORE);
    let (status, loaded) = send(server.address, &writer, "POST", "/api/v1/unified/load", &json!({}));
    assert_eq!((status, &loaded["problems"][0]["code"]), (200, &json!("registered-cube-shadowed")), "{loaded}");
    assert_eq!(sum(server.address, &writer, "more.total"), json!(60));
    fs::remove_file(project.path().join("cubes/more.yml")).unwrap();
    assert_eq!(send(server.address, &writer, "POST", "/api/v1/unified/load", &json!({})).0, 200);
    assert_eq!(sum(server.address, &writer, "more.total"), json!(63));
}

#[test]
fn registering_a_cube_discloses_nothing() {
    let project = project().with("policies/own.yml", POLICY);
    let writer = key(&project, &["--name", "eu", "--scopes", "read,write", "--attribute", "region=EU"]);
    let server = serve(&project, &[]);
    assert_eq!(sum(server.address, &writer, "t.count"), json!(2));
    let (status, cube) = send(server.address, &writer, "POST", "/api/v1/query/meta/cubes", &new_cube());
    assert_eq!(status, 201, "{cube}");
    let (status, answer) =
        send(server.address, &writer, "POST", "/api/v1/query", &json!({"measures": ["sales.total"]}));
    let shown = &answer["data"][0]["sales.total"];
    assert!(status == 403 || *shown == json!(40), "a registered cube shows hidden rows: {status} {answer}");
    for (sql, words) in [
        ("(SELECT max(amount) FROM t)", "SELECT"),
        ("getenv('HOME')", "getenv"),
        ("{{ env_var('HOME') }}", "Jinja"),
        ("sum(amount) OVER ()", "OVER"),
        ("COALESCE(?, amount)", "?"),
        ("COALESCE($1, amount)", "$1"),
        ("concat(t.*)", "t.*"),
    ] {
        let cube = json!({"name": "spy", "sql_table": "t", "measures": [{"name": "x", "type": "sum", "sql": sql}]});
        let (status, refusal) = send(server.address, &writer, "POST", "/api/v1/query/meta/cubes", &cube);
        assert_eq!((status, &refusal["error"]["code"]), (403, &json!("FORBIDDEN")), "{sql}: {refusal}");
        assert!(refusal["error"]["details"]["reason"].as_str().unwrap().contains(words), "{refusal}");
    }
    for table in ["information_schema.tables", "\"secret.csv\"", "read_csv('x')", "duckdb_secrets"] {
        let cube = json!({"name": "spy", "sql_table": table, "measures": [{"name": "x", "type": "count"}]});
        assert_eq!(send(server.address, &writer, "POST", "/api/v1/query/meta/cubes", &cube).0, 403, "{table}");
    }
    // A function's name may stand for the whole rows of a table, as the table's name does, so it is refused.
    let cube =
        json!({"name": "spy", "sql_table": "t", "measures": [{"name": "x", "type": "max", "sql": "\"row_to_json\""}]});
    let (status, refusal) = send(server.address, &writer, "POST", "/api/v1/query/meta/cubes", &cube);
    assert_eq!((status, &refusal["error"]["code"]), (422, &json!("VALIDATION_ERROR")), "{refusal}");
    // A missing table is reported, whether or not a member reads one of its columns.
    for measure in [json!({"name": "x", "type": "sum", "sql": "amount"}), json!({"name": "x", "type": "count"})] {
        let cube = json!({"name": "spy", "sql_table": "nothing_there", "measures": [measure]});
        let (status, refusal) = send(server.address, &writer, "POST", "/api/v1/query/meta/cubes", &cube);
        assert_eq!((status, &refusal["error"]["code"]), (422, &json!("VALIDATION_ERROR")), "{refusal}");
        let problem = &refusal["error"]["details"]["problems"][0];
        assert_eq!(problem["code"], "unknown-table", "{refusal}");
    }
}

#[test]
fn policies_remain_when_another_project_is_loaded() {
    let project = project().with("policies/own.yml", POLICY).with("open/service_project.yml", "name: open\n");
    let project = project.with("open/cubes/t.yml", CUBE);
    let writer = key(&project, &["--name", "eu", "--scopes", "read,write", "--attribute", "region=EU"]);
    let server = serve(&project, &[]);
    for path in ["/api/v1/unified/load", "/api/v1/unified/compile"] {
        let (status, refusal) = send(server.address, &writer, "POST", path, &json!({"project_path": "open"}));
        assert_eq!((status, &refusal["error"]["details"]["required_scope"]), (403, &json!("admin")), "{refusal}");
    }
    assert_eq!(sum(server.address, &writer, "t.count"), json!(2));
    // A writer may load the project that is served.
    assert_eq!(send(server.address, &writer, "POST", "/api/v1/unified/load", &json!({"project_path": "."})).0, 200);
    let admin = key(&project, &["--name", "admin", "--scopes", "admin"]);
    let (status, loaded) =
        send(server.address, &admin, "POST", "/api/v1/unified/load", &json!({"project_path": "open"}));
    assert_eq!((status, &loaded["project_name"]), (200, &json!("open")), "{loaded}");
}

#[test]
fn registered_cube_does_not_affect_other_definitions() {
    let metrics = "metrics:\n  - {name: rows, type: simple, expression: t.count}\n  - {name: odd, type: derived, expression: rows * 2}\n";
    let project = project().with("metrics/m.yml", metrics);
    let writer = key(&project, &["--name", "writer", "--scopes", "read,write"]);
    let server = serve(&project, &[]);
    for name in ["rows", "odd"] {
        let cube = json!({"name": name, "sql_table": "t", "measures": [{"name": "n", "type": "count"}]});
        let (status, refusal) = send(server.address, &writer, "POST", "/api/v1/query/meta/cubes", &cube);
        assert_eq!((status, refusal), (400, json!({"detail": format!("cube `{name}` already exists")})));
    }
    let cube = json!({"name": "metric_time", "sql_table": "t", "measures": [{"name": "n", "type": "count"}]});
    let (status, refusal) = send(server.address, &writer, "POST", "/api/v1/query/meta/cubes", &cube);
    assert_eq!((status, &refusal["error"]["details"]["problems"][0]["code"]), (422, &json!("invalid-name")));
    // If a metric in the files uses a registered cube, the cube cannot be deleted. If a metric in the files has the
    // name of the cube, the metric takes precedence.
    assert_eq!(send(server.address, &writer, "POST", "/api/v1/query/meta/cubes", &new_cube()).0, 201);
    let over = "metrics:\n  - {name: over, type: simple, expression: sales.total}\n";
    fs::write(project.path().join("metrics/over.yml"), over).unwrap();
    assert_eq!(send(server.address, &writer, "POST", "/api/v1/unified/load", &json!({})).0, 200);
    let (status, refusal) = send(server.address, &writer, "DELETE", "/api/v1/query/meta/cubes/sales", &Value::Null);
    assert_eq!((status, &refusal["error"]["code"]), (422, &json!("VALIDATION_ERROR")), "{refusal}");
    assert!(refusal["error"]["details"]["problems"][0]["message"].as_str().unwrap().contains("sales"), "{refusal}");
    let named = "metrics:\n  - {name: sales, type: simple, expression: t.count}\n";
    fs::write(project.path().join("metrics/over.yml"), named).unwrap();
    let (status, loaded) = send(server.address, &writer, "POST", "/api/v1/unified/load", &json!({}));
    assert_eq!((status, &loaded["problems"][0]["code"]), (200, &json!("registered-cube-shadowed")), "{loaded}");
    server.kill().unwrap();
    assert_eq!(sum(serve(&project, &[]).address, &writer, "t.count"), json!(3));
}

/// The warehouse returns the columns of a star. A restricted caller must not learn the names of columns that no SQL of
/// the project contains.
#[test]
fn lineage_expands_stars_by_warehouse_columns() {
    let project = project()
        .with("models/all_of_it.sql", "SELECT * FROM t")
        .with(
            "cubes/more.yml",
            "cubes:\n  - name: more\n    sql_table: \"{{ ref('all_of_it') }}\"\n    measures: [{name: total, type: sum, sql: amount}]\n",
        )
        .with("policies/own.yml", &POLICY.replace("[t]", "[more]").replace("{region}", "{CUBE}.region"));
    let boss = key(&project, &["--name", "boss", "--scopes", "read", "--roles", "boss"]);
    let other = key(&project, &["--name", "other", "--scopes", "read", "--attribute", "region=EU"]);
    let server = serve(&project, &[]);
    let columns = |key: &str| -> Vec<String> {
        let (status, graph) = send(server.address, key, "GET", "/api/v1/lineage/graph", &Value::Null);
        assert_eq!(status, 200, "{graph}");
        let nodes = graph["nodes"].as_array().unwrap();
        assert!(nodes.iter().all(|node| node["type"] != json!("unresolved")), "{graph}");
        let ids = nodes.iter().map(|node| node["id"].as_str().unwrap()).filter(|id| id.starts_with("table.t.column."));
        ids.map(str::to_owned).collect()
    };
    let mut all = columns(&boss);
    all.sort();
    assert_eq!(all, ["table.t.column.amount", "table.t.column.id", "table.t.column.region"]);
    let (_, total) = send(server.address, &boss, "GET", "/api/v1/lineage/measure/more/total", &Value::Null);
    let found: Vec<&str> = total["columns"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
    for id in ["model.all_of_it.column.amount", "table.t.column.amount", "table.t.column.region"] {
        assert!(found.contains(&id), "{id} is upstream, {total}");
    }
    let (status, impact) =
        send(server.address, &boss, "POST", "/api/v1/lineage/impact", &json!({"column_id": "table.t.column.REGION"}));
    assert_eq!((status, &impact["affected"]["policies"][0]["name"]), (200, &json!("own")), "{impact}");
    let (_, total) = send(server.address, &other, "GET", "/api/v1/lineage/measure/more/total", &Value::Null);
    assert_eq!(total["columns"], json!(["model.all_of_it.column.amount", "table.t.column.amount"]), "{total}");
}

#[test]
fn sighup_reloads_and_a_broken_project_keeps_the_old_one() {
    let project = project();
    let writer = key(&project, &["--name", "writer", "--scopes", "read,write"]);
    let server = serve(&project, &[]);
    let hang_up = || {
        let sent = Command::new("kill").args(["-HUP", &server.process().to_string()]).status().unwrap();
        assert!(sent.success());
    };
    let standing =
        || send(server.address, &writer, "GET", "/health/status", &Value::Null).1["project"]["status"].clone();
    assert_eq!(standing(), json!("ok"));
    let project = project.with("cubes/more.yml", MORE);
    hang_up();
    eventually(|| sum(server.address, &writer, "more.total"), &json!(60));
    let project = project.with("cubes/more.yml", &MORE.replace("sum,", "summ,"));
    hang_up();
    eventually(standing, &json!("stale"));
    assert_eq!(sum(server.address, &writer, "more.total"), json!(60));
    let _project = project.with("cubes/more.yml", MORE);
    hang_up();
    eventually(standing, &json!("ok"));
    let (code, log) = server.terminate().unwrap();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("project_refused") && log.contains("cubes/more.yml:4"), "{log}");
}

#[test]
fn lenient_load_serves_valid_parts_of_a_broken_project() {
    let project = project();
    let writer = key(&project, &["--name", "writer", "--scopes", "read,write"]);
    let server = serve(&project, &[]);
    let standing = || send(server.address, &writer, "GET", "/health/status", &Value::Null).1["project"].clone();
    let load = |strict: bool| send(server.address, &writer, "POST", "/api/v1/unified/load", &json!({"strict": strict}));
    let project = project.with("cubes/more.yml", &MORE.replace("sum,", "summ,"));
    let (status, refusal) = load(true);
    assert_eq!(status, 422, "{refusal}");
    assert_eq!(standing()["status"], json!("stale"));
    let (status, loaded) = load(false);
    assert_eq!(status, 200, "{loaded}");
    let found = standing();
    assert_eq!((&found["status"], &found["errors"]), (&json!("partial"), &json!(1)), "{found}");
    assert_eq!(sum(server.address, &writer, "t.count"), json!(3));
    let _project = project.with("cubes/more.yml", MORE);
    assert_eq!(load(true).0, 200);
    assert_eq!(standing()["status"], json!("ok"));
}

/// A cube that worked is not replaced by one that the warehouse refuses. A new cube with an error, and a table that was
/// dropped, do not prevent a load.
#[test]
fn change_that_the_warehouse_rejects_keeps_the_old_project() {
    let project = project().with("cubes/more.yml", MORE);
    let writer = key(&project, &["--name", "writer", "--scopes", "read,write"]);
    let server = serve(&project, &[]);
    let load = |strict: bool| send(server.address, &writer, "POST", "/api/v1/unified/load", &json!({"strict": strict}));
    let standing = || send(server.address, &writer, "GET", "/health/status", &Value::Null).1["project"].clone();
    let project = project.with("cubes/more.yml", &MORE.replace("sql: amount", "sql: amuont"));
    for path in ["load", "compile"] {
        let path = format!("/api/v1/unified/{path}");
        let (status, refusal) = send(server.address, &writer, "POST", &path, &json!({}));
        assert!(status == 422 || refusal["success"] == json!(false), "{path}: {status} {refusal}");
        assert!(refusal.to_string().contains("member-not-readable"), "{refusal}");
        assert_eq!(sum(server.address, &writer, "more.total"), json!(60), "{refusal}");
        assert_eq!(standing()["status"], json!("stale"), "{refusal}");
    }
    let (status, loaded) = load(false);
    assert_eq!(status, 200, "{loaded}");
    assert_eq!((&standing()["status"], &standing()["errors"]), (&json!("partial"), &json!(1)), "{loaded}");
    assert_eq!(load(true).0, 422, "it is lost until it is readable");
    let project = project.with("cubes/more.yml", MORE);
    let new = "cubes: [{name: new, sql_table: nowhere, measures: [{name: count, type: count}]}]\n";
    let _project = project.with("cubes/new.yml", new);
    let (status, loaded) = load(true);
    assert_eq!((status, &loaded["cube_count"]), (200, &json!(3)), "{loaded}");
    assert_eq!(sum(server.address, &writer, "more.total"), json!(60));
}

#[test]
fn unreadable_file_closes_every_cube_and_is_reported_on_load() {
    let project = project();
    let writer = key(&project, &["--name", "writer", "--scopes", "read,write"]);
    let server = serve(&project, &[]);
    let text: Vec<u8> = format!("\u{feff}{POLICY}").encode_utf16().flat_map(u16::to_le_bytes).collect();
    let _project = project.with_bytes("policies/own.yml", &text);
    let (status, loaded) = send(server.address, &writer, "POST", "/api/v1/unified/load", &json!({"strict": false}));
    assert_eq!(status, 200, "{loaded}");
    let reported = loaded["problems"].as_array().unwrap().iter().find(|reported| reported["code"] == "closed-cubes");
    assert!(reported.is_some_and(|reported| reported["message"].to_string().contains("policies/own.yml")), "{loaded}");
    let (status, refusal) = send(server.address, &writer, "POST", "/api/v1/query", &json!({"measures": ["t.count"]}));
    let words = refusal.to_string();
    assert!(status == 403 && words.contains("cannot be read") && !words.contains("own.yml"), "{refusal}");
    let (_, log) = server.terminate().unwrap();
    assert!(log.lines().any(|line| line.contains("cubes_closed") && line.contains("policies/own.yml")), "{log}");
}

#[test]
fn watched_folder_is_loaded_when_it_changes() {
    let project = project();
    let reader = key(&project, &["--name", "reader"]);
    let server = serve(&project, &["--watch"]);
    let project = project.with("cubes/more.yml", MORE);
    eventually(|| sum(server.address, &reader, "more.total"), &json!(60));
    // A file may also be written under a temporary name and then moved to its place.
    fs::write(project.path().join("cubes/.more.tmp"), MORE.replace("amount", "amount * 2")).unwrap();
    fs::rename(project.path().join("cubes/.more.tmp"), project.path().join("cubes/more.yml")).unwrap();
    eventually(|| sum(server.address, &reader, "more.total"), &json!(120));
}

#[test]
fn projects_outside_of_allowed_folders_are_rejected() {
    let outside = Scratch::empty().with("other/service_project.yml", "name: other\n");
    let outside = outside.with("other/cubes/o.yml", &CUBE.replace("name: t\n", "name: o\n"));
    let outside = outside.with("private/service_project.yml", "name: private\n");
    let root = outside.path().join("other");
    let settings = format!("{SETTINGS}server: {{project_roots: [\"{}\"]}}\n", root.display());
    let project = project().with("service_project.yml", &settings);
    let project = project.with("inner/service_project.yml", "name: inner\n");
    std::os::unix::fs::symlink(outside.path().join("private"), project.path().join("link")).unwrap();
    let writer = key(&project, &["--name", "writer", "--scopes", "read,write"]);
    let server = serve(&project, &[]);
    let load =
        |path: &str| send(server.address, &writer, "POST", "/api/v1/unified/load", &json!({"project_path": path}));
    let private = outside.path().join("private").display().to_string();
    let mut reported = Vec::new();
    for path in ["nowhere", "..", "/", "/etc", "link", &private, "inner/../..", "\u{0}", ""] {
        let (status, refusal) = load(path);
        if path.is_empty() {
            assert_eq!(status, 200, "{refusal}");
            continue;
        }
        assert_eq!((status, &refusal["error"]["code"]), (400, &json!("INVALID_PROJECT_PATH")), "{path}: {refusal}");
        reported.push(refusal["error"]["message"].as_str().unwrap().replace(path, "…"));
    }
    // A file outside the folder is reported like a missing file.
    assert!(reported[..6].iter().all(|message| *message == reported[0]), "{reported:?}");
    assert_eq!(load("inner").1["project_name"], json!("inner"));
    let (status, loaded) = load(&root.display().to_string());
    assert_eq!((status, &loaded["project_name"], &loaded["cube_count"]), (200, &json!("other"), &json!(1)), "{loaded}");
    assert_eq!(sum(server.address, &writer, "o.count"), json!(3));
    assert_eq!(load("").1["project_name"], json!("scratch"));
}

/// An engine may read a plain name as a file. For a writer, only names in the catalog are tables.
#[test]
fn writer_registers_only_tables_of_the_catalog() {
    // With a view over a file, SQL may read the data folder.
    let settings = SETTINGS.replace("init: [", "init: [\"CREATE VIEW seen AS SELECT * FROM 'customers.csv'\", ");
    let mut project = project().with("service_project.yml", &settings).with("data/customers.csv", "id,secret\n1,x\n");
    for ending in ["csv", "tsv", "ndjson", "json"] {
        project = project.with(&format!("customers.{ending}"), "id,secret\n1,x\n");
    }
    let writer = key(&project, &["--name", "writer", "--scopes", "read,write"]);
    let admin = key(&project, &["--name", "admin", "--scopes", "read,write,admin"]);
    let server = serve(&project, &[]);
    let register = |key: &str, name: &str, table: &str| {
        let cube = json!({"name": name, "sql_table": table, "measures": [{"name": "n", "type": "count"}]});
        send(server.address, key, "POST", "/api/v1/query/meta/cubes", &cube)
    };
    for table in [
        "customers.csv",
        "customers.tsv",
        "customers.json",
        "customers.ndjson",
        "CUSTOMERS.CSV",
        "customers.csv.gz",
        "nowhere",
    ] {
        for caller in [&writer, &admin] {
            let (status, refusal) = register(caller, "taken", table);
            let code = &refusal["error"]["details"]["problems"][0]["code"];
            assert_eq!((status, code), (422, &json!("unknown-table")), "{table}: {refusal}");
        }
    }
    for table in ["data/customers.csv", "\"customers.csv\"", "'customers.csv'", "read_csv('customers.csv')"] {
        assert_eq!(register(&writer, "taken", table).0, 403, "{table}");
    }
    for (name, table) in [("upper_case", "T"), ("in_schema", "main.t"), ("view_of_file", "seen")] {
        let (status, answer) = register(&writer, name, table);
        assert_eq!(status, 201, "{table}: {answer}");
        assert_ne!(sum(server.address, &writer, &format!("{name}.n")), Value::Null, "{table}");
    }
    let (status, answer) = register(&admin, "file", "\"customers.csv\"");
    assert_eq!(status, 201, "{answer}");
    assert_eq!(sum(server.address, &admin, "file.n"), json!(1));
    server.kill().unwrap();

    // A table that no longer exists is not read as a file, and the rest of the project is served.
    let without = settings.replace("CREATE VIEW seen AS SELECT * FROM 'customers.csv'", "SELECT 1");
    let project = project.with("service_project.yml", &without);
    let server = serve(&project, &[]);
    assert_eq!(sum(server.address, &writer, "upper_case.n"), json!(3));
    assert_eq!(sum(server.address, &admin, "file.n"), json!(1));
    let query = json!({"measures": ["view_of_file.n"]});
    assert_ne!(send(server.address, &writer, "POST", "/api/v1/query", &query).0, 200);
    let (status, loaded) = send(server.address, &admin, "POST", "/api/v1/unified/load", &json!({}));
    let reported = loaded["problems"].as_array().unwrap().iter().find(|reported| reported["code"] == "unknown-table");
    assert_eq!((status, &reported.unwrap()["severity"]), (200, &json!("warning")), "{loaded}");
}
