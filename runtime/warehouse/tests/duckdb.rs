//! Tests the DuckDB adapter with the real engine: values, types, limits and the lock.
//!
//! All tests share one project folder, because opening a project makes its folder the working directory.

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Decimal128Type, Float64Type, Int64Type, TimeUnit};
use futures_util::StreamExt as _;
use terrane_app::ports::warehouse::{
    ResultSet, ScanSize, SizeBasis, Statement, Warehouse, WarehouseError, WarehouseErrorKind,
};
use terrane_compiler::model::{CatalogNames, ColumnName, ForeignKey};
use terrane_compiler::sql::ScannedRange;
use terrane_compiler::types::Value;
use terrane_warehouse::{DuckDb, DuckDbSettings, FileAccess, OpenError};

const TIMEOUT: Duration = Duration::from_secs(20);

fn project() -> PathBuf {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(folder.path().join("data")).expect("a folder");
        fs::create_dir_all(folder.path().join("cubes")).expect("a folder");
        fs::write(folder.path().join("data/rows.csv"), "id,name\n1,one\n2,two\n").expect("a file");
        fs::write(folder.path().join("cubes/rows.csv"), "id\n1\n").expect("a file");
        fs::write(folder.path().join("service_project.yml"), "name: p\n").expect("a file");
        fs::write(folder.path().join("top.csv"), "id\n1\n").expect("a file");
        folder
    });
    folder.path().canonicalize().expect("the folder is there")
}

fn settings(init: &[&str]) -> DuckDbSettings {
    DuckDbSettings {
        path: None,
        project: project(),
        init: init.iter().map(ToString::to_string).collect(),
        connections: 2,
        memory_limit: Some("1GB".to_owned()),
        threads: Some(2),
        file_access: FileAccess::Project,
        is_written: false,
        rollups: None,
    }
}

fn open(init: &[&str]) -> DuckDb {
    DuckDb::open(&settings(init)).expect("the database opens")
}

async fn run(duckdb: &DuckDb, text: &str, params: &[Value]) -> Result<ResultSet, WarehouseError> {
    duckdb.execute(Statement { text, params, columns: &[] }, TIMEOUT).await
}

async fn text(duckdb: &DuckDb, sql: &str, params: &[Value]) -> String {
    let rows = run(duckdb, sql, params).await.expect("the statement runs");
    rows.batches[0].column(0).as_string::<i32>().value(0).to_owned()
}

#[tokio::test]
async fn every_kind_of_value_binds_exactly() {
    let duckdb = open(&[]);
    // Two statements are needed, because DuckDB 1.5.6 fails if one statement reads both the string and its type.
    let typed = async |value: Value| {
        let values = [value];
        let ty = text(&duckdb, "SELECT typeof($1)", &values).await;
        format!("{ty} {}", text(&duckdb, "SELECT CAST($1 AS VARCHAR)", &values).await)
    };
    assert_eq!(typed(Value::Boolean(true)).await, "BOOLEAN true");
    assert_eq!(typed(Value::Integer(i64::MIN)).await, "BIGINT -9223372036854775808");
    assert_eq!(typed(Value::Float(0.1)).await, "DOUBLE 0.1");
    assert_eq!(
        typed(Value::Decimal("12345678901234567890.000000000000000001".into())).await,
        "DECIMAL(38,18) 12345678901234567890.000000000000000001"
    );
    assert_eq!(typed(Value::Decimal("-0.10".into())).await, "DECIMAL(2,1) -0.1");
    assert_eq!(typed(Value::Text("it's \u{1F600} \0 $1".into())).await, "VARCHAR it's \u{1F600} \0 $1");
    assert_eq!(typed(Value::Date(-1)).await, "DATE 1969-12-31");
    assert_eq!(typed(Value::Timestamp(1)).await, "TIMESTAMP 1970-01-01 00:00:00.000001");
    assert_eq!(
        text(&duckdb, "SELECT CAST(CAST($1 AS TIMESTAMPTZ) AS VARCHAR)", &[Value::TimestampTz(0)]).await,
        "1970-01-01 00:00:00+00"
    );
    let null = run(&duckdb, "SELECT $1 IS NULL AS n", &[Value::Null]).await.expect("runs");
    assert!(null.batches[0].column(0).as_boolean().value(0));
}

