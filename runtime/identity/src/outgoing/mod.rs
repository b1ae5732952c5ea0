//! Requests to identity providers: the only ones that this server makes by itself.
//!
//! In: a URL of the configuration, never one of a token or a request. Out: at most [`MAX_BODY_BYTES`] of
//! a body, or an [`OutgoingError`] that names the host and nothing else of the URL. HTTPS alone, but for a
//! listed host that is this machine; no redirects, no proxies of the environment; a name is resolved once
//! and the connection goes to an address that was checked; [`TIMEOUT`] for all of it, the look-up too.
//! What the answer calls itself is not trusted: whoever asked reads it as what it must be.

mod address;
mod allow;
mod resolver;

#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, StatusCode, Url};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

pub use allow::{Allow, AllowError};
use resolver::{CheckedResolver, Lookup, SystemLookup};

/// A set of keys has some kilobytes.
pub(crate) const MAX_BODY_BYTES: usize = 64 * 1_024;
const TIMEOUT: Duration = Duration::from_secs(5);

/// A URL that may be asked, checked as far as it can be without a look-up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint(Url);

impl Endpoint {
    pub fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default()
    }
}

/// What went wrong on the way. Facts for the log: neither paths, queries nor bodies.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutgoingError {
    #[error("it is no URL")]
    NotAUrl,
    #[error("{host} is not asked over https; http is for a listed host that is this machine")]
    NotHttps { host: String },
    #[error("it names a user or a password; write it without")]
    HasCredentials,
    #[error(
        "{host} lies on this machine, in a private network or at a reserved address, and `security.outgoing.allow` does not list it"
    )]
    NotAllowed { host: String },
    #[error("{host} did not answer: {why}")]
    Unreachable { host: String, why: String },
    #[error("{host} did not answer within {} seconds", TIMEOUT.as_secs())]
    TimedOut { host: String },
    #[error("{host} answered more than {MAX_BODY_BYTES} bytes")]
    TooLarge { host: String },
    #[error("{host} answered with status {status}")]
    Status { host: String, status: u16 },
}

/// Why no request can be made at all.
#[derive(Debug, thiserror::Error)]
pub enum OutgoingSetupError {
    #[error("`{path}` holds no certificate in PEM")]
    NoCertificate { path: String },
    #[error("TLS cannot be used: {0}")]
    Tls(String),
}

/// What an endpoint answered.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: Vec<u8>,
}

/// Makes requests; a clone shares everything.
#[derive(Clone)]
pub struct Outgoing {
    client: Client,
    allow: Arc<Allow>,
    timeout: Duration,
}

impl Outgoing {
    /// `ca_pem`: authorities besides the public ones, with the path to name in an error.
    ///
    /// # Errors
    /// The authorities can't be read.
    pub fn new(allow: Allow, ca_pem: Option<(&str, &[u8])>) -> Result<Self, OutgoingSetupError> {
        Outgoing::with(allow, ca_pem, Arc::new(SystemLookup), TIMEOUT)
    }

    fn with(
        allow: Allow,
        ca_pem: Option<(&str, &[u8])>,
        lookup: Arc<dyn Lookup>,
        timeout: Duration,
    ) -> Result<Self, OutgoingSetupError> {
        let failed = |error: &dyn std::fmt::Display| OutgoingSetupError::Tls(error.to_string());
        let allow = Arc::new(allow);
        let client = Client::builder()
            .tls_backend_preconfigured(tls(ca_pem)?)
            .dns_resolver(Arc::new(CheckedResolver::new(allow.clone(), lookup)))
            .redirect(Policy::none())
            .no_proxy()
            .retry(reqwest::retry::never())
            .referer(false)
            // A connection that is kept would go on to an address that may be another's by then.
            .pool_max_idle_per_host(0)
            .user_agent("terrane")
            .build()
            .map_err(|error| failed(&error.without_url()))?;
        Ok(Outgoing { client, allow, timeout })
    }

