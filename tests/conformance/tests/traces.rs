//! Tests traces that a collector receives over a real socket: names, parents, attributes, and that they contain no
//! secret.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::sync::Arc;
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use serde_json::{Value as Json, json};
use terrane_app::ports::traces::Traces as _;
use terrane_conformance_tests::case::{TestRequest, World, ask};
use terrane_conformance_tests::fakes::{Column, FakeBehavior, FakeClock};
use terrane_conformance_tests::security::Security;
use terrane_server::Edge;
use terrane_server::telemetry::Watch;
use terrane_traces::{Collector, TraceSettings};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

const KEY: &str = "trn_0123456789abcdef_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopq";
const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// A receiver that reads each body whole and answers with a configured status.
struct Receiver {
    endpoint: String,
    bodies: mpsc::UnboundedReceiver<Vec<u8>>,
}

impl Receiver {
    async fn start(status: &'static str) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let (sender, bodies) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(take(stream, sender.clone(), status));
            }
        });
        Receiver { endpoint, bodies }
    }

    /// Returns all received bodies. The collector must be closed first.
    fn all(&mut self) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        while let Ok(body) = self.bodies.try_recv() {
            all.push(body);
        }
        all
    }
}

/// Reads the only request of a connection, and answers with a status.
async fn take(mut stream: TcpStream, bodies: mpsc::UnboundedSender<Vec<u8>>, status: &str) {
    let mut bytes = Vec::new();
    let head = loop {
        let Ok(1..) = stream.read_buf(&mut bytes).await else { return };
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
    };
    let text = String::from_utf8_lossy(&bytes[..head]).to_ascii_lowercase();
    assert!(text.starts_with("post /v1/traces ") && text.contains("content-type: application/x-protobuf"), "{text}");
    let length = text.split("content-length: ").nth(1).unwrap().split("\r\n").next().unwrap();
    let whole = head + length.parse::<usize>().unwrap();
    while bytes.len() < whole {
        let Ok(1..) = stream.read_buf(&mut bytes).await else { return };
    }
    let _ = bodies.send(bytes[head..].to_vec());
    let _ = stream
        .write_all(format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").as_bytes())
        .await;
}

fn collector(endpoint: &str, sample_ratio: f64) -> Arc<Collector> {
    let settings = TraceSettings {
        endpoint: endpoint.to_owned(),
        service_name: "shop".to_owned(),
        version: "1.2.3".to_owned(),
        sample_ratio,
    };
    Arc::new(Collector::start(&settings, Arc::new(FakeClock::default())).unwrap())
}

fn edge(world: &World, collector: &Arc<Collector>) -> Edge {
    let watch = Watch { metrics: None, traces: Some(collector.clone()) };
    world.edge_watched(Security::of_anonymous(), watch, false)
}

fn world() -> World {
    let column = |value: i64| Column { ty: "integer".to_owned(), values: vec![value.into()] };
    World { columns: vec![column(1), column(2), column(9)], ..World::default() }
}

fn asked(path: &str, json: Option<Json>, headers: &[(&str, &str)]) -> TestRequest {
    TestRequest {
        method: if json.is_some() { "POST" } else { "GET" }.to_owned(),
        path: path.to_owned(),
        headers: headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        json,
        text: None,
        size: None,
        stalls: false,
        is_surplus: false,
    }
}

fn count() -> Option<Json> {
    Some(
        json!({"measures": ["orders.count"], "filters": [{"member": "orders.status", "operator": "equals", "values": ["hush"]}]}),
    )
}

/// Sends requests to a world. Returns their spans, and all bytes that the collector received.
async fn spans(world: World, requests: &[TestRequest]) -> (Vec<Span>, Vec<u8>) {
    let mut receiver = Receiver::start("200 OK").await;
    let collector = collector(&receiver.endpoint, 1.0);
    let edge = edge(&world, &collector);
    for asked in requests {
        ask(&edge, asked).await;
    }
    collector.close(Duration::from_secs(30)).await;
    let bodies = receiver.all();
    let mut spans = Vec::new();
    for body in &bodies {
        for resource in ExportTraceServiceRequest::decode(&**body).unwrap().resource_spans {
            let own = &resource.resource.as_ref().unwrap().attributes[0];
            assert_eq!(own.key, "service.name");
            assert_eq!(own.value.as_ref().unwrap().value, Some(Value::StringValue("shop".to_owned())));
            spans.extend(resource.scope_spans.into_iter().flat_map(|scope| scope.spans));
        }
    }
    (spans, bodies.concat())
}

fn named<'s>(spans: &'s [Span], name: &str) -> &'s Span {
    let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    spans.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("no {name} in {names:?}"))
}

