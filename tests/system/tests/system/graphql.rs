//! Tests clients of GraphQL: the audits of GraphQL over HTTP, libraries from npm and PyPI, generated types, and the
//! page in a browser.
//!
//! In: a real server over a real project; tools that `cargo xtask setup` installs. Out: the results of each client. A
//! test whose tool is missing reports itself as skipped, and fails in CI.

#![allow(clippy::unwrap_used, reason = "a test stops at its first fault")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use terrane_system_tests::{FLIGHTS, Output, Scratch, path, request_as};

use crate::clients::{Service, prepared, run, tool};
use crate::{BINARY, program};

const NPM: &str = "graphql-clients/node_modules";
/// The ids of recommended audits that the server fails on purpose.
const DECLINED: &[&str] = &[];

/// Creates a folder with the scripts of the tests and the packages that the scripts import.
fn scripts(modules: &Path, service: &Service) -> PathBuf {
    let folder = service.folder().join("graphql");
    fs::create_dir(&folder).unwrap();
    std::os::unix::fs::symlink(modules, folder.join("node_modules")).unwrap();
    fs::write(folder.join("package.json"), json!({ "type": "module" }).to_string()).unwrap();
    for file in ["audits.mjs", "clients.mjs", "codegen.mjs", "typed.ts", "page.mjs"] {
        fs::copy(path("tests/system/graphql").join(file), folder.join(file)).unwrap();
    }
    folder
}

fn node(folder: &Path, program: impl AsRef<Path>) -> Command {
    let mut command = Command::new("node");
    command.arg(program.as_ref()).current_dir(folder);
    command
}

fn parsed(printed: &str) -> Value {
    let line = printed.lines().find(|line| line.starts_with(['{', '[']));
    line.and_then(|line| serde_json::from_str(line).ok()).unwrap_or_else(|| panic!("no JSON: {printed}"))
}

