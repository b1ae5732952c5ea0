//! Authenticates callers: credentials to identities, and the sessions behind tokens.
//!
//! In: the credential of a request. Out: an [`Identity`], or an [`AuthError`] that discloses no more than the caller
//! may know. Every surface authenticates callers here and nowhere else. The compiler applies policies (`plan::secure`).
//! Not here: headers and status codes (server), signatures and slow hashes (identity), tables (store).

pub mod access;
mod acknowledge_key;
pub mod api_key;
mod audit_buffer;
pub mod chain;
mod credential_cache;
mod current_rights;
mod login_throttle;
pub mod oauth;
mod revocations;
mod sessions;
mod ttl_cache;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use terrane_compiler::SecurityContext;

pub use crate::domain::{AuthMethod, Credential, Identity, RequestOrigin, Scope, Scopes};
pub use access::{AccessRecorder, ScopeError};
pub use acknowledge_key::{AcknowledgeKey, AcknowledgeLink, LinkFault};
pub use audit_buffer::{AuditBuffer, WINDOW};
pub(crate) use credential_cache::CredentialCache;
pub(crate) use current_rights::current_rights;
pub use revocations::{CLOCK_TOLERANCE, MAX_APPLICATION_TOKEN_AGE};
pub(crate) use sessions::from as with_origin;
pub use sessions::{MAX_PASSWORD_BYTES, TokenPair};

use crate::accounts::{AccountPorts, Accounts};
use crate::ports::audit::AuditEntry;
use crate::ports::clock::Clock;
use crate::ports::credentials::{ApiKey, Credentials};
use crate::ports::store::StoreError;
use crate::ports::tokens::{Passwords, Randomness, TokenFault, Tokens, Verified};
use login_throttle::LoginThrottle;

/// The ports of the authenticator.
#[derive(Clone)]
pub struct SecurityPorts {
    pub credentials: Arc<dyn Credentials>,
    /// The verifier of JWTs; `None` if JWTs are not accepted.
    pub tokens: Option<Arc<dyn Tokens>>,
    pub passwords: Arc<dyn Passwords>,
    pub randomness: Arc<dyn Randomness>,
    pub clock: Arc<dyn Clock>,
    pub access: Arc<AccessRecorder>,
}

/// The operator's settings of sessions.
#[derive(Debug, Clone, Copy)]
pub struct SessionSettings {
    pub access_lifetime: Duration,
    pub refresh_lifetime: Duration,
    pub accepts_keys: bool,
}

impl Default for SessionSettings {
    fn default() -> Self {
        SessionSettings {
            access_lifetime: Duration::from_secs(3_600),
            refresh_lifetime: Duration::from_secs(604_800),
            accepts_keys: true,
        }
    }
}

/// The reason why a caller is not authenticated.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AuthError {
    #[error("the API key is not known to this server")]
    UnknownKey,
    #[error("the key expired at {at}")]
    ExpiredKey { at: Timestamp },
    #[error("the key was revoked")]
    RevokedKey,
    #[error("the token expired at {at}")]
    TokenExpired { at: Timestamp },
    #[error("the token is not valid: {why}")]
    InvalidToken { why: &'static str },
    #[error("this server accepts no tokens; API keys start with `trn_`")]
    NoTokens,
    #[error("the user name or the password is wrong")]
    WrongPassword,
    #[error("too many attempts: wait {} seconds", wait.as_secs().max(1))]
    TooManyAttempts { wait: Duration },
    #[error("the refresh token is not valid")]
    InvalidRefreshToken,
    #[error("credentials cannot be checked now")]
    Unavailable,
}

/// The reason why a credential has none of the forms that are accepted.
const NO_FORM: &str = "it is neither an API key, which starts with `trn_`, nor a JSON Web Token";

impl AuthError {
    /// Returns the name of the reason in the log and the metrics.
    pub fn reason(&self) -> &'static str {
        match self {
            AuthError::UnknownKey => "unknown key",
            AuthError::ExpiredKey { .. } => "expired key",
            AuthError::RevokedKey => "revoked key",
            AuthError::TokenExpired { .. } => "expired token",
            AuthError::InvalidToken { why } => why,
            AuthError::NoTokens => "tokens are not accepted",
            AuthError::WrongPassword => "wrong password",
            AuthError::TooManyAttempts { .. } => "too many attempts",
            AuthError::InvalidRefreshToken => "invalid refresh token",
            AuthError::Unavailable => "credentials cannot be checked",
        }
    }
}

impl From<StoreError> for AuthError {
    fn from(error: StoreError) -> Self {
        tracing::error!(event = "state_unavailable", error_message = %error);
        AuthError::Unavailable
    }
}

/// Authenticates callers and manages their sessions.
pub struct Authenticator {
    ports: SecurityPorts,
    settings: SessionSettings,
    cache: Arc<CredentialCache>,
    accounts: Accounts,
    login_throttle: LoginThrottle,
}

impl Authenticator {
    pub fn new(ports: SecurityPorts, settings: SessionSettings) -> Self {
        let cache = Arc::new(CredentialCache::new(&ports.clock));
        let accounts = AccountPorts {
            credentials: ports.credentials.clone(),
            passwords: ports.passwords.clone(),
            randomness: ports.randomness.clone(),
            clock: ports.clock.clone(),
        };
        let accounts = Accounts::with_cache(accounts, cache.clone());
        Authenticator { cache, accounts, login_throttle: LoginThrottle::new(ports.clock.clone()), ports, settings }
    }

