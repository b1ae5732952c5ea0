//! Signing in through an identity provider: the authorization-code flow with state and PKCE.
//!
//! In: a browser that begins to sign in, and later its return from the provider. Out: the URL to redirect the browser
//! to, then an ordinary session of this server. The provider's claims about the person are read only when the session
//! begins, and the provider's tokens are not stored. This server accepts each state token once. Another replica would
//! accept the token again, but the provider accepts each code only once (RFC 6749, section 4.1.2). Not here: cookies
//! and parameters (server), requests and signatures (identity).

mod state_token;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Semaphore;

use super::access::Durability;
use super::api_key::{base64url, hash};
use super::sessions::from;
use super::{AuthError, AuthMethod, Authenticator, Identity, TokenPair, entry};
use crate::domain::{RequestContext, SecretHash};
use crate::ports::audit::AuditEntry;
use crate::ports::providers::{CodeExchange, IdentityProvider, LoginRequest, ProviderFault};

pub use state_token::StateTokenKey;
use state_token::{StateToken, StateTokenFault};

/// The lifetime of a browser's binding, in seconds.
pub const BINDING_SECONDS: i64 = state_token::LIFETIME_SECONDS;
/// The largest number of used state tokens that are remembered. The oldest are removed first. This is safe, because
/// their codes have been used too.
const MAX_USED: usize = 10_000;
/// The largest number of codes that are exchanged at the same time.
const MAX_EXCHANGES: usize = 32;
/// The largest size of a code, in bytes. Longer codes are refused without a request to the provider.
const MAX_CODE_BYTES: usize = 4_096;
/// The error codes of RFC 6749, section 4.1.2.1, and OpenID Connect Core, section 3.1.2.6. Only these are repeated in
/// messages.
const PROVIDER_ERRORS: &[&str] = &[
    "access_denied",
    "invalid_request",
    "invalid_scope",
    "unauthorized_client",
    "unsupported_response_type",
    "server_error",
    "temporarily_unavailable",
    "interaction_required",
    "login_required",
    "account_selection_required",
    "consent_required",
];

/// The URL to redirect a browser to, and the cookie that the browser stores until it returns.
pub struct LoginStart {
    pub location: String,
    /// The binding, for a cookie that scripts cannot read.
    pub binding: String,
}

/// The parameters of a callback.
#[derive(Clone, Copy, Default)]
pub struct Callback<'a> {
    pub state: Option<&'a str>,
    pub code: Option<&'a str>,
    pub error: Option<&'a str>,
    pub issuer: Option<&'a str>,
    /// The binding from the cookie.
    pub binding: Option<&'a str>,
}

/// The reason why a sign-in failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum OAuthError {
    #[error("unknown identity provider")]
    UnknownProvider,
    #[error("the callback has no `{name}`")]
    Missing { name: &'static str },
    #[error("this sign-in was not started in this browser; sign in again")]
    Foreign,
    #[error("this sign-in expired; sign in again")]
    Expired,
    #[error("this sign-in is already complete; sign in again")]
    Used,
    #[error("the answer comes from another identity provider")]
    MixedUp,
    #[error("the identity provider refused: {error}")]
    Refused { error: &'static str },
    #[error(transparent)]
    Provider(ProviderFault),
    #[error("too many sign-ins at once; try again")]
    Busy,
    #[error(transparent)]
    Session(AuthError),
}

/// The protocol of browsers that connect to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// HTTP, which is allowed only on a loopback address.
    Http,
    Https,
}

/// Signs callers in through providers.
pub struct OAuth {
    authenticator: Arc<Authenticator>,
    providers: Vec<Arc<dyn IdentityProvider>>,
    key: StateTokenKey,
    used: Mutex<VecDeque<SecretHash>>,
    exchanges: Semaphore,
    transport: Transport,
}

impl OAuth {
    pub fn new(
        authenticator: Arc<Authenticator>,
        providers: Vec<Arc<dyn IdentityProvider>>,
        key: StateTokenKey,
        transport: Transport,
    ) -> Self {
        OAuth {
            authenticator,
            providers,
            key,
            used: Mutex::default(),
            exchanges: Semaphore::new(MAX_EXCHANGES),
            transport,
        }
    }

    pub fn transport(&self) -> Transport {
        self.transport
    }

    /// Begins a login at a provider. Returns the URL for the browser, and the value that binds the login to it.
    ///
    /// # Errors
    /// [`OAuthError::UnknownProvider`].
    pub fn begin(&self, provider: &str) -> Result<LoginStart, OAuthError> {
        let provider = self.provider(provider)?;
        let mut random = [0; 32];
        self.authenticator.ports.randomness.fill(&mut random);
        let binding = base64url(&random);
        let state_token = self.key.state_token(provider.name(), &binding, self.authenticator.ports.clock.now());
        let location = provider.login_url(&LoginRequest {
            state: &state_token.state,
            nonce: &state_token.nonce,
            code_challenge: &state_token.code_challenge(),
        });
        Ok(LoginStart { location, binding })
    }

