//! Tests the SQLite adapter through the port: values, limits and refusals.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use arrow::array::{Array as _, AsArray as _};
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use terrane_app::ports::warehouse::{
    RefusalCause, ResultSet, Statement, Warehouse, WarehouseError, WarehouseErrorKind,
};
use terrane_compiler::types::Value;
use terrane_warehouse::{ConnectError, SqliteSettings, sqlite};

const TIMEOUT: Duration = Duration::from_secs(10);
/// A query that runs for hours.
const ENDLESS: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";

async fn open(path: Option<PathBuf>, init: &[&str]) -> Result<impl Warehouse + use<>, ConnectError> {
    let init = init.iter().map(|statement| (*statement).to_owned()).collect();
    sqlite::open(&SqliteSettings { path, init, connections: 2 }).await
}

async fn run(sqlite: &impl Warehouse, text: &str, params: &[Value]) -> Result<ResultSet, WarehouseError> {
    sqlite.execute(Statement { text, params, columns: &[] }, TIMEOUT).await
}

#[tokio::test]
async fn memory_database_is_created_by_init() {
    let sqlite = open(None, &["CREATE TABLE t (id BIGINT, x TEXT)", "INSERT INTO t VALUES (1, 'a'), (2, NULL)"]).await;
    let answer = run(&sqlite.unwrap(), "SELECT id, x, id / 2.0 FROM t ORDER BY id", &[]).await.unwrap();
    let batch = &answer.batches[0];
    assert_eq!(batch.column(0).as_primitive::<Int64Type>().values()[..], [1, 2]);
    assert_eq!(batch.column(1).as_string::<i32>().iter().collect::<Vec<_>>(), [Some("a"), None]);
    assert_eq!(batch.column(2).as_primitive::<Float64Type>().values()[..], [0.5, 1.0]);
}

#[tokio::test]
async fn values_are_bound_with_their_types() {
    let sqlite = open(None, &[]).await.unwrap();
    let params = [
        Value::Integer(i64::MAX),
        Value::Text("O'Brien; --".into()),
        Value::Date(19_753),
        Value::Timestamp(500_000),
        Value::Decimal("1.5".into()),
        Value::Boolean(true),
        Value::Null,
    ];
    let answer = run(&sqlite, "SELECT ?, ?, ?, ?, ?, ?, ?", &params).await.unwrap();
    let batch = &answer.batches[0];
    assert_eq!(batch.column(0).as_primitive::<Int64Type>().value(0), i64::MAX);
    let texts: Vec<&str> = (1..4).map(|index| batch.column(index).as_string::<i32>().value(0)).collect();
    assert_eq!(texts, ["O'Brien; --", "2024-01-31", "1970-01-01 00:00:00.5"]);
    assert_eq!(batch.column(4).as_primitive::<Float64Type>().value(0), 1.5);
    assert_eq!(batch.column(5).as_primitive::<Int64Type>().value(0), 1);
    assert_eq!(batch.column(6).logical_null_count(), 1);
}

#[tokio::test]
async fn refusals_have_causes() {
    let sqlite = open(None, &["CREATE TABLE t (x INTEGER)"]).await.unwrap();
    for (text, cause) in [
        ("SELECT date_trnc(1)", RefusalCause::Function),
        ("SELECT abs(1, 2)", RefusalCause::Function),
        ("SELECT sum(n) FROM (SELECT 9223372036854775807 AS n UNION ALL SELECT 1)", RefusalCause::Value),
        ("SELECT function_id FROM t", RefusalCause::Other),
        ("SELECT x FROM functions", RefusalCause::Other),
    ] {
        assert_eq!(run(&sqlite, text, &[]).await.unwrap_err().cause, cause, "{text}");
    }
}

#[tokio::test]
async fn writes_after_init_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    for path in [None, Some(folder.path().join("a.db"))] {
        let sqlite = open(path, &["CREATE TABLE IF NOT EXISTS t (id BIGINT)"]).await.unwrap();
        for statement in ["INSERT INTO t VALUES (1)", "CREATE TABLE u (id BIGINT)", "DROP TABLE t"] {
            let error = run(&sqlite, statement, &[]).await.unwrap_err();
            assert_eq!(error.kind, WarehouseErrorKind::Refused, "{statement}: {error}");
        }
    }
}

#[tokio::test]
async fn statement_is_cancelled_at_its_time_limit() {
    let sqlite = open(None, &[]).await.unwrap();
    #[allow(clippy::disallowed_methods, reason = "a test may look at the clock")]
    let started = Instant::now();
    for _ in 0..6 {
        let limit = Duration::from_millis(200);
        let error = sqlite.execute(Statement::plain(ENDLESS), limit).await.unwrap_err();
        assert_eq!(error.kind, WarehouseErrorKind::Timeout);
    }
    // Six statements ran, at most two at once, so each released its permit.
    assert!(started.elapsed() < Duration::from_secs(5));
    run(&sqlite, "SELECT 1", &[]).await.unwrap();
}

