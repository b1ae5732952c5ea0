//! Tests the metrics that Prometheus reads: names, types, labels, and that clients cannot add series.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use http_body_util::BodyExt as _;
use serde_json::{Value as Json, json};
use terrane_conformance_tests::case::{Answered, Caller, TestRequest, World, ask};
use terrane_conformance_tests::fakes::{Column, FakeBehavior};
use terrane_conformance_tests::security::Security;
use terrane_server::telemetry::Watch;
use terrane_server::telemetry::metrics::{Metrics, MetricsSettings};
use terrane_server::{Connection, Edge};

fn watch() -> Watch {
    let settings = MetricsSettings {
        version: "1.2.3".to_owned(),
        worker_id: "w1".to_owned(),
        include_process: true,
        include_runtime: true,
        has_traces: false,
    };
    Watch { metrics: Some(Arc::new(Metrics::new(&settings).unwrap())), traces: None }
}

fn edge(world: &World) -> Edge {
    world.edge_watched(Security::of_anonymous(), watch(), true)
}

/// Returns a world whose cube `orders` has one row.
fn world() -> World {
    let column = |value: i64| Column { ty: "integer".to_owned(), values: vec![value.into()] };
    World { columns: vec![column(1), column(2), column(9)], ..World::default() }
}

fn get(path: &str) -> TestRequest {
    TestRequest {
        method: "GET".to_owned(),
        path: path.to_owned(),
        headers: BTreeMap::new(),
        json: None,
        text: None,
        size: None,
        stalls: false,
        is_surplus: false,
    }
}

fn query(json: Json) -> TestRequest {
    TestRequest { method: "POST".to_owned(), json: Some(json), ..get("/api/v1/query") }
}

fn count() -> Json {
    json!({"measures": ["orders.count"]})
}

/// Metrics in the text format (0.0.4), parsed.
#[derive(Default)]
struct Scrape {
    types: BTreeMap<String, String>,
    /// The samples by name and labels, in the notation of the text.
    samples: BTreeMap<String, f64>,
}

impl Scrape {
    async fn of(edge: &Edge) -> Scrape {
        let answered = ask(edge, &get("/metrics")).await;
        assert_eq!(answered.status, 200);
        assert!(answered.headers["content-type"].to_str().unwrap().starts_with("text/plain; version=0.0.4"));
        Scrape::read(&answered)
    }

    fn read(answered: &Answered) -> Scrape {
        let text = std::str::from_utf8(&answered.body).unwrap();
        assert!(text.ends_with('\n'));
        let mut scrape = Scrape::default();
        for line in text.lines() {
            if let Some(ty) = line.strip_prefix("# TYPE ") {
                let (name, ty) = ty.split_once(' ').unwrap();
                assert!(scrape.types.insert(name.to_owned(), ty.to_owned()).is_none(), "{name} stands twice");
            } else if !line.starts_with("# HELP ") {
                let (series, value) = line.rsplit_once(' ').unwrap();
                let value: f64 = value.parse().unwrap_or_else(|_| panic!("no number: {line}"));
                assert!(scrape.samples.insert(series.to_owned(), value).is_none(), "{series} stands twice");
            }
        }
        scrape
    }

    fn value(&self, series: &str) -> f64 {
        *self.samples.get(series).unwrap_or_else(|| panic!("no {series} in {:#?}", self.samples.keys()))
    }

    /// Returns the names of the labels of a metric's samples, except those of histogram buckets.
    fn labels(&self, name: &str) -> BTreeSet<String> {
        let is_of = |series: &&String| {
            let own = series.split('{').next().unwrap_or_default();
            own == name || own.strip_prefix(name).is_some_and(|rest| ["_bucket", "_sum", "_count"].contains(&rest))
        };
        let series: Vec<&String> = self.samples.keys().filter(is_of).collect();
        assert!(!series.is_empty(), "{name} has no samples");
        series
            .iter()
            .filter_map(|series| Some(series.split_once('{')?.1.trim_end_matches('}')))
            .flat_map(|labels| labels.split("\",").filter_map(|label| label.split('=').next()))
            .filter(|label| *label != "le")
            .map(str::to_owned)
            .collect()
    }
}

