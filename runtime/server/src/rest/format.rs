//! The format of an answer, by the client's `Accept` (RFC 9110, section 12.5.1).
//!
//! In: headers. Out: a [`RowFormat`], or an error that names the supported ones. Of formats with equal weights, one
//! that the client names goes before one that a wildcard includes, and JSON goes first.

use axum::http::HeaderMap;
use axum::http::header::ACCEPT;
use terrane_wire::Code;
use terrane_wire::rows::RowFormat;

use crate::edge::ApiError;

/// Returns the format that the client prefers.
pub(super) fn accepted(headers: &HeaderMap) -> Result<RowFormat, ApiError> {
    let ranges: Vec<Range<'_>> = headers
        .get_all(ACCEPT)
        .iter()
        .flat_map(|value| value.to_str().unwrap_or_default().split(','))
        .filter_map(Range::parse)
        .collect();
    if ranges.is_empty() {
        return Ok(RowFormat::Json);
    }
    let mut best = None;
    for format in RowFormat::ALL {
        let (kind, name) = format.media_type();
        // The most exact range that matches decides about a format.
        let range = ranges.iter().filter(|range| range.fits(kind, name)).max_by_key(|range| range.exactness());
        let Some(range) = range.filter(|range| range.weight > 0) else { continue };
        let preference = (range.weight, range.exactness());
        if best.is_none_or(|(found, _)| preference > found) {
            best = Some((preference, format));
        }
    }
    best.map(|(_, format)| format).ok_or_else(unsupported)
}

fn unsupported() -> ApiError {
    let available = RowFormat::ALL.map(|format| {
        let (kind, name) = format.media_type();
        format!("{kind}/{name}")
    });
    let message = format!("no media type in `Accept` is supported; supported: {}", available.join(", "));
    ApiError::new(Code::UnsupportedMediaType, message).detail("available_types", available.to_vec())
}

/// An element of `Accept`, like `text/*;q=0.5`.
struct Range<'a> {
    kind: &'a str,
    name: &'a str,
    /// The weight in thousandths.
    weight: u16,
}

impl<'a> Range<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let (kind, name) = parts.next()?.split_once('/')?;
        let weight = parts.find_map(|parameter| parameter.strip_prefix("q=").or(parameter.strip_prefix("Q=")));
        // A weight that is not a number counts as 0.
        let weight = weight.map_or(1.0, |weight| weight.parse::<f32>().unwrap_or(0.0)).clamp(0.0, 1.0);
        Some(Range { kind, name, weight: (weight * 1_000.0) as u16 })
    }

    fn fits(&self, kind: &str, name: &str) -> bool {
        let fits = |own: &str, other: &str| own == "*" || own.eq_ignore_ascii_case(other);
        fits(self.kind, kind) && fits(self.name, name)
    }

    fn exactness(&self) -> u8 {
        u8::from(self.kind != "*") + u8::from(self.name != "*")
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

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
