//! Caches the state database's records of credentials in this process.
//!
//! In: keys, sessions and revocations that were read. Out: the same for a short time, so that most requests read
//! nothing. The authenticator and the use cases that change credentials share it.

use std::sync::Arc;

use super::revocations::Revocations;
use super::ttl_cache::TtlCache;
use crate::ports::clock::Clock;
use crate::ports::credentials::{ApiKey, Session};

/// One cache for each kind of credential.
pub(crate) struct CredentialCache {
    pub(crate) keys: TtlCache<ApiKey>,
    pub(crate) sessions: TtlCache<Session>,
    /// One entry: all revocations are read together.
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
