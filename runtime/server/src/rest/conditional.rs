//! Conditional requests: entity tags, and the answer to a client that already has the current response.

use axum::http::header::{CACHE_CONTROL, ETAG, HeaderMap, HeaderValue, IF_MATCH, IF_NONE_MATCH};
use axum::response::Response;
use terrane_app::domain::Precondition;
use terrane_app::query::CacheControl;
use terrane_wire::Code;

use crate::edge::ApiError;
use crate::openapi::{Compression, Parameter, ParameterKind, ResponseDoc};

/// The answer to a client that already has the current response.
pub(super) const UNCHANGED: ResponseDoc = ResponseDoc {
    status: 304,
    description: "the response has not changed since the `ETag` in `If-None-Match`",
    content: &[],
    compression: Compression::Accepted,
};

/// The header of a request that changes a record with a version.
pub(super) const IF_MATCH_HEADER: Parameter = Parameter::header(
    "If-Match",
    ParameterKind::String,
    "the `ETag` of the record; if the record has another version, the change is refused with 412",
);

/// Returns the versions that a request names in `If-Match`. Versions are compared strongly (RFC 9110, section 13.1.1),
/// so a weak tag does not name a version.
///
/// # Errors
/// The header is neither `*` nor a list of entity tags.
pub(super) fn precondition(headers: &HeaderMap) -> Result<Precondition, ApiError> {
    let sent: Vec<&HeaderValue> = headers.get_all(IF_MATCH).iter().collect();
    match sent.as_slice() {
        [] => return Ok(Precondition::None),
        [value] if value.as_bytes().trim_ascii() == b"*" => return Ok(Precondition::Exists),
        _ => {}
    }
    let malformed = || {
        let message = "`If-Match` is malformed: expected `*` or entity tags in quotes, such as `\"7\"`";
        ApiError::new(Code::InvalidQuery, message).detail("field", "If-Match")
    };
    let mut versions = Vec::new();
    for value in sent {
        let tags = entity_tags(value.as_bytes()).ok_or_else(malformed)?;
        let strong = tags.iter().filter(|(is_weak, _)| !is_weak);
        versions.extend(strong.filter_map(|(_, tag)| std::str::from_utf8(tag).ok()?.parse::<u64>().ok()));
    }
    Ok(Precondition::Versions(versions))
}

/// Reads a list of entity tags (RFC 9110, section 8.8.3). Returns for each whether the tag is weak, and the tag without
/// quotes. Returns `None` if the list is malformed or empty. Empty items of the list are ignored (section 5.6.1).
fn entity_tags(list: &[u8]) -> Option<Vec<(bool, &[u8])>> {
    let mut tags = Vec::new();
    let mut rest = list.trim_ascii();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix(b",") {
            rest = after.trim_ascii_start();
            continue;
        }
        let (is_weak, quoted) = rest.strip_prefix(b"W/").map_or((false, rest), |after| (true, after));
        let opaque = quoted.strip_prefix(b"\"")?;
        let end = opaque.iter().position(|byte| *byte == b'"')?;
        let (tag, after) = opaque.split_at(end);
        if tag.iter().any(|byte| matches!(byte, 0..=b' ' | 0x7f)) {
            return None;
        }
        tags.push((is_weak, tag));
        rest = after.get(1..)?.trim_ascii_start();
        if !rest.is_empty() && !rest.starts_with(b",") {
            return None;
        }
    }
    (!tags.is_empty()).then_some(tags)
}

/// Adds the version of a record as its entity tag. Callers must revalidate the record, since others change it.
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

    /// Returns the cache control of the request's fields, with the directives of its header `cache-control` added.
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
        let of = |values| of(values).ok();
        assert_eq!(of(&[]), Some(Precondition::None));
        assert_eq!(of(&["*"]), Some(Precondition::Exists));
        for (values, versions) in [
            (&["\"3\""][..], &[3][..]),
            (&["\"3\", \"4\""], &[3, 4]),
            (&["\"3\"", "\"0\""], &[3, 0]),
            (&["W/\"3\""], &[]),
            (&["W/\"3\",, \"4\""], &[4]),
            (&["\"three\""], &[]),
            (&["\"3,4\""], &[]),
            (&["\"-1\""], &[]),
        ] {
            assert_eq!(of(values), Some(Precondition::Versions(versions.to_vec())), "{values:?}");
        }
        for values in [
            &["3"][..],
            &["garbage"],
            &[""],
            &[","],
            &["\"3"],
            &["w/\"3\""],
            &["\"3\" \"4\""],
            &["\"3\", *"],
            &["*", "\"3\""],
            &["\"3 4\""],
        ] {
            assert_eq!(of(values), None, "{values:?}");
        }
    }
}
