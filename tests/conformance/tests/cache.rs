//! Tests the result cache through the routes: hits, misses, shared executions, entity tags.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use futures_util::future::join_all;
use serde_json::{Value as Json, json};
use terrane_conformance_tests::case::{Answered, Caller, TestRequest as Request, World, ask};
use terrane_conformance_tests::fakes::{Column, FakeBehavior};
use terrane_server::Edge;

fn world() -> World {
    let column = |ty: &str, values: Json| Column { ty: ty.to_owned(), values: values.as_array().unwrap().clone() };
    World {
        caller: Caller::Admin,
        columns: vec![column("text", json!(["paid", "open"])), column("integer", json!([2, 1]))],
        has_cache: true,
        ..World::default()
    }
}

fn query(body: Json) -> Request {
    asked("POST", "/api/v1/query", &[], Some(body))
}

fn asked(method: &str, path: &str, headers: &[(&str, &str)], json: Option<Json>) -> Request {
    let headers: BTreeMap<String, String> =
        headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Request {
        method: method.to_owned(),
        path: path.to_owned(),
        headers,
        json,
        text: None,
        size: None,
        stalls: false,
        is_surplus: false,
    }
}

fn orders() -> Json {
    json!({ "metrics": ["orders.count"], "dimensions": ["orders.status"] })
}

fn body(answered: &Answered) -> Json {
    assert_eq!(answered.status.as_u16(), 200, "{}", String::from_utf8_lossy(&answered.body));
    serde_json::from_slice(&answered.body).unwrap()
}

async fn is_cached(edge: &Edge, asked: &Request) -> bool {
    body(&ask(edge, asked).await)["meta"]["cached"] == true
}

#[tokio::test]
async fn cached_response_has_the_rows_of_the_first() {
    let world = world();
    let edge = world.edge();
    let first = body(&ask(&edge, &query(orders())).await);
    let second = body(&ask(&edge, &query(orders())).await);
    assert_eq!(first["data"], second["data"]);
    assert_eq!(first["meta"]["cache_key"], second["meta"]["cache_key"]);
    assert_eq!(first["meta"]["as_of"], second["meta"]["as_of"]);
    assert_eq!(first["meta"]["cached"], false);
    assert_eq!(second["meta"]["cached"], true);
    assert_eq!(second["meta"]["stale"], false);
    assert!(second["meta"]["age_ms"].is_u64());
    assert_eq!(world.statements.load(Ordering::Relaxed), 1);
}

/// The cache stores the rows in the form of the last response. A request for another form must get its own form.
#[tokio::test]
async fn each_number_format_is_returned_as_requested() {
    let world = world();
    let edge = world.edge();
    let mut seen = Vec::new();
    for numbers in ["number", "string", "number", "double"] {
        let mut asked = orders();
        asked["numbers"] = numbers.into();
        seen.push(body(&ask(&edge, &query(asked)).await)["data"][0]["orders.count"].clone());
    }
    assert_eq!(seen, [json!(2), json!("2"), json!(2), json!(2.0)]);
    let short = json!({ "cube": "orders", "metrics": ["count"], "dimensions": ["status"] });
    assert_eq!(body(&ask(&edge, &query(short)).await)["data"][0]["count"], 2, "another name of the same column");
    let csv = asked("POST", "/api/v1/query", &[("accept", "text/csv")], Some(orders()));
    let csv = ask(&edge, &csv).await;
    assert_eq!(csv.body, "orders.status,orders.count\r\npaid,2\r\nopen,1\r\n");
}

