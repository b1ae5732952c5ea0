//! Which format an answer has: the client's `Accept` (RFC 9110, section 12.5.1).
//!
//! In: headers. Out: a [`Format`], or a refusal that names the supported ones. Where several weigh the
//! same, one that the client names itself goes before one that a wildcard lets in, and JSON first.

use axum::http::HeaderMap;
use axum::http::header::ACCEPT;

use crate::error::{ApiError, Code};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    Csv,
    Arrow,
}

impl Format {
    const ALL: [Format; 3] = [Format::Json, Format::Csv, Format::Arrow];

    fn media_type(self) -> (&'static str, &'static str) {
        match self {
            Format::Json => ("application", "json"),
            Format::Csv => ("text", "csv"),
            Format::Arrow => ("application", "vnd.apache.arrow.stream"),
        }
    }

    /// With its parameters.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Format::Json => "application/json",
            Format::Csv => "text/csv; charset=utf-8; header=present",
            Format::Arrow => "application/vnd.apache.arrow.stream",
        }
    }

    /// The format that the client likes best.
    pub(crate) fn accepted(headers: &HeaderMap) -> Result<Self, ApiError> {
        let ranges: Vec<Range<'_>> = headers
            .get_all(ACCEPT)
            .iter()
            .flat_map(|value| value.to_str().unwrap_or_default().split(','))
            .filter_map(Range::parse)
            .collect();
        if ranges.is_empty() {
            return Ok(Format::Json);
        }
        let mut best = None;
        for format in Format::ALL {
            let (kind, name) = format.media_type();
            // The most exact range that fits has the say about a format.
            let range = ranges.iter().filter(|range| range.fits(kind, name)).max_by_key(|range| range.exactness());
            let Some(range) = range.filter(|range| range.weight > 0) else { continue };
            let liking = (range.weight, range.exactness());
            if best.is_none_or(|(found, _)| liking > found) {
                best = Some((liking, format));
            }
        }
        best.map(|(_, format)| format).ok_or_else(refusal)
    }
}

fn refusal() -> ApiError {
    let available = Format::ALL.map(|format| {
        let (kind, name) = format.media_type();
        format!("{kind}/{name}")
    });
    let message = format!("no media type in `Accept` is supported; supported: {}", available.join(", "));
    ApiError::new(Code::UnsupportedMediaType, message).detail("available_types", available.to_vec())
}

/// `text/*;q=0.5`
struct Range<'a> {
    kind: &'a str,
    name: &'a str,
    /// In thousandths.
    weight: u16,
}

impl<'a> Range<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let (kind, name) = parts.next()?.split_once('/')?;
        let weight = parts.find_map(|parameter| parameter.strip_prefix("q=").or(parameter.strip_prefix("Q=")));
        // A weight that is no number is none.
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
    fn the_clients_liking_decides() {
        let accepted = |value: &'static str| {
            Format::accepted(&HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(value))])).ok()
        };
        assert_eq!(Format::accepted(&HeaderMap::new()).ok(), Some(Format::Json));
        for (value, format) in [
            ("", Some(Format::Json)),
            ("*/*", Some(Format::Json)),
            ("text/csv", Some(Format::Csv)),
            ("TEXT/CSV; header=present", Some(Format::Csv)),
            ("text/*", Some(Format::Csv)),
            ("application/*", Some(Format::Json)),
            ("text/csv, */*", Some(Format::Csv)),
            ("text/html, */*;q=0.8", Some(Format::Json)),
            ("text/csv;q=0.5, application/json;q=0.9", Some(Format::Json)),
            ("application/json;q=0, */*", Some(Format::Csv)),
            ("application/vnd.apache.arrow.stream, text/csv;q=0.9", Some(Format::Arrow)),
            ("text/csv;q=nothing", None),
            ("text/html", None),
            ("text/csv;q=0", None),
        ] {
            assert_eq!(accepted(value), format, "{value:?}");
        }
    }
}
