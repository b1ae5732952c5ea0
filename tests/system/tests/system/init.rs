//! Tests `terrane init`: projects from a DuckDB file, from files and from PostgreSQL must load, be valid for the rows,
//! and give the same answers as hand-written SQL. Also tests which files remain if a project cannot be created.

#![allow(clippy::unwrap_used, reason = "a test stops at its first fault")]

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use terrane_system_tests::engines::Kind;
use terrane_system_tests::{FLIGHTS, Output, Scratch, path};

use crate::{program, run};

/// A shop with the difficulties of real databases: two references to one table, a reference to the table itself, two
/// paths to a table, names that need quotes, reserved words, and types that cubes do not support.
const SHOP: &[&str] = &[
    "CREATE TABLE regions (id INTEGER PRIMARY KEY, name VARCHAR NOT NULL)",
    "CREATE TABLE customers (id INTEGER PRIMARY KEY, name VARCHAR, region_id INTEGER REFERENCES regions (id), \
     referrer_id INTEGER, credit_limit DECIMAL(10,2), is_member BOOLEAN, FOREIGN KEY (referrer_id) REFERENCES customers (id))",
    "CREATE TABLE orders (id BIGINT PRIMARY KEY, customer_id INTEGER NOT NULL REFERENCES customers (id), \
     billing_customer_id INTEGER REFERENCES customers (id), \"group\" VARCHAR, \"Order Date\" DATE, created_at TIMESTAMP, \
     amount DECIMAL(12,2), tax_rate DOUBLE, year INTEGER, payload JSON, token UUID, tags VARCHAR[])",
    "CREATE TABLE \"Order Items\" (order_id BIGINT REFERENCES orders (id), line INTEGER, customer_id INTEGER REFERENCES \
     customers (id), quantity INTEGER, unit_price DOUBLE, PRIMARY KEY (order_id, line))",
    "INSERT INTO regions VALUES (1, 'north'), (2, 'south')",
    "INSERT INTO customers VALUES (1, 'Ann', 1, NULL, 100, true)",
    "INSERT INTO customers VALUES (2, 'Bob', 2, 1, 50, false), (3, 'Cas', NULL, 1, 0, NULL)",
    "INSERT INTO orders VALUES (10, 1, 2, 'a', DATE '2024-01-05', TIMESTAMP '2024-01-05 10:00:00', 10.50, 0.1, 2024, NULL, uuid(), ['x']), \
     (11, 1, 1, 'b', DATE '2024-02-05', TIMESTAMP '2024-02-06 10:00:00', 4.50, 0.2, 2024, NULL, uuid(), NULL), \
     (12, 3, NULL, 'a', DATE '2024-02-07', TIMESTAMP '2024-02-07 23:00:00', 7, NULL, 2024, NULL, NULL, NULL)",
    "INSERT INTO \"Order Items\" VALUES (10, 1, 1, 2, 3.5), (10, 2, 1, 1, 3.5), (11, 1, 1, 9, 0.5), (12, 1, 3, 1, 7)",
];

/// Creates a DuckDB file with the program itself, and returns its path.
fn database(statements: &[&str]) -> (Scratch, PathBuf) {
    let init: Vec<&str> = statements.iter().copied().chain(["CHECKPOINT"]).collect();
    let settings = format!(
        "name: maker\nwarehouse: {{type: duckdb, path: shop.duckdb, init: {}}}\n",
        serde_json::to_string(&init).unwrap()
    );
    let maker = Scratch::empty().with("service_project.yml", &settings);
    let output = run("check", maker.path(), &[]);
    let file = maker.path().join("shop.duckdb");
    assert!(file.is_file(), "{output:?}");
    (maker, file)
}

fn made(output: &Output) -> Value {
    assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
    serde_json::from_str(&output.stdout).unwrap()
}

/// Checks that the created project has no error on its rows, and that each query has the same answer as its SQL.
fn assert_project_is_correct(project: &Path, variables: &[(&str, &str)], cases: &[(&str, &str)]) {
    let with = |command: &str, arguments: &[&str]| {
        let program = variables.iter().fold(program(command, project), |p, (name, value)| p.variable(name, value));
        program.arguments(arguments).run().unwrap()
    };
    let output = with("check", &["--data"]);
    assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
    let mut expected = String::from("tests:\n");
    for (index, (query, sql)) in cases.iter().enumerate() {
        let sql = serde_json::to_string(sql).unwrap();
        expected.push_str(&format!("  - {{name: case_{index}, ordered: false, query: {query}, sql: {sql}}}\n"));
    }
    fs::create_dir_all(project.join("tests")).unwrap();
    fs::write(project.join("tests/by_hand.yml"), expected).unwrap();
    let output = with("test", &[]);
    assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
    assert!(output.stdout.contains(&format!("{} passed, 0 failed", cases.len())), "{}", output.stdout);
}

