//! Tests metrics, traces and probes of the real program.

use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use terrane_system_tests::{FLIGHTS, Scratch, path, request};

use crate::{program, run};

const QUERY: &str = r#"{"measures": ["t.count"]}"#;
const OPEN: &str = "name: scratch\nwarehouse: {type: duckdb, init: [\"CREATE TABLE t AS SELECT 1 AS id\"]}\n\
                    security: {anonymous: {scopes: [read]}}\n";

#[test]
fn metrics_have_an_address_of_their_own() {
    let project = Scratch::project();
    let server = program("serve", project.path())
        .arguments(&["--port", "0"])
        .variable("SERVICE_METRICS__ENABLED", "true")
        .variable("SERVICE_METRICS__PATH", "/internal/numbers")
        .variable("SERVICE_METRICS__ADDRESS", "127.0.0.1:0")
        .variable("SERVICE_METRICS__INCLUDE_PROCESS", "false")
        .variable("SERVICE_METRICS__INCLUDE_RUNTIME", "true")
        .serve()
        .unwrap();
    assert_eq!(request(server.address, "POST", "/api/v1/query", Some(QUERY)).unwrap().status, 200);
    assert_eq!(request(server.address, "GET", "/internal/numbers", None).unwrap().status, 403);
    assert_eq!(request(server.address, "GET", "/metrics", None).unwrap().status, 404);
    let own = server.metrics_address.unwrap();
    let scraped = request(own, "GET", "/internal/numbers", None).unwrap();
    assert_eq!(scraped.status, 200);
    for line in [
        "service_query_total{cube=\"t\",status=\"success\",type=\"rest\"} 1",
        "service_warehouse_connections_idle{warehouse=\"duckdb\"} 1",
        "service_warehouse_connections_active{warehouse=\"duckdb\"} 0",
        "# TYPE service_runtime_workers gauge",
    ] {
        assert!(scraped.body.contains(line), "{line}: {}", scraped.body);
    }
    assert!(!scraped.body.contains("process_"), "{}", scraped.body);
    assert_eq!(request(own, "POST", "/api/v1/query", Some(QUERY)).unwrap().status, 404);
    assert_eq!(server.terminate().unwrap().0, Some(0));
}

#[test]
fn unsafe_and_conflicting_metrics_settings_are_rejected() {
    for (settings, place, words) in [
        ("metrics: {enabled: true, path: /health/ready}", "4:32", "already the path of /health/ready"),
        ("metrics: {enabled: true, address: \"0.0.0.0:9464\"}", "4:35", "`metrics.public: true`"),
        ("metrics: {enabled: true, path: \"a b\"}", "4:32", "an absolute path like /metrics"),
        ("metrics: {enabled: true, path: \"/{x}\"}", "4:32", "an absolute path like /metrics"),
        ("metrics: {enabled: true, address: 9464}", "4:35", "a host and a port"),
        ("telemetry: {sample_ratio: 2}", "4:27", "a number from 0 to 1"),
        ("telemetry: {otlp_endpoint: \"collector:4318\"}", "", "is not an http or https URL"),
    ] {
        let project = Scratch::project().with("service_project.yml", &format!("{OPEN}{settings}\n"));
        let output = run("serve", project.path(), &[]);
        assert_eq!(output.code, Some(1), "{settings}");
        let is_reported =
            output.stderr.contains(words) && output.stderr.contains(place) && output.stderr.contains("hint:");
        assert!(is_reported, "{settings}: {}", output.stderr);
    }
}

#[test]
fn used_port_of_metrics_is_reported() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let project = Scratch::project();
    let output = program("serve", project.path())
        .arguments(&["--port", "0"])
        .variable("SERVICE_METRICS__ENABLED", "true")
        .variable("SERVICE_METRICS__ADDRESS", &address)
        .run()
        .unwrap();
    assert_eq!(output.code, Some(1));
    insta::assert_snapshot!(output.stderr.replace(&address, "[address]"), @r"
    error: `metrics.address`: [address] is in use by another program; choose another port
      hint: Choose another port.
    ");
}

#[test]
fn unavailable_collector_affects_no_answers() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://me:pa55word@{}", gone.local_addr().unwrap());
    drop(gone);
    let project = Scratch::project();
    let server = program("serve", project.path())
        .arguments(&["--port", "0"])
        .variable("SERVICE_TELEMETRY__OTLP_ENDPOINT", &endpoint)
        .serve()
        .unwrap();
    for _ in 0..20 {
        assert_eq!(request(server.address, "POST", "/api/v1/query", Some(QUERY)).unwrap().status, 200);
    }
    let (code, log) = server.terminate().unwrap();
    assert_eq!(code, Some(0), "{log}");
    assert!(!log.contains("pa55word"), "{log}");
    let records = log.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let (of_requests, rest): (Vec<_>, Vec<_>) = records.partition(|record| record["correlation_id"].is_string());
    assert_eq!(of_requests.len(), 80);
    assert!(of_requests.iter().all(|record| record["trace_id"].as_str().is_some_and(|id| id.len() == 32)));
    let reported = rest.iter().filter(|record| record["event"] == "traces_not_sent").count();
    assert_eq!(reported, 1, "{log}");
}

#[test]
fn liveness_probe_answers_under_load() {
    let state = Scratch::empty();
    let server = program("serve", &path(FLIGHTS))
        .arguments(&["--port", "0"])
        .variable("SERVICE_STATE__URL", &format!("sqlite://{}/state.db", state.path().display()))
        .serve()
        .unwrap();
    let address = server.address;
    let body = r#"{"measures": ["flights.count"], "dimensions": ["flights.flight_date.day", "airlines.name"], "limit": 50000}"#;
    let load: Vec<_> = (0..24)
        .map(|_| {
            thread::spawn(move || {
                (0..4)
                    .map(|_| request(address, "POST", "/api/v1/query", Some(body)).unwrap().status)
                    .collect::<Vec<_>>()
            })
        })
        .collect();
    let (done, probed) = std::sync::mpsc::channel();
    let mut probes = 0;
    while load.iter().any(|client| !client.is_finished()) {
        let done = done.clone();
        thread::spawn(move || done.send(request(address, "GET", "/health/live", None).unwrap().status));
        assert_eq!(probed.recv_timeout(Duration::from_secs(2)), Ok(200), "a probe waited for two seconds");
        probes += 1;
    }
    let statuses: Vec<u16> = load.into_iter().flat_map(|client| client.join().unwrap()).collect();
    assert!(probes > 3 && statuses.iter().all(|status| *status == 200), "{probes} {statuses:?}");
}
