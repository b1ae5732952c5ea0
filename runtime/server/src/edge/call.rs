//! One admitted request: its caller, its correlation id, and the parts that a handler reads.

use std::sync::Arc;

use axum::RequestExt as _;
use axum::body::HttpBody as _;
use axum::extract::{Path, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, Method};
use bytes::Bytes;
use terrane_app::domain::{Identity, RequestContext, RequestOrigin, RequestTarget};
use terrane_app::ports::traces::TraceContext;

use super::Connection;
use super::admission::{AuthRequirement, is_host_known};
use super::body::{self, BodyFormat, JSON};
use super::connected::{ConnectedCaller, ConnectionAdmission};
use super::credentials::Credentials;
use super::error::ApiError;
use super::protocol::protocol_of;
use super::routes::RouteAccess;
use crate::app::{App, Scopes};

/// The id that the edge sets on every request, before routing.
#[derive(Debug, Clone)]
pub(super) struct CorrelationId(pub(super) Arc<str>);

pub(crate) fn correlation_id(request: &Request) -> Arc<str> {
    request.extensions().get::<CorrelationId>().map(|id| id.0.clone()).unwrap_or_default()
}

/// A request whose caller has the access that its route requires.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) context: RequestContext,
    pub(crate) scopes: Scopes,
    /// The id of the caller's key or session.
    credential: Arc<str>,
    request: Request,
}

impl Call {
    /// Authenticates the caller and checks the access that the route requires. A caller with an invalid credential is
    /// rejected, and never counts as anonymous.
    pub(super) async fn admit(
        app: &App,
        access: RouteAccess,
        pattern: &'static str,
        request: Request,
    ) -> Result<Self, ApiError> {
        let protocol = protocol_of(&request);
        let client = request.extensions().get::<Connection>().and_then(|connection| connection.peer);
        let context = RequestContext {
            correlation_id: correlation_id(&request),
            trace: request.extensions().get::<TraceContext>().copied(),
            surface: protocol.surface(),
            client,
            target: RequestTarget {
                action: method_name(request.method()),
                resource: request.uri().path().into(),
                pattern,
                required: access.scope(),
            },
            ..RequestContext::default()
        };
        let (context, credential) = match access {
            RouteAccess::Public => {
                if !protocol.is_probe(request.uri().path()) {
                    app.rates.admit_stranger(client).map_err(ApiError::from_rate)?;
                }
                (context, Arc::default())
            }
            _ => AuthRequirement::new(app, access, context, &request).check().await?,
        };
        Ok(Call { scopes: context.scopes, context, credential, request })
    }

    /// Returns the identity of the caller, for routes that change the caller's own credentials.
    pub(crate) fn identity(&self) -> Identity {
        let RequestContext { caller, scopes, tenant, .. } = &self.context;
        Identity {
            caller: caller.clone(),
            scopes: *scopes,
            credential: self.credential.clone(),
            tenant: tenant.clone(),
        }
    }

    /// Returns the id of the caller's key or session.
    pub(crate) fn credential(&self) -> Arc<str> {
        self.credential.clone()
    }

    /// Returns the caller, for a connection that outlives the request.
    pub(crate) fn connected(&self) -> ConnectedCaller {
        let secret = Credentials::read(&self.request).ok().and_then(Credentials::into_secret);
        ConnectedCaller { context: self.context.clone(), credential: self.credential.clone(), secret }
    }

    /// Returns the request, and the admission for a caller who sends a credential after the request.
    pub(crate) fn into_connection(self, app: &App) -> (ConnectionAdmission, Request) {
        let is_host_known = is_host_known(app, &self.request);
        (ConnectionAdmission { context: self.context, is_host_known }, self.request)
    }

    /// Returns the origin of the request, for audit records.
    pub(crate) fn origin(&self) -> RequestOrigin {
        self.context.origin()
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        self.request.headers()
    }

    /// Returns whether the request came under TLS.
    pub(crate) fn is_secure(&self) -> bool {
        self.request.extensions().get::<Connection>().is_some_and(|connection| connection.is_secure)
    }

    pub(crate) fn path(&self) -> &str {
        self.request.uri().path()
    }

    /// Returns the query string, still percent-encoded.
    pub(crate) fn query_string(&self) -> &str {
        self.request.uri().query().unwrap_or_default()
    }

    /// Returns the route's one path parameter, decoded.
    pub(crate) async fn path_parameter(&mut self) -> Result<String, ApiError> {
        match self.request.extract_parts::<Path<String>>().await {
            Ok(Path(text)) => Ok(text),
            Err(_) => Err(ApiError::not_found(self.request.uri().path())),
        }
    }

    /// Returns the route's two path parameters, decoded.
    pub(crate) async fn path_parameters(&mut self) -> Result<(String, String), ApiError> {
        match self.request.extract_parts::<Path<(String, String)>>().await {
            Ok(Path(texts)) => Ok(texts),
            Err(_) => Err(ApiError::not_found(self.request.uri().path())),
        }
    }

    /// Reads the body, which must have the format.
    pub(crate) async fn body(self, app: &App, format: &BodyFormat) -> Result<Bytes, ApiError> {
        let limit = app.settings.body_limit_bytes;
        self.body_up_to(limit, app, format).await
    }

    /// Reads the body, which must have the format, with a size limit of the route.
    pub(crate) async fn body_up_to(self, limit: usize, app: &App, format: &BodyFormat) -> Result<Bytes, ApiError> {
        body::read(app, self.request, format, limit).await
    }

    pub(crate) async fn json_body(self, app: &App) -> Result<Bytes, ApiError> {
        self.body(app, &JSON).await
    }

    /// Reads a body in JSON, with a size limit of the route.
    pub(crate) async fn json_body_up_to(self, limit: usize, app: &App) -> Result<Bytes, ApiError> {
        self.body_up_to(limit, app, &JSON).await
    }

    /// Reads a body in JSON, or nothing if the request has neither a body nor a content type.
    pub(crate) async fn json_body_or_none(self, app: &App) -> Result<Bytes, ApiError> {
        let is_empty = !self.request.headers().contains_key(CONTENT_TYPE) && self.request.body().is_end_stream();
        if is_empty { Ok(Bytes::new()) } else { self.json_body(app).await }
    }
}

/// The name for a method that HTTP does not define.
pub(super) const OTHER_METHOD: &str = "other";

/// Returns the method's name, or [`OTHER_METHOD`] if HTTP does not define the method. Otherwise clients could invent
/// labels of metrics.
pub(super) fn method_name(method: &Method) -> &'static str {
    const KNOWN: [&str; 9] = ["GET", "POST", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"];
    KNOWN.into_iter().find(|known| *known == method.as_str()).unwrap_or(OTHER_METHOD)
}
