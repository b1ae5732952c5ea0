//! Sends a request to the collector.
//!
//! The operator configures the endpoint, so it may be in a private network. Requests go directly to the endpoint:
//! proxies that the environment names are not used, and redirects are not followed.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::CONTENT_TYPE;
use reqwest::redirect::Policy;

use super::TraceError;

/// The time limit of one request, from connecting to the headers of the response.
const TIMEOUT: Duration = Duration::from_secs(5);
const PATH: &str = "/v1/traces";

pub(crate) struct Client {
    http: reqwest::Client,
    url: Url,
}

/// The reason why a batch was not accepted. It contains no part of the URL.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    #[error("the collector responded with status {0}")]
    Status(u16),
    #[error("{0}")]
    Connection(String),
}

impl SendError {
    /// Returns whether a retry may help (OTLP specification, "Failures").
    pub(crate) fn is_passing(&self) -> bool {
        matches!(self, SendError::Connection(_) | SendError::Status(429 | 502..=504))
    }
}

impl Client {
    pub(crate) fn new(endpoint: &str) -> Result<Self, TraceError> {
        let http = reqwest::Client::builder()
            .tls_backend_preconfigured(tls()?)
            .no_proxy()
            .redirect(Policy::none())
            .timeout(TIMEOUT)
            .build()
            .map_err(|error| TraceError::Client(error.without_url().to_string()))?;
        Ok(Client { http, url: traces_url(endpoint)? })
    }

    pub(crate) async fn send(&self, body: Vec<u8>) -> Result<(), SendError> {
        let request = self.http.post(self.url.clone()).header(CONTENT_TYPE, "application/x-protobuf").body(body);
        let response = request.send().await.map_err(|error| SendError::Connection(root_cause(error)))?;
        let status = response.status();
        // The body of the response has no use here and is not read.
        if status.is_success() { Ok(()) } else { Err(SendError::Status(status.as_u16())) }
    }
}

/// Returns the message of the root cause. The errors that wrap the root cause contain the address.
fn root_cause(error: reqwest::Error) -> String {
    if error.is_timeout() {
        return format!("no response within {} seconds", TIMEOUT.as_secs());
    }
    let error = error.without_url();
    let mut cause: &dyn Error = &error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

/// Parses the URL of the endpoint. Adds the path of traces if the URL has no path.
fn traces_url(endpoint: &str) -> Result<Url, TraceError> {
    let mut url: Url = endpoint.trim().parse().map_err(|_| TraceError::Endpoint)?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return Err(TraceError::Endpoint);
    }
    let path = url.path().trim_end_matches('/').to_owned();
    if !path.ends_with(PATH) {
        url.set_path(&format!("{path}{PATH}"));
    }
    Ok(url)
}

/// Returns a TLS configuration with the public root certificates and the provider `ring`.
fn tls() -> Result<rustls::ClientConfig, TraceError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let roots: rustls::RootCertStore = webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect();
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| TraceError::Client(error.to_string()))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_path_is_added() {
        for (endpoint, url) in [
            ("http://c:4318", "http://c:4318/v1/traces"),
            ("http://c:4318/", "http://c:4318/v1/traces"),
            ("https://c/otlp", "https://c/otlp/v1/traces"),
            ("https://c/otlp/v1/traces/", "https://c/otlp/v1/traces/"),
        ] {
            assert_eq!(traces_url(endpoint).unwrap().as_str(), url);
        }
        for wrong in ["", "c:4318", "ftp://c", "http://", "grpc://c:4317", "http://[::1"] {
            assert!(traces_url(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn https_client_is_created() {
        assert!(Client::new("https://collector.example").is_ok());
    }
}