    /// Starts a session for the person that the provider has identified.
    ///
    /// # Errors
    /// [`OAuthError`]. After an error the state token cannot be used again, unless it belongs to another browser.
    pub async fn finish(
        &self,
        provider: &str,
        callback: Callback<'_>,
        request: &RequestContext,
    ) -> Result<TokenPair, OAuthError> {
        let provider = self.provider(provider)?;
        let outcome = self.exchange(provider, callback, request).await;
        let access = &self.authenticator.ports.access;
        match &outcome {
            Ok(pair) => {
                access.report_authentication(request, &pair.user_id, AuthMethod::OAuth.as_str(), pair.scopes);
            }
            Err(error) => {
                access.report_denial(request, reason(error));
                self.record_failure(provider.name(), request, reason(error)).await?;
            }
        }
        outcome
    }

    async fn exchange(
        &self,
        provider: &dyn IdentityProvider,
        callback: Callback<'_>,
        request: &RequestContext,
    ) -> Result<TokenPair, OAuthError> {
        let state_token = self.open(provider, callback)?;
        if let (Some(sent), Some(issuer)) = (callback.issuer, provider.issuer())
            && sent != issuer
        {
            return Err(OAuthError::MixedUp);
        }
        if let Some(error) = callback.error {
            let known = PROVIDER_ERRORS.iter().find(|known| **known == error);
            return Err(OAuthError::Refused { error: known.copied().unwrap_or("unknown reason") });
        }
        let code = callback.code.filter(|code| (1..=MAX_CODE_BYTES).contains(&code.len()));
        let code = code.ok_or(OAuthError::Missing { name: "code" })?;
        let Ok(_turn) = self.exchanges.try_acquire() else { return Err(OAuthError::Busy) };
        let exchange = CodeExchange { code, code_verifier: &state_token.code_verifier, nonce: &state_token.nonce };
        let now = self.authenticator.ports.clock.now();
        let person = provider.exchange(exchange, now).await.map_err(OAuthError::Provider)?;
        let begun = self.authenticator.begin_guest_session(provider.name(), person, &request.origin()).await;
        begun.map_err(OAuthError::Session)
    }

    /// Checks the state of a callback and returns its state token, which cannot be used again.
    fn open(&self, provider: &dyn IdentityProvider, callback: Callback<'_>) -> Result<StateToken, OAuthError> {
        let state = callback.state.ok_or(OAuthError::Missing { name: "state" })?;
        let binding = callback.binding.ok_or(OAuthError::Foreign)?;
        let now = self.authenticator.ports.clock.now();
        let state_token = self.key.open(provider.name(), binding, state, now).map_err(|fault| match fault {
            StateTokenFault::Foreign => OAuthError::Foreign,
            StateTokenFault::Expired => OAuthError::Expired,
        })?;
        let (mut used, hash) = (self.used.lock().unwrap_or_else(PoisonError::into_inner), hash(&state_token.state));
        if used.contains(&hash) {
            return Err(OAuthError::Used);
        }
        if used.len() >= MAX_USED {
            used.pop_front();
        }
        used.push_back(hash);
        Ok(state_token)
    }

    fn provider(&self, name: &str) -> Result<&dyn IdentityProvider, OAuthError> {
        let found = self.providers.iter().find(|provider| provider.name() == name);
        found.map(|provider| &**provider).ok_or(OAuthError::UnknownProvider)
    }

    async fn record_failure(&self, provider: &str, request: &RequestContext, reason: &str) -> Result<(), OAuthError> {
        let ports = &self.authenticator.ports;
        let unproven = Identity::unproven(AuthMethod::OAuth);
        let record = entry("authentication_failure", ports.clock.now(), &unproven, format!("provider:{provider}"));
        let record = AuditEntry { reason: Some(reason.into()), ..from(&request.origin(), record) };
        let recorded = ports.access.record(request, record, Durability::NextBatch).await;
        recorded.map_err(|error| OAuthError::Session(error.into()))
    }
}

/// Returns the name of the reason in the log, the metrics and the audit log.
fn reason(error: &OAuthError) -> &'static str {
    match error {
        OAuthError::UnknownProvider => "unknown provider",
        OAuthError::Missing { .. } => "incomplete callback",
        OAuthError::Foreign => "sign-in of another browser",
        OAuthError::Expired => "expired sign-in",
        OAuthError::Used => "completed sign-in",
        OAuthError::MixedUp => "response of another provider",
        OAuthError::Refused { error } => error,
        OAuthError::Provider(ProviderFault::CodeRefused) => "code refused",
        OAuthError::Provider(ProviderFault::Invalid { why }) => why,
        OAuthError::Provider(ProviderFault::Unavailable) => "provider unavailable",
        OAuthError::Busy => "too many concurrent sign-ins",
        OAuthError::Session(_) => "no session",
    }
}
