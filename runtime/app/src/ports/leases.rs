//! The port to leases. Several servers share a state database, and only the holder of a lease may do certain work.
//!
//! A lease expires by the database's clock, so that a holder that died is replaced. A slow holder may not notice that
//! its lease has expired. So each claim has a fence, a number larger than all earlier ones, and every change that
//! depends on the lease checks the fence.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::store::StoreError;

/// A lease that this process acquired. It may have expired in the meantime.
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
    /// Releases the lease. If it has expired and another process holds it, nothing changes.
    async fn release(&self, lease: &Lease) -> Result<(), StoreError>;
}
