//! Tests the state of pre-aggregations on SQLite: builds, leases and published generations.

#![allow(clippy::unwrap_used, reason = "a test stops at its first fault")]

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use terrane_app::ports::audit::{AuditEntry, AuditFilter, AuditLog as _};
use terrane_app::ports::leases::{Lease, Leases as _};
use terrane_app::ports::preaggregations::{
    BuildEnding, BuildOrigin, BuildState, ComputedQueries, PreaggregationState as _, Publication, PublishedTable,
    QueryShape, RollupBuild, RollupName,
};
use terrane_compiler::rollup::BucketRange;
use terrane_compiler::types::Granularity;
use terrane_store::StateStore;

const TARGET: &str = "r1";

async fn store(folder: &tempfile::TempDir) -> StateStore {
    StateStore::open("sqlite://state.db", folder.path()).await.unwrap()
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

async fn lease(store: &StateStore, holder: &str) -> Lease {
    store.acquire("preaggregations", holder, Duration::ZERO).await.unwrap().unwrap()
}

fn build(id: &str, name: &str, due: i64) -> RollupBuild {
    let rollup = RollupName { cube: "orders".into(), name: name.into() };
    RollupBuild::pending(id, TARGET, rollup, BuildOrigin::Schedule, at(due))
}

fn table(name: &str, start: i64) -> PublishedTable {
    PublishedTable {
        name: name.into(),
        range: Some(BucketRange { start, end: start + 10 }),
        rows: 7,
        bytes: None,
        built_at: at(1),
        mark: "m".into(),
    }
}

fn publication(build: &RollupBuild, tables: Vec<PublishedTable>, second: i64) -> Publication {
    Publication {
        rollup: build.rollup.clone(),
        fingerprint: "ab".into(),
        generation: 0,
        extent: Some([0, 19]),
        refresh_digest: Some("d".into()),
        checked_at: at(second),
        published_at: at(second),
        tables,
    }
}

fn entry(event: &str) -> AuditEntry {
    AuditEntry { at: at(0), event: event.into(), count: 1, ..AuditEntry::default() }
}

fn names(tables: &[PublishedTable]) -> Vec<&str> {
    tables.iter().map(|table| &*table.name).collect()
}

#[tokio::test]
async fn generation_is_published_atomically_and_retires_missing_tables() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder).await;
    let lease = lease(&store, "one").await;
    assert_eq!(store.publications(TARGET).await.unwrap(), (0, Vec::new()));
    store.enqueue(&build("b1", "daily", 0), None).await.unwrap();
    let running = store.claim(&lease, TARGET, at(0)).await.unwrap().unwrap();
    assert_eq!((running.state, running.attempts, running.started_at), (BuildState::Running, 1, Some(at(0))));
    let first = publication(&running, vec![table("t1", 0), table("t2", 10)], 5);
    assert!(store.publish(&lease, &running, &first, entry("preagg_built")).await.unwrap());
    let (version, published) = store.publications(TARGET).await.unwrap();
    assert_eq!((version, published), (1, vec![Publication { generation: 1, ..first.clone() }]));
    let ended = store.build("b1").await.unwrap().unwrap();
    assert_eq!((ended.state, ended.rows, ended.generation), (BuildState::Success, Some(14), Some(1)));

    // The next generation uses one of the tables again. The other table is retired, and exists until its record is
    // deleted.
    store.enqueue(&build("b2", "daily", 10), None).await.unwrap();
    let running = store.claim(&lease, TARGET, at(10)).await.unwrap().unwrap();
    let second = publication(&running, vec![table("t1", 0), table("t3", 10)], 15);
    assert!(store.publish(&lease, &running, &second, entry("preagg_built")).await.unwrap());
    let (version, published) = store.publications(TARGET).await.unwrap();
    assert_eq!((version, names(&published[0].tables)), (2, vec!["t1", "t3"]));
    assert_eq!(store.retired(TARGET, at(15)).await.unwrap(), Vec::<Arc<str>>::new());
    assert_eq!(store.retired(TARGET, at(16)).await.unwrap(), ["t2".into()]);
    // A table that the generation uses is not forgotten.
    assert!(store.forget(&lease, &["t2".into(), "t1".into()]).await.unwrap());
    assert_eq!(store.tables(TARGET).await.unwrap(), ["t1".into(), "t3".into()]);
    let records = store.records(&AuditFilter { limit: 10, ..AuditFilter::default() }).await.unwrap();
    assert_eq!(records.len(), 2);

    assert!(store.withdraw(&lease, TARGET, std::slice::from_ref(&running.rollup), at(20)).await.unwrap());
    assert_eq!(store.publications(TARGET).await.unwrap(), (3, Vec::new()));
    assert_eq!(store.retired(TARGET, at(21)).await.unwrap().len(), 2);
}

