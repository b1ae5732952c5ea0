//! The port to the removal of what is over: records that nothing asks for any more.
//!
//! The audit log is not among them: what it says of them stays.

use async_trait::async_trait;
use jiff::Timestamp;

use super::leases::Lease;
use super::store::StoreError;

/// Up to when things must be over to be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Horizon {
    /// Sessions and keys that ended, and tokens that were used, before this.
    pub ended: Timestamp,
    /// Sessions that nobody ended, whose last refresh token expired before this: then their last access
    /// token has expired too.
    pub abandoned: Timestamp,
}

/// How many went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    pub sessions: u64,
    pub refresh_tokens: u64,
    pub api_keys: u64,
    pub revocations: u64,
}

impl Pruned {
    pub fn total(self) -> u64 {
        self.sessions + self.refresh_tokens + self.api_keys + self.revocations
    }
}

/// Removes what is over.
#[async_trait]
pub trait Retention: Send + Sync {
    /// A few at a time, so that writers don't wait: called again until nothing goes. `None` where the
    /// lease is another's by now; then nothing went.
    async fn prune(&self, horizon: &Horizon, lease: &Lease) -> Result<Option<Pruned>, StoreError>;
}
