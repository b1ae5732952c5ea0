//! Tests pictures on the command line: graphs, lineage, explanations, bars, and the page of `terrane report`, which is
//! also opened in a browser.
//!
//! In: the example and small projects. Out: trees, files and pages, and messages for names and files that do not exist.

#![allow(clippy::unwrap_used, reason = "a test stops at its first fault")]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use terrane_system_tests::{FLIGHTS, Program, Scratch, path};

use crate::clients::prepared;
use crate::{BINARY, run};

const QUERY: &str = r#"{"measures": ["shop.total"], "dimensions": ["stores.city"]}"#;
const SETTINGS: &str = "name: shops\nwarehouse:\n  type: duckdb\n  init:\n    \
    - \"CREATE TABLE sales AS SELECT i AS id, i % 3 AS store_id, i * 1.5 AS amount, DATE '2024-01-01' + CAST(i AS INTEGER) AS day \
    FROM range(40) AS t(i)\"\n    - \"CREATE TABLE stores AS SELECT i AS id, 'secret-' || i AS city FROM range(3) AS t(i)\"\n";
const MODEL: &str = "SELECT id, store_id,\n  amount,\n  day\nFROM sales\n";
const CUBES: &str = r#"cubes:
  - name: shop
    sql_table: "{{ ref('staged') }}"
    title: "<b>Shop</b>"
    joins:
      - {name: stores, relationship: many_to_one, sql: "{shop}.store_id = {stores}.id"}
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: day, type: time, timezone: none, sql: day, primary_time: true}
    measures:
      - {name: count, type: count}
      - {name: total, type: sum, sql: amount, description: "</script><script>alert(1)</script>"}
  - name: stores
    sql_table: stores
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: city, type: string, sql: city}
    measures: [{name: count, type: count}]
"#;
const METRICS: &str = "metrics:\n  - {name: per_sale, type: ratio, numerator: shop.total, denominator: shop.count}\n";
const POLICIES: &str = "policies:\n  - {name: no_cities, cubes: [stores], when: {roles: [clerk]}, deny: [city]}\n  \
    - {name: one_store, cubes: [shop], when: {roles: [clerk]}, row_filter: \"{shop}.store_id = 1\"}\n";

fn shops() -> Scratch {
    Scratch::empty()
        .with("service_project.yml", SETTINGS)
        .with("models/staged.sql", MODEL)
        .with("cubes/shop.yml", CUBES)
        .with("metrics/metrics.yml", METRICS)
        .with("policies/policies.yml", POLICIES)
        .with("clerk.json", r#"{"user_id": "u7", "roles": ["clerk"]}"#)
}

fn in_folder(scratch: &Scratch, name: &str) -> String {
    scratch.path().join(name).display().to_string()
}

#[test]
fn joins_are_drawn_as_a_tree_and_in_files() {
    let tree = run("graph", &path(FLIGHTS), &[]);
    assert_eq!((tree.code, tree.stderr.as_str()), (Some(0), ""), "{}", tree.stdout);
    assert!(tree.stdout.is_ascii(), "a pipe gets ASCII: {}", tree.stdout);
    assert!(tree.stdout.contains("|- planes  many_to_one  ("), "{}", tree.stdout);
    let scratch = Scratch::empty();
    let file = in_folder(&scratch, "joins.svg");
    let output = run("graph", &path(FLIGHTS), &["--svg", &file]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), ""), "{}", output.stderr);
    let picture = fs::read_to_string(&file).unwrap();
    assert!(picture.starts_with("<svg xmlns=") && picture.contains(">origin_airport</text>"), "{picture}");
    run("graph", &path(FLIGHTS), &["--svg", &file]);
    assert_eq!(fs::read_to_string(&file).unwrap(), picture);
    let flowchart = run("graph", &path(FLIGHTS), &["--mermaid"]).stdout;
    assert!(flowchart.starts_with("flowchart LR\n") && flowchart.contains("-->|\"many_to_one\"|"), "{flowchart}");
    let json: Value =
        serde_json::from_str(&run("graph", &path(FLIGHTS), &["--json", "--cube", "planes"]).stdout).unwrap();
    assert_eq!((&json["cubes"][0]["name"], &json["joins"]), (&json!("planes"), &json!([])), "{json}");
}

/// Runs a command in a pseudo-terminal, which the program `script` of util-linux creates.
fn on_a_terminal(call: &str, locale: &str) -> Option<String> {
    let mut script = Command::new("script");
    script.args(["-qec", &format!("{BINARY} {call}"), "/dev/null"]);
    script.env("TERM", "xterm").env("LC_ALL", locale).stdin(Stdio::null());
    Some(String::from_utf8_lossy(&script.output().ok()?.stdout).into_owned())
}

