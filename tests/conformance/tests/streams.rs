//! Tests streamed answers: failures reach the client, the statement ends if the client disconnects, and an Arrow stream
//! contains the rows unchanged.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use arrow::array::{Array as _, AsArray as _, RecordBatch};
use arrow::datatypes::{DataType, Int64Type};
use arrow_ipc::reader::StreamReader;
use http_body_util::BodyExt as _;
use serde_json::json;
use terrane_conformance_tests::case::{TestRequest, World, ask};
use terrane_conformance_tests::fakes::{Column, FakeBehavior};
use terrane_server::Connection;

fn asked(accept: &str, limit: u64) -> TestRequest {
    TestRequest {
        method: "POST".to_owned(),
        path: "/api/v1/query".to_owned(),
        headers: [("accept".to_owned(), accept.to_owned())].into(),
        json: Some(json!({
            "measures": ["orders.count"], "dimensions": ["orders.status", "orders.created_at.month"], "limit": limit
        })),
        text: None,
        size: None,
        stalls: false,
        is_surplus: false,
    }
}

fn world(repeats: usize, stream_ends: FakeBehavior) -> World {
    let column = |ty: &str, value: serde_json::Value| Column { ty: ty.to_owned(), values: vec![value, json!(null)] };
    let columns = vec![column("text", json!("a")), column("date", json!(19_737)), column("integer", json!(7)), {
        Column { ty: "integer".to_owned(), values: vec![json!(10), json!(10)] }
    }];
    World { columns, repeats, stream_ends, ..World::default() }
}

fn read(bytes: &[u8]) -> Vec<RecordBatch> {
    StreamReader::try_new(bytes, None).unwrap().map(Result::unwrap).collect()
}

#[tokio::test]
async fn arrow_reads_back_with_keys_and_labels() {
    for (limit, batches) in [(100, 1), (20_000, 3)] {
        let answered =
            ask(&world(2, FakeBehavior::Answers).edge(), &asked("application/vnd.apache.arrow.stream", limit)).await;
        let read = read(&answered.body);
        assert_eq!(read.len(), batches, "limit {limit}");
        let schema = read[0].schema();
        let columns: Vec<(&str, &DataType)> =
            schema.fields().iter().map(|field| (field.name().as_str(), field.data_type())).collect();
        assert_eq!(
            columns,
            [
                ("orders.status", &DataType::Utf8),
                ("orders.created_at.month", &DataType::Utf8),
                ("orders.count", &DataType::Int64)
            ]
        );
        for batch in read {
            assert_eq!(batch.column(0).as_string::<i32>().value(0), "a");
            assert_eq!(batch.column(1).as_string::<i32>().value(0), "2024-01");
            assert_eq!(batch.column(2).as_primitive::<Int64Type>().value(0), 7);
            assert!(batch.columns().iter().all(|column| column.is_null(1)));
        }
    }
}

#[tokio::test]
async fn empty_arrow_result_has_its_columns() {
    let mut world = world(0, FakeBehavior::Answers);
    world.columns.iter_mut().for_each(|column| column.values.clear());
    let answered = ask(&world.edge(), &asked("application/vnd.apache.arrow.stream", 100)).await;
    let reader = StreamReader::try_new(&*answered.body, None).unwrap();
    assert_eq!(reader.schema().fields().len(), 3);
    assert_eq!(read(&answered.body).iter().map(RecordBatch::num_rows).sum::<usize>(), 0);
}

#[tokio::test]
async fn error_during_a_stream_aborts_the_body() {
    for accept in ["application/json", "text/csv", "application/vnd.apache.arrow.stream"] {
        for ends in [FakeBehavior::Refuses, FakeBehavior::TimesOut, FakeBehavior::Unavailable] {
            let edge = world(3, ends).edge();
            let response = edge.call(Connection::default(), asked(accept, 20_000).request()).await;
            assert_eq!(response.status(), 200);
            assert!(response.into_body().collect().await.is_err(), "{accept} {ends:?} looked whole");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn stream_over_its_time_limit_is_aborted() {
    let edge = world(3, FakeBehavior::Hangs).edge();
    let response = edge.call(Connection::default(), asked("text/csv", 20_000).request()).await;
    assert!(response.into_body().collect().await.is_err());
}

#[tokio::test]
async fn disconnected_reader_returns_its_permit() {
    // The server runs one query at a time.
    let edge = World { is_busy: true, ..world(1_000, FakeBehavior::Answers) }.edge();
    for _ in 0..3 {
        let response = edge.call(Connection::default(), asked("text/csv", 20_000).request()).await;
        assert_eq!(response.status(), 200);
        let mut body = response.into_body();
        assert!(body.frame().await.unwrap().is_ok());
        let refused = edge.call(Connection::default(), asked("text/csv", 20_000).request()).await;
        assert_eq!(refused.status(), 503, "the turn is taken");
        drop(body);
    }
}
