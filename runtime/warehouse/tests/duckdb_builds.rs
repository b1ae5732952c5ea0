//! Tests builds of models in DuckDB: which relations a build may replace, and the state after a failed build.
//!
//! All tests share one project folder, because opening a project makes its folder the working directory.

#![allow(clippy::unwrap_used, reason = "a test stops at its first fault")]

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use futures_util::StreamExt as _;
use futures_util::future::poll_immediate;
use terrane_app::ports::builder::{BuildError, CantBuild, Marker, ModelBuilder, NewRelation, NotReady};
use terrane_app::ports::warehouse::{Statement, Warehouse, WarehouseErrorKind};
use terrane_warehouse::{DuckDb, DuckDbSettings, FileAccess};

const LIMIT: Duration = Duration::from_secs(60);
/// A query that runs longer than a test waits.
const ENDLESS: &str =
    "SELECT count(*) AS n FROM range(100000000) a, range(100000000) b WHERE (a.range + b.range) % 7 = 3";

fn project() -> PathBuf {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    FOLDER.get_or_init(|| tempfile::tempdir().unwrap()).path().canonicalize().unwrap()
}

fn settings(path: Option<PathBuf>) -> DuckDbSettings {
    DuckDbSettings {
        path,
        project: project(),
        init: Vec::new(),
        connections: 2,
        memory_limit: Some("1GB".to_owned()),
        threads: Some(2),
        file_access: FileAccess::Project,
        is_written: true,
        rollups: None,
    }
}

async fn opened() -> (DuckDb, Arc<dyn ModelBuilder>) {
    let duckdb = DuckDb::open(&settings(None)).unwrap();
    let builder = duckdb.builder();
    builder.prepare(&["analytics"]).await.unwrap();
    (duckdb, builder)
}

fn marker(fingerprint: &str) -> Marker {
    Marker { project: "shop".into(), model: "clean".into(), fingerprint: fingerprint.into() }
}

async fn build(
    builder: &dyn ModelBuilder,
    is_view: bool,
    query: &str,
    marker: &Marker,
) -> Result<Option<u64>, BuildError> {
    builder.build(&NewRelation { schema: "analytics", name: "clean", is_view, query, marker }, LIMIT).await
}

async fn number(duckdb: &DuckDb, text: &str) -> i64 {
    let rows = duckdb.execute(Statement::plain(text), LIMIT).await.unwrap();
    rows.batches[0].column(0).as_primitive::<Int64Type>().value(0)
}

async fn run(duckdb: &DuckDb, text: &str) {
    duckdb.execute(Statement::plain(text), LIMIT).await.unwrap();
}

#[tokio::test]
async fn table_is_replaced_atomically_with_its_marker() {
    let (duckdb, builder) = opened().await;
    let rows = build(&*builder, false, "SELECT range AS id FROM range(10)", &marker("one")).await.unwrap();
    assert_eq!(rows, Some(10));
    let built = duckdb.built().await.unwrap();
    assert_eq!((built.len(), built[0].is_view, &built[0].marker), (1, false, &marker("one")));
    assert_eq!((&*built[0].schema, &*built[0].name), ("analytics", "clean"));
    // The query computes half of its rows before it fails.
    let failing = "SELECT CASE WHEN range < 500000 THEN range ELSE CAST('x' || range AS BIGINT) END AS id \
                   FROM range(1000000)";
    let failed = build(&*builder, false, failing, &marker("two")).await.unwrap_err();
    assert!(
        matches!(failed, BuildError::Warehouse(ref error) if error.kind == WarehouseErrorKind::Refused),
        "{failed}"
    );
    assert_eq!(number(&duckdb, "SELECT count(*) FROM analytics.clean").await, 10);
    assert_eq!(duckdb.built().await.unwrap()[0].marker, marker("one"));
    let rows = build(&*builder, false, "SELECT 'other' AS name", &marker("two")).await.unwrap();
    assert_eq!(rows, Some(1));
    assert_eq!(duckdb.built().await.unwrap()[0].marker, marker("two"));
}

#[tokio::test]
async fn views_and_tables_replace_one_another() {
    let (duckdb, builder) = opened().await;
    run(&duckdb, "CREATE TABLE orders AS SELECT 1 AS id").await;
    for (is_view, expected) in [(false, 1), (true, 2), (false, 2), (true, 3), (true, 4)] {
        let rows = build(&*builder, is_view, "SELECT * FROM orders", &marker("one")).await.unwrap();
        assert_eq!(rows.is_none(), is_view);
        let built = duckdb.built().await.unwrap();
        assert_eq!((built.len(), built[0].is_view), (1, is_view));
        if is_view {
            run(&duckdb, "INSERT INTO orders VALUES (2)").await;
        }
        // A view contains the new row. A table has the rows of the time of its build.
        assert_eq!(number(&duckdb, "SELECT count(*) FROM analytics.clean").await, expected, "{is_view}");
    }
}

