//! Tests `terrane import cube`: a shop in Cube's YAML becomes a project whose answers equal those of hand-written SQL.
//! Every difference from Cube's project is reported at its place.

#![allow(clippy::unwrap_used, reason = "a test stops at its first fault")]

use std::fs;

use serde_json::Value;
use terrane_system_tests::{Program, Scratch, path};

use crate::{BINARY, program};

const MODEL: &str = "tests/system/projects/cube_ecommerce";

/// The tables of the model.
const TABLES: &[&str] = &[
    "CREATE SCHEMA shop",
    "CREATE TABLE shop.users AS SELECT * FROM (VALUES (1, 'Oslo', 'NO', 59.9, 10.7, 'f', TIMESTAMP '2024-01-01'), \
     (2, 'Rome', 'IT', 41.9, 12.5, 'm', TIMESTAMP '2024-01-02')) AS t(id, city, state, latitude, longitude, gender, created_at)",
    "CREATE TABLE shop.orders AS SELECT * FROM (VALUES (1, 1, 'completed', 10.0, TIMESTAMP '2024-01-05'), \
     (2, 1, 'shipped', 5.5, TIMESTAMP '2024-01-06'), (3, 2, 'completed', 4.5, TIMESTAMP '2024-02-01')) AS t(id, user_id, status, amount, created_at)",
    "CREATE TABLE shop.line_items AS SELECT * FROM (VALUES (1, 1, 1, 2, TIMESTAMP '2024-01-05'), (2, 1, 2, 1, TIMESTAMP '2024-01-05'), \
     (3, 3, 1, 4, TIMESTAMP '2024-02-01')) AS t(id, order_id, product_id, quantity, created_at)",
    "CREATE TABLE shop.products AS SELECT * FROM (VALUES (1, 'Cup', 2.5, 1, 1), (2, 'Pan', 5.0, 1, 2)) AS t(id, name, price, supplier_id, category_id)",
    "CREATE TABLE shop.suppliers AS SELECT 1 AS id, 'Acme' AS company",
    "CREATE TABLE shop.product_categories AS SELECT * FROM (VALUES (1, 'small'), (2, 'big')) AS t(id, name)",
    "CREATE TABLE shop.events AS SELECT * FROM (VALUES (1, TIMESTAMP '2024-01-01', 'page_view', 1), (2, TIMESTAMP '2024-01-01', 'click', 2)) \
     AS t(id, happened_at, kind, user_id)",
    "CREATE TABLE shop.payroll AS SELECT 1 AS id, 'it' AS department, 100 AS salary",
];

/// The expected findings: file, line, code, and words of the message.
const FINDINGS: &[(&str, u64, &str, &str)] = &[
    ("cubes/elsewhere.yml", 2, "not-carried-over", "data source `clickhouse`"),
    ("cubes/events.yml", 15, "not-carried-over", "`wrong` of cube `page_views`"),
    ("cubes/line_items.yml", 3, "changed", "`1 = 1`"),
    ("cubes/orders.yml", 38, "not-carried-over", "granularity `fiscal_year`"),
    ("cubes/orders.yml", 41, "not-carried-over", "`{created_at.month}`"),
    ("cubes/orders.yml", 44, "not-carried-over", "sub_query"),
    ("cubes/orders.yml", 54, "not-carried-over", "unknown drill member `nothing`"),
    ("cubes/orders.yml", 70, "not-carried-over", "its window restarts in each period"),
    ("cubes/orders.yml", 80, "not-carried-over", "type `string`"),
    ("cubes/orders.yml", 83, "not-carried-over", "ranks"),
    ("cubes/orders.yml", 95, "changed", "divides exactly"),
    ("cubes/orders.yml", 111, "not-carried-over", "`indexes`"),
    ("cubes/orders.yml", 114, "not-carried-over", "original_sql"),
    ("cubes/orders.yml", 117, "not-carried-over", "`refresh_key`"),
    ("cubes/product_categories.yml", 3, "changed", "environment variable"),
    ("cubes/product_categories.yml", 9, "not-carried-over", "`hierarchies`"),
    ("cubes/templated.yml", 2, "not-read", "Jinja"),
    ("cubes/tenants.yml", 2, "not-carried-over", "depends on the caller"),
    ("cubes/tenants.yml", 15, "closed", "access policy"),
    ("cubes/users.yml", 4, "not-carried-over", "`sql_alias`"),
    ("cubes/users.yml", 9, "changed", "two numbers"),
    ("legacy/LegacyUsers.yml", 2, "changed", "`legacy_users`"),
    ("legacy/LegacyUsers.yml", 9, "changed", "`user_id`"),
    ("legacy/Old.js", 1, "not-carried-over", "not executed"),
    ("views/orders_view.yml", 4, "not-carried-over", "line_items"),
    ("views/orders_view.yml", 19, "not-carried-over", "`folders`"),
    ("views/users_view.yml", 2, "not-carried-over", "access policy"),
];

