//! Security headers added to every response.

use axum::http::header::{
    CACHE_CONTROL, ETAG, HeaderMap, HeaderValue, STRICT_TRANSPORT_SECURITY, X_CONTENT_TYPE_OPTIONS,
};

/// The value of `Strict-Transport-Security`. The time is one year, in seconds.
const SECURE_ONLY: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// Adds the headers. Answers are not stored by caches, except those with a cache policy or an entity tag; browsers do
/// not guess a different content type.
pub(super) fn add(headers: &mut HeaderMap, is_secure: bool) {
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if !headers.contains_key(CACHE_CONTROL) && !headers.contains_key(ETAG) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    if is_secure {
        headers.insert(STRICT_TRANSPORT_SECURITY, SECURE_ONLY);
    }
}