#[tokio::test]
async fn foreign_relations_are_never_replaced() {
    let (duckdb, builder) = opened().await;
    for made in ["CREATE TABLE analytics.Clean AS SELECT 7 AS id", "CREATE VIEW analytics.clean AS SELECT 7 AS id"] {
        run(&duckdb, made).await;
        for is_view in [true, false] {
            let refused = build(&*builder, is_view, "SELECT 1 AS id", &marker("one")).await.unwrap_err();
            assert!(matches!(refused, BuildError::Foreign { .. }), "{made}: {refused}");
        }
        assert_eq!(number(&duckdb, "SELECT id::BIGINT FROM analytics.clean").await, 7);
        run(&duckdb, if made.contains("TABLE") { "DROP TABLE analytics.clean" } else { "DROP VIEW analytics.clean" })
            .await;
    }
    let theirs = Marker { project: "other".into(), ..marker("one") };
    build(&*builder, false, "SELECT 7 AS id", &theirs).await.unwrap();
    let refused = build(&*builder, false, "SELECT 1 AS id", &marker("one")).await.unwrap_err();
    assert!(matches!(refused, BuildError::OtherProject { ref project, .. } if &**project == "other"), "{refused}");
}

#[tokio::test]
async fn cancelled_build_leaves_nothing() {
    let (duckdb, builder) = opened().await;
    build(&*builder, false, "SELECT 1 AS id", &marker("one")).await.unwrap();
    {
        let marker = marker("two");
        let mut endless = Box::pin(build(&*builder, false, ENDLESS, &marker));
        assert!(poll_immediate(&mut endless).await.is_none());
        // The build may or may not have begun. The outcome must be the same if it is stopped at any moment.
        tokio::task::yield_now().await;
    }
    builder.settle().await;
    let relation =
        NewRelation { schema: "analytics", name: "clean", is_view: false, query: ENDLESS, marker: &marker("three") };
    let late = builder.build(&relation, Duration::from_millis(200)).await.unwrap_err();
    assert!(matches!(late, BuildError::Warehouse(ref error) if error.kind == WarehouseErrorKind::Timeout), "{late}");
    builder.settle().await;
    assert_eq!(duckdb.built().await.unwrap()[0].marker, marker("one"));
    assert_eq!(number(&duckdb, "SELECT count(*) FROM duckdb_tables() WHERE NOT internal").await, 1);
    // Nothing is locked after the stopped builds.
    build(&*builder, false, "SELECT 2 AS id", &marker("four")).await.unwrap();
}

#[tokio::test]
async fn running_reader_survives_a_replacement() {
    let (duckdb, builder) = opened().await;
    build(&*builder, false, "SELECT range AS id FROM range(1000000)", &marker("one")).await.unwrap();
    let read = Statement::plain("SELECT id FROM analytics.clean");
    let mut stream = duckdb.stream(read, LIMIT).await.unwrap();
    let mut seen = stream.next().await.unwrap().unwrap().num_rows();
    build(&*builder, false, "SELECT 'other' AS name", &marker("two")).await.unwrap();
    while let Some(batch) = stream.next().await {
        seen += batch.unwrap().num_rows();
    }
    assert_eq!(seen, 1_000_000);
    assert_eq!(number(&duckdb, "SELECT count(*) FROM analytics.clean").await, 1);
}

#[tokio::test]
async fn models_are_built_concurrently() {
    let (duckdb, builder) = opened().await;
    let names: Vec<String> = (0..8).map(|at| format!("model_{at}")).collect();
    let marker = marker("one");
    for _ in 0..3 {
        let builds = names.iter().map(|name| {
            let query = "SELECT range AS id FROM range(100000)";
            let (builder, marker) = (&builder, &marker);
            async move {
                builder.build(&NewRelation { schema: "analytics", name, is_view: false, query, marker }, LIMIT).await
            }
        });
        for built in futures_util::future::join_all(builds).await {
            assert_eq!(built.unwrap(), Some(100_000));
        }
    }
    assert_eq!(duckdb.built().await.unwrap().len(), 8);
}

#[tokio::test]
async fn builds_in_a_read_only_file_are_rejected() {
    let file = project().join("shop.duckdb");
    let written = DuckDb::open(&settings(Some(file.clone()))).unwrap();
    let builder = written.builder();
    builder.prepare(&["analytics"]).await.unwrap();
    build(&*builder, false, "SELECT 1 AS id", &marker("one")).await.unwrap();
    // A schema with the name of the database would make names ambiguous.
    let refused = builder.prepare(&["Shop"]).await.unwrap_err();
    assert!(matches!(refused, NotReady::Cant(CantBuild::NameOfDatabase { .. })), "{refused}");
    drop((builder, written));
    let read = DuckDb::open(&DuckDbSettings { is_written: false, ..settings(Some(file)) }).unwrap();
    assert_eq!(read.built().await.unwrap()[0].marker, marker("one"));
    let refused = read.builder().prepare(&["analytics"]).await.unwrap_err();
    assert!(matches!(refused, NotReady::Cant(CantBuild::ReadOnly)), "{refused}");
}
