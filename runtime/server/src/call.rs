//! One admitted request: who calls, under which correlation id, and the parts a handler may read.

use std::sync::Arc;

use axum::RequestExt as _;
use axum::body::HttpBody as _;
use axum::extract::{Path, Request};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, Method};
use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use terrane_app::domain::{RequestContext, RequestTarget};
use terrane_app::ports::governance::Surface;
use terrane_app::ports::traces::TraceContext;
use terrane_app::security::{Identity, RequestOrigin};

use crate::admission::AuthRequirement;
use crate::app::{App, Scopes};
use crate::content_coding::{ContentCoding, DecodeError};
use crate::edge::{Connection, is_probe};
use crate::error::{ApiError, Code};
use crate::routes::Access;

/// Set on every request by the edge, before routing.
#[derive(Debug, Clone)]
pub(crate) struct CorrelationId(pub(crate) Arc<str>);

/// A request whose caller may make it.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) context: RequestContext,
    pub(crate) scopes: Scopes,
    /// The id of the caller's key or session.
    credential: Arc<str>,
    request: Request,
}

impl Call {
    pub(crate) fn correlation_id(request: &Request) -> Arc<str> {
        request.extensions().get::<CorrelationId>().map(|id| id.0.clone()).unwrap_or_default()
    }

    /// Finds out who calls and holds it against what the route demands. A credential that proves
    /// nothing is refused, never taken for none.
    pub(crate) async fn admit(
        app: &App,
        access: Access,
        pattern: &'static str,
        request: Request,
    ) -> Result<Self, ApiError> {
        let client = request.extensions().get::<Connection>().and_then(|connection| connection.peer);
        let context = RequestContext {
            correlation_id: Call::correlation_id(&request),
            trace: request.extensions().get::<TraceContext>().copied(),
            surface: Surface::Rest,
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
            Access::Public => {
                // Probes are answered however many there are.
                if !is_probe(request.uri().path()) {
                    app.rates.admit_stranger(client).map_err(ApiError::from_rate)?;
                }
                (context, Arc::default())
            }
            _ => AuthRequirement::new(app, access, context, &request).check().await?,
        };
        Ok(Call { scopes: context.scopes, context, credential, request })
    }

    /// The caller, for changes of its own credentials.
    pub(crate) fn identity(&self) -> Identity {
        let RequestContext { caller, scopes, auth_method, tenant, .. } = &self.context;
        Identity {
            caller: caller.clone(),
            scopes: *scopes,
            method: *auth_method,
            credential: self.credential.clone(),
            tenant: tenant.clone(),
        }
    }

    /// For the records of what it does.
    pub(crate) fn origin(&self) -> RequestOrigin {
        self.context.origin()
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        self.request.headers()
    }

    pub(crate) fn path(&self) -> &str {
        self.request.uri().path()
    }

    /// The text behind `?`, still percent-encoded.
    pub(crate) fn query_string(&self) -> &str {
        self.request.uri().query().unwrap_or_default()
    }

    /// The route's one path parameter, decoded.
    pub(crate) async fn path_parameter(&mut self) -> Result<String, ApiError> {
        match self.request.extract_parts::<Path<String>>().await {
            Ok(Path(text)) => Ok(text),
            Err(_) => Err(ApiError::not_found(self.request.uri().path())),
        }
    }

    /// As [`Call::json_body`], where a request may come without a body, and then without a type too.
    pub(crate) async fn json_body_or_none(self, app: &App) -> Result<Bytes, ApiError> {
        let headers = self.request.headers();
        let is_empty = !headers.contains_key(CONTENT_TYPE) && self.request.body().is_end_stream();
        if is_empty { Ok(Bytes::new()) } else { self.json_body(app).await }
    }

    /// The route's two path parameters, decoded.
    pub(crate) async fn path_parameters(&mut self) -> Result<(String, String), ApiError> {
        match self.request.extract_parts::<Path<(String, String)>>().await {
            Ok(Path(texts)) => Ok(texts),
            Err(_) => Err(ApiError::not_found(self.request.uri().path())),
        }
    }

    /// The decoded body of a JSON request, within the limits of size and time. The limit of size holds for the
    /// body as it is sent and for the decoded one.
    pub(crate) async fn json_body(self, app: &App) -> Result<Bytes, ApiError> {
        let headers = self.request.headers();
        require_json(headers)?;
        let coding = ContentCoding::of(headers)?;
        let limit = app.settings.body_limit_bytes;
        let announced = headers.get(CONTENT_LENGTH).and_then(|v| v.to_str().ok()).and_then(|v| v.parse::<u64>().ok());
        if announced.is_some_and(|length| length > limit as u64) {
            return Err(too_large(limit));
        }
        let body = Limited::new(self.request.into_body(), limit).collect();
        match tokio::time::timeout(app.settings.body_timeout, body).await {
            Ok(Ok(body)) => coding.decode(body.to_bytes(), limit).map_err(|error| match error {
                DecodeError::TooLarge { max_bytes } => too_large(max_bytes),
                DecodeError::Invalid { .. } => ApiError::new(Code::InvalidQuery, error.to_string()),
            }),
            Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large(limit)),
            Ok(Err(_)) => Err(ApiError::new(Code::InvalidQuery, "the body ended before it was whole")),
            Err(_) => {
                let seconds = app.settings.body_timeout.as_secs_f64();
                Err(ApiError::new(Code::RequestTimeout, format!("the body did not arrive within {seconds} seconds")))
            }
        }
    }
}

/// Records that a handler denies a request.
pub(crate) async fn deny(app: &App, context: &RequestContext, reason: &'static str) -> Result<(), ApiError> {
    app.ports.access.denied(context, reason).await.map_err(|error| ApiError::from_store(&error))
}

/// The name of a method that is none of HTTP's.
pub(crate) const OTHER_METHOD: &str = "other";

/// The method's name if it is one of HTTP's, so that clients cannot invent labels.
pub(crate) fn method_name(method: &Method) -> &'static str {
    const KNOWN: [&str; 9] = ["GET", "POST", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"];
    KNOWN.into_iter().find(|known| *known == method.as_str()).unwrap_or(OTHER_METHOD)
}

fn too_large(limit: usize) -> ApiError {
    ApiError::new(Code::PayloadTooLarge, format!("a body has at most {limit} bytes")).detail("max_bytes", limit)
}

/// `application/json` or a `+json` type, whatever its parameters.
fn require_json(headers: &HeaderMap) -> Result<(), ApiError> {
    let found = headers.get(CONTENT_TYPE).map(|value| value.to_str().unwrap_or("unreadable"));
    let essence = found.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    let is_json = essence.eq_ignore_ascii_case("application/json")
        || essence.len() > 5
            && essence.is_char_boundary(essence.len() - 5)
            && essence[essence.len() - 5..].eq_ignore_ascii_case("+json");
    if is_json {
        return Ok(());
    }
    let message = match found {
        Some(found) => format!(
            "the body is `{}`; send JSON with `Content-Type: application/json`",
            &found.chars().take(100).collect::<String>()
        ),
        None => "the body has no type; send JSON with `Content-Type: application/json`".to_owned(),
    };
    Err(ApiError::new(Code::UnsupportedMediaType, message))
}
