//! The credentials of a case, in a fake store without accounts or in a real one.

use std::sync::Arc;

use crate::governance::MemoryGovernance;
use crate::jobs::JobAdapters;
use async_trait::async_trait;
use jiff::Timestamp;
use terrane_app::domain::SecretHash;
use terrane_app::ports::audit::{AuditEntry, AuditFilter, AuditLog, AuditRecord, ChainState};
use terrane_app::ports::credentials::{ApiKey, Credentials, RefreshToken, Revocation, Rights, Rotation, Session, User};
use terrane_app::ports::governance_records::GovernanceRecords;
use terrane_app::ports::providers::IdentityProvider;
use terrane_app::ports::store::StoreError;
use terrane_app::ports::tokens::Tokens;
use terrane_app::security::oauth::Transport;

use crate::fakes::SECRET;

/// The credentials, tokens and providers of a case.
pub struct Security {
    pub credentials: Arc<dyn Credentials>,
    pub audit: Arc<dyn AuditLog>,
    pub tokens: Option<Arc<dyn Tokens>>,
    /// The identity providers through which callers sign in.
    pub providers: Vec<Arc<dyn IdentityProvider>>,
    pub transport: Transport,
    pub jobs: JobAdapters,
    /// The governed records.
    pub governance: Arc<dyn GovernanceRecords>,
}

impl Security {
    /// Returns credentials for a server without keys and tokens.
    pub fn of_anonymous() -> Self {
        Security::of(Arc::new(EmptyStore { is_broken: false }), None)
    }

    /// Adds a table of jobs and a folder of results.
    #[must_use]
    pub fn with_jobs(self, jobs: JobAdapters) -> Self {
        Security { jobs, ..self }
    }

    /// Returns credentials for a server whose state database does not answer.
    pub fn of_a_broken_store() -> Self {
        Security::of(Arc::new(EmptyStore { is_broken: true }), None)
    }

    /// Returns credentials for a server that accepts tokens and whose state database does not answer.
    pub fn of_a_broken_store_with(tokens: Arc<dyn Tokens>) -> Self {
        Security::of(Arc::new(EmptyStore { is_broken: true }), Some(tokens))
    }

    pub fn of<S: Credentials + AuditLog + 'static>(store: Arc<S>, tokens: Option<Arc<dyn Tokens>>) -> Self {
        Security {
            credentials: store.clone(),
            audit: store,
            tokens,
            providers: Vec::new(),
            transport: Transport::Https,
            jobs: JobAdapters::none(),
            governance: Arc::new(MemoryGovernance::default()),
        }
    }

    /// Adds identity providers for sign-in.
    #[must_use]
    pub fn with_providers(self, providers: Vec<Arc<dyn IdentityProvider>>, transport: Transport) -> Self {
        Security { providers, transport, ..self }
    }
}

/// A store without accounts. It discards audit records.
struct EmptyStore {
    is_broken: bool,
}

#[async_trait]
impl Credentials for EmptyStore {
    async fn add_key(&self, _: &ApiKey, _: AuditEntry) -> Result<(), StoreError> {
        Ok(())
    }
    async fn key(&self, _: &str) -> Result<Option<ApiKey>, StoreError> {
        if self.is_broken { Err(StoreError { message: SECRET.to_owned() }) } else { Ok(None) }
    }
    async fn keys(&self) -> Result<Vec<ApiKey>, StoreError> {
        Ok(Vec::new())
    }
    async fn replace_key(&self, _: &ApiKey, _: &ApiKey, _: AuditEntry) -> Result<bool, StoreError> {
        Ok(false)
    }
    async fn add_user(&self, _: &User, _: AuditEntry) -> Result<bool, StoreError> {
        Ok(false)
    }
    async fn user(&self, _: &str) -> Result<Option<User>, StoreError> {
        Ok(None)
    }
    async fn users(&self) -> Result<Vec<User>, StoreError> {
        Ok(Vec::new())
    }
    async fn replace_user(&self, _: &User, _: &User, _: AuditEntry) -> Result<Option<u64>, StoreError> {
        Ok(None)
    }
    async fn begin_session(
        &self,
        _: &Session,
        _: &RefreshToken,
        _: Option<&User>,
        _: AuditEntry,
    ) -> Result<bool, StoreError> {
        Ok(true)
    }
    async fn session(&self, _: &str) -> Result<Option<Session>, StoreError> {
        Ok(None)
    }
    async fn rotate(
        &self,
        _: &SecretHash,
        _: &RefreshToken,
        _: &Rights,
        _: Timestamp,
        _: AuditEntry,
    ) -> Result<Rotation, StoreError> {
        Ok(Rotation::Refused)
    }
    async fn session_of(&self, _: &SecretHash) -> Result<Option<Session>, StoreError> {
        Ok(None)
    }
    async fn end_session(&self, _: &str, _: Timestamp, _: AuditEntry) -> Result<(), StoreError> {
        Ok(())
    }
    async fn end_sessions(&self, _: &str, _: Timestamp, _: AuditEntry) -> Result<u64, StoreError> {
        Ok(0)
    }
    async fn revoke_tokens(&self, _: &Revocation, _: AuditEntry) -> Result<(), StoreError> {
        Ok(())
    }
    async fn revocations(&self) -> Result<Vec<Revocation>, StoreError> {
        if self.is_broken { Err(StoreError { message: SECRET.to_owned() }) } else { Ok(Vec::new()) }
    }
}

#[async_trait]
impl AuditLog for EmptyStore {
    async fn append(&self, _: Vec<AuditEntry>) -> Result<(), StoreError> {
        Ok(())
    }
    async fn records(&self, _: &AuditFilter) -> Result<Vec<AuditRecord>, StoreError> {
        Ok(Vec::new())
    }
    async fn verify(&self) -> Result<ChainState, StoreError> {
        Ok(ChainState::Whole { records: 0, last_hash: "".into() })
    }
}
