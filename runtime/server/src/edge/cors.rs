//! Cross-origin requests (the Fetch standard, "CORS protocol").
//!
//! In: the origins that the operator listed. Out: answers to preflights, which reach no handler and need no credential,
//! and headers on every other answer, including errors. The server accepts no cookie as a credential, so no answer
//! allows browsers to send cookies: a page sets the header `Authorization` itself. Not here: checking the syntax of an
//! origin (configuration).

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, HOST, HeaderMap, HeaderValue,
    ORIGIN, VARY,
};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use terrane_wire::Code;

use super::error::ApiError;

const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE");
/// The headers that pages may send. They are listed, because `*` would not include `Authorization`.
const SENT: HeaderValue = HeaderValue::from_static(
    "authorization, content-type, accept, if-match, if-none-match, idempotency-key, prefer, x-correlation-id, \
     x-session-id, soapaction",
);
const SHOWN: HeaderValue = HeaderValue::from_static(
    "x-correlation-id, x-terrane-total-rows, x-terrane-truncated, x-terrane-cache-key, x-terrane-as-of, retry-after, \
     etag, www-authenticate, x-session-id",
);
/// The time for which a browser may cache the answer to a preflight, in seconds.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");
const ANY: HeaderValue = HeaderValue::from_static("*");

/// The origins whose pages may read answers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Cors {
    /// Pages of the server's own origin only.
    #[default]
    Closed,
    Any,
    /// Origins as a browser writes them.
    Listed(Vec<HeaderValue>),
}

impl Cors {
    /// Returns the answer to a preflight; `None` for other requests.
    pub(super) fn preflight(&self, request: &Request) -> Option<Result<Response, ApiError>> {
        let is_preflight = *self != Cors::Closed
            && request.method() == Method::OPTIONS
            && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        let origin = request.headers().get(ORIGIN).filter(|_| is_preflight)?;
        if self.allowed(origin).is_none() {
            let message =
                "pages of this origin may not read responses; the operator can add it to `server.cors.origins`";
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

    /// Adds the headers that let the requesting page read the answer, if its origin is allowed.
    pub(super) fn open(&self, origin: Option<&HeaderValue>, headers: &mut HeaderMap) {
        if let Cors::Listed(_) = self {
            // Caches must not give the answer for one origin to a page of another.
            headers.append(VARY, HeaderValue::from_static("origin"));
        }
        if let Some(allowed) = origin.and_then(|origin| self.allowed(origin)) {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, allowed);
            headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, SHOWN);
        }
    }

    /// Returns whether a page may open a WebSocket: a page of this server, or one of an allowed origin. The server
    /// checks this itself, because browsers do not apply CORS to WebSockets. A request without an origin is not from a
    /// browser.
    pub(crate) fn admits_socket(&self, headers: &HeaderMap) -> bool {
        let mut origins = headers.get_all(ORIGIN).iter();
        match (origins.next(), origins.next()) {
            (None, _) => true,
            (Some(origin), None) => is_own(origin, headers.get(HOST)) || self.allowed(origin).is_some(),
            (Some(_), Some(_)) => false,
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

/// Returns whether an origin is the one under which the client reaches this server. A proxy may end TLS, so only the
/// host names and the ports are compared.
fn is_own(origin: &HeaderValue, host: Option<&HeaderValue>) -> bool {
    let (Ok(origin), Some(Ok(host))) = (origin.to_str(), host.map(HeaderValue::to_str)) else { return false };
    let default_port = match origin.split_once("://") {
        Some(("http", _)) => ":80",
        Some(("https", _)) => ":443",
        _ => return false,
    };
    let (_, own) = origin.split_once("://").unwrap_or_default();
    let named = |authority: &str| authority.strip_suffix(default_port).unwrap_or(authority).to_ascii_lowercase();
    !own.is_empty() && named(own) == named(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admits(cors: &Cors, origins: &[&'static str], host: &'static str) -> bool {
        let mut headers = HeaderMap::from_iter([(HOST, HeaderValue::from_static(host))]);
        for origin in origins {
            headers.append(ORIGIN, HeaderValue::from_static(origin));
        }
        cors.admits_socket(&headers)
    }

    #[test]
    fn sockets_are_opened_by_own_pages_and_allowed_ones() {
        let listed = Cors::Listed(vec![HeaderValue::from_static("https://bi.example.org")]);
        for cors in [Cors::Closed, listed.clone()] {
            assert!(admits(&cors, &[], "localhost:8000"));
            assert!(admits(&cors, &["http://localhost:8000"], "localhost:8000"));
            assert!(admits(&cors, &["https://localhost:8000"], "LOCALHOST:8000"));
            assert!(admits(&cors, &["https://a.example"], "a.example:443"));
            for foreign in ["http://evil.example", "http://localhost:8001", "http://localhost", "null", "", "http://"] {
                assert!(!admits(&cors, &[foreign], "localhost:8000"), "{foreign}");
            }
            assert!(!admits(&cors, &["http://localhost:8000", "http://evil.example"], "localhost:8000"));
        }
        assert!(admits(&listed, &["https://bi.example.org"], "localhost:8000"));
        assert!(!admits(&Cors::Closed, &["https://bi.example.org"], "localhost:8000"));
        assert!(admits(&Cors::Any, &["http://evil.example"], "localhost:8000"));
    }
}
