//! Conditional requests: entity tags, and the answer to a client that already has the current response.

use axum::http::header::{CACHE_CONTROL, HeaderMap, HeaderValue, IF_NONE_MATCH};
use terrane_app::query::CacheControl;

use crate::openapi::{Compression, ResponseDoc};

/// The answer to a client that already has the current response.
pub(super) const UNCHANGED: ResponseDoc = ResponseDoc {
    status: 304,
    description: "as the `If-None-Match` names it",
    content: &[],
    compression: Compression::Accepted,
};

/// The headers of a request that decide whether and how stored rows answer it.
pub(super) struct ConditionalHeaders(HeaderMap);

impl ConditionalHeaders {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let mut found = HeaderMap::new();
        for name in [IF_NONE_MATCH, CACHE_CONTROL] {
            for value in headers.get_all(&name) {
                found.append(name.clone(), value.clone());
            }
        }
        ConditionalHeaders(found)
    }

    /// Returns the wishes of the request's fields and of its header `cache-control`.
    pub(super) fn cache_control(&self, asked: CacheControl) -> CacheControl {
        let values = self.0.get_all(CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
        let mut directives = values.flat_map(|value| value.split(',')).map(str::trim);
        let is_fresh_wanted =
            |directive: &str| ["no-cache", "no-store"].iter().any(|known| directive.eq_ignore_ascii_case(known));
        CacheControl { bypass: asked.bypass || directives.any(is_fresh_wanted), ..asked }
    }

    /// Returns whether the client has the entity of this tag already.
    pub(super) fn has_entity(&self, tag: &str) -> bool {
        has_entity(&self.0, tag)
    }
}

/// Returns whether the client has the entity of this tag already.
pub(super) fn has_entity(headers: &HeaderMap, tag: &str) -> bool {
    headers.get_all(IF_NONE_MATCH).iter().any(|sent| matches(sent, tag))
}

/// Compares entity tags weakly (RFC 9110, section 8.8.3.2).
fn matches(sent: &HeaderValue, tag: &str) -> bool {
    let opaque = tag.trim_start_matches("W/");
    let sent = sent.to_str().unwrap_or_default();
    sent.split(',').map(str::trim).any(|one| one == "*" || one.trim_start_matches("W/") == opaque)
}
