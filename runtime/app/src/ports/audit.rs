//! The port to the audit log: append-only, each record chained to the one before by its hash.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;

use super::store::StoreError;

/// What happened, before it has a place in the chain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditEntry {
    pub at: Timestamp,
    /// `authentication_success`, `authentication_failure`, `access_denied`, or the change: `key_created`.
    pub event: Arc<str>,
    /// The user id; empty where nobody was proven.
    pub actor: Arc<str>,
    pub auth_method: Arc<str>,
    pub client_ip: Option<Arc<str>>,
    pub correlation_id: Option<Arc<str>>,
    /// What it was done to: `key:0f3c…`, a path.
    pub resource: Arc<str>,
    /// Why, or what was missing.
    pub reason: Option<Arc<str>>,
    /// JSON objects of what was and what is; never a secret.
    pub before: Option<Arc<str>>,
    pub after: Option<Arc<str>>,
    /// How many alike this record stands for.
    pub count: u64,
}

/// A record in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRecord {
    /// From 1, without gaps.
    pub sequence: u64,
    pub entry: AuditEntry,
    /// Of this record and, through `previous`, of all before it. Hexadecimal SHA-256.
    pub hash: Arc<str>,
    pub previous: Arc<str>,
}

/// Which records, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    pub event: Option<Arc<str>>,
    pub actor: Option<Arc<str>>,
    pub resource: Option<Arc<str>>,
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
    /// Records before this one: the next page.
    pub before: Option<u64>,
    pub limit: u32,
}

/// What a check of the whole chain found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChainState {
    Whole {
        records: u64,
        last_hash: Arc<str>,
    },
    /// From this record on nothing can be trusted.
    Broken {
        sequence: u64,
        why: Arc<str>,
    },
}

/// The audit log.
#[async_trait]
pub trait AuditLog: Send + Sync {
    /// All or none, on disk before it returns.
    async fn append(&self, entries: Vec<AuditEntry>) -> Result<(), StoreError>;
    async fn records(&self, filter: &AuditFilter) -> Result<Vec<AuditRecord>, StoreError>;
    /// Reads every record.
    async fn verify(&self) -> Result<ChainState, StoreError>;
}
