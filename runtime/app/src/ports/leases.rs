//! The port to leases: of several servers on one state database, one does what only one may do.
//!
//! A lease has an end, by the database's clock, so that a holder that died is replaced. A holder may be
//! slow without knowing it: each claim has a fence, larger than all before, and a change that depends on
//! the lease checks it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::store::StoreError;

/// A lease that was held when it was acquired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    pub name: Arc<str>,
    pub holder: Arc<str>,
    /// Grows with every claim of this name.
    pub fence: u64,
}

/// Leases by name.
#[async_trait]
pub trait Leases: Send + Sync {
    /// `None` while another process holds it.
    async fn acquire(&self, name: &str, holder: &str, ttl: Duration) -> Result<Option<Lease>, StoreError>;
    /// Extends the lease to `ttl` from now. Returns false if it has expired and another holder may have it.
    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<bool, StoreError>;
    /// Releases the lease. An expired lease, which may be another holder's, is unchanged.
    async fn release(&self, lease: &Lease) -> Result<(), StoreError>;
}
