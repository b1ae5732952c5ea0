//! Errors of requests, before a protocol renders them.
//!
//! In: an [`ErrorBody`], or an error of a use case. Out: the body, with the headers that any protocol sends. Errors of
//! the state database and of plugins are logged here, since callers must not see their causes. Not here: codes and
//! fields (wire), forms and challenges (the protocols).

use std::time::Duration;

use axum::http::header::{ALLOW, RETRY_AFTER};
use axum::http::{HeaderName, HeaderValue, Method};
use serde_json::{Map, Value as Json};
use terrane_app::limits::{RateExceeded, RateScope};
use terrane_app::ports::plugins::{PluginError, PluginFault};
use terrane_app::ports::providers::ProviderFault;
use terrane_app::ports::store::StoreError;
use terrane_app::query::QueryRunError;
use terrane_app::security::AuthError;
use terrane_app::security::oauth::OAuthError;
use terrane_wire::error::{MAX_ECHO_CHARS, RateLimit};
use terrane_wire::{Code, ErrorBody, FieldError};

use crate::app::{Scope, Scopes};

/// An error with the headers of its response.
#[derive(Debug)]
pub(crate) struct ApiError(Box<Parts>);

/// The parts of an error, for a protocol that renders it.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) body: ErrorBody,
    /// Fields beside `error`, such as the checks of a probe.
    pub(crate) beside: Map<String, Json>,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
}