#[tokio::test]
async fn request_can_bypass_the_cache() {
    let world = world();
    let edge = world.edge();
    assert!(!is_cached(&edge, &query(orders())).await);
    let mut fresh = orders();
    fresh["cache"] = false.into();
    assert!(!is_cached(&edge, &query(fresh)).await);
    let no_cache = asked("POST", "/api/v1/query", &[("cache-control", "no-cache")], Some(orders()));
    assert!(!is_cached(&edge, &no_cache).await);
    assert!(is_cached(&edge, &query(orders())).await);
    assert_eq!(world.statements.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn concurrent_equal_queries_share_one_statement() {
    let world = world();
    let edge = world.edge();
    let asked = query(orders());
    let answers = join_all((0..100).map(|_| ask(&edge, &asked))).await;
    let rows: Vec<Json> = answers.iter().map(|answered| body(answered)["data"].clone()).collect();
    assert!(rows.iter().all(|data| *data == rows[0] && data.as_array().unwrap().len() == 2));
    assert_eq!(world.statements.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn failure_is_returned_to_all_waiters_and_not_cached() {
    let world = World { warehouse: FakeBehavior::Refuses, ..world() };
    let edge = world.edge();
    let asked = query(orders());
    let answers = join_all((0..10).map(|_| ask(&edge, &asked))).await;
    assert!(answers.iter().all(|answered| answered.status.as_u16() == 502));
    assert_eq!(world.statements.load(Ordering::Relaxed), 1);
    assert_eq!(ask(&edge, &asked).await.status.as_u16(), 502);
    assert_eq!(world.statements.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn panic_is_an_error_for_all_waiters() {
    let world = World { warehouse: FakeBehavior::Panics, ..world() };
    let edge = world.edge();
    let asked = query(orders());
    let answers = join_all((0..3).map(|_| ask(&edge, &asked))).await;
    assert!(answers.iter().all(|answered| answered.status.as_u16() == 500));
}

/// If the last caller disconnects, the statement is interrupted, and its permit is free for the next query.
#[tokio::test]
async fn shared_statement_ends_with_its_last_caller() {
    let world = World { warehouse: FakeBehavior::Hangs, ..world() };
    let edge = world.edge();
    let asked = query(orders());
    let start = |edge: &Edge| {
        let (edge, asked) = (edge.clone(), asked.clone());
        tokio::spawn(async move { ask(&edge, &asked).await })
    };
    let callers = [start(&edge), start(&edge)];
    while world.statements.load(Ordering::Relaxed) == 0 {
        tokio::task::yield_now().await;
    }
    callers[0].abort();
    tokio::task::yield_now().await;
    let third = start(&edge);
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    assert_eq!(world.statements.load(Ordering::Relaxed), 1, "the flight goes on");
    callers[1].abort();
    third.abort();
    let _ = third.await;
    let next = start(&edge);
    while world.statements.load(Ordering::Relaxed) == 1 {
        tokio::task::yield_now().await;
    }
    next.abort();
}

#[tokio::test]
async fn invalidation_makes_results_outdated() {
    let world = world();
    let edge = world.edge();
    assert!(!is_cached(&edge, &query(orders())).await);
    assert!(is_cached(&edge, &query(orders())).await);
    let invalidate = |cubes: Json| asked("POST", "/api/v1/cache/invalidate", &[], Some(json!({ "cubes": cubes })));
    body(&ask(&edge, &invalidate(json!(["customers"]))).await);
    assert!(is_cached(&edge, &query(orders())).await, "another cube");
    body(&ask(&edge, &invalidate(json!(["orders"]))).await);
    let mut stale = orders();
    stale["stale"] = 60.into();
    let outdated = body(&ask(&edge, &query(stale)).await);
    assert_eq!((&outdated["meta"]["cached"], &outdated["meta"]["stale"]), (&json!(true), &json!(true)));
    // Waits until the new result is being computed.
    while world.statements.load(Ordering::Relaxed) == 1 {
        tokio::task::yield_now().await;
    }
    tokio::task::yield_now().await;
    let renewed = body(&ask(&edge, &query(orders())).await);
    assert_eq!((&renewed["meta"]["cached"], &renewed["meta"]["stale"]), (&json!(true), &json!(false)));
    assert_eq!(world.statements.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn client_with_the_current_etag_gets_no_rows() {
    let world = world();
    let edge = world.edge();
    let first = ask(&edge, &query(orders())).await;
    let tag = first.headers["etag"].to_str().unwrap().to_owned();
    assert_eq!(first.headers["cache-control"], "private, no-cache");
    let conditional = |tag: &str, body| asked("POST", "/api/v1/query", &[("if-none-match", tag)], Some(body));
    let unchanged = ask(&edge, &conditional(&tag, orders())).await;
    assert_eq!((unchanged.status.as_u16(), unchanged.body.len()), (304, 0));
    assert_eq!(unchanged.headers["etag"], tag);
    let mut other = orders();
    other["numbers"] = "string".into();
    assert_eq!(ask(&edge, &conditional(&tag, other)).await.status.as_u16(), 200, "other bytes");
    body(&ask(&edge, &asked("POST", "/api/v1/cache/invalidate", &[], None)).await);
    assert_eq!(ask(&edge, &conditional(&tag, orders())).await.status.as_u16(), 200, "the data changed");
}
