//! The port to identity providers that callers sign in through (OAuth 2.0, OpenID Connect).

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use terrane_compiler::SecurityContext;

use crate::domain::Scopes;

/// The parameters that the caller's browser passes to a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoginRequest<'a> {
    pub state: &'a str,
    /// A random value that the provider returns in the ID token.
    pub nonce: &'a str,
    /// The SHA-256 of the code verifier (RFC 7636).
    pub code_challenge: &'a str,
}

/// A code that a provider returned, with the proof that this server requested it.
#[derive(Clone, Copy)]
pub struct CodeExchange<'a> {
    pub code: &'a str,
    pub code_verifier: &'a str,
    pub nonce: &'a str,
}

/// The person that a provider vouches for.
#[derive(Debug, Clone, PartialEq)]
pub struct Person {
    /// The identifier of the person at the provider. Another provider may use the same identifier for another person.
    pub subject: Arc<str>,
    pub caller: SecurityContext,
    /// The scopes; `None` if the provider does not define them.
    pub scopes: Option<Scopes>,
    pub tenant: Option<Arc<str>>,
}

/// The reason why a sign-in through a provider failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProviderFault {
    #[error("the identity provider refused the code")]
    CodeRefused,
    /// The reason, to be shown to users. It never contains text from the provider.
    #[error("the identity provider's response is not valid: {why}")]
    Invalid { why: &'static str },
    #[error("the identity provider is unavailable")]
    Unavailable,
}

/// A configured identity provider.
#[async_trait]
pub trait IdentityProvider: Send + Sync {
    /// Returns the name of the provider in the routes.
    fn name(&self) -> &str;
    /// Returns the value that the parameter `iss` of a callback must have, if the callback has this parameter (RFC
    /// 9207).
    fn issuer(&self) -> Option<&str>;
    /// Returns the URL to redirect the caller's browser to.
    fn login_url(&self, request: &LoginRequest<'_>) -> String;
    /// Exchanges a code for the person that the provider has identified.
    async fn exchange(&self, exchange: CodeExchange<'_>, now: Timestamp) -> Result<Person, ProviderFault>;
}
