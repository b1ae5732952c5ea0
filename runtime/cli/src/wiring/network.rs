//! Converts the settings of connections, CORS and host names from the configuration, and reads the TLS certificate.

use std::time::Duration;

use terrane_compiler::diagnostic::{Code, Diagnostic};
use terrane_server::tls::{Tls, TlsError};
use terrane_server::{Cors, Hosts, ServeSettings};

use crate::config::{Config, CorsConfig, TlsConfig};
use crate::failure::Failure;
use crate::project::Project;

/// Returns the limits of connections, with the certificate if there is one.
///
/// # Errors
/// The certificate or its key cannot be read or used.
pub fn serve_settings(project: &Project) -> Result<ServeSettings, Failure> {
    let server = &project.config.server;
    let seconds = Duration::from_secs;
    Ok(ServeSettings {
        max_connections: server.max_connections,
        header_timeout: seconds(server.header_timeout_seconds),
        write_timeout: seconds(server.write_timeout_seconds),
        shutdown_timeout: seconds(server.shutdown_seconds),
        tls: certificate(project)
            .map_err(|problem| Failure::Project { problems: vec![problem], tree: project.tree.clone() })?,
    })
}

/// Returns the certificate with its key, if the server has one.
///
/// # Errors
/// The certificate or its key cannot be read or used.
pub(super) fn certificate(project: &Project) -> Result<Option<Tls>, Diagnostic> {
    project.config.server.tls.as_ref().map(|tls| read_certificate(tls, project)).transpose()
}

fn read_certificate(tls: &TlsConfig, project: &Project) -> Result<Tls, Diagnostic> {
    let root = project.folder.root();
    let (certificate, key) = (root.join(&tls.cert_path.value), root.join(&tls.key_path.value));
    Tls::read(&certificate, &key).map_err(|error| {
        let hint = match &error {
            TlsError::Shared { path, .. } => format!("Run chmod 600 {}", path.display()),
            TlsError::Unreadable { .. } => "Check `server.tls.cert_path` and `server.tls.key_path`.".to_owned(),
            TlsError::NoCertificate { .. } => {
                "Write the certificate first, then the certificates that signed it.".to_owned()
            }
            TlsError::NoKey { .. } => "Write the key as PKCS #8, PKCS #1 or SEC 1, without a passphrase.".to_owned(),
            TlsError::Unusable { .. } => "Name a certificate and the private key that belongs to it.".to_owned(),
        };
        let is_of_key = matches!(&error, TlsError::Shared { .. } | TlsError::NoKey { .. })
            || matches!(&error, TlsError::Unreadable { path, .. } if *path == key);
        let place = if is_of_key { &tls.key_path.place } else { &tls.cert_path.place };
        place.mark(Diagnostic::error(Code::NotServed, error.to_string()).hint(hint))
    })
}

pub(super) fn cors(config: &CorsConfig) -> Cors {
    if config.any.is_some() {
        return Cors::Any;
    }
    match config.origins.is_empty() {
        true => Cors::Closed,
        // The configuration accepts only ASCII origins, so parsing does not fail.
        false => Cors::Listed(config.origins.iter().filter_map(|origin| origin.parse().ok()).collect()),
    }
}

/// Returns the allowed host names. An operator of a public server may not know all its names, so all are allowed unless
/// some are listed.
pub(super) fn hosts(config: &Config, is_public: bool) -> Hosts {
    let listed = &config.server.allowed_hosts;
    if is_public && listed.is_empty() { Hosts::Any } else { Hosts::Listed(listed.clone()) }
}
