//! Tests `codegen`: definitions of the example, of hostile projects and of restricted callers, and the errors that
//! compilers and type checkers find in queries over them.
//!
//! In: projects, and the tools that `cargo xtask setup` installs. Out: files, and messages for invalid arguments.

#![allow(clippy::unwrap_used, reason = "a test stops at its first fault")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use terrane_system_tests::{FLIGHTS, Output, Program, Scratch, path};

use crate::clients::{prepared, run, tool};
use crate::{BINARY, program};

const SETTINGS: &str =
    "name: shop\nwarehouse: {type: duckdb, init: [\"CREATE TABLE t AS SELECT 1 AS id, 2 AS price, now() AS at\"]}\n";
/// A cube whose titles and descriptions try to end their comment or to direct a tool. Its names are Python keywords.
const CUBES: &str = r##"cubes:
  - name: orders
    sql_table: t
    title: "*/ process.exit(); /* \"\"\"; import os; os.abort() #"
    description: "@ts-nocheck line\nbreak\u2028separator \u202ereversed\u200b \\"
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true, title: "\u00ad\u0600\ufeff\U000e0041\u180e type: ignore"}
      - {name: price, type: number, sql: price, description: "${process.exit()} {@link x} @ts-ignore"}
      - {name: at, type: time, sql: at, primary_time: true, granularities: [day, month], description: ">>> import os"}
      - {name: class, type: string, sql: id, title: "\"\"\""}
      - {name: __init__, type: string, sql: id, description: "ends with a backslash \\"}
    measures:
      - {name: count, type: count, title: "äöü 😀 “quoted”"}
      - {name: highest, type: max, sql: "{price}"}
    segments: [{name: big, sql: "{price} > 9"}, {name: all_rows, sql: "1 = 1"}]
  - {name: lambda, sql_table: t, measures: [{name: count, type: count}]}
"##;
const METRICS: &str = "metrics:
  - {name: top, type: simple, expression: orders.highest}
  \
    - {name: number, type: simple, expression: orders.count}
";
const POLICIES: &str = "policies:\n  - {name: no_prices, cubes: [orders], when: {roles: [clerk]}, deny: [price]}\n";

