//! Tests builds of models: replaced relations, relations that a build must not change, and builds that are stopped.
//!
//! Sail has a catalog for each session ([`CATALOG_OF_SESSION`]), so only the statements of a single session run on it.

use std::time::Duration;

use terrane_app::ports::builder::{BuildError, CantBuild, Marker, ModelBuilder, NewRelation, NotReady};
use terrane_app::ports::rollup_tables::RollupPlace;
use terrane_app::ports::warehouse::{Warehouse, WarehouseErrorKind};
use terrane_warehouse_spark::{SparkSettings, SparkWarehouse, connect};

use crate::server::Server;
use crate::{CATALOG_OF_SESSION, ENDLESS, LIMIT, ask, number, settings};

fn marker(fingerprint: &str) -> Marker {
    Marker { project: "shop".into(), model: "m".into(), fingerprint: fingerprint.into() }
}

/// Opens a warehouse. Schemas are named after the test, because Spark shares them between tests.
async fn open(server: &Server, init: Vec<String>) -> SparkWarehouse {
    connect(&SparkSettings { init, ..settings(&server.url()) }).await.unwrap()
}

/// Opens a warehouse on a server whose sessions share a catalog, with an empty schema for the test.
async fn shared(server: &Server, schema: &str) -> Option<SparkWarehouse> {
    if let Server::Child(_) = server {
        eprintln!("left out on Sail: {CATALOG_OF_SESSION}");
        return None;
    }
    let spark = open(server, Vec::new()).await;
    for name in [schema, "terrane_models"] {
        ask(&spark, &format!("DROP SCHEMA IF EXISTS {name} CASCADE")).await.unwrap();
    }
    spark.builder().prepare(&[schema]).await.unwrap();
    Some(spark)
}

async fn build(
    spark: &SparkWarehouse,
    schema: &str,
    is_view: bool,
    query: &str,
    marker: &Marker,
) -> Result<Option<u64>, BuildError> {
    let new = NewRelation { schema, name: &marker.model, is_view, query, marker };
    spark.builder().build(&new, LIMIT).await
}