#[tokio::test]
async fn results_are_columns_with_their_types() {
    let duckdb = open(&[]);
    let sql = "SELECT i AS a, i * 0.5::DOUBLE AS b, (i * 1.25)::DECIMAL(10,2) AS c, sum(i) OVER () AS d, now() AS e FROM range(5000) t(i)";
    let rows = run(&duckdb, sql, &[]).await.expect("runs");
    assert_eq!(rows.batches.iter().map(arrow::array::RecordBatch::num_rows).sum::<usize>(), 5000);
    let first = &rows.batches[0];
    assert_eq!(first.column(0).as_primitive::<Int64Type>().value(3), 3);
    assert!((first.column(1).as_primitive::<Float64Type>().value(3) - 1.5).abs() < f64::EPSILON);
    assert_eq!(first.column(2).as_primitive::<Decimal128Type>().value(3), 375);
    assert_eq!(first.column(3).data_type(), &DataType::Decimal128(38, 0));
    assert_eq!(rows.schema.field(4).data_type(), &DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())));
}

#[tokio::test]
async fn empty_result_has_columns() {
    let rows = run(&open(&[]), "SELECT 1 AS a WHERE false", &[]).await.expect("runs");
    assert!(rows.batches.iter().all(|b| b.num_rows() == 0));
    assert_eq!(rows.schema.field(0).name(), "a");
}

#[tokio::test]
async fn describing_does_not_execute_the_statement() {
    let duckdb = open(&[]);
    let text = "SELECT count(*) AS n, $1 AS t FROM range(100000000000) -- to the end";
    let schema =
        duckdb.describe(Statement { text, params: &[Value::Text("x".into())], columns: &[] }).await.expect("describes");
    assert_eq!(schema.field(0).data_type(), &DataType::Int64);
    assert_eq!(schema.field(1).data_type(), &DataType::Utf8);
}

#[tokio::test]
async fn rejection_contains_the_message_of_the_engine() {
    let duckdb = open(&[]);
    let error = run(&duckdb, "SELECT * FROM nowhere", &[]).await.expect_err("the table does not exist");
    assert_eq!(error.kind, WarehouseErrorKind::Refused);
    assert!(error.message.contains("nowhere"), "{error}");
    let error = run(&duckdb, "SELECT $1", &[]).await.expect_err("a value is missing");
    assert_eq!(error.kind, WarehouseErrorKind::Refused);
    let error = run(&duckdb, "SELECT CAST('x' AS INTEGER)", &[]).await.expect_err("not a number");
    assert_eq!(error.kind, WarehouseErrorKind::Refused);
}

#[tokio::test]
async fn timeout_is_reported_in_time_and_the_next_statement_runs() {
    let duckdb = open(&[]);
    let endless = "SELECT count(*) FROM range(100000000) a, range(100000000) b WHERE a.range * b.range % 7 = 3";
    let statement = Statement::plain(endless);
    let three_timeouts = async {
        for _ in 0..3 {
            let error = duckdb.execute(statement, Duration::from_millis(200)).await.expect_err("it is too long");
            assert_eq!(error.kind, WarehouseErrorKind::Timeout);
        }
    };
    tokio::time::timeout(Duration::from_secs(3), three_timeouts).await.expect("each is answered at its time");
    assert_eq!(text(&duckdb, "SELECT 'still here'", &[]).await, "still here");
}

#[tokio::test]
async fn dropped_call_cancels_its_statement() {
    let duckdb = open(&[]);
    let endless = "SELECT count(*) FROM range(100000000) a, range(100000000) b WHERE a.range * b.range % 7 = 3";
    for _ in 0..8 {
        let run = run(&duckdb, endless, &[]);
        assert!(tokio::time::timeout(Duration::from_millis(20), run).await.is_err());
    }
    assert_eq!(text(&duckdb, "SELECT 'still here'", &[]).await, "still here");
    duckdb.ping().await.expect("the engine answers");
}