/// Metrics of `runtime/docs/reference/operations.md`, each with its type and its labels.
const METRICS: &[(&str, &str, &[&str])] = &[
    ("service_http_requests_total", "counter", &["method", "endpoint", "status"]),
    ("service_http_request_duration_seconds", "histogram", &["method", "endpoint"]),
    ("service_http_request_size_bytes", "histogram", &["method", "endpoint"]),
    ("service_http_response_size_bytes", "histogram", &["method", "endpoint"]),
    ("service_http_requests_in_progress", "gauge", &["method", "endpoint"]),
    ("service_query_total", "counter", &["cube", "type", "status"]),
    ("service_query_duration_seconds", "histogram", &["cube", "type"]),
    ("service_query_rows_returned", "histogram", &["cube"]),
    ("service_query_compile_duration_seconds", "histogram", &["cube"]),
    ("service_query_warehouse_duration_seconds", "histogram", &["warehouse", "cube"]),
    ("service_warehouse_connections_active", "gauge", &["warehouse"]),
    ("service_warehouse_connections_idle", "gauge", &["warehouse"]),
    ("service_warehouse_connection_errors_total", "counter", &["warehouse", "error_type"]),
    ("service_warehouse_query_errors_total", "counter", &["warehouse", "error_type"]),
    ("service_worker_active_tasks", "gauge", &["worker_id"]),
    ("service_worker_tasks_total", "counter", &["task_name", "status"]),
    ("service_worker_task_duration_seconds", "histogram", &["task_name"]),
    ("service_worker_queue_size", "gauge", &["queue_name"]),
    ("service_info", "gauge", &["version"]),
    ("service_uptime_seconds", "gauge", &[]),
    ("process_cpu_seconds_total", "counter", &[]),
    ("process_resident_memory_bytes", "gauge", &[]),
    ("process_open_fds", "gauge", &[]),
];

#[tokio::test]
async fn documented_metrics_have_their_types_and_labels() {
    use terrane_app::ports::observer::{Observer as _, TaskOutcome};
    let watch = watch();
    watch.task_started("audit_flush");
    watch.task_ended("audit_flush", TaskOutcome::Success, std::time::Duration::from_millis(2));
    let edge = World { warehouse: FakeBehavior::Refuses, ..world() }.edge_watched(
        Security::of_anonymous(),
        watch.clone(),
        true,
    );
    assert_eq!(ask(&edge, &query(count())).await.status, 502);
    let edge = world().edge_watched(Security::of_anonymous(), watch, true);
    assert_eq!(ask(&edge, &query(count())).await.status, 200);
    let scrape = Scrape::of(&edge).await;
    for (name, ty, labels) in METRICS {
        assert_eq!(scrape.types.get(*name).map(String::as_str), Some(*ty), "{name}");
        assert_eq!(scrape.labels(name), labels.iter().map(|label| (*label).to_owned()).collect(), "{name}");
    }
    // Metrics of features that the server does not have are absent.
    for group in ["service_cache_", "service_preagg_", "service_trace_"] {
        assert!(!scrape.types.keys().any(|name| name.starts_with(group)), "{group}");
    }
    assert_eq!(scrape.value("service_info{version=\"1.2.3\"}"), 1.0);
}

#[tokio::test]
async fn requests_and_queries_are_counted_once_by_outcome() {
    let edge = edge(&world());
    ask(&edge, &query(count())).await;
    ask(&edge, &query(json!({"measures": ["orders.cuont"]}))).await;
    let csv = TestRequest { headers: [("accept".to_owned(), "text/csv".to_owned())].into(), ..query(count()) };
    ask(&edge, &csv).await;
    ask(&edge, &TestRequest { path: "/api/v1/query/sql".to_owned(), ..query(count()) }).await;
    ask(&edge, &query(json!({"metrics": ["no_such_metric"]}))).await;
    ask(&edge, &TestRequest { method: "HEAD".to_owned(), ..get("/health/live") }).await;
    let scrape = Scrape::of(&edge).await;
    let queries = |labels: &str| scrape.value(&format!("service_query_total{{{labels}}}"));
    assert_eq!(queries("cube=\"orders\",status=\"success\",type=\"rest\""), 1.0);
    assert_eq!(queries("cube=\"orders\",status=\"refused\",type=\"rest\""), 1.0);
    assert_eq!(queries("cube=\"orders\",status=\"success\",type=\"export\""), 1.0);
    assert_eq!(queries("cube=\"orders\",status=\"success\",type=\"sql\""), 1.0);
    assert_eq!(queries("cube=\"unknown\",status=\"refused\",type=\"rest\""), 1.0);
    assert_eq!(scrape.value("service_query_rows_returned_count{cube=\"orders\"}"), 2.0);
    let on_query = "endpoint=\"/api/v1/query\",method=\"POST\"";
    assert_eq!(scrape.value(&format!("service_http_requests_total{{{on_query},status=\"200\"}}")), 2.0);
    assert_eq!(scrape.value(&format!("service_http_requests_total{{{on_query},status=\"400\"}}")), 2.0);
    assert_eq!(scrape.value(&format!("service_http_requests_in_progress{{{on_query}}}")), 0.0);
    let sent = count().to_string().len() as f64;
    assert!(scrape.value(&format!("service_http_request_size_bytes_sum{{{on_query}}}")) >= 4.0 * sent);
    assert_eq!(
        scrape.value("service_http_requests_total{endpoint=\"/health/live\",method=\"HEAD\",status=\"200\"}"),
        1.0
    );
    // The only request in progress is the scrape itself.
    assert_eq!(scrape.value("service_http_requests_in_progress{endpoint=\"/metrics\",method=\"GET\"}"), 1.0);
}

