//! Tests tables of pre-aggregations beside a DuckDB file that is open for reading only.
//!
//! All tests share one project folder, because opening a project makes its folder the working directory.

#![allow(clippy::unwrap_used, reason = "a test stops at its first fault")]

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use futures_util::future::poll_immediate;
use terrane_app::ports::rollup_tables::{NewRollupTable, RollupPlace, RollupTableError, RollupTables};
use terrane_app::ports::warehouse::{Statement, Warehouse};
use terrane_compiler::rollup::{RollupTotals, StoredColumn, StoredKind, TotalColumn};
use terrane_compiler::types::LogicalType;
use terrane_warehouse::{DuckDb, DuckDbSettings, FileAccess, OpenError, RollupStore};

const LIMIT: Duration = Duration::from_secs(60);
/// A query that runs longer than a test waits.
const ENDLESS: &str =
    "SELECT count(*) AS n FROM range(100000000) a, range(100000000) b WHERE (a.range + b.range) % 7 = 3";

fn project() -> PathBuf {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    FOLDER.get_or_init(|| tempfile::tempdir().unwrap()).path().canonicalize().unwrap()
}

fn settings(path: &Path, store: Option<&Path>) -> DuckDbSettings {
    let place = RollupPlace { target: "r1".to_owned(), schema: "terrane_preaggregations".to_owned() };
    DuckDbSettings {
        path: Some(path.to_owned()),
        project: project(),
        init: Vec::new(),
        connections: 2,
        memory_limit: Some("1GB".to_owned()),
        threads: Some(2),
        file_access: FileAccess::None,
        is_written: store.is_none(),
        rollups: store.map(|store| RollupStore { path: store.to_owned(), place, is_written: true }),
    }
}

/// Creates a database file with 1,000 rows in ten groups.
fn warehouse(folder: &Path) -> PathBuf {
    let path = folder.join("warehouse.duckdb");
    let connection = duckdb::Connection::open(&path).unwrap();
    connection.execute_batch("CREATE TABLE t AS SELECT range % 10 AS g, range AS v FROM range(1000)").unwrap();
    path
}

fn open(folder: &Path) -> (DuckDb, Arc<dyn RollupTables>) {
    let path = folder.join("warehouse.duckdb");
    let path = if path.exists() { path } else { warehouse(folder) };
    let duckdb = DuckDb::open(&settings(&path, Some(&folder.join("store.duckdb")))).unwrap();
    let rollups = duckdb.rollups().unwrap();
    (duckdb, rollups)
}

fn table(name: &str, query: &str) -> NewRollupTable {
    let column = |name: &str, kind| StoredColumn {
        name: name.into(),
        kind,
        ty: LogicalType::Integer,
        is_indexed: kind == StoredKind::Dimension,
    };
    let total = |name: &str| TotalColumn { name: name.to_owned(), is_exact: true };
    NewRollupTable {
        name: name.into(),
        query: query.to_owned(),
        columns: vec![column("d0", StoredKind::Dimension)],
        totals: RollupTotals {
            base: "SELECT count(*) AS a0, sum(v) AS a1 FROM t".to_owned(),
            stored: format!(
                "SELECT coalesce(sum(a0), 0) AS a0, sum(a1) AS a1 FROM terrane_preaggregations.main.{name}"
            ),
            columns: vec![total("a0"), total("a1")],
        },
    }
}

const GROUPED: &str = "SELECT g AS d0, count(*) AS a0, sum(v) AS a1 FROM t GROUP BY 1";

async fn number(duckdb: &DuckDb, text: &str) -> i64 {
    let rows = duckdb.execute(Statement::plain(text), LIMIT).await.unwrap();
    rows.batches[0].column(0).as_primitive::<Int64Type>().value(0)
}

#[tokio::test]
async fn table_is_built_next_to_a_read_only_file() {
    let folder = tempfile::tempdir().unwrap();
    let (duckdb, rollups) = open(folder.path());
    let version = duckdb.data_version().unwrap();
    let built = rollups.build(&table("r1_one", GROUPED), LIMIT).await.unwrap();
    assert_eq!(built.rows, 10);
    // The size is a number of whole blocks.
    assert!(built.bytes.is_some_and(|bytes| bytes > 0 && bytes % (256 * 1_024) == 0), "{built:?}");
    assert_eq!(rollups.relation("r1_one"), ["terrane_preaggregations", "main", "r1_one"]);
    assert_eq!(number(&duckdb, "SELECT count(*) FROM terrane_preaggregations.main.r1_one").await, 10);
    assert_eq!(rollups.tables().await.unwrap(), ["r1_one".into()]);
    // The build did not change the data of the warehouse.
    assert_eq!(duckdb.data_version().unwrap().digest, version.digest);
    drop((duckdb, rollups));
    let (duckdb, rollups) = open(folder.path());
    assert_eq!(number(&duckdb, "SELECT count(*) FROM terrane_preaggregations.main.r1_one").await, 10);
    rollups.drop_tables(&["r1_one".into(), "r1_gone".into(), "other".into()]).await.unwrap();
    assert_eq!(rollups.tables().await.unwrap(), Vec::<Arc<str>>::new());
}

#[tokio::test]
async fn table_with_wrong_totals_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let (_duckdb, rollups) = open(folder.path());
    let lossy = [
        (format!("{GROUPED} HAVING g <> 3"), "a0"),
        (format!("{GROUPED} HAVING g < 0"), "a0"),
        (GROUPED.replace("sum(v)", "sum(v) + 1"), "a1"),
        (GROUPED.replace("sum(v)", "CAST(NULL AS HUGEINT)"), "a1"),
    ];
    for (query, differs) in lossy {
        let error = rollups.build(&table("r1_lossy", &query), LIMIT).await.unwrap_err();
        let RollupTableError::NotVerified { column, .. } = error else { panic!("{error}") };
        assert_eq!(column, differs, "{query}");
        assert_eq!(rollups.tables().await.unwrap(), Vec::<Arc<str>>::new());
    }
    // The name can be used again.
    rollups.build(&table("r1_lossy", GROUPED), LIMIT).await.unwrap();
}

#[tokio::test]
async fn dropped_build_leaves_no_table() {
    let folder = tempfile::tempdir().unwrap();
    let (_duckdb, rollups) = open(folder.path());
    let endless = table("r1_endless", ENDLESS);
    let mut build = Box::pin(rollups.build(&endless, LIMIT));
    assert!(poll_immediate(&mut build).await.is_none());
    drop(build);
    rollups.settle().await;
    assert_eq!(rollups.tables().await.unwrap(), Vec::<Arc<str>>::new());
    let error = rollups.build(&endless, Duration::from_millis(50)).await.unwrap_err();
    assert_eq!(error.code(), "WAREHOUSE_ERROR");
    rollups.settle().await;
    assert_eq!(rollups.tables().await.unwrap(), Vec::<Arc<str>>::new());
}

#[tokio::test]
async fn store_that_does_not_open_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = warehouse(folder.path());
    // A folder cannot be opened as a database file.
    let error = DuckDb::open(&settings(&path, Some(folder.path()))).unwrap_err();
    assert!(matches!(error, OpenError::RollupStore { .. }), "{error}");
}
