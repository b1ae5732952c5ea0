//! Chooses the media type of an answer by the client's `Accept` (RFC 9110, section 12.5.1).
//!
//! In: headers, and the types that a route can answer with, in the server's order. Out: the preferred type. Among types
//! with equal weights, one that the client names is preferred to one that a wildcard includes; then the server's order
//! decides. Not here: the error if no type fits, because each route names its own types.

use axum::http::HeaderMap;
use axum::http::header::ACCEPT;

/// A media type, like `("text", "csv")`.
pub(crate) type MediaType = (&'static str, &'static str);

/// Returns the type that the client prefers, or the first one if it has no preference. Returns `None` if the client
/// accepts none of the types.
pub(crate) fn preferred<T: Copy>(headers: &HeaderMap, types: impl Iterator<Item = (T, MediaType)>) -> Option<T> {
    let ranges: Vec<Range<'_>> = headers
        .get_all(ACCEPT)
        .iter()
        .flat_map(|value| value.to_str().unwrap_or_default().split(','))
        .filter_map(Range::parse)
        .collect();
    let mut types = types;
    if ranges.is_empty() {
        return types.next().map(|(value, _)| value);
    }
    let mut best = None;
    for (value, (kind, name)) in types {
        // The most exact range that matches decides about a type.
        let range = ranges.iter().filter(|range| range.fits(kind, name)).max_by_key(|range| range.exactness());
        let Some(range) = range.filter(|range| range.weight > 0) else { continue };
        let preference = (range.weight, range.exactness());
        if best.is_none_or(|(found, _)| preference > found) {
            best = Some((preference, value));
        }
    }
    best.map(|(_, value)| value)
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
