//! Signing in, refreshing and signing out.
//!
//! A sign-in begins a session with a short-lived access token, and a refresh token that can be used once. Each refresh
//! returns a new refresh token. If an old refresh token is used again, a copy of it exists, so the session ends (RFC
//! 9700, section 4.14.2). When a session ends, its access tokens are invalid at once. The rights of a session are
//! recorded at each sign-in and refresh; access tokens only name the session. A session through an identity provider
//! ends one refresh lifetime after it began, however often it is refreshed. Then the person has to sign in at the
//! provider again.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use terrane_compiler::SecurityContext;

use super::access::Durability;
use super::api_key::{base64url, hash};
use super::{AuthError, AuthMethod, Authenticator, Identity, RequestOrigin, Scopes, entry};
use crate::domain::RequestContext;
use crate::limits::network;
use crate::ports::audit::AuditEntry;
use crate::ports::credentials::{RefreshToken, Rights, Rotation, Session, User};
use crate::ports::providers::Person;
use crate::ports::store::StoreError;
use crate::ports::tokens::{Grant, TokenFault, Tokens};

/// The largest size of a password, in bytes. Longer passwords are refused without computing a hash.
pub const MAX_PASSWORD_BYTES: usize = 1_024;
const MAX_NAME_BYTES: usize = 256;
const REFRESH_PREFIX: &str = "trr_";

/// The answer to a sign-in or refresh.
#[derive(Clone)]
pub struct TokenPair {
    pub access_token: String,
    pub expires_in: Duration,
    pub refresh_token: String,
    /// The user id of the holder.
    pub user_id: Arc<str>,
    pub scopes: Scopes,
}

/// The holder of a new session.
enum Holder {
    User(User),
    /// A caller that an identity provider vouches for.
    Guest(Rights),
}

/// The kind of a session's holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HolderKind {
    /// A user of the state database.
    User,
    /// A person whom an identity provider authenticated.
    Guest,
}

impl Authenticator {
    /// Starts a session for a user with a password.
    ///
    /// # Errors
    /// [`AuthError`]. An unknown or disabled name has the same error as a wrong password: [`AuthError::WrongPassword`].
    pub async fn sign_in(
        &self,
        username: &str,
        password: &str,
        request: &RequestContext,
    ) -> Result<TokenPair, AuthError> {
        let outcome = self.begin_password_session(username, password, request).await;
        let access = &self.ports.access;
        match &outcome {
            Ok(pair) => access.report_authentication(request, &pair.user_id, "password", pair.scopes),
            Err(error) => access.report_denial(request, error.reason()),
        }
        outcome
    }

    async fn begin_password_session(
        &self,
        username: &str,
        password: &str,
        request: &RequestContext,
    ) -> Result<TokenPair, AuthError> {
        let origin = &request.origin();
        let tokens = self.ports.tokens.clone().ok_or(AuthError::NoTokens)?;
        if username.len() > MAX_NAME_BYTES || password.len() > MAX_PASSWORD_BYTES {
            return Err(AuthError::WrongPassword);
        }
        let by_name = format!("name:{username}");
        let by_address = origin.client.map(|ip| format!("address:{}", network(ip)));
        let by_both =
            by_address.as_ref().map_or_else(|| format!("both:{username}"), |from| format!("both:{username} {from}"));
        let names: Vec<String> =
            [Some(by_both.clone()), Some(by_name), by_address.clone()].into_iter().flatten().collect();
        if let Some(wait) = self.login_throttle.wait(&names) {
            return Err(AuthError::TooManyAttempts { wait });
        }
        // The attempt counts as failed before the hash is computed, so that concurrent attempts count too.
        self.login_throttle.failed(&names);
        let found = self.ports.credentials.user(username).await?;
        let hash = found.as_ref().map(|user| &*user.password_hash);
        let fits = self.ports.passwords.fits(password, hash).await;
        let Some(user) = found.filter(|user| fits && user.disabled_at.is_none()) else {
            self.record_failure(username, request, "wrong user name or password").await?;
            return Err(AuthError::WrongPassword);
        };
        self.login_throttle.succeeded(&by_both, &names[1..]);
        let session = self.session(user.username.clone(), HolderKind::User, self.ports.clock.now());
        self.begin(&*tokens, session, Holder::User(user), AuthMethod::Jwt, origin).await
    }

