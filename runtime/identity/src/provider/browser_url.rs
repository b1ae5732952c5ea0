//! URLs that browsers are redirected to. This server never requests them.
//!
//! In: a string of the configuration. Out: a URL over https, or over http to the browser's own machine.

use url::Url;

/// An address for browsers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrowserUrl(pub(super) Url);

/// The reason that a URL is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BrowserUrlError {
    #[error("invalid URL")]
    NotAUrl,
    #[error("expected https, or a loopback host")]
    NotHttps,
    #[error("the URL contains a user, a password or a fragment")]
    HasMore,
}

impl BrowserUrl {
    /// Parses a URL that browsers open.
    ///
    /// # Errors
    /// [`BrowserUrlError`].
    pub fn read(text: &str) -> Result<Self, BrowserUrlError> {
        let url = Url::parse(text).map_err(|_| BrowserUrlError::NotAUrl)?;
        let host = url.host_str().ok_or(BrowserUrlError::NotAUrl)?;
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let is_loopback = match bare.parse::<std::net::IpAddr>() {
            Ok(address) => address.to_canonical().is_loopback(),
            Err(_) => host == "localhost",
        };
        match url.scheme() {
            "https" => {}
            "http" if is_loopback => {}
            "http" => return Err(BrowserUrlError::NotHttps),
            _ => return Err(BrowserUrlError::NotAUrl),
        }
        let has_more = !url.username().is_empty() || url.password().is_some() || url.fragment().is_some();
        if has_more { Err(BrowserUrlError::HasMore) } else { Ok(BrowserUrl(url)) }
    }

    pub fn is_https(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// Returns the URL for browsers of a path of this server. The path of this URL comes first.
    pub fn join(&self, path: &str) -> String {
        let mut url = self.0.clone();
        url.set_query(None);
        format!("{}{path}", url.as_str().trim_end_matches('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browser_url_must_be_https_or_loopback() {
        for (text, expected) in [
            ("https://data.example", Ok("https://data.example/cb")),
            ("https://data.example/terrane/", Ok("https://data.example/terrane/cb")),
            ("http://localhost:8000", Ok("http://localhost:8000/cb")),
            ("http://127.0.0.1:8000/", Ok("http://127.0.0.1:8000/cb")),
            ("http://[::1]:8000/", Ok("http://[::1]:8000/cb")),
            ("http://data.example", Err(BrowserUrlError::NotHttps)),
            ("http://localhost.example", Err(BrowserUrlError::NotHttps)),
            ("https://u:p@data.example", Err(BrowserUrlError::HasMore)),
            ("https://data.example#x", Err(BrowserUrlError::HasMore)),
            ("javascript:alert(1)", Err(BrowserUrlError::NotAUrl)),
            ("data.example", Err(BrowserUrlError::NotAUrl)),
        ] {
            assert_eq!(BrowserUrl::read(text).map(|url| url.join("/cb")), expected.map(str::to_owned), "{text}");
        }
    }
}
