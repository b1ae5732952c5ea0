//! Lookups of tables.

use terrane_app::ports::warehouse::Warehouse;
use terrane_warehouse_spark::{SparkSettings, SparkWarehouse, connect};

use crate::server::Server;
use crate::settings;

async fn found(spark: &SparkWarehouse, name: &[&str]) -> Option<(Vec<String>, Vec<String>)> {
    spark.table(name).await.unwrap().map(|table| (table.name, table.columns))
}

async fn spark(server: &Server, folder: &std::path::Path) -> SparkWarehouse {
    let path = folder.display();
    let init = vec![
        "CREATE OR REPLACE VIEW terrane_shown AS SELECT id AS b, id AS a FROM range(3)".to_owned(),
        "CREATE OR REPLACE TEMPORARY VIEW terrane_hidden AS SELECT 1 AS n".to_owned(),
        "DROP TABLE IF EXISTS terrane_elsewhere".to_owned(),
        format!("CREATE TABLE terrane_elsewhere (n BIGINT) USING parquet LOCATION '{path}/elsewhere'"),
        "DROP TABLE IF EXISTS terrane_stored".to_owned(),
        "CREATE TABLE terrane_stored (n BIGINT, name STRING) USING parquet".to_owned(),
        format!("INSERT OVERWRITE DIRECTORY '{path}/lake' USING parquet SELECT 1 AS n"),
    ];
    // Sail knows no files without a table.
    let init = if let Server::Child(_) = server { init[..6].to_vec() } else { init };
    connect(&SparkSettings { init, connections: 1, ..settings(&server.url()) }).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn views_are_found_by_their_full_names() {
    let Some(server) = Server::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let spark = spark(&server, folder.path()).await;
    let (full, columns) = found(&spark, &["terrane_shown"]).await.unwrap();
    assert_eq!(full[1..], ["default", "terrane_shown"]);
    assert_eq!(columns, ["b", "a"], "in the order of `SELECT *`");
    let parts: Vec<&str> = full.iter().map(String::as_str).collect();
    for name in [&parts[..], &parts[1..], &["TERRANE_SHOWN"]] {
        assert_eq!(found(&spark, name).await, Some((full.clone(), columns.clone())), "{name:?}");
    }
    let quoted = full.iter().map(|part| format!("`{part}`")).collect::<Vec<_>>().join(".");
    assert_eq!(crate::count(&crate::ask(&spark, &format!("SELECT * FROM {quoted}")).await.unwrap()), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_and_temporary_and_external_tables_are_not_found() {
    let Some(server) = Server::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let spark = spark(&server, folder.path()).await;
    let lake = folder.path().join("lake").display().to_string();
    for name in [
        &["parquet", &*lake][..],
        &["parquet", "x"],
        &["delta", &*lake],
        &["text", "/etc/passwd"],
        &["terrane_hidden"],
        &["global_temp", "terrane_hidden"],
        &["terrane_elsewhere"],
        &["range"],
        &["default", "range"],
        &["no_such_table"],
        &["no_such_schema", "t"],
        &["no_such_catalog", "default", "t"],
        &["information_schema", "tables"],
        &["terrane_*"],
        &["terrane_shown|x"],
        &[".*"],
        &["terrane_shown` --"],
        &["default`.`terrane_shown"],
        &["", "terrane_shown"],
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
    let spark = spark(&server, folder.path()).await;
    let stored = found(&spark, &["terrane_stored"]).await;
    match server {
        Server::Other(_) => assert_eq!(stored.unwrap().1, ["n", "name"]),
        // Sail does not show the format of a table by a bound name.
        Server::Child(_) => assert_eq!(stored, None),
    }
}
