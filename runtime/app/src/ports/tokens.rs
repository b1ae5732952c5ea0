//! The ports to proofs of identity: signed tokens, passwords, random bytes.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use terrane_compiler::SecurityContext;

use crate::domain::Scopes;

/// The claims of an access token of this server.
#[derive(Debug, Clone, PartialEq)]
pub struct Grant {
    pub caller: SecurityContext,
    pub username: Arc<str>,
    pub scopes: Scopes,
    pub session_id: Arc<str>,
    pub tenant: Option<Arc<str>>,
    pub issued_at: Timestamp,
    pub expires_at: Timestamp,
}

/// The contents of a token whose signature and claims have been checked.
#[derive(Debug, Clone, PartialEq)]
pub enum Verified {
    /// Signed by this server. The token names a session and its holder, whose rights are those of the session.
    Session { id: Arc<str>, subject: Arc<str> },
    /// Signed by another issuer, which vouches for the caller.
    Caller {
        caller: SecurityContext,
        /// The scopes; `None` if the token names none.
        scopes: Option<Scopes>,
        tenant: Option<Arc<str>>,
    },
    /// Signed by an application with a key of this server. This server can revoke the token.
    Application { caller: SecurityContext, scopes: Option<Scopes>, tenant: Option<Arc<str>>, id: TokenId },
}

/// The claims by which a token is revoked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenId {
    /// The claim `jti`.
    pub token: Option<Arc<str>>,
    /// The claim `sub`. The caller's user id may come from another claim.
    pub subject: Option<Arc<str>>,
    pub issued_at: Option<Timestamp>,
}

/// The reason why a token is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenFault {
    #[error("the token expired at {at}")]
    Expired { at: Timestamp },
    /// The reason is shown to users. It never contains text of the token.
    #[error("the token is not valid: {why}")]
    Invalid { why: &'static str },
    /// The keys of the issuer cannot be read now.
    #[error("the keys of the identity provider are not available")]
    Unavailable,
    #[error("this server signs no tokens")]
    NotSigning,
}

/// Signs and checks access tokens.
#[async_trait]
pub trait Tokens: Send + Sync {
    /// Signs a token.
    ///
    /// # Errors
    /// [`TokenFault::NotSigning`]: this server accepts only tokens of other issuers.
    fn sign(&self, grant: &Grant) -> Result<String, TokenFault>;
    async fn verify(&self, token: &str, now: Timestamp) -> Result<Verified, TokenFault>;
}

/// Hashes passwords. The hashes are slow on purpose. Both functions compute for tens of milliseconds, on another
/// thread.
#[async_trait]
pub trait Passwords: Send + Sync {
    async fn hash(&self, password: &str) -> Arc<str>;
    /// Returns whether a password matches a hash. Without a hash (`None`), compares with a hash that never matches, so
    /// that an unknown name takes as long as a known one.
    async fn fits(&self, password: &str, hash: Option<&str>) -> bool;
}

/// A source of unpredictable bytes.
pub trait Randomness: Send + Sync {
    fn fill(&self, bytes: &mut [u8]);
}
