//! Tests lookups of tables.

use terrane_app::ports::warehouse::Warehouse;
use terrane_warehouse_spark::{SparkSettings, SparkWarehouse, connect};

use crate::server::Server;
use crate::settings;

async fn found(spark: &SparkWarehouse, name: &[&str]) -> Option<(Vec<String>, Vec<String>)> {
    spark.table(name).await.unwrap().map(|table| (table.name, table.columns))
}

/// Opens a warehouse. Its tables are named after the test, because Spark shares tables between sessions.
async fn spark(server: &Server, folder: &std::path::Path, test: &str) -> SparkWarehouse {
    let path = folder.display();
    let init = vec![
        format!("CREATE OR REPLACE VIEW {test}_shown AS SELECT id AS b, id AS a FROM range(3)"),
        format!("CREATE OR REPLACE TEMPORARY VIEW {test}_hidden AS SELECT 1 AS n"),
        format!("DROP TABLE IF EXISTS {test}_elsewhere"),
        format!("CREATE TABLE {test}_elsewhere (n BIGINT) USING parquet LOCATION '{path}/elsewhere'"),
        format!("DROP TABLE IF EXISTS {test}_stored"),
        format!("CREATE TABLE {test}_stored (n BIGINT, name STRING) USING parquet"),
        format!("INSERT OVERWRITE DIRECTORY '{path}/lake' USING parquet SELECT 1 AS n"),
    ];
    // Sail cannot query files that are not tables.
    let init = if let Server::Child(_) = server { init[..6].to_vec() } else { init };
    connect(&SparkSettings { init, connections: 1, ..settings(&server.url()) }).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn views_are_found_by_their_full_names() {
    let Some(server) = Server::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let spark = spark(&server, folder.path(), "views").await;
    let (full, columns) = found(&spark, &["views_shown"]).await.unwrap();
    assert_eq!(full[1..], ["default", "views_shown"]);
    assert_eq!(columns, ["b", "a"], "in the order of `SELECT *`");
    let parts: Vec<&str> = full.iter().map(String::as_str).collect();
    for name in [&parts[..], &parts[1..], &["VIEWS_SHOWN"]] {
        assert_eq!(found(&spark, name).await, Some((full.clone(), columns.clone())), "{name:?}");
    }
    let quoted = full.iter().map(|part| format!("`{part}`")).collect::<Vec<_>>().join(".");
    assert_eq!(crate::count(&crate::ask(&spark, &format!("SELECT * FROM {quoted}")).await.unwrap()), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_and_temporary_and_external_tables_are_not_found() {
    let Some(server) = Server::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let spark = spark(&server, folder.path(), "paths").await;
    let lake = folder.path().join("lake").display().to_string();
    for name in [
        &["parquet", &*lake][..],
        &["parquet", "x"],
        &["delta", &*lake],
        &["text", "/etc/passwd"],
        &["paths_hidden"],
        &["global_temp", "paths_hidden"],
        &["paths_elsewhere"],
        &["range"],
        &["default", "range"],
        &["no_such_table"],
        &["no_such_schema", "t"],
        &["no_such_catalog", "default", "t"],
        &["information_schema", "tables"],
        &["paths_*"],
        &["paths_shown|x"],
        &[".*"],
        &["paths_shown` --"],
        &["default`.`paths_shown"],
        &["", "paths_shown"],
        &["a", "b", "c", "d"],
        &[],
        &[&*"x".repeat(5_000)],
    ] {
        assert_eq!(found(&spark, name).await, None, "{name:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn managed_tables_are_found_where_their_format_is_shown() {
    let Some(server) = Server::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let spark = spark(&server, folder.path(), "managed").await;
    let stored = found(&spark, &["managed_stored"]).await;
    match server {
        Server::Other(_) => assert_eq!(stored.unwrap().1, ["n", "name"]),
        // Sail cannot describe a table whose name is a bound value, so the format of the table stays unknown.
        Server::Child(_) => assert_eq!(stored, None),
    }
}
