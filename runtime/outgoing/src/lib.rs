//! HTTP requests of this server to others, protected against server-side request forgery.
//!
//! In: a URL of the configuration, or the webhook of a monitor; never a URL from a token. Out: at most
//! [`MAX_BODY_BYTES`] of a body, or an [`OutgoingError`] that names the host and no other part of the URL. Requests use
//! HTTPS, except to a listed loopback host. They follow no redirects and ignore proxies of the environment. A host name
//! is resolved once, and the connection goes to an address that was checked. A request including the DNS lookup takes
//! at most [`TIMEOUT`], or the client's own timeout. The content type of a response is ignored; the caller parses the
//! body in the format that it expects. Not here: retries, caches and pooled connections.

mod address;
mod allow_list;
mod resolver;

#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, Url};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

pub use allow_list::{AllowList, AllowListError};
use resolver::{CheckedResolver, Lookup, SystemLookup};

/// The largest body that is read, in bytes. A provider's set of keys has a few kilobytes.
pub const MAX_BODY_BYTES: usize = 64 * 1_024;
/// The default timeout of a whole request.
pub const TIMEOUT: Duration = Duration::from_secs(5);
const OK: u16 = 200;

/// A URL that passed all checks that need no DNS lookup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint(Url);

impl Endpoint {
    /// Returns the host of the URL, for messages.
    pub fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default()
    }
}

/// The reason why a request failed, or can never succeed. It holds no path, no query and no body.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutgoingError {
    #[error("invalid URL")]
    InvalidUrl,
    #[error("{host} must be requested over https; http is allowed for a listed loopback host only")]
    NotHttps { host: String },
    #[error("the URL contains a user or a password")]
    HasCredentials,
    #[error(
        "{host} is this machine, in a private network or at a reserved address, and `security.outgoing.allow` does not list it"
    )]
    NotAllowed { host: String },
    #[error("the request to {host} failed: {reason}")]
    Unreachable { host: String, reason: String },
    #[error("{host} did not respond in time")]
    TimedOut { host: String },
    #[error("the response of {host} has more than {MAX_BODY_BYTES} bytes")]
    TooLarge { host: String },
    #[error("{host} responded with status {status}")]
    Status { host: String, status: u16 },
}

/// The reason why no client can be created.
#[derive(Debug, thiserror::Error)]
pub enum OutgoingSetupError {
    #[error("`{path}` contains no certificate in PEM")]
    NoCertificate { path: String },
    #[error("TLS is unavailable: {0}")]
    Tls(String),
}

/// A response with any status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    pub body: Vec<u8>,
}

/// The status of a response whose body is ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    pub status: u16,
    /// The value of the header `Retry-After`.
    pub retry_after: Option<String>,
}

/// A client that sends requests to allowed hosts. Clones share the connection settings and the list.
#[derive(Clone)]
pub struct OutgoingClient {
    client: Client,
    allow_list: Arc<AllowList>,
    resolver: CheckedResolver,
    timeout: Duration,
}

impl OutgoingClient {
    /// Creates a client that trusts the public certificate authorities, and those in `ca_pem`. `ca_pem` is the path of
    /// a file, for error messages, and the file's content.
    ///
    /// # Errors
    /// [`OutgoingSetupError`].
    pub fn new(allow_list: AllowList, ca_pem: Option<(&str, &[u8])>) -> Result<Self, OutgoingSetupError> {
        OutgoingClient::with_lookup(allow_list, ca_pem, Arc::new(SystemLookup), TIMEOUT)
    }

    fn with_lookup(
        allow_list: AllowList,
        ca_pem: Option<(&str, &[u8])>,
        lookup: Arc<dyn Lookup>,
        timeout: Duration,
    ) -> Result<Self, OutgoingSetupError> {
        let failed = |error: &dyn std::fmt::Display| OutgoingSetupError::Tls(error.to_string());
        let allow_list = Arc::new(allow_list);
        let resolver = CheckedResolver::new(allow_list.clone(), lookup);
        let client = Client::builder()
            .tls_backend_preconfigured(tls(ca_pem)?)
            .dns_resolver(Arc::new(resolver.clone()))
            .redirect(Policy::none())
            .no_proxy()
            .retry(reqwest::retry::never())
            .referer(false)
            // The address of an idle connection may belong to another host by the time it is used again.
            .pool_max_idle_per_host(0)
            .user_agent("terrane")
            .build()
            .map_err(|error| failed(&error.without_url()))?;
        Ok(OutgoingClient { client, allow_list, resolver, timeout })
    }

