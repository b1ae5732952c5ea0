//! The one place where an error gets its code, its status and its body.
//!
//! In: the facts that the compiler, the use cases and the wire reader give. Out: the interface's two
//! shapes, `{error: {code, message, details?, …extra, correlation_id}}` and `{detail}`. Extra fields
//! stand beside `message` or inside `details` exactly as the specification's error table writes them.
//! Not here: the texts of `QueryError` (compiler), whose `Display` is the message.

use std::sync::Arc;
use std::time::Duration;

use axum::http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::response::Response;
use serde_json::{Map, Value as Json, json};
use terrane_app::limits::{RateExceeded, RateScope};
use terrane_app::ports::plugins::{PluginError, PluginFault};
use terrane_app::ports::providers::ProviderFault;
use terrane_app::ports::store::StoreError;
use terrane_app::ports::warehouse::WarehouseErrorKind;
use terrane_app::query::{Denied, QueryRunError};
use terrane_app::security::AuthError;
use terrane_app::security::oauth::OAuthError;
use terrane_compiler::query::{ErrorCode, Operator, QueryError};
use terrane_compiler::types::Granularity;

use crate::app::{Scope, Scopes};
use crate::local::Refused;

/// As much of a client's text as a message repeats.
const MAX_ECHO_CHARS: usize = 200;

macro_rules! codes {
    ($($variant:ident $name:literal $status:ident;)*) => {
        /// Every code that a body can carry.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code { $($variant),* }

        impl Code {
            pub const ALL: &'static [Code] = &[$(Code::$variant),*];

            pub fn as_str(self) -> &'static str {
                match self { $(Code::$variant => $name),* }
            }

            pub fn status(self) -> StatusCode {
                match self { $(Code::$variant => StatusCode::$status),* }
            }
        }
    };
}

codes! {
    InvalidQuery "INVALID_QUERY" BAD_REQUEST;
    InvalidMeasure "INVALID_MEASURE" BAD_REQUEST;
    InvalidDimension "INVALID_DIMENSION" BAD_REQUEST;
    InvalidFilter "INVALID_FILTER" BAD_REQUEST;
    NoJoinPath "NO_JOIN_PATH" BAD_REQUEST;
    Unauthorized "UNAUTHORIZED" UNAUTHORIZED;
    TokenExpired "TOKEN_EXPIRED" UNAUTHORIZED;
    InvalidToken "INVALID_TOKEN" UNAUTHORIZED;
    Forbidden "FORBIDDEN" FORBIDDEN;
    NotFound "NOT_FOUND" NOT_FOUND;
    InvalidProjectPath "INVALID_PROJECT_PATH" BAD_REQUEST;
    ValidationError "VALIDATION_ERROR" UNPROCESSABLE_ENTITY;
    CompilationError "COMPILATION_ERROR" INTERNAL_SERVER_ERROR;
    MethodNotAllowed "METHOD_NOT_ALLOWED" METHOD_NOT_ALLOWED;
    Conflict "CONFLICT" CONFLICT;
    MisdirectedRequest "MISDIRECTED_REQUEST" MISDIRECTED_REQUEST;
    QueryTimeout "QUERY_TIMEOUT" REQUEST_TIMEOUT;
    RequestTimeout "REQUEST_TIMEOUT" REQUEST_TIMEOUT;
    PayloadTooLarge "PAYLOAD_TOO_LARGE" PAYLOAD_TOO_LARGE;
    UnsupportedMediaType "UNSUPPORTED_MEDIA_TYPE" UNSUPPORTED_MEDIA_TYPE;
    InternalError "INTERNAL_ERROR" INTERNAL_SERVER_ERROR;
    WarehouseError "WAREHOUSE_ERROR" BAD_GATEWAY;
    WarehouseUnavailable "WAREHOUSE_UNAVAILABLE" SERVICE_UNAVAILABLE;
    PluginFault "PLUGIN_FAULT" BAD_GATEWAY;
    Overloaded "OVERLOADED" SERVICE_UNAVAILABLE;
    RateLimited "RATE_LIMITED" TOO_MANY_REQUESTS;
    StateUnavailable "STATE_UNAVAILABLE" SERVICE_UNAVAILABLE;
}

