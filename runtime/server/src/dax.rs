//! The protocol of the DAX routes: REST that accepts Basic credentials, which spreadsheets and BI clients send.
//!
//! In: requests below `/api/v1/dax`. Out: errors of REST, and challenges that name Basic first. Not here: XMLA, whose
//! errors are faults.

use axum::extract::Request;
use axum::http::header::WWW_AUTHENTICATE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use terrane_app::ports::governance::Surface;
use terrane_dax::MAX_CHARACTERS;

use crate::app::App;
use crate::edge::{ApiError, Credentials, Protocol};
use crate::rest::Rest;

const PREFIX: &str = "/api/v1/dax/";
/// The largest number of bytes of an escaped character: JSON writes an emoji as `\ud83d\ude00`.
const MAX_ESCAPE_BYTES: usize = 12;

/// Returns the size limit in bytes of a body with a DAX query. A query of [`MAX_CHARACTERS`] escaped characters does not
/// fit into the limit of other routes, which stays available to parameters and envelopes.
pub(crate) fn body_limit(app: &App) -> usize {
    app.settings.body_limit_bytes + MAX_ESCAPE_BYTES * MAX_CHARACTERS
}

/// REST with Basic credentials.
pub(crate) struct DaxProtocol;

impl Protocol for DaxProtocol {
    fn surface(&self) -> Surface {
        Surface::Dax
    }

    fn answers(&self, request: &Request) -> bool {
        accepts_basic(request.uri().path())
    }

    fn is_probe(&self, _: &str) -> bool {
        false
    }

    fn accepts(&self, _: &Credentials) -> bool {
        true
    }

    fn render(&self, error: ApiError, correlation_id: &str) -> Response {
        let mut response = Rest.render(error, correlation_id);
        if response.status() == StatusCode::UNAUTHORIZED {
            challenge_with_basic(&mut response);
        }
        response
    }
}

/// Returns whether a path takes an API key as the password of Basic credentials.
pub(crate) fn accepts_basic(path: &str) -> bool {
    path.starts_with(PREFIX)
}

/// Puts Basic before the other schemes of a challenge, because some clients read only the first one.
pub(crate) fn challenge_with_basic(response: &mut Response) {
    let headers = response.headers_mut();
    let basic = HeaderValue::from_static("Basic realm=\"Terrane\", charset=\"UTF-8\"");
    if let Some(other) = headers.insert(WWW_AUTHENTICATE, basic) {
        headers.append(WWW_AUTHENTICATE, other);
    }
}
