//! Tests models that `terrane run` and a server build: their diagnostics, the rows that queries read, and the callers
//! who may see them.

#![allow(clippy::unwrap_used, reason = "a test stops at its first fault")]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use terrane_system_tests::{Output, Program, Scratch, Server, request_as};

use crate::{BINARY, run};

const FILE: &str = "name: shop\nwarehouse: {type: duckdb, path: shop.duckdb}\n";
const ROWS: &str = "CREATE OR REPLACE TABLE orders AS SELECT i AS id, CASE WHEN i % 2 = 0 THEN 'EU' ELSE 'US' END AS region, i * 10 AS amount FROM range(1, 11) t(i)";
const CLEAN: &str = "{{ config(materialized='table') }} SELECT * FROM orders WHERE amount > 0";
const LARGE: &str = "SELECT * FROM {{ ref('clean') }} WHERE amount > 50";
const PAUSE: Duration = Duration::from_millis(100);

fn cube(name: &str, rows: &str) -> String {
    format!(
        "cubes:\n  - name: {name}\n    {rows}\n    measures: [{{name: count, type: count}}]\n    \
         dimensions: [{{name: id, type: number, sql: id, primary_key: true}}, {{name: region, type: string, sql: region}}]\n"
    )
}

/// Returns the project file with a statement that creates the rows of the source.
fn source(statement: &str) -> String {
    format!("name: shop\nwarehouse: {{type: duckdb, path: shop.duckdb, init: [\"{statement}\"]}}\n")
}

/// Returns a project with ten orders, one table model, one view model, and cubes over each.
fn project() -> Scratch {
    Scratch::empty()
        .with("service_project.yml", &source(ROWS))
        .with("models/clean.sql", CLEAN)
        .with("models/large.sql", LARGE)
        .with("cubes/orders.yml", &cube("orders", "sql_table: orders"))
        .with("cubes/clean.yml", &cube("clean_orders", "sql_table: \"{{ ref('clean') }}\""))
        .with("cubes/large.yml", &cube("large_orders", "sql_table: \"{{ ref('large') }}\""))
}