impl ApiError {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        ErrorBody::new(code, message).into()
    }

    pub(crate) fn message(&self) -> &str {
        &self.0.body.message
    }

    pub(crate) fn cube_not_found(name: &str) -> Self {
        ErrorBody::cube_not_found(name).into()
    }

    pub(crate) fn cube_exists(name: &str) -> Self {
        ErrorBody::cube_exists(name).into()
    }

    pub(crate) fn not_found(path: &str) -> Self {
        let path: String = path.chars().take(MAX_ECHO_CHARS).collect();
        ApiError::new(Code::NotFound, format!("route `{path}` does not exist; `GET /docs` lists the routes"))
    }

    /// Reports a method that the route does not have. `allow` lists the route's methods.
    pub(crate) fn method_not_allowed(method: &Method, allow: &HeaderValue) -> Self {
        let allowed = allow.to_str().unwrap_or_default();
        let methods: Vec<&str> = allowed.split(',').map(str::trim).filter(|m| !m.is_empty()).collect();
        let message = format!("method {method} is not allowed; allowed: {}", methods.join(", "));
        ApiError::new(Code::MethodNotAllowed, message).detail("allowed_methods", methods).header(ALLOW, allow.clone())
    }

    pub(crate) fn overloaded(message: String) -> Self {
        ApiError::new(Code::Overloaded, message)
    }

    pub(crate) fn missing_scope(scope: Scope) -> Self {
        ErrorBody::missing_scope(scope).into()
    }

    /// Reports a credential that is invalid, or that cannot be checked.
    pub(crate) fn from_auth(error: AuthError) -> Self {
        let message = error.to_string();
        match error {
            AuthError::UnknownKey
            | AuthError::ExpiredKey { .. }
            | AuthError::RevokedKey
            | AuthError::WrongPassword
            | AuthError::NoTokens => ApiError::new(Code::Unauthorized, message),
            AuthError::TokenExpired { at } => {
                ErrorBody::new(Code::TokenExpired, message).extra("expired_at", at.to_string()).into()
            }
            AuthError::InvalidToken { .. } | AuthError::InvalidRefreshToken => {
                ApiError::new(Code::InvalidToken, message)
            }
            AuthError::TooManyAttempts { wait } => ApiError::new(Code::RateLimited, message).retry_after(wait),
            AuthError::Unavailable => ApiError::new(Code::StateUnavailable, message),
        }
    }

    /// Reports an exceeded rate limit.
    pub(crate) fn from_rate(exceeded: RateExceeded) -> Self {
        let RateExceeded { scope, rate, wait } = exceeded;
        let limit = RateLimit { requests_per_second: rate.requests_per_second, burst: rate.burst.get() };
        let allowed = format!("{} a second, {} at once", limit.requests_per_second, limit.burst);
        let message = match scope {
            RateScope::Key => format!("too many requests of this caller; allowed: {allowed}"),
            RateScope::Tenant => format!("too many requests of this tenant; allowed: {allowed}"),
            RateScope::Address => {
                format!("too many requests without a credential from this address; allowed: {allowed}")
            }
            RateScope::Failures => "too many invalid credentials from this address".to_owned(),
        };
        ApiError::new(Code::RateLimited, message)
            .retry_after(wait)
            .detail("scope", scope.as_str())
            .detail("limit", serde_json::to_value(limit).unwrap_or_default())
    }

    /// Reports a host name that anonymous callers may not use, because the owner of the name could make browsers send
    /// requests to this server (see `hosts`).
    pub(crate) fn misdirected() -> Self {
        let message = "anonymous callers must use this server's address or `localhost`; send a credential, or let the \
                       operator add this host to `server.allowed_hosts`";
        ApiError::new(Code::MisdirectedRequest, message)
    }

    /// Adds `Retry-After` in whole seconds, at least one.
    fn retry_after(self, wait: Duration) -> Self {
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        self.header(RETRY_AFTER, HeaderValue::from(seconds.max(1)))
    }

    /// Reports a sign-in through a provider that failed.
    pub(crate) fn from_oauth(error: OAuthError) -> Self {
        let message = error.to_string();
        match error {
            OAuthError::UnknownProvider => ApiError::new(Code::NotFound, message),
            OAuthError::Missing { name } => ApiError::new(Code::InvalidQuery, message).detail("field", name),
            OAuthError::Foreign | OAuthError::Expired | OAuthError::Used | OAuthError::MixedUp => {
                ApiError::new(Code::Unauthorized, message)
            }
            OAuthError::Refused { error } => ApiError::new(Code::Unauthorized, message).detail("provider_error", error),
            OAuthError::Provider(ProviderFault::CodeRefused) => ApiError::new(Code::Unauthorized, message),
            OAuthError::Provider(ProviderFault::Invalid { .. }) => ApiError::new(Code::InvalidToken, message),
            OAuthError::Provider(ProviderFault::Unavailable) => ApiError::new(Code::StateUnavailable, message),
            OAuthError::Busy => ApiError::overloaded(message),
            OAuthError::Session(error) => ApiError::from_auth(error),
        }
    }

    /// Reports and logs that the state database does not answer.
    pub(crate) fn from_store(error: &StoreError) -> Self {
        ErrorBody::from_store(error).into()
    }

    /// Reports and logs a component that failed. The body names the component and the limit that it reached; the
    /// fault's message names files and is only in the log.
    pub(crate) fn from_plugin(error: &PluginError) -> Self {
        tracing::error!(event = "plugin_refused", error_message = %error);
        let component = error.component();
        let message = match error {
            PluginError::Faulted { fault: PluginFault::Limit { call, limit }, .. } => {
                format!("component `{component}` reached its limit of {limit} in `{call}`")
            }
            PluginError::Faulted { .. } => format!("component `{component}` failed; the log has its message"),
            PluginError::NotFound { .. } | PluginError::Name { .. } => {
                format!("component `{component}` not found; the log has the folders that were searched")
            }
        };
        ApiError::new(Code::PluginFault, message).component(error)
    }

    /// Adds the component of a fault. If the component reached a limit, adds the limit and the call too.
    pub(crate) fn component(self, error: &PluginError) -> Self {
        let named = self.detail("component", &*error.component());
        match error {
            PluginError::Faulted { fault: PluginFault::Limit { call, limit }, .. } => {
                named.detail("limit", limit.to_string()).detail("call", *call)
            }
            _ => named,
        }
    }

    pub(crate) fn from_run(error: QueryRunError, scopes: Scopes) -> Self {
        ErrorBody::from_run(error, scopes).into()
    }

    /// Adds a field to `details`.
    pub(crate) fn detail(mut self, name: &'static str, value: impl Into<Json>) -> Self {
        self.0.body = self.0.body.detail(name, value);
        self
    }

    /// Adds a field beside `error`.
    pub(crate) fn beside(mut self, name: &str, value: impl Into<Json>) -> Self {
        self.0.beside.insert(name.to_owned(), value.into());
        self
    }

    pub(crate) fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.headers.push((name, value));
        self
    }

    pub(crate) fn into_parts(self) -> Parts {
        *self.0
    }
}

impl From<ErrorBody> for ApiError {
    fn from(body: ErrorBody) -> Self {
        let headers = match body.code {
            Code::Overloaded | Code::WarehouseUnavailable | Code::StateUnavailable | Code::ResultsUnavailable => {
                vec![(RETRY_AFTER, HeaderValue::from_static("1"))]
            }
            _ => Vec::new(),
        };
        ApiError(Box::new(Parts { body, beside: Map::new(), headers }))
    }
}

impl From<FieldError> for ApiError {
    fn from(error: FieldError) -> Self {
        ErrorBody::from(error).into()
    }
}