#[tokio::test]
async fn unknown_names_add_no_series() {
    let edge = edge(&world());
    let made_up = async |round: usize| {
        ask(&edge, &get(&format!("/nowhere/{round}/\u{7e}"))).await;
        ask(&edge, &get(&format!("/api/v1/query/meta/cubes/made_up_{round}"))).await;
        ask(&edge, &query(json!({"measures": [format!("made_up_{round}.count")]}))).await;
        ask(&edge, &query(json!({"cube": format!("made_up_{round}"), "measures": ["count"]}))).await;
        ask(&edge, &TestRequest { method: format!("MADEUP{round}"), ..get("/api/v1/query") }).await;
        let request = Request::builder().uri("/metrics").header(format!("x-made-up-{round}"), "1");
        let request = request.header("authorization", format!("Bearer made-up-{round}")).body(Body::empty()).unwrap();
        edge.call(Connection::default(), request).await.into_body().collect().await.unwrap();
    };
    made_up(0).await;
    Scrape::of(&edge).await;
    let before = Scrape::of(&edge).await;
    for round in 1..=1_000 {
        made_up(round).await;
    }
    let after = Scrape::of(&edge).await;
    let new: Vec<&String> = after.samples.keys().filter(|series| !before.samples.contains_key(*series)).collect();
    assert!(new.is_empty(), "{new:?}");
    assert_eq!(
        after.value("service_http_requests_total{endpoint=\"unmatched\",method=\"other\",status=\"405\"}"),
        1_001.0
    );
    assert!(!after.samples.keys().any(|series| series.contains("made_up") || series.contains("MADEUP")));
}

#[tokio::test]
async fn histograms_are_cumulative_and_cover_their_range() {
    let edge = edge(&world());
    ask(&edge, &query(count())).await;
    let scrape = Scrape::of(&edge).await;
    for (name, last) in [
        ("service_http_request_duration_seconds", 600.0),
        ("service_http_response_size_bytes", 1_073_741_824.0),
        ("service_query_rows_returned", 10_000_000.0),
    ] {
        let mut buckets: Vec<(f64, f64)> = Vec::new();
        for (series, count) in &scrape.samples {
            let Some(labels) = series.strip_prefix(&format!("{name}_bucket{{")) else { continue };
            if !labels.contains("/api/v1/query") && !labels.contains("orders") {
                continue;
            }
            let bound = labels.split("le=\"").nth(1).unwrap().split('"').next().unwrap();
            buckets.push((bound.parse().unwrap_or(f64::INFINITY), *count));
        }
        buckets.sort_by(|left, right| left.0.total_cmp(&right.0));
        assert!(buckets.windows(2).all(|pair| pair[0].1 <= pair[1].1), "{name}: {buckets:?}");
        assert_eq!(buckets[buckets.len() - 2].0, last, "{name}");
        assert_eq!(buckets.last().unwrap(), &(f64::INFINITY, 1.0), "{name}");
    }
}

#[tokio::test]
async fn disconnected_request_is_not_in_progress() {
    let edge = edge(&World { warehouse: FakeBehavior::Hangs, ..world() });
    let in_progress = "service_http_requests_in_progress{endpoint=\"/api/v1/query\",method=\"POST\"}";
    let (other, asked) = (edge.clone(), query(count()));
    let asking = tokio::spawn(async move { ask(&other, &asked).await });
    tokio::task::yield_now().await;
    let during = Scrape::of(&edge).await;
    assert_eq!((during.value(in_progress), during.value("service_queries_running")), (1.0, 1.0));
    asking.abort();
    let _ = asking.await;
    let after = Scrape::of(&edge).await;
    assert_eq!((after.value(in_progress), after.value("service_queries_running")), (0.0, 0.0));
    assert_eq!(after.value("service_query_total{cube=\"orders\",status=\"abandoned\",type=\"rest\"}"), 1.0);
    let gone = "service_http_requests_total{endpoint=\"/api/v1/query\",method=\"POST\",status=\"499\"}";
    assert_eq!(after.value(gone), 1.0);
}

