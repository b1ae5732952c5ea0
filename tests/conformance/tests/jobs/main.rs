//! Tests asynchronous queries and their errors with a real state database and a real folder of results.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

mod ends;
mod house;
mod limits;
mod rights;

use std::time::Duration;

use serde_json::{Value as Json, json};
use terrane_app::domain::{Identity, RequestContext, RequestOrigin, Scopes};
use terrane_app::jobs::JobError;
use terrane_app::ports::jobs::{JobState, Jobs as _, lease_name};
use terrane_app::ports::leases::Leases as _;

use crate::house::{House, JOBS, body, id, query, status_and_code};

#[tokio::test]
async fn job_is_stored_run_and_read_in_pages() {
    let house = House::new().await;
    let submitted = house.submit(json!({})).await;
    assert_eq!(submitted.status.as_u16(), 202, "{}", body(&submitted));
    let id = id(&submitted);
    assert_eq!(id.len(), 32);
    let path = format!("{JOBS}/{id}");
    assert_eq!(submitted.headers["location"], *path);
    assert!(submitted.headers.contains_key("retry-after"));
    assert_eq!(body(&submitted)["status"], "pending");
    assert_eq!(body(&submitted)["progress"], Json::Null);
    let early = house.get(&format!("{path}/result")).await;
    assert_eq!(status_and_code(&early), (409, "CONFLICT".to_owned()));
    assert_eq!(body(&early)["error"]["details"]["state"], "pending");
    let runner = house.run();
    let ended = house.get(&format!("{path}?wait=30")).await;
    assert_eq!(body(&ended)["status"], "complete", "{}", body(&ended));
    let rows = body(&ended)["row_count"].as_u64().unwrap();
    let whole = body(&house.get(&format!("{path}/result")).await);
    let as_of = whole["meta"]["as_of"].as_str().unwrap();
    assert_eq!(whole["meta"], json!({"total_rows": rows, "returned_rows": rows, "warnings": [], "as_of": as_of}));
    assert_eq!(whole["data"].as_array().unwrap().len() as u64, rows);
    let direct = body(&house.ask("POST", "/api/v1/query", json!({}), Some(query())).await);
    assert_eq!((&whole["data"], &direct["meta"]["as_of"]), (&direct["data"], &json!(as_of)));
    let beyond = body(&house.get(&format!("{path}/result?offset={rows}")).await);
    let meta = json!({"total_rows": rows, "returned_rows": 0, "warnings": [], "as_of": as_of});
    assert_eq!(beyond, json!({"data": [], "meta": meta}));
    for (accept, first) in [("text/csv", "orders."), ("application/vnd.apache.arrow.stream", "\u{fffd}")] {
        let page = house.ask("GET", &format!("{path}/result"), json!({"accept": accept}), None).await;
        assert_eq!(page.headers["x-terrane-total-rows"], rows.to_string());
        assert_eq!(page.headers["x-terrane-as-of"], as_of);
        assert!(String::from_utf8_lossy(&page.body).starts_with(first), "{accept}");
    }
    let list = body(&house.get(JOBS).await);
    assert_eq!(list["jobs"][0]["job_id"], *id);
    // Deleting the result twice has the same answer.
    for _ in 0..2 {
        let deleted = house.ask("DELETE", &path, json!({}), None).await;
        assert_eq!((deleted.status.as_u16(), &body(&deleted)["status"]), (200, &json!("expired")));
    }
    let gone = house.get(&format!("{path}/result")).await;
    assert_eq!(status_and_code(&gone), (410, "GONE".to_owned()));
    assert_eq!(body(&gone)["error"]["details"]["reason"], "expired");
    runner.abort();
}

#[tokio::test]
async fn preference_to_wait_answers_the_finished_job() {
    let house = House::new().await;
    let runner = house.run();
    let submitted = house.submit(json!({"prefer": "wait=30"})).await;
    assert_eq!((submitted.status.as_u16(), &body(&submitted)["status"]), (200, &json!("complete")));
    runner.abort();
}

#[tokio::test]
async fn idempotency_key_names_one_job() {
    let house = House::new().await;
    let headers = json!({"idempotency-key": "monday"});
    let first = house.submit(headers.clone()).await;
    let second = house.submit(headers.clone()).await;
    assert_eq!(id(&first), id(&second));
    let other = house.ask("POST", JOBS, headers, Some(json!({"measures": ["orders.count"]}))).await;
    assert_eq!(status_and_code(&other), (422, "VALIDATION_ERROR".to_owned()));
    let long = house.submit(json!({"idempotency-key": "k".repeat(256)})).await;
    assert_eq!(status_and_code(&long), (400, "INVALID_QUERY".to_owned()));
}

