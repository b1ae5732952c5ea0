//! Tests of the times at which versions change, with a clock that only the tests advance.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use arrow::array::{Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use terrane_compiler::model;
use terrane_compiler::project::{self, Inputs, SourceTree};

use super::*;
use crate::ports::invalidations::Invalidation;
use crate::ports::warehouse::{CatalogTable, RefusalCause, ResultSet, Statement, WarehouseErrorKind};

const CUBES: &str = "
cubes:
  - {name: plain, sql_table: plain}
  - {name: periodic, sql_table: periodic, refresh: {every: 1 minute}}
  - name: queried
    sql_table: queried
    refresh: {every: 30s, sql: SELECT max(updated_at) FROM queried}
  - {name: derived, extends: queried}
";

/// A clock that starts at the beginning of a minute.
#[derive(Default)]
struct FakeClock(AtomicU64);

impl FakeClock {
    fn advance(&self, time: Duration) {
        self.0.fetch_add(time.as_millis() as u64, Ordering::Relaxed);
    }
}

impl Clock for FakeClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(1_800_000_000).unwrap() + self.elapsed()
    }

    fn elapsed(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed))
    }
}

/// A warehouse with one value. `engine` is the version of its data; zero if it has none.
#[derive(Default)]
struct FakeWarehouse {
    value: AtomicU64,
    statements: AtomicUsize,
    engine: AtomicU64,
    changed_at: Mutex<Option<Timestamp>>,
    is_broken: std::sync::atomic::AtomicBool,
}

#[async_trait]
impl Warehouse for FakeWarehouse {
    fn name(&self) -> &str {
        "duckdb"
    }

    async fn execute(&self, statement: Statement<'_>, _: Duration) -> Result<ResultSet, WarehouseError> {
        assert_eq!(statement.text, "SELECT max(updated_at) FROM queried");
        self.statements.fetch_add(1, Ordering::Relaxed);
        tokio::task::yield_now().await;
        if self.is_broken.load(Ordering::Relaxed) {
            return Err(WarehouseError {
                warehouse: "duckdb".to_owned(),
                kind: WarehouseErrorKind::Refused,
                cause: RefusalCause::Other,
                message: "table `queried` does not exist".to_owned(),
                retries: 0,
            });
        }
        let schema: SchemaRef = Arc::new(Schema::new(vec![Field::new("v", DataType::Int64, false)]));
        let value = Int64Array::from(vec![self.value.load(Ordering::Relaxed) as i64]);
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(value)]).unwrap();
        Ok(ResultSet { schema, batches: vec![batch] })
    }

    async fn describe(&self, _: Statement<'_>) -> Result<SchemaRef, WarehouseError> {
        Ok(Arc::new(Schema::empty()))
    }

    async fn table(&self, _: &[&str]) -> Result<Option<CatalogTable>, WarehouseError> {
        Ok(None)
    }

    async fn ping(&self) -> Result<(), WarehouseError> {
        Ok(())
    }

    fn data_version(&self) -> Option<EngineVersion> {
        let version = self.engine.load(Ordering::Relaxed);
        let digest = [version as u8; 32];
        (version > 0).then(|| EngineVersion { digest, changed_at: *self.changed_at.lock().unwrap() })
    }
}

/// One list of reports that all replicas share.
#[derive(Default)]
struct SharedReports {
    reports: Mutex<Vec<Invalidation>>,
    is_down: std::sync::atomic::AtomicBool,
}

impl SharedReports {
    fn check(&self) -> Result<(), StoreError> {
        match self.is_down.load(Ordering::Relaxed) {
            true => Err(StoreError { message: "down".to_owned() }),
            false => Ok(()),
        }
    }
}

#[async_trait]
impl Invalidations for SharedReports {
    async fn invalidate(&self, scopes: &[InvalidationScope], _: Option<AuditEntry>) -> Result<(), StoreError> {
        self.check()?;
        let mut reports = self.reports.lock().unwrap();
        let sequence = reports.len() as u64 + 1;
        reports.extend(scopes.iter().map(|scope| Invalidation { scope: scope.clone(), sequence }));
        Ok(())
    }

