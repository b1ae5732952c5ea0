//! The port to retention: deletes records that nothing reads any more.
//!
//! The audit log is not among them: its records about them stay.

use async_trait::async_trait;
use jiff::Timestamp;

use super::leases::Lease;
use super::store::StoreError;

/// The times before which records must have ended to be deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Horizon {
    /// The time before which sessions and keys have ended, and tokens were used.
    pub ended: Timestamp,
    /// Sessions that were never ended are deleted if their last refresh token expired before this time. The last
    /// access token of such a session has expired too.
    pub abandoned: Timestamp,
}

/// The numbers of deleted records.
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

    pub fn add(&mut self, other: Pruned) {
        self.sessions += other.sessions;
        self.refresh_tokens += other.refresh_tokens;
        self.api_keys += other.api_keys;
        self.revocations += other.revocations;
    }
}

/// Deletes expired records.
#[async_trait]
pub trait Retention: Send + Sync {
    /// Deletes a few records, so that writers do not wait; called again until there are none. `None`: the
    /// lease was taken over, and nothing was deleted.
    async fn prune(&self, horizon: &Horizon, lease: &Lease) -> Result<Option<Pruned>, StoreError>;
}
