//! Tests the connection through an ADBC driver: hostile strings in literals, errors of drivers, streams and `doctor`.

use std::path::PathBuf;
use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::json;
use terrane_app::ports::warehouse::{Statement, Warehouse, WarehouseErrorKind};
use terrane_app::query::RequestContext;
use terrane_cli::config::Environment;
use terrane_cli::wire;
use terrane_expectations::Rows;
use terrane_system_tests::engines::{Cell, Engine, Kind, Table, Type, adbc_driver};
use terrane_system_tests::{Scratch, path};

use super::answers::in_runtime;
use super::{skip, start};
use crate::program;

const KIND: Kind = Kind::PostgresThroughAdbc;
const LIMIT: Duration = Duration::from_secs(30);

const CUBE: &str = "\
cubes:
  - name: hostile
    sql_table: hostile
    measures:
      - {name: count, type: count}
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: label, type: string, sql: label}
";

/// Strings that would end a literal, a comment or a statement if values were inserted into SQL without escaping.
const HOSTILE: &[&str] = &[
    "'",
    "''",
    "'''",
    "\\",
    "\\'",
    "\\\\'",
    "'; DROP TABLE hostile; --",
    "\\'; DROP TABLE hostile; --",
    "' OR '1'='1",
    "') OR true --",
    "') TO STDOUT; --",
    "\"; DROP TABLE hostile; --",
    "`; --",
    "$$",
    "$1",
    "$a$",
    "?",
    ":1",
    "@p1",
    "%s",
    "{0}",
    "/*",
    "*/",
    "--",
    "-- \n'",
    "E'\\x27'",
    "U&'\\0027'",
    "\\047",
    "\\x27",
    "\u{2019}",
    "\u{ff07}",
    "\u{2bc}",
    "\r\n",
    "\t",
    "\u{1}",
    "\u{feff}'",
    "é' OR 1=1 --",
    "漢'字",
    "NULL",
    "",
    " ",
];

fn variables(engine: &Engine, tables: &[Table], further: &[String]) -> Environment {
    engine.variables(tables, further).into_iter().collect()
}

fn hostile_project() -> Scratch {
    Scratch::empty().with("service_project.yml", "name: hostile\n").with("cubes/hostile.yml", CUBE)
}