#[tokio::test]
async fn pending_job_is_cancelled_at_once() {
    let house = House::new().await;
    let path = format!("{JOBS}/{}", id(&house.submit(json!({})).await));
    for _ in 0..2 {
        let cancelled = house.ask("DELETE", &path, json!({}), None).await;
        assert_eq!((cancelled.status.as_u16(), &body(&cancelled)["status"]), (200, &json!("cancelled")));
    }
    assert_eq!(house.get(&format!("{path}/result")).await.status.as_u16(), 409);
}

#[tokio::test]
async fn unknown_and_foreign_jobs_are_not_found() {
    let house = House::new().await;
    let unknown = format!("{JOBS}/{}", "0".repeat(32));
    for (method, path) in [("GET", unknown.clone()), ("DELETE", unknown.clone()), ("GET", format!("{unknown}/result"))]
    {
        assert_eq!(status_and_code(&house.ask(method, &path, json!({}), None).await), (404, "NOT_FOUND".to_owned()));
    }
    for (body, code) in [
        (json!({"measures": ["orders.nothing"]}), "INVALID_MEASURE"),
        (json!({"measures": ["orders.count"], "totals": true}), "INVALID_QUERY"),
    ] {
        let refused = house.ask("POST", JOBS, json!({}), Some(body)).await;
        assert_eq!(status_and_code(&refused), (400, code.to_owned()));
    }
    assert_eq!(status_and_code(&house.get(&format!("{unknown}?wait=31")).await), (400, "INVALID_QUERY".to_owned()));
    let job = id(&house.submit(json!({})).await);
    let stranger = Identity { scopes: Scopes::READ, tenant: Some("another".into()), ..Identity::default() };
    let (jobs, context) = (&house.edge.app().services.jobs, RequestContext::default());
    assert!(matches!(jobs.job(&stranger, &job).await, Err(JobError::Unknown)));
    assert!(matches!(jobs.cancel(&stranger, &RequestOrigin::default(), &job).await, Err(JobError::Unknown)));
    assert!(matches!(jobs.output(&stranger, &context, &job, 0, 1).await, Err(JobError::Unknown)));
    assert!(jobs.list(&stranger, 10).await.unwrap().is_empty());
    assert_eq!(body(&house.get(&format!("{JOBS}/{job}")).await)["status"], "pending", "nothing was cancelled");
}

#[tokio::test]
async fn lost_result_is_unavailable_and_not_gone() {
    let house = House::new().await;
    let runner = house.run();
    let path = format!("{JOBS}/{}", id(&house.submit(json!({"prefer": "wait=30"})).await));
    runner.abort();
    std::fs::rename(house.folder.path().join("results"), house.folder.path().join("away")).unwrap();
    let lost = house.get(&format!("{path}/result")).await;
    assert_eq!(status_and_code(&lost), (503, "RESULTS_UNAVAILABLE".to_owned()));
    std::fs::rename(house.folder.path().join("away"), house.folder.path().join("results")).unwrap();
    assert_eq!(house.get(&format!("{path}/result")).await.status.as_u16(), 200);
}

/// A job fails if its holder died in both attempts. Late calls of a dead holder change nothing.
#[tokio::test]
async fn third_attempt_is_a_failure() {
    let house = House::new().await;
    let id = id(&house.submit(json!({})).await);
    let now = house.edge.app().services.clock.now();
    let mut stale = None;
    for attempt in 1..=2 {
        let free = house.store.claimable(9).await.unwrap();
        assert_eq!(free.iter().map(|id| &**id).collect::<Vec<_>>(), [id.as_str()]);
        let lease = house.store.acquire(&lease_name(&id), "dead", Duration::from_secs(60)).await.unwrap().unwrap();
        assert!(house.store.claimable(9).await.unwrap().is_empty(), "a held job is not free");
        let job = house.store.begin(&id, &lease, 2, now).await.unwrap().unwrap();
        assert_eq!((job.state, job.attempts), (JobState::Running, attempt));
        house.store.release(&lease).await.unwrap();
        stale = Some(lease);
    }
    let runner = house.run();
    let ended = body(&house.get(&format!("{JOBS}/{id}?wait=30")).await);
    assert_eq!((&ended["status"], &ended["error"]["code"]), (&json!("failed"), &json!("INTERRUPTED")));
    let stale = stale.unwrap();
    assert_eq!(house.store.report(&id, &stale, Some(50)).await.unwrap(), None);
    runner.abort();
}