    /// Returns the use cases that change credentials. Their changes take effect in this process at once.
    pub fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    /// Returns whether access tokens are accepted.
    pub fn accepts_tokens(&self) -> bool {
        self.ports.tokens.is_some()
    }

    /// Returns whether a bearer can be checked without a lookup of a key that may not exist. This holds for a key that
    /// this process has seen. It also holds for a token, because the signature of a token is checked first.
    pub fn is_cheap(&self, bearer: &str) -> bool {
        !api_key::is_key(bearer) || api_key::parse(bearer).is_some_and(|(id, _)| self.cache.keys.has(id))
    }

    /// Returns the identity of a bearer.
    ///
    /// # Errors
    /// [`AuthError`]; the caller must be rejected, and never be treated as anonymous.
    pub async fn identify(&self, credential: Credential<'_>) -> Result<Identity, AuthError> {
        if api_key::is_key(credential.bearer) { self.by_key(credential).await } else { self.by_token(credential).await }
    }

    async fn by_key(&self, credential: Credential<'_>) -> Result<Identity, AuthError> {
        let parsed = api_key::parse(credential.bearer).filter(|_| self.settings.accepts_keys);
        let (id, secret) = parsed.ok_or(AuthError::UnknownKey)?;
        let found = self.cache.keys.get(id, self.ports.credentials.key(id)).await?;
        // The hashes are compared even if the key does not exist, so that the answer takes the same time.
        let hash = found.as_ref().map_or([0; 32], |key| key.secret_hash);
        let is_it = api_key::is_equal(&hash, &secret);
        let key = found.filter(|_| is_it).ok_or(AuthError::UnknownKey)?;
        if key.revoked_at.is_some() {
            return Err(AuthError::RevokedKey);
        }
        if let Some(at) = key.expires_at.filter(|at| *at <= self.ports.clock.now()) {
            return Err(AuthError::ExpiredKey { at });
        }
        let ApiKey { id, scopes, caller, tenant, .. } = key;
        let caller = SecurityContext { auth_method: AuthMethod::ApiKey, ..caller };
        Ok(Identity { caller, scopes, credential: format!("key:{id}").into(), tenant })
    }

    async fn by_token(&self, credential: Credential<'_>) -> Result<Identity, AuthError> {
        let tokens = self.ports.tokens.as_ref().ok_or(AuthError::NoTokens)?;
        let verified = tokens.verify(credential.bearer, self.ports.clock.now()).await.map_err(|fault| match fault {
            TokenFault::Expired { at } => AuthError::TokenExpired { at },
            // A JSON Web Token has parts that are separated by points.
            TokenFault::Invalid { .. } if !credential.bearer.contains('.') => AuthError::InvalidToken { why: NO_FORM },
            TokenFault::Invalid { why } => AuthError::InvalidToken { why },
            TokenFault::Unavailable => AuthError::Unavailable,
            TokenFault::NotSigning => AuthError::NoTokens,
        })?;
        let (id, subject) = match verified {
            Verified::Session { id, subject } => (id, subject),
            Verified::Caller { caller, scopes, tenant } => return Ok(without_session(caller, scopes, tenant)),
            Verified::Application { caller, scopes, tenant, id } => {
                self.check_revocations(&id, &caller.user_id).await?;
                return Ok(without_session(caller, scopes, tenant));
            }
        };
        let session = self.cache.sessions.get(&id, self.read_session(&id)).await?;
        let rights = session.filter(|session| session.ended_at.is_none()).and_then(|session| session.rights);
        let rights = rights.ok_or(AuthError::InvalidToken { why: "its session has ended" })?;
        if rights.caller.user_id != subject {
            return Err(AuthError::InvalidToken { why: "its session belongs to another user" });
        }
        Ok(sessions::identity_of(&rights, &id, AuthMethod::Jwt))
    }
}

/// Returns the identity for a token without a session. A token without scopes gets the scope `read`.
fn without_session(caller: SecurityContext, scopes: Option<Scopes>, tenant: Option<Arc<str>>) -> Identity {
    let credential = format!("user:{}", caller.user_id).into();
    let caller = SecurityContext { auth_method: AuthMethod::Jwt, ..caller };
    Identity { scopes: scopes.unwrap_or(Scopes::READ), credential, tenant, caller }
}

/// Returns the audit record of an event that an identified caller caused.
pub(crate) fn entry(event: &'static str, at: Timestamp, identity: &Identity, resource: String) -> AuditEntry {
    AuditEntry {
        at,
        event: event.into(),
        actor: identity.caller.user_id.clone(),
        auth_method: identity.method().as_str().into(),
        resource: resource.into(),
        count: 1,
        ..AuditEntry::default()
    }
}

/// Returns the user id of a key whose creator chose no user id.
pub fn key_user(id: &str) -> Arc<str> {
    format!("key:{id}").into()
}

/// Returns a caller without roles or attributes.
pub fn plain_caller(user_id: Arc<str>) -> SecurityContext {
    SecurityContext { user_id, ..SecurityContext::default() }
}
