//! The format of rows, by the client's `Accept`.
//!
//! In: headers. Out: a [`RowFormat`], or an error that names the supported formats. A client without a preference gets
//! JSON.

use axum::http::HeaderMap;
use terrane_wire::Code;
use terrane_wire::rows::RowFormat;

use crate::edge::{ApiError, preferred};

/// Returns the format that the client prefers.
pub(super) fn accepted(headers: &HeaderMap) -> Result<RowFormat, ApiError> {
    preferred(headers, RowFormat::ALL.into_iter().map(|format| (format, format.media_type()))).ok_or_else(unsupported)
}

fn unsupported() -> ApiError {
    let available = RowFormat::ALL.map(|format| {
        let (kind, name) = format.media_type();
        format!("{kind}/{name}")
    });
    let message = format!("no media type in `Accept` is supported; supported: {}", available.join(", "));
    ApiError::new(Code::UnsupportedMediaType, message).detail("available_types", available.to_vec())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use axum::http::header::ACCEPT;

    use super::*;

    #[test]
    fn preference_of_the_client_decides() {
        let of =
            |value: &'static str| accepted(&HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(value))])).ok();
        assert_eq!(accepted(&HeaderMap::new()).ok(), Some(RowFormat::Json));
        for (value, format) in [
            ("", Some(RowFormat::Json)),
            ("*/*", Some(RowFormat::Json)),
            ("text/csv", Some(RowFormat::Csv)),
            ("TEXT/CSV; header=present", Some(RowFormat::Csv)),
            ("text/*", Some(RowFormat::Csv)),
            ("application/*", Some(RowFormat::Json)),
            ("text/csv, */*", Some(RowFormat::Csv)),
            ("text/html, */*;q=0.8", Some(RowFormat::Json)),
            ("text/csv;q=0.5, application/json;q=0.9", Some(RowFormat::Json)),
            ("application/json;q=0, */*", Some(RowFormat::Csv)),
            ("application/vnd.apache.arrow.stream, text/csv;q=0.9", Some(RowFormat::Arrow)),
            ("text/csv;q=nothing", None),
            ("text/html", None),
            ("text/csv;q=0", None),
        ] {
            assert_eq!(of(value), format, "{value:?}");
        }
    }
}
