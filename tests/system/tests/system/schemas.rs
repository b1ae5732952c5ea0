//! Tests `schema`: the schemas accept the files of the example, and report mistakes.

#![allow(clippy::unwrap_used, reason = "a test stops at its first fault")]

use std::fs;
use std::path::Path;

use boon::{Compiler, Schemas};
use serde_json::Value;
use terrane_system_tests::{FLIGHTS, Output, Program, Scratch, path};

use crate::BINARY;

/// Runs `terrane schema` with arguments and a path.
fn schema(arguments: &[&str], last: &Path) -> Output {
    let arguments: Vec<&str> = ["schema"].into_iter().chain(arguments.iter().copied()).collect();
    Program::new(BINARY, &arguments, last).run().unwrap()
}

/// Returns whether the schema of a kind of file accepts the content of a file.
fn takes(folder: &Path, kind: &str, text: &str) -> bool {
    let file = fs::read_to_string(folder.join(format!("{kind}.json"))).unwrap();
    let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
    let url = format!("https://terrane.example/{kind}.json");
    compiler.add_resource(&url, serde_json::from_str(&file).unwrap()).unwrap();
    let index = compiler.compile(&url, &mut schemas).unwrap();
    let value: Value = serde_saphyr::from_str(text).unwrap();
    schemas.validate(&value, index).is_ok()
}

#[test]
fn written_schemas_accept_the_example_and_reject_mistakes() {
    let scratch = Scratch::empty();
    let folder = scratch.path().join("shop/.schemas");
    for _ in 0..2 {
        let output = schema(&["--out"], &folder);
        assert_eq!((output.code, output.stdout.lines().count()), (Some(0), 7), "{output:?}");
    }
    let project = path(FLIGHTS);
    let read = |file: &str| fs::read_to_string(project.join(file)).unwrap();
    for (file, kind, key, slip) in [
        ("service_project.yml", "project", "\nname:", "\nnaem:"),
        ("service_project.yml", "project", "\nwarehouse:", "\nwarehous:"),
        ("sources/raw.yml", "sources", "tables:", "tabels:"),
        ("cubes/flights.yml", "cubes", "sql_table:", "sql_tabel:"),
        ("metrics/metrics.yml", "metrics", "expression:", "expresion:"),
    ] {
        let text = format!("\n{}", read(file));
        let lists = if kind == "project" { kind } else { "definitions" };
        assert!(takes(&folder, kind, &text) && takes(&folder, lists, &text), "{file}");
        let with_slip = text.replacen(key, slip, 1);
        assert_ne!(with_slip, text, "{file} has {key}");
        assert!(!takes(&folder, kind, &with_slip) && !takes(&folder, lists, &with_slip), "{file} with {slip}");
    }
    let policy = "policies: [{name: a, cubes: [flights], deny: [tailnum]}]";
    assert!(takes(&folder, "policies", policy) && !takes(&folder, "policies", &policy.replace("deny", "denny")));
}

#[test]
fn schema_is_printed_and_kinds_are_listed() {
    let printed = schema(&[], Path::new("cubes"));
    let json: Value = serde_json::from_str(&printed.stdout).unwrap();
    assert_eq!(json["title"], "Terrane: cubes");
    let unknown = schema(&[], Path::new("cubs"));
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.stderr.contains("definitions"), "{}", unknown.stderr);
}
