//! The properties of a protocol that the edge needs.
//!
//! In: the head of a request. Out: the protocol that answers the request. A protocol renders errors in its own form,
//! including the errors of the edge: admission, limits, bodies, CORS, panics. Not here: the protocols themselves
//! (`rest`, `graphql`, `xmla`).

use std::sync::Arc;

use axum::extract::Request;
use axum::response::Response;
use terrane_app::ports::governance::Surface;

use super::credentials::Credentials;
use super::error::ApiError;

/// A protocol that the server speaks on some of its paths.
pub(crate) trait Protocol: Send + Sync {
    /// Returns the surface that hooks and the audit log see.
    fn surface(&self) -> Surface;

    /// Returns whether the protocol answers the request.
    fn answers(&self, request: &Request) -> bool;

    /// Returns whether the path belongs to a probe. Probes are answered to every caller, at any time.
    fn is_probe(&self, path: &str) -> bool;

    /// Returns whether callers can send this kind of credentials.
    fn accepts(&self, credentials: &Credentials) -> bool;

    /// Renders an error, with the challenge of a 401.
    fn render(&self, error: ApiError, correlation_id: &str) -> Response;
}

/// The protocols of a server. A request belongs to the first protocol that answers it.
#[derive(Clone)]
pub(crate) struct Protocols {
    others: Arc<[&'static dyn Protocol]>,
    fallback: &'static dyn Protocol,
}

impl Protocols {
    /// Creates the list of protocols. `fallback` answers the requests that no other protocol answers.
    pub(crate) fn new(others: &[&'static dyn Protocol], fallback: &'static dyn Protocol) -> Self {
        Protocols { others: others.into(), fallback }
    }

    fn of(&self, request: &Request) -> &'static dyn Protocol {
        self.others.iter().find(|protocol| protocol.answers(request)).copied().unwrap_or(self.fallback)
    }

    /// Assigns a protocol to a request. [`protocol_of`] returns it later.
    pub(super) fn assign(&self, request: &mut Request) -> &'static dyn Protocol {
        let protocol = self.of(request);
        request.extensions_mut().insert(Assigned(protocol));
        protocol
    }
}

#[derive(Clone, Copy)]
struct Assigned(&'static dyn Protocol);

/// Returns the protocol that the edge assigned to a request.
///
/// # Panics
/// If the request did not pass the edge.
pub(crate) fn protocol_of(request: &Request) -> &'static dyn Protocol {
    let Assigned(protocol) = request.extensions().get::<Assigned>().expect("the edge assigns a protocol");
    *protocol
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::StatusCode;
    use terrane_wire::Code;

    use super::*;

    /// A protocol whose errors are sent with status 200, as SOAP faults are.
    struct Faults;

    impl Protocol for Faults {
        fn surface(&self) -> Surface {
            Surface::Xmla
        }

        fn answers(&self, request: &Request) -> bool {
            request.uri().path() == "/faults"
        }

        fn is_probe(&self, _: &str) -> bool {
            false
        }

        fn accepts(&self, credentials: &Credentials) -> bool {
            matches!(credentials, Credentials::Basic { .. })
        }

        fn render(&self, error: ApiError, correlation_id: &str) -> Response {
            let body = error.into_parts().body;
            Response::new(Body::from(format!("<fault id=\"{correlation_id}\">{}</fault>", body.code.as_str())))
        }
    }

    fn rendered(path: &str) -> Response {
        let protocols = Protocols::new(&[&Faults], &crate::rest::Rest);
        let mut request = Request::builder().uri(path).body(Body::empty()).unwrap();
        protocols.assign(&mut request);
        protocol_of(&request).render(ApiError::new(Code::Unauthorized, "no credentials"), "1")
    }

    #[test]
    fn errors_are_rendered_by_the_protocol_of_the_path() {
        assert_eq!(rendered("/faults").status(), StatusCode::OK);
        assert!(!rendered("/faults").headers().contains_key("www-authenticate"));
        assert_eq!(rendered("/api/v1/query").status(), StatusCode::UNAUTHORIZED);
        assert_eq!(rendered("/api/v1/query").headers()["www-authenticate"], "Bearer");
        assert_eq!(rendered("/faults/other").status(), StatusCode::UNAUTHORIZED);
    }

    #[test]
    fn protocols_choose_their_credentials() {
        let basic = Credentials::Basic { password: "trn_key".to_owned() };
        assert!(Faults.accepts(&basic));
        assert!(!crate::rest::Rest.accepts(&basic));
    }
}
