//! The credential in the payload of `connection_init`.
//!
//! In: the payload. Out: the credentials. Browsers cannot set headers on sockets, so clients send the credential in the
//! payload. Its field is named like the header or the query parameter, in upper or lower case, and may also be in an
//! object `headers`.

use serde_json::{Map, Value as Json};
use terrane_wire::Code;

use crate::edge::{ApiError, Credentials};

/// The message for a connection without a credential.
pub(super) const REQUIRED: &str = "a credential is required in the payload of `connection_init`: `authorization: Bearer \
                                   <API key or access token>` or `api_key`; API keys start with `trn_`";

/// Reads the credential in the payload of `connection_init`, as in the headers of a request.
pub(super) fn of_payload(payload: &Map<String, Json>) -> Result<Credentials, ApiError> {
    let nested = payload.iter().find(|(name, _)| name.eq_ignore_ascii_case("headers"));
    let nested = nested.and_then(|(_, headers)| headers.as_object());
    let mut found = Credentials::None;
    for (name, value) in payload.iter().chain(nested.into_iter().flatten()) {
        let name = name.to_ascii_lowercase();
        let read = match (name.as_str(), value) {
            (_, Json::Null) => continue,
            ("authorization", Json::String(text)) => Credentials::of_header(text),
            ("api_key" | "apikey" | "api-key", Json::String(text)) => Credentials::of_key(text),
            ("authorization" | "api_key" | "apikey" | "api-key", _) => return Err(invalid()),
            _ => continue,
        };
        if found != Credentials::None {
            return Err(ApiError::new(Code::Unauthorized, "more than one credential"));
        }
        found = read.map_err(|_| invalid())?;
    }
    match found {
        Credentials::Basic { .. } => Err(invalid()),
        found => Ok(found),
    }
}

fn invalid() -> ApiError {
    let message = "expected `authorization: Bearer <API key or access token>` or `api_key` in the payload; API keys \
                   start with `trn_`";
    ApiError::new(Code::Unauthorized, message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const KEY: &str = "trn_0123456789abcdef_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn read(payload: Json) -> Option<Credentials> {
        of_payload(payload.as_object().unwrap()).ok()
    }

    #[test]
    fn headers_and_keys_are_credentials() {
        let bearer = || Some(Credentials::Bearer("a.b.c".to_owned()));
        assert!(read(json!({})) == Some(Credentials::None));
        assert!(read(json!({"locale": "de", "authorization": null})) == Some(Credentials::None));
        assert!(read(json!({"authorization": "Bearer a.b.c"})) == bearer());
        assert!(read(json!({"Authorization": "bearer a.b.c"})) == bearer());
        assert!(read(json!({"headers": {"Authorization": "Bearer a.b.c"}})) == bearer());
        for name in ["api_key", "apiKey", "Api-Key"] {
            assert!(read(json!({name: KEY})) == Some(Credentials::QueryKey(KEY.to_owned())), "{name}");
        }
    }

    #[test]
    fn other_payloads_are_rejected() {
        for payload in [
            json!({"authorization": "a.b.c"}),
            json!({"authorization": 1}),
            json!({"authorization": "Basic dXNlcjpzZWNyZXQ="}),
            json!({"api_key": "secret"}),
            json!({"api_key": [KEY]}),
            json!({"api_key": KEY, "authorization": "Bearer a"}),
            json!({"authorization": "Bearer a", "headers": {"authorization": "Bearer a"}}),
        ] {
            assert!(read(payload.clone()).is_none(), "{payload}");
        }
    }
}
