//! The port to invalidations: reports that data changed, which all replicas share.

use std::sync::Arc;

use async_trait::async_trait;

use super::audit::AuditEntry;
use super::store::StoreError;

/// The data that a report is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct InvalidationScope {
    /// The name of the cube; `None` for all cubes.
    pub cube: Option<Arc<str>>,
    /// The tenant; `None` for all tenants.
    pub tenant: Option<Arc<str>>,
}

/// The newest report about a scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalidation {
    pub scope: InvalidationScope,
    /// The number of the report. It is larger than the numbers of all earlier reports.
    pub sequence: u64,
}

/// The reports of all replicas. They become visible in the order of their sequences.
#[async_trait]
pub trait Invalidations: Send + Sync {
    /// Records that the data of these scopes changed. The audit record, if given, is part of the same transaction.
    async fn invalidate(&self, scopes: &[InvalidationScope], entry: Option<AuditEntry>) -> Result<(), StoreError>;

    /// Returns the reports after a sequence number.
    async fn invalidations(&self, after: u64) -> Result<Vec<Invalidation>, StoreError>;
}
