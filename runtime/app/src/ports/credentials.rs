//! The port to keys, users and sessions, by which callers authenticate.
//!
//! Secrets are passed only as hashes: fast hashes for keys and refresh tokens, slow ones for passwords. Every change is
//! passed together with its audit record. Either both are written, or neither.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use terrane_compiler::SecurityContext;

use super::audit::AuditEntry;
use super::store::StoreError;
use crate::domain::{Scopes, SecretHash};

/// A stored API key.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiKey {
    pub id: Arc<str>,
    pub name: Arc<str>,
    pub secret_hash: SecretHash,
    pub scopes: Scopes,
    /// The caller that policies see. The user id is `key:<id>` unless the key was given another one.
    pub caller: SecurityContext,
    pub tenant: Option<Arc<str>>,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
}

/// A user with a password.
#[derive(Debug, Clone, PartialEq)]
pub struct User {
    pub username: Arc<str>,
    /// The hash of the password, as a PHC string.
    pub password_hash: Arc<str>,
    pub scopes: Scopes,
    pub caller: SecurityContext,
    pub tenant: Option<Arc<str>>,
    pub created_at: Timestamp,
    pub disabled_at: Option<Timestamp>,
}

/// A session, which begins with a sign-in. It is a family of refresh tokens, of which only the newest is valid.
#[derive(Debug, Clone, PartialEq)]
pub struct Session {
    pub id: Arc<str>,
    pub username: Arc<str>,
    pub created_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    /// True if an identity provider vouched for the holder when the session began. False if the holder is a user of
    /// this store.
    pub is_guest: bool,
    /// The holder's rights at the last sign-in or refresh. `None` for a user's session that an older version began;
    /// such a session has the user's current rights.
    pub rights: Option<Rights>,
}

/// The rights of the holder of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct Rights {
    pub scopes: Scopes,
    pub caller: SecurityContext,
    pub tenant: Option<Arc<str>>,
}

/// A stored refresh token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefreshToken {
    pub hash: SecretHash,
    pub session_id: Arc<str>,
    pub expires_at: Timestamp,
}

/// The tokens that a revocation refuses.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RevokedTokens {
    /// The token with this `jti`.
    Token(Arc<str>),
    /// The tokens of this subject or user id that were issued before the revocation.
    Subject(Arc<str>),
}

/// A revocation of tokens that were issued to applications.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revocation {
    pub tokens: RevokedTokens,
    pub revoked_at: Timestamp,
}

/// The outcome of using a refresh token.
#[derive(Debug, Clone, PartialEq)]
pub enum Rotation {
    /// The token was replaced by the new one.
    Rotated(Session),
    /// The token was used before. So a copy of it exists, and the session has been ended.
    Reused(Session),
    /// The token does not exist or has expired, or its session has ended.
    Refused,
}

/// Keys, users and sessions.
#[async_trait]
pub trait Credentials: Send + Sync {
    async fn add_key(&self, key: &ApiKey, entry: AuditEntry) -> Result<(), StoreError>;
    async fn key(&self, id: &str) -> Result<Option<ApiKey>, StoreError>;
    /// Returns all keys, newest first.
    async fn keys(&self) -> Result<Vec<ApiKey>, StoreError>;
    /// Replaces a key with another one that has the same id, secret and time of creation. Returns false, and changes
    /// nothing, if the stored key is not equal to `before`.
    async fn replace_key(&self, before: &ApiKey, after: &ApiKey, entry: AuditEntry) -> Result<bool, StoreError>;

    /// Adds a user. Returns false if the name is taken.
    async fn add_user(&self, user: &User, entry: AuditEntry) -> Result<bool, StoreError>;
    async fn user(&self, username: &str) -> Result<Option<User>, StoreError>;
    async fn users(&self) -> Result<Vec<User>, StoreError>;
    /// Replaces a user with another one that has the same name and time of creation, and ends the user's sessions at
    /// the time of `entry`. Returns the number of ended sessions. If the stored user is not equal to `before`, returns
    /// `None` and changes nothing.
    async fn replace_user(&self, before: &User, after: &User, entry: AuditEntry) -> Result<Option<u64>, StoreError>;

    /// Starts a session. If `holder` is given and differs from the stored user, returns false and starts none.
    async fn begin_session(
        &self,
        session: &Session,
        token: &RefreshToken,
        holder: Option<&User>,
        entry: AuditEntry,
    ) -> Result<bool, StoreError>;
    async fn session(&self, id: &str) -> Result<Option<Session>, StoreError>;
    /// Replaces the token whose hash is `used` with `next`, and the rights of the session with `rights`. The
    /// `session_id` of `next` is ignored.
    async fn rotate(
        &self,
        used: &SecretHash,
        next: &RefreshToken,
        rights: &Rights,
        now: Timestamp,
        entry: AuditEntry,
    ) -> Result<Rotation, StoreError>;
    /// Returns the session of a refresh token, whether or not the token was used.
    async fn session_of(&self, token: &SecretHash) -> Result<Option<Session>, StoreError>;
    async fn end_session(&self, id: &str, at: Timestamp, entry: AuditEntry) -> Result<(), StoreError>;
    /// Ends every session of a name, including sessions of guests. Returns their number.
    async fn end_sessions(&self, username: &str, at: Timestamp, entry: AuditEntry) -> Result<u64, StoreError>;

    /// Adds a revocation. It replaces an earlier revocation of the same tokens.
    async fn revoke_tokens(&self, revocation: &Revocation, entry: AuditEntry) -> Result<(), StoreError>;
    async fn revocations(&self) -> Result<Vec<Revocation>, StoreError>;
}
