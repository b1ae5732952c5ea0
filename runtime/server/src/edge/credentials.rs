//! The credentials of a request.
//!
//! In: `Authorization` and the query parameter `api_key`. Out: [`Credentials`], or the reason why they cannot be read.
//! A key may be a query parameter; a token may not, because addresses are logged in many places. Not here: proving who
//! sent them (`app::security`).

use axum::extract::Request;
use axum::http::header::AUTHORIZATION;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The credentials of a request.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Credentials {
    None,
    /// `Authorization: Bearer`: an API key or an access token.
    Bearer(String),
    /// `Authorization: Basic`, with an API key as the password (RFC 7617). The user name has no meaning.
    Basic {
        password: String,
    },
    /// The query parameter `api_key`.
    QueryKey(String),
}

/// The reason why a request has no readable credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CredentialsError {
    /// The request has more than one credential.
    Several,
    /// The query parameter is not an API key.
    InvalidKey,
    /// The header `Authorization` has an unknown form.
    InvalidHeader,
}

impl Credentials {
    /// Reads the credentials of a request.
    ///
    /// # Errors
    /// [`CredentialsError`].
    pub(crate) fn read(request: &Request) -> Result<Self, CredentialsError> {
        let mut headers = request.headers().get_all(AUTHORIZATION).iter();
        let parameters = request.uri().query().unwrap_or_default();
        let mut keys = form_urlencoded::parse(parameters.as_bytes()).filter(|(name, _)| name == "api_key");
        let (header, key) = (headers.next(), keys.next());
        if headers.next().is_some() || keys.next().is_some() || (header.is_some() && key.is_some()) {
            return Err(CredentialsError::Several);
        }
        if let Some((_, key)) = key {
            return Credentials::of_key(&key);
        }
        let Some(header) = header else { return Ok(Credentials::None) };
        header.to_str().map_or(Err(CredentialsError::InvalidHeader), Credentials::of_header)
    }

    /// Reads the value of the query parameter `api_key`.
    pub(crate) fn of_key(text: &str) -> Result<Self, CredentialsError> {
        let is_key = terrane_app::security::api_key::is_key(text);
        if is_key { Ok(Credentials::QueryKey(text.to_owned())) } else { Err(CredentialsError::InvalidKey) }
    }

    /// Reads the value of the header `Authorization`.
    pub(crate) fn of_header(text: &str) -> Result<Self, CredentialsError> {
        from_header(text).ok_or(CredentialsError::InvalidHeader)
    }

    /// Returns the key or the token.
    pub(crate) fn into_secret(self) -> Option<String> {
        match self {
            Credentials::None => None,
            Credentials::Bearer(secret) | Credentials::Basic { password: secret } | Credentials::QueryKey(secret) => {
                Some(secret)
            }
        }
    }
}

fn from_header(text: &str) -> Option<Credentials> {
    let (scheme, value) = text.split_once(' ')?;
    let value = value.trim();
    if value.is_empty() {
        return None;
    }
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(Credentials::Bearer(value.to_owned()));
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let text = String::from_utf8(STANDARD.decode(value).ok()?).ok()?;
    let (_, password) = text.split_once(':')?;
    (!password.is_empty()).then(|| Credentials::Basic { password: password.to_owned() })
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    const KEY: &str = "trn_0123456789abcdef_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn read(target: &str, headers: &[&str]) -> Result<Credentials, CredentialsError> {
        let mut request = Request::builder().uri(target);
        for header in headers {
            request = request.header(AUTHORIZATION, *header);
        }
        Credentials::read(&request.body(Body::empty()).unwrap())
    }

    fn basic(text: &str) -> String {
        format!("Basic {}", STANDARD.encode(text))
    }

    #[test]
    fn bearer_and_basic_are_read() {
        assert!(read("/a", &[]) == Ok(Credentials::None));
        assert!(read("/a", &["Bearer a.b.c"]) == Ok(Credentials::Bearer("a.b.c".to_owned())));
        assert!(read("/a", &["bearer  a "]) == Ok(Credentials::Bearer("a".to_owned())));
        let password = |password: &str| Ok(Credentials::Basic { password: password.to_owned() });
        assert!(read("/a", &[&basic("anybody:secret")]) == password("secret"));
        assert!(read("/a", &[&basic(":a:b")]) == password("a:b"));
    }

    #[test]
    fn other_headers_are_invalid() {
        for header in ["Bearer", "Bearer ", "Digest a", "a", "Basic ???", &basic("no colon"), &basic("user:")] {
            assert!(read("/a", &[header]) == Err(CredentialsError::InvalidHeader), "{header}");
        }
        assert!(read("/a?api_key=secret", &[]) == Err(CredentialsError::InvalidKey));
    }

    #[test]
    fn several_credentials_are_rejected() {
        let with_key = format!("/a?api_key={KEY}");
        assert!(read("/a", &["Bearer a", "Bearer b"]) == Err(CredentialsError::Several));
        assert!(read(&with_key, &["Bearer a"]) == Err(CredentialsError::Several));
        assert!(read(&format!("{with_key}&api_key={KEY}"), &[]) == Err(CredentialsError::Several));
    }
}
