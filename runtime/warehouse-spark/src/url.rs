//! Parses the URL of a server: `sc://host:15002/;token=…;use_ssl=true`.
//!
//! In: the text of a URL. Out: the address, the credentials and the headers. The format is that of Spark's own clients;
//! `sslrootcert` additionally names the file of a certificate authority. As for those clients, an unknown parameter
//! becomes a header of every request. Not here: the environment, which Spark's clients also read.

use std::fmt;

use percent_encoding::percent_decode_str;
use tonic::metadata::{Ascii, MetadataKey, MetadataValue};

const SCHEME: &str = "sc://";
const DEFAULT_PORT: u16 = 15002;

/// The reason why a URL is refused. No message contains a value of the URL, because it may be a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    #[error("write `sc://host:15002/;token=…`")]
    Scheme,
    #[error("the host is missing; write `sc://host:15002`")]
    Host,
    #[error("the port is not a number from 1 to 65535")]
    Port,
    #[error("a path is not supported; parameters begin with `/;`")]
    Path,
    #[error("parameter {number} is not of the form `name=value`")]
    Parameter { number: usize },
    #[error("parameter `{name}` is repeated")]
    Repeated { name: String },
    #[error("parameter `{name}` is not supported: the program opens its own sessions")]
    Session { name: String },
    #[error("the value of `use_ssl` is neither `true` nor `false`")]
    UseSsl,
    #[error("parameter `{name}` cannot be sent as a header")]
    Header { name: String },
    #[error("a token is sent only over TLS, except to this machine: remove `use_ssl=false`")]
    TokenWithoutTls,
    #[error("`sslrootcert` needs `use_ssl=true`")]
    RootWithoutTls,
}

/// The address of a server and the identity of the client.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Address {
    /// A host name or an IP address. An IPv6 address is in brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) is_tls: bool,
    /// The file of the certificate authority. If `None`, the public authorities are trusted.
    pub(crate) root_certificate: Option<String>,
    pub(crate) user: String,
    /// The headers of every request, including the token.
    pub(crate) headers: Vec<(MetadataKey<Ascii>, MetadataValue<Ascii>)>,
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Address")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("is_tls", &self.is_tls)
            .finish_non_exhaustive()
    }
}

impl Address {
    /// Parses a URL.
    ///
    /// # Errors
    /// Returns the first error in the URL.
    pub(crate) fn parse(url: &str) -> Result<Address, UrlError> {
        let rest = url.trim().strip_prefix(SCHEME).ok_or(UrlError::Scheme)?;
        let (authority, tail) = rest.split_at(rest.find(['/', ';', '?', '#']).unwrap_or(rest.len()));
        let tail = tail.strip_prefix('/').unwrap_or(tail);
        let parameters = match tail.strip_prefix(';') {
            Some(parameters) => read_parameters(parameters)?,
            None if tail.is_empty() => Vec::new(),
            None => return Err(UrlError::Path),
        };
        let (host, port) = host_and_port(authority)?;
        Address::with_parameters(host, port, parameters)
    }

    fn with_parameters(host: String, port: u16, parameters: Vec<(String, String)>) -> Result<Address, UrlError> {
        let (mut use_ssl, mut token, mut root_certificate) = (None, None, None);
        let mut user = "terrane".to_owned();
        let mut headers = Vec::new();
        for (name, value) in parameters {
            match name.as_str() {
                "use_ssl" => use_ssl = Some(boolean(&value)?),
                "token" => token = Some(value),
                "sslrootcert" => root_certificate = Some(value),
                "user_id" => user = value,
                "session_id" => return Err(UrlError::Session { name }),
                // The adapter sets its own user agent and keepalive. Its time limits depend on the keepalive.
                "user_agent" => {}
                _ if name.starts_with("grpc_keepalive_") => {}
                _ => headers.push(header(&name, &value)?),
            }
        }
        let is_local = matches!(host.as_str(), "localhost" | "127.0.0.1" | "[::1]");
        let is_tls = use_ssl.unwrap_or(token.is_some() && !is_local);
        if let Some(token) = token {
            if !is_tls && !is_local {
                return Err(UrlError::TokenWithoutTls);
            }
            headers.push(header("authorization", &format!("Bearer {token}"))?);
        }
        if root_certificate.is_some() && !is_tls {
            return Err(UrlError::RootWithoutTls);
        }
        for (_, value) in &mut headers {
            value.set_sensitive(true);
        }
        Ok(Address { host, port, is_tls, root_certificate, user, headers })
    }
}

