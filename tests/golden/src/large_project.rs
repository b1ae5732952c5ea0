//! Projects of any size in the form in which authors write them, with one file per cube, for benchmarks and for
//! counting compiled objects.

#![allow(clippy::unwrap_used, reason = "a benchmark stops at its first fault")]

use std::fmt::Write as _;

use terrane_compiler::project::{Inputs, SourceTree};

/// The number of cubes in a group: the first cube of a group is joined by the nine others.
const FAMILY: usize = 10;

/// Returns a project of `cubes` cubes with 30 members each. A tenth of the cubes read models. The project also has
/// metrics and policies.
pub fn large_project(cubes: usize) -> SourceTree {
    let mut tree = SourceTree::default();
    let mut put = |path: String, text: String| tree.files.insert(path.into(), text.into());
    put("service_project.yml".to_owned(), "name: large\nvars:\n  currency: EUR\n".to_owned());
    let mut sources = String::from("sources:\n  - name: raw\n    schema: raw\n    tables:\n");
    for model in 0..cubes / FAMILY {
        writeln!(sources, "      - name: events_{model}").unwrap();
        writeln!(sources, "        columns:").unwrap();
        for column in columns() {
            writeln!(sources, "          - {{name: {column}}}").unwrap();
        }
        put(format!("models/staged_{model}.sql"), staged(model));
        put(format!("models/paid_{model}.sql"), paid(model));
    }
    put("sources/raw.yml".to_owned(), sources);
    for number in 0..cubes {
        put(format!("cubes/cube_{number:04}.yml"), large_cube(number));
    }
    for family in 0..cubes / FAMILY {
        put(format!("metrics/family_{family:03}.yml"), metrics(family * FAMILY));
    }
    put("policies/all.yml".to_owned(), policies(cubes));
    tree
}

/// Returns a project of `cubes` cubes whose 30 members each read one column of one model.
pub fn every_member_over_one_column(cubes: usize) -> SourceTree {
    let mut tree = SourceTree::default();
    tree.files.insert("service_project.yml".into(), "name: large\n".into());
    tree.files.insert("models/wide.sql".into(), "SELECT amount FROM raw.wide\n".into());
    for number in 0..cubes {
        let mut text = format!("cubes:\n  - name: cube_{number:04}\n    sql_table: \"{{{{ ref('wide') }}}}\"\n");
        text.push_str("    dimensions:\n");
        for member in 0..15 {
            writeln!(text, "      - {{name: step_{member}, type: number, sql: \"FLOOR(amount / {})\"}}", member + 1)
                .unwrap();
        }
        text.push_str("    measures:\n");
        for member in 0..15 {
            writeln!(text, "      - {{name: total_{member}, type: sum, sql: amount}}").unwrap();
        }
        tree.files.insert(format!("cubes/cube_{number:04}.yml").into(), text.into());
    }
    tree
}

/// Returns the inputs of [`large_project`].
pub fn inputs() -> Inputs {
    Inputs { warehouse: "duckdb".into(), ..Inputs::default() }
}

fn columns() -> impl Iterator<Item = String> {
    let plain = ["id", "parent_id", "created_at", "status", "amount", "email"].map(str::to_owned);
    let numbered = (0..9).flat_map(|number| [format!("text_{number}"), format!("amount_{number}")]);
    plain.into_iter().chain(numbered)
}

fn staged(model: usize) -> String {
    let list = columns().map(|column| format!("    e.{column}")).collect::<Vec<_>>().join(",\n");
    format!(
        "-- Events as they come, without those of tests.\n{{{{ config(materialized='view') }}}}\nSELECT\n{list}\nFROM \
         {{{{ source('raw', 'events_{model}') }}}} AS e\nWHERE e.status <> 'test'\n"
    )
}

fn paid(model: usize) -> String {
    let list = columns().map(|column| format!("  {column}")).collect::<Vec<_>>().join(",\n");
    format!(
        "SELECT\n{list},\n  amount * 2 AS doubled\nFROM {{{{ ref('staged_{model}') }}}}\nWHERE status = 'paid' AND \
         amount > 0\n"
    )
}