#[tokio::test]
async fn rows_are_streamed() {
    let duckdb = open(&[]);
    let text = "SELECT i, i::VARCHAR AS t FROM range(100000) t(i) WHERE i >= $1";
    let statement = Statement { text, params: &[Value::Integer(1)], columns: &[] };
    let mut rows = duckdb.stream(statement, TIMEOUT).await.expect("it begins");
    assert_eq!(rows.schema.field(0).name(), "i");
    let (mut count, mut sum) = (0, 0);
    while let Some(batch) = rows.next().await {
        let batch = batch.expect("a batch");
        count += batch.num_rows();
        sum += batch.column(0).as_primitive::<Int64Type>().values().iter().sum::<i64>();
    }
    assert_eq!((count, sum), (99_999, 99_999 * 100_000 / 2));
    let mut none = duckdb
        .stream(Statement { text, params: &[Value::Integer(200_000)], columns: &[] }, TIMEOUT)
        .await
        .expect("begins");
    assert_eq!(none.schema.fields().len(), 2);
    assert!(none.next().await.is_none_or(|batch| batch.expect("no rows").num_rows() == 0));
}

#[tokio::test]
async fn dropped_stream_cancels_its_statement() {
    let duckdb = open(&[]);
    // The statement has more rows than fit into memory, and there are two connections.
    let statement = Statement { text: "SELECT i, i * 2 AS j FROM range(100000000000) t(i)", params: &[], columns: &[] };
    for _ in 0..8 {
        let mut rows = duckdb.stream(statement, TIMEOUT).await.expect("it begins");
        for _ in 0..3 {
            assert!(rows.next().await.expect("there are more").is_ok());
        }
    }
    assert_eq!(text(&duckdb, "SELECT 'still here'", &[]).await, "still here");
    duckdb.ping().await.expect("the engine answers");
}

#[tokio::test]
async fn slow_streams_leave_connections_for_other_statements() {
    let duckdb = open(&[]);
    let statement = Statement { text: "SELECT i FROM range(100000000000) t(i)", params: &[], columns: &[] };
    // Streams may use half of the two connections, so one stream leaves none for another.
    let _slow = duckdb.stream(statement, TIMEOUT).await.expect("it begins");
    let refused = duckdb.stream(statement, Duration::from_millis(50)).await;
    assert_eq!(refused.expect_err("no permit is free").kind, WarehouseErrorKind::Timeout);
    assert_eq!(text(&duckdb, "SELECT 'still here'", &[]).await, "still here");
}

#[tokio::test]
async fn error_during_a_stream_is_reported_in_the_stream() {
    let duckdb = open(&[]);
    let refused = duckdb.stream(Statement { text: "SELECT * FROM nowhere", params: &[], columns: &[] }, TIMEOUT).await;
    assert_eq!(refused.expect_err("the table does not exist").kind, WarehouseErrorKind::Refused);
    let late = "SELECT CAST(CASE WHEN i = 500000 THEN 'x' ELSE '1' END AS INTEGER) AS n FROM range(1000000) t(i)";
    let mut rows =
        duckdb.stream(Statement { text: late, params: &[], columns: &[] }, TIMEOUT).await.expect("it begins");
    let mut ended = None;
    while let Some(batch) = rows.next().await {
        ended = batch.err();
    }
    let ended = ended.expect("not a number");
    assert_eq!(ended.kind, WarehouseErrorKind::Refused, "{ended}");
    let slow = "SELECT count(*) FROM range(100000000) a, range(100000000) b WHERE a.range * b.range % 7 = 3";
    let mut timeouts = 0;
    match duckdb.stream(Statement { text: slow, params: &[], columns: &[] }, Duration::from_millis(200)).await {
        Err(error) if error.kind == WarehouseErrorKind::Timeout => timeouts += 1,
        Err(other) => panic!("{other}"),
        Ok(mut rows) => match rows.next().await {
            Some(Err(error)) if error.kind == WarehouseErrorKind::Timeout => timeouts += 1,
            other => panic!("{other:?}"),
        },
    }
    assert_eq!(timeouts, 1);
    assert_eq!(text(&duckdb, "SELECT 'still here'", &[]).await, "still here");
}

#[tokio::test]
async fn plan_is_returned_for_bound_values() {
    let duckdb = open(&[]);
    let text = "EXPLAIN (FORMAT JSON) SELECT count(*) FROM range(10) t(i) WHERE i > $1";
    let rows = run(&duckdb, text, &[Value::Integer(3)]).await.expect("it explains");
    let plan = rows.batches[0].columns().last().expect("a column").as_string::<i32>().value(0).to_owned();
    assert!(plan.trim_start().starts_with('['), "{plan}");
}

