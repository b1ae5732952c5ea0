//! Tests the definitions of the example project, whose files the client packages test, and of projects with hostile
//! text.
//!
//! In: projects as text. Out: the generated modules. `sdk/typescript/test/project.ts` is also compared with the types
//! that the npm package makes from a server, so both have the same output.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use terrane_codegen::{Language, generate};
use terrane_compiler::model::build;
use terrane_compiler::project::{Inputs, SourceTree, read};
use terrane_compiler::{Access, SecurityContext};

const POLICIES: &str = "policies: [{name: no_prices, cubes: [orders], deny: [price]}]";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the definitions of a project for a caller without any role.
fn definitions(tree: &SourceTree, language: Language) -> String {
    let inputs = Inputs { warehouse: "duckdb".into(), ..Inputs::default() };
    let (definitions, mut problems) = read(tree, &inputs);
    let (model, found) = build(&definitions);
    problems.extend(found);
    problems.retain(|problem| problem.is_error());
    assert_eq!(problems, []);
    generate(&Access::of(&model, &SecurityContext::default()), language)
}

fn tree(files: &[(&str, &str)]) -> SourceTree {
    let files: BTreeMap<_, _> = files.iter().map(|(path, text)| ((*path).into(), (*text).into())).collect();
    SourceTree { files: files.into_iter().chain([("service_project.yml".into(), "name: shop".into())]).collect() }
}

fn flights() -> SourceTree {
    let folder = root().join("examples/flights");
    let mut tree = SourceTree::default();
    let mut add = |path: &str| tree.files.insert(path.into(), fs::read_to_string(folder.join(path)).unwrap().into());
    add("service_project.yml");
    for part in ["cubes", "metrics", "models", "sources"] {
        for entry in fs::read_dir(folder.join(part)).unwrap() {
            add(&format!("{part}/{}", entry.unwrap().file_name().into_string().unwrap()));
        }
    }
    tree
}

/// Compares `text` with a file. If they differ, writes `text` to a new file beside it.
fn assert_file(file: &str, text: &str) {
    let path = root().join(file);
    if fs::read_to_string(&path).ok().as_deref() != Some(text) {
        let new = format!("{file}.new");
        fs::write(root().join(&new), text).unwrap();
        panic!("{file} differs: review {new} and move it over the file");
    }
}

#[test]
fn types_of_the_example_are_those_of_the_npm_package() {
    assert_file("sdk/typescript/test/project.ts", &definitions(&flights(), Language::TypeScript));
}

#[test]
fn constants_of_the_example_are_those_that_the_python_package_tests() {
    assert_file("sdk/python/tests/project.py", &definitions(&flights(), Language::Python));
}

#[test]
fn order_of_the_files_has_no_influence() {
    let orders = "cubes: [{name: orders, sql_table: t, measures: [{name: b, type: count}, {name: a, type: count}]}]";
    let others = "cubes: [{name: a, sql_table: t}, {name: z, sql_table: t}]";
    for language in [Language::TypeScript, Language::Python] {
        let one = definitions(&tree(&[("cubes/1.yml", orders), ("cubes/2.yml", others)]), language);
        assert_eq!(one, definitions(&tree(&[("cubes/1.yml", others), ("cubes/2.yml", orders)]), language));
    }
}

/// A project whose descriptions try to leave their comments, and whose names are words of Python.
fn hostile() -> SourceTree {
    let texts = [
        "*/ process.exit() /*",
        r#"\"\"\"; import os; os.abort() #"#,
        r"ends with a backslash \\",
        "@ts-expect-error @deprecated",
        "type: ignore",
        ">>> import os",
        r"a line\nanother\u2028third\u202e reversed",
    ];
    let dimension =
        |(index, text): (usize, &&str)| format!("{{name: d{index}, type: string, sql: id, description: \"{text}\"}}");
    let mut dimensions: Vec<_> = texts.iter().enumerate().map(dimension).collect();
    dimensions
        .extend(["class", "class_", "__init__", "mro"].map(|name| format!("{{name: {name}, type: string, sql: id}}")));
    let cube = format!("cubes: [{{name: lambda, sql_table: t, dimensions: [{}]}}]", dimensions.join(", "));
    tree(&[("cubes/all.yml", &cube)])
}

#[test]
fn text_cannot_end_a_typescript_comment() {
    let text = definitions(&hostile(), Language::TypeScript);
    for line in text.lines().filter(|line| line.trim_start().starts_with("/**")) {
        assert!(line.ends_with(" */") && line.matches("*/").count() == 1, "{line}");
        assert!(!line.replace("\\@", "").contains('@'), "{line}");
    }
    assert_eq!(text.lines().count(), text.split(['\n', '\r', '\u{2028}', '\u{85}']).count() - 1, "{text}");
    assert!(!text.contains('\u{202e}'));
}

