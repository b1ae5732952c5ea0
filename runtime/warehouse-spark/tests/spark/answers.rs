//! Tests that types and values equal those that DuckDB returns.

use arrow::array::ArrayRef;
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::{DataType, TimeUnit};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use terrane_app::ports::warehouse::{RefusalCause, ResultSet, Statement, Warehouse, WarehouseErrorKind};
use terrane_compiler::types::Value;
use terrane_warehouse::{DuckDb, DuckDbSettings, FileAccess};

use crate::server::Server;
use crate::{LIMIT, ask, open};

fn duckdb() -> DuckDb {
    DuckDb::open(&DuckDbSettings {
        path: None,
        project: std::env::temp_dir(),
        init: vec!["SET TimeZone = 'UTC'".to_owned()],
        threads: Some(1),
        memory_limit: None,
        connections: 1,
        file_access: FileAccess::Views,
        is_written: false,
        rollups: None,
    })
    .unwrap()
}

/// Returns the types of the columns, and each column's cells as text.
fn shown(rows: &ResultSet) -> (Vec<DataType>, Vec<Vec<String>>) {
    let types = rows.schema.fields().iter().map(|field| field.data_type().clone()).collect();
    let all = concat_batches(&rows.schema, &rows.batches).unwrap();
    (types, all.columns().iter().map(cells).collect())
}

fn cells(column: &ArrayRef) -> Vec<String> {
    // The formatter does not support named zones, so the zone is removed here; it is compared as part of the type.
    let column = match column.data_type() {
        DataType::Timestamp(unit, Some(_)) => cast(column, &DataType::Timestamp(*unit, None)).unwrap(),
        _ => column.clone(),
    };
    let options = FormatOptions::new().with_null("null");
    let formatter = ArrayFormatter::try_new(&column, &options).unwrap();
    (0..column.len()).map(|row| formatter.value(row).to_string()).collect()
}

/// Statements that have the same text in both dialects.
const SHARED: &[&str] = &[
    "SELECT CAST(7 AS BIGINT) AS n, CAST(-9223372036854775808 AS BIGINT) AS least",
    "SELECT CAST(1.25 AS DECIMAL(18, 2)) AS a, CAST(-0.05 AS DECIMAL(4, 2)) AS b, CAST(NULL AS DECIMAL(9, 3)) AS c",
    "SELECT CAST('12345678901234567890123456789012345678' AS DECIMAL(38, 0)) AS huge",
    "SELECT CAST(0.1 AS DOUBLE) AS d, CAST(1.5 AS FLOAT) AS f",
    "SELECT 'größe \"Ω\" 漢字' AS t, '' AS empty",
    "SELECT TRUE AS yes, CAST(NULL AS BOOLEAN) AS unknown",
    "SELECT DATE '2024-02-29' AS d, DATE '1969-12-31' AS before",
    "SELECT a, count(*) AS n FROM (VALUES ('x', 1), ('y', 2), ('x', 3)) AS v(a, b) GROUP BY a ORDER BY a",
    "SELECT sum(CAST(b AS DECIMAL(38, 0))) AS s, min(b) AS least FROM (SELECT CAST(1 AS BIGINT) AS b UNION ALL SELECT CAST(2 AS BIGINT)) AS v",
    "SELECT CAST(1 AS BIGINT) AS n WHERE 1 = 0",
];

#[tokio::test(flavor = "multi_thread")]
async fn types_and_values_are_those_of_duckdb() {
    let Some(server) = Server::start() else { return };
    let (spark, duckdb) = (open(&server.url()).await, duckdb());
    for text in SHARED {
        let found = ask(&spark, text).await.unwrap_or_else(|error| panic!("{text}: {error}"));
        let expected = ask(&duckdb, text).await.unwrap();
        let (types, rows) = shown(&found);
        let (expected_types, expected_rows) = shown(&expected);
        assert_eq!(types, expected_types, "{text}");
        assert_eq!(rows, expected_rows, "{text}");
    }
}

/// Statements in Spark's dialect, each with the equivalent statement for DuckDB.
const TRANSLATED: &[(&str, &str)] = &[
    (
        "SELECT TIMESTAMP_NTZ '2024-03-31 02:30:00.123456' AS clock, TIMESTAMP '2024-03-31 01:00:00Z' AS moment",
        "SELECT TIMESTAMP '2024-03-31 02:30:00.123456' AS clock, TIMESTAMPTZ '2024-03-31 01:00:00Z' AS moment",
    ),
    ("SELECT CAST('a' AS BINARY) AS b", "SELECT 'a'::BLOB AS b"),
    ("SELECT 1 AS small, 2Y AS tiny", "SELECT 1::BIGINT AS small, 2::BIGINT AS tiny"),
    ("SELECT array(1.5D, NULL) AS list", "SELECT [1.5::DOUBLE, NULL] AS list"),
    ("SELECT 'it\\u0027s' AS t", "SELECT 'it''s' AS t"),
];

