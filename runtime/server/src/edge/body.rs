//! Reads the bodies of requests, by content type.
//!
//! In: a request and the format that its route reads. Out: the decoded bytes, within the limits of size and time. The
//! size limit applies to the body as it is sent and to the decoded one. Not here: parsing (`wire`).

use axum::extract::Request;
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use terrane_wire::Code;

use super::content_coding::{ContentCoding, DecodeError};
use super::error::ApiError;
use crate::app::App;

/// The media types that a route accepts for its request body.
#[derive(Debug)]
pub(crate) struct BodyFormat {
    pub(crate) name: &'static str,
    pub(crate) media_type: &'static str,
    /// The structured syntax suffix of further types (RFC 6839), like `+json`.
    pub(crate) suffix: Option<&'static str>,
}

/// JSON bodies: `application/json` or a `+json` type.
pub(crate) const JSON: BodyFormat = BodyFormat { name: "JSON", media_type: "application/json", suffix: Some("+json") };

impl BodyFormat {
    /// Returns whether a body has one of the format's media types, with any parameters.
    pub(crate) fn is_of(&self, headers: &HeaderMap) -> bool {
        let essence = content_type(headers).unwrap_or_default().split(';').next().unwrap_or_default().trim();
        essence.eq_ignore_ascii_case(self.media_type) || self.suffix.is_some_and(|suffix| ends_with(essence, suffix))
    }

    fn require(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        if self.is_of(headers) {
            return Ok(());
        }
        let found = content_type(headers);
        let BodyFormat { name, media_type, .. } = self;
        let message = match found {
            Some(found) => format!(
                "unsupported content type `{}`; send {name} with `Content-Type: {media_type}`",
                &found.chars().take(100).collect::<String>()
            ),
            None => format!("the body has no content type; send {name} with `Content-Type: {media_type}`"),
        };
        Err(ApiError::new(Code::UnsupportedMediaType, message))
    }
}

fn content_type(headers: &HeaderMap) -> Option<&str> {
    headers.get(CONTENT_TYPE).map(|value| value.to_str().unwrap_or("unreadable"))
}

/// Returns whether a media type consists of a name and this suffix, in upper or lower case.
fn ends_with(essence: &str, suffix: &str) -> bool {
    let split = essence.len().checked_sub(suffix.len()).filter(|split| *split > 0);
    split.and_then(|split| essence.get(split..)).is_some_and(|end| end.eq_ignore_ascii_case(suffix))
}

/// Reads the whole body of a request and decompresses it. The limit, in bytes, applies before and after decompression.
pub(super) async fn read(app: &App, request: Request, format: &BodyFormat, limit: usize) -> Result<Bytes, ApiError> {
    let headers = request.headers();
    format.require(headers)?;
    let coding = ContentCoding::of(headers)?;
    let announced = headers.get(CONTENT_LENGTH).and_then(|v| v.to_str().ok()).and_then(|v| v.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limit as u64) {
        return Err(too_large(limit));
    }
    let body = Limited::new(request.into_body(), limit).collect();
    match tokio::time::timeout(app.settings.body_timeout, body).await {
        Ok(Ok(body)) => coding.decode(body.to_bytes(), limit).map_err(|error| match error {
            DecodeError::TooLarge { max_bytes } => too_large(max_bytes),
            DecodeError::Invalid { .. } => ApiError::new(Code::InvalidQuery, error.to_string()),
        }),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large(limit)),
        Ok(Err(_)) => Err(ApiError::new(Code::InvalidQuery, "the body ended early")),
        Err(_) => {
            let seconds = app.settings.body_timeout.as_secs_f64();
            Err(ApiError::new(Code::RequestTimeout, format!("the body did not arrive within {seconds} seconds")))
        }
    }
}

fn too_large(limit: usize) -> ApiError {
    ApiError::new(Code::PayloadTooLarge, format!("the body is larger than {limit} bytes")).detail("max_bytes", limit)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    const XML: BodyFormat = BodyFormat { name: "XML", media_type: "text/xml", suffix: None };

    fn accepts(format: &BodyFormat, content_type: &'static str) -> bool {
        format.require(&HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(content_type))])).is_ok()
    }

    #[test]
    fn format_has_its_media_types() {
        for accepted in ["application/json", "APPLICATION/JSON; charset=utf-8", "application/problem+json", "a+JSON"] {
            assert!(accepts(&JSON, accepted), "{accepted}");
        }
        for rejected in ["", "+json", "text/plain", "application/json5", "text/xml", "json"] {
            assert!(!accepts(&JSON, rejected), "{rejected}");
        }
        assert!(accepts(&XML, "text/xml; charset=utf-8"));
        assert!(!accepts(&XML, "application/json"));
        assert!(!accepts(&XML, "application/soap+xml"));
        assert!(JSON.require(&HeaderMap::new()).is_err());
    }
}
