//! Callers whose connection outlives its request: sockets, and streams of events.
//!
//! In: an admitted request, or a credential in a message of the connection. Out: the caller, and the moment at which
//! the caller's credential ends: it expires, is revoked, or gets other rights. Not here: the reaction to this end,
//! which depends on the protocol.

use std::sync::Arc;
use std::time::Duration;

use terrane_app::domain::{Identity, RequestContext};
use terrane_app::security::{AuthError, Credential};

use super::admission::AuthRequirement;
use super::credentials::Credentials;
use super::error::ApiError;
use crate::app::{App, Scope};

/// The time for which a connection stays open if its credential cannot be checked.
const MAX_UNCHECKED: Duration = Duration::from_secs(30);

/// Admits the caller of an open connection, once, by a credential that came after the request.
pub(crate) struct ConnectionAdmission {
    pub(super) context: RequestContext,
    /// True if the host is a name that anonymous callers may use.
    pub(super) is_host_known: bool,
}

impl ConnectionAdmission {
    /// Authenticates the caller, who must hold the scope.
    pub(crate) async fn admit(
        self,
        app: &App,
        scope: Scope,
        credentials: Credentials,
    ) -> Result<ConnectedCaller, ApiError> {
        let secret = credentials.clone().into_secret();
        let requirement = AuthRequirement::of_connection(app, scope, self.context, self.is_host_known, credentials);
        let (context, credential) = requirement.check().await?;
        Ok(ConnectedCaller { context, credential, secret })
    }
}

/// The admitted caller of an open connection.
pub(crate) struct ConnectedCaller {
    pub(crate) context: RequestContext,
    /// The id of the caller's key or session.
    pub(crate) credential: Arc<str>,
    /// The secret of the caller's credential; `None` for an anonymous caller.
    pub(super) secret: Option<String>,
}

impl ConnectedCaller {
    /// Returns the caller for one of many operations. Its correlation id contains the number of the operation.
    pub(crate) fn numbered(&self, number: u64) -> Self {
        let correlation_id = format!("{}.{number}", self.context.correlation_id).into();
        let context = RequestContext { correlation_id, ..self.context.clone() };
        ConnectedCaller { context, credential: self.credential.clone(), secret: None }
    }

    /// Counts one more operation of the caller against the rate limits.
    pub(crate) fn count(&self, app: &App) -> Result<(), ApiError> {
        app.rates.admit(&self.identity(), self.context.client).map_err(ApiError::from_rate)
    }

    fn identity(&self) -> Identity {
        let RequestContext { caller, scopes, tenant, .. } = &self.context;
        Identity {
            caller: caller.clone(),
            scopes: *scopes,
            credential: self.credential.clone(),
            tenant: tenant.clone(),
        }
    }

    /// Checks the credential once in each interval, until it has ended. Returns the error that the next request with
    /// this credential would get.
    pub(crate) async fn ended(&self, app: &App, interval: Duration) -> ApiError {
        let Some(secret) = &self.secret else { return std::future::pending().await };
        let mut unchecked = Duration::ZERO;
        loop {
            tokio::time::sleep(interval).await;
            let credential = Credential { bearer: secret, client: self.context.client };
            match app.services.authenticator.identify(credential).await {
                Ok(identity) if self.is_unchanged(&identity) => unchecked = Duration::ZERO,
                Ok(_) => return ApiError::from_auth(AuthError::InvalidToken { why: "its rights changed" }),
                Err(AuthError::Unavailable) if unchecked < MAX_UNCHECKED => unchecked += interval,
                Err(error) => return ApiError::from_auth(error),
            }
        }
    }

    fn is_unchanged(&self, identity: &Identity) -> bool {
        let RequestContext { caller, scopes, tenant, .. } = &self.context;
        (&identity.caller, identity.scopes, &identity.tenant) == (caller, *scopes, tenant)
    }
}