#[tokio::test]
async fn views_of_init_work_after_the_lock() {
    let duckdb = open(&["CREATE VIEW r AS SELECT * FROM read_csv('data/rows.csv')", "CREATE VIEW t AS FROM 'top.csv'"]);
    assert_eq!(text(&duckdb, "SELECT name FROM r WHERE id = $1", &[Value::Integer(2)]).await, "two");
    assert!(run(&duckdb, "FROM t", &[]).await.is_ok());
}

#[tokio::test]
async fn engine_is_locked() {
    let duckdb = open(&[]);
    let outside = project().join("../outside.csv");
    fs::write(&outside, "secret\n1\n").expect("a file");
    for sql in [
        "SELECT content FROM read_text('/etc/hostname')",
        "SELECT content FROM read_text('../outside.csv')",
        "SELECT content FROM read_text('data/../../outside.csv')",
        "SELECT content FROM read_text('service_project.yml')",
        "SELECT content FROM read_text('data/../service_project.yml')",
        "SELECT content FROM read_text('cubes/rows.csv')",
        "SELECT * FROM read_csv('https://example.com/x.csv')",
        "COPY (SELECT 1) TO '/tmp/terrane-out.csv'",
        "ATTACH '/tmp/terrane-other.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET TimeZone = 'Europe/Berlin'",
        "SET enable_external_access = true",
        "SET lock_configuration = false",
        "RESET lock_configuration",
    ] {
        assert!(run(&duckdb, sql, &[]).await.is_err(), "`{sql}` was not refused");
    }
    fs::remove_file(outside).expect("the file is there");
    assert_eq!(text(&duckdb, "SELECT current_setting('TimeZone')", &[]).await, "UTC");
}

#[tokio::test]
async fn large_queries_spill_to_disk() {
    let mut settings = settings(&[]);
    settings.memory_limit = Some("64MB".to_owned());
    let duckdb = DuckDb::open(&settings).expect("the database opens");
    let sql = "SELECT count(*) AS n FROM (SELECT i::VARCHAR || repeat('x', 40) AS s FROM range(3000000) t(i) ORDER BY hash(i), s) WHERE s <> ''";
    let rows = run(&duckdb, sql, &[]).await.expect("it spills and runs");
    assert_eq!(rows.batches[0].column(0).as_primitive::<Int64Type>().value(0), 3_000_000);
}

#[test]
fn statement_of_init_that_fails_is_named() {
    let missing =
        DuckDb::open(&settings(&["SELECT 1", "CREATE VIEW x AS SELECT * FROM read_parquet('data/none.parquet')"]));
    match missing {
        Err(OpenError::Init { index: 1, message, .. }) => assert!(message.contains("data/none.parquet"), "{message}"),
        other => panic!("expected a refusal of statement 2, got {other:?}"),
    }
    fs::write(project().join("data/torn.parquet"), b"PAR1 and then nothing").expect("a file");
    let torn = DuckDb::open(&settings(&["CREATE VIEW x AS SELECT * FROM read_parquet('data/torn.parquet')"]));
    assert!(matches!(torn, Err(OpenError::Init { index: 0, .. })), "{torn:?}");
}

#[test]
fn database_that_does_not_open_is_named() {
    let mut settings = settings(&[]);
    settings.path = Some(project().join("top.csv"));
    match DuckDb::open(&settings) {
        Err(OpenError::Database { path, .. }) => assert!(path.ends_with("top.csv")),
        other => panic!("a CSV file is not a database: {other:?}"),
    }
}

#[test]
fn database_of_a_newer_version_is_named() {
    let path = project().join("newer.duckdb");
    let mut settings = settings(&["CREATE TABLE t (a INTEGER)"]);
    settings.path = Some(path.clone());
    drop(DuckDb::open(&settings).expect("the database opens"));
    let mut bytes = fs::read(&path).expect("a file");
    bytes[12..20].copy_from_slice(&69_u64.to_le_bytes());
    fs::write(&path, bytes).expect("a file");
    let error = DuckDb::open(&settings).expect_err("the version is newer");
    assert!(matches!(error, OpenError::NewerStorage { version: 69, .. }), "{error:?}");
    let hint = error.hint().expect("a hint");
    assert!(hint.contains("64 to 68") && hint.contains("newer DuckDB"), "{hint}");
}