#[tokio::test(flavor = "multi_thread")]
async fn translated_statements_return_the_same_types() {
    let Some(server) = Server::start() else { return };
    let (spark, duckdb) = (open(&server.url()).await, duckdb());
    for (text, translated) in TRANSLATED {
        let found = ask(&spark, text).await.unwrap_or_else(|error| panic!("{text}: {error}"));
        let (types, rows) = shown(&found);
        let (expected_types, expected_rows) = shown(&ask(&duckdb, translated).await.unwrap());
        let names = |types: &[DataType]| types.iter().map(without_item_names).collect::<Vec<_>>();
        assert_eq!(names(&types), names(&expected_types), "{text}");
        assert_eq!(rows, expected_rows, "{text}");
    }
}

/// Returns the element type of a list. Returns other types unchanged.
fn without_item_names(ty: &DataType) -> DataType {
    match ty {
        DataType::List(item) => item.data_type().clone(),
        other => other.clone(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_keep_their_types() {
    let Some(server) = Server::start() else { return };
    let spark = open(&server.url()).await;
    let values = [
        (Value::Integer(i64::MAX), DataType::Int64, "9223372036854775807"),
        (Value::Float(-2.25), DataType::Float64, "-2.25"),
        (Value::Decimal("12.50".into()), DataType::Decimal128(4, 2), "12.50"),
        (Value::Boolean(true), DataType::Boolean, "true"),
        (
            Value::Text("O'Brien; DROP TABLE x -- \\u0027 ${y}".into()),
            DataType::Utf8,
            "O'Brien; DROP TABLE x -- \\u0027 ${y}",
        ),
        (Value::Date(19_782), DataType::Date32, "2024-02-29"),
        (Value::Timestamp(1_500_000), DataType::Timestamp(TimeUnit::Microsecond, None), "1970-01-01T00:00:01.500"),
        (
            Value::TimestampTz(1_500_000),
            DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            "1970-01-01T00:00:01.500",
        ),
    ];
    for (value, ty, shown) in values {
        let statement = Statement { text: "SELECT ? AS v", params: std::slice::from_ref(&value), columns: &[] };
        let rows = spark.execute(statement, LIMIT).await.unwrap_or_else(|error| panic!("{value:?}: {error}"));
        assert_eq!(self::shown(&rows), (vec![ty.clone()], vec![vec![shown.to_owned()]]), "{value:?}");
        let described = spark.describe(statement).await.unwrap();
        assert_eq!(described.field(0).data_type(), &ty, "{value:?}");
    }
    let statement = Statement { text: "SELECT ? IS NULL AS v", params: &[Value::Null], columns: &[] };
    let rows = spark.execute(statement, LIMIT).await.unwrap();
    assert_eq!(shown(&rows).1, [["true"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn description_has_the_schema_of_the_rows() {
    let Some(server) = Server::start() else { return };
    let spark = open(&server.url()).await;
    let translated = TRANSLATED.iter().map(|(text, _)| text);
    for text in SHARED.iter().chain(translated) {
        let described = spark.describe(Statement::plain(text)).await.unwrap();
        assert_eq!(described, ask(&spark, text).await.unwrap().schema, "{text}");
    }
    // The statement is not run, because its division would fail.
    let described = spark.describe(Statement::plain("SELECT id / (id - id) AS q FROM range(3)")).await.unwrap();
    assert_eq!(described.field(0).data_type(), &DataType::Float64);
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_statements_are_refusals() {
    let Some(server) = Server::start() else { return };
    let spark = open(&server.url()).await;
    for text in [
        "SELEC 1",
        "SELECT * FROM no_such_table",
        "SELECT no_such_column FROM range(1)",
        "SELECT no_such_function(1)",
        "SELECT CAST('x' AS INT)",
        "SELECT ?",
        "",
    ] {
        let error = ask(&spark, text).await.unwrap_err();
        assert_eq!(error.kind, WarehouseErrorKind::Refused, "{text}: {error}");
        assert!(!error.message.is_empty(), "{text}");
    }
    assert_eq!(ask(&spark, "SELECT CAST(1 AS BIGINT) AS n").await.unwrap().batches[0].num_rows(), 1);
    // Only Spark itself sends a SQLSTATE.
    if let Server::Other(_) = server {
        let error = ask(&spark, "SELECT no_such_function(1)").await.unwrap_err();
        assert_eq!(error.cause, RefusalCause::Function);
        assert!(error.message.contains("42883"), "{error}");
    }
}