#[test]
fn cube_project_is_imported_with_its_unsupported_parts_listed() {
    let place = Scratch::empty();
    let out = place.path().join("shop");
    let arguments = ["--out", out.to_str().unwrap(), "--json"];
    let output = Program::new(BINARY, &["import", "cube"], &path(MODEL)).arguments(&arguments).run().unwrap();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let json: Value = serde_json::from_str(&output.stdout).unwrap();
    let findings = json["findings"].as_array().unwrap();
    for (file, line, code, words) in FINDINGS {
        let is_it = |finding: &&Value| {
            finding["file"] == *file
                && finding["line"] == *line
                && finding["code"] == *code
                && finding["message"].as_str().unwrap().contains(words)
        };
        assert!(
            findings.iter().any(|finding| is_it(&finding)),
            "{file}:{line} {code} {words} is not in\n{findings:#?}"
        );
    }
    assert!(findings.iter().all(|finding| finding["file"] != "cubes/suppliers.yml"), "{findings:#?}");
    // Private members keep their visibility, so they are not reported.
    let is_private = |finding: &Value| finding["file"] == "cubes/users.yml" && finding["line"] == 13;
    assert!(!findings.iter().any(is_private), "{findings:#?}");
    assert!(
        findings.iter().all(|finding| finding["hint"].as_str().is_some_and(|hint| !hint.is_empty())),
        "{findings:#?}"
    );

    let init: Vec<String> = TABLES.iter().map(|statement| (*statement).to_owned()).collect();
    let init = serde_json::to_string(&init).unwrap();
    let ask = |command: &str, arguments: &[&str]| {
        let program = program(command, &out)
            .variable("SERVICE_WAREHOUSE__INIT", &init)
            .variable("TERRANE_VAR_SHOP_SCHEMA", "shop");
        program.arguments(arguments).run().unwrap()
    };
    let output = ask("check", &["--data"]);
    assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
    let expectations = r#"tests:
  - name: measures_and_cases
    query: {measures: [orders.count, orders.completed_share], dimensions: [orders.status_label]}
    ordered: false
    sql: >
      SELECT CASE WHEN status = 'completed' THEN 'Done' WHEN status = 'shipped' THEN 'It''s on its way' ELSE 'Open' END AS
      "orders.status_label", count(*) AS "orders.count", 100.0 * count(*) FILTER (status = 'completed') / count(*) AS
      "orders.completed_share" FROM shop.orders GROUP BY 1
  - name: joins_of_joins
    query: {measures: [line_items.revenue], dimensions: [product_categories.name]}
    ordered: false
    sql: >
      SELECT c.name AS "product_categories.name", sum(l.quantity * p.price) AS "line_items.revenue" FROM shop.line_items l
      JOIN shop.products p ON l.product_id = p.id JOIN shop.product_categories c ON p.category_id = c.id GROUP BY 1
  - name: a_view_is_a_cube
    query: {measures: [orders_view.revenue], dimensions: [orders_view.users_city]}
    ordered: false
    sql: SELECT u.city AS "orders_view.users_city", sum(o.amount) AS "orders_view.revenue" FROM shop.orders o JOIN shop.users u ON o.user_id = u.id GROUP BY 1
  - name: running
    query: {measures: [orders.amount_to_date], dimensions: [orders.created_at.month]}
    ordered: false
    rows: [{orders.created_at.month: 2024-01, orders.amount_to_date: 15.5}, {orders.created_at.month: 2024-02, orders.amount_to_date: 20.0}]
  - name: extended
    query: {measures: [page_views.count, page_views.visitors]}
    rows: [{page_views.count: 1, page_views.visitors: 1}]
  - name: old_names
    query: {measures: [legacy_users.user_count], dimensions: [legacy_users.full_city]}
    ordered: false
    rows: [{legacy_users.full_city: "Oslo, NO", legacy_users.user_count: 1}, {legacy_users.full_city: "Rome, IT", legacy_users.user_count: 1}]
  - name: private_members_cannot_be_queried
    query: {measures: [orders.average_order_value]}
    error: {code: INVALID_MEASURE}
  - name: closed_cubes_show_nothing
    query: {measures: [payroll.total]}
    rows: [{payroll.total: null}]
"#;
    fs::create_dir_all(out.join("tests")).unwrap();
    fs::write(out.join("tests/by_hand.yml"), expectations).unwrap();
    let output = ask("test", &[]);
    assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
    assert!(output.stdout.contains("8 passed, 0 failed"), "{}", output.stdout);
}

