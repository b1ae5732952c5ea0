//! The methods by which a caller authenticates.
//!
//! In: the word of a policy or of a caller file. Out: an [`AuthMethod`]. Not here: the check of credentials, which
//! happens before a query reaches the compiler.

/// The method by which a caller proved their identity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum AuthMethod {
    /// A caller without credentials.
    #[default]
    Anonymous,
    ApiKey,
    /// An access token of this server, an application or an identity provider.
    Jwt,
    /// A sign-in through an identity provider. Only its audit records have this method: the requests of the session
    /// carry an access token, which is [`AuthMethod::Jwt`].
    OAuth,
    /// The command line on the server's machine, which the operator uses.
    Operator,
}

impl AuthMethod {
    /// The methods that a request can have.
    pub const OF_REQUESTS: [AuthMethod; 4] =
        [AuthMethod::Anonymous, AuthMethod::ApiKey, AuthMethod::Jwt, AuthMethod::Operator];

    /// Returns the word for this method in policies, hooks, logs and audit records.
    pub const fn as_str(self) -> &'static str {
        match self {
            AuthMethod::Anonymous => "anonymous",
            AuthMethod::ApiKey => "api_key",
            AuthMethod::Jwt => "jwt",
            AuthMethod::OAuth => "oauth",
            AuthMethod::Operator => "operator",
        }
    }

    /// Returns the authentication method with a name; `None` if no request can have a method with this name.
    pub fn of_request(word: &str) -> Option<AuthMethod> {
        AuthMethod::OF_REQUESTS.into_iter().find(|method| method.as_str() == word)
    }
}
