//! The caller of a request, once the credential is verified.

use std::net::IpAddr;
use std::sync::Arc;

use terrane_compiler::SecurityContext;

use super::Scopes;

/// The way in which a caller proved their identity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AuthMethod {
    /// The caller sent no credential.
    #[default]
    Anonymous,
    ApiKey,
    Jwt,
    /// An identity provider vouched for the caller when the session began.
    OAuth,
    /// The operator of this machine, at the command line.
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

/// A caller whose credential was verified.
#[derive(Debug, Clone, Default)]
pub struct Identity {
    /// The context that policies are evaluated against.
    pub caller: SecurityContext,
    pub scopes: Scopes,
    pub method: AuthMethod,
    /// The id of the key or session. It is not a secret.
    pub credential: Arc<str>,
    /// `None` on a server without tenants.
    pub tenant: Option<Arc<str>>,
}

/// The credential of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Credential<'a> {
    /// An API key or an access token.
    pub bearer: &'a str,
    pub client: Option<IpAddr>,
}

/// The source of a request, for its audit records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestOrigin {
    pub client: Option<IpAddr>,
    pub correlation_id: Option<Arc<str>>,
}