#[test]
fn terminals_with_utf8_get_lines_and_bars() {
    let scratch = shops();
    let folder = scratch.path().display();
    let Some(tree) = on_a_terminal(&format!("graph {folder}"), "C.UTF-8") else {
        return crate::skip("pictures on a terminal", "`script` of util-linux is missing");
    };
    assert!(tree.contains("└─ stores  many_to_one"), "{tree}");
    let plain = on_a_terminal(&format!("graph {folder}"), "C").unwrap();
    assert!(plain.contains("`- stores  many_to_one"), "{plain}");
    let profile = on_a_terminal(&format!("profile {folder} shop"), "C.UTF-8").unwrap();
    assert!(profile.contains("distribution") && profile.contains('█'), "{profile}");
    let plain = on_a_terminal(&format!("profile {folder} shop"), "C").unwrap();
    assert!(plain.contains("std dev") && !plain.contains("distribution"), "{plain}");
}

#[test]
fn lineage_leads_to_columns_and_back() {
    let scratch = shops();
    let tree = run("lineage", scratch.path(), &["per_sale"]).stdout;
    assert!(tree.starts_with("per_sale  (metric)\n") && tree.contains("staged.amount  (model column)"), "{tree}");
    let affected = run("lineage", scratch.path(), &["table.sales.column.amount", "--downstream", "--json"]).stdout;
    let affected: Value = serde_json::from_str(&affected).unwrap();
    let ids: Vec<&str> = affected["nodes"].as_array().unwrap().iter().filter_map(|node| node["id"].as_str()).collect();
    assert!(ids.contains(&"measure.shop.total") && ids.contains(&"metric.per_sale"), "{ids:?}");
    // A name can be entered in the form in which it is printed.
    let column = run("lineage", scratch.path(), &["sales.amount", "--downstream"]).stdout;
    assert!(column.starts_with("sales.amount  (table column)\n") && column.contains("shop.total"), "{column}");
    let near = run("lineage", scratch.path(), &["shop.total", "--depth", "1", "--mermaid"]).stdout;
    assert!(!near.contains("sales") && near.contains("staged.amount"), "{near}");
}

#[test]
fn names_and_files_that_do_not_exist_are_reported() {
    let scratch = shops();
    let clerk = in_folder(&scratch, "clerk.json");
    for (command, arguments, words) in [
        ("graph", &["--cube", "shpo"][..], &["unknown cube `shpo`", "Similar names: shop"][..]),
        ("graph", &["--svg", "/no/such/folder/a.svg"], &["/no/such/folder/a.svg", "--svg"]),
        ("lineage", &["shop.totla"], &["unknown member `shop.totla`", "shop.total"]),
        ("lineage", &["stores.city", "--as", &clerk], &["unknown member `stores.city`"]),
        ("lineage", &["per_sale", "--svg", "/no/such/folder/a.svg"], &["/no/such/folder/a.svg"]),
        ("report", &["--out", "/no/such/folder/a.html"], &["/no/such/folder/a.html", "--out"]),
        ("report", &["--out", "/tmp"], &["/tmp cannot be written", "folder"]),
        ("report", &["--out", "a.html", "--cube", "shpo"], &["unknown cube `shpo`", "Similar names: shop"]),
    ] {
        let output = run(command, scratch.path(), arguments);
        assert_eq!(output.code, Some(1), "{command} {arguments:?}: {}", output.stdout);
        for word in words {
            assert!(output.stderr.contains(word), "{command} {arguments:?}: {}", output.stderr);
        }
    }
    let empty = Scratch::empty();
    for (command, arguments) in [("graph", &[][..]), ("lineage", &["a.b"]), ("report", &["--out", "a.html"])] {
        let output = run(command, empty.path(), arguments);
        assert!(output.code == Some(1) && output.stderr.contains("service_project.yml"), "{command}: {output:?}");
    }
}

#[test]
fn explanations_are_short_and_models_are_indented() {
    let scratch = shops();
    let short = run("explain", scratch.path(), &[QUERY]);
    assert_eq!(short.code, Some(0), "{}", short.stderr);
    for words in
        ["shop.total = measure shop.total", "left join shop → stores", "\n    SELECT id, store_id,\n      amount,\n"]
    {
        assert!(short.stdout.contains(words), "{words} is not in\n{}", short.stdout);
    }
    assert!(!short.stdout.contains("─ plan") && !short.stdout.contains("─ warehouse"), "{}", short.stdout);
    let full = run("explain", scratch.path(), &[QUERY, "--full"]).stdout;
    assert!(full.contains("─ plan\n") && full.contains("└─ warehouse\n"), "{full}");
}

#[test]
fn bars_and_lines_are_drawn_on_request() {
    let scratch = shops();
    let profile = run("profile", scratch.path(), &["shop", "--plot"]).stdout;
    assert!(profile.contains("distribution") && profile.contains('█'), "{profile}");
    let plain = run("profile", scratch.path(), &["shop"]).stdout;
    assert!(!plain.contains("distribution"), "{plain}");
    let arguments = ["anomaly", "run", "--cube", "shop", "--measure", "total", "--training-size", "20"];
    let drawn =
        |more: &[&str]| Program::new(BINARY, &[&arguments[..], more].concat(), scratch.path()).run().unwrap().stdout;
    assert!(drawn(&["--plot"]).contains("the series: 2024-01-22 to 2024-02-09\n▁"), "{}", drawn(&["--plot"]));
    assert!(!drawn(&["--plot=never"]).contains('▁'));
}