/// Returns the built relations of a schema with their kinds and fingerprints.
async fn built(spark: &SparkWarehouse, schema: &str) -> Vec<(String, bool, String)> {
    let all = spark.built().await.unwrap().into_iter().filter(|built| &*built.schema == schema);
    all.map(|built| (built.name.to_string(), built.is_view, built.marker.fingerprint.to_string())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_must_share_a_catalog() {
    let Some(server) = Server::start() else { return };
    let spark = open(&server, Vec::new()).await;
    let prepared = spark.builder().prepare(&["shared"]).await;
    let place = RollupPlace { target: "r1".to_owned(), schema: "shared_tables".to_owned() };
    let rollups = terrane_app::ports::rollup_tables::RollupTables::prepare(&spark.rollups(place)).await;
    match server {
        Server::Other(_) => {
            prepared.unwrap();
            rollups.unwrap();
            // A second call finds the schemas.
            spark.builder().prepare(&["shared"]).await.unwrap();
        }
        Server::Child(_) => {
            assert!(matches!(prepared, Err(NotReady::Cant(CantBuild::CatalogOfSession { .. }))), "{prepared:?}");
            insta::assert_snapshot!(rollups.unwrap_err(), @"warehouse `spark`: each session of this server has its own catalog");
            assert_eq!(spark.built().await.unwrap(), []);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn relations_are_replaced_atomically() {
    let Some(server) = Server::start() else { return };
    let Some(spark) = shared(&server, "replaced").await else { return };
    let rows = build(&spark, "replaced", false, "SELECT id FROM range(10)", &marker("one")).await.unwrap();
    assert_eq!(rows, Some(10));
    assert_eq!(built(&spark, "replaced").await, [("m".to_owned(), false, "one".to_owned())]);
    let failing = "SELECT CAST(concat('x', id) AS INT) AS id FROM range(9000)";
    let failed = build(&spark, "replaced", false, failing, &marker("two")).await.unwrap_err();
    assert!(
        matches!(failed, BuildError::Warehouse(ref error) if error.kind == WarehouseErrorKind::Refused),
        "{failed}"
    );
    assert_eq!(number(&spark, "SELECT count(*) FROM replaced.m").await, 10);
    // Replaces the table with a view, the view with another view, and this view with a table.
    for (is_view, query, expected) in
        [(true, "SELECT 1 AS id, 2 AS n", 1), (true, "SELECT 5 AS n", 5), (false, "SELECT 'text' AS t, 3 AS n", 3)]
    {
        build(&spark, "replaced", is_view, query, &marker(query)).await.unwrap();
        let column = if is_view && query.contains("id") { "id" } else { "n" };
        assert_eq!(number(&spark, &format!("SELECT CAST({column} AS BIGINT) FROM replaced.m")).await, expected);
        assert_eq!(built(&spark, "replaced").await, [("m".to_owned(), is_view, query.to_owned())]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn previous_rows_remain_for_running_readers() {
    let Some(server) = Server::start() else { return };
    let Some(spark) = shared(&server, "previous").await else { return };
    let other = Marker { model: "Other".into(), ..marker("one") };
    build(&spark, "previous", false, "SELECT 0 AS n", &other).await.unwrap();
    for n in 1..=4 {
        build(&spark, "previous", false, &format!("SELECT {n} AS n"), &marker("one")).await.unwrap();
    }
    let stored = spark.built().await.unwrap().into_iter().filter(|built| &*built.schema == "terrane_models");
    let models: Vec<String> = stored.map(|built| built.marker.model.to_string()).collect();
    assert_eq!(models.iter().filter(|model| *model == "m").count(), 2, "{models:?}");
    assert_eq!(models.iter().filter(|model| *model == "Other").count(), 1, "{models:?}");
    assert_eq!(number(&spark, "SELECT CAST(n AS BIGINT) FROM previous.m").await, 4);
    // Spark returns names in lower case, and a relation has the spelling of its model.
    let mut names: Vec<String> = built(&spark, "previous").await.into_iter().map(|(name, ..)| name).collect();
    names.sort();
    assert_eq!(names, ["Other", "m"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_get_either_old_or_new_rows() {
    let Some(server) = Server::start() else { return };
    let Some(spark) = shared(&server, "readers").await else { return };
    build(&spark, "readers", false, "SELECT 0 AS n", &marker("one")).await.unwrap();
    let reading = async {
        let (mut last, mut count) = (0, 0);
        while last < 4 {
            let n = number(&spark, "SELECT CAST(n AS BIGINT) FROM readers.m").await;
            assert!(n >= last, "{n} after {last}");
            (last, count) = (n, count + 1);
        }
        count
    };
    let building = async {
        for n in 1..=4 {
            // Every second relation is a view.
            build(&spark, "readers", n % 2 == 0, &format!("SELECT {n} AS n"), &marker("one")).await.unwrap();
        }
    };
    let (count, ()) = tokio::join!(reading, building);
    assert!(count > 5, "{count} reads");
}

#[tokio::test(flavor = "multi_thread")]
async fn build_reads_rows_that_arrived_after_the_last_build() {
    let Some(server) = Server::start() else { return };
    let Some(spark) = shared(&server, "arrived").await else { return };
    ask(&spark, "CREATE TABLE arrived.source AS SELECT id FROM range(5)").await.unwrap();
    for expected in [5, 6, 7] {
        let rows = build(&spark, "arrived", false, "SELECT id FROM arrived.source", &marker("one")).await.unwrap();
        assert_eq!(rows, Some(expected));
        assert_eq!(number(&spark, "SELECT count(*) FROM arrived.m").await, expected as i64);
        // Another session inserts, so no session of the warehouse under test is notified.
        ask(&open(&server, Vec::new()).await, "INSERT INTO arrived.source VALUES (7)").await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_relations_are_unchanged() {
    let Some(server) = Server::start() else { return };
    let theirs = Marker { project: "other".into(), ..marker("one") };
    let init = vec![
        "CREATE SCHEMA IF NOT EXISTS touched".to_owned(),
        "CREATE SCHEMA IF NOT EXISTS terrane_models".to_owned(),
        "CREATE VIEW IF NOT EXISTS touched.view_of_theirs AS SELECT 7 AS id".to_owned(),
        "CREATE TABLE IF NOT EXISTS touched.table_of_theirs AS SELECT 8 AS id".to_owned(),
        format!("CREATE VIEW IF NOT EXISTS touched.other COMMENT '{theirs}' AS SELECT 9 AS id"),
        format!("CREATE VIEW IF NOT EXISTS touched.ours COMMENT '{}' AS SELECT 9 AS id", marker("one")),
    ];
    // Sail cannot create a table twice, not even with `IF NOT EXISTS`, but each of its sessions is empty.
    let spark = open(&server, init).await;
    let of = |model: &str| Marker { model: model.into(), ..marker("two") };
    for model in ["view_of_theirs", "table_of_theirs", "other"] {
        let refused = build(&spark, "touched", true, "SELECT 1 AS id", &of(model)).await.unwrap_err();
        match model {
            "other" => assert!(matches!(refused, BuildError::OtherProject { .. }), "{refused}"),
            _ => assert!(matches!(refused, BuildError::Foreign { .. }), "{refused}"),
        }
        assert!(number(&spark, &format!("SELECT CAST(id AS BIGINT) FROM touched.{model}")).await > 6);
    }
    build(&spark, "touched", true, "SELECT 'it''s' AS id", &of("ours")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_build_keeps_the_previous_relation() {
    let Some(server) = Server::start() else { return };
    let Some(spark) = shared(&server, "stopped").await else { return };
    build(&spark, "stopped", false, "SELECT 1 AS n", &marker("one")).await.unwrap();
    let (builder, second) = (spark.builder(), marker("two"));
    let endless = NewRelation { schema: "stopped", name: "m", is_view: false, query: ENDLESS, marker: &second };
    tokio::select! {
        done = builder.build(&endless, LIMIT) => panic!("{done:?}"),
        () = tokio::time::sleep(Duration::from_secs(3)) => {}
    }
    builder.settle().await;
    let late = builder.build(&endless, Duration::from_secs(2)).await.unwrap_err();
    assert!(matches!(late, BuildError::Warehouse(ref error) if error.kind == WarehouseErrorKind::Timeout), "{late}");
    builder.settle().await;
    assert_eq!(number(&spark, "SELECT CAST(n AS BIGINT) FROM stopped.m").await, 1);
    assert_eq!(built(&spark, "stopped").await, [("m".to_owned(), false, "one".to_owned())]);
    build(&spark, "stopped", false, "SELECT 4 AS n", &marker("four")).await.unwrap();
    assert_eq!(number(&spark, "SELECT CAST(n AS BIGINT) FROM stopped.m").await, 4);
}