#[test]
fn document_is_executed_on_the_command_line() {
    let folder = path(FLIGHTS);
    let document = r#"{ query(measures: ["flights.count"]) { data query { sql } } }"#;
    let output = run_program(&[document]);
    let answer: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!(answer["data"]["query"]["data"], json!([{"flights.count": 336_776}]), "{answer}");
    assert!(answer["data"]["query"]["query"]["sql"].as_str().unwrap().contains("SELECT"), "{answer}");
    // The document comes from standard input and from a file, with variables and a selected operation.
    let several = "query Names($names: [String!]) { cubes(names: $names) { name } } query None { cubes { title } }";
    let options = ["--variables", r#"{"names": ["flights"]}"#, "--operation", "Names"];
    let scratch = Scratch::empty().with("names.graphql", several);
    let file = format!("@{}/names.graphql", scratch.path().display());
    let piped = program("graphql", &folder).arguments(&["-"]).arguments(&options).input(several).run().unwrap();
    let read = program("graphql", &folder).arguments(&[&file]).arguments(&options).run().unwrap();
    for output in [piped, read] {
        assert_eq!(output.stdout, "{\"data\":{\"cubes\":[{\"name\":\"flights\"}]}}\n", "{output:?}");
        assert_eq!(output.code, Some(0), "{output:?}");
    }
}

#[test]
fn command_prints_the_schema_without_a_project() {
    let printed = run(Command::new(BINARY).args(["graphql", "--schema"]).env_clear());
    assert_eq!(printed, fs::read_to_string(path("runtime/graphql/schema.graphql")).unwrap());
}

#[test]
fn wrong_inputs_of_the_command_are_reported() {
    // The response is printed even if it has errors.
    for (arguments, code) in [
        (vec!["{ cubes { nothing } }"], "GRAPHQL_VALIDATION_FAILED"),
        (vec!["{ cubes { name"], "GRAPHQL_SYNTAX_ERROR"),
        (vec![""], "GRAPHQL_SYNTAX_ERROR"),
        (vec!["{ query(measures: [\"flights.nothing\"]) { data } }"], "INVALID_MEASURE"),
        (vec!["query A { cubes { name } }", "--operation", "B"], "GRAPHQL_VALIDATION_FAILED"),
        (vec!["query ($name: String!) { cube(name: $name) { name } }"], "GRAPHQL_VALIDATION_FAILED"),
        (vec!["mutation { invalidateCache { tenant } }"], "CONFLICT"),
        (vec!["{ job(id: \"1\") { status } }"], "CONFLICT"),
    ] {
        let output = run_program(&arguments);
        let answer: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
        assert_eq!(answer["errors"][0]["extensions"]["code"], code, "{arguments:?}: {answer}");
        assert_eq!(output.code, Some(1), "{output:?}");
        assert!(output.stderr.contains(code), "{output:?}");
    }
    let (cubes, live) = ("{ cubes { name } }", "subscription { queryResult(measures: [\"flights.count\"]) { data } }");
    for (arguments, exit, word) in [
        (vec![live], 1, "terrane serve"),
        (vec![cubes, "--variables", "[]"], 1, "--variables"),
        (vec![cubes, "--variables", "{"], 1, "--variables"),
        (vec!["@missing.graphql"], 1, "missing.graphql"),
        (vec![cubes, "--as", "missing.json"], 1, "missing.json"),
        (vec![], 2, "DOCUMENT"),
        (vec![cubes, "--schema"], 2, "--schema"),
        (vec![cubes, "--nothing"], 2, "--nothing"),
    ] {
        let output = run_program(&arguments);
        assert_eq!((output.code, output.stdout.as_str()), (Some(exit), ""), "{arguments:?}: {output:?}");
        assert!(output.stderr.contains(word), "{arguments:?}: {output:?}");
    }
}

/// Runs `terrane graphql` on the example project.
fn run_program(arguments: &[&str]) -> Output {
    crate::run("graphql", &path(FLIGHTS), arguments)
}

#[test]
fn generated_operations_have_no_internal_error() {
    let Some(python) = tool("schemathesis/bin/python") else {
        return crate::skip("schemathesis", "`cargo xtask test` installs it with Python's pip");
    };
    let service = Service::start();
    let script = path("tests/system/graphql/generated.py");
    let answer = parsed(&run(Command::new(python).arg(script).args(service.arguments()).current_dir(service.folder())));
    assert_eq!(answer["faults"], json!([]), "{answer}");
    // The number of fields of queries and mutations; subscriptions are not counted.
    let schema = fs::read_to_string(path("runtime/graphql/schema.graphql")).unwrap();
    assert_eq!(answer["operations"].as_u64().unwrap() as usize, root_fields(&schema), "{answer}");
    assert!(answer["codes"]["none"].as_u64().unwrap() > 50, "{answer}");
}

/// Returns the number of fields of the types of queries and mutations.
fn root_fields(schema: &str) -> usize {
    let fields = |root: &str| {
        let (_, body) = schema.split_once(&format!("type {root} {{\n")).unwrap();
        let (body, _) = body.split_once("\n}").unwrap();
        // A field is on a line with one tab: its name, then its arguments or its type.
        let is_field = |line: &&str| {
            let rest = line.strip_prefix('\t').map(|line| line.trim_start_matches(char::is_alphanumeric));
            rest.is_some_and(|rest| rest.starts_with(['(', ':']) && !line.starts_with("\t("))
        };
        body.lines().filter(is_field).count()
    };
    fields("Query") + fields("Mutation")
}

#[test]
fn audits_of_graphql_over_http_pass() {
    let Some(modules) = prepared(NPM) else { return crate::skip("graphql-http", "`cargo xtask setup` installs it") };
    let service = Service::start();
    let folder = scripts(&modules, &service);
    let results = parsed(&run(node(&folder, "audits.mjs").args(service.arguments())));
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut failures = Vec::new();
    for audit in results.as_array().unwrap() {
        let (name, status) = (audit["name"].as_str().unwrap(), audit["status"].as_str().unwrap());
        let level = name.split(' ').next().unwrap();
        *counts.entry((level, status)).or_default() += 1;
        let is_declined = DECLINED.contains(&audit["id"].as_str().unwrap());
        if status != "ok" && level != "MAY" && !is_declined {
            failures.push(format!("{name}: {}", audit["reason"]));
        }
    }
    assert!(counts[&("MUST", "ok")] >= 10, "{counts:?}");
    assert!(failures.is_empty(), "{counts:?}\n{}", failures.join("\n"));
}

#[test]
fn libraries_from_npm_query_and_subscribe() {
    let Some(modules) = prepared(NPM) else { return crate::skip("graphql-ws", "`cargo xtask setup` installs it") };
    let service = Service::start();
    let folder = scripts(&modules, &service);
    let answers = parsed(&run(node(&folder, "clients.mjs").args(service.arguments())));
    for client in ["apollo", "urql", "ws", "sse"] {
        let answer = &answers[client];
        assert_eq!(answer["cube"], "flights", "{client}: {answers}");
        assert_eq!(answer["refused"], "GRAPHQL_VALIDATION_FAILED", "{client}: {answers}");
        assert_eq!(answer["live"][0]["flights.count"], 336_776, "{client}: {answers}");
    }
}

#[test]
fn types_are_generated_from_the_schema() {
    let Some(modules) = prepared(NPM) else { return crate::skip("graphql-codegen", "`cargo xtask setup` installs it") };
    let service = Service::start();
    let folder = scripts(&modules, &service);
    let mut codegen = node(&folder, modules.join("@graphql-codegen/cli/cjs/bin.js"));
    let [base, key] = service.arguments();
    run(codegen.args(["--config", "codegen.mjs"]).env("TERRANE_URL", &base).env("TERRANE_KEY", &key));
    let options = ["--strict", "--target", "es2022", "--module", "nodenext", "--skipLibCheck", "typed.ts"];
    run(node(&folder, modules.join("typescript/bin/tsc")).args(options));
    let answer = parsed(&run(node(&folder, "typed.js").args([base, key])));
    assert_eq!(answer["names"], json!(["flights"]), "{answer}");
    assert!(answer["measures"].as_u64().unwrap() > 5, "{answer}");
    // A field that the schema lacks is found when the types are checked, before a query runs.
    let typed = fs::read_to_string(folder.join("typed.ts")).unwrap().replace("cube.name", "cube.nam");
    fs::write(folder.join("typed.ts"), typed).unwrap();
    let checked = node(&folder, modules.join("typescript/bin/tsc")).args(options).output().unwrap();
    assert!(!checked.status.success() && String::from_utf8_lossy(&checked.stdout).contains("'nam'"), "{checked:?}");
}

#[test]
fn gql_from_pypi_queries_and_subscribes() {
    let Some(python) = tool("graphql-client/bin/python") else {
        return crate::skip("gql", "`cargo xtask setup` installs it with Python's pip");
    };
    let service = Service::start();
    let script = path("tests/system/graphql/client.py");
    let answer = parsed(&run(Command::new(python).arg(script).args(service.arguments())));
    assert_eq!(answer["http"], json!({"cube": "flights", "refused": "INVALID_MEASURE"}), "{answer}");
    assert_eq!(answer["live"][0]["flights.count"], 336_776, "{answer}");
}

#[test]
fn page_works_in_a_browser() {
    let chromium = Some("/usr/bin/chromium").filter(|path| Path::new(path).is_file());
    let (Some(modules), Some(chromium)) = (prepared(NPM), chromium) else {
        return crate::skip("the page in Chromium", "`cargo xtask setup` installs it with npm and apt");
    };
    let service = Service::start_private();
    let page = request_as(service.address(), None, "GET", "/graphql/page/graphiql.js", None).unwrap();
    if page.status == 404 {
        return crate::skip(
            "the page in Chromium",
            "this program was built without GraphiQL; `cargo xtask setup` fetches it",
        );
    }
    let folder = scripts(&modules, &service);
    let found = parsed(&run(node(&folder, "page.mjs").args(service.arguments()).arg(chromium)));
    assert_eq!(found["query"], json!({"anonymous": true, "answered": true}), "{found}");
    assert_eq!(found["explorer"], true, "{found}");
    assert_eq!(found["error"], true, "{found}");
    assert!(found["subscription"].as_str().unwrap().contains("336776"), "{found}");
    assert_eq!(found["storage"], json!({"tab": true, "elsewhere": false, "other_tab": 0}), "{found}");
    assert_ne!(found["themes"][0], found["themes"][1], "{found}");
    assert_eq!(found["forgotten"], true, "{found}");
    assert_eq!(found["hosts"], json!([service.address().to_string()]), "{found}");
    assert_eq!((&found["violations"], &found["errors"]), (&json!([]), &json!([])), "{found}");
}