fn shop() -> Scratch {
    Scratch::empty()
        .with("service_project.yml", SETTINGS)
        .with("cubes/orders.yml", CUBES)
        .with("metrics/metrics.yml", METRICS)
        .with("policies/policies.yml", POLICIES)
        .with("clerk.json", r#"{"user_id": "u7", "roles": ["clerk"]}"#)
}

fn codegen(folder: &Path, arguments: &[&str]) -> Output {
    program("codegen", folder).arguments(arguments).run().unwrap()
}

fn in_folder(scratch: &Scratch, name: &str) -> String {
    scratch.path().join(name).display().to_string()
}

#[test]
fn definitions_of_the_example_are_written_and_checked() {
    let scratch = Scratch::empty();
    let mut outdated = Vec::new();
    for (language, golden) in
        [("typescript", "sdk/typescript/test/project.ts"), ("python", "sdk/python/tests/project.py")]
    {
        let file = in_folder(&scratch, language);
        let arguments = ["--lang", language, "--out", &file];
        assert_eq!(codegen(&path(FLIGHTS), &arguments).code, Some(0));
        let written = fs::read_to_string(&file).unwrap();
        assert_eq!(written, fs::read_to_string(path(golden)).unwrap(), "{golden}");
        assert_eq!(codegen(&path(FLIGHTS), &arguments[..2]).stdout, written);
        let check = [&arguments[..], &["--check"]].concat();
        assert_eq!(codegen(&path(FLIGHTS), &check).code, Some(0));
        fs::write(&file, written.replace("flights", "fligths")).unwrap();
        let output = codegen(&path(FLIGHTS), &check);
        assert_eq!(output.code, Some(1), "{output:?}");
        outdated.push(output.messages(scratch.path()));
        assert!(fs::read_to_string(&file).unwrap().contains("fligths"), "--check writes nothing");
    }
    insta::assert_snapshot!(outdated.join(""), @r"
    error: [folder]/typescript is outdated
      hint: Run the command without --check to write it.
    error: [folder]/python is outdated
      hint: Run the command without --check to write it.
    ");
}

#[test]
fn wrong_arguments_are_refused() {
    let scratch = shop();
    let (missing, absent) = (in_folder(&scratch, "no/such/project.py"), in_folder(&scratch, "absent.py"));
    for (arguments, code, words) in [
        (&["--lang", "rust"][..], 2, "possible values: typescript, python"),
        (&[], 2, "--lang"),
        (&["--lang", "python", "--check"], 2, "--out"),
        (&["--lang", "python", "--out", &missing], 1, "Check the path after --out"),
        (&["--lang", "python", "--out", &absent, "--check"], 1, "Run the command without --check"),
        (&["--lang", "python", "--as", &absent], 1, "cannot be read"),
    ] {
        let output = codegen(scratch.path(), arguments);
        assert_eq!(output.code, Some(code), "{arguments:?}: {output:?}");
        assert!(output.stderr.contains(words) && output.stdout.is_empty(), "{arguments:?}: {output:?}");
    }
    let broken = shop().with("metrics/metrics.yml", "metrics: [{name: top, type: simple, expression: orders.hihgest}]");
    let file = in_folder(&broken, "project.ts");
    let output = codegen(broken.path(), &["--lang", "typescript", "--out", &file]);
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.stderr.contains("metrics/metrics.yml:1"), "{output:?}");
    assert!(!Path::new(&file).exists(), "a project with errors has no definitions");
}

#[test]
fn closed_members_are_left_out_for_the_caller() {
    let scratch = shop();
    let clerk = in_folder(&scratch, "clerk.json");
    for language in ["typescript", "python"] {
        let all = codegen(scratch.path(), &["--lang", language]).stdout;
        let of_clerk = codegen(scratch.path(), &["--lang", language, "--as", &clerk]).stdout;
        let has = |text: &str, name: &str| {
            text.lines()
                .map(str::trim)
                .any(|line| line.starts_with(&format!("{name}:")) || line.starts_with(&format!("\"{name}\":")))
        };
        for name in ["price", "highest", "top"] {
            assert!(has(&all, name) && !has(&of_clerk, name), "{name}: {of_clerk}");
        }
        assert!(has(&of_clerk, "count") && has(&of_clerk, "number"), "{of_clerk}");
        assert!(all.contains("big") && !of_clerk.contains("big") && of_clerk.contains("all_rows"), "{of_clerk}");
    }
}

/// Returns the folder of the built npm package, with the tools of its tests.
fn npm_package(folder: &Path) -> Option<PathBuf> {
    let modules = prepared("typescript-client/node_modules")?;
    crate::packages::copy(&path("sdk/typescript"), folder);
    std::os::unix::fs::symlink(modules, folder.join("node_modules")).unwrap();
    run(Command::new("npm").args(["run", "--silent", "build"]).current_dir(folder));
    Some(folder.to_owned())
}

#[test]
fn npm_package_writes_the_same_types_from_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let Some(package) = npm_package(folder.path()) else {
        return crate::skip("typescript", "`cargo xtask setup` installs it with npm");
    };
    let scratch = shop();
    let state = format!("sqlite://{}", in_folder(&scratch, "state.db"));
    let with_state = |call: &[&str]| Program::new(BINARY, call, scratch.path()).variable("SERVICE_STATE__URL", &state);
    for (roles, caller) in [("clerk", "clerk.json"), ("manager", "manager.json")] {
        fs::write(scratch.path().join(caller), format!("{{\"user_id\": \"u7\", \"roles\": [\"{roles}\"]}}")).unwrap();
        let name = ["--name", roles, "--scopes", "read", "--roles", roles, "--json"];
        let key: Value =
            serde_json::from_str(&with_state(&["auth", "create-key"]).arguments(&name).run().unwrap().stdout).unwrap();
        let server = with_state(&["serve"]).arguments(&["--port", "0"]).serve().unwrap();
        let from_server = Command::new("node")
            .arg(package.join("dist/bin/terrane-codegen.js"))
            .arg(format!("http://{}", server.address))
            .env("TERRANE_KEY", key["key"].as_str().unwrap())
            .output()
            .unwrap();
        let caller = in_folder(&scratch, caller);
        let from_files = codegen(scratch.path(), &["--lang", "typescript", "--as", &caller]).stdout;
        assert!(from_files.contains("\"orders\""), "{from_files}");
        assert_eq!(from_files, String::from_utf8(from_server.stdout).unwrap(), "{roles}");
    }
}