#[test]
fn hostile_strings_stay_values() {
    let Some(engine) = start(KIND) else { return };
    let row = |(id, label): (usize, &&str)| -> Vec<Cell> { vec![Some(id.to_string()), Some((*label).to_owned())] };
    let rows = HOSTILE.iter().enumerate().map(row).collect();
    let table = Table::new("hostile", &[("id", Type::Integer), ("label", Type::Text)], rows);
    // In new sessions, a backslash would be an escape character, unless the connector sets its own rule.
    let unsafe_strings = ["ALTER DATABASE postgres SET standard_conforming_strings = off".to_owned()];
    let project = hostile_project();
    let environment = variables(&engine, &[table], &unsafe_strings);
    let context = RequestContext::default();
    in_runtime(project.path(), &environment, async |engine| {
        let setting = Statement::plain("SELECT setting FROM pg_settings WHERE name = 'standard_conforming_strings'");
        let setting = engine.warehouse.execute(setting, LIMIT).await.expect("a setting");
        assert_eq!(Rows::of_statement(&setting.schema, &setting.batches).expect("rows").rows, [[json!("on")]]);
        for (id, label) in HOSTILE.iter().enumerate() {
            for filter in [
                json!({"member": "hostile.label", "operator": "equals", "value": label}),
                json!({"member": "hostile.label", "operator": "inList", "value": [label, "absent"]}),
            ] {
                let query = json!({"dimensions": ["hostile.id", "hostile.label"], "filters": [filter]}).to_string();
                let query = wire::parse(&query).expect("a query");
                let answer = wire::run(&engine, &context, &query).await.expect("an answer");
                assert_eq!(Rows::of_answer(&answer).expect("rows").rows, [[json!(id), json!(label)]], "{label:?}");
            }
        }
        let query = wire::parse(r#"{"measures": ["hostile.count"]}"#).expect("a query");
        let answer = wire::run(&engine, &context, &query).await.expect("the table exists");
        assert_eq!(Rows::of_answer(&answer).expect("rows").rows, [[json!(HOSTILE.len())]]);
    });
}

#[test]
fn string_with_a_zero_byte_is_refused() {
    let Some(engine) = start(KIND) else { return };
    with_warehouse(&engine, async |warehouse| {
        let error = warehouse.execute(Statement::plain("SELECT 'a\0b'"), LIMIT).await.unwrap_err();
        assert_eq!(error.kind, WarehouseErrorKind::Refused, "{error}");
        assert!(warehouse.execute(Statement::plain("SELECT 1"), LIMIT).await.is_ok());
    });
}

#[test]
fn second_statement_is_refused() {
    let Some(engine) = start(KIND) else { return };
    with_warehouse(&engine, async |warehouse| {
        for text in ["SELECT 1; SELECT 2", "SELECT 1) TO STDOUT; --", "DELETE FROM pg_class", "SELECT 1; COMMIT"] {
            let error = warehouse.execute(Statement::plain(text), LIMIT).await.unwrap_err();
            assert_eq!(error.kind, WarehouseErrorKind::Refused, "{text}: {error}");
        }
    });
}

fn with_warehouse(engine: &Engine, work: impl AsyncFnOnce(&dyn Warehouse) + Send) {
    let project = Scratch::empty().with("service_project.yml", "name: adbc\n");
    in_runtime(project.path(), &variables(engine, &[], &[]), async |engine| work(&*engine.warehouse).await);
}

#[test]
fn rows_are_streamed_and_a_stream_can_be_dropped() {
    let Some(engine) = start(KIND) else { return };
    with_warehouse(&engine, async |warehouse| {
        let statement = Statement::plain("SELECT n, n::text AS t FROM generate_series(1, 3000000) AS s(n)");
        let mut rows = warehouse.stream(statement, LIMIT).await.expect("rows");
        let (mut count, mut batches) = (0, 0);
        while let Some(batch) = rows.next().await {
            count += batch.expect("a batch").num_rows();
            batches += 1;
        }
        assert_eq!(count, 3_000_000);
        assert!(batches > 1, "one batch");
        // More streams than connections are left after their first batch.
        for _ in 0..10 {
            let mut rows = warehouse.stream(statement, LIMIT).await.expect("rows");
            assert!(rows.next().await.is_some_and(|batch| batch.is_ok()));
        }
        assert!(warehouse.ping().await.is_ok());
    });
}

#[test]
fn error_in_the_middle_of_the_rows_is_reported() {
    let Some(engine) = start(KIND) else { return };
    with_warehouse(&engine, async |warehouse| {
        let text = "SELECT 1 / (2900000 - n) AS x FROM generate_series(1, 3000000) AS s(n)";
        let error = warehouse.execute(Statement::plain(text), LIMIT).await.unwrap_err();
        assert_eq!(error.kind, WarehouseErrorKind::Refused);
        let last_line = error.message.rsplit(": ").next().unwrap_or_default();
        insta::assert_snapshot!(last_line.trim(), @"division by zero");
        let mut rows = warehouse.stream(Statement::plain(text), LIMIT).await.expect("the first rows");
        let mut last = None;
        while let Some(batch) = rows.next().await {
            last = Some(batch);
        }
        assert_eq!(last.expect("an item").unwrap_err().kind, WarehouseErrorKind::Refused);
        assert!(warehouse.ping().await.is_ok());
    });
}

#[test]
fn time_limit_ends_a_statement() {
    let Some(engine) = start(KIND) else { return };
    with_warehouse(&engine, async |warehouse| {
        let sleeping = Statement::plain("SELECT length(pg_sleep(60)::text) AS n");
        let error = warehouse.execute(sleeping, Duration::from_millis(300)).await.unwrap_err();
        assert_eq!(error.kind, WarehouseErrorKind::Timeout);
        let running = Statement::plain("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'");
        let is_over = async {
            loop {
                let rows = warehouse.execute(running, LIMIT).await.expect("a count");
                if Rows::of_statement(&rows.schema, &rows.batches).expect("rows").rows == [[json!(0)]] {
                    return;
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(20), is_over).await.expect("the statement ends");
    });
}

/// Runs a command with an ADBC driver, and returns its exit code and output.
fn output_of(command: &str, adbc: &serde_json::Value) -> (Option<i32>, String) {
    let project = Scratch::empty().with("service_project.yml", "name: adbc\n");
    let mut command = program(command, project.path())
        .variable("SERVICE_WAREHOUSE__TYPE", "postgres")
        .variable("SERVICE_SERVER__PORT", "0");
    for (key, value) in adbc.as_object().expect("keys") {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        command = command.variable(&format!("SERVICE_WAREHOUSE__ADBC__{}", key.to_uppercase()), &value);
    }
    let output = command.run().expect("the program runs to its end");
    (output.code, format!("{}{}", output.stdout, output.stderr))
}

#[test]
fn unusable_library_is_an_error_with_a_hint() {
    let folder =
        Scratch::empty().with("archive.so", "PK\u{3}\u{4} a package").with_bytes("windows.dll", &windows_library());
    let file = |name: &str| folder.path().join(name).display().to_string();
    let duckdb = path(".prepared/lib");
    let library = std::fs::read_dir(&duckdb).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_library = |path: &PathBuf| path.is_file() && path.extension().is_some_and(|extension| extension != "stamp");
    let library = library.filter(is_library).find(|path| path.display().to_string().contains("libduckdb"));
    let mut cases = vec![
        (file("absent.so"), "does not exist"),
        (file("archive.so"), "is not a shared library"),
        ("no_such_driver".to_owned(), "cannot be loaded"),
    ];
    if !cfg!(windows) {
        cases.push((file("windows.dll"), "is for Windows on x86_64"));
    }
    cases.extend(library.map(|library| (library.display().to_string(), "has no symbol `AdbcDriverInit`")));
    for (driver, words) in cases {
        let (code, text) = output_of("check", &json!({"driver": driver}));
        assert_eq!(code, Some(1), "{driver}: {text}");
        assert!(text.contains(words) && text.contains("hint"), "{driver}: {text}");
    }
}

fn windows_library() -> Vec<u8> {
    let mut header = vec![0; 256];
    header[..2].copy_from_slice(b"MZ");
    header[0x3c] = 0x80;
    header[0x80..0x86].copy_from_slice(&[b'P', b'E', 0, 0, 0x64, 0x86]);
    header
}

#[test]
fn refused_option_and_address_are_reported_without_their_values() {
    if let Some(missing) = KIND.missing() {
        return skip(KIND, &missing);
    }
    let driver = adbc_driver("postgresql").display().to_string();
    // No server listens on this port.
    let uri = "postgresql://me:hidden@127.0.0.1:1/x";
    for (options, entrypoint, words) in [
        (json!({"uri": uri}), "AdbcDriverInit", "cannot be reached"),
        (json!({"uri": uri, "secret_key": "hidden"}), "AdbcDriverInit", "refused the options"),
        (json!({}), "AdbcDriverInit", "refused the options"),
        (json!({"uri": uri}), "NoSuchInit", "has no symbol `NoSuchInit`"),
    ] {
        let adbc = json!({"driver": driver, "options": options, "entrypoint": entrypoint});
        let (code, text) = output_of("check", &adbc);
        assert_eq!(code, Some(1), "{text}");
        assert!(text.contains(words) && !text.contains("hidden"), "{options}: {text}");
    }
}

#[test]
fn doctor_checks_the_driver_and_the_database() {
    let Some(engine) = start(KIND) else { return };
    let driver = adbc_driver("postgresql").display().to_string();
    let options = json!({"uri": engine.url().expect("a server has a URL")});
    let (_, text) = output_of("doctor", &json!({"driver": driver, "options": options}));
    for words in ["driver: ", "exports `AdbcDriverInit` and supports ADBC 1.1", "warehouse: postgres answers"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let (code, text) = output_of("doctor", &json!({"driver": "absent/driver.so", "options": options}));
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("fail driver: ") && text.contains("does not exist"), "{text}");
}

#[test]
fn type_that_needs_a_driver_is_reported() {
    for kind in ["snowflake", "bigquery", "redshift", "databricks", "flightsql"] {
        let project = Scratch::empty().with("service_project.yml", "name: adbc\n");
        let check = program("check", project.path()).variable("SERVICE_WAREHOUSE__TYPE", kind);
        let output = check.run().expect("the program runs to its end");
        let text = format!("{}{}", output.stdout, output.stderr);
        assert_eq!(output.code, Some(1), "{text}");
        assert!(text.contains(&format!("a warehouse of type `{kind}` needs `warehouse.adbc`")), "{text}");
    }
}
