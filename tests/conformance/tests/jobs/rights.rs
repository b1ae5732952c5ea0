//! Tests that rights are checked at three times: when a job is submitted, when it runs, and when its result is read.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;
use terrane_app::domain::{Identity, RequestContext, Scopes};
use terrane_app::jobs::{GoneReason, JobError, JobOutput};
use terrane_app::ports::audit::AuditEntry;
use terrane_app::ports::credentials::{ApiKey, Credentials as _};
use terrane_app::ports::jobs::JobState;
use terrane_compiler::SecurityContext;
use terrane_conformance_tests::case::World;
use terrane_conformance_tests::fakes::FakeBehavior;
use terrane_conformance_tests::hooks::FakeHook;
use terrane_conformance_tests::project::{snapshot, snapshot_with};

use crate::house::{House, JOBS, body, id, status_and_code};

const FILTER: &str = "policies:
  - {name: own, cubes: [orders], row_filter: \"{orders}.status = 'open'\"}
";
const CLOSED: &str = "policies:
  - {name: closed, cubes: [orders], deny: [status]}
";

fn key(id: &str) -> ApiKey {
    ApiKey {
        id: id.into(),
        name: "a".into(),
        secret_hash: [1; 32],
        scopes: Scopes::READ,
        caller: SecurityContext { user_id: format!("key:{id}").into(), ..SecurityContext::default() },
        tenant: None,
        created_at: Timestamp::UNIX_EPOCH,
        expires_at: None,
        revoked_at: None,
    }
}

fn holder(key: &ApiKey) -> Identity {
    Identity {
        caller: key.caller.clone(),
        scopes: key.scopes,
        credential: format!("key:{}", key.id).into(),
        ..Identity::default()
    }
}

fn entry(event: &str) -> AuditEntry {
    AuditEntry { event: event.into(), ..AuditEntry::default() }
}

async fn revoke(house: &House, key: &ApiKey) {
    let revoked = ApiKey { revoked_at: Some(Timestamp::UNIX_EPOCH), ..key.clone() };
    assert!(house.store.replace_key(key, &revoked, entry("key_revoked")).await.unwrap());
}

/// Returns the number of rows of a query's result.
fn rows_of(output: JobOutput) -> Option<u64> {
    match output {
        JobOutput::Rows(page) => Some(page.total_rows),
        JobOutput::Profile(_) => None,
    }
}

#[tokio::test]
async fn changed_policy_closes_the_result_until_it_is_as_before() {
    let house = House::new().await;
    let runner = house.run();
    let path = format!("{JOBS}/{}/result", id(&house.submit(json!({"prefer": "wait=30"})).await));
    let catalog = house.edge.app().services.catalog.clone();
    for policies in [FILTER, CLOSED] {
        catalog.replace(snapshot_with(policies));
        let closed = house.get(&path).await;
        assert_eq!(status_and_code(&closed), (410, "GONE".to_owned()), "{policies}");
        assert_eq!(body(&closed)["error"]["details"]["reason"], "policy_changed");
    }
    catalog.replace(snapshot());
    assert_eq!(house.get(&path).await.status.as_u16(), 200);
    runner.abort();
}

#[tokio::test]
async fn result_stays_readable_when_pre_aggregations_change() {
    let house = House::of(World { has_tables: true, ..World::default() }, 0).await;
    let runner = house.run();
    let sales = json!({"measures": ["sales.count"], "dimensions": ["sales.region"]});
    let submitted = house.ask("POST", JOBS, json!({"prefer": "wait=30"}), Some(sales)).await;
    let path = format!("{JOBS}/{}/result", id(&submitted));
    house.edge.app().services.queries.publish_rollups(Arc::default());
    assert_eq!(house.get(&path).await.status.as_u16(), 200);
    runner.abort();
}

#[tokio::test]
async fn job_runs_under_the_policies_of_its_run() {
    let house = House::new().await;
    let path = format!("{JOBS}/{}", id(&house.submit(json!({})).await));
    house.edge.app().services.catalog.replace(snapshot_with(FILTER));
    let denied = format!("{JOBS}/{}", id(&house.submit(json!({})).await));
    let runner = house.run();
    assert_eq!(body(&house.get(&format!("{path}?wait=30")).await)["status"], "complete");
    assert_eq!(body(&house.get(&format!("{denied}?wait=30")).await)["status"], "complete");
    // Both jobs ran with the row filter. Without the filter, their results must not be readable.
    assert_eq!(house.get(&format!("{path}/result")).await.status.as_u16(), 200);
    house.edge.app().services.catalog.replace(snapshot());
    assert_eq!(house.get(&format!("{path}/result")).await.status.as_u16(), 410);
    runner.abort();
}

#[tokio::test]
async fn job_of_a_caller_who_lost_the_right_fails() {
    let house = House::new().await;
    let path = format!("{JOBS}/{}", id(&house.submit(json!({})).await));
    house.edge.app().services.catalog.replace(snapshot_with(CLOSED));
    let runner = house.run();
    let failed = body(&house.get(&format!("{path}?wait=30")).await);
    assert_eq!(failed["status"], "failed", "{failed}");
    assert_eq!(failed["error"]["code"], "INVALID_DIMENSION");
    runner.abort();
}

#[tokio::test]
async fn reader_with_other_attributes_does_not_see_the_result() {
    let hook = FakeHook { id: "region".to_owned(), filters: Some("orders.status".to_owned()), ..FakeHook::default() };
    let house = House::of(World { hooks: vec![hook], ..World::default() }, 0).await;
    let runner = house.run();
    let identity = holder(&key("0f3c9a5b1d2e4f60"));
    house.store.add_key(&key("0f3c9a5b1d2e4f60"), entry("key_created")).await.unwrap();
    let job = house.submit_as(&identity).await.unwrap();
    assert_eq!(house.ended(&identity, &job.id).await.state, JobState::Complete);
    let (jobs, context) = (&house.edge.app().services.jobs, RequestContext::default());
    assert_eq!(jobs.output(&identity, &context, &job.id, 0, 9).await.ok().and_then(rows_of), Some(2));
    let policy =
        "policies:\n  - {name: region, cubes: [orders], row_filter: \"{orders}.status IN {{ user.roles }}\"}\n";
    house.edge.app().services.catalog.replace(snapshot_with(policy));
    let paid = |role: &str| {
        let caller = SecurityContext { roles: vec![Arc::from(role)], ..identity.caller.clone() };
        Identity { caller, ..identity.clone() }
    };
    let job = house.submit_as(&paid("paid")).await.unwrap();
    assert_eq!(house.ended(&identity, &job.id).await.state, JobState::Complete);
    assert!(jobs.output(&paid("paid"), &context, &job.id, 0, 9).await.is_ok());
    let closed = jobs.output(&paid("open"), &context, &job.id, 0, 9).await;
    assert!(matches!(closed, Err(JobError::Gone { reason: GoneReason::PolicyChanged })));
    // The number of rows is hidden together with the rows.
    for (role, is_seen) in [("paid", true), ("open", false)] {
        assert_eq!(jobs.job(&paid(role), &job.id).await.unwrap().manifest.is_some(), is_seen, "{role}");
        let listed = jobs.list(&paid(role), 9).await.unwrap();
        let listed = listed.iter().find(|listed| listed.id == job.id).unwrap();
        assert_eq!(listed.manifest.is_some(), is_seen, "{role}");
    }
    runner.abort();
}

#[tokio::test]
async fn revoked_key_ends_pending_and_running_jobs() {
    let world = World { warehouse: FakeBehavior::Hangs, ..World::default() };
    let house = House::of(world, 0).await;
    let key = key("0f3c9a5b1d2e4f60");
    house.store.add_key(&key, entry("key_created")).await.unwrap();
    let identity = holder(&key);
    let running = house.submit_as(&identity).await.unwrap();
    let runner = house.run();
    loop {
        let job = house.edge.app().services.jobs.job(&identity, &running.id).await.unwrap();
        if job.state == JobState::Running {
            break;
        }
        tokio::task::yield_now().await;
    }
    revoke(&house, &key).await;
    let pending = house.submit_as(&identity).await.unwrap();
    for id in [&running.id, &pending.id] {
        let job = house.ended(&identity, id).await;
        assert_eq!(job.state, JobState::Failed);
        assert_eq!(job.failure.as_ref().map(|failure| &*failure.code), Some("FORBIDDEN"));
    }
    runner.abort();
}