#[tokio::test]
async fn holder_of_an_older_lease_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder).await;
    let old = lease(&store, "one").await;
    store.enqueue(&build("b1", "daily", 0), None).await.unwrap();
    let running = store.claim(&old, TARGET, at(0)).await.unwrap().unwrap();
    let new = lease(&store, "two").await;
    let publication = publication(&running, vec![table("t1", 0)], 5);
    assert!(!store.publish(&old, &running, &publication, entry("preagg_built")).await.unwrap());
    assert_eq!(store.advance(&old, "b1", 1, 1).await.unwrap(), None);
    assert!(!store.end(&old, &running, &BuildEnding::Cancelled, at(6)).await.unwrap());
    assert_eq!(store.claim(&old, TARGET, at(6)).await.unwrap(), None);
    assert_eq!(store.publications(TARGET).await.unwrap(), (0, Vec::new()));
    // The new holder of the lease takes over the build.
    assert_eq!(store.requeue(&new, TARGET, at(7)).await.unwrap(), 1);
    let again = store.claim(&new, TARGET, at(7)).await.unwrap().unwrap();
    assert_eq!((&*again.id, again.attempts), ("b1", 2));
    assert!(store.publish(&new, &again, &publication, entry("preagg_built")).await.unwrap());
}

#[tokio::test]
async fn cancelled_build_publishes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder).await;
    let lease = lease(&store, "one").await;
    store.enqueue(&build("b1", "daily", 0), None).await.unwrap();
    let running = store.claim(&lease, TARGET, at(0)).await.unwrap().unwrap();
    let cancelled = store.cancel("b1", at(2), entry("preagg_build_cancelled")).await.unwrap().unwrap();
    assert_eq!((cancelled.state, cancelled.ended_at), (BuildState::Cancelled, Some(at(2))));
    assert_eq!(store.advance(&lease, "b1", 1, 2).await.unwrap(), Some(BuildState::Cancelled));
    let publication = publication(&running, vec![table("t1", 0)], 5);
    assert!(!store.publish(&lease, &running, &publication, entry("preagg_built")).await.unwrap());
    assert_eq!(store.publications(TARGET).await.unwrap(), (0, Vec::new()));
    // Cancelling an ended build does not change it.
    let again = store.cancel("b1", at(9), entry("preagg_build_cancelled")).await.unwrap().unwrap();
    assert_eq!(again.ended_at, Some(at(2)));
    assert_eq!(store.cancel("b9", at(9), entry("preagg_build_cancelled")).await.unwrap(), None);
}

#[tokio::test]
async fn requests_of_one_rollup_share_a_build() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder).await;
    let lease = lease(&store, "one").await;
    store.enqueue(&build("b1", "daily", 10), None).await.unwrap();
    let asked = |id: &str, partitions: &[i64]| RollupBuild {
        origin: BuildOrigin::Request,
        partitions: partitions.to_vec(),
        requested_by: Some("ann".into()),
        ..build(id, "daily", 5)
    };
    let merged = store.enqueue(&asked("b2", &[3]), Some(entry("preagg_refresh_requested"))).await.unwrap();
    assert_eq!((&*merged.id, merged.origin, merged.due_at), ("b1", BuildOrigin::Request, at(5)));
    // The scheduled build covers all partitions.
    assert_eq!(merged.partitions, Vec::<i64>::new());
    store.enqueue(&asked("b3", &[3]), None).await.unwrap();
    store.enqueue(&build("b4", "hourly", 7), None).await.unwrap();
    assert_eq!(store.next_due(TARGET).await.unwrap(), Some(at(5)));
    assert_eq!(store.claim(&lease, TARGET, at(4)).await.unwrap(), None);
    assert_eq!(&*store.claim(&lease, TARGET, at(20)).await.unwrap().unwrap().id, "b1");
    // Requests during a build are merged into another build.
    store.enqueue(&asked("b5", &[8]), None).await.unwrap();
    let merged = store.enqueue(&asked("b6", &[3, 8]), None).await.unwrap();
    assert_eq!((&*merged.id, merged.partitions), ("b5", vec![3, 8]));
    assert_eq!(store.builds(TARGET, 10).await.unwrap().len(), 3);
    assert_eq!(store.builds("r2", 10).await.unwrap(), Vec::new());
}