fn attribute(span: &Span, name: &str) -> Json {
    let found = span.attributes.iter().find(|attribute| attribute.key == name);
    match found.and_then(|attribute| attribute.value.as_ref()?.value.as_ref()) {
        Some(Value::StringValue(text)) => json!(text),
        Some(Value::IntValue(number)) => json!(number),
        _ => Json::Null,
    }
}

#[tokio::test]
async fn query_span_contains_its_stages() {
    let (spans, _) = spans(world(), &[asked("/api/v1/query", count(), &[("traceparent", PARENT)])]).await;
    assert_eq!(spans.len(), 3);
    let request = named(&spans, "POST /api/v1/query");
    assert_eq!(request.parent_span_id, 0xb7ad_6b71_6920_3331_u64.to_be_bytes());
    assert_eq!((request.kind, request.status.as_ref().unwrap().code), (2, 0));
    for (name, value) in [
        ("http.request.method", json!("POST")),
        ("http.route", json!("/api/v1/query")),
        ("url.path", json!("/api/v1/query")),
        ("http.response.status_code", json!(200)),
    ] {
        assert_eq!(attribute(request, name), value, "{name}");
    }
    let (compile, execute) = (named(&spans, "query.compile"), named(&spans, "warehouse.execute"));
    assert_eq!((compile.kind, execute.kind), (1, 3));
    assert_eq!(attribute(compile, "terrane.cube"), "orders");
    assert_eq!(attribute(execute, "db.system.name"), "duckdb");
    assert_eq!(attribute(execute, "db.response.returned_rows"), 1);
    for part in [compile, execute] {
        assert_eq!(part.parent_span_id, request.span_id);
    }
    let trace = 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c_u128.to_be_bytes();
    assert!(spans.iter().all(|span| span.trace_id == trace && span.end_time_unix_nano > span.start_time_unix_nano));
    let noon = 1_707_912_000_000_000_000;
    assert!(spans.iter().all(|span| span.end_time_unix_nano == noon));
}

#[tokio::test]
async fn request_without_a_parent_starts_a_trace() {
    let plain = asked("/api/v1/query", count(), &[]);
    let wrong = asked("/api/v1/query", count(), &[("traceparent", "00-xyz")]);
    let (spans, _) = spans(world(), &[plain, wrong, asked("/no/such/route", None, &[])]).await;
    let roots: Vec<&Span> = spans.iter().filter(|span| span.parent_span_id.is_empty()).collect();
    let mut traces: Vec<&Vec<u8>> = roots.iter().map(|span| &span.trace_id).collect();
    traces.sort();
    traces.dedup();
    assert_eq!((roots.len(), traces.len()), (3, 3));
    // The name of a span does not contain a path that the client chose.
    assert_eq!(attribute(named(&spans, "GET"), "http.response.status_code"), 404);
    let mut ids: Vec<&Vec<u8>> = spans.iter().map(|span| &span.span_id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), spans.len());
}