fn host_and_port(authority: &str) -> Result<(String, u16), UrlError> {
    // A user before the host has no meaning in this format, so such a URL is refused.
    if authority.contains('@') {
        return Err(UrlError::Host);
    }
    // The brackets of an IPv6 address contain colons.
    let colon = authority.rfind(':').filter(|colon| authority[*colon..].find(']').is_none());
    let (host, port) = match colon {
        Some(colon) => (&authority[..colon], Some(&authority[colon + 1..])),
        None => (authority, None),
    };
    let is_bracketed = host.starts_with('[') && host.ends_with(']') && host.len() > 2;
    let is_name =
        !host.is_empty() && host.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'));
    if !is_bracketed && !is_name {
        return Err(UrlError::Host);
    }
    let port = match port {
        None => DEFAULT_PORT,
        Some(port) => port.parse().ok().filter(|port| *port > 0).ok_or(UrlError::Port)?,
    };
    Ok((host.to_ascii_lowercase(), port))
}

/// Parses `name=value;name=value`. Values are percent-encoded, and may contain `=`, like tokens in base64.
fn read_parameters(text: &str) -> Result<Vec<(String, String)>, UrlError> {
    let mut read: Vec<(String, String)> = Vec::new();
    for (index, part) in text.split(';').enumerate().filter(|(_, part)| !part.is_empty()) {
        let wrong = || UrlError::Parameter { number: index + 1 };
        let (name, value) = part.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(wrong)?;
        if read.iter().any(|(known, _)| known == name) {
            return Err(UrlError::Repeated { name: name.to_owned() });
        }
        let value = percent_decode_str(value).decode_utf8().map_err(|_| wrong())?;
        read.push((name.to_owned(), value.into_owned()));
    }
    Ok(read)
}

fn boolean(value: &str) -> Result<bool, UrlError> {
    match value.to_ascii_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(UrlError::UseSsl),
    }
}

fn header(name: &str, value: &str) -> Result<(MetadataKey<Ascii>, MetadataValue<Ascii>), UrlError> {
    let wrong = || UrlError::Header { name: if name == "authorization" { "token" } else { name }.to_owned() };
    let key = MetadataKey::from_bytes(name.to_ascii_lowercase().as_bytes()).map_err(|_| wrong())?;
    Ok((key, value.parse().map_err(|_| wrong())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(url: &str) -> Address {
        Address::parse(url).unwrap()
    }

    #[test]
    fn address_and_parameters_are_read() {
        let address = parsed("sc://Spark.example:443/;use_ssl=true;token=a%3Db=;user_id=me;x-cluster-id=7");
        assert_eq!((address.host.as_str(), address.port, address.is_tls), ("spark.example", 443, true));
        assert_eq!(address.user, "me");
        let headers: Vec<(&str, &str)> =
            address.headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        assert_eq!(headers, [("x-cluster-id", "7"), ("authorization", "Bearer a=b=")]);
        assert_eq!((parsed("sc://h").port, parsed("sc://h/").port, parsed("sc://[::1]:7/;").port), (15002, 15002, 7));
        assert_eq!(parsed("sc://[::1]").host, "[::1]");
    }

    #[test]
    fn token_requires_tls_except_on_loopback() {
        assert!(parsed("sc://far/;token=x").is_tls);
        assert!(!parsed("sc://localhost/;token=x").is_tls);
        assert!(!parsed("sc://far").is_tls);
        assert_eq!(Address::parse("sc://far/;token=x;use_ssl=false"), Err(UrlError::TokenWithoutTls));
    }

    #[test]
    fn faulty_url_is_rejected() {
        for (url, error) in [
            ("", UrlError::Scheme),
            ("http://h:15002", UrlError::Scheme),
            ("sc://", UrlError::Host),
            ("sc://:15002", UrlError::Host),
            ("sc://me:pw@h", UrlError::Host),
            ("sc://a b", UrlError::Host),
            ("sc://[]", UrlError::Host),
            ("sc://h:", UrlError::Port),
            ("sc://h:0", UrlError::Port),
            ("sc://h:65536", UrlError::Port),
            ("sc://h/default", UrlError::Path),
            ("sc://h?x=1", UrlError::Path),
            ("sc://h/;token", UrlError::Parameter { number: 1 }),
            ("sc://h/;a=1;=2", UrlError::Parameter { number: 2 }),
            ("sc://h/;a=%ff", UrlError::Parameter { number: 1 }),
            ("sc://h/;a=1;a=2", UrlError::Repeated { name: "a".to_owned() }),
            ("sc://h/;session_id=1", UrlError::Session { name: "session_id".to_owned() }),
            ("sc://h/;use_ssl=yes", UrlError::UseSsl),
            ("sc://h/;a b=1", UrlError::Header { name: "a b".to_owned() }),
            ("sc://h/;use_ssl=true;token=a%0Ab", UrlError::Header { name: "token".to_owned() }),
            ("sc://h/;sslrootcert=a.crt", UrlError::RootWithoutTls),
        ] {
            assert_eq!(Address::parse(url), Err(error), "{url}");
        }
    }

    #[test]
    fn token_is_never_shown() {
        let shown = format!("{:?}", parsed("sc://h/;use_ssl=true;token=hidden"));
        assert!(!shown.contains("hidden"), "{shown}");
    }
}
