//! The port to leases, by which one of several servers on the same state database does work that only one may do.
//!
//! A lease expires by the database's clock, so that a holder that died is replaced. A slow holder may not know that its
//! lease has expired. Each claim therefore has a fence, a number larger than all before, and every change that depends
//! on the lease compares it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::store::StoreError;

/// A lease that was held when it was acquired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    pub name: Arc<str>,
    pub holder: Arc<str>,
    /// A number that grows with every claim of a lease of this name.
    pub fence: u64,
}

/// Leases by name.
#[async_trait]
pub trait Leases: Send + Sync {
    /// Acquires the lease; `None` while another process holds it.
    async fn acquire(&self, name: &str, holder: &str, ttl: Duration) -> Result<Option<Lease>, StoreError>;
    /// Extends the lease to `ttl` from now. Returns false if it has expired and another holder may have it.
    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<bool, StoreError>;
    /// Releases the lease. An expired lease, which may be another holder's, is unchanged.
    async fn release(&self, lease: &Lease) -> Result<(), StoreError>;
}
