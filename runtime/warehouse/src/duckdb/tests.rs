//! On a real engine: values go in and come out whole, the lock holds, a timeout is a timeout.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::time::Duration;

use arrow::array::AsArray;
use arrow::datatypes::{DataType, Int64Type};
use terrane_app::ports::warehouse::{ResultSet, Statement, Warehouse, WarehouseErrorKind};
use terrane_compiler::types::Value;

use super::{DuckDb, DuckDbSettings, OpenError};

fn settings(init: &[&str]) -> DuckDbSettings {
    DuckDbSettings {
        path: None,
        project: std::env::temp_dir(),
        init: init.iter().map(|s| (*s).to_owned()).collect(),
        threads: Some(2),
        memory_limit: Some("1GB".to_owned()),
        connections: 4,
    }
}

async fn run(db: &DuckDb, text: &str, params: &[Value]) -> ResultSet {
    db.execute(Statement { text, params }, Duration::from_secs(20)).await.unwrap()
}

/// One row, one boolean.
async fn holds(db: &DuckDb, text: &str, params: &[Value]) -> bool {
    run(db, text, params).await.batches[0].column(0).as_boolean().value(0)
}

#[tokio::test]
async fn bound_values_arrive_whole() {
    let db = DuckDb::open(&settings(&[])).unwrap();
    let cases: &[(&str, Value)] = &[
        ("? IS NULL", Value::Null),
        ("? = true", Value::Boolean(true)),
        ("? = 9223372036854775807", Value::Integer(i64::MAX)),
        ("? = 0.1::DOUBLE", Value::Float(0.1)),
        (
            "? = 12345678901234567890123456789012345.678::DECIMAL(38,3)",
            Value::Decimal("12345678901234567890123456789012345.678".into()),
        ),
        ("? = -0.5", Value::Decimal("-0.5".into())),
        ("? = 'O''Hare \u{1F6EB} ; --'", Value::Text("O'Hare \u{1F6EB} ; --".into())),
        ("? = DATE '2024-02-29'", Value::Date(19_782)),
        ("? = TIMESTAMP '1969-12-31 23:59:59.999999'", Value::Timestamp(-1)),
        ("? = TIMESTAMPTZ '2013-11-03 01:00:00-04:00'", Value::TimestampTz(1_383_454_800_000_000)),
    ];
    for (condition, value) in cases {
        assert!(holds(&db, &format!("SELECT {condition}"), std::slice::from_ref(value)).await, "{condition}");
    }
}

#[tokio::test]
async fn describe_tells_types_without_rows() {
    let db = DuckDb::open(&settings(&["CREATE TABLE t (i INTEGER, d DECIMAL(10,2), z TIMESTAMPTZ)"])).unwrap();
    let schema = db.describe(Statement { text: "SELECT i, d, z, i / 2 AS h FROM t", params: &[] }).await.unwrap();
    let types: Vec<&DataType> = schema.fields().iter().map(|f| f.data_type()).collect();
    assert!(matches!(
        types[..],
        [DataType::Int32, DataType::Decimal128(10, 2), DataType::Timestamp(..), DataType::Float64]
    ));
}

#[tokio::test]
async fn the_engine_is_locked() {
    let db = DuckDb::open(&settings(&[])).unwrap();
    for text in [
        "SELECT * FROM read_csv('/etc/passwd')",
        "ATTACH '/etc/x.db'",
        "SET lock_configuration = false",
        "SET threads = 8",
        "INSTALL httpfs",
    ] {
        let outcome = db.execute(Statement { text, params: &[] }, Duration::from_secs(5)).await;
        assert_eq!(outcome.unwrap_err().kind, WarehouseErrorKind::Refused, "{text}");
    }
}

#[tokio::test]
async fn a_timeout_is_answered_and_the_connection_serves_again() {
    let mut settings = settings(&[]);
    settings.connections = 1;
    let db = DuckDb::open(&settings).unwrap();
    let endless = "SELECT count(*) FROM range(100000000000) a, range(1000) b WHERE a.range % 7 = b.range";
    let outcome = db.execute(Statement { text: endless, params: &[] }, Duration::from_millis(50)).await;
    assert_eq!(outcome.unwrap_err().kind, WarehouseErrorKind::Timeout);
    let rows = run(&db, "SELECT 42::BIGINT", &[]).await;
    assert_eq!(rows.batches[0].column(0).as_primitive::<Int64Type>().value(0), 42);
}

#[test]
fn an_init_that_fails_is_named() {
    let Err(OpenError::Init { index: 1, statement, .. }) = DuckDb::open(&settings(&[
        "CREATE SCHEMA raw",
        "CREATE VIEW raw.f AS SELECT * FROM read_parquet('none.parquet')",
    ])) else {
        panic!("a view over a missing file was accepted");
    };
    assert!(statement.contains("none.parquet"));
}