#[tokio::test]
async fn streamed_answer_is_in_progress_until_its_last_byte() {
    let world = World { repeats: 50, ..world() };
    let edge = edge(&world);
    let body = json!({"measures": ["orders.count"], "dimensions": ["orders.id"], "limit": 20_000});
    let csv = || TestRequest { headers: [("accept".to_owned(), "text/csv".to_owned())].into(), ..query(body.clone()) };
    let on_query = "endpoint=\"/api/v1/query\",method=\"POST\"";

    let response = edge.call(Connection::default(), csv().request()).await;
    let during = Scrape::of(&edge).await;
    assert_eq!(during.value(&format!("service_http_requests_in_progress{{{on_query}}}")), 1.0);
    assert!(!during.samples.keys().any(|series| series.starts_with("service_query_total")), "it is not over");
    let read = response.into_body().collect().await.unwrap().to_bytes();
    let after = Scrape::of(&edge).await;
    assert_eq!(after.value(&format!("service_http_requests_in_progress{{{on_query}}}")), 0.0);
    assert_eq!(after.value(&format!("service_http_response_size_bytes_sum{{{on_query}}}")), read.len() as f64);
    assert_eq!(after.value("service_query_rows_returned_sum{cube=\"orders\"}"), 51.0);

    drop(edge.call(Connection::default(), csv().request()).await);
    let left = Scrape::of(&edge).await;
    assert_eq!(left.value(&format!("service_http_requests_in_progress{{{on_query}}}")), 0.0);
    assert_eq!(left.value("service_query_total{cube=\"orders\",status=\"abandoned\",type=\"export\"}"), 1.0);
}

#[tokio::test(start_paused = true)]
async fn warehouse_failures_are_counted_by_kind() {
    for (behavior, kind, status) in [
        (FakeBehavior::Refuses, "error", 502),
        (FakeBehavior::Unavailable, "unavailable", 503),
        (FakeBehavior::TimesOut, "timeout", 408),
        (FakeBehavior::Hangs, "timeout", 408),
    ] {
        let edge = edge(&World { warehouse: behavior, ..world() });
        assert_eq!(ask(&edge, &query(count())).await.status, status);
        let scrape = Scrape::of(&edge).await;
        let errors = format!("service_warehouse_query_errors_total{{error_type=\"{kind}\",warehouse=\"duckdb\"}}");
        assert_eq!(scrape.value(&errors), 1.0, "{behavior:?}");
        assert_eq!(
            scrape.value(&format!("service_query_total{{cube=\"orders\",status=\"{kind}\",type=\"rest\"}}")),
            1.0
        );
    }
}

#[tokio::test]
async fn scraping_the_api_address_requires_an_administrator() {
    for (caller, is_public, status) in [
        (Caller::Reader, false, 403),
        (Caller::Stranger, false, 401),
        (Caller::Admin, false, 200),
        (Caller::Stranger, true, 200),
    ] {
        let edge = World { caller, ..world() }.edge_watched(Security::of_anonymous(), watch(), is_public);
        assert_eq!(ask(&edge, &get("/metrics")).await.status, status, "{caller:?} {is_public}");
    }
    // The separate address of the metrics needs no credential, and has no other routes.
    let own = Edge::of_metrics(
        World { caller: Caller::Stranger, ..world() }
            .edge_watched(Security::of_anonymous(), watch(), false)
            .app()
            .clone(),
    );
    assert_eq!(ask(&own, &get("/metrics")).await.status, 200);
    for path in ["/api/v1/query", "/health/live", "/"] {
        assert_eq!(ask(&own, &get(path)).await.status, 404, "{path}");
    }
    let described = ask(&edge(&world()), &get("/openapi.json")).await;
    let described: Json = serde_json::from_slice(&described.body).unwrap();
    assert_eq!(described["paths"]["/metrics"]["get"]["operationId"], "prometheus_metrics");
    // The route does not exist if metrics are off.
    assert_eq!(ask(&world().edge(), &get("/metrics")).await.status, 404);
}

#[tokio::test]
async fn credentials_are_counted_by_outcome() {
    let edge = World { caller: Caller::Stranger, ..world() }.edge_watched(Security::of_anonymous(), watch(), true);
    for bearer in ["trn_0123456789abcdef_x", "x.y.z", ""] {
        let headers = [("authorization".to_owned(), format!("Bearer {bearer}"))].into();
        ask(&edge, &TestRequest { headers, ..get("/api/v1/query/meta/cubes") }).await;
    }
    ask(&edge, &get("/api/v1/query/meta/cubes")).await;
    let scrape = Scrape::of(&edge).await;
    let denied = |reason: &str| scrape.value(&format!("service_access_denied_total{{reason=\"{reason}\"}}"));
    let reasons = ["unknown key", "tokens are not accepted", "malformed credential", "no credentials"];
    assert_eq!(reasons.map(denied), [1.0; 4]);
}
