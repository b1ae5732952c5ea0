//! Admits requests: takes the credential of a request and holds its caller against the route.
//!
//! In: a request and the access that its route requires. Out: the request with its caller, whose share of
//! requests is not used up, or a refusal. Secrets are read here and go to the authenticator alone. Absent:
//! verifying credentials and recording denials (`app::security`), counting requests (`app::limits`).

use std::sync::Arc;

use axum::extract::Request;
use axum::http::header::AUTHORIZATION;
use terrane_app::domain::RequestContext;
use terrane_app::limits::RateExceeded;
use terrane_app::security::{AuthError, AuthMethod, Credential, Identity, access};

use crate::app::App;
use crate::error::{ApiError, Code};
use crate::routes::Access;

/// The requirement of a route on the caller of a request. Holds the parts of the request that it needs and
/// not its body, so that it may wait for the store.
pub(crate) struct AuthRequirement<'a> {
    app: &'a App,
    access: Access,
    /// The request, whose caller is not known yet.
    context: RequestContext,
    /// Whether the request is addressed to a name that anonymous callers may use.
    is_host_known: bool,
    credential: Result<Option<String>, Refused>,
}

/// A refusal, and its reason in the log.
struct Refused {
    error: ApiError,
    reason: &'static str,
}

impl<'a> AuthRequirement<'a> {
    pub(crate) fn new(app: &'a App, access: Access, context: RequestContext, request: &Request) -> Self {
        let anonymous = app.settings.anonymous.as_ref();
        AuthRequirement {
            app,
            access,
            context,
            is_host_known: anonymous.is_none_or(|anonymous| anonymous.hosts.hold_that_of(request)),
            credential: bearer(request),
        }
    }

    /// Returns the request with its caller, and the id of the caller's credential.
    ///
    /// # Errors
    /// The credential is not valid, the caller may not do what the route requires, or sent too many
    /// requests. A denial is recorded first.
    pub(crate) async fn check(mut self) -> Result<(RequestContext, Arc<str>), ApiError> {
        let credential = std::mem::replace(&mut self.credential, Ok(None));
        let identity = match self.identity(credential).await {
            Ok(identity) => identity,
            Err(refusal) => {
                self.deny(refusal.reason).await?;
                return Err(refusal.error);
            }
        };
        let client = self.context.client;
        self.app.rates.admit(&identity, client).map_err(|exceeded| self.too_many(&identity, exceeded))?;
        let Identity { caller, scopes, method, credential, tenant } = identity;
        self.context = RequestContext { caller, scopes, auth_method: method, tenant, ..self.context };
        if method != AuthMethod::Anonymous {
            let recorded = self.app.ports.access.authenticated(&self.context, &credential).await;
            recorded.map_err(|error| ApiError::from_store(&error))?;
        }
        if let Access::Scoped(scope) = self.access
            && !scopes.hold(scope)
        {
            self.deny(access::MISSING_SCOPE).await?;
            return Err(ApiError::missing_scope(scope));
        }
        Ok((self.context, credential))
    }

    /// The caller: proven, or anonymous where that is offered and nothing was sent.
    async fn identity(&self, credential: Result<Option<String>, Refused>) -> Result<Identity, Refused> {
        if let Some(bearer) = credential? {
            return self.prove(&bearer).await;
        }
        match (&self.app.settings.anonymous, self.access) {
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
        let exceeded = self.app.rates.may_fail(self.context.client).err();
        let refused = |exceeded| Refused { reason: "too many failures", error: ApiError::from_rate(exceeded) };
        if let Some(exceeded) = exceeded
            && !authenticator.is_cheap(bearer)
        {
            return Err(refused(exceeded));
        }
        let error = match authenticator.identify(Credential { bearer, client: self.context.client }).await {
            Ok(identity) => return Ok(identity),
            Err(error) => error,
        };
        match exceeded {
            _ if matches!(error, AuthError::Unavailable) => {}
            Some(exceeded) => return Err(refused(exceeded)),
            None => self.app.rates.failed(self.context.client),
        }
        Err(Refused { reason: error.reason(), error: ApiError::from_auth(error) })
    }

    fn too_many(&self, identity: &Identity, exceeded: RateExceeded) -> ApiError {
        tracing::warn!(
            event = "rate_limited",
            user_id = &*identity.caller.user_id,
            client_ip = self.context.client.map(tracing::field::display),
            scope = exceeded.scope.as_str(),
        );
        ApiError::from_rate(exceeded)
    }

    async fn deny(&self, reason: &'static str) -> Result<(), ApiError> {
        let recorded = self.app.ports.access.denied(&self.context, reason).await;
        recorded.map_err(|error| ApiError::from_store(&error))
    }
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