#[tokio::test]
async fn statement_is_described_by_declared_column_types() {
    let sqlite = open(None, &["CREATE TABLE t (a BIGINT, b DATE, c TIMESTAMP, d VARCHAR(9), e DOUBLE, f BLOB)"]).await;
    let sqlite = sqlite.unwrap();
    let schema = sqlite.describe(Statement::plain("SELECT *, a + 1 FROM t")).await.unwrap();
    let types: Vec<String> = schema.fields().iter().map(|field| field.data_type().to_string()).collect();
    assert_eq!(types, ["Int64", "Date32", "Timestamp(µs)", "Utf8", "Float64", "Binary", "Null"]);
    let empty = run(&sqlite, "SELECT a, d FROM t", &[]).await.unwrap();
    assert_eq!(empty.schema.field(0).data_type(), &DataType::Int64);
    let error = sqlite.describe(Statement::plain("SELECT nothing FROM t")).await.unwrap_err();
    assert!(error.kind == WarehouseErrorKind::Refused && error.message.contains("nothing"), "{error}");
}

#[tokio::test]
async fn database_that_does_not_open_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let missing = open(Some(folder.path().join("missing.db")), &[]).await.err().unwrap();
    let ConnectError::Connection(missing) = missing else { panic!("{missing}") };
    assert_eq!((&*missing.warehouse, missing.kind), ("sqlite", WarehouseErrorKind::Unavailable), "{missing}");
    let wrong = open(None, &["SELECT 1", "CREATE TABEL x"]).await.err().unwrap();
    assert!(matches!(wrong, ConnectError::Init { index: 1, .. }), "{wrong}");
}

#[tokio::test]
async fn probe_does_not_wait_for_statements() {
    let sqlite = open(None, &[]).await.unwrap();
    let limit = Duration::from_secs(2);
    let slow = || sqlite.execute(Statement::plain(ENDLESS), limit);
    let (_, _, probe) = tokio::join!(slow(), slow(), async {
        let probe = tokio::time::timeout(Duration::from_secs(1), sqlite.ping());
        probe.await.expect("an answer beside the statements")
    });
    probe.unwrap();
}

#[tokio::test]
async fn connections_are_counted_by_state() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let sqlite = open(Some(path.clone()), &["CREATE TABLE t (id BIGINT)"]).await.unwrap();
    let now = || sqlite.connections().map(|found| (found.active, found.idle, found.failed)).unwrap();
    assert_eq!(now(), (0, 1, 0));
    let running = run(&sqlite, ENDLESS, &[]);
    tokio::pin!(running);
    assert!(tokio::time::timeout(Duration::from_millis(50), &mut running).await.is_err());
    assert_eq!(now(), (1, 0, 0));
    // The only session is busy, so another statement needs a second one, which cannot be opened without the file.
    std::fs::remove_file(&path).unwrap();
    assert!(run(&sqlite, "SELECT 1", &[]).await.is_err());
    assert_eq!(now(), (1, 0, 1));
}

#[tokio::test]
async fn only_tables_and_views_of_the_file_are_in_the_catalog() {
    let sqlite = open(
        None,
        &[
            "CREATE TABLE Orders (Id INTEGER PRIMARY KEY, amount REAL, twice REAL GENERATED ALWAYS AS (amount * 2))",
            "CREATE VIEW large AS SELECT id, amount FROM orders WHERE amount > 100",
            "CREATE VIRTUAL TABLE words USING fts5(word)",
            "CREATE TABLE gone (id INTEGER)",
            "DROP TABLE gone",
            "CREATE TEMP TABLE passing (id INTEGER)",
            "ATTACH ':memory:' AS other",
            "CREATE TABLE other.items (id INTEGER)",
        ],
    );
    let sqlite = sqlite.await.unwrap();
    let located = async |name: &str| {
        let parts: Vec<&str> = name.split('.').collect();
        let found = sqlite.table(&parts).await.unwrap()?;
        Some(format!("{} ({})", found.name.join("."), found.columns.join(", ")))
    };
    for (name, found) in [
        ("orders", "main.Orders (Id, amount, twice)"),
        ("MAIN.ORDERS", "main.Orders (Id, amount, twice)"),
        ("large", "main.large (Id, amount)"),
    ] {
        assert_eq!(located(name).await.as_deref(), Some(found), "{name}");
    }
    assert!(sqlite.describe(Statement::plain("SELECT * FROM json_each")).await.is_ok());
    for name in [
        "json_each",
        "main.json_each",
        "json_tree",
        "pragma_table_info",
        "pragma_database_list",
        "dbstat",
        "sqlite_master",
        "sqlite_schema",
        "words",
        "words_content",
        "words_data",
        "gone",
        "passing",
        "temp.passing",
        "items",
        "other.items",
        "main.main.orders",
        "orders' OR 1 = 1 --",
    ] {
        assert_eq!(located(name).await, None, "{name}");
    }
}
