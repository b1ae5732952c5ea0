//! Who calls, once it is proven.

use std::net::IpAddr;
use std::sync::Arc;

use terrane_compiler::SecurityContext;

use super::Scopes;

/// How a caller proved who they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AuthMethod {
    /// Not at all.
    #[default]
    Anonymous,
    ApiKey,
    Jwt,
    /// By an identity provider, when the session began.
    OAuth,
    /// By being on the machine: the command line.
    Operator,
}

impl AuthMethod {
    pub fn as_str(self) -> &'static str {
        match self {
            AuthMethod::Anonymous => "anonymous",
            AuthMethod::ApiKey => "api_key",
            AuthMethod::Jwt => "jwt",
            AuthMethod::OAuth => "oauth",
            AuthMethod::Operator => "operator",
        }
    }
}

/// A proven caller.
#[derive(Debug, Clone, Default)]
pub struct Identity {
    /// What policies are evaluated against.
    pub caller: SecurityContext,
    pub scopes: Scopes,
    pub method: AuthMethod,
    /// Tells one credential from another and is no secret: a key's or a session's id.
    pub credential: Arc<str>,
    /// `None` where there is only one.
    pub tenant: Option<Arc<str>>,
}

/// What a request carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Credential<'a> {
    /// An API key or an access token.
    pub bearer: &'a str,
    pub client: Option<IpAddr>,
}

/// Where a request came from, for its records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    pub client: Option<IpAddr>,
    pub correlation_id: Option<Arc<str>>,
}
