//! Tests quotas of open jobs, and the share of permits that jobs have.

use std::sync::atomic::Ordering;

use serde_json::json;
use terrane_app::domain::{Identity, Scopes};
use terrane_app::jobs::{JobError, JobSettings};
use terrane_app::ports::jobs::JobQuota;
use terrane_compiler::SecurityContext;
use terrane_conformance_tests::case::World;
use terrane_conformance_tests::fakes::FakeBehavior;

use crate::house::{House, JOBS, id, query, status_and_code, until};

#[tokio::test]
async fn caller_over_the_quota_is_rate_limited() {
    let quota = JobQuota { open: 3, open_per_tenant: None, open_per_caller: 2 };
    let jobs = JobSettings { quota, ..JobSettings::default() };
    let house = House::of(World { jobs, ..World::default() }, 0).await;
    let first = id(&house.submit(json!({})).await);
    assert_eq!(house.submit(json!({"idempotency-key": "k"})).await.status.as_u16(), 202);
    let refused = house.submit(json!({})).await;
    assert_eq!(status_and_code(&refused), (429, "RATE_LIMITED".to_owned()));
    assert!(refused.headers.contains_key("retry-after"));
    // A request with a known idempotency key creates no job.
    assert_eq!(house.submit(json!({"idempotency-key": "k"})).await.status.as_u16(), 202);
    let another = Identity { scopes: Scopes::READ, tenant: Some("another".into()), ..Identity::default() };
    house.submit_as(&another).await.unwrap();
    assert!(matches!(house.submit_as(&another).await, Err(JobError::Full { open: 3 })));
    let full = house.submit(json!({})).await;
    assert_eq!(status_and_code(&full), (503, "OVERLOADED".to_owned()));
    house.delete(&format!("{JOBS}/{first}")).await;
    assert_eq!(house.submit(json!({})).await.status.as_u16(), 202);
}

#[tokio::test]
async fn tenant_over_the_quota_is_refused_and_others_are_served() {
    let quota = JobQuota { open: 9, open_per_tenant: Some(2), open_per_caller: 9 };
    let jobs = JobSettings { quota, ..JobSettings::default() };
    let house = House::of(World { jobs, ..World::default() }, 0).await;
    let caller = |user: &str, tenant: Option<&str>| {
        let tenant = tenant.map(Into::into);
        let caller = SecurityContext { user_id: user.into(), ..SecurityContext::default() };
        Identity { caller, scopes: Scopes::READ, tenant, ..Identity::default() }
    };
    for user in ["ada", "bo"] {
        house.submit_as(&caller(user, Some("north"))).await.unwrap();
    }
    let refused = house.submit_as(&caller("cyd", Some("north"))).await;
    assert!(matches!(refused, Err(JobError::TenantFull { open: 2 })));
    house.submit_as(&caller("cyd", Some("south"))).await.unwrap();
    // Callers without a tenant are not one tenant.
    for user in ["dee", "eve", "fay"] {
        house.submit_as(&caller(user, None)).await.unwrap();
    }
}

/// The only permit of interactive queries is free while jobs hold all of their own permits.
#[tokio::test]
async fn jobs_take_no_permit_of_interactive_queries() {
    let world = World { warehouse: FakeBehavior::Hangs, ..World::default() };
    let (running, concurrency) = (world.running.clone(), world.jobs.concurrency);
    let house = House::of(world, 0).await;
    for _ in 0..concurrency + 3 {
        house.submit(json!({})).await;
    }
    let runner = house.run();
    until(|| running.load(Ordering::Relaxed) == concurrency).await;
    let queries = house.edge.app().services.queries.clone();
    assert_eq!(queries.load(), (0, 0));
    {
        let interactive = house.ask("POST", "/api/v1/query", json!({}), Some(query()));
        tokio::pin!(interactive);
        tokio::select! {
            _ = &mut interactive => panic!("the warehouse hangs"),
            () = until(|| running.load(Ordering::Relaxed) == concurrency + 1) => {}
        }
        assert_eq!(queries.load(), (1, 0));
    }
    assert_eq!(running.load(Ordering::Relaxed), concurrency, "no further job was begun");
    until(|| house.edge.app().services.jobs.pending() == 3).await;
    runner.abort();
}
