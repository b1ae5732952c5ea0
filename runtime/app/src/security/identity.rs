//! Who calls, once it is proven.

use std::net::IpAddr;
use std::sync::Arc;

pub use terrane_compiler::AuthMethod;
use terrane_compiler::SecurityContext;

use super::Scopes;

/// A proven caller.
#[derive(Debug, Clone, Default)]
pub struct Identity {
    /// What policies are evaluated against.
    pub caller: SecurityContext,
    pub scopes: Scopes,
    /// Tells one credential from another and is no secret: a key's or a session's id.
    pub credential: Arc<str>,
    /// `None` where there is only one.
    pub tenant: Option<Arc<str>>,
}

impl Identity {
    /// The way in which the caller authenticated.
    pub fn method(&self) -> AuthMethod {
        self.caller.auth_method
    }

    /// An anonymous identity whose audit records name this method: a sign-in that failed.
    pub(crate) fn unproven(auth_method: AuthMethod) -> Self {
        Identity { caller: SecurityContext { auth_method, ..SecurityContext::default() }, ..Identity::default() }
    }
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
