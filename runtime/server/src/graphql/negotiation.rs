//! The form of an answer, by the client's `Accept`.
//!
//! In: headers. Out: an [`AnswerForm`], or an error that names the supported media types. A client without a preference
//! gets `application/json`. A client that names `application/graphql-response+json` gets that type, unless its weight
//! is lower.

use axum::http::HeaderMap;
use axum::http::header::ACCEPT;
use terrane_wire::Code;

use super::answer::BodyType;
use crate::edge::{ApiError, MediaType, preferred};

/// The kinds of responses that a client can request with `Accept`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerForm {
    /// One response.
    Body(BodyType),
    /// Server-sent events, one for each response.
    Events,
    /// The page to try operations.
    Page,
}

impl AnswerForm {
    const ALL: [AnswerForm; 4] = [
        AnswerForm::Body(BodyType::GraphQlResponse),
        AnswerForm::Body(BodyType::Json),
        AnswerForm::Events,
        AnswerForm::Page,
    ];

    fn media_type(self) -> MediaType {
        match self {
            AnswerForm::Body(BodyType::GraphQlResponse) => ("application", "graphql-response+json"),
            AnswerForm::Body(BodyType::Json) => ("application", "json"),
            AnswerForm::Events => ("text", "event-stream"),
            AnswerForm::Page => ("text", "html"),
        }
    }
}

/// Returns the preferred form of an answer to a POST.
pub(super) fn of_post(headers: &HeaderMap) -> Result<AnswerForm, ApiError> {
    choose(headers, &[AnswerForm::Page])
}

/// Returns the preferred form of an answer to a GET.
pub(super) fn of_get(headers: &HeaderMap) -> Result<AnswerForm, ApiError> {
    choose(headers, &[])
}

/// Returns whether a client prefers the page.
pub(super) fn prefers_page(headers: &HeaderMap) -> bool {
    of_get(headers).is_ok_and(|form| form == AnswerForm::Page)
}

/// Returns whether a client supports the media type of GraphQL responses.
pub(super) fn names_graphql_response(headers: &HeaderMap) -> bool {
    let (kind, name) = AnswerForm::Body(BodyType::GraphQlResponse).media_type();
    let mut ranges = headers.get_all(ACCEPT).iter().flat_map(|value| value.to_str().unwrap_or_default().split(','));
    ranges.any(|range| {
        let essence = range.split(';').next().unwrap_or_default().trim();
        let split = essence.split_once('/');
        split.is_some_and(|(own, other)| own.eq_ignore_ascii_case(kind) && other.eq_ignore_ascii_case(name))
    })
}

fn choose(headers: &HeaderMap, without: &[AnswerForm]) -> Result<AnswerForm, ApiError> {
    // A wildcard alone selects `application/json`, which all clients support.
    let mut forms = AnswerForm::ALL;
    if !names_graphql_response(headers) {
        forms.swap(0, 1);
    }
    let offered = || forms.into_iter().filter(|form| !without.contains(form));
    preferred(headers, offered().map(|form| (form, form.media_type()))).ok_or_else(|| {
        let types: Vec<String> = offered().map(AnswerForm::media_type).map(|(a, b)| format!("{a}/{b}")).collect();
        let message = format!("no media type in `Accept` is supported; supported: {}", types.join(", "));
        ApiError::new(Code::UnsupportedMediaType, message).detail("available_types", types)
    })
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    const JSON: AnswerForm = AnswerForm::Body(BodyType::Json);
    const RESPONSE: AnswerForm = AnswerForm::Body(BodyType::GraphQlResponse);

    fn headers(accept: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(accept))])
    }

    #[test]
    fn form_follows_the_preference_of_the_client() {
        assert_eq!(of_get(&HeaderMap::new()).ok(), Some(JSON));
        for (accept, form) in [
            ("*/*", JSON),
            ("application/*", JSON),
            ("application/json", JSON),
            ("application/graphql-response+json", RESPONSE),
            ("application/graphql-response+json; charset=utf-8", RESPONSE),
            ("application/json, application/GraphQL-Response+JSON", RESPONSE),
            ("application/graphql-response+json;q=0.5, application/json", JSON),
            // Apollo Client and urql.
            ("application/graphql-response+json,application/json;q=0.9", RESPONSE),
            (
                "application/graphql-response+json, application/graphql+json, application/json, text/event-stream, \
                 multipart/mixed",
                RESPONSE,
            ),
            ("text/event-stream", AnswerForm::Events),
            // Chromium, for a page.
            ("text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8", AnswerForm::Page),
        ] {
            assert_eq!(of_get(&headers(accept)).ok(), Some(form), "{accept}");
        }
        assert!(prefers_page(&headers("text/html")) && !prefers_page(&headers("*/*")));
    }

    #[test]
    fn post_has_no_page() {
        assert_eq!(of_post(&headers("text/html, application/json;q=0.1")).ok(), Some(JSON));
        let refused = of_post(&headers("text/html")).unwrap_err().into_parts().body;
        assert_eq!(refused.code, Code::UnsupportedMediaType);
        assert!(refused.message.ends_with("text/event-stream"), "{}", refused.message);
        assert!(of_get(&headers("application/xml")).is_err());
    }
}