#[tokio::test]
async fn connections_are_counted_by_state() {
    let duckdb = open(&[]);
    let now = |duckdb: &DuckDb| duckdb.connections().map(|found| (found.active, found.idle));
    assert_eq!(now(&duckdb), Some((0, 0)));
    run(&duckdb, "SELECT 1", &[]).await.expect("the statement runs");
    assert_eq!(now(&duckdb), Some((0, 1)));
    let endless = "SELECT sum(a.range * b.range) FROM range(100000000) a, range(100000000) b";
    let running = run(&duckdb, endless, &[]);
    tokio::pin!(running);
    assert!(tokio::time::timeout(Duration::from_millis(50), &mut running).await.is_err());
    assert_eq!(now(&duckdb), Some((1, 0)));
    let found = duckdb.connections().expect("DuckDB counts");
    assert_eq!((found.failed, found.lost), (0, 0));
}

/// Returns the full name of a table and its columns from the catalog.
async fn located(warehouse: &impl Warehouse, name: &str) -> Option<String> {
    let parts: Vec<&str> = name.split('.').collect();
    let found = warehouse.table(&parts).await.expect("the catalog answers")?;
    Some(format!("{} ({})", found.name.join("."), found.columns.join(", ")))
}

#[tokio::test]
async fn tables_and_views_of_the_catalog_are_found_by_name() {
    let duckdb = open(&[
        "CREATE TABLE Orders (Id INT, amount INT)",
        "CREATE SCHEMA raw",
        "CREATE TABLE raw.orders (id INT)",
        "CREATE VIEW rows AS SELECT * FROM read_csv('data/rows.csv')",
        "ATTACH ':memory:' AS ops",
        "CREATE TABLE ops.items (id INT)",
        "CREATE SCHEMA twice",
        "CREATE TABLE twice.t (id INT)",
        "ATTACH ':memory:' AS twice",
        "CREATE TABLE twice.main.t (id INT)",
        "CREATE TABLE gone (id INT)",
        "DROP TABLE gone",
    ]);
    for (name, found) in [
        ("orders", "memory.main.Orders (Id, amount)"),
        ("ORDERS", "memory.main.Orders (Id, amount)"),
        ("main.orders", "memory.main.Orders (Id, amount)"),
        ("memory.orders", "memory.main.Orders (Id, amount)"),
        ("raw.orders", "memory.raw.orders (id)"),
        ("memory.RAW.orders", "memory.raw.orders (id)"),
        ("rows", "memory.main.rows (id, name)"),
        ("ops.items", "ops.main.items (id)"),
        ("ops.main.items", "ops.main.items (id)"),
        ("memory.twice.t", "memory.twice.t (id)"),
    ] {
        assert_eq!(located(&duckdb, name).await.as_deref(), Some(found), "{name}");
    }
    for name in ["twice.t", "gone", "items", "raw.gone", "a.b.c.d", "ops.raw.orders"] {
        assert_eq!(located(&duckdb, name).await, None, "{name}");
    }
}

#[tokio::test]
async fn files_functions_and_system_tables_are_not_in_the_catalog() {
    let folder = project();
    for name in ["customers.csv", "customers.tsv", "customers.json", "customers.ndjson", "customers.csv.gz"] {
        fs::write(folder.join("data").join(name), "id\n1\n").expect("a file");
        fs::write(folder.join(name), "id\n1\n").expect("a file");
    }
    let duckdb = open(&["CREATE TABLE t (id INT)", "CREATE TEMP TABLE passing (id INT)"]);
    let described = duckdb.describe(Statement::plain("SELECT * FROM customers.csv")).await;
    assert!(described.is_ok(), "the engine takes the name for a file: {described:?}");
    for name in [
        "customers.csv",
        "customers.tsv",
        "customers.json",
        "customers.ndjson",
        "customers.csv.gz",
        "data.customers.csv",
        "\"customers.csv\"",
        "data/customers.csv",
        "'customers.csv'",
        "read_csv('customers.csv')",
        "passing",
        "duckdb_settings",
        "duckdb_tables",
        "sqlite_master",
        "pragma_database_list",
        "pg_catalog.pg_class",
        "information_schema.tables",
        "system.main.duckdb_tables",
        "temp.passing",
        "t' OR true --",
    ] {
        assert_eq!(located(&duckdb, name).await, None, "{name}");
    }
}

