//! Fakes for builds of models: a builder that stores relations in memory, and the rights to build.

use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use terrane_app::builds::Builds;
use terrane_app::ports::audit::{AuditEntry, AuditFilter, AuditLog, AuditRecord, ChainState};
use terrane_app::ports::builder::{BuildError, BuiltRelation, CantBuild, ModelBuilder, NewRelation, NotReady};
use terrane_app::ports::clock::Clock;
use terrane_app::ports::invalidations::{Invalidation, InvalidationScope, Invalidations};
use terrane_app::ports::leases::{Lease, Leases};
use terrane_app::ports::store::StoreError;
use terrane_app::ports::warehouse::{RefusalCause, WarehouseError, WarehouseErrorKind};

/// The relations in the warehouse. Clones share them.
#[derive(Clone, Default)]
pub struct MemoryBuilder {
    /// The relations by name, each with the query that it was built from.
    pub relations: Arc<Mutex<BTreeMap<String, (BuiltRelation, String)>>>,
    /// The schemas that builds have created.
    pub schemas: Arc<Mutex<BTreeSet<String>>>,
    /// Models whose build the warehouse refuses.
    pub refuses: BTreeSet<String>,
    /// Models whose build never ends.
    pub hangs: BTreeSet<String>,
    pub is_read_only: bool,
}

impl MemoryBuilder {
    /// Returns the query from which a relation was last built.
    pub fn query(&self, relation: &str) -> Option<String> {
        lock(&self.relations).get(relation).map(|(_, query)| query.clone())
    }

    pub fn built(&self) -> Vec<BuiltRelation> {
        lock(&self.relations).values().map(|(relation, _)| relation.clone()).collect()
    }

    pub fn schemas(&self) -> Vec<String> {
        lock(&self.schemas).iter().cloned().collect()
    }
}

#[async_trait]
impl ModelBuilder for MemoryBuilder {
    async fn prepare(&self, schemas: &[&str]) -> Result<(), NotReady> {
        if self.is_read_only {
            return Err(CantBuild::ReadOnly.into());
        }
        lock(&self.schemas).extend(schemas.iter().map(ToString::to_string));
        Ok(())
    }

    async fn build(&self, relation: &NewRelation<'_>, _: Duration) -> Result<Option<u64>, BuildError> {
        if self.hangs.contains(relation.name) {
            pending::<()>().await;
        }
        if self.refuses.contains(relation.name) {
            let (warehouse, kind) = ("duckdb".to_owned(), WarehouseErrorKind::Refused);
            return Err(WarehouseError {
                warehouse,
                kind,
                cause: RefusalCause::Other,
                message: "Binder Error: unknown column".to_owned(),
                retries: 0,
            }
            .into());
        }
        let built = BuiltRelation {
            schema: relation.schema.into(),
            name: relation.name.into(),
            is_view: relation.is_view,
            marker: relation.marker.clone(),
        };
        lock(&self.relations).insert(relation.to_string(), (built, relation.query.to_owned()));
        Ok((!relation.is_view).then_some(3))
    }

    async fn settle(&self) {}
}

/// One lease, shared by all clones.
#[derive(Clone, Default)]
pub struct MemoryLeases {
    held: Arc<Mutex<Option<Lease>>>,
    fences: Arc<Mutex<u64>>,
}

impl MemoryLeases {
    /// Ends the lease as if another process had taken it over in the state database.
    pub fn take_over(&self) {
        *lock(&self.held) = None;
    }

    pub fn is_held(&self) -> bool {
        lock(&self.held).is_some()
    }
}

#[async_trait]
impl Leases for MemoryLeases {
    async fn acquire(&self, name: &str, holder: &str, _: Duration) -> Result<Option<Lease>, StoreError> {
        let mut held = lock(&self.held);
        if held.is_some() {
            return Ok(None);
        }
        let mut fence = lock(&self.fences);
        *fence += 1;
        let lease = Lease { name: name.into(), holder: holder.into(), fence: *fence };
        *held = Some(lease.clone());
        Ok(Some(lease))
    }

    async fn renew(&self, lease: &Lease, _: Duration) -> Result<bool, StoreError> {
        Ok(lock(&self.held).as_ref() == Some(lease))
    }

    async fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        lock(&self.held).take_if(|held| held == lease);
        Ok(())
    }
}

/// An audit log in memory.
#[derive(Default)]
pub struct MemoryAudit(Mutex<Vec<AuditEntry>>);

impl MemoryAudit {
    /// Returns the event of each record with the state after the event.
    pub fn records_as_text(&self) -> Vec<String> {
        let after = |entry: &AuditEntry| entry.after.as_ref().map(terrane_json::details::encode).unwrap_or_default();
        lock(&self.0).iter().map(|entry| format!("{} {}", entry.event, after(entry))).collect()
    }
}

#[async_trait]
impl AuditLog for MemoryAudit {
    async fn append(&self, entries: Vec<AuditEntry>) -> Result<(), StoreError> {
        lock(&self.0).extend(entries);
        Ok(())
    }

    async fn records(&self, _: &AuditFilter) -> Result<Vec<AuditRecord>, StoreError> {
        Ok(Vec::new())
    }

    async fn verify(&self) -> Result<ChainState, StoreError> {
        Ok(ChainState::Whole { records: 0, last_hash: "".into() })
    }
}

/// Invalidations of changed data, stored in memory.
#[derive(Default)]
pub struct MemoryInvalidations(Mutex<Vec<Invalidation>>);

#[async_trait]
impl Invalidations for MemoryInvalidations {
    async fn invalidate(&self, scopes: &[InvalidationScope], _: Option<AuditEntry>) -> Result<(), StoreError> {
        let mut reports = lock(&self.0);
        let sequence = reports.iter().map(|report| report.sequence).max().unwrap_or_default() + 1;
        reports.extend(scopes.iter().map(|scope| Invalidation { scope: scope.clone(), sequence }));
        Ok(())
    }

    async fn invalidations(&self, after: u64) -> Result<Vec<Invalidation>, StoreError> {
        Ok(lock(&self.0).iter().filter(|report| report.sequence > after).cloned().collect())
    }
}

/// Returns builds over these fakes.
pub fn builds(
    builder: &MemoryBuilder,
    leases: &MemoryLeases,
    audit: Arc<dyn AuditLog>,
    clock: Arc<dyn Clock>,
) -> Builds {
    Builds {
        builder: Arc::new(builder.clone()),
        leases: Arc::new(leases.clone()),
        audit,
        invalidations: Arc::new(MemoryInvalidations::default()),
        clock,
        holder: "of a test".into(),
        timeout: Duration::from_secs(60),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
