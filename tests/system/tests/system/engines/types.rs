//! Tests that values of every type of a database server become JSON without loss.

use std::time::Duration;

use serde_json::{Value, json};
use terrane_app::ports::warehouse::{Statement, WarehouseErrorKind};
use terrane_cli::config::Environment;
use terrane_expectations::Rows;
use terrane_system_tests::engines::{Engine, Kind, small_tables};
use terrane_system_tests::path;

use super::answers::in_runtime;
use super::{PROJECT, start};

const LIMIT: Duration = Duration::from_secs(10);

/// Returns the single row of each statement, or the kind and the text of the server's error.
fn rows(engine: &Engine, statements: &[&str]) -> Vec<Result<Vec<Value>, (WarehouseErrorKind, String)>> {
    let environment: Environment = engine.variables(&small_tables(), &[]).into_iter().collect();
    in_runtime(&path(PROJECT), &environment, async |engine| {
        let mut all = Vec::new();
        for statement in statements {
            let answer = engine.warehouse.execute(Statement::plain(statement), LIMIT).await;
            all.push(match answer {
                Ok(answer) => Ok(Rows::of_statement(&answer.schema, &answer.batches).expect("rows").rows.remove(0)),
                Err(error) => Err((error.kind, error.message)),
            });
        }
        all
    })
}

/// Compares the row of each statement with the text of a JSON array, so that all digits are compared.
fn check(kind: Kind, cases: &[(&str, &str)]) {
    let Some(engine) = start(kind) else { return };
    let statements: Vec<&str> = cases.iter().map(|(statement, _)| *statement).collect();
    let actual = rows(&engine, &statements);
    let wrong: Vec<String> = cases
        .iter()
        .zip(actual)
        .map(|((statement, expected), actual)| (statement, *expected, actual.map(|row| json!(row).to_string())))
        .filter(|(_, expected, actual)| actual.as_deref() != Ok(*expected))
        .map(|(statement, expected, actual)| format!("{statement}\n  expected: {expected}\n  actual:   {actual:?}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn refused(kind: Kind, statement: &str, words: &str) {
    let Some(engine) = start(kind) else { return };
    let (kind, message) = rows(&engine, &[statement]).remove(0).expect_err("a refusal");
    assert!(kind == WarehouseErrorKind::Refused && message.contains(words), "{message}");
}

/// Values of PostgreSQL's types, and their JSON.
const POSTGRES: &[(&str, &str)] = &[
    (
        "SELECT true AS a, 1::int2 AS b, 2::int4 AS c, 9007199254740993::int8 AS d, 7::oid AS e",
        "[true,1,2,9007199254740993,7]",
    ),
    ("SELECT 0.1::float4 AS a, 0.1::float8 AS b, 'NaN'::float8 AS c", "[0.1,0.1,null]"),
    (
        "SELECT 10.10::numeric(10,2) AS a, sum(x) AS b, 'NaN'::numeric AS c FROM unnest(ARRAY[1,2]::bigint[]) x",
        "[10.10,3,null]",
    ),
    (
        "SELECT 1e60::numeric + 0.5 AS a, -0.000001::numeric AS b, 0::numeric AS c",
        "[1000000000000000000000000000000000000000000000000000000000000.5,-0.000001,0]",
    ),
    ("SELECT 1e80::numeric", "[\"100000000000000000000000000000000000000000000000000000000000000000000000000000000\"]"),
    ("SELECT 'é'::text AS a, 'a'::varchar AS b, 'b '::char(3) AS c, 'n'::name AS d", "[\"é\",\"a\",\"b  \",\"n\"]"),
    (
        "SELECT '00010203-0405-0607-0809-0a0b0c0d0e0f'::uuid AS a, '{\"a\": 1}'::json AS b, '{\"a\":1}'::jsonb AS c",
        "[\"00010203-0405-0607-0809-0a0b0c0d0e0f\",\"{\\\"a\\\": 1}\",\"{\\\"a\\\": 1}\"]",
    ),
    ("SELECT '\\x00ff'::bytea", "[\"AP8=\"]"),
    (
        "SELECT DATE '0001-01-01' AS a, DATE '9999-12-30' AS b, TIME '23:59:59.5' AS c",
        "[\"0001-01-01\",\"9999-12-30\",\"23:59:59.500\"]",
    ),
    (
        "SELECT TIMESTAMP '1969-12-31 23:59:59.999999' AS a, TIMESTAMPTZ '2024-01-31 23:30:00+02' AS b",
        "[\"1969-12-31T23:59:59.999999\",\"2024-01-31T21:30:00Z\"]",
    ),
    ("SELECT INTERVAL '14 months 3 days 1.5 s'", "[\"P14M3DT1.5S\"]"),
    ("SELECT NULL AS a, NULL::bigint AS b, NULL::numeric AS c, NULL::date AS d", "[null,null,null,null]"),
];

#[test]
fn values_of_postgres_keep_their_precision() {
    check(Kind::Postgres, POSTGRES);
    let infinite = "SELECT 'infinity'::timestamp AS a, '-infinity'::date AS b";
    check(Kind::Postgres, &[(infinite, "[\"infinity\",\"-infinity\"]")]);
}

#[test]
fn values_of_postgres_through_adbc_keep_their_precision() {
    check(Kind::PostgresThroughAdbc, POSTGRES);
}

#[test]
fn values_of_mariadb_keep_their_precision() {
    check(
        Kind::MariaDb,
        &[
            ("SELECT CAST(-1 AS SIGNED), CAST(18446744073709551615 AS UNSIGNED), true", "[-1,18446744073709551615,1]"),
            ("SELECT 0.1e0, CAST(0.1 AS FLOAT)", "[0.1,0.1]"),
            (
                "SELECT 10.10, sum(id), CAST('99999999999999999999999999999999999999999999999999.5' AS DECIMAL(65, 1)) FROM orders",
                "[10.10,21,99999999999999999999999999999999999999999999999999.5]",
            ),
            ("SELECT 'é', CAST('a' AS CHAR(3)), JSON_OBJECT('a', 1)", "[\"é\",\"a\",\"{\\\"a\\\": 1}\"]"),
            ("SELECT x'00ff'", "[\"AP8=\"]"),
            ("SELECT label COLLATE utf8mb4_bin FROM things WHERE id = 9", "[\"ÄPFEL\"]"),
            ("SELECT DATE '1000-01-01' AS a, DATE '9999-12-30' AS b", "[\"1000-01-01\",\"9999-12-30\"]"),
            (
                "SELECT TIMESTAMP '1969-12-31 23:59:59.999999' AS a, moment FROM things WHERE id = 8",
                "[\"1969-12-31T23:59:59.999999\",\"2024-10-27T22:59:59.5Z\"]",
            ),
            ("SELECT TIME '-26:03:04.5'", "[\"-26:03:04.500000\"]"),
            ("SELECT NULL, CAST(NULL AS SIGNED), CAST(NULL AS DATE)", "[null,null,null]"),
        ],
    );
}

#[test]
fn type_that_arrow_lacks_is_refused_by_name() {
    refused(Kind::Postgres, "SELECT ARRAY[1] AS list", "`list`");
}

#[test]
fn error_message_of_the_server_is_reported() {
    refused(Kind::Postgres, "SELECT nothing FROM orders", "nothing");
    refused(Kind::MariaDb, "SELECT nothing FROM orders", "nothing");
}