/// Statements that read or write files, or give access to further files.
const FILE_STATEMENTS: &[&str] = &[
    "SELECT * FROM 'top.csv'",
    "SELECT * FROM \"top.csv\"",
    "SELECT * FROM top.csv",
    "SELECT * FROM 'data/rows.csv'",
    "SELECT * FROM read_csv('data/rows.csv')",
    "SELECT * FROM read_text('top.csv')",
    "SELECT * FROM read_blob('data/*')",
    "SELECT * FROM glob('data/*')",
    "SELECT * FROM sniff_csv('top.csv')",
    "SELECT * FROM query('FROM ''top.csv''')",
    "SELECT * FROM query_table('top.csv')",
    "COPY (SELECT 1) TO 'data/out.csv'",
    "COPY t FROM 'data/rows.csv'",
    "EXPORT DATABASE 'data/all'",
    "ATTACH 'data/other.duckdb' AS other",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET enable_external_access = true",
    "SET GLOBAL allowed_directories = ['/']",
    "RESET lock_configuration",
];

#[tokio::test]
async fn files_are_closed_if_no_view_reads_them() {
    let init = ["CREATE TABLE t AS SELECT * FROM read_csv('data/rows.csv')", "CREATE VIEW v AS SELECT id FROM t"];
    for file_access in [FileAccess::Views, FileAccess::None] {
        let duckdb = DuckDb::open(&DuckDbSettings { file_access, ..settings(&init) }).expect("the database opens");
        for text in FILE_STATEMENTS {
            let refused = run(&duckdb, text, &[]).await;
            assert!(refused.is_err(), "{text}: {refused:?}");
        }
        assert!(run(&duckdb, "SELECT count(*) FROM v", &[]).await.is_ok());
        assert!(!project().join("data/out.csv").exists());
    }
}

#[tokio::test]
async fn views_and_macros_over_files_keep_the_data_folders_open() {
    for init in [
        "CREATE VIEW v AS SELECT * FROM read_csv('data/rows.csv')",
        "CREATE VIEW v AS SELECT * FROM 'data/rows.csv'",
        "CREATE MACRO m(x) AS TABLE SELECT * FROM read_csv(x)",
    ] {
        let settings = DuckDbSettings { file_access: FileAccess::Views, ..settings(&[init]) };
        let duckdb = DuckDb::open(&settings).expect("the database opens");
        assert!(run(&duckdb, "SELECT * FROM read_csv('data/rows.csv')", &[]).await.is_ok(), "{init}");
        for text in ["SELECT * FROM 'cubes/rows.csv'", "SELECT * FROM read_text('service_project.yml')"] {
            assert!(run(&duckdb, text, &[]).await.is_err(), "{init}: {text}");
        }
    }
    let settings = DuckDbSettings {
        file_access: FileAccess::None,
        ..settings(&["CREATE VIEW v AS SELECT * FROM read_csv('data/rows.csv')"])
    };
    let duckdb = DuckDb::open(&settings).expect("the database opens");
    assert!(run(&duckdb, "SELECT * FROM v", &[]).await.is_err());
}

#[tokio::test]
async fn database_file_needs_no_other_files() {
    let settings = DuckDbSettings {
        path: Some(project().join("alone.duckdb")),
        file_access: FileAccess::None,
        is_written: true,
        ..settings(&["CREATE TABLE IF NOT EXISTS t AS SELECT i, repeat('x', 1000) AS x FROM range(200000) r(i)"])
    };
    let duckdb = DuckDb::open(&settings).expect("the database opens");
    for text in ["INSERT INTO t SELECT * FROM t", "CHECKPOINT", "SELECT * FROM t ORDER BY x, i DESC LIMIT 1"] {
        let done = run(&duckdb, text, &[]).await;
        assert!(done.is_ok(), "{text}: {done:?}");
    }
}

