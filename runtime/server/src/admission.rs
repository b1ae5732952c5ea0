//! Who calls, and whether they may: credentials out of a request, denials into the log and the journal.
//!
//! In: a request and what its route demands. Out: an [`Identity`] whose share of requests is not used
//! up, or a refusal. Secrets are read here and go to the authenticator alone. Not here: proving
//! (`app::security`), counting (`app::limits`).

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{MatchedPath, Request};
use axum::http::header::AUTHORIZATION;
use axum::http::{Method, Uri};
use terrane_app::limits::RateExceeded;
use terrane_app::ports::audit::AuditEntry;
use terrane_app::security::{AuthError, AuthMethod, Credential, Identity, TokenPair};

use crate::app::App;
use crate::call::Call;
use crate::error::{ApiError, Code};
use crate::routes::Access;

/// What a route asks of a request's caller. Holds what it needs of the request and not its body, so that
/// it may wait for the store.
pub(crate) struct Demand<'a> {
    app: &'a App,
    scene: Scene,
    /// It is addressed to a name that anonymous callers may use.
    is_host_known: bool,
    credential: Result<Option<String>, Refused>,
}

/// A refusal, and what the log says of it.
struct Refused {
    error: ApiError,
    reason: &'static str,
}

impl<'a> Demand<'a> {
    pub(crate) fn of(app: &'a App, access: Access, client: Option<IpAddr>, request: &Request) -> Self {
        Demand {
            app,
            scene: Scene::of(access, client, request),
            is_host_known: app
                .settings
                .anonymous
                .as_ref()
                .is_none_or(|anonymous| anonymous.hosts.hold_that_of(request)),
            credential: bearer(request),
        }
    }

    /// The caller, who may do what the route demands.
    pub(crate) async fn meet(mut self) -> Result<Identity, ApiError> {
        let credential = std::mem::replace(&mut self.credential, Ok(None));
        let identity = match self.identity(credential).await {
            Ok(identity) => identity,
            Err(refusal) => {
                self.deny(&Identity::default(), refusal.reason).await?;
                return Err(refusal.error);
            }
        };
        self.app.rates.admit(&identity, self.scene.client).map_err(|exceeded| self.too_many(&identity, exceeded))?;
        if identity.method() != AuthMethod::Anonymous {
            self.proven(&identity).await?;
        }
        if let Access::Scoped(scope) = self.scene.access
            && !identity.scopes.hold(scope)
        {
            self.deny(&identity, "missing scope").await?;
            return Err(ApiError::missing_scope(scope));
        }
        Ok(identity)
    }

    /// The caller: proven, or anonymous where that is offered and nothing was sent.
    async fn identity(&self, credential: Result<Option<String>, Refused>) -> Result<Identity, Refused> {
        if let Some(bearer) = credential? {
            return self.prove(&bearer).await;
        }
        match (&self.app.settings.anonymous, self.scene.access) {
            (Some(_), Access::Scoped(_)) if !self.is_host_known => {
                Err(Refused { reason: "unknown host", error: ApiError::misdirected() })
            }
            (Some(anonymous), Access::Scoped(_)) => {
                Ok(Identity { caller: anonymous.caller.clone(), scopes: anonymous.scopes, ..Identity::default() })
            }
            _ => {
                let message = "send a credential: `Authorization: Bearer <API key or access token>`";
                Err(Refused { reason: "no credentials", error: ApiError::new(Code::Unauthorized, message) })
            }
        }
    }

    /// Whose credential it is. An address that has sent too many which proved nothing is told so instead,
    /// and the state database is no longer asked for keys that nobody has proven here: others who call
    /// from there, through a proxy, go on.
    async fn prove(&self, bearer: &str) -> Result<Identity, Refused> {
        let authenticator = &self.app.ports.authenticator;
        let exceeded = self.app.rates.may_fail(self.scene.client).err();
        let refused = |exceeded| Refused { reason: "too many failures", error: ApiError::from_rate(exceeded) };
        if let Some(exceeded) = exceeded
            && !authenticator.is_cheap(bearer)
        {
            return Err(refused(exceeded));
        }
        let error = match authenticator.identify(Credential { bearer, client: self.scene.client }).await {
            Ok(identity) => return Ok(identity),
            Err(error) => error,
        };
        match exceeded {
            _ if matches!(error, AuthError::Unavailable) => {}
            Some(exceeded) => return Err(refused(exceeded)),
            None => self.app.rates.failed(self.scene.client),
        }
        Err(Refused { reason: reason(&error), error: ApiError::from_auth(error) })
    }

    fn too_many(&self, identity: &Identity, exceeded: RateExceeded) -> ApiError {
        tracing::warn!(
            event = "rate_limited",
            user_id = &*identity.caller.user_id,
            client_ip = self.scene.client.map(tracing::field::display),
            scope = exceeded.scope.as_str(),
        );
        ApiError::from_rate(exceeded)
    }