    async fn invalidations(&self, after: u64) -> Result<Vec<Invalidation>, StoreError> {
        self.check()?;
        let reports = self.reports.lock().unwrap();
        Ok(reports.iter().filter(|report| report.sequence > after).cloned().collect())
    }
}

struct Replica {
    model: Model,
    clock: Arc<FakeClock>,
    warehouse: Arc<FakeWarehouse>,
    reports: Arc<SharedReports>,
    versions: DataVersions,
}

impl Replica {
    fn new() -> Self {
        Replica::beside(Arc::default(), Arc::default(), Arc::default())
    }

    fn beside(clock: Arc<FakeClock>, warehouse: Arc<FakeWarehouse>, reports: Arc<SharedReports>) -> Self {
        let files = [("service_project.yml", "name: p\nwarehouse: {type: duckdb}\n"), ("cubes/all.yml", CUBES)];
        let tree = SourceTree { files: files.map(|(path, text)| (path.into(), text.into())).into() };
        let (definitions, problems) = project::read(&tree, &Inputs::default());
        assert!(problems.is_empty(), "{problems:?}");
        let (model, _) = model::build(&definitions);
        let invalidations: Arc<dyn Invalidations> = reports.clone();
        let versions =
            DataVersions::new(warehouse.clone(), Some(invalidations), clock.clone(), Duration::from_secs(10));
        Replica { model, clock, warehouse, reports, versions }
    }

    async fn read(&self, cube: &str) -> VersionReading {
        self.read_for(cube, None).await.unwrap()
    }

    async fn read_for(&self, cube: &str, tenant: Option<&str>) -> Result<VersionReading, VersionError> {
        let cube = self.model.cube_named(cube).unwrap().id;
        self.versions.read(&self.model, &[cube], tenant.map(Arc::from).as_ref()).await
    }
}

fn scope(cube: Option<&str>, tenant: Option<&str>) -> InvalidationScope {
    InvalidationScope { cube: cube.map(Arc::from), tenant: tenant.map(Arc::from) }
}

#[tokio::test]
async fn cube_without_a_version_has_one_with_a_maximum_age() {
    let replica = Replica::new();
    let first = replica.read("plain").await;
    assert_eq!(first.max_age, Some(Duration::from_secs(10)));
    assert_eq!(first.as_of, replica.clock.now());
    replica.clock.advance(Duration::from_secs(3_600));
    assert_eq!(replica.read("plain").await.version, first.version);
}

#[tokio::test]
async fn cubes_without_refresh_have_the_version_of_the_engine() {
    let replica = Replica::new();
    replica.warehouse.engine.store(1, Ordering::Relaxed);
    let first = replica.read("plain").await;
    assert_eq!(first.max_age, None);
    replica.warehouse.engine.store(2, Ordering::Relaxed);
    replica.clock.advance(ENGINE_INTERVAL);
    let second = replica.read("plain").await;
    assert_ne!(second.version, first.version);
    let periodic = replica.read("periodic").await;
    replica.warehouse.engine.store(3, Ordering::Relaxed);
    replica.clock.advance(ENGINE_INTERVAL);
    assert_eq!(replica.read("periodic").await.version, periodic.version, "its author decides");
}

#[tokio::test]
async fn version_of_a_recently_changed_file_expires_soon() {
    let replica = Replica::new();
    replica.warehouse.engine.store(1, Ordering::Relaxed);
    *replica.warehouse.changed_at.lock().unwrap() = Some(replica.clock.now());
    assert_eq!(replica.read("plain").await.max_age, Some(Duration::from_secs(10)));
    replica.clock.advance(UNSETTLED);
    assert_eq!(replica.read("plain").await.max_age, None);
}

#[tokio::test]
async fn period_ends_are_equal_on_all_replicas() {
    let replica = Replica::new();
    let first = replica.read("periodic").await;
    assert_eq!(first.max_age, None);
    replica.clock.advance(Duration::from_millis(59_999));
    assert_eq!(replica.read("periodic").await.version, first.version);
    replica.clock.advance(Duration::from_millis(1));
    let second = replica.read("periodic").await;
    assert_ne!(second.version, first.version);
    let other = Replica::beside(replica.clock.clone(), replica.warehouse.clone(), replica.reports.clone());
    assert_eq!(other.read("periodic").await.version, second.version);
}

