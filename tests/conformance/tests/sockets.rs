//! Tests the server on a real socket of the loopback interface: ports, limits, timeouts and shutdown.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::net::SocketAddr;
use std::time::Duration;

use terrane_conformance_tests::case::World;
use terrane_conformance_tests::fakes::FakeBehavior;
use terrane_conformance_tests::socket::{PROBE, receive, send, start};
use terrane_server::{ServeError, ServeSettings, bind};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Waits until the server has accepted all earlier connections. It accepts connections in their order.
async fn settle(address: SocketAddr) {
    let mut probe = send(address, PROBE).await;
    receive(&mut probe).await;
}

#[tokio::test]
async fn connection_is_reused_for_the_next_request() {
    let server = start(&World::default(), ServeSettings::default()).await;
    let mut stream = send(server.address, PROBE).await;
    assert!(receive(&mut stream).await.starts_with("HTTP/1.1 200 OK\r\n"));
    stream.write_all(PROBE).await.unwrap();
    assert!(receive(&mut stream).await.contains("{\"status\":\"alive\"}"));
}

#[tokio::test]
async fn port_in_use_is_reported() {
    let server = start(&World::default(), ServeSettings::default()).await;
    let error = bind(server.address).await.unwrap_err();
    assert!(matches!(error, ServeError::PortInUse { address } if address == server.address), "{error}");
    assert!(error.to_string().contains(&server.address.to_string()), "{error}");
    let elsewhere = bind(([192, 0, 2, 1], 0).into()).await.unwrap_err();
    assert!(matches!(elsewhere, ServeError::NotLocal { .. }), "{elsewhere}");
}

#[tokio::test]
async fn unfinished_head_closes_the_connection() {
    let settings = ServeSettings { header_timeout: Duration::from_millis(100), ..ServeSettings::default() };
    let server = start(&World::default(), settings).await;
    for begun in [&b"GET / HTTP/1.1\r\nhost:"[..], b"", b"PRI * HTTP/2"] {
        let mut stream = send(server.address, begun).await;
        let mut rest = Vec::new();
        let closed = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut rest)).await;
        assert!(closed.is_ok(), "{begun:?} kept its connection");
    }
}

#[tokio::test]
async fn oversized_head_is_rejected() {
    let server = start(&World::default(), ServeSettings::default()).await;
    let head = format!("GET / HTTP/1.1\r\nhost: x\r\nx: {}\r\n\r\n", "a".repeat(1_000_000));
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    // The server may close the connection before the client has sent everything.
    let _ = stream.write_all(head.as_bytes()).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
}

#[tokio::test]
async fn probes_are_answered_when_every_connection_is_taken() {
    let settings = ServeSettings { max_connections: 1, ..ServeSettings::default() };
    let server = start(&World::default(), settings).await;
    let mut first = send(server.address, PROBE).await;
    assert!(receive(&mut first).await.starts_with("HTTP/1.1 200"));

    let mut probe = send(server.address, PROBE).await;
    let answer = receive(&mut probe).await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("connection: close"), "{answer}");
    let mut other = send(server.address, b"GET /api/v1/query/meta/cubes HTTP/1.1\r\nhost: x\r\n\r\n").await;
    let answer = receive(&mut other).await;
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("OVERLOADED"), "{answer}");

    drop(first);
    // The place is free once the server has seen the end of the other connection.
    for _ in 0..1_000 {
        let mut again = send(server.address, PROBE).await;
        if !receive(&mut again).await.contains("connection: close") {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("the place was never free again");
}

#[tokio::test]
async fn requests_in_flight_finish_after_the_shutdown() {
    let server =
        start(&World { warehouse_ping: FakeBehavior::Hangs, ..World::default() }, ServeSettings::default()).await;
    let mut idle = send(server.address, PROBE).await;
    receive(&mut idle).await;
    // This request takes a second, because it checks the warehouse.
    let mut busy = send(server.address, b"GET /health/status HTTP/1.1\r\nhost: x\r\n\r\n").await;
    settle(server.address).await;
    server.stop.send(()).unwrap();
    let answer = receive(&mut busy).await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("unhealthy"), "{answer}");
    assert!(server.task.await.unwrap(), "something was cut off");
    assert!(TcpStream::connect(server.address).await.is_err(), "the port is still open");
    assert_eq!(receive(&mut idle).await, "", "an idle connection is closed");
}

#[tokio::test]
async fn connections_that_wait_at_the_shutdown_are_answered() {
    let server = start(&World::default(), ServeSettings::default()).await;
    // Nothing is awaited here, so the task of the server accepts none of these connections before the shutdown.
    let waiting: Vec<_> = (0..20).map(|_| std::net::TcpStream::connect(server.address).unwrap()).collect();
    server.stop.send(()).unwrap();
    for stream in waiting {
        stream.set_nonblocking(true).unwrap();
        let mut stream = TcpStream::from_std(stream).unwrap();
        stream.write_all(PROBE).await.unwrap();
        assert!(receive(&mut stream).await.starts_with("HTTP/1.1 200"));
    }
    assert!(server.task.await.unwrap(), "something was cut off");
}

#[tokio::test]
async fn shutdown_is_bounded_in_time() {
    let settings = ServeSettings { shutdown_timeout: Duration::from_millis(50), ..ServeSettings::default() };
    let server = start(&World { warehouse: FakeBehavior::Hangs, ..World::default() }, settings).await;
    let _busy =
        send(server.address, b"GET /api/v1/query?measures=orders.count HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    settle(server.address).await;
    server.stop.send(()).unwrap();
    assert!(!server.task.await.unwrap());
}
