//! Tests servers that are missing, frozen or restarted, and other programs at the address of a server.

use std::net::TcpListener;
use std::time::Duration;

use terrane_app::ports::warehouse::{Statement, Warehouse, WarehouseErrorKind};
use terrane_warehouse_spark::{ConnectError, SparkSettings, UrlError, connect};

use crate::server::Sail;
use crate::{ENDLESS, ask, count, open, settings};

async fn refused(url: &str) -> ConnectError {
    let settings = SparkSettings { connect_timeout: Duration::from_secs(2), ..settings(url) };
    tokio::time::timeout(Duration::from_secs(10), connect(&settings)).await.unwrap().unwrap_err()
}

#[tokio::test(flavor = "multi_thread")]
async fn unreachable_servers_are_reported_in_time() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    // This server accepts connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent_port = silent.local_addr().unwrap().port();
    for url in [
        format!("sc://127.0.0.1:{closed}"),
        "sc://no-such-host.invalid".to_owned(),
        format!("sc://127.0.0.1:{silent_port}"),
        format!("sc://127.0.0.1:{silent_port}/;use_ssl=true;token=hidden"),
    ] {
        let error = refused(&url).await;
        assert!(matches!(error, ConnectError::Connection(_)), "{url}: {error}");
        assert!(!error.to_string().contains("hidden"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn faulty_settings_are_reported_without_their_values() {
    assert!(matches!(refused("sc://").await, ConnectError::Url(UrlError::Host)));
    assert!(matches!(refused("spark://h").await, ConnectError::Url(UrlError::Scheme)));
    let error = refused("sc://h/;use_ssl=true;token=hidden;sslrootcert=/no/such/file").await;
    assert!(matches!(error, ConnectError::RootCertificate(_)), "{error}");
    let message = refused("sc://h/;token=hidden;token=hidden").await.to_string();
    assert!(!message.contains("hidden"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn frozen_server_is_a_timeout() {
    let Some(sail) = Sail::start() else { return };
    let spark = open(&sail.url()).await;
    ask(&spark, "SELECT 1 AS n").await.unwrap();
    sail.halt();
    for limit in [Duration::from_millis(300), Duration::from_secs(1)] {
        let asked = spark.execute(Statement::plain("SELECT 1 AS n"), limit);
        let error = tokio::time::timeout(limit * 3, asked).await.unwrap().unwrap_err();
        assert_eq!(error.kind, WarehouseErrorKind::Timeout, "{error}");
    }
    sail.proceed();
    assert_eq!(count(&ask(&spark, "SELECT 1 AS n").await.unwrap()), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn restarted_server_gets_new_sessions() {
    let Some(mut sail) = Sail::start() else { return };
    let init = vec!["CREATE OR REPLACE TEMPORARY VIEW one AS SELECT 1 AS n".to_owned()];
    let spark = connect(&SparkSettings { init, ..settings(&sail.url()) }).await.unwrap();
    ask(&spark, "SELECT * FROM one").await.unwrap();
    sail.kill();
    let error = ask(&spark, "SELECT * FROM one").await.unwrap_err();
    assert_eq!(error.kind, WarehouseErrorKind::Unavailable, "{error}");
    assert_eq!(error.retries, 1);
    assert_eq!(spark.ping().await.unwrap_err().kind, WarehouseErrorKind::Unavailable);
    sail.restart();
    assert_eq!(count(&ask(&spark, "SELECT * FROM one").await.unwrap()), 1);
    spark.ping().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn restart_between_statements_causes_no_error() {
    let Some(mut sail) = Sail::start() else { return };
    let init = vec!["CREATE OR REPLACE TEMPORARY VIEW one AS SELECT 1 AS n".to_owned()];
    let spark = connect(&SparkSettings { init, ..settings(&sail.url()) }).await.unwrap();
    ask(&spark, "SELECT * FROM one").await.unwrap();
    sail.kill();
    sail.restart();
    assert_eq!(count(&ask(&spark, "SELECT * FROM one").await.unwrap()), 1);
    let connections = spark.connections().unwrap();
    assert_eq!((connections.lost, connections.failed), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn server_that_dies_during_a_statement_is_unavailable() {
    let Some(mut sail) = Sail::start() else { return };
    let spark = open(&sail.url()).await;
    let asked = spark.execute(Statement::plain(ENDLESS), Duration::from_secs(60));
    let killed = async {
        while spark.connections().unwrap().active == 0 {
            tokio::task::yield_now().await;
        }
        sail.kill();
    };
    let (error, ()) = tokio::join!(asked, killed);
    assert_eq!(error.unwrap_err().kind, WarehouseErrorKind::Unavailable);
}
