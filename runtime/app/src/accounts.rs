//! Use cases for API keys, users and the tokens of applications: create, list, change, revoke and disable.
//!
//! In: a request from a route or from the command line, and the [`Actor`] who makes it. Out: the account after the
//! change, or an [`AccountError`]. Each change and its audit record are written in one transaction. The audit record
//! holds the account before and after the change, without secrets. Changing a user ends the sessions of that user. Not
//! here: authentication (`security`), the scope that a route requires (server), tables (store).

mod fields;
mod grants;
mod key_state;
mod keys;
mod records;
mod users;

use std::sync::Arc;

use jiff::Timestamp;

pub use fields::{FieldProblem, MIN_PASSWORD_CHARS, parse_lifetime};
pub use grants::{Change, GrantChange, Grants};
pub use key_state::KeyState;
pub use keys::{IssuedKey, KeyChange, KeyRequest};
pub use records::{key_details, user_details};
pub use users::{ChangedUser, UserChange, UserRequest};

use crate::ports::audit::AuditEntry;
use crate::ports::clock::Clock;
use crate::ports::credentials::{Credentials, Revocation, RevokedTokens};
use crate::ports::store::StoreError;
use crate::ports::tokens::{Passwords, Randomness};
use crate::security::{CredentialCache, Identity, RequestOrigin};

/// The maximum number of attempts of a change that conflicts with other changes of the same account.
const ATTEMPTS: usize = 4;

/// The ports of the use cases.
#[derive(Clone)]
pub struct AccountPorts {
    pub credentials: Arc<dyn Credentials>,
    pub passwords: Arc<dyn Passwords>,
    pub randomness: Arc<dyn Randomness>,
    pub clock: Arc<dyn Clock>,
}

/// The administrator who makes a change, under the name in its audit record.
#[derive(Debug, Clone, Default)]
pub struct Actor {
    pub user_id: Arc<str>,
    pub auth_method: Arc<str>,
    pub origin: RequestOrigin,
}

impl Actor {
    /// Returns the actor of a request.
    pub fn of_request(identity: &Identity, origin: RequestOrigin) -> Self {
        Actor { user_id: identity.caller.user_id.clone(), auth_method: identity.method().as_str().into(), origin }
    }

    fn entry(&self, event: &'static str, at: Timestamp, resource: String) -> AuditEntry {
        AuditEntry {
            at,
            event: event.into(),
            actor: self.user_id.clone(),
            auth_method: self.auth_method.clone(),
            client_ip: self.origin.client.map(|ip| ip.to_string().into()),
            correlation_id: self.origin.correlation_id.clone(),
            resource: resource.into(),
            count: 1,
            ..AuditEntry::default()
        }
    }
}

/// The reason why an account was not read or changed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AccountError {
    #[error("invalid `{field}`: {problem}")]
    Invalid { field: &'static str, problem: FieldProblem },
    #[error("key `{id}` does not exist")]
    UnknownKey { id: Arc<str> },
    #[error("key `{id}` is revoked")]
    RevokedKey { id: Arc<str> },
    #[error("user `{username}` does not exist")]
    UnknownUser { username: Arc<str> },
    #[error("user `{username}` already exists")]
    UserExists { username: Arc<str> },
    #[error("user `{username}` is already disabled")]
    DisabledUser { username: Arc<str> },
    #[error("no field to change")]
    NothingToChange,
    #[error("the account was changed by others at the same time")]
    Contended,
    #[error("the password could not be hashed")]
    NotHashed,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The use cases of accounts. All clones share the ports and the cache.
#[derive(Clone)]
pub struct Accounts {
    ports: AccountPorts,
    cache: Arc<CredentialCache>,
}

impl Accounts {
    /// Creates the use cases for a process that does not authenticate callers. The processes that authenticate callers
    /// apply a change within two seconds.
    pub fn new(ports: AccountPorts) -> Self {
        let cache = Arc::new(CredentialCache::new(&ports.clock));
        Accounts::with_cache(ports, cache)
    }

    /// Creates the use cases for the process that authenticates with this cache, so that changes take effect at once.
    pub(crate) fn with_cache(ports: AccountPorts, cache: Arc<CredentialCache>) -> Self {
        Accounts { ports, cache }
    }

    /// Ends the sessions of a user. `username` is the name of a user with a password, or `provider:subject` for a user
    /// who signed in through a provider. Returns the number of ended sessions.
    ///
    /// # Errors
    /// [`AccountError::Store`].
    pub async fn end_sessions(&self, actor: &Actor, username: &str) -> Result<u64, AccountError> {
        let now = self.ports.clock.now();
        let entry = actor.entry("sessions_ended", now, format!("user:{username}"));
        let ended = self.ports.credentials.end_sessions(username, now, entry).await?;
        self.cache.sessions.forget_all();
        Ok(ended)
    }

    /// Revokes tokens that were issued to applications.
    ///
    /// # Errors
    /// [`AccountError::Store`]: nothing is revoked.
    pub async fn revoke_tokens(&self, actor: &Actor, tokens: RevokedTokens) -> Result<Revocation, AccountError> {
        let revoked_at = self.ports.clock.now();
        let entry = actor.entry("tokens_revoked", revoked_at, tokens.resource());
        let after = Some(records::revocation(revoked_at));
        let revocation = Revocation { tokens, revoked_at };
        self.ports.credentials.revoke_tokens(&revocation, AuditEntry { after, ..entry }).await?;
        self.cache.revocations.forget_all();
        Ok(revocation)
    }
}
