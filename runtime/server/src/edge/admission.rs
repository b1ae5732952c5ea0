//! Authentication and authorization of a request.
//!
//! In: a request and the access that its route requires. Out: the request with its caller, who is within the rate
//! limits, or an error. Only the authenticator receives secrets. Not here: checking credentials and recording denials
//! (`app::security`), counting (`app::limits`).

use std::sync::Arc;

use axum::extract::Request;
use terrane_app::domain::RequestContext;
use terrane_app::limits::RateExceeded;
use terrane_app::security::{AuthError, AuthMethod, Credential, Identity};
use terrane_wire::{Code, ErrorBody};

use super::credentials::{Credentials, CredentialsError};
use super::error::ApiError;
use super::protocol::{Protocol, protocol_of};
use super::routes::RouteAccess;
use crate::app::{App, Scope};

/// The access that a route requires of one request. It contains only the parts of the request that the check needs. It
/// does not borrow the body, because a future that holds a reference to a body while it waits for the store is not
/// `Send`.
pub(super) struct AuthRequirement<'a> {
    app: &'a App,
    access: RouteAccess,
    /// The request, whose caller is not known yet.
    context: RequestContext,
    /// True if the host is a name that anonymous callers may use.
    is_host_known: bool,
    credentials: Result<Credentials, Denial>,
}

/// An error, and its reason for the log.
struct Denial {
    error: ApiError,
    reason: &'static str,
}

impl<'a> AuthRequirement<'a> {
    pub(super) fn new(app: &'a App, access: RouteAccess, context: RequestContext, request: &Request) -> Self {
        AuthRequirement {
            app,
            access,
            context,
            is_host_known: is_host_known(app, request),
            credentials: credentials(protocol_of(request), request),
        }
    }

    /// Requires a scope of the caller of an open connection, who sent credentials in a message after the request.
    pub(super) fn of_connection(
        app: &'a App,
        scope: Scope,
        context: RequestContext,
        is_host_known: bool,
        credentials: Credentials,
    ) -> Self {
        let access = RouteAccess::Scoped(scope);
        AuthRequirement { app, access, context, is_host_known, credentials: Ok(credentials) }
    }

    /// Checks the access. Returns the request with its caller, and the id of the caller's credential. A denial is
    /// recorded before its error is returned.
    pub(super) async fn check(mut self) -> Result<(RequestContext, Arc<str>), ApiError> {
        let credentials = std::mem::replace(&mut self.credentials, Ok(Credentials::None));
        let identity = match self.identity(credentials).await {
            Ok(identity) => identity,
            Err(denial) => {
                deny(self.app, &self.context, denial.reason).await?;
                return Err(denial.error);
            }
        };
        let client = self.context.client;
        self.app.rates.admit(&identity, client).map_err(|exceeded| self.too_many(&identity, exceeded))?;
        let Identity { caller, scopes, credential, tenant } = identity;
        self.context = RequestContext { caller, scopes, tenant, ..self.context };
        if self.context.caller.auth_method != AuthMethod::Anonymous {
            let recorded = self.app.services.access.authenticated(&self.context, &credential).await;
            recorded.map_err(|error| ApiError::from_store(&error))?;
        }
        if let RouteAccess::Scoped(scope) = self.access {
            self.app.services.access.require(&self.context, scope).await.map_err(ErrorBody::from)?;
        }
        Ok((self.context, credential))
    }

    /// Returns the caller: authenticated, or anonymous if that is allowed and the request has no credential.
    async fn identity(&self, credentials: Result<Credentials, Denial>) -> Result<Identity, Denial> {
        if let Some(secret) = credentials?.into_secret() {
            return self.authenticate(&secret).await;
        }
        match (&self.app.settings.anonymous, self.access) {
            (Some(_), RouteAccess::Scoped(_)) if !self.is_host_known => {
                Err(Denial { reason: "unknown host", error: ApiError::misdirected() })
            }
            (Some(anonymous), RouteAccess::Scoped(_)) => {
                Ok(Identity { caller: anonymous.caller.clone(), scopes: anonymous.scopes, ..Identity::default() })
            }
            _ => {
                let message = "a credential is required: `Authorization: Bearer <API key or access token>` or the \
                               parameter `api_key`; API keys start with `trn_`";
                Err(Denial { reason: "no credentials", error: ApiError::new(Code::Unauthorized, message) })
            }
        }
    }

    /// Authenticates a caller. If the client's address has sent too many invalid credentials, only credentials that
    /// were valid before are checked, so that other callers behind the same proxy can continue.
    async fn authenticate(&self, bearer: &str) -> Result<Identity, Denial> {
        let authenticator = &self.app.services.authenticator;
        let exceeded = self.app.rates.may_fail(self.context.client).err();
        let refused = |exceeded| Denial { reason: "too many failures", error: ApiError::from_rate(exceeded) };
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
        Err(Denial { reason: error.reason(), error: ApiError::from_auth(error) })
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
}

/// Returns whether anonymous callers may use the request's host.
pub(super) fn is_host_known(app: &App, request: &Request) -> bool {
    let anonymous = app.settings.anonymous.as_ref();
    anonymous.is_none_or(|anonymous| anonymous.hosts.hold_that_of(request))
}

/// Records that a request is denied, in the log, the metrics and the audit log.
pub(crate) async fn deny(app: &App, context: &RequestContext, reason: &'static str) -> Result<(), ApiError> {
    app.services.access.denied(context, reason).await.map_err(|error| ApiError::from_store(&error))
}

fn credentials(protocol: &dyn Protocol, request: &Request) -> Result<Credentials, Denial> {
    let credentials = Credentials::read(request).and_then(|credentials| {
        if protocol.accepts(&credentials) { Ok(credentials) } else { Err(CredentialsError::InvalidHeader) }
    });
    credentials.map_err(|error| {
        let (reason, message) = match error {
            CredentialsError::Several => ("several credentials", "more than one credential"),
            CredentialsError::InvalidKey => {
                ("malformed credential", "`api_key` is not an API key; API keys start with `trn_`")
            }
            CredentialsError::InvalidHeader => (
                "malformed credential",
                "expected `Authorization: Bearer <API key or access token>`, or Basic with an API key as the password; \
                 API keys start with `trn_`",
            ),
        };
        Denial { reason, error: ApiError::new(Code::Unauthorized, message) }
    })
}