    /// Starts a session for a person that a provider vouches for.
    pub(super) async fn begin_guest_session(
        &self,
        provider: &str,
        person: Person,
        origin: &RequestOrigin,
    ) -> Result<TokenPair, AuthError> {
        let tokens = self.ports.tokens.clone().ok_or(AuthError::NoTokens)?;
        let Person { subject, caller, scopes, tenant } = person;
        // As with tokens: if the provider defines no scopes, the person gets the scope `read`.
        let rights = Rights { scopes: scopes.unwrap_or(Scopes::READ), caller, tenant };
        let username = format!("{provider}:{subject}").into();
        let session = self.session(username, HolderKind::Guest, self.ports.clock.now());
        self.begin(&*tokens, session, Holder::Guest(rights), AuthMethod::OAuth, origin).await
    }

    fn session(&self, username: Arc<str>, kind: HolderKind, now: Timestamp) -> Session {
        let is_guest = kind == HolderKind::Guest;
        Session { id: self.random_id(), username, created_at: now, ended_at: None, is_guest, rights: None }
    }

    async fn begin(
        &self,
        tokens: &dyn Tokens,
        session: Session,
        holder: Holder,
        method: AuthMethod,
        origin: &RequestOrigin,
    ) -> Result<TokenPair, AuthError> {
        let now = session.created_at;
        let (rights, user) = match holder {
            Holder::User(user) => (rights_of(user.clone()), Some(user)),
            Holder::Guest(rights) => (rights, None),
        };
        let (text, token) = self.refresh_token(&session.id, now)?;
        // The token is signed before the session is stored, so that no session begins whose tokens cannot be signed.
        let pair = self.pair(tokens, &session, &rights, text, now)?;
        let identity = identity_of(&rights, &session.id, method);
        let record = from(origin, entry("session_started", now, &identity, format!("session:{}", session.id)));
        let session = Session { rights: Some(rights), ..session };
        let is_begun = self.ports.credentials.begin_session(&session, &token, user.as_ref(), record).await?;
        // If the session did not begin, the user's password or rights changed while the hash was computed.
        is_begun.then_some(pair).ok_or(AuthError::WrongPassword)
    }

    /// Continues a session. The refresh token cannot be used again.
    ///
    /// # Errors
    /// [`AuthError::InvalidRefreshToken`], whatever the fault of the token.
    pub async fn refresh(&self, refresh_token: &str, request: &RequestContext) -> Result<TokenPair, AuthError> {
        let outcome = self.continue_session(refresh_token, request).await;
        if let Err(error) = &outcome {
            self.ports.access.report_denial(request, error.reason());
        }
        outcome
    }

    async fn continue_session(&self, refresh_token: &str, request: &RequestContext) -> Result<TokenPair, AuthError> {
        let origin = &request.origin();
        let tokens = self.ports.tokens.clone().ok_or(AuthError::NoTokens)?;
        let now = self.ports.clock.now();
        let used = hash(refresh_token);
        // An invented token is refused after a read, so that only existing tokens wait for the database's only writer.
        let session = self.ports.credentials.session_of(&used).await?.filter(|session| session.ended_at.is_none());
        let rights = match &session {
            Some(session) => self.current_rights(session, now).await?,
            None => None,
        };
        let (Some(session), Some(rights)) = (session, rights) else {
            self.record_failure("", request, "invalid refresh token").await?;
            return Err(AuthError::InvalidRefreshToken);
        };
        let (text, next) = self.refresh_token("", now)?;
        // The new token is signed first, so that the old one is not used up if signing fails.
        let pair = self.pair(&*tokens, &session, &rights, text, now)?;
        let identity = identity_of(&rights, &session.id, AuthMethod::Jwt);
        let record = from(origin, entry("session_refreshed", now, &identity, format!("session:{}", session.id)));
        match self.ports.credentials.rotate(&used, &next, &rights, now, record).await? {
            Rotation::Rotated(session) => {
                // The rights of the session may have changed, so it is removed from the cache.
                self.cache.sessions.forget(&session.id);
                Ok(pair)
            }
            Rotation::Reused(session) => {
                self.cache.sessions.forget(&session.id);
                tracing::warn!(event = "refresh_token_reused", session_id = &*session.id, user_id = &*session.username);
                Err(AuthError::InvalidRefreshToken)
            }
            Rotation::Refused => {
                self.record_failure("", request, "invalid refresh token").await?;
                Err(AuthError::InvalidRefreshToken)
            }
        }
    }

    /// Ends the caller's own session and its access tokens at once. A refresh token of another session gets the same
    /// error as an unknown token.
    ///
    /// # Errors
    /// [`AuthError::InvalidRefreshToken`].
    pub async fn revoke(
        &self,
        identity: &Identity,
        refresh_token: &str,
        origin: &RequestOrigin,
    ) -> Result<(), AuthError> {
        let session = self.ports.credentials.session_of(&hash(refresh_token)).await?;
        let is_own = |session: &Session| *identity.credential == *format!("session:{}", session.id);
        let session = session.filter(is_own).ok_or(AuthError::InvalidRefreshToken)?;
        let now = self.ports.clock.now();
        let record = from(origin, entry("session_ended", now, identity, format!("session:{}", session.id)));
        self.ports.credentials.end_session(&session.id, now, record).await?;
        self.cache.sessions.forget(&session.id);
        Ok(())
    }