fn cube<'j>(json: &'j Value, name: &str) -> &'j Value {
    let cubes = json["cubes"].as_array().unwrap();
    cubes.iter().find(|cube| cube["name"] == name).unwrap_or_else(|| panic!("no cube {name} in {json:#}"))
}

fn texts(list: &Value) -> Vec<&str> {
    list.as_array()
        .unwrap()
        .iter()
        .map(|item| item.as_str().unwrap_or_else(|| item["name"].as_str().unwrap()))
        .collect()
}

/// Returns all files below a folder, including hidden ones.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

#[test]
fn duckdb_file_becomes_a_project_with_valid_claims() {
    let (_maker, file) = database(SHOP);
    let place = Scratch::empty();
    let shop = place.path().join("My Shop");
    let json = made(&run("init", &shop, &["--from", file.to_str().unwrap(), "--json"]));
    assert_eq!(json["cubes"].as_array().unwrap().len(), 4, "{json:#}");
    assert_eq!(texts(&cube(&json, "orders")["joins"]), ["customers", "billing_customer"]);
    assert_eq!(texts(&cube(&json, "customers")["joins"]), ["regions", "referrer"]);
    assert_eq!(texts(&cube(&json, "order_items")["joins"]), ["orders", "customers"]);
    assert_eq!(cube(&json, "order_items")["primary_key"], serde_json::json!(["order_id", "line"]));
    let orders = cube(&json, "orders");
    assert_eq!(
        texts(&orders["measures"]),
        [
            "count",
            "total_amount",
            "average_amount",
            "average_tax_rate",
            "distinct_customers",
            "distinct_billing_customer"
        ]
    );
    assert_eq!(
        texts(&orders["dimensions"]),
        ["id", "customer_id", "billing_customer_id", "group", "order_date", "created_at", "tax_rate", "year", "token"]
    );
    let left_out: Vec<&str> =
        orders["left_out"].as_array().unwrap().iter().map(|column| column["column"].as_str().unwrap()).collect();
    assert_eq!(left_out, ["payload", "tags"]);
    let settings = fs::read_to_string(shop.join("service_project.yml")).unwrap();
    assert!(settings.contains("name: my_shop") && settings.contains("path: data/shop.duckdb"), "{settings}");
    assert_project_is_correct(
        &shop,
        &[],
        &[
            (
                "{measures: [orders.total_amount, orders.count, orders.distinct_customers], dimensions: [orders.group]}",
                "SELECT \"group\" AS \"orders.group\", sum(amount) AS \"orders.total_amount\", count(*) AS \"orders.count\", \
             count(DISTINCT customer_id) AS \"orders.distinct_customers\" FROM main.orders GROUP BY 1",
            ),
            (
                "{measures: [orders.total_amount], dimensions: [regions.name]}",
                "SELECT r.name AS \"regions.name\", sum(o.amount) AS \"orders.total_amount\" FROM main.orders o \
             LEFT JOIN main.customers c ON o.customer_id = c.id LEFT JOIN main.regions r ON c.region_id = r.id GROUP BY 1",
            ),
            (
                "{measures: [orders.count], dimensions: [billing_customer.name]}",
                "SELECT c.name AS \"billing_customer.name\", count(*) AS \"orders.count\" FROM main.orders o \
             LEFT JOIN main.customers c ON o.billing_customer_id = c.id GROUP BY 1",
            ),
            (
                "{measures: [customers.count, customers.total_credit_limit], dimensions: [referrer.name]}",
                "SELECT r.name AS \"referrer.name\", count(*) AS \"customers.count\", sum(c.credit_limit) AS \
             \"customers.total_credit_limit\" FROM main.customers c LEFT JOIN main.customers r ON c.referrer_id = r.id GROUP BY 1",
            ),
            (
                "{measures: [order_items.total_quantity, orders.total_amount], dimensions: [orders.order_date]}",
                "SELECT o.\"Order Date\" AS \"orders.order_date\", sum(q) AS \"order_items.total_quantity\", sum(amount) AS \
             \"orders.total_amount\" FROM main.orders o JOIN (SELECT order_id, sum(quantity) AS q FROM main.\"Order Items\" \
             GROUP BY 1) i ON i.order_id = o.id GROUP BY 1",
            ),
            (
                "{measures: [orders.count], filters: [{member: orders.token, operator: set}]}",
                "SELECT count(token) AS \"orders.count\" FROM main.orders",
            ),
        ],
    );
}

