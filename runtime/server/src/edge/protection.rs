//! The headers of every answer that keep browsers and caches from making more of it than it is.

use axum::http::header::{
    CACHE_CONTROL, ETAG, HeaderMap, HeaderValue, STRICT_TRANSPORT_SECURITY, X_CONTENT_TYPE_OPTIONS,
};

/// A year.
const SECURE_ONLY: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// Answers are somebody's data: nobody on the way keeps one, unless it says itself how (it has an entity
/// tag), and a browser takes it for what it is called.
pub(super) fn protect(headers: &mut HeaderMap, is_secure: bool) {
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if !headers.contains_key(CACHE_CONTROL) && !headers.contains_key(ETAG) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    if is_secure {
        headers.insert(STRICT_TRANSPORT_SECURITY, SECURE_ONLY);
    }
}