#[tokio::test]
async fn failure_belongs_to_the_span_that_failed() {
    let (failed, _) =
        spans(World { warehouse: FakeBehavior::Refuses, ..world() }, &[asked("/api/v1/query", count(), &[])]).await;
    let (request, execute) = (named(&failed, "POST /api/v1/query"), named(&failed, "warehouse.execute"));
    assert_eq!((request.status.as_ref().unwrap().code, execute.status.as_ref().unwrap().code), (2, 2));
    assert_eq!((attribute(request, "error.type"), attribute(execute, "error.type")), (json!("502"), json!("error")));

    let typo = asked("/api/v1/query", Some(json!({"measures": ["orders.cuont"]})), &[]);
    let (refused, _) = spans(world(), &[typo]).await;
    assert_eq!(named(&refused, "POST /api/v1/query").status.as_ref().unwrap().code, 0);
    assert_eq!(attribute(named(&refused, "query.compile"), "terrane.outcome"), "refused");
}

#[tokio::test]
async fn exported_traces_contain_no_secrets_and_no_sql() {
    let carried = format!("Bearer {KEY}");
    let headers = [
        ("authorization", carried.as_str()),
        ("user-agent", &carried),
        ("x-correlation-id", KEY),
        ("cookie", "hush=hush"),
    ];
    let (path, posted) = (format!("/api/v1/query?api_key={KEY}"), format!("/{KEY}"));
    let requests = [
        asked(&path, count(), &headers[1..]),
        asked(&posted, None, &headers),
        asked("/api/v1/query", count(), &headers),
    ];
    let world = World { warehouse: FakeBehavior::Refuses, ..world() };
    let (spans, bytes) = spans(world, &requests).await;
    assert!(spans.len() >= 3);
    let text = String::from_utf8_lossy(&bytes);
    for secret in ["ABCDEFGH", "hush", "SELECT", "secret.parquet"] {
        assert!(!text.contains(secret), "{secret}");
    }
}

#[tokio::test]
async fn sampling_follows_the_caller_or_the_ratio() {
    let mut receiver = Receiver::start("200 OK").await;
    let collector = collector(&receiver.endpoint, 0.0);
    let edge = edge(&world(), &collector);
    ask(&edge, &asked("/api/v1/query", count(), &[])).await;
    ask(&edge, &asked("/api/v1/query", count(), &[("traceparent", &PARENT.replace("-01", "-00"))])).await;
    assert_eq!(collector.backlog().waiting, 0);
    ask(&edge, &asked("/api/v1/query", count(), &[("traceparent", PARENT)])).await;
    collector.close(Duration::from_secs(30)).await;
    let sent: Vec<u8> = receiver.all().concat();
    assert!(sent.windows(16).any(|bytes| bytes == 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c_u128.to_be_bytes()));
}

#[tokio::test]
async fn unavailable_collector_only_drops_spans() {
    // No server listens at this address.
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", gone.local_addr().unwrap());
    drop(gone);
    let refusing = Receiver::start("500 Internal Server Error").await;
    for endpoint in [endpoint, refusing.endpoint.clone()] {
        let collector = collector(&endpoint, 1.0);
        let edge = edge(&world(), &collector);
        for _ in 0..2_000 {
            assert_eq!(ask(&edge, &asked("/api/v1/query", count(), &[])).await.status, 200);
        }
        let backlog = collector.backlog();
        assert!(backlog.waiting <= 4_096 && backlog.dropped + backlog.waiting > 0, "{backlog:?}");
        collector.close(Duration::from_secs(10)).await;
        assert!(collector.backlog().dropped >= 4_096, "{:?}", collector.backlog());
    }
}

#[tokio::test]
async fn shutdown_waits_no_longer_than_its_limit() {
    // A receiver that accepts connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let collector = collector(&format!("http://{}", silent.local_addr().unwrap()), 1.0);
    ask(&edge(&world(), &collector), &asked("/api/v1/query", count(), &[])).await;
    let closing = tokio::time::timeout(Duration::from_secs(4), collector.close(Duration::from_millis(100)));
    assert!(closing.await.is_ok());
}
