//! Authentication and authorization of a request.
//!
//! In: a request and the access that its route requires. Out: an [`Identity`] whose share of requests is not used up,
//! or an error; denials go to the log and to the journal. Secrets go to the authenticator alone. Absent on purpose:
//! checking credentials (`app::security`), counting (`app::limits`).

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{MatchedPath, Request};
use axum::http::{Method, Uri};
use terrane_app::limits::RateExceeded;
use terrane_app::ports::audit::AuditEntry;
use terrane_app::security::{AuthError, AuthMethod, Credential, Identity, TokenPair};
use terrane_wire::Code;

use super::call::{Call, correlation_id};
use super::credentials::{Credentials, CredentialsError};
use super::error::ApiError;
use super::protocol::{Protocol, protocol_of};
use super::routes::RouteAccess;
use crate::app::App;

/// The access that a route requires of one request. Holds the parts of the request that it needs and not its body, so
/// that it can wait for the store.
pub(super) struct AuthRequirement<'a> {
    app: &'a App,
    request: RequestInfo,
    /// The host is a name that anonymous callers may use.
    is_host_known: bool,
    credentials: Result<Credentials, Denial>,
}

/// An error, and its reason for the log.
struct Denial {
    error: ApiError,
    reason: &'static str,
}

impl<'a> AuthRequirement<'a> {
    pub(super) fn new(app: &'a App, access: RouteAccess, client: Option<IpAddr>, request: &Request) -> Self {
        AuthRequirement {
            app,
            request: RequestInfo::new(access, client, request),
            is_host_known: app
                .settings
                .anonymous
                .as_ref()
                .is_none_or(|anonymous| anonymous.hosts.hold_that_of(request)),
            credentials: credentials(protocol_of(request), request),
        }
    }

    /// Returns the caller, who has the access that the route requires.
    pub(super) async fn check(mut self) -> Result<Identity, ApiError> {
        let credentials = std::mem::replace(&mut self.credentials, Ok(Credentials::None));
        let identity = match self.identity(credentials).await {
            Ok(identity) => identity,
            Err(denial) => {
                self.deny(&Identity::default(), denial.reason).await?;
                return Err(denial.error);
            }
        };
        self.app.rates.admit(&identity, self.request.client).map_err(|exceeded| self.too_many(&identity, exceeded))?;
        if identity.method() != AuthMethod::Anonymous {
            self.proven(&identity).await?;
        }
        if let RouteAccess::Scoped(scope) = self.request.access
            && !identity.scopes.hold(scope)
        {
            self.deny(&identity, "missing scope").await?;
            return Err(ApiError::missing_scope(scope));
        }
        Ok(identity)
    }

    /// Returns the caller: authenticated, or anonymous if that is allowed and nothing was sent.
    async fn identity(&self, credentials: Result<Credentials, Denial>) -> Result<Identity, Denial> {
        if let Some(secret) = credentials?.into_secret() {
            return self.authenticate(&secret).await;
        }
        match (&self.app.settings.anonymous, self.request.access) {
            (Some(_), RouteAccess::Scoped(_)) if !self.is_host_known => {
                Err(Denial { reason: "unknown host", error: ApiError::misdirected() })
            }
            (Some(anonymous), RouteAccess::Scoped(_)) => {
                Ok(Identity { caller: anonymous.caller.clone(), scopes: anonymous.scopes, ..Identity::default() })
            }
            _ => {
                let message = "a credential is required: `Authorization: Bearer <API key or access token>`";
                Err(Denial { reason: "no credentials", error: ApiError::new(Code::Unauthorized, message) })
            }
        }
    }

    /// Authenticates a caller. For an address that has sent too many invalid credentials, only credentials that were
    /// valid here before are checked, so that others who call from there, through a proxy, go on.
    async fn authenticate(&self, bearer: &str) -> Result<Identity, Denial> {
        let authenticator = &self.app.ports.authenticator;
        let exceeded = self.app.rates.may_fail(self.request.client).err();
        let refused = |exceeded| Denial { reason: "too many failures", error: ApiError::from_rate(exceeded) };
        if let Some(exceeded) = exceeded
            && !authenticator.is_cheap(bearer)
        {
            return Err(refused(exceeded));
        }
        let error = match authenticator.identify(Credential { bearer, client: self.request.client }).await {
            Ok(identity) => return Ok(identity),
            Err(error) => error,
        };
        match exceeded {
            _ if matches!(error, AuthError::Unavailable) => {}
            Some(exceeded) => return Err(refused(exceeded)),
            None => self.app.rates.failed(self.request.client),
        }
        Err(Denial { reason: reason(&error), error: ApiError::from_auth(error) })
    }

    fn too_many(&self, identity: &Identity, exceeded: RateExceeded) -> ApiError {
        tracing::warn!(
            event = "rate_limited",
            user_id = &*identity.caller.user_id,
            client_ip = self.request.client.map(tracing::field::display),
            scope = exceeded.scope.as_str(),
        );
        ApiError::from_rate(exceeded)
    }

    async fn deny(&self, identity: &Identity, reason: &'static str) -> Result<(), ApiError> {
        self.request.deny(self.app, identity, reason).await
    }

    async fn proven(&self, identity: &Identity) -> Result<(), ApiError> {
        if let Some(metrics) = &self.app.watchers.watch.metrics {
            metrics.authenticated(identity.method().as_str());
        }
        tracing::info!(
            event = "authentication_success",
            user_id = &*identity.caller.user_id,
            auth_method = identity.method().as_str(),
            client_ip = self.request.client.map(tracing::field::display),
            permissions = identity.scopes.names().join(","),
        );
        let entry = self.request.entry(self.app, "authentication_success", identity, identity.credential.to_string());
        self.app.ports.journal.note(entry).await.map_err(|error| ApiError::from_store(&error))
    }
}