/// A refusal on its way out.
#[derive(Debug)]
pub(crate) struct ApiError(Box<Refusal>);

#[derive(Debug)]
struct Refusal {
    code: Code,
    message: String,
    details: Map<String, Json>,
    extra: Map<String, Json>,
    /// What stands beside `error`: the checks of a probe.
    beside: Map<String, Json>,
    headers: Vec<(HeaderName, HeaderValue)>,
    /// `{detail}`: only where the specification lists it, on the metadata routes of cubes.
    is_detail_form: bool,
}

impl ApiError {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        let headers = match code {
            Code::Overloaded | Code::WarehouseUnavailable | Code::StateUnavailable => {
                vec![(RETRY_AFTER, HeaderValue::from_static("1"))]
            }
            Code::Unauthorized | Code::TokenExpired | Code::InvalidToken => {
                vec![(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))]
            }
            _ => Vec::new(),
        };
        ApiError(Box::new(Refusal {
            code,
            message: message.into(),
            details: Map::new(),
            extra: Map::new(),
            beside: Map::new(),
            headers,
            is_detail_form: false,
        }))
    }

    pub(crate) fn cube_not_found(name: &str) -> Self {
        let name: String = name.chars().take(MAX_ECHO_CHARS).collect();
        let mut refusal = ApiError::new(Code::NotFound, format!("cube `{name}` not found"));
        refusal.0.is_detail_form = true;
        refusal
    }

    /// The specification's own words, in its own form.
    pub(crate) fn cube_exists(name: &str) -> Self {
        let name: String = name.chars().take(MAX_ECHO_CHARS).collect();
        let mut refusal = ApiError::new(Code::InvalidQuery, format!("cube `{name}` already exists"));
        refusal.0.is_detail_form = true;
        refusal
    }

    pub(crate) fn not_found(path: &str) -> Self {
        let path: String = path.chars().take(MAX_ECHO_CHARS).collect();
        ApiError::new(Code::NotFound, format!("there is no route `{path}`"))
    }

    /// `allow` is what the route has.
    pub(crate) fn method_not_allowed(method: &Method, allow: &HeaderValue) -> Self {
        let allowed = allow.to_str().unwrap_or_default();
        let methods: Vec<&str> = allowed.split(',').map(str::trim).filter(|m| !m.is_empty()).collect();
        let message = format!("this route does not answer {method}; it answers {}", methods.join(", "));
        let mut refusal = ApiError::new(Code::MethodNotAllowed, message).detail("allowed_methods", methods);
        refusal.0.headers.push((ALLOW, allow.clone()));
        refusal
    }

    pub(crate) fn overloaded(message: String) -> Self {
        ApiError::new(Code::Overloaded, message)
    }

    pub(crate) fn missing_scope(scope: Scope) -> Self {
        ApiError::new(Code::Forbidden, format!("this needs the scope `{}`", scope.as_str()))
            .detail("required_scope", scope.as_str())
    }

    /// Who calls could not be found out.
    pub(crate) fn from_auth(error: AuthError) -> Self {
        let message = error.to_string();
        match error {
            AuthError::UnknownKey
            | AuthError::ExpiredKey { .. }
            | AuthError::RevokedKey
            | AuthError::WrongPassword
            | AuthError::NoTokens => ApiError::new(Code::Unauthorized, message),
            AuthError::TokenExpired { at } => {
                ApiError::new(Code::TokenExpired, message).extra("expired_at", at.to_string())
            }
            AuthError::InvalidToken { .. } | AuthError::InvalidRefreshToken => {
                ApiError::new(Code::InvalidToken, message)
            }
            AuthError::TooManyAttempts { wait } => ApiError::new(Code::RateLimited, message).retry_after(wait),
            AuthError::Unavailable => ApiError::new(Code::StateUnavailable, message),
        }
    }

    /// A share of requests is used up.
    pub(crate) fn from_rate(exceeded: RateExceeded) -> Self {
        let RateExceeded { scope, rate, wait } = exceeded;
        let (number, burst) = (rate.requests_per_second, rate.burst);
        let rate = format!("{number} a second, {burst} at once");
        let message = match scope {
            RateScope::Key => format!("you sent too many requests: {rate} are allowed"),
            RateScope::Tenant => format!("your tenant sent too many requests: {rate} are allowed"),
            RateScope::Address => {
                format!("your address sent too many requests without a credential: {rate} are allowed")
            }
            RateScope::Failures => "your address sent too many credentials that prove nothing".to_owned(),
        };
        ApiError::new(Code::RateLimited, message)
            .retry_after(wait)
            .detail("scope", scope.as_str())
            .detail("limit", json!({"requests_per_second": number, "burst": burst.get()}))
    }

    /// A name that anonymous callers may not use, since whoever owns it could send their browsers here.
    pub(crate) fn misdirected() -> Self {
        let message = "this server lets callers without credentials in under its address and `localhost` only; \
                       send a credential, or let the operator add this host to `server.allowed_hosts`";
        ApiError::new(Code::MisdirectedRequest, message)
    }

    /// In whole seconds, at least one.
    fn retry_after(mut self, wait: Duration) -> Self {
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        self.0.headers.push((RETRY_AFTER, HeaderValue::from(seconds.max(1))));
        self
    }

    /// Nobody was signed in through a provider.
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

    /// The state database doesn't answer; its own words are in the log.
    pub(crate) fn from_store(error: &StoreError) -> Self {
        tracing::error!(event = "state_unavailable", error_message = %error);
        ApiError::new(Code::StateUnavailable, "the state database cannot be reached")
    }

    /// A component failed. Names it, and the limit that it reached; the message of the fault names files and
    /// is in the log.
    pub(crate) fn from_plugin(error: &PluginError) -> Self {
        tracing::error!(event = "plugin_refused", error_message = %error);
        let component = error.component();
        let refused = |message: String| ApiError::new(Code::PluginFault, message).detail("component", &*component);
        match error {
            PluginError::Faulted { fault: PluginFault::Limit { call, limit }, .. } => {
                refused(format!("component `{component}` reached its limit of {limit} in `{call}`"))
                    .detail("limit", limit.to_string())
                    .detail("call", *call)
            }
            PluginError::Faulted { .. } => refused(format!("component `{component}` failed; the log has its message")),
            PluginError::NotFound { .. } | PluginError::Name { .. } => {
                refused(format!("component `{component}` not found; the log has the folders that were searched"))
            }
        }
    }

    /// Adds a field to `details`.
    pub(crate) fn detail(mut self, name: &str, value: impl Into<Json>) -> Self {
        self.0.details.insert(name.to_owned(), value.into());
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

    /// Adds a field beside `message`.
    fn extra(mut self, name: &str, value: impl Into<Json>) -> Self {
        self.0.extra.insert(name.to_owned(), value.into());
        self
    }

    /// What `run` ended with. The warehouse's own words are for callers with `admin`.
    pub(crate) fn from_run(error: QueryRunError, scopes: Scopes) -> Self {
        match error {
            QueryRunError::Query(error) => error.into(),
            QueryRunError::Timeout { timeout } => timed_out(timeout),
            QueryRunError::Overloaded(error) => ApiError::overloaded(error.to_string()),
            QueryRunError::Denied(Denied { reason, message }) => {
                ApiError::new(Code::Forbidden, &*message).detail("reason", &*reason)
            }
            QueryRunError::Unrecorded(error) => ApiError::from_store(&error),
            QueryRunError::PolicyUnavailable => {
                ApiError::new(Code::Forbidden, error.to_string()).detail("reason", "policy_unavailable")
            }
            QueryRunError::Warehouse(error) => {
                let refusal = match error.kind {
                    WarehouseErrorKind::Unavailable => {
                        ApiError::new(Code::WarehouseUnavailable, "the warehouse cannot be reached")
                    }
                    WarehouseErrorKind::Refused | WarehouseErrorKind::Timeout => {
                        let message = "the warehouse refused the statement; the log has its message";
                        ApiError::new(Code::WarehouseError, message)
                    }
                };
                if scopes.hold(Scope::Admin) { refusal.detail("warehouse_message", error.message) } else { refusal }
            }
        }
    }

    pub(crate) fn into_local(self) -> Refused {
        let Refusal { code, message, mut details, extra, .. } = *self.0;
        details.extend(extra);
        Refused { code: code.as_str(), message, details }
    }

    pub(crate) fn into_response(self, correlation_id: &str) -> Response {
        let Refusal { code, message, details, extra, mut beside, headers, is_detail_form } = *self.0;
        let body = if is_detail_form {
            json!({ "detail": message })
        } else {
            let mut error = Map::new();
            error.insert("code".to_owned(), code.as_str().into());
            error.insert("message".to_owned(), message.into());
            if !details.is_empty() {
                error.insert("details".to_owned(), details.into());
            }
            error.extend(extra);
            error.insert("correlation_id".to_owned(), correlation_id.into());
            beside.insert("error".to_owned(), error.into());
            Json::Object(beside)
        };
        let mut response = Response::new(body.to_string().into());
        *response.status_mut() = code.status();
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response.headers_mut().extend(headers);
        response
    }
}

