//! Tests tables of pre-aggregations: totals, rows that change during a build, and builds that are stopped.
//!
//! Sail has a catalog for each session ([`CATALOG_OF_SESSION`]): a build runs on it, but no other session finds the
//! table.

use std::sync::Arc;
use std::time::Duration;

use terrane_app::ports::rollup_tables::{NewRollupTable, RollupPlace, RollupTableError, RollupTables};
use terrane_compiler::rollup::{RollupTotals, TotalColumn};
use terrane_warehouse_spark::{SparkSettings, SparkWarehouse, connect};

use crate::server::Server;
use crate::{CATALOG_OF_SESSION, ENDLESS, LIMIT, number, settings};

const GROUPED: &str = "SELECT g AS d0, count(*) AS a0, sum(v) AS a1 FROM default.rolled GROUP BY 1";

/// Opens a warehouse with a source of 1,000 rows in ten groups, and the tables of a place of the test.
async fn open(server: &Server, schema: &str) -> (SparkWarehouse, Arc<dyn RollupTables>) {
    let init = vec![
        format!("CREATE SCHEMA IF NOT EXISTS {schema}"),
        "CREATE OR REPLACE VIEW default.rolled AS SELECT id % 10 AS g, id AS v FROM range(1000)".to_owned(),
        "CREATE OR REPLACE VIEW default.unstable AS SELECT id AS g, rand() AS v FROM range(1000)".to_owned(),
    ];
    let spark = connect(&SparkSettings { init, ..settings(&server.url()) }).await.unwrap();
    let rollups = Arc::new(spark.rollups(RollupPlace { target: "r1".to_owned(), schema: schema.to_owned() }));
    let left = rollups.tables().await.unwrap();
    rollups.drop_tables(&left).await.unwrap();
    (spark, rollups)
}

fn table(schema: &str, name: &str, query: &str) -> NewRollupTable {
    let total = |name: &str| TotalColumn { name: name.to_owned(), is_exact: true };
    NewRollupTable {
        name: name.into(),
        query: query.to_owned(),
        columns: Vec::new(),
        totals: RollupTotals {
            base: "SELECT count(*) AS a0, sum(v) AS a1 FROM default.rolled".to_owned(),
            stored: format!("SELECT coalesce(sum(a0), 0) AS a0, sum(a1) AS a1 FROM {schema}.{name}"),
            columns: vec![total("a0"), total("a1")],
        },
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn table_is_built_listed_and_dropped() {
    let Some(server) = Server::start() else { return };
    let (spark, rollups) = open(&server, "rolled_up").await;
    let built = rollups.build(&table("rolled_up", "r1_one", GROUPED), LIMIT).await.unwrap();
    assert_eq!(built.rows, 10);
    assert_eq!(rollups.relation("r1_one"), ["rolled_up", "r1_one"]);
    if let Server::Child(_) = server {
        eprintln!("left out on Sail: {CATALOG_OF_SESSION}");
        return assert_eq!(rollups.tables().await.unwrap(), Vec::<Arc<str>>::new());
    }
    assert!(built.bytes.is_some_and(|bytes| bytes > 0), "{built:?}");
    assert_eq!(number(&spark, "SELECT sum(a0) FROM rolled_up.r1_one").await, 1_000);
    assert_eq!(rollups.tables().await.unwrap(), ["r1_one".into()]);
    rollups.drop_tables(&["r1_one".into(), "r1_gone".into(), "other".into()]).await.unwrap();
    assert_eq!(rollups.tables().await.unwrap(), Vec::<Arc<str>>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn table_with_wrong_totals_is_dropped() {
    let Some(server) = Server::start() else { return };
    let (_spark, rollups) = open(&server, "lossy").await;
    for (query, differs) in [
        (GROUPED.replace("GROUP", "WHERE g <> 3 GROUP"), "a0"),
        (GROUPED.replace("GROUP", "WHERE g < 0 GROUP"), "a0"),
        (GROUPED.replace("sum(v)", "sum(v) + 1"), "a1"),
        (GROUPED.replace("sum(v)", "CAST(NULL AS BIGINT)"), "a1"),
    ] {
        let error = rollups.build(&table("lossy", "r1_lossy", &query), LIMIT).await.unwrap_err();
        let RollupTableError::NotVerified { column, .. } = error else { panic!("{error}") };
        assert_eq!(column, differs, "{query}");
        assert_eq!(rollups.tables().await.unwrap(), Vec::<Arc<str>>::new());
    }
    // The name can be used again.
    rollups.build(&table("lossy", "r1_lossy", GROUPED), LIMIT).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_change_during_each_attempt_are_not_stored() {
    let Some(server) = Server::start() else { return };
    let (_spark, rollups) = open(&server, "changing").await;
    let mut unstable = table("changing", "r1_unstable", &GROUPED.replace("rolled", "unstable"));
    unstable.totals.base = unstable.totals.base.replace("rolled", "unstable");
    let error = rollups.build(&unstable, LIMIT).await.unwrap_err();
    assert!(matches!(error, RollupTableError::Changing { attempts: 3 }), "{error}");
    assert_eq!(rollups.tables().await.unwrap(), Vec::<Arc<str>>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_build_leaves_no_table() {
    let Some(server) = Server::start() else { return };
    let (_spark, rollups) = open(&server, "dropped").await;
    let endless = table("dropped", "r1_endless", ENDLESS);
    tokio::select! {
        done = rollups.build(&endless, LIMIT) => panic!("{done:?}"),
        () = tokio::time::sleep(Duration::from_secs(4)) => {}
    }
    rollups.settle().await;
    assert_eq!(rollups.tables().await.unwrap(), Vec::<Arc<str>>::new());
}