/// For this statement, the optimizer makes a plan that the executor refuses.
#[tokio::test]
async fn plan_that_the_engine_cannot_run_is_retried_without_the_optimizer() {
    let settings = DuckDbSettings {
        connections: 1,
        ..settings(&[
            "CREATE TABLE times (id SMALLINT, moment TIMESTAMP)",
            "CREATE TABLE facts (id SMALLINT, flag BOOLEAN, time_id SMALLINT, other_id SMALLINT, size SMALLINT)",
            "INSERT INTO facts VALUES (0, false, 0, 11, 0), (1, false, 3, 0, NULL)",
        ])
    };
    let duckdb = DuckDb::open(&settings).expect("the database opens");
    let sql = "SELECT times.moment, count(DISTINCT facts.flag) AS flags FROM facts \
               LEFT JOIN times ON facts.time_id = times.id LEFT JOIN facts AS other ON facts.other_id = other.id \
               WHERE times.moment >= TIMESTAMP '2025-01-01' AND other.size IN (2) \
               AND (facts.other_id NOT IN (0) OR facts.other_id IS NULL OR times.moment < TIMESTAMP '2018-04-01') \
               GROUP BY 1 ORDER BY 1";
    let rows = run(&duckdb, sql, &[]).await.expect("the statement runs");
    assert_eq!((rows.schema.fields().len(), rows.batches.len()), (2, 0));
    let mut stream = duckdb.stream(Statement::plain(sql), TIMEOUT).await.expect("the statement runs");
    assert!(stream.next().await.is_none());
    drop(stream);
    // The plan shows that the optimizer is on again, because constants are folded.
    let plan = run(&duckdb, "EXPLAIN SELECT 1 + 1", &[]).await.expect("a plan");
    let plan = plan.batches[0].column(1).as_string::<i32>().value(0);
    assert!(plan.contains('2') && !plan.contains('+'), "{plan}");
}

/// Returns the keys as strings, with the shortest names of their tables.
async fn foreign_keys(duckdb: &DuckDb) -> Vec<String> {
    let shown = |key: &ForeignKey| {
        let table = |names: &CatalogNames| names.0.last().expect("a name").join(".");
        let columns: Vec<String> = key.columns.iter().map(|[own, other]| format!("{own}={other}")).collect();
        format!("{} -> {}: {}", table(&key.from), table(&key.to), columns.join(" "))
    };
    let keys = duckdb.foreign_keys().await.expect("the catalog answers");
    let mut keys: Vec<String> = keys.iter().map(shown).collect();
    keys.sort();
    keys
}

#[tokio::test]
async fn foreign_keys_without_nullable_columns_hold_for_every_row() {
    let duckdb = open(&[
        "CREATE SCHEMA raw",
        "CREATE TABLE customers (id INT PRIMARY KEY, parent INT NOT NULL REFERENCES customers (id))",
        "CREATE TABLE raw.depots (city VARCHAR, \"no, 1\" INT, PRIMARY KEY (city, \"no, 1\"))",
        "CREATE TABLE orders (customer INT NOT NULL REFERENCES customers (id), \
         payer INT REFERENCES customers (id), other INT NOT NULL)",
        "CREATE TABLE raw.trips (n INT NOT NULL, city VARCHAR NOT NULL, back VARCHAR, \
         FOREIGN KEY (city, n) REFERENCES raw.depots (city, \"no, 1\"), \
         FOREIGN KEY (back, n) REFERENCES raw.depots (city, \"no, 1\"))",
        "CREATE TEMP TABLE mine (customer INT NOT NULL)",
    ]);
    assert_eq!(
        foreign_keys(&duckdb).await,
        [
            "customers -> customers: parent=id",
            "orders -> customers: customer=id",
            "raw.trips -> raw.depots: city=city n=no, 1",
        ]
    );
    assert_eq!(foreign_keys(&open(&[])).await, [""; 0]);
}

async fn scanned(duckdb: &DuckDb, scan: &str) -> Option<ScanSize> {
    duckdb.scan_size(scan, None).await.expect("the engine answers")
}