#[test]
fn selected_tables_are_listed_in_the_output() {
    let (_maker, file) = database(SHOP);
    let place = Scratch::empty();
    let from = file.to_str().unwrap();
    let output = run("init", &place.path().join("two"), &["--from", from, "--tables", "orders,main.customers"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    for words in [
        "two: 2 cubes, 3 joins",
        "orders: 9 dimensions, 6 measures; key id",
        "joins billing_customer (customers) by billing_customer_id",
        "without payload (JSON)",
        "terrane check --data",
    ] {
        assert!(output.stdout.contains(words), "{words} is not in\n{}", output.stdout);
    }
    let output = run("init", &place.path().join("none"), &["--from", from, "--tables", "odrers"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    insta::assert_snapshot!(output.messages(file.parent().unwrap()), @r"
    error: unknown table `odrers`
      hint: Did you mean `orders`? Available tables: `orders`, `Order Items`, `customers`, `regions`.
    ");
    let output = run("init", &place.path().join("none"), &["--from", from, "--schema", "sales"]);
    assert!(output.code == Some(1) && output.stderr.contains("schema `sales`"), "{}", output.stderr);
    let left: Vec<_> = fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["two"], "what failed leaves nothing behind");
}

#[test]
fn keys_of_parquet_files_are_found_in_their_data() {
    let place = Scratch::empty();
    let project = place.path().join("nyc");
    let data = path(FLIGHTS).join("data");
    let json = made(&run("init", &project, &["--from", data.to_str().unwrap(), "--json"]));
    let flights = cube(&json, "flights");
    assert_eq!(texts(&flights["joins"]), ["airlines", "planes", "origin_airport", "dest_airport"], "{json:#}");
    assert_eq!(texts(&cube(&json, "weather")["joins"]), ["airports"]);
    for (name, key) in [("airlines", "carrier"), ("airports", "faa"), ("planes", "tailnum")] {
        assert_eq!(cube(&json, name)["primary_key"], serde_json::json!([key]), "{name}");
        assert_eq!(cube(&json, name)["primary_key_is_declared"], serde_json::json!(false));
    }
    let measures = texts(&flights["measures"]);
    for name in ["total_distance", "average_dep_delay", "total_air_time", "distinct_planes"] {
        assert!(measures.contains(&name), "{name} is not in {measures:?}");
    }
    // Columns of years, hours, flight numbers and times of day have no sum.
    for column in ["year", "month", "hour", "flight", "dep_time", "sched_arr_time"] {
        assert!(!measures.iter().any(|name| name.ends_with(&format!("_{column}"))), "{column} is in {measures:?}");
        assert!(texts(&flights["dimensions"]).contains(&column), "{column}");
    }
    assert!(project.join("data/flights.parquet").is_file());
    assert_project_is_correct(
        &project,
        &[],
        &[
            (
                "{measures: [flights.count, flights.average_dep_delay], dimensions: [airlines.name], limit: 50}",
                "SELECT a.name AS \"airlines.name\", count(*) AS \"flights.count\", avg(f.dep_delay) AS \
             \"flights.average_dep_delay\" FROM raw.flights f LEFT JOIN raw.airlines a USING (carrier) GROUP BY 1",
            ),
            (
                "{measures: [flights.count], dimensions: [dest_airport.name], limit: 500}",
                "SELECT a.name AS \"dest_airport.name\", count(*) AS \"flights.count\" FROM raw.flights f LEFT JOIN \
             raw.airports a ON f.dest = a.faa GROUP BY 1",
            ),
        ],
    );
}

#[test]
fn files_inside_the_project_are_not_moved() {
    let rows: String = (0..30_000).map(|n| format!("{n},{n}\n")).collect();
    let project = Scratch::empty()
        // `code` has a string only in the last row.
        .with("data/orders.csv", "id,customer,code,amount\n1,7,12,5.5\n2,8,13,4.5\n3,7,x9,1\n")
        .with("data/customers.csv", "id,name\n7,Ann\n8,Bob\n9,Cas\n")
        .with("data/late.csv", &format!("n,code\n{rows}30000,x\n"))
        .with("data/notes.txt", "nothing")
        .with("data/broken.parquet", "nothing");
    let before = files(project.path());
    let from = project.path().join("data");
    let json = made(&run("init", project.path(), &["--from", from.to_str().unwrap(), "--json"]));
    let notes = json["notes"].to_string();
    assert!(notes.contains("broken.parquet is left out"), "{notes}");
    assert_eq!(json["cubes"].as_array().unwrap().len(), 3, "{json:#}");
    assert_eq!(texts(&cube(&json, "orders")["joins"]), ["customers"]);
    let after = files(project.path());
    assert!(before.iter().all(|file| after.contains(file)), "{after:?}");
    assert!(!after.iter().any(|file| file.to_string_lossy().contains("terrane-new")), "{after:?}");
    assert_project_is_correct(
        project.path(),
        &[],
        &[
            (
                "{measures: [orders.total_amount], dimensions: [customers.name]}",
                "SELECT c.name AS \"customers.name\", sum(o.amount) AS \"orders.total_amount\" FROM raw.orders o \
             LEFT JOIN raw.customers c ON o.customer = c.id GROUP BY 1",
            ),
            (
                "{measures: [late.count], filters: [{member: late.code, operator: equals, values: [x]}]}",
                "SELECT count(*) AS \"late.count\" FROM raw.late WHERE code = 'x'",
            ),
        ],
    );
    let again = run("init", project.path(), &["--from", from.to_str().unwrap()]);
    assert_eq!(again.code, Some(1), "{again:?}");
    insta::assert_snapshot!(again.messages(project.path()), @r"
    error: [folder] already contains service_project.yml
      hint: Name another folder. Existing files are never overwritten.
    ");
}

#[test]
fn postgresql_database_becomes_a_project_without_its_password() {
    let Some(engine) = crate::engines::start(Kind::Postgres) else { return };
    let url = engine.make_database("shop").unwrap();
    for statement in [
        "CREATE SCHEMA sales",
        "CREATE TYPE sales.stage AS ENUM ('open', 'paid')",
        "CREATE TABLE sales.\"Customers\" (\"ID\" uuid PRIMARY KEY, \"fullName\" text, city varchar(40))",
        "COMMENT ON TABLE sales.\"Customers\" IS 'One row a customer: everyone who ever bought.'",
        "COMMENT ON COLUMN sales.\"Customers\".city IS 'Where they live'",
        "CREATE TABLE sales.orders (id bigserial PRIMARY KEY, customer_id uuid NOT NULL REFERENCES sales.\"Customers\", \
         payer uuid REFERENCES sales.\"Customers\", stage sales.stage, \"user\" text, placed_at timestamptz, updated_at timestamptz, \
         amount numeric(12,2), discount real, detail jsonb, \"order\" int)",
        "CREATE TABLE sales.returns (order_id bigint REFERENCES sales.orders, reason text, PRIMARY KEY (order_id))",
        "CREATE VIEW sales.paid AS SELECT * FROM sales.orders WHERE stage = 'paid'",
        "CREATE TABLE public.unrelated (a int)",
        "INSERT INTO sales.\"Customers\" VALUES ('11111111-1111-1111-1111-111111111111', 'Ann', 'Oslo'), \
         ('22222222-2222-2222-2222-222222222222', 'Bob', 'Rome')",
        "INSERT INTO sales.orders (customer_id, payer, stage, \"user\", placed_at, amount, discount, \"order\") VALUES \
         ('11111111-1111-1111-1111-111111111111', '22222222-2222-2222-2222-222222222222', 'paid', 'x', '2024-01-01 12:00Z', 10, 0.5, 1), \
         ('11111111-1111-1111-1111-111111111111', NULL, 'open', 'y', '2024-02-01 12:00Z', 2.5, 0, 2), \
         ('22222222-2222-2222-2222-222222222222', NULL, NULL, 'y', NULL, NULL, NULL, 3)",
        "INSERT INTO sales.returns VALUES (1, 'broken')",
    ] {
        engine.ask("shop", statement).unwrap();
    }
    let place = Scratch::empty();
    let project = place.path().join("shop");
    let json = made(&run("init", &project, &["--from", &url, "--schema", "sales", "--json"]));
    assert_eq!(texts(&json["cubes"]), ["customers", "orders", "returns"], "{json:#}");
    assert_eq!(texts(&cube(&json, "orders")["joins"]), ["customers", "payer_customer"]);
    assert_eq!(json["variables"][0]["name"], "WAREHOUSE_PASSWORD");
    for file in files(&project) {
        let text = fs::read_to_string(&file).unwrap();
        assert!(!text.contains("secret"), "{}", file.display());
    }
    assert!(!json.to_string().contains("secret"));
    let orders = fs::read_to_string(project.join("cubes/orders.yml")).unwrap();
    assert!(orders.contains("{name: placed_at, type: time, sql: placed_at, primary_time: true}"), "{orders}");
    let customers = fs::read_to_string(project.join("cubes/customers.yml")).unwrap();
    assert!(
        customers.contains("sql_table: 'sales.\"Customers\"'") && customers.contains("everyone who ever bought."),
        "{customers}"
    );
    let output = run("check", &project, &[]);
    assert!(output.code == Some(1) && output.stdout.contains("WAREHOUSE_PASSWORD is not set"), "{}", output.stdout);
    assert_project_is_correct(
        &project,
        &[("WAREHOUSE_PASSWORD", "secret")],
        &[
            (
                "{measures: [orders.total_amount, orders.count], dimensions: [customers.full_name]}",
                "SELECT c.\"fullName\" AS \"customers.full_name\", sum(o.amount) AS \"orders.total_amount\", count(*) AS \
             \"orders.count\" FROM sales.orders o LEFT JOIN sales.\"Customers\" c ON o.customer_id = c.\"ID\" GROUP BY 1",
            ),
            (
                "{measures: [orders.count], dimensions: [orders.stage, orders.user]}",
                "SELECT stage::text AS \"orders.stage\", \"user\" AS \"orders.user\", count(*) AS \"orders.count\" FROM sales.orders GROUP BY 1, 2",
            ),
            (
                "{measures: [orders.count], filters: [{member: customers.id, operator: equals, values: [22222222-2222-2222-2222-222222222222]}]}",
                "SELECT count(*) AS \"orders.count\" FROM sales.orders WHERE customer_id = '22222222-2222-2222-2222-222222222222'",
            ),
            (
                "{measures: [returns.count], dimensions: [customers.city]}",
                "SELECT c.city AS \"customers.city\", count(*) AS \"returns.count\" FROM sales.returns r LEFT JOIN sales.orders o \
             ON r.order_id = o.id LEFT JOIN sales.\"Customers\" c ON o.customer_id = c.\"ID\" GROUP BY 1",
            ),
        ],
    );
    let wrong = url.replace("/shop", "/nowhere");
    let output = run("init", &place.path().join("other"), &["--from", &wrong]);
    assert!(output.code == Some(1) && !output.stderr.contains("secret"), "{}", output.stderr);
}

#[test]
fn empty_project_loads() {
    let place = Scratch::empty();
    let project = place.path().join("shop");
    let output = run("init", &project, &[]);
    assert!(output.code == Some(0) && output.stdout.contains("created the empty project"), "{output:?}");
    let output = run("check", &project, &[]);
    assert!(output.code == Some(0) && output.stdout.contains("no-cubes"), "{}{}", output.stdout, output.stderr);
    assert!(output.stdout.contains("0 errors, 1 warning; 0 cubes"), "{}", output.stdout);
}

#[test]
fn invalid_sources_of_a_project_are_reported_and_leave_no_files() {
    let place = Scratch::empty()
        .with_bytes("shop.sqlite", b"SQLite format 3\0and more")
        .with("notes.txt", "nothing that anybody could read")
        .with("empty/readme.md", "nothing")
        .with("file", "x");
    let at = |name: &str| place.path().join(name).display().to_string();
    let cases = [
        (at("gone"), "gone"),
        (at("shop.sqlite"), "SQLite"),
        (at("notes.txt"), "not a DuckDB database"),
        (at("empty"), "no Parquet, CSV or TSV file"),
        ("mysql://me:hidden@db/x".to_owned(), "`mysql://`"),
        ("postgres://me:hidden@127.0.0.1:1/x".to_owned(), "cannot be reached"),
    ];
    let before = files(place.path());
    for (from, words) in cases {
        let output = run("init", &place.path().join("new"), &["--from", &from]);
        assert_eq!(output.code, Some(1), "{from}");
        assert!(output.stderr.contains(words) && output.stderr.contains("hint:"), "{from}: {}", output.stderr);
        assert!(!output.stderr.contains("hidden"), "{}", output.stderr);
    }
    let output = run("init", &place.path().join("file"), &[]);
    assert_eq!(output.code, Some(1), "{output:?}");
    insta::assert_snapshot!(output.messages(place.path()), @r"
    error: [folder]/file is a file
      hint: Name a folder. Nothing was changed.
    ");
    assert_eq!(files(place.path()), before);
    assert!(!place.path().join("new").exists());
}

#[test]
fn headers_that_read_as_templates_are_left_out_and_other_scripts_have_names() {
    let text = "id,{{ env_var('X') }},{{ z }},{% raw %},${HOME},日本,значение,percent_off\n\
                1,a,b,c,d,e,f,0.5\n2,a,b,c,d,g,h,12.5\n3,a,b,c,d,i,j,2.5\n";
    let data = Scratch::empty().with("odd.csv", text);
    let place = Scratch::empty();
    let shop = place.path().join("shop");
    let json = made(&run("init", &shop, &["--from", data.path().to_str().unwrap(), "--json"]));
    let odd = cube(&json, "odd");
    assert_eq!(texts(&odd["dimensions"]), ["id", "column_2", "column_3", "percent_off"]);
    assert_eq!(texts(&odd["measures"]), ["count", "average_percent_off"]);
    assert_eq!(odd["joins"].as_array().map(Vec::len), Some(0));
    let written = fs::read_to_string(shop.join("cubes/odd.yml")).unwrap();
    assert!(!written.contains("{{") && !written.contains("{%") && !written.contains("${"), "{written}");
    let output = run("check", &shop, &["--data"]);
    assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
}

#[test]
fn reasons_without_a_key_or_a_join_are_noted_with_forms_of_strings() {
    let files = Scratch::empty()
        .with("customers.csv", "Customer ID,Region,Since\n17,North,31.1.2020\n17,north,1.2.2020\n18,South,2.2.2020\n")
        .with("products.csv", "id,price\n1,\"1,50\"\n2,\"2,25\"\n3,\"10,00\"\n")
        .with(
            "orders.csv",
            "id,product_id,amount,ordered\n1,1,5,2024-01-01x\n2,91,6,2024-01-02\n3,92,n/a,2024-01-03\n4,93,7,2024-01-04\n\
             5,94,8,2024-01-04\n6,95,8,2024-01-04\n7,96,8,2024-01-04\n8,97,8,2024-01-04\n9,98,8,2024-01-04\n\
             10,99,8,2024-01-04\n",
        );
    let folder = Scratch::empty();
    let project = folder.path().join("shop");
    let json = made(&run("init", &project, &["--from", files.path().to_str().unwrap(), "--json"]));
    let notes = texts(&json["notes"]).join("\n");
    for words in [
        "customers: `Customer ID` has 2 distinct values in 3 rows (`17` is in 2 rows), so it is not a key and nothing joins to it",
        "customers: `Region` has 3 distinct values, but 2 if case and outer spaces are ignored, such as `North` and `north`",
        "products: `price` is a string, and its values are numbers with a decimal comma: for a dimension of type `number` \
         write `sql: CAST(replace({CUBE}.price, ',', '.') AS DECIMAL(24, 9))`",
        "orders: `amount` is a string because of values such as `n/a`, but 9 of 10 sampled values are numbers",
        "orders: no join from `product_id` to products: 1 of 10 sampled values occur in its `id`",
        "orders: `ordered` is a string because of values such as `2024-01-01x`, but 9 of 10 sampled values are dates",
    ] {
        assert!(notes.contains(words), "{words}\nis not in\n{notes}");
    }
    let cube = fs::read_to_string(project.join("cubes/products.yml")).unwrap();
    assert!(cube.contains("# `price` is a string"), "{cube}");
    let output = run("check", &project, &["--data"]);
    assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
}

/// Creates a project from files of one folder. Returns the output.
fn init_from(files: &[(&str, &[u8])], arguments: &[&str]) -> Output {
    init_from_folder(files, arguments).0
}

/// Runs `terrane init --from` on a folder with files. Also returns the folder.
fn init_from_folder(files: &[(&str, &[u8])], arguments: &[&str]) -> (Output, Scratch) {
    let data = files.iter().fold(Scratch::empty(), |data, (name, bytes)| data.with_bytes(name, bytes));
    let place = Scratch::empty();
    let from = data.path().to_str().unwrap();
    let output = run("init", &place.path().join("shop"), &[&["--from", from, "--json"], arguments].concat());
    (output, data)
}

#[test]
fn faults_of_csv_files_are_noted_with_their_line() {
    let json = made(&init_from(
        &[
            ("good.csv", b"id,name\n1,a\n2,b\n"),
            ("ragged.csv", b"id,name\n1,a\n2,b,c\n"),
            ("lost_header.csv", b"name\nx,y\nz,w\n"),
            ("latin.csv", b"id,city\n1,Z\xfcrich\n"),
            ("empty.csv", b""),
            ("plain.csv", b"1,2\n3,4\n"),
            ("one.csv", b"name\nx\ny\n"),
            ("dates.csv", b"id,day\n1,03/04/2024\n2,05/04/2024\n"),
            ("clear_dates.csv", b"id,day\n1,03/04/2024\n2,25/04/2024\n"),
        ],
        &[],
    ));
    let notes = texts(&json["notes"]).join("\n");
    for words in [
        "data/ragged.csv is left out: line 3 has 3 values, and the first line 2",
        "data/lost_header.csv: line 2 has 2 values, and the first line 1: its columns are `x`, `y`",
        "data/latin.csv is left out: line 2 is not UTF-8",
        "data/empty.csv is left out: it is empty",
        "data/plain.csv: the file has no header: its columns are `column0` to `column1`",
        "data/dates.csv: `day` has dates such as 03/04/2024 in the order day, month",
    ] {
        assert!(notes.contains(words), "{words}\nis not in\n{notes}");
    }
    assert!(!notes.contains("clear_dates") && !notes.contains("data/one.csv"), "{notes}");
    let cubes: Vec<&str> = texts(&json["cubes"]);
    assert_eq!(cubes, ["clear_dates", "dates", "good", "lost_header", "one", "plain"]);
    assert_eq!(texts(&cube(&json, "one")["dimensions"]), ["name"]);
}

#[test]
fn numbers_with_separators_and_percentages_are_noted() {
    let text = b"id,amount,off,german\n1,\"1,234\",5%,\"1.234,50\"\n2,\"12,345\",6.5%,\"2,00\"\n";
    let json = made(&init_from(&[("sales.csv", text)], &[]));
    let notes = texts(&json["notes"]).join("\n");
    for words in [
        "`amount` is a string, and its values are numbers with commas between thousands",
        "CAST(replace({CUBE}.amount, ',', '') AS DECIMAL(24, 9))",
        "`off` is a string, and its values are percentages",
        "`german` is a string, and its values are numbers with points between thousands and a decimal comma",
    ] {
        assert!(notes.contains(words), "{words}\nis not in\n{notes}");
    }
}

#[test]
fn notes_do_not_take_other_strings_for_dates_and_report_lost_digits() {
    let json = made(&init_from(
        &[
            ("days.csv", b"id,d\n1,2024-01-01\n2,2024-01-02\n3,2024-02-30\n"),
            ("accounts.csv", b"id,account\n1,12345678901234567890123\n2,12345678901234567890124\n"),
            ("dotted.csv", b"id,day\n1,01.02.2024\n2,05.04.2024\n"),
        ],
        &[],
    ));
    let notes = texts(&json["notes"]).join("\n");
    assert!(!notes.contains("values are dates"), "{notes}");
    for words in ["`account` has numbers of more than 15 digits", "`day` has dates such as 03.04.2024"] {
        assert!(notes.contains(words), "{words}\nis not in\n{notes}");
    }
}

#[test]
fn unknown_tables_and_schemas_of_files_are_reported_with_those_that_exist() {
    let files: &[(&str, &[u8])] = &[("a.csv", b"id\n1\n"), ("b.csv", b"id\n2\n")];
    let (table, data) = init_from_folder(files, &["--tables", "a,nope"]);
    assert_eq!(table.code, Some(1), "{table:?}");
    insta::assert_snapshot!(table.messages(data.path()), @r"
    error: [folder] has no table `nope`
      hint: Its tables: a, b.
    ");
    let (schema, data) = init_from_folder(files, &["--schema", "public"]);
    assert_eq!(schema.code, Some(1), "{schema:?}");
    insta::assert_snapshot!(schema.messages(data.path()), @r"
    error: unknown schema `public`
      hint: Available schemas: `raw`.
    ");
}
