//! Cross-origin requests (the Fetch standard, "CORS protocol").
//!
//! In: the origins that the operator listed. Out: answers to preflights, which reach no handler and need no credential,
//! and headers on every other answer, errors included. Cookies are never credentials here, so no answer allows them: a
//! page sends its own `Authorization`. Absent on purpose: checking the text of an origin (configuration).

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, HeaderMap, HeaderValue,
    ORIGIN, VARY,
};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use terrane_wire::Code;

use super::error::ApiError;

const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE");
/// A `*` would not cover `Authorization`.
const SENT: HeaderValue =
    HeaderValue::from_static("authorization, content-type, accept, if-none-match, x-correlation-id");
const SHOWN: HeaderValue = HeaderValue::from_static(
    "x-correlation-id, x-terrane-total-rows, x-terrane-truncated, x-terrane-cache-key, retry-after, etag, \
     www-authenticate",
);
/// Seconds that a browser remembers a preflight's answer.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");
const ANY: HeaderValue = HeaderValue::from_static("*");

/// The origins whose pages may read answers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Cors {
    /// Only the server's own.
    #[default]
    Closed,
    Any,
    /// Origins as a browser writes them.
    Listed(Vec<HeaderValue>),
}

impl Cors {
    /// The answer to a preflight, if this is one.
    pub(super) fn preflight(&self, request: &Request) -> Option<Result<Response, ApiError>> {
        let is_preflight = *self != Cors::Closed
            && request.method() == Method::OPTIONS
            && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        let origin = request.headers().get(ORIGIN).filter(|_| is_preflight)?;
        if self.allowed(origin).is_none() {
            let message =
                "pages of this origin may not read answers: the operator lists those in `server.cors.origins`";
            return Some(Err(ApiError::new(Code::Forbidden, message)));
        }
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, SENT);
        headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
        Some(Ok(response))
    }

    /// Lets the page that asked read the answer, if it may.
    pub(super) fn open(&self, origin: Option<&HeaderValue>, headers: &mut HeaderMap) {
        if let Cors::Listed(_) = self {
            // Caches must not show one origin what was answered to another.
            headers.append(VARY, HeaderValue::from_static("origin"));
        }
        if let Some(allowed) = origin.and_then(|origin| self.allowed(origin)) {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, allowed);
            headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, SHOWN);
        }
    }

    fn allowed(&self, origin: &HeaderValue) -> Option<HeaderValue> {
        match self {
            Cors::Closed => None,
            Cors::Any => Some(ANY),
            Cors::Listed(listed) => listed.contains(origin).then(|| origin.clone()),
        }
    }
}