/// The parts of a request that the log and the journal have.
struct RequestInfo {
    access: RouteAccess,
    client: Option<IpAddr>,
    correlation_id: Arc<str>,
    method: Method,
    uri: Uri,
    /// The path as it is registered, so that made-up names cannot fill the journal.
    route: Option<MatchedPath>,
}

impl RequestInfo {
    fn new(access: RouteAccess, client: Option<IpAddr>, request: &Request) -> Self {
        RequestInfo {
            access,
            client,
            correlation_id: correlation_id(request),
            method: request.method().clone(),
            uri: request.uri().clone(),
            route: request.extensions().get::<MatchedPath>().cloned(),
        }
    }

    /// Records a denial in the log and in the journal.
    async fn deny(&self, app: &App, identity: &Identity, reason: &'static str) -> Result<(), ApiError> {
        log_denial(app, identity, self.access, (&self.method, self.uri.path()), reason);
        let route = self.route.as_ref().map_or("unknown", MatchedPath::as_str);
        let entry = self.entry(app, "access_denied", identity, format!("{} {route}", self.method));
        let entry = AuditEntry { reason: Some(reason.into()), ..entry };
        // A denial of a known caller is on disk before the answer; anonymous callers cannot force a write.
        let noted = match identity.method() {
            AuthMethod::Anonymous => app.ports.journal.note(entry).await,
            _ => app.ports.journal.note_durably(entry).await,
        };
        noted.map_err(|error| ApiError::from_store(&error))
    }

    fn entry(&self, app: &App, event: &'static str, identity: &Identity, resource: String) -> AuditEntry {
        AuditEntry {
            at: app.ports.clock.now(),
            event: event.into(),
            actor: identity.caller.user_id.clone(),
            auth_method: identity.method().as_str().into(),
            client_ip: self.client.map(|ip| ip.to_string().into()),
            correlation_id: Some(self.correlation_id.clone()),
            resource: resource.into(),
            count: 1,
            ..AuditEntry::default()
        }
    }
}

/// Records that a policy denied a request. Made before the request's handler takes it.
pub(super) struct DenialRecorder {
    identity: Identity,
    request: RequestInfo,
}

impl DenialRecorder {
    pub(super) fn new(call: &Call, access: RouteAccess) -> Self {
        let request = RequestInfo::new(access, call.client, call.request());
        DenialRecorder { identity: call.identity.clone(), request }
    }

    /// Records in the log and in the audit log that a policy denied the request.
    pub(super) async fn record(self, app: &App) -> Result<(), ApiError> {
        self.request.deny(app, &self.identity, "policy").await
    }
}

/// Records a denial in the log and the metrics.
fn log_denial(
    app: &App,
    identity: &Identity,
    access: RouteAccess,
    (method, path): (&Method, &str),
    reason: &'static str,
) {
    if let Some(metrics) = &app.watchers.watch.metrics {
        metrics.denied(reason);
    }
    let required = match access {
        RouteAccess::Scoped(scope) => scope.as_str(),
        RouteAccess::Identified | RouteAccess::Public => "identified",
    };
    tracing::warn!(
        event = "access_denied",
        user_id = &*identity.caller.user_id,
        resource = path,
        action = method.as_str(),
        reason,
        required_permission = required,
    );
}

/// Records a sign-in or the refresh of a session in the log and the metrics. The authenticator records it in the audit
/// log.
pub(crate) fn log_session(app: &App, client: Option<IpAddr>, path: &str, outcome: Result<&TokenPair, &AuthError>) {
    let pair = match outcome {
        Ok(pair) => pair,
        Err(error) => {
            return log_denial(app, &Identity::default(), RouteAccess::Public, (&Method::POST, path), reason(error));
        }
    };
    if let Some(metrics) = &app.watchers.watch.metrics {
        metrics.authenticated("password");
    }
    tracing::info!(
        event = "authentication_success",
        user_id = &*pair.user_id,
        auth_method = "password",
        client_ip = client.map(tracing::field::display),
        permissions = pair.scopes.names().join(","),
    );
}

fn credentials(protocol: &dyn Protocol, request: &Request) -> Result<Credentials, Denial> {
    let credentials = Credentials::read(request).and_then(|credentials| {
        if protocol.accepts(&credentials) { Ok(credentials) } else { Err(CredentialsError::InvalidHeader) }
    });
    credentials.map_err(|error| {
        let (reason, message) = match error {
            CredentialsError::Several => ("several credentials", "more than one credential"),
            CredentialsError::InvalidKey => ("malformed credential", "`api_key` is not an API key"),
            CredentialsError::InvalidHeader => {
                ("malformed credential", "expected `Authorization: Bearer <API key or access token>`")
            }
        };
        Denial { reason, error: ApiError::new(Code::Unauthorized, message) }
    })
}

fn reason(error: &AuthError) -> &'static str {
    match error {
        AuthError::UnknownKey => "unknown key",
        AuthError::ExpiredKey { .. } => "expired key",
        AuthError::RevokedKey => "revoked key",
        AuthError::TokenExpired { .. } => "expired token",
        AuthError::InvalidToken { why } => why,
        AuthError::NoTokens => "tokens are not accepted",
        AuthError::WrongPassword => "wrong password",
        AuthError::TooManyAttempts { .. } => "too many tries",
        AuthError::InvalidRefreshToken => "invalid refresh token",
        AuthError::Unavailable => "credentials cannot be checked",
    }
}
