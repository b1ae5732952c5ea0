//! Caches the state database's records of credentials in this process.
//!
//! In: keys, sessions and revocations that were read. Out: the same records for a short time, so that most requests do
//! not read the state database. The authenticator and the use cases that change credentials share the cache.

use std::sync::Arc;

use super::revocations::Revocations;
use super::ttl_cache::TtlCache;
use crate::ports::clock::Clock;
use crate::ports::credentials::{ApiKey, Session};

/// One cache for each kind of credential.
pub(crate) struct CredentialCache {
    pub(crate) keys: TtlCache<ApiKey>,
    pub(crate) sessions: TtlCache<Session>,
    /// The cache of revocations. It has one entry, because all revocations are read together.
    pub(crate) revocations: TtlCache<Arc<Revocations>>,
}

impl CredentialCache {
    pub(crate) fn new(clock: &Arc<dyn Clock>) -> Self {
        CredentialCache {
            keys: TtlCache::new(clock.clone()),
            sessions: TtlCache::new(clock.clone()),
            revocations: TtlCache::new(clock.clone()),
        }
    }
}
