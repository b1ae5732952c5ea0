//! Measures the cost of the result cache for a miss and for a hit.
//!
//! Runs `POST /api/v1/query` through the whole edge without sockets, over a warehouse that answers at once, in three
//! ways: without the cache, with the cache and a new query each time, with the cache and the same query. Budget: a miss
//! takes at most 20 µs more than the query without the cache.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::Request;
use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::json;
use terrane_conformance_tests::case::World;
use terrane_conformance_tests::fakes::Column;
use terrane_server::{Connection, Edge};
use tokio::runtime::Runtime;

fn edge(has_cache: bool) -> Edge {
    let column = |ty: &str, values: Vec<serde_json::Value>| Column { ty: ty.to_owned(), values };
    let columns = vec![column("text", vec!["paid".into(), "open".into()]), column("integer", vec![2.into(), 1.into()])];
    World { columns, has_cache, ..World::default() }.edge()
}

fn request(number: u64) -> Request {
    let filter = json!({"dimension": "orders.status", "operator": "equals", "value": number.to_string()});
    let body = json!({"metrics": ["orders.count"], "dimensions": ["orders.status"], "filters": [filter]});
    let request = Request::post("/api/v1/query").header("content-type", "application/json");
    request.body(Body::from(body.to_string())).expect("a request")
}

/// Returns the time of requests that run on a worker thread of the runtime, as they do in a server.
fn time_of(runtime: &Runtime, edge: &Arc<Edge>, numbers: impl Iterator<Item = u64> + Send + 'static) -> Duration {
    let edge = Arc::clone(edge);
    let answering = runtime.spawn(async move {
        let started = Instant::now();
        for number in numbers {
            let answer = edge.call(Connection::default(), request(number)).await;
            assert_eq!(black_box(answer).status(), 200);
        }
        started.elapsed()
    });
    runtime.block_on(answering).expect("answers")
}

fn cache(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let mut group = criterion.benchmark_group("query");
    let mut next = 0;
    let (with, without) = runtime.block_on(async { (Arc::new(edge(true)), Arc::new(edge(false))) });
    for (name, edge, is_new) in [("cache off", &without, true), ("miss", &with, true), ("hit", &with, false)] {
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|count| {
                let first = next;
                next += if is_new { count } else { 0 };
                time_of(&runtime, edge, (0..count).map(move |offset| if is_new { first + offset } else { first }))
            });
        });
    }
    group.finish();
}

criterion_group!(benches, cache);
criterion_main!(benches);
