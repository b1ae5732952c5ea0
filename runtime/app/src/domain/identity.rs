//! The caller of a request after its credential was verified.

use std::net::IpAddr;
use std::sync::Arc;

pub use terrane_compiler::AuthMethod;
use terrane_compiler::SecurityContext;

use super::Scopes;

/// A caller whose credential was verified.
#[derive(Debug, Clone, Default)]
pub struct Identity {
    /// The context that policies are evaluated against.
    pub caller: SecurityContext,
    pub scopes: Scopes,
    /// The id of the key or session. It is not a secret.
    pub credential: Arc<str>,
    /// The tenant; `None` on a server without tenants.
    pub tenant: Option<Arc<str>>,
}

impl Identity {
    /// Returns the way in which the caller authenticated.
    pub fn method(&self) -> AuthMethod {
        self.caller.auth_method
    }

    /// Returns an anonymous identity with the attempted method, for the audit records of a failed sign-in.
    pub(crate) fn unproven(auth_method: AuthMethod) -> Self {
        Identity { caller: SecurityContext { auth_method, ..SecurityContext::default() }, ..Identity::default() }
    }
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
