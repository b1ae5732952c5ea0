//! A page to try operations: GraphiQL, with all of its files inside the program.
//!
//! In: a browser's request. Out: the page, its script and style, and the packages that `cargo xtask setup` prepared and
//! compressed. The page loads nothing from another host, which its headers enforce. The credential that a user types
//! stays in the tab. Not here: the project's names; the page needs no credential.

use std::io::Read as _;

use axum::body::Body;
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, VARY,
};
use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use bytes::Bytes;

use super::check_enabled;
use crate::app::App;
use crate::edge::{ApiError, Call};

/// The content security policy: only resources of this server. Two exceptions are needed: the editor sets styles of
/// single elements (`'unsafe-inline'`), and its style sheet contains the fonts (`data:`).
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
     font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);
const REFERRER_POLICY: HeaderName = HeaderName::from_static("referrer-policy");

/// A package's file in gzip.
struct Packaged {
    name: &'static str,
    gzip: &'static [u8],
}

// Defines `PACKAGED`, which is empty if the packages were not prepared.
include!(concat!(env!("OUT_DIR"), "/playground.rs"));

/// The files in the folder `page`, each with its name and its content.
const OWN: [(&str, &str); 2] = [("page.js", include_str!("page/page.js")), ("page.css", include_str!("page/page.css"))];

/// Returns the HTML of the page, or a note if its files are not packaged.
pub(super) fn page(app: &App, path: &str) -> Result<Response, ApiError> {
    check_offered(app, path)?;
    let text = if PACKAGED.is_empty() { include_str!("page/missing.html") } else { include_str!("page/page.html") };
    Ok(respond(Body::from(text), "text/html; charset=utf-8"))
}

/// Returns a file of the page.
pub(super) async fn file(app: App, mut call: Call) -> Result<Response, ApiError> {
    check_offered(&app, call.path())?;
    let name = call.path_parameter().await?;
    let content_type =
        if name.ends_with(".css") { "text/css; charset=utf-8" } else { "text/javascript; charset=utf-8" };
    if let Some((_, text)) = OWN.iter().find(|(own, _)| *own == name) {
        return Ok(respond(Body::from(*text), content_type));
    }
    let packaged = PACKAGED.iter().find(|file| file.name == name);
    let packaged = packaged.ok_or_else(|| ApiError::not_found(call.path()))?;
    let is_compressed = accepts_gzip(call.headers());
    let body = if is_compressed { Bytes::from_static(packaged.gzip) } else { decompressed(packaged.gzip) };
    let mut response = respond(Body::from(body), content_type);
    if is_compressed {
        response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response.headers_mut().insert(VARY, HeaderValue::from_static("accept-encoding"));
    // The files change with the version of the program, so they are cached for an hour only.
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("private, max-age=3600"));
    Ok(response)
}

fn check_offered(app: &App, path: &str) -> Result<(), ApiError> {
    check_enabled(app, path)?;
    if app.settings.graphql.has_playground { Ok(()) } else { Err(ApiError::not_found(path)) }
}

/// Returns whether a client accepts gzip. A client that weighs it with 0 gets the plain file.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let codings = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    codings.flat_map(|value| value.split(',')).any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        is_gzip && !parts.any(|parameter| matches!(parameter, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
    })
}

fn decompressed(gzip: &[u8]) -> Bytes {
    let mut text = Vec::new();
    // Set-up compressed the file, so decoding does not fail.
    let _ = flate2::read::GzDecoder::new(gzip).read_to_end(&mut text);
    text.into()
}

fn respond(body: Body, content_type: &'static str) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CONTENT_SECURITY_POLICY, POLICY);
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_loads_only_files_of_this_program() {
        let page = include_str!("page/page.html");
        let addresses: Vec<&str> = page.split(['"', '\'']).filter(|part| part.contains("graphql/page/")).collect();
        assert!(!addresses.is_empty());
        for address in addresses {
            let name = address.strip_prefix("graphql/page/").unwrap();
            let is_own = OWN.iter().any(|(own, _)| *own == name);
            assert!(is_own || PACKAGED.is_empty() || PACKAGED.iter().any(|file| file.name == name), "{name}");
        }
        for text in [page, include_str!("page/missing.html"), OWN[0].1, OWN[1].1] {
            assert!(!text.contains("://"), "an address of another host");
        }
    }

    #[test]
    fn packaged_files_are_texts() {
        for file in PACKAGED {
            let text = decompressed(file.gzip);
            assert!(text.len() > 1_000 && std::str::from_utf8(&text).is_ok(), "{}", file.name);
        }
    }

    #[test]
    fn gzip_is_sent_to_clients_that_accept_it() {
        let accepts = |value: &'static str| {
            accepts_gzip(&HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(value))]))
        };
        assert!(accepts("gzip, deflate, br") && accepts("br;q=1.0, GZIP;q=0.8"));
        assert!(!accepts("br") && !accepts("gzip;q=0") && !accepts("") && !accepts_gzip(&HeaderMap::new()));
    }
}