/// Returns the file of one cube.
fn large_cube(number: usize) -> String {
    let (family, place) = (number / FAMILY, number % FAMILY);
    let first = family * FAMILY;
    let rows = match place {
        3 => format!("sql_table: \"{{{{ ref('paid_{family}') }}}}\""),
        5 => format!("sql: SELECT * FROM {{{{ ref('staged_{family}') }}}} WHERE amount IS NOT NULL"),
        _ => format!("sql_table: raw.cube_{number:04}"),
    };
    let mut text = format!(
        "cubes:\n  - name: cube_{number:04}\n    {rows}\n    title: Cube {number}\n    description: One row an event of \
         kind {number}.\n"
    );
    if place > 0 {
        write!(
            text,
            "    joins:\n      - name: cube_{first:04}\n        relationship: many_to_one\n        sql: \
             \"{{CUBE}}.parent_id = {{cube_{first:04}}}.id\"\n"
        )
        .unwrap();
    } else if number > 0 {
        text.push_str(
            "    joins:\n      - name: cube_0000\n        relationship: many_to_one\n        sql: \"{CUBE}.parent_id = \
             {cube_0000}.id\"\n",
        );
    }
    text.push_str(
        "    dimensions:\n      - {name: id, type: number, sql: id, primary_key: true}\n      - name: created_at\n        \
         type: time\n        sql: created_at\n        primary_time: true\n      - name: status\n        type: string\n        \
         sql: \"{CUBE}.status\"\n        description: Where it stands.\n      - name: email\n        type: string\n        \
         sql: email\n        meta: {pii: true}\n",
    );
    for text_number in 0..8 {
        writeln!(text, "      - name: text_{text_number}\n        type: string\n        sql: text_{text_number}")
            .unwrap();
    }
    text.push_str(
        "      - name: size\n        type: string\n        sql: CASE WHEN {CUBE}.amount >= 100 THEN 'large' ELSE 'small' \
         END\n",
    );
    let above = if place > 0 { format!("{{cube_{first:04}.text_0}}") } else { "{CUBE}.text_8".to_owned() };
    writeln!(text, "      - name: above\n        type: string\n        sql: UPPER({above})").unwrap();
    text.push_str("    measures:\n      - {name: count, type: count}\n");
    for amount in 0..8 {
        writeln!(
            text,
            "      - name: total_{amount}\n        type: sum\n        sql: amount_{amount}\n        format: currency"
        )
        .unwrap();
    }
    text.push_str(
        "      - name: paid\n        type: sum\n        sql: amount\n        filters:\n          - {sql: \"{CUBE}.status = \
         'paid'\"}\n      - name: senders\n        type: count_distinct\n        sql: email\n      - name: average\n        \
         type: number\n        sql: \"{total_0} / NULLIF({count}, 0)\"\n        description: What one event brings.\n      \
         - name: net\n        type: sum\n        sql: \"{CUBE}.amount - COALESCE({CUBE}.amount_1, 0)\"\n      - name: \
         share\n        type: number\n        sql: \"{paid} / NULLIF({net}, 0)\"\n        format: percent\n",
    );
    text.push_str("    segments:\n      - {name: is_paid, sql: \"{CUBE}.status = 'paid'\"}\n");
    text.push_str("      - {name: is_large, sql: \"{size} = 'large'\"}\n");
    text
}

fn metrics(first: usize) -> String {
    format!(
        "metrics:\n  - {{name: income_{first}, type: simple, expression: cube_{first:04}.total_0}}\n  - name: \
         ratio_{first}\n    type: ratio\n    numerator: cube_{first:04}.paid\n    denominator: cube_{first:04}.count\n  \
         - name: margin_{first}\n    type: derived\n    expression: \"(income_{first} - cube_{first:04}.total_1) / \
         NULLIF(income_{first}, 0)\"\n"
    )
}

fn policies(cubes: usize) -> String {
    let mut text = String::from(
        "policies:\n  - name: no_emails\n    cubes: \"*\"\n    when: {unless_roles: [privacy]}\n    mask: {email: \
         hash}\n    allow_aggregate: true\n",
    );
    for number in (0..cubes).step_by(50) {
        write!(
            text,
            "  - name: own_rows_{number}\n    cubes: [cube_{number:04}]\n    when: {{unless_roles: [admin]}}\n    \
             row_filter: \"{{CUBE}}.text_0 IN {{{{ user.attributes.regions }}}}\"\n"
        )
        .unwrap();
    }
    text
}
