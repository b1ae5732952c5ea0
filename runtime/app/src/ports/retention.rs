//! The port to retention: deletes records that are no longer read.
//!
//! Records of the audit log are never deleted here, even if they are about deleted records.

use async_trait::async_trait;
use jiff::Timestamp;

use super::leases::Lease;
use super::store::StoreError;

/// The times that separate records to delete from newer ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Horizon {
    /// The time before which sessions and keys must have ended, and tokens must have been used.
    pub ended: Timestamp,
    /// The time before which the last refresh token of a session must have expired, if the session was never ended. The
    /// last access token of such a session has expired too.
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
    /// Deletes a few records, so that writers do not wait. The caller repeats the call until no records are left to
    /// delete. Returns `None` if another server has taken over the lease; then nothing was deleted.
    async fn prune(&self, horizon: &Horizon, lease: &Lease) -> Result<Option<Pruned>, StoreError>;
}
