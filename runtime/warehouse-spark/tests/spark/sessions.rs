//! Tests sessions: `init`, streams, time limits, and statements whose caller has disconnected.

use std::time::Duration;

use futures_util::StreamExt as _;
use terrane_app::ports::warehouse::{Statement, Warehouse, WarehouseErrorKind};
use terrane_warehouse_spark::{ConnectError, SparkSettings, connect};

use crate::server::Server;
use crate::{ENDLESS, LIMIT, ask, count, open, settings};

/// A query with many rows.
const MANY: &str = "SELECT id, concat('row ', CAST(id AS STRING)) AS name FROM range(2000000)";

#[tokio::test(flavor = "multi_thread")]
async fn init_runs_in_each_session() {
    let Some(server) = Server::start() else { return };
    let init = vec!["CREATE OR REPLACE TEMPORARY VIEW three AS SELECT * FROM range(3)".to_owned()];
    let spark = connect(&SparkSettings { init, ..settings(&server.url()) }).await.unwrap();
    // The open stream occupies the first session, so the other query needs a second one.
    let many = "SELECT many.id FROM three CROSS JOIN range(1000000) AS many";
    let mut stream = spark.stream(Statement::plain(many), LIMIT).await.unwrap();
    assert_eq!(count(&ask(&spark, "SELECT * FROM three").await.unwrap()), 3);
    let mut rows = 0;
    while let Some(batch) = stream.next().await {
        rows += batch.unwrap().num_rows();
    }
    assert_eq!(rows, 3_000_000);
    drop(stream);
    let connections = spark.connections().unwrap();
    assert_eq!((connections.active, connections.idle, connections.failed), (0, 2, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_init_is_named() {
    let Some(server) = Server::start() else { return };
    let init = vec!["SELECT 1".to_owned(), "CREATE VIEW x AS SELECT * FROM no_such_table".to_owned()];
    let error = connect(&SparkSettings { init, ..settings(&server.url()) }).await.unwrap_err();
    assert!(matches!(error, ConnectError::Init { index: 1, .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_streamed_in_batches() {
    let Some(server) = Server::start() else { return };
    let spark = open(&server.url()).await;
    let mut stream = spark.stream(Statement::plain(MANY), LIMIT).await.unwrap();
    assert_eq!(stream.schema.fields().len(), 2);
    let (mut rows, mut batches) = (0, 0);
    while let Some(batch) = stream.next().await {
        let batch = batch.unwrap();
        assert_eq!(batch.schema(), stream.schema);
        (rows, batches) = (rows + batch.num_rows(), batches + 1);
    }
    assert_eq!(rows, 2_000_000);
    assert!(batches > 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_stream_frees_its_session() {
    let Some(server) = Server::start() else { return };
    let spark = connect(&SparkSettings { connections: 1, ..settings(&server.url()) }).await.unwrap();
    for _ in 0..3 {
        let mut stream = spark.stream(Statement::plain(MANY), LIMIT).await.unwrap();
        assert!(stream.next().await.unwrap().is_ok());
        drop(stream);
    }
    assert_eq!(count(&ask(&spark, "SELECT 1 AS n").await.unwrap()), 1);
    let connections = spark.connections().unwrap();
    assert_eq!((connections.idle, connections.lost), (1, 0), "interrupted sessions are used again");
}

#[tokio::test(flavor = "multi_thread")]
async fn statement_beyond_its_limit_is_a_timeout() {
    let Some(server) = Server::start() else { return };
    let spark = connect(&SparkSettings { connections: 1, ..settings(&server.url()) }).await.unwrap();
    ask(&spark, "SELECT 1 AS n").await.unwrap();
    let error = spark.execute(Statement::plain(ENDLESS), Duration::from_millis(300)).await.unwrap_err();
    assert_eq!(error.kind, WarehouseErrorKind::Timeout);
    let stream = spark.stream(Statement::plain(ENDLESS), Duration::from_millis(300)).await;
    // If the server sends the columns first, the time limit applies to the first batch.
    let error = match stream {
        Err(error) => error,
        Ok(mut stream) => stream.next().await.unwrap().unwrap_err(),
    };
    assert_eq!(error.kind, WarehouseErrorKind::Timeout);
    // The only permit has been released.
    assert_eq!(count(&ask(&spark, "SELECT 1 AS n").await.unwrap()), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn probe_does_not_wait_for_statements() {
    let Some(server) = Server::start() else { return };
    let spark = connect(&SparkSettings { connections: 1, ..settings(&server.url()) }).await.unwrap();
    let endless = spark.execute(Statement::plain(ENDLESS), Duration::from_secs(30));
    tokio::select! {
        ended = endless => panic!("{ended:?}"),
        probed = spark.ping() => probed.unwrap(),
    }
    // The test must not end earlier, because that would end the task that interrupts the statement.
    while spark.connections().unwrap().active > 0 {
        tokio::task::yield_now().await;
    }
}