fn count(project: &Scratch, cube: &str, caller: Option<&str>) -> Result<i64, String> {
    let query = json!({"measures": [format!("{cube}.count")]}).to_string();
    let mut arguments = vec![query, "--json".to_owned()];
    if let Some(caller) = caller {
        let file = project.path().join("caller.json");
        fs::write(&file, caller).unwrap();
        arguments.extend(["--as".to_owned(), file.display().to_string()]);
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let output = run("query", project.path(), &arguments);
    if output.code != Some(0) {
        return Err(output.stderr);
    }
    let rows: Value = serde_json::from_str(&output.stdout).unwrap();
    Ok(rows[0][format!("{cube}.count")].as_i64().unwrap())
}

fn sql(project: &Scratch, cube: &str) -> String {
    let query = json!({"measures": [format!("{cube}.count")]}).to_string();
    run("query", project.path(), &[&query, "--sql"]).stdout
}

fn lines(output: &Output) -> Vec<Value> {
    output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn run_reports_built_models_and_queries_read_them() {
    let project = project();
    assert!(!sql(&project, "clean_orders").contains("analytics"));
    let output = run("run", project.path(), &[]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let reported: Vec<&str> = output.stdout.lines().collect();
    assert!(reported[0].starts_with("1/2 clean  table  ") && reported[0].ends_with("  10 rows"), "{reported:?}");
    assert!(reported[1].starts_with("2/2 large  view  "), "{reported:?}");
    assert_eq!(reported.len(), 2, "{reported:?}");
    let summary = output.stderr.lines().last().unwrap_or_default();
    insta::assert_snapshot!(summary, @"2 models built");
    assert!(sql(&project, "clean_orders").contains("\"analytics\".\"clean\""));
    // The source has changed, but the table has the rows of its build, and so has the view over the table.
    let project = project.with("service_project.yml", &source("DELETE FROM orders WHERE id > 8"));
    let counts =
        |project: &Scratch| ["orders", "clean_orders", "large_orders"].map(|cube| count(project, cube, None).unwrap());
    assert_eq!(counts(&project), [8, 10, 5]);
    let output = run("run", project.path(), &["--models", "clean", "--json"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let reported = lines(&output);
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert_eq!(
        (&reported[0]["model"], &reported[0]["status"], &reported[0]["rows"]),
        (&json!("clean"), &json!("built"), &json!(8))
    );
    assert_eq!(counts(&project), [8, 8, 3]);
    // The changed definition was not built, so it is inlined.
    let project =
        project.with("models/clean.sql", "{{ config(materialized='table') }} SELECT * FROM orders WHERE id = 1");
    assert_eq!(counts(&project), [8, 1, 0]);
    // Without `init`, queries open the file for reading only.
    let project = project.with("service_project.yml", FILE);
    assert_eq!(counts(&project), [8, 1, 0]);
    assert_eq!(run("run", project.path(), &[]).code, Some(0));
    assert_eq!(counts(&project), [8, 1, 0]);
    let audit = Program::new(BINARY, &["audit", "list"], project.path()).run().unwrap();
    assert!(audit.stdout.contains("models_built"), "{}", audit.stdout);
}

#[test]
fn hidden_rows_stay_hidden_in_built_models() {
    const NURSE: &str = r#"{"roles": ["clerk"]}"#;
    const BOSS: &str = r#"{"roles": ["boss"]}"#;
    let policy = |cube: &str| {
        format!(
            "policies:\n  - {{name: own, cubes: [{cube}], when: {{unless_roles: [boss]}}, row_filter: \"{{region}} = 'EU'\"}}\n"
        )
    };
    let project = project()
        .with("cubes/by_name.yml", &cube("by_name", "sql_table: analytics.clean"))
        .with("cubes/in_query.yml", &cube("in_query", "sql: SELECT * FROM analytics.large WHERE id > 0"));
    assert_eq!(run("run", project.path(), &[]).code, Some(0));
    let project = project.with("policies/own.yml", &policy("orders"));
    assert_eq!(count(&project, "orders", Some(NURSE)), Ok(5));
    for made in ["clean_orders", "large_orders", "by_name", "in_query"] {
        let shown = count(&project, made, Some(NURSE));
        assert!(shown.is_err(), "`{made}` shows {shown:?} rows");
        assert!(count(&project, made, Some(BOSS)).is_ok_and(|rows| rows > 0), "{made}");
    }
    // A policy on the cube over the built model adds a row filter to it.
    let project = project.with("policies/own.yml", &policy("clean_orders"));
    assert!(sql(&project, "clean_orders").contains("\"analytics\".\"clean\""));
    assert_eq!(count(&project, "clean_orders", Some(NURSE)), Ok(5));
    for made in ["large_orders", "by_name", "in_query"] {
        assert!(count(&project, made, Some(NURSE)).is_err(), "{made}");
    }
    // The relation of a removed or changed model may contain any rows, so the nurse must not read it by its name.
    let project = project.with("policies/own.yml", &policy("orders"));
    let project = project
        .with("models/clean.sql", "{{ config(materialized='table') }} SELECT 1 AS id, 'US' AS region, 60 AS amount");
    assert_eq!(count(&project, "clean_orders", Some(NURSE)), Ok(1));
    assert!(count(&project, "by_name", Some(NURSE)).is_err());
    fs::remove_file(project.path().join("models/large.sql")).unwrap();
    fs::remove_file(project.path().join("cubes/large.yml")).unwrap();
    assert!(count(&project, "in_query", Some(NURSE)).is_err());
    let output = run("run", project.path(), &[]);
    let warnings: Vec<&str> = output.stderr.lines().filter(|line| line.contains("analytics.large")).collect();
    insta::assert_snapshot!(warnings.join("\n"), @"note: analytics.large was built from a model that no longer exists; drop it when nothing reads it");
}

#[test]
fn failed_run_reports_its_reason_and_keeps_existing_relations() {
    let project = project();
    assert_eq!(run("run", project.path(), &[]).code, Some(0));
    let project = project
        .with("models/clean.sql", "{{ config(materialized='table') }} SELECT id, region, CASE WHEN id > 5 THEN CAST(region AS INTEGER) ELSE amount END AS amount FROM orders")
        .with("models/other.sql", "SELECT 1 AS id");
    let output = run("run", project.path(), &["--json"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    let status: Vec<(String, String)> = lines(&output)
        .iter()
        .map(|line| (line["model"].as_str().unwrap().to_owned(), line["status"].as_str().unwrap().to_owned()))
        .collect();
    for (model, expected) in [("clean", "failed"), ("large", "skipped"), ("other", "built")] {
        assert!(status.contains(&(model.to_owned(), expected.to_owned())), "{status:?}");
    }
    let project = project.with("models/clean.sql", CLEAN);
    assert_eq!(count(&project, "clean_orders", None), Ok(10));

    // A table that does not belong to the project is not replaced.
    let project =
        project.with("service_project.yml", &source("CREATE TABLE IF NOT EXISTS analytics.theirs AS SELECT 7 AS id"));
    let project = project.with("models/theirs.sql", "{{ config(materialized='table') }} SELECT 1 AS id");
    let output = run("run", project.path(), &["--models", "theirs"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(
        output.stdout.contains("`analytics.theirs` already exists") && output.stdout.contains("hint: "),
        "{output:?}"
    );

    for (settings, arguments, words) in [
        (source(ROWS), &["--models", "larg"][..], "large"),
        ("name: shop\nwarehouse: {type: duckdb}\n".to_owned(), &[][..], "in memory"),
        (
            "name: shop\nwarehouse: {type: sqlite}\n".to_owned(),
            &[][..],
            "cannot be built in a warehouse of type `sqlite` yet",
        ),
    ] {
        let project =
            Scratch::empty().with("service_project.yml", &settings).with("models/large.sql", "SELECT 1 AS id");
        let output = run("run", project.path(), arguments);
        assert_eq!(output.code, Some(1), "{output:?}");
        assert!(output.stderr.contains(words) && output.stderr.contains("hint: "), "{words}: {}", output.stderr);
    }
}

#[test]
fn killed_run_keeps_existing_relations() {
    let endless = "{{ config(materialized='table') }} SELECT count(*) AS id, 'EU' AS region, 1 AS amount FROM range(100000000) a, range(100000000) b WHERE (a.range + b.range) % 7 = 3";
    let project = project();
    assert_eq!(run("run", project.path(), &[]).code, Some(0));
    let project = project.with("models/clean.sql", endless);
    for signal in ["INT", "KILL"] {
        let mut child = Command::new(BINARY)
            .arg("run")
            .arg(project.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut reported = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.starts_with("building clean") {
            line.clear();
            assert!(reported.read_line(&mut line).unwrap() > 0, "it ended by itself");
        }
        let killed = Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status().unwrap();
        assert!(killed.success());
        let mut said = String::new();
        reported.read_to_string(&mut said).unwrap();
        assert!(
            !child.wait().unwrap().success() && (signal == "KILL" || said.contains("the run was stopped")),
            "{said}"
        );
    }
    let project = project.with("models/clean.sql", CLEAN);
    assert!(sql(&project, "clean_orders").contains("\"analytics\".\"clean\""));
    assert_eq!(count(&project, "clean_orders", None), Ok(10));
    // The lease of the killed run expires by itself.
    let mut output = run("run", project.path(), &[]);
    for _ in 0..300 {
        if output.code == Some(0) {
            break;
        }
        insta::allow_duplicates! { insta::assert_snapshot!(output.messages(project.path()), @r"
        error: another run is building models of this project
          hint: Wait until the other run has ended. The lock of a run that crashed expires after 15 s.
        ") };
        std::thread::sleep(PAUSE);
        output = run("run", project.path(), &[]);
    }
    assert_eq!(output.code, Some(0), "{output:?}");
}

fn key(project: &Scratch) -> String {
    let made = Program::new(BINARY, &["auth", "create-key"], project.path());
    let output = made.arguments(&["--name", "writer", "--scopes", "read,write", "--json"]).run().unwrap();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    serde_json::from_str::<Value>(&output.stdout).unwrap()["key"].as_str().unwrap().to_owned()
}

fn serve(project: &Scratch) -> Server {
    Program::new(BINARY, &["serve"], project.path()).arguments(&["--port", "0"]).serve().unwrap()
}

fn send(address: SocketAddr, key: &str, path: &str, body: &Value) -> (u16, Value) {
    let answer = request_as(address, Some(key), "POST", path, Some(&body.to_string())).unwrap();
    (answer.status, serde_json::from_str(&answer.body).unwrap_or_default())
}

#[test]
fn server_builds_what_it_compiles() {
    let project = project();
    let writer = key(&project);
    let server = serve(&project);
    let sql = |server: &Server| {
        let query = json!({"measures": ["clean_orders.count"]});
        send(server.address, &writer, "/api/v1/query/sql", &query).1["sql"].as_str().unwrap().to_owned()
    };
    assert!(!sql(&server).contains("analytics"));
    let build = json!({"build": true});
    let (status, compiled) = send(server.address, &writer, "/api/v1/unified/compile", &build);
    assert_eq!((status, &compiled["success"]), (200, &json!(true)), "{compiled}");
    let clean = &compiled["models"][0]["build"];
    assert_eq!(
        (&clean["status"], &clean["relation"], &clean["rows"]),
        (&json!("built"), &json!("analytics.clean"), &json!(10))
    );
    assert!(sql(&server).contains("\"analytics\".\"clean\""));
    let query = json!({"measures": ["clean_orders.count"]});
    let (_, answer) = send(server.address, &writer, "/api/v1/query", &query);
    assert_eq!(answer["data"][0]["clean_orders.count"], 10, "{answer}");
    // After the load, the changed definition is inlined. After its build, its relation is read.
    let project =
        project.with("models/clean.sql", "{{ config(materialized='table') }} SELECT * FROM orders WHERE id < 4");
    assert_eq!(send(server.address, &writer, "/api/v1/unified/load", &json!({})).0, 200);
    assert!(!sql(&server).contains("analytics"));
    assert_eq!(send(server.address, &writer, "/api/v1/unified/compile", &build).0, 200);
    assert!(sql(&server).contains("\"analytics\".\"clean\""));
    assert_eq!(server.terminate().unwrap().0, Some(0));
    let audit = Program::new(BINARY, &["audit", "list"], project.path()).run().unwrap();
    assert!(audit.stdout.contains("models_built"), "{}", audit.stdout);
    // With a file that is open for reading only, the project compiles, and a warning states that nothing is built.
    let project = project.with("service_project.yml", FILE);
    let server = serve(&project);
    let (status, compiled) = send(server.address, &writer, "/api/v1/unified/compile", &build);
    assert_eq!((status, &compiled["success"]), (200, &json!(true)), "{compiled}");
    insta::assert_snapshot!(compiled["warnings"], @r#"["no model was built: the warehouse is open for reading only; Build with a connection that can write: for a DuckDB file, stop the server and run `terrane run`. Until then, queries inline models."]"#);
    assert!(sql(&server).contains("\"analytics\".\"clean\""));
}

#[test]
fn full_compilation_reuses_nothing() {
    let project = Scratch::empty()
        .with("service_project.yml", FILE)
        .with("data/returns.csv", "id,reason\n1,late\n")
        .with("models/returns.sql", "SELECT id, reason FROM 'data/returns.csv'");
    let writer = key(&project);
    let server = serve(&project);
    let compile = |body: &Value| send(server.address, &writer, "/api/v1/unified/compile", body);
    assert_eq!(compile(&json!({})).0, 200);
    // The text of the model is unchanged, but its file lacks a column now.
    let _project = project.with("data/returns.csv", "id\n1\n");
    assert_eq!(compile(&json!({})).0, 200);
    let (status, refusal) = compile(&json!({"full": true}));
    assert_eq!((status, &refusal["error"]["code"]), (500, &json!("COMPILATION_ERROR")), "{refusal}");
}

#[test]
fn server_compiles_the_requested_models() {
    let project = project();
    let writer = key(&project);
    let server = serve(&project);
    let compile = |body: &Value| send(server.address, &writer, "/api/v1/unified/compile", body);
    let (status, compiled) = compile(&json!({"models": ["clean"], "build": true}));
    assert_eq!(status, 200, "{compiled}");
    let models: Vec<_> = compiled["models"].as_array().unwrap().iter().map(|model| &model["name"]).collect();
    assert_eq!((models, &compiled["model_count"]), (vec![&json!("clean")], &json!(1)), "{compiled}");
    assert_eq!(compiled["models"][0]["build"]["status"], json!("built"), "{compiled}");
    let query = json!({"measures": ["large_orders.count"]});
    let (_, sql) = send(server.address, &writer, "/api/v1/query/sql", &query);
    let sql = sql["sql"].as_str().unwrap();
    assert!(sql.contains("\"analytics\".\"clean\"") && !sql.contains("\"analytics\".\"large\""), "{sql}");
    let (status, refusal) = compile(&json!({"models": ["claen"]}));
    assert_eq!((status, &refusal["error"]["code"]), (422, &json!("VALIDATION_ERROR")), "{refusal}");
    assert!(refusal.to_string().contains("\"clean\""), "{refusal}");
}