#[tokio::test]
async fn row_groups_outside_a_range_of_time_do_not_count() {
    let duckdb = open(&[
        "COPY (SELECT i, DATE '2024-01-01' + CAST(i // 1000 AS INTEGER) AS day FROM range(100000) AS r (i)) \
         TO 'data/days.parquet' (FORMAT parquet, ROW_GROUP_SIZE 10240)",
        "CREATE VIEW days AS SELECT * FROM read_parquet('data/days.parquet')",
        "CREATE VIEW moved AS SELECT i, day + INTERVAL 1 YEAR AS day FROM days",
        "CREATE VIEW renamed AS SELECT day AS i, i AS day FROM days",
    ]);
    let range = |low: &str, high: &str| {
        let micros = |text: &str| Some(text.parse::<jiff::Timestamp>().expect("a time").as_microsecond());
        let column = ColumnName { text: "day".into(), quoted: false };
        ScannedRange { column, place: 0, low: micros(low), high: micros(high) }
    };
    let size = async |view: &str, range: Option<&ScannedRange>| {
        let scan = format!("SELECT s.day AS c0, s.i AS c1 FROM {view} AS s");
        duckdb.scan_size(&scan, range).await.expect("the engine answers").expect("a size")
    };
    let all = size("days", None).await;
    let week = range("2024-02-01T00:00:00Z", "2024-02-08T00:00:00Z");
    let part = size("days", Some(&week)).await;
    assert_eq!(all.rows, Some(100_000));
    // The range has 8,000 rows, and touches at most two row groups.
    assert!(part.rows.is_some_and(|rows| (8_000..=30_000).contains(&rows)), "{part:?}");
    assert!(part.bytes < all.bytes / 2 && part.bytes > 0, "{part:?} of {all:?}");
    let never = size("days", Some(&range("2030-01-01T00:00:00Z", "2031-01-01T00:00:00Z"))).await;
    assert_eq!((never.rows, never.bytes), (Some(0), 0));
    // The times of this view are not those of the file.
    assert_eq!(size("moved", Some(&week)).await, size("moved", None).await);
    assert_eq!(size("renamed", Some(&week)).await, size("renamed", None).await);
}

#[tokio::test]
async fn scans_have_the_bytes_of_their_columns() {
    let duckdb = open(&[
        "CREATE TABLE numbers AS SELECT i, i % 7 AS small, 'a long name of row ' || i AS name FROM range(50000) AS r (i)",
        "COPY numbers TO 'data/numbers.parquet' (FORMAT parquet, ROW_GROUP_SIZE 20000)",
        "CREATE SCHEMA raw",
        "CREATE VIEW raw.numbers AS SELECT * FROM read_parquet('data/numbers.parquet')",
        "CREATE VIEW raw.named AS SELECT name AS title, small FROM raw.numbers",
    ]);
    let of = |sql: &'static str| scanned(&duckdb, sql);
    let stored = "SELECT CAST(sum(total_compressed_size) AS VARCHAR) \
                  FROM parquet_metadata('data/numbers.parquet') WHERE path_in_schema IN ('i', 'small')";
    let expected: u64 = text(&duckdb, stored, &[]).await.parse().expect("a number");
    let two = of("SELECT scanned.i AS c0, scanned.small AS c1 FROM raw.numbers AS scanned").await;
    assert_eq!(two, Some(ScanSize { bytes: expected, rows: Some(50_000), basis: SizeBasis::Exact }));
    let nothing = of("SELECT 1 AS c0 FROM raw.numbers AS scanned").await.expect("a size");
    assert_eq!((nothing.bytes, nothing.rows), (0, Some(50_000)));
    let renamed = of("SELECT scanned.title AS c0 FROM raw.named AS scanned").await.expect("a size");
    assert!(renamed.bytes > expected && renamed.basis == SizeBasis::Exact, "{renamed:?}");
    let filtered = of("SELECT s.small AS c0 FROM (SELECT * FROM raw.numbers WHERE i > 5) AS s").await.expect("a size");
    assert_eq!((filtered.bytes, filtered.basis), (expected, SizeBasis::UpperBound));
}

#[tokio::test]
async fn scans_of_tables_are_estimated_and_others_unknown() {
    let duckdb = open(&["CREATE TABLE t AS SELECT i, 'a name ' || i AS name FROM range(50000) AS r (i)"]);
    let one = scanned(&duckdb, "SELECT s.i AS c0 FROM t AS s").await.expect("a size");
    assert_eq!((one.rows, one.basis), (Some(50_000), SizeBasis::Statistics));
    assert!((200_000..=800_000).contains(&one.bytes), "{one:?}");
    let both = scanned(&duckdb, "SELECT s.i AS c0, s.name AS c1 FROM t AS s").await.expect("a size");
    assert!(both.bytes > one.bytes);
    assert_eq!(scanned(&duckdb, "SELECT s.id AS c0 FROM read_csv('data/rows.csv') AS s").await, None);
    assert_eq!(scanned(&duckdb, "SELECT s.id AS c0 FROM missing AS s").await, None);
}