    /// Reads a session with its rights. A session of an older version has no stored rights, so it gets the rights of
    /// its user.
    pub(super) async fn read_session(&self, id: &str) -> Result<Option<Session>, StoreError> {
        match self.ports.credentials.session(id).await? {
            Some(session) if session.rights.is_none() && !session.is_guest => {
                let rights = self.user_rights(&session.username).await?;
                Ok(rights.map(|rights| Session { rights: Some(rights), ..session }))
            }
            found => Ok(found),
        }
    }

    /// Returns the rights of the continued session; `None` if it may not continue.
    async fn current_rights(&self, session: &Session, now: Timestamp) -> Result<Option<Rights>, StoreError> {
        if session.is_guest {
            let is_over = after(session.created_at, self.settings.refresh_lifetime) <= now;
            return Ok(session.rights.clone().filter(|_| !is_over));
        }
        self.user_rights(&session.username).await
    }

    async fn user_rights(&self, username: &str) -> Result<Option<Rights>, StoreError> {
        let user = self.ports.credentials.user(username).await?;
        Ok(user.filter(|user| user.disabled_at.is_none()).map(rights_of))
    }

    fn pair(
        &self,
        tokens: &dyn Tokens,
        session: &Session,
        rights: &Rights,
        refresh_token: String,
        now: Timestamp,
    ) -> Result<TokenPair, AuthError> {
        let expires_in = self.settings.access_lifetime;
        let grant = Grant {
            caller: rights.caller.clone(),
            username: session.username.clone(),
            scopes: rights.scopes,
            session_id: session.id.clone(),
            tenant: rights.tenant.clone(),
            issued_at: now,
            expires_at: after(now, expires_in),
        };
        let access_token = tokens.sign(&grant).map_err(|fault| match fault {
            TokenFault::NotSigning => AuthError::NoTokens,
            TokenFault::Invalid { why } => AuthError::InvalidToken { why },
            _ => AuthError::Unavailable,
        })?;
        let (user_id, scopes) = (rights.caller.user_id.clone(), rights.scopes);
        Ok(TokenPair { access_token, expires_in, refresh_token, user_id, scopes })
    }

    fn refresh_token(&self, session_id: &str, now: Timestamp) -> Result<(String, RefreshToken), AuthError> {
        let mut random = [0; 32];
        self.ports.randomness.fill(&mut random);
        // The prefix makes the token recognizable, so that it can be masked wherever it appears.
        let text = format!("{REFRESH_PREFIX}{}", base64url(&random));
        let expires_at = after(now, self.settings.refresh_lifetime);
        let token = RefreshToken { hash: hash(&text), session_id: session_id.into(), expires_at };
        Ok((text, token))
    }

    fn random_id(&self) -> Arc<str> {
        let mut random = [0; 16];
        self.ports.randomness.fill(&mut random);
        hex::encode(random).into()
    }

    async fn record_failure(
        &self,
        username: &str,
        request: &RequestContext,
        reason: &'static str,
    ) -> Result<(), AuthError> {
        let unproven = Identity::unproven(AuthMethod::Jwt);
        let resource = if username.is_empty() { "session".to_owned() } else { format!("user:{username}") };
        let record = entry("authentication_failure", self.ports.clock.now(), &unproven, resource);
        let record = AuditEntry { reason: Some(reason.into()), ..from(&request.origin(), record) };
        Ok(self.ports.access.record(request, record, Durability::NextBatch).await?)
    }
}

fn rights_of(user: User) -> Rights {
    let User { scopes, caller, tenant, .. } = user;
    Rights { scopes, caller, tenant }
}

pub(super) fn identity_of(rights: &Rights, session_id: &str, method: AuthMethod) -> Identity {
    Identity {
        caller: SecurityContext { auth_method: method, ..rights.caller.clone() },
        scopes: rights.scopes,
        credential: format!("session:{session_id}").into(),
        tenant: rights.tenant.clone(),
    }
}

pub(crate) fn from(origin: &RequestOrigin, entry: AuditEntry) -> AuditEntry {
    AuditEntry {
        client_ip: origin.client.map(|ip| ip.to_string().into()),
        correlation_id: origin.correlation_id.clone(),
        ..entry
    }
}

/// Returns the end of a lifetime, or the largest time if the end would be later.
fn after(start: Timestamp, lifetime: Duration) -> Timestamp {
    start.checked_add(lifetime).unwrap_or(Timestamp::MAX)
}