    /// A URL of the configuration.
    ///
    /// # Errors
    /// [`OutgoingError`], where it could never be asked.
    pub fn endpoint(&self, url: &str) -> Result<Endpoint, OutgoingError> {
        let url = Url::parse(url).map_err(|_| OutgoingError::NotAUrl)?;
        let host = url.host_str().ok_or(OutgoingError::NotAUrl)?.to_owned();
        if !url.username().is_empty() || url.password().is_some() {
            return Err(OutgoingError::HasCredentials);
        }
        // The resolver is not asked for an address that stands in the URL.
        let literal = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().ok();
        if literal.is_some_and(|address| !self.allow.lets(&host, address)) {
            return Err(OutgoingError::NotAllowed { host });
        }
        match url.scheme() {
            "https" => Ok(Endpoint(url)),
            "http" if self.is_this_machine(&host, literal) => Ok(Endpoint(url)),
            "http" => Err(OutgoingError::NotHttps { host }),
            _ => Err(OutgoingError::NotAUrl),
        }
    }

    /// `localhost` is resolved to loopback addresses only.
    fn is_this_machine(&self, host: &str, literal: Option<IpAddr>) -> bool {
        match literal {
            Some(address) => address.to_canonical().is_loopback() && self.allow.holds(address),
            None => host == resolver::LOCALHOST && self.allow.names(host),
        }
    }

    /// A GET whose answer must be a success.
    pub(crate) async fn get(&self, endpoint: &Endpoint, bearer: Option<&str>) -> Result<Vec<u8>, OutgoingError> {
        let mut request = self.client.get(endpoint.0.clone());
        if let Some(bearer) = bearer {
            request = request.header(AUTHORIZATION, secret(&format!("Bearer {bearer}"), endpoint)?);
        }
        let answer = self.ask(endpoint, request).await?;
        if answer.status == StatusCode::OK {
            return Ok(answer.body);
        }
        Err(OutgoingError::Status { host: endpoint.host().to_owned(), status: answer.status.as_u16() })
    }

    /// A form, sent. What the status means is the caller's to say.
    pub(crate) async fn post_form(
        &self,
        endpoint: &Endpoint,
        form: String,
        authorization: Option<&str>,
    ) -> Result<Answer, OutgoingError> {
        let form_type = HeaderValue::from_static("application/x-www-form-urlencoded");
        let mut request = self.client.post(endpoint.0.clone()).header(CONTENT_TYPE, form_type).body(form);
        if let Some(authorization) = authorization {
            request = request.header(AUTHORIZATION, secret(authorization, endpoint)?);
        }
        self.ask(endpoint, request).await
    }

    async fn ask(&self, endpoint: &Endpoint, request: RequestBuilder) -> Result<Answer, OutgoingError> {
        let host = || endpoint.host().to_owned();
        let request = request.header(ACCEPT, HeaderValue::from_static("application/json"));
        match tokio::time::timeout(self.timeout, read(endpoint, request)).await {
            Ok(answer) => answer,
            Err(_) => Err(OutgoingError::TimedOut { host: host() }),
        }
    }
}

async fn read(endpoint: &Endpoint, request: RequestBuilder) -> Result<Answer, OutgoingError> {
    let host = || endpoint.host().to_owned();
    let failed = |error: reqwest::Error| explain(host(), &error);
    let mut response = request.send().await.map_err(failed)?;
    let status = response.status();
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        if body.len() + chunk.len() > MAX_BODY_BYTES {
            return Err(OutgoingError::TooLarge { host: host() });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Answer { status, body })
}

/// The innermost cause says most, and none of them the URL.
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
    let why = if std::ptr::eq(cause, error as &dyn std::error::Error) {
        "the connection broke off".to_owned()
    } else {
        cause.to_string().chars().take(200).collect()
    };
    OutgoingError::Unreachable { host, why }
}

/// A header that no log shows.
fn secret(text: &str, endpoint: &Endpoint) -> Result<HeaderValue, OutgoingError> {
    let unsendable = |_| OutgoingError::Unreachable {
        host: endpoint.host().to_owned(),
        why: "the credential cannot be sent in a header".to_owned(),
    };
    let mut value = HeaderValue::from_str(text).map_err(unsendable)?;
    value.set_sensitive(true);
    Ok(value)
}

fn tls(ca_pem: Option<(&str, &[u8])>) -> Result<rustls::ClientConfig, OutgoingSetupError> {
    let failed = |error: rustls::Error| OutgoingSetupError::Tls(error.to_string());
    let mut roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    if let Some((path, pem)) = ca_pem {
        let nothing = || OutgoingSetupError::NoCertificate { path: path.to_owned() };
        let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        let found = found.map_err(|_| nothing())?;
        if found.is_empty() || roots.add_parsable_certificates(found).0 == 0 {
            return Err(nothing());
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    Ok(config.map_err(failed)?.with_root_certificates(roots).with_no_client_auth())
}