fn timed_out(timeout: Duration) -> ApiError {
    let message = format!("the query ran longer than {} seconds", timeout.as_secs_f64());
    ApiError::new(Code::QueryTimeout, message).extra(
        "suggestion",
        "ask for a shorter time range or fewer dimensions; the operator sets the limit with `query.timeout`",
    )
}

impl From<QueryError> for ApiError {
    fn from(error: QueryError) -> Self {
        let code = match error.code() {
            ErrorCode::InvalidQuery => Code::InvalidQuery,
            ErrorCode::InvalidMeasure => Code::InvalidMeasure,
            ErrorCode::InvalidDimension => Code::InvalidDimension,
            ErrorCode::InvalidFilter => Code::InvalidFilter,
            ErrorCode::NoJoinPath => Code::NoJoinPath,
            ErrorCode::Forbidden => Code::Forbidden,
        };
        let refusal = ApiError::new(code, error.to_string());
        match error {
            QueryError::UnknownCube { nearest, .. } => refusal.detail("available_cubes", names(&nearest)),
            QueryError::UnknownMetric { nearest, .. } => refusal.detail("available_metrics", names(&nearest)),
            QueryError::UnknownMeasure { nearest, .. } => refusal.extra("available_measures", names(&nearest)),
            QueryError::UnknownDimension { nearest, .. } => refusal.extra("available_dimensions", names(&nearest)),
            QueryError::UnknownSegment { nearest, .. } => refusal.extra("available_segments", names(&nearest)),
            QueryError::UnknownOperator { .. } => {
                refusal.extra("valid_operators", Operator::ALL.map(Operator::as_str).to_vec())
            }
            QueryError::OperatorNotAllowed { valid_operators, .. } => refusal.extra("valid_operators", valid_operators),
            QueryError::UnknownGranularity { .. } => {
                refusal.detail("available_granularities", Granularity::ALL.map(Granularity::as_str).to_vec())
            }
            QueryError::GranularityNotAllowed { allowed, .. } => {
                let allowed: Vec<&str> = allowed.into_iter().map(Granularity::as_str).collect();
                refusal.detail("available_granularities", allowed)
            }
            QueryError::NoJoinPath { reachable, .. } => refusal.detail("reachable_cubes", names(&reachable)),
            QueryError::ValueDoesNotFit { member, expected, .. } => {
                refusal.detail("member", &*member).detail("expected", expected)
            }
            QueryError::LimitTooLarge { max, .. } => refusal.detail("max_limit", max),
            _ => refusal,
        }
    }
}

fn names(names: &[Arc<str>]) -> Vec<&str> {
    names.iter().map(|name| &**name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_names_every_code_with_its_status() {
        let reference = include_str!("../../QUERY.md");
        for code in Code::ALL {
            let (name, status) = (format!("`{}`", code.as_str()), code.status().as_u16().to_string());
            let row = reference.lines().find(|line| line.starts_with("| ") && line.contains(&name));
            assert!(row.is_some_and(|row| row.contains(&status)), "QUERY.md: {name} with {status}");
        }
    }
}