#[test]
fn text_cannot_end_a_python_docstring() {
    let text = definitions(&hostile(), Language::Python);
    for line in text.lines().filter(|line| line.trim_start().starts_with("\"\"\"")) {
        let inner = line.trim().strip_prefix("\"\"\"").and_then(|line| line.strip_suffix("\"\"\"")).unwrap();
        let rest = inner.replace("\\\\", "").replace("\\\"", "");
        assert!(!rest.contains(['"', '\\']) && !rest.contains(">>>"), "{line}");
    }
    assert!(!text.contains("# type: ignore") && !text.contains('\u{202e}'));
    for line in [
        "class lambda_:",
        "    class__: Final = Member(\"lambda.class\", ())",
        "    class_: Final = Member(\"lambda.class_\", ())",
        "    m__init__: Final = Member(\"lambda.__init__\", ())",
        "    mro: Final = Member(\"lambda.mro\", ())",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is missing in {text}");
    }
}

#[test]
fn closed_and_hidden_members_are_absent() {
    let cubes = "\
cubes:
  - name: orders
    sql_table: t
    measures: [{name: count, type: count}, {name: highest, type: max, sql: \"{price}\"}]
    dimensions: [{name: price, type: number, sql: price}, {name: note, type: string, sql: note, hidden: true}]
    segments: [{name: big, sql: \"{price} > 9\"}, {name: all_rows, sql: \"1 = 1\"}]
  - {name: inner, public: false, sql_table: t, measures: [{name: count, type: count}]}
metrics:
  - {name: top, type: simple, expression: orders.highest}
  - {name: orders_count, type: simple, expression: orders.count}
";
    let open = tree(&[("cubes/all.yml", cubes)]);
    let closed = tree(&[("cubes/all.yml", cubes), ("policies/all.yml", POLICIES)]);
    for language in [Language::TypeScript, Language::Python] {
        let (open, closed) = (definitions(&open, language), definitions(&closed, language));
        for name in ["price", "highest", "big", "top"] {
            assert!(open.contains(name) && !closed.contains(name), "{name}: {closed}");
        }
        for name in ["count", "all_rows", "orders_count"] {
            assert!(closed.contains(name), "{name}: {closed}");
        }
        assert!(!open.contains("note") && !open.contains("inner"), "{open}");
    }
}

#[test]
fn types_follow_the_members() {
    let cubes = "\
cubes:
  - name: all
    sql_table: t
    dimensions:
      - {name: at, type: time, sql: at, primary_time: true, granularities: [month, day]}
      - {name: open, type: boolean, sql: open}
      - {name: place, type: geo, sql: place}
      - {name: size, type: number, sql: size}
    measures:
      - {name: buyers, type: count_distinct, sql: size}
      - {name: first, type: min, sql: size}
      - {name: first_at, type: min, sql: \"{at}\"}
      - {name: last_at, type: max, sql: at, rolling_window: {trailing: 7 day}}
      - {name: other, type: max, sql: weight}
      - {name: half, type: median, sql: size}
      - {name: recent, type: count, rolling_window: {trailing: 7 day}}
      - {name: running, type: running_total, sql: size}
      - {name: total, type: sum, sql: size}
";
    let text = definitions(&tree(&[("cubes/all.yml", cubes)]), Language::TypeScript);
    for line in [
        "\"at\": string | null;",
        "\"open\": boolean | null;",
        "\"place\": string | null;",
        "\"size\": number | null;",
        "\"buyers\": number;",
        "\"first\": number | null;",
        "\"first_at\": string | null;",
        "\"last_at\": string | null;",
        "\"other\": string | number | boolean | null;",
        "\"half\": number | null;",
        "\"recent\": number;",
        "\"running\": number | null;",
        "\"total\": number | null;",
        "\"at\": \"day\" | \"month\";",
        "segments: never;",
    ] {
        assert!(text.lines().any(|found| found.trim() == line), "{line} is missing in {text}");
    }
}

#[test]
fn empty_project_has_empty_definitions() {
    let typescript = definitions(&tree(&[]), Language::TypeScript);
    assert!(typescript.ends_with("export interface Project {\n  cubes: {};\n  metrics: {};\n}\n"), "{typescript}");
    let python = definitions(&tree(&[]), Language::Python);
    assert!(python.ends_with("\n\n\nclass Metrics:\n    \"\"\"The metrics of the project.\"\"\"\n"), "{python}");
    assert!(!python.contains("import"), "{python}");
}