#[test]
fn import_without_a_target_writes_nothing() {
    let output = Program::new(BINARY, &["import", "cube"], &path(MODEL)).run().unwrap();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    for words in ["cubes/orders.yml:70:", "warning[not-carried-over]", "hint:", "would create", "Nothing was written"] {
        assert!(output.stdout.contains(words), "{words} is not in\n{}", output.stdout);
    }
}

#[test]
fn member_that_views_copy_is_reported_once_at_its_source() {
    let model = r#"cubes:
  - name: orders
    sql_table: orders
    dimensions:
      - name: broken
        sql: "upper({CUBE}.status"
        type: string
      - {name: status, sql: status, type: string}
    measures:
      - {name: mean, sql: amount, type: avg, rolling_window: {type: to_date}}
views:
  - {name: first, cubes: [{join_path: orders, includes: [{name: broken, alias: word}, status]}]}
  - {name: second, cubes: [{join_path: orders, includes: [{name: broken, alias: word}]}]}
"#;
    let place = Scratch::empty().with("model.yml", model);
    let output = Program::new(BINARY, &["import", "cube"], place.path()).arguments(&["--json"]).run().unwrap();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let json: Value = serde_json::from_str(&output.stdout).unwrap();
    let of_line = |line: u64| -> Vec<&str> {
        let findings = json["findings"].as_array().unwrap().iter().filter(|finding| finding["line"] == line);
        findings.map(|finding| finding["message"].as_str().unwrap()).collect()
    };
    let reported = of_line(5);
    assert!(reported.len() == 1 && reported[0].starts_with("dimension `broken` of cube `orders`"), "{reported:?}");
    assert!(of_line(10)[0].ends_with("its window restarts in each period"), "{:?}", of_line(10));
}

#[test]
fn folder_without_a_model_is_reported() {
    let empty = Scratch::empty().with("notes.txt", "nothing");
    let output = Program::new(BINARY, &["import", "cube"], empty.path()).run().unwrap();
    assert_eq!(output.code, Some(1), "{output:?}");
    insta::assert_snapshot!(output.messages(empty.path()), @r"
    error: [folder] contains no cube in YAML or JavaScript
      hint: Name the folder that contains the model's .yml or .js files: model/, or schema/.
    ");

    let place = Scratch::empty().with("Old.js", "cube(`Old`, {})");
    let output = Program::new(BINARY, &["import", "cube"], place.path()).run().unwrap();
    let printed = format!("{}{}", output.stdout, output.stderr);
    assert_eq!(output.code, Some(1), "{printed}");
    assert!(printed.contains("no cube could be imported") && printed.contains("Old.js:1:6"), "{printed}");
}

#[test]
fn syntax_errors_are_reported_for_a_folder_without_another_file() {
    let place = Scratch::empty()
        .with("a.yml", "cubes:\n  - name: a\n   sql_table: x\n")
        .with("b.js", "cube('b', {\n  joins { }\n});\n");
    let output = Program::new(BINARY, &["import", "cube"], place.path()).run().unwrap();
    let printed = format!("{}{}", output.stdout, output.stderr);
    assert_eq!(output.code, Some(1), "{printed}");
    for place in ["a.yml:3:4", "b.js:2:9", "no cube could be imported; 2 findings"] {
        assert!(printed.contains(place), "{place}: {printed}");
    }
}
