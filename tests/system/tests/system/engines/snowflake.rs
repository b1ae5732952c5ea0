//! Tests the type `snowflake` with the driver of Snowflake against an emulator.
//!
//! The emulator is fakesnow, which translates the statements for DuckDB. It shows that the driver, the dialect's
//! literals and the types of columns work together, and nothing about Snowflake's own behavior.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use terrane_app::query::RequestContext;
use terrane_cli::config::Environment;
use terrane_cli::wire;
use terrane_expectations::Rows;
use terrane_system_tests::Scratch;
use terrane_system_tests::engines::adbc_driver;

use super::answers::in_runtime;
use crate::clients::tool;

/// Starts the emulator on a free port and prints the port.
const SERVE: &str = "\
import sys, fakesnow
with fakesnow.server() as settings:
    print(settings['port'], flush=True)
    sys.stdin.read()
";

const CUBE: &str = "\
cubes:
  - name: orders
    sql_table: orders
    measures:
      - {name: count, type: count}
      - {name: revenue, type: sum, sql: amount}
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: label, type: string, sql: label}
      - {name: day, type: time, sql: day}
";

const INIT: &[&str] = &[
    "CREATE OR REPLACE TABLE orders (id INT, label VARCHAR, amount NUMBER(10, 2), day DATE)",
    "INSERT INTO orders VALUES (1, 'it''s', 10.25, '2024-01-31'), (2, 'plain', 0.75, '2024-02-01'), \
     (3, '\\\\'' OR 1=1 --', 100, '2024-02-29'), (4, NULL, NULL, NULL)",
];

/// The emulator's process, which ends with its standard input.
struct Emulator {
    child: Child,
    port: u16,
}

impl Emulator {
    /// Starts the emulator. If it or the driver is missing, reports the test as skipped and returns `None`.
    fn start() -> Option<Emulator> {
        let (Some(python), true) = (tool("snowflake-server/bin/python"), adbc_driver("snowflake").is_file()) else {
            crate::skip("cases of snowflake through adbc", "`cargo xtask setup` installs fakesnow and the driver");
            return None;
        };
        let mut command = Command::new(python);
        command.args(["-c", SERVE]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("Python starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("its output")).read_line(&mut line).expect("a line");
        let port = line.trim().parse().expect("a port");
        Some(Emulator { child, port })
    }

    fn environment(&self) -> Environment {
        let uri =
            format!("fake:snow@127.0.0.1:{}/SHOP/PUBLIC?account=fakesnow&protocol=http&loginTimeout=20", self.port);
        let variables = [
            ("SERVICE_WAREHOUSE__TYPE", "snowflake".to_owned()),
            ("SERVICE_WAREHOUSE__INIT", json!(INIT).to_string()),
            ("SERVICE_WAREHOUSE__CONNECT_TIMEOUT_SECONDS", "60".to_owned()),
            ("SERVICE_WAREHOUSE__ADBC__DRIVER", adbc_driver("snowflake").display().to_string()),
            ("SERVICE_WAREHOUSE__ADBC__OPTIONS", json!({"uri": uri}).to_string()),
            // The emulator does not have the settings of sessions.
            ("SERVICE_WAREHOUSE__ADBC__SESSION", "[]".to_owned()),
        ];
        variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn snowflake_driver_answers_queries() {
    let Some(emulator) = Emulator::start() else { return };
    let project = Scratch::empty().with("service_project.yml", "name: shop\n").with("cubes/orders.yml", CUBE);
    let label = |value: &str| json!([{"member": "orders.label", "operator": "equals", "value": value}]);
    let cases: [(Value, Value); 5] = [
        (json!({"measures": ["orders.count", "orders.revenue"]}), json!([[4, 111]])),
        (json!({"measures": ["orders.revenue"], "filters": label("it's")}), json!([[10.25]])),
        (json!({"dimensions": ["orders.id"], "filters": label("\\' OR 1=1 --")}), json!([[3]])),
        (json!({"measures": ["orders.count"], "filters": label("' OR '1'='1")}), json!([[0]])),
        (
            json!({"measures": ["orders.count"], "time_dimensions": [{"dimension": "orders.day", "granularity": "month",
                "date_range": ["2024-01-01", "2024-02-29"]}]}),
            json!([["2024-01", 1], ["2024-02", 2]]),
        ),
    ];
    in_runtime(project.path(), &emulator.environment(), async |engine| {
        let context = RequestContext::default();
        for (query, expected) in &cases {
            let parsed = wire::parse(&query.to_string()).expect("a query");
            let answer = wire::run(&engine, &context, &parsed).await;
            let answer = answer.unwrap_or_else(|refused| panic!("{query}: {refused:?}"));
            let rows = json!(Rows::of_answer(&answer).expect("rows").rows);
            assert_eq!(numbers(&rows), numbers(expected), "{query}");
        }
    });
}

/// Returns rows with each number as a double, because the emulator's decimals have different scales from Snowflake's.
fn numbers(rows: &Value) -> Value {
    match rows {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(items) => items.iter().map(numbers).collect(),
        Value::String(text) => json!(text.trim_end_matches("T00:00:00")),
        other => other.clone(),
    }
}
