//! Every case in `cases/lineage/`: SQL and known columns, and what a person says that its columns are
//! made of.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value as Json;
use terrane_compiler::lineage::{KnownColumns, OutputName, QueryColumns, TableColumn, columns_of};

fn known(tables: &Json) -> KnownColumns {
    let mut known = KnownColumns::default();
    for (table, columns) in tables.as_object().into_iter().flatten() {
        let columns = texts(columns).into_iter().map(Arc::from).collect();
        known.inspected(table, columns);
    }
    known
}

fn texts(list: &Json) -> Vec<String> {
    list.as_array().into_iter().flatten().map(|text| text.as_str().expect("a text").to_owned()).collect()
}

fn shown(column: &TableColumn) -> String {
    format!("{}.{}", column.table, column.column)
}

fn columns(of: &QueryColumns) -> Vec<String> {
    let lines = of.outputs.iter().map(|output| {
        let name = match &output.name {
            OutputName::Named(name) => name,
            OutputName::Unnamed => "-",
            OutputName::Star => "*",
        };
        let inputs: Vec<String> = output.inputs.iter().map(shown).collect();
        let unresolved = output.unresolved.iter().map(|unresolved| format!(" ? {}", unresolved.reason));
        let line = format!("{name}: {}{}", inputs.join(", "), unresolved.collect::<String>());
        line.replace(":  ?", ": ?").trim_end().to_owned()
    });
    lines.collect()
}

fn uses(of: &QueryColumns) -> Vec<String> {
    let mut lines: Vec<String> =
        of.uses.iter().map(|(usage, column)| format!("{} {}", usage.as_str(), shown(column))).collect();
    lines.sort();
    lines
}

#[test]
fn columns_are_made_of_what_a_person_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases/lineage");
    let mut files: Vec<_> = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    let (mut count, mut wrong) = (0, Vec::new());
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a text");
        let all: Json = serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        for case in all["cases"].as_array().expect("cases") {
            count += 1;
            let tables = if case["known"].is_null() { &all["known"] } else { &case["known"] };
            let sql = case["sql"].as_str().expect("sql");
            let made = columns_of(sql, case["dialect"].as_str().unwrap_or("duckdb"), &known(tables));
            let mut expect = |what: &str, wanted: Vec<String>, found: Vec<String>| {
                if wanted != found {
                    wrong.push(format!("{} ({sql})\n  {what}\n  wanted {wanted:?}\n  found  {found:?}", case["about"]));
                }
            };
            expect("columns", texts(&case["columns"]), columns(&made));
            expect("uses", texts(&case["uses"]), uses(&made));
            if !case["tables"].is_null() {
                expect("tables", texts(&case["tables"]), made.tables.iter().map(ToString::to_string).collect());
            }
            let is_recursive = case["recursive"].as_bool().unwrap_or(false);
            expect("recursive", vec![is_recursive.to_string()], vec![made.is_recursive.to_string()]);
        }
    }
    assert!(count >= 70, "{count} cases are too few");
    assert!(wrong.is_empty(), "{} of {count}\n{}", wrong.len(), wrong.join("\n"));
}

/// On the stack of a test's thread: every text is followed or called too large, and nothing overflows.
#[test]
fn no_text_is_too_deep() {
    for dialect in ["duckdb", "postgres", "bigquery"] {
        for length in [30, 100, 1_000, 1_900, 20_000] {
            let chains = [
                format!("SELECT {} FROM t", vec!["a"; length].join(" + ")),
                format!("SELECT a FROM t WHERE {}", vec!["a"; length].join(" OR ")),
                vec!["SELECT a FROM t"; length].join(" UNION ALL "),
                format!("SELECT a FROM {}", vec!["t"; length].join(" JOIN ")),
                format!("SELECT a FROM {}", vec!["t"; length].join(" CROSS JOIN ")),
                format!("SELECT {}a{} FROM t", "(".repeat(length), ")".repeat(length)),
                format!("SELECT a FROM {}t{}", "(SELECT * FROM ".repeat(length), ") x".repeat(length)),
                format!("SELECT {} a FROM t", "NOT ".repeat(length)),
                format!("SELECT a{} FROM t", "::int".repeat(length)),
                format!("SELECT {}a{} FROM t", "CASE WHEN ".repeat(length), " THEN 1 END".repeat(length)),
                format!("WITH {} SELECT a FROM c0", nested_ctes(length)),
            ];
            for sql in chains {
                let made = columns_of(&sql, dialect, &KnownColumns::default());
                assert_eq!(made.outputs.len(), 1, "{dialect} {length}: {}", &sql[..40]);
            }
        }
    }
}

fn nested_ctes(length: usize) -> String {
    let ctes: Vec<String> = (0..length).map(|at| format!("c{at} AS (SELECT a FROM t)")).collect();
    ctes.join(", ")
}

#[test]
fn columns_that_double_are_too_many_and_not_too_much() {
    let mut sql = String::from("WITH c0 AS (SELECT 1 AS a, 2 AS b)");
    for at in 1..60 {
        sql.push_str(&format!(", c{at} AS (SELECT x.*, y.* FROM c{b} x, c{b} y)", b = at - 1));
    }
    sql.push_str(" SELECT a FROM c59");
    let made = columns_of(&sql, "duckdb", &KnownColumns::default());
    let told = made.outputs[0].unresolved[0].reason.to_string();
    assert_eq!(told, "the SQL is too large to be followed");
}