#[tokio::test]
async fn failed_build_waits_for_its_next_attempt() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder).await;
    let lease = lease(&store, "one").await;
    store.enqueue(&build("b1", "daily", 0), None).await.unwrap();
    let running = store.claim(&lease, TARGET, at(0)).await.unwrap().unwrap();
    let retry = BuildEnding::Retry { due_at: at(30), code: "NOT_VERIFIED".into(), message: "m".into() };
    assert!(store.end(&lease, &running, &retry, at(1)).await.unwrap());
    assert_eq!(store.claim(&lease, TARGET, at(29)).await.unwrap(), None);
    let running = store.claim(&lease, TARGET, at(30)).await.unwrap().unwrap();
    assert_eq!((running.attempts, running.error_code.as_deref()), (2, Some("NOT_VERIFIED")));
    let failed = BuildEnding::Failed { code: "NOT_VERIFIED".into(), message: "m".into() };
    assert!(store.end(&lease, &running, &failed, at(31)).await.unwrap());
    let ended = store.build("b1").await.unwrap().unwrap();
    assert_eq!((ended.state, ended.ended_at), (BuildState::Failed, Some(at(31))));
    assert_eq!(store.prune_builds(&lease, TARGET, at(31)).await.unwrap(), 0);
    assert_eq!(store.prune_builds(&lease, TARGET, at(32)).await.unwrap(), 1);
    // A check that finds unchanged rows sets `checked_at` of the published generation.
    store.enqueue(&build("b2", "daily", 40), None).await.unwrap();
    let running = store.claim(&lease, TARGET, at(40)).await.unwrap().unwrap();
    let published = publication(&running, vec![table("t1", 0)], 41);
    assert!(store.publish(&lease, &running, &published, entry("preagg_built")).await.unwrap());
    store.enqueue(&build("b3", "daily", 50), None).await.unwrap();
    let running = store.claim(&lease, TARGET, at(50)).await.unwrap().unwrap();
    assert!(store.end(&lease, &running, &BuildEnding::Unchanged, at(52)).await.unwrap());
    let (_, published) = store.publications(TARGET).await.unwrap();
    assert_eq!((published[0].checked_at, published[0].published_at), (at(52), at(41)));
}

#[tokio::test]
async fn computed_queries_of_one_shape_are_added_up() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder).await;
    let computed = |queries: u64, region: &str, second: i64| ComputedQueries {
        shape: QueryShape {
            cube: "orders".into(),
            measures: vec!["count".into(), "revenue".into()],
            dimensions: vec![format!("customers.{region}").into()],
            segments: Vec::new(),
            time: Some(("orders.placed_at".into(), Granularity::Month)),
        },
        queries,
        warehouse: Duration::from_millis(queries * 10),
        last_at: at(second),
    };
    store.record_queries(TARGET, &[computed(2, "region", 1), computed(1, "city", 1)]).await.unwrap();
    store.record_queries(TARGET, &[computed(3, "region", 9)]).await.unwrap();
    assert_eq!(store.computed_queries(TARGET).await.unwrap(), [computed(5, "region", 9), computed(1, "city", 1)]);
    // Another target has its own counts, even for the same shape. Only pruning that target deletes them.
    let other = [computed(7, "city", 1)];
    store.record_queries("r2", &other).await.unwrap();
    assert_eq!(store.computed_queries(TARGET).await.unwrap().len(), 2);
    let lease = lease(&store, "one").await;
    store.prune_builds(&lease, TARGET, at(5)).await.unwrap();
    assert_eq!(store.computed_queries(TARGET).await.unwrap(), [computed(5, "region", 9)]);
    assert_eq!(store.computed_queries("r2").await.unwrap(), other);
}