    /// Returns a client whose requests have this timeout instead of [`TIMEOUT`].
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        OutgoingClient { timeout, ..self.clone() }
    }

    /// Parses and checks a URL of the configuration.
    ///
    /// # Errors
    /// [`OutgoingError`], if no request to the URL can ever succeed.
    pub fn endpoint(&self, url: &str) -> Result<Endpoint, OutgoingError> {
        let url = Url::parse(url).map_err(|_| OutgoingError::InvalidUrl)?;
        let host = url.host_str().ok_or(OutgoingError::InvalidUrl)?.to_owned();
        if !url.username().is_empty() || url.password().is_some() {
            return Err(OutgoingError::HasCredentials);
        }
        // The resolver is not called for an address, so the address is checked here.
        let literal = literal(&host);
        let port = url.port_or_known_default();
        let is_allowed = match literal {
            Some(address) => self.allow_list.allows(&host, address, port),
            None => port.is_none_or(|port| self.allow_list.allows_name(&host, port)),
        };
        if !is_allowed {
            return Err(OutgoingError::NotAllowed { host });
        }
        match url.scheme() {
            "https" => Ok(Endpoint(url)),
            "http" if self.is_listed_loopback(&host, literal, port) => Ok(Endpoint(url)),
            "http" => Err(OutgoingError::NotHttps { host }),
            _ => Err(OutgoingError::InvalidUrl),
        }
    }

    /// Looks up the host name of an endpoint, before its URL is stored. The addresses may change, so each request checks
    /// them again.
    ///
    /// # Errors
    /// [`OutgoingError::NotAllowed`] if no address is allowed, or the error of the lookup.
    pub async fn look_up(&self, endpoint: &Endpoint) -> Result<(), OutgoingError> {
        let host = || endpoint.host().to_owned();
        // `OutgoingClient::endpoint` has checked a literal address.
        if literal(endpoint.host()).is_some() {
            return Ok(());
        }
        match tokio::time::timeout(self.timeout, self.resolver.allowed(endpoint.host())).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) if error.is::<resolver::NotAllowed>() => Err(OutgoingError::NotAllowed { host: host() }),
            Ok(Err(error)) => Err(OutgoingError::Unreachable { host: host(), reason: error.to_string() }),
            Err(_) => Err(OutgoingError::TimedOut { host: host() }),
        }
    }

    /// Returns true if the host is a listed loopback address, or `localhost` and listed. The resolver accepts only
    /// loopback addresses for `localhost`.
    fn is_listed_loopback(&self, host: &str, literal: Option<IpAddr>, port: Option<u16>) -> bool {
        match literal {
            Some(address) => address.to_canonical().is_loopback() && self.allow_list.contains_address(address, port),
            None => host == resolver::LOCALHOST && self.allow_list.contains_host(host),
        }
    }

    /// Sends a GET request. Returns the body of a response with status 200.
    ///
    /// # Errors
    /// [`OutgoingError`], including for a response with another status.
    pub async fn get(&self, endpoint: &Endpoint, bearer: Option<&str>) -> Result<Vec<u8>, OutgoingError> {
        let mut request = self.client.get(endpoint.0.clone());
        if let Some(bearer) = bearer {
            request = request.header(AUTHORIZATION, secret(&format!("Bearer {bearer}"), endpoint)?);
        }
        let Response { status, body } = self.send(endpoint, request).await?;
        if status == OK { Ok(body) } else { Err(OutgoingError::Status { host: endpoint.host().to_owned(), status }) }
    }

    /// Sends a URL-encoded form with the value of an `Authorization` header. The caller interprets the status.
    ///
    /// # Errors
    /// [`OutgoingError`].
    pub async fn post_form(
        &self,
        endpoint: &Endpoint,
        form: String,
        authorization: Option<&str>,
    ) -> Result<Response, OutgoingError> {
        let form_type = HeaderValue::from_static("application/x-www-form-urlencoded");
        let mut request = self.client.post(endpoint.0.clone()).header(CONTENT_TYPE, form_type).body(form);
        if let Some(authorization) = authorization {
            request = request.header(AUTHORIZATION, secret(authorization, endpoint)?);
        }
        self.send(endpoint, request).await
    }

    /// Sends JSON with additional headers, whose values do not appear in logs. The caller interprets the status. The
    /// body of the response is not read.
    ///
    /// # Errors
    /// [`OutgoingError`].
    pub async fn post_json(
        &self,
        endpoint: &Endpoint,
        body: String,
        headers: &[(&'static str, String)],
    ) -> Result<Accepted, OutgoingError> {
        let request = self.json_request(endpoint, body, headers)?;
        let host = || endpoint.host().to_owned();
        let response = match tokio::time::timeout(self.timeout, request.send()).await {
            Ok(response) => response.map_err(|error| explain(host(), &error))?,
            Err(_) => return Err(OutgoingError::TimedOut { host: host() }),
        };
        let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        Ok(Accepted { status: response.status().as_u16(), retry_after: retry_after.map(str::to_owned) })
    }

    /// Sends JSON with additional headers, whose values do not appear in logs, and reads the body of the response. The
    /// caller interprets the status.
    ///
    /// # Errors
    /// [`OutgoingError`].
    pub async fn post_json_for_body(
        &self,
        endpoint: &Endpoint,
        body: String,
        headers: &[(&'static str, String)],
    ) -> Result<Response, OutgoingError> {
        let request = self.json_request(endpoint, body, headers)?;
        self.send(endpoint, request).await
    }

    fn json_request(
        &self,
        endpoint: &Endpoint,
        body: String,
        headers: &[(&'static str, String)],
    ) -> Result<RequestBuilder, OutgoingError> {
        let json = HeaderValue::from_static("application/json");
        let mut request = self.client.post(endpoint.0.clone()).header(CONTENT_TYPE, json).body(body);
        for (name, value) in headers {
            request = request.header(*name, secret(value, endpoint)?);
        }
        Ok(request)
    }

    async fn send(&self, endpoint: &Endpoint, request: RequestBuilder) -> Result<Response, OutgoingError> {
        let host = || endpoint.host().to_owned();
        let request = request.header(ACCEPT, HeaderValue::from_static("application/json"));
        match tokio::time::timeout(self.timeout, read(endpoint, request)).await {
            Ok(response) => response,
            Err(_) => Err(OutgoingError::TimedOut { host: host() }),
        }
    }
}

/// Returns the address that a host is written as; `None` for a name.
fn literal(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

async fn read(endpoint: &Endpoint, request: RequestBuilder) -> Result<Response, OutgoingError> {
    let host = || endpoint.host().to_owned();
    let failed = |error: reqwest::Error| explain(host(), &error);
    let mut response = request.send().await.map_err(failed)?;
    let status = response.status().as_u16();
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        if body.len() + chunk.len() > MAX_BODY_BYTES {
            return Err(OutgoingError::TooLarge { host: host() });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Response { status, body })
}

/// Converts an error of the client. Uses the innermost cause, which is the most specific. No cause contains the URL.
fn explain(host: String, error: &reqwest::Error) -> OutgoingError {
    let mut cause: &dyn std::error::Error = error;
    loop {
        if cause.is::<resolver::NotAllowed>() {
            return OutgoingError::NotAllowed { host };
        }
        match cause.source() {
            Some(next) => cause = next,
            None => break,
        }
    }
    let reason = if std::ptr::eq(cause, error as &dyn std::error::Error) {
        "the connection was closed".to_owned()
    } else {
        cause.to_string().chars().take(200).collect()
    };
    OutgoingError::Unreachable { host, reason }
}

/// Returns a header value that does not appear in logs.
fn secret(text: &str, endpoint: &Endpoint) -> Result<HeaderValue, OutgoingError> {
    let unsendable = |_| OutgoingError::Unreachable {
        host: endpoint.host().to_owned(),
        reason: "the credential contains characters that no header can have".to_owned(),
    };
    let mut value = HeaderValue::from_str(text).map_err(unsendable)?;
    value.set_sensitive(true);
    Ok(value)
}

fn tls(ca_pem: Option<(&str, &[u8])>) -> Result<rustls::ClientConfig, OutgoingSetupError> {
    let failed = |error: rustls::Error| OutgoingSetupError::Tls(error.to_string());
    let mut roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    if let Some((path, pem)) = ca_pem {
        let no_certificate = || OutgoingSetupError::NoCertificate { path: path.to_owned() };
        let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        let found = found.map_err(|_| no_certificate())?;
        if found.is_empty() || roots.add_parsable_certificates(found).0 == 0 {
            return Err(no_certificate());
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    Ok(config.map_err(failed)?.with_root_certificates(roots).with_no_client_auth())
}