#[test]
fn page_contains_only_what_the_caller_may_see() {
    let scratch = shops();
    let (file, clerk) = (in_folder(&scratch, "page.html"), in_folder(&scratch, "clerk.json"));
    let output = run("report", scratch.path(), &["--out", &file]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    insta::assert_snapshot!(output.messages(scratch.path()), @"wrote [folder]/page.html: 2 cubes, 1 metric, 2 profiles, 2 series");
    let page = fs::read_to_string(&file).unwrap();
    for words in
        ["secret-1", "stores.city", "shop.total", "per_sale", "<strong>", "40 rows", "class=\"bin\"", "class=\"band\""]
    {
        assert!(page.contains(words), "{words} is not in the page");
    }
    assert!(!page.contains("<script>alert") && !page.contains("<b>Shop"), "names are escaped");
    assert_eq!(page.matches("<script>").count(), 1);
    let output = run("report", scratch.path(), &["--out", &file, "--as", &clerk]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let page = fs::read_to_string(&file).unwrap();
    assert!(
        !page.contains("secret-") && !page.contains(".city") && !page.contains(">city<"),
        "denied members are left out"
    );
    assert!(page.contains("13 rows") && page.contains("for u7"), "row filters hold");
    let output = run("report", scratch.path(), &["--out", &file, "--no-data"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let page = fs::read_to_string(&file).unwrap();
    assert!(!page.contains("secret-") && !page.contains("id=\"profiles\""), "no rows are read");
}

#[test]
fn large_projects_are_cut_with_a_note() {
    let mut cubes = String::from("cubes:\n");
    for number in 0..310 {
        let joined = number + 1;
        cubes.push_str(&format!("  - name: c{number}\n    sql_table: stores\n"));
        if joined < 310 {
            let sql = format!("\"{{c{number}}}.id = {{c{joined}}}.id\"");
            cubes.push_str(&format!("    joins: [{{name: c{joined}, relationship: many_to_one, sql: {sql}}}]\n"));
        }
        cubes.push_str("    dimensions: [{name: id, type: number, sql: id, primary_key: true}]\n");
    }
    let scratch = Scratch::empty().with("service_project.yml", SETTINGS).with("cubes/many.yml", &cubes);
    let file = in_folder(&scratch, "page.html");
    let output = run("report", scratch.path(), &["--out", &file, "--no-data"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let page = fs::read_to_string(&file).unwrap();
    for note in ["The page lists the first 300 of 310 cubes.", "The picture shows the first 150 of 310 cubes."] {
        assert!(output.stderr.contains(note) && page.contains(note), "{note}: {}", output.stderr);
    }
    assert!(page.contains("<code>c299</code>") && !page.contains("<code>c300</code><span"), "{}", output.stderr);
    let picture = in_folder(&scratch, "joins.svg");
    let output = run("graph", scratch.path(), &["--svg", &picture]);
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
    assert_eq!(fs::read_to_string(&picture).unwrap().matches("class=\"edge\"").count(), 309);
}

#[test]
fn page_of_a_report_works_in_a_browser() {
    let chromium = Some("/usr/bin/chromium").filter(|path| Path::new(path).is_file());
    let (Some(modules), Some(chromium)) = (prepared("graphql-clients/node_modules"), chromium) else {
        return crate::skip("the page of a report in Chromium", "`cargo xtask setup` installs it with npm and apt");
    };
    let scratch = Scratch::empty();
    let file = in_folder(&scratch, "flights.html");
    let output = run("report", &path(FLIGHTS), &["--out", &file]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    std::os::unix::fs::symlink(modules, scratch.path().join("node_modules")).unwrap();
    fs::copy(path("tests/system/report/page.mjs"), scratch.path().join("page.mjs")).unwrap();
    let output = Command::new("node").current_dir(scratch.path()).args(["page.mjs", &file, chromium]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["requests"], json!([format!("file://{file}"), format!("file://{file}")]), "{found}");
    assert_eq!((&found["violations"], &found["errors"]), (&json!([]), &json!([])), "{found}");
    assert_eq!(found["searched"]["names"], json!(["flights.average_departure_delay"]), "{found}");
    assert_eq!(found["searched"]["count"], "1 metric or member", "{found}");
    assert_eq!(found["missed"], json!({"names": [], "count": "0 metrics and members"}), "{found}");
    assert_eq!((&found["reset"], &found["address"]), (&found["metrics"], &json!("file:")), "{found}");
    assert_eq!((&found["lineage"], &found["printed"]), (&json!(true), &json!(true)), "{found}");
    assert_ne!(found["picture"], "rgb(0, 0, 0)", "{found}");
    assert_ne!(found["themes"][0], found["themes"][1], "{found}");
}
