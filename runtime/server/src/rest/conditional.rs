//! Conditional requests: entity tags, and the answer to a client that already has the current response.

use axum::http::header::{CACHE_CONTROL, ETAG, HeaderMap, HeaderValue, IF_MATCH, IF_NONE_MATCH};
use axum::response::Response;
use terrane_app::domain::Precondition;
use terrane_app::query::CacheControl;

use crate::openapi::{Compression, Parameter, ParameterKind, ResponseDoc};

/// The answer to a client that already has the current response.
pub(super) const UNCHANGED: ResponseDoc = ResponseDoc {
    status: 304,
    description: "as the `If-None-Match` names it",
    content: &[],
    compression: Compression::Accepted,
};

/// The header of a request that changes a record with a version.
pub(super) const IF_MATCH_HEADER: Parameter = Parameter::header(
    "If-Match",
    ParameterKind::String,
    "the `ETag` of the record: the change is refused with 412 if the record has another version",
);

/// Returns the versions that a request names in `If-Match`. Versions are compared strongly (RFC 9110, section 13.1.1),
/// so weak tags name none.
pub(super) fn precondition(headers: &HeaderMap) -> Precondition {
    let mut sent = headers.get_all(IF_MATCH).iter().peekable();
    if sent.peek().is_none() {
        return Precondition::None;
    }
    let mut versions = Vec::new();
    for value in sent {
        for tag in value.to_str().unwrap_or_default().split(',').map(str::trim) {
            if tag == "*" {
                return Precondition::Exists;
            }
            let version = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"'));
            versions.extend(version.and_then(|version| version.parse::<u64>().ok()));
        }
    }
    Precondition::Versions(versions)
}

/// Adds the version of a record as its entity tag. Callers must not store the record, since others change it.
pub(super) fn with_version(mut response: Response, version: u64) -> Response {
    let headers = response.headers_mut();
    if let Ok(tag) = HeaderValue::from_str(&format!("\"{version}\"")) {
        headers.insert(ETAG, tag);
    }
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    response
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_if_match_are_strong_tags() {
        let of = |values: &[&'static str]| {
            let values = values.iter().map(|value| (IF_MATCH, HeaderValue::from_static(value)));
            let mut headers = HeaderMap::new();
            values.for_each(|(name, value)| {
                headers.append(name, value);
            });
            precondition(&headers)
        };
        assert_eq!(of(&[]), Precondition::None);
        assert_eq!(of(&["*"]), Precondition::Exists);
        for (values, versions) in [
            (&["\"3\""][..], &[3][..]),
            (&["\"3\", \"4\""], &[3, 4]),
            (&["\"3\"", "\"0\""], &[3, 0]),
            (&["W/\"3\""], &[]),
            (&["3"], &[]),
            (&["\"three\""], &[]),
            (&["\"-1\""], &[]),
            (&[""], &[]),
        ] {
            assert_eq!(of(values), Precondition::Versions(versions.to_vec()), "{values:?}");
        }
    }
}