#[tokio::test]
async fn refresh_query_runs_once_per_interval() {
    let replica = Replica::new();
    let (first, second, derived) =
        tokio::join!(replica.read("queried"), replica.read("queried"), replica.read("derived"));
    assert_eq!(first.version, second.version);
    assert_ne!(first.version, derived.version, "another cube");
    assert_eq!(replica.warehouse.statements.load(Ordering::Relaxed), 1);
    replica.warehouse.value.store(7, Ordering::Relaxed);
    replica.clock.advance(Duration::from_secs(29));
    assert_eq!(replica.read("queried").await.version, first.version);
    replica.clock.advance(Duration::from_secs(1));
    let changed = replica.read("queried").await;
    assert_ne!(changed.version, first.version);
    assert_eq!(replica.warehouse.statements.load(Ordering::Relaxed), 2);
    replica.warehouse.value.store(0, Ordering::Relaxed);
    replica.clock.advance(Duration::from_secs(30));
    assert_eq!(replica.read("queried").await.version, first.version, "the same rows");
}

#[tokio::test]
async fn failing_refresh_query_is_an_error() {
    let replica = Replica::new();
    replica.warehouse.is_broken.store(true, Ordering::Relaxed);
    let refused = |read: Result<_, VersionError>| assert!(matches!(read, Err(VersionError::Refresh { .. })));
    refused(replica.read_for("queried", None).await);
    refused(replica.read_for("queried", None).await);
    assert_eq!(replica.warehouse.statements.load(Ordering::Relaxed), 1, "a failure is repeated for a while");
    replica.warehouse.is_broken.store(false, Ordering::Relaxed);
    replica.clock.advance(Duration::from_secs(1));
    replica.read("queried").await;
}

#[tokio::test]
async fn report_changes_only_the_versions_of_its_scope() {
    let replica = Replica::new();
    let tenants = [None, Some("a"), Some("b")];
    let all = async || {
        let mut versions = Vec::new();
        for cube in ["plain", "periodic"] {
            for tenant in tenants {
                versions.push(replica.read_for(cube, tenant).await.unwrap().version);
            }
        }
        versions
    };
    let cases = [
        (scope(Some("plain"), None), [true, true, true, false, false, false]),
        (scope(Some("plain"), Some("a")), [false, true, false, false, false, false]),
        (scope(None, Some("b")), [false, false, true, false, false, true]),
        (scope(None, None), [true; 6]),
    ];
    for (scope, expected) in cases {
        let before = all().await;
        replica.versions.invalidate(std::slice::from_ref(&scope), None).await.unwrap();
        let after = all().await;
        let changed: Vec<bool> = before.iter().zip(&after).map(|(before, after)| before != after).collect();
        assert_eq!(changed, expected, "{scope:?}");
    }
}

#[tokio::test]
async fn replicas_agree_within_a_second() {
    let one = Replica::new();
    let two = Replica::beside(one.clock.clone(), one.warehouse.clone(), one.reports.clone());
    let before = two.read("plain").await;
    assert_eq!(one.read("plain").await.version, before.version);
    one.versions.invalidate(&[scope(Some("plain"), None)], None).await.unwrap();
    assert_ne!(one.read("plain").await.version, before.version);
    two.clock.advance(Duration::from_millis(999));
    assert_eq!(two.read("plain").await.version, one.read("plain").await.version);
}

#[tokio::test]
async fn versions_are_unknown_without_the_state_database() {
    let replica = Replica::new();
    replica.read("plain").await;
    replica.reports.is_down.store(true, Ordering::Relaxed);
    replica.clock.advance(Duration::from_secs(1));
    let read = replica.read_for("plain", None).await;
    assert!(matches!(read, Err(VersionError::Reports(_))));
    replica.reports.is_down.store(false, Ordering::Relaxed);
    replica.clock.advance(Duration::from_secs(1));
    replica.read("plain").await;
}

#[tokio::test]
async fn unreported_load_changes_versions_of_this_process() {
    let replica = Replica::new();
    let before = replica.read("plain").await;
    replica.reports.is_down.store(true, Ordering::Relaxed);
    replica.versions.invalidate_all().await;
    replica.reports.is_down.store(false, Ordering::Relaxed);
    assert_ne!(replica.read("plain").await.version, before.version);
}
