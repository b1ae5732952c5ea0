//! Tests jobs that end without a result.

use std::os::unix::fs::symlink;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;
use terrane_app::jobs::JobSettings;
use terrane_conformance_tests::case::World;
use terrane_conformance_tests::fakes::FakeBehavior;

use crate::house::{House, JOBS, body, id, status_and_code, until};

#[tokio::test]
async fn cancelled_job_stops_its_statement() {
    let world = World { warehouse: FakeBehavior::Hangs, ..World::default() };
    let running = world.running.clone();
    let house = House::of(world, 0).await;
    let runner = house.run();
    let path = format!("{JOBS}/{}", id(&house.submit(json!({})).await));
    until(|| running.load(Ordering::Relaxed) == 1).await;
    assert_eq!(body(&house.get(&path).await)["status"], "running");
    for _ in 0..2 {
        let cancelled = house.delete(&path).await;
        assert_eq!((cancelled.status.as_u16(), &body(&cancelled)["status"]), (200, &json!("cancelled")));
        assert_eq!(running.load(Ordering::Relaxed), 0, "the statement has stopped");
    }
    let result = house.get(&format!("{path}/result")).await;
    assert_eq!(status_and_code(&result), (409, "CONFLICT".to_owned()));
    assert_eq!(body(&result)["error"]["details"]["state"], "cancelled");
    runner.abort();
}

#[tokio::test]
async fn result_expires_at_its_time() {
    let jobs = JobSettings { result_lifetime: Duration::ZERO, ..JobSettings::default() };
    let house = House::of(World { jobs, ..World::default() }, 0).await;
    let runner = house.run();
    let submitted = house.submit(json!({"prefer": "wait=30"})).await;
    assert_eq!((submitted.status.as_u16(), &body(&submitted)["status"]), (200, &json!("expired")));
    let gone = house.get(&format!("{JOBS}/{}/result", id(&submitted))).await;
    assert_eq!(status_and_code(&gone), (410, "GONE".to_owned()));
    assert_eq!(body(&gone)["error"]["details"]["reason"], "expired");
    runner.abort();
}

#[tokio::test]
async fn failed_query_is_the_failure_of_its_job() {
    let house = House::of(World { warehouse: FakeBehavior::Refuses, ..World::default() }, 0).await;
    let runner = house.run();
    let failed = body(&house.submit(json!({"prefer": "wait=30"})).await);
    assert_eq!((&failed["status"], &failed["error"]["code"]), (&json!("failed"), &json!("WAREHOUSE_ERROR")));
    runner.abort();
}

#[tokio::test]
async fn job_below_the_floor_of_free_disk_fails() {
    let house = House::of(World::default(), u64::MAX).await;
    let runner = house.run();
    let failed = body(&house.submit(json!({"prefer": "wait=30"})).await);
    assert_eq!((&failed["status"], &failed["error"]["code"]), (&json!("failed"), &json!("RESULTS_UNAVAILABLE")));
    assert!(failed["error"]["message"].as_str().unwrap().contains("full"), "{failed}");
    assert_eq!(house.folder.path().join("results").read_dir().unwrap().count(), 0);
    runner.abort();
}

/// The file of the first attempt is a link to a device without free space.
#[tokio::test]
async fn full_disk_fails_the_job_and_leaves_nothing_behind() {
    let house = House::new().await;
    let id = id(&house.submit(json!({})).await);
    let results = house.folder.path().join("results");
    symlink("/dev/full", results.join(format!("{id}.1.arrow.tmp"))).unwrap();
    let runner = house.run();
    let failed = body(&house.get(&format!("{JOBS}/{id}?wait=30")).await);
    assert_eq!((&failed["status"], &failed["error"]["code"]), (&json!("failed"), &json!("RESULTS_UNAVAILABLE")));
    assert_eq!(results.read_dir().unwrap().count(), 0);
    // The next job writes to a device with free space.
    let next = body(&house.submit(json!({"prefer": "wait=30"})).await);
    assert_eq!(next["status"], "complete");
    runner.abort();
}

#[tokio::test]
async fn lost_folder_fails_the_job() {
    let house = House::new().await;
    let results = house.folder.path().join("results");
    std::fs::remove_dir(&results).unwrap();
    let runner = house.run();
    let failed = body(&house.submit(json!({"prefer": "wait=30"})).await);
    assert_eq!((&failed["status"], &failed["error"]["code"]), (&json!("failed"), &json!("RESULTS_UNAVAILABLE")));
    runner.abort();
}