#[test]
fn types_of_hostile_text_compile_and_misspelled_members_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let Some(package) = npm_package(folder.path()) else {
        return crate::skip("typescript", "`cargo xtask setup` installs it with npm");
    };
    let query = |member: &str| {
        format!(
            "import {{ Client, month }} from \"@terrane/client\";\nimport type {{ Project }} from \"./project.js\";\n\
             const client = new Client<Project>({{ baseUrl: \"http://127.0.0.1\" }});\n\
             export const query = client.from(\"orders\").groupBy(\"class\", month(\"at\")).measures(\"{member}\");\n"
        )
    };
    let out = package.join("test/hostile/project.ts");
    fs::create_dir(out.parent().unwrap()).unwrap();
    let arguments = ["--lang", "typescript", "--out", &out.display().to_string()];
    assert_eq!(codegen(shop().path(), &arguments).code, Some(0));
    let compile = |member: &str| {
        fs::write(out.with_file_name("query.ts"), query(member)).unwrap();
        let options =
            ["--noEmit", "--strict", "--target", "es2022", "--module", "nodenext", "--skipLibCheck", "--types", "node"];
        let files = ["test/hostile/project.ts", "test/hostile/query.ts"];
        let mut tsc = Command::new("node");
        tsc.arg("node_modules/typescript/bin/tsc").args(options).args(files).current_dir(&package);
        let output = tsc.output().unwrap();
        (output.status.success(), String::from_utf8(output.stdout).unwrap())
    };
    assert_eq!(compile("count"), (true, String::new()));
    let (has_compiled, messages) = compile("cuont");
    assert!(!has_compiled && messages.contains("query.ts(4,"), "{messages}");
}

#[test]
fn constants_of_hostile_text_pass_a_type_checker_and_misspelled_members_do_not() {
    let Some(python) = tool("python-client/bin/python") else {
        return crate::skip("mypy", "`cargo xtask setup` installs it with Python's pip");
    };
    let scratch = shop();
    let arguments = ["--lang", "python", "--out", &in_folder(&scratch, "project.py")];
    assert_eq!(codegen(scratch.path(), &arguments).code, Some(0));
    let check = |member: &str| {
        let text = format!(
            "from project import Metrics, lambda_, orders\nfrom terrane import Query\n\
             query = Query().group_by(orders.class_, orders.m__init__, orders.at.month).agg(orders.{member}, Metrics.top)\n\
             query = query.agg(lambda_.count).segment(orders.big)\nprint(query.to_wire()[\"dimensions\"])\n"
        );
        fs::write(scratch.path().join("query.py"), text).unwrap();
        let mut mypy = Command::new(&python);
        mypy.args(["-m", "mypy", "--strict", "--follow-imports=silent", "--config-file=", "project.py", "query.py"]);
        mypy.env("MYPYPATH", path("sdk/python/src").canonicalize().unwrap()).current_dir(scratch.path());
        let output = mypy.output().unwrap();
        (output.status.success(), String::from_utf8(output.stdout).unwrap())
    };
    let (is_valid, messages) = check("count");
    assert!(is_valid, "{messages}");
    let script = scratch.path().join("query.py");
    let printed =
        run(Command::new(&python).arg(script).env("PYTHONPATH", path("sdk/python/src").canonicalize().unwrap()));
    assert_eq!(printed.trim(), "['orders.class', 'orders.__init__', 'orders.at.month']");
    let (is_valid, messages) = check("cuont");
    assert!(!is_valid && messages.contains("has no attribute \"cuont\""), "{messages}");
}