    async fn deny(&self, identity: &Identity, reason: &'static str) -> Result<(), ApiError> {
        self.scene.deny(self.app, identity, reason).await
    }

    async fn proven(&self, identity: &Identity) -> Result<(), ApiError> {
        if let Some(metrics) = &self.app.watchers.watch.metrics {
            metrics.authenticated(identity.method().as_str());
        }
        tracing::info!(
            event = "authentication_success",
            user_id = &*identity.caller.user_id,
            auth_method = identity.method().as_str(),
            client_ip = self.scene.client.map(tracing::field::display),
            permissions = identity.scopes.names().join(","),
        );
        let entry = self.scene.entry(self.app, "authentication_success", identity, identity.credential.to_string());
        self.app.ports.journal.note(entry).await.map_err(|error| ApiError::from_store(&error))
    }
}

/// Which request it was, for what is told of it.
struct Scene {
    access: Access,
    client: Option<IpAddr>,
    correlation_id: Arc<str>,
    method: Method,
    uri: Uri,
    /// As it is registered, so that made-up names in a path can't fill the journal.
    route: Option<MatchedPath>,
}

impl Scene {
    fn of(access: Access, client: Option<IpAddr>, request: &Request) -> Self {
        Scene {
            access,
            client,
            correlation_id: Call::correlation_id(request),
            method: request.method().clone(),
            uri: request.uri().clone(),
            route: request.extensions().get::<MatchedPath>().cloned(),
        }
    }

    /// Tells the log and the journal of a denial.
    async fn deny(&self, app: &App, identity: &Identity, reason: &'static str) -> Result<(), ApiError> {
        tell_denial(app, identity, self.access, (&self.method, self.uri.path()), reason);
        let route = self.route.as_ref().map_or("unknown", MatchedPath::as_str);
        let entry = self.entry(app, "access_denied", identity, format!("{} {route}", self.method));
        let entry = AuditEntry { reason: Some(reason.into()), ..entry };
        // A denial of somebody proven is on disk before they learn of it; strangers can't make us write.
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

/// Who made a request and which: kept while its handler has it, for what a policy denies.
pub(crate) struct Witness {
    identity: Identity,
    scene: Scene,
}

impl Witness {
    pub(crate) fn of(call: &Call, access: Access) -> Self {
        Witness { identity: call.identity.clone(), scene: Scene::of(access, call.client, call.request()) }
    }

    /// Tells the log and the audit log that a policy closed what was asked for.
    pub(crate) async fn deny(self, app: &App) -> Result<(), ApiError> {
        self.scene.deny(app, &self.identity, "policy").await
    }
}

/// A denial for the log and the metrics.
fn tell_denial(app: &App, identity: &Identity, access: Access, (method, path): (&Method, &str), reason: &'static str) {
    if let Some(metrics) = &app.watchers.watch.metrics {
        metrics.denied(reason);
    }
    let required = match access {
        Access::Scoped(scope) => scope.as_str(),
        Access::Identified | Access::Public => "identified",
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

/// What came of signing in or going on with a session, for the log and the metrics; the audit log has it
/// from the authenticator.
pub(crate) fn tell_session(app: &App, client: Option<IpAddr>, path: &str, outcome: Result<&TokenPair, &AuthError>) {
    let pair = match outcome {
        Ok(pair) => pair,
        Err(error) => {
            return tell_denial(app, &Identity::default(), Access::Public, (&Method::POST, path), reason(error));
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

/// The one credential of a request. A key may be a query parameter; a token may not, because addresses
/// are written down in many places.
fn bearer(request: &Request) -> Result<Option<String>, Refused> {
    let refused = |reason, message: &str| Refused { reason, error: ApiError::new(Code::Unauthorized, message) };
    let mut headers = request.headers().get_all(AUTHORIZATION).iter();
    let parameters = request.uri().query().unwrap_or_default();
    let mut keys = form_urlencoded::parse(parameters.as_bytes()).filter(|(name, _)| name == "api_key");
    let (header, key) = (headers.next(), keys.next());
    if headers.next().is_some() || keys.next().is_some() || (header.is_some() && key.is_some()) {
        return Err(refused("several credentials", "send one credential, not several"));
    }
    if let Some((_, key)) = key {
        if !terrane_app::security::api_key::is_key(&key) {
            return Err(refused("malformed credential", "`api_key` is no API key"));
        }
        return Ok(Some(key.into_owned()));
    }
    let Some(header) = header else { return Ok(None) };
    let bearer = header.to_str().ok().and_then(|text| {
        let (scheme, token) = text.split_once(' ')?;
        let token = token.trim();
        (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then(|| token.to_owned())
    });
    match bearer {
        Some(token) => Ok(Some(token)),
        None => Err(refused("malformed credential", "write `Authorization: Bearer <API key or access token>`")),
    }
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
