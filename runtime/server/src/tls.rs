//! The server's certificate: read from files, checked, and reloaded when the files change.
//!
//! In: two PEM files. Out: the configuration of handshakes: TLS 1.2 or 1.3 by rustls and ring, with HTTP/1.1 as the
//! protocol inside. Open connections keep the certificate that they began with. If a new certificate cannot be used,
//! the log reports the reason, and the old certificate stays. Not here: sockets (`serve`).

mod validity;

use std::fmt;
use std::hash::{DefaultHasher, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

pub use validity::Validity;

/// The pause between two checks of the files.
const WATCH_PAUSE: Duration = Duration::from_secs(60);

/// The reason why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("{path} cannot be read: {error}")]
    Unreadable { path: PathBuf, error: io::Error },
    #[error("the private key {path} can be read by others (mode {mode:o})")]
    Shared { path: PathBuf, mode: u32 },
    #[error("{path} contains no certificate in PEM")]
    NoCertificate { path: PathBuf },
    #[error("{path} contains no private key in PEM")]
    NoKey { path: PathBuf },
    #[error("{certificate} and {key} cannot be used together: {error}")]
    Unusable { certificate: PathBuf, key: PathBuf, error: rustls::Error },
}

/// A certificate with its key. Clones share the certificate.
#[derive(Clone)]
pub struct Tls(Arc<Files>);

struct Files {
    certificate: PathBuf,
    key: PathBuf,
    current: RwLock<Current>,
}

#[derive(Clone)]
struct Current {
    config: Arc<ServerConfig>,
    validity: Option<Validity>,
    /// The hash of both files.
    hash: u64,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("certificate", &self.0.certificate).finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads a certificate and its private key.
    ///
    /// # Errors
    /// [`TlsError`]
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let (hash, files) = bytes(certificate, key)?;
        let current = RwLock::new(load(certificate, key, &files, hash)?);
        Ok(Tls(Arc::new(Files { certificate: certificate.to_owned(), key: key.to_owned(), current })))
    }

    /// Reloads the files. Returns true if they have changed; new connections then use the new certificate.
    ///
    /// # Errors
    /// [`TlsError`]; the old certificate stays.
    pub fn renew(&self) -> Result<bool, TlsError> {
        let Files { certificate, key, current } = &*self.0;
        let (hash, files) = bytes(certificate, key)?;
        if hash == self.current().hash {
            return Ok(false);
        }
        let renewed = load(certificate, key, &files, hash)?;
        *current.write().unwrap_or_else(PoisonError::into_inner) = renewed;
        Ok(true)
    }

    /// Returns the period in which the certificate is valid, if it states one.
    pub fn validity(&self) -> Option<Validity> {
        self.current().validity
    }

    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        self.current().config
    }

    /// Renews the certificate whenever the files change. Never returns.
    pub(crate) async fn watch(self) {
        loop {
            tokio::time::sleep(WATCH_PAUSE).await;
            let tls = self.clone();
            match tokio::task::spawn_blocking(move || tls.renew()).await {
                Ok(Ok(true)) => {
                    let until = self.validity().map(|validity| validity.until.to_string());
                    tracing::info!(event = "certificate_renewed", valid_until = until);
                }
                Ok(Err(error)) => tracing::error!(event = "certificate_not_renewed", error_message = %error),
                Ok(Ok(false)) | Err(_) => {}
            }
        }
    }

    fn current(&self) -> Current {
        self.0.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn bytes(certificate: &Path, key: &Path) -> Result<(u64, [Vec<u8>; 2]), TlsError> {
    let unreadable = |path: &Path| {
        let path = path.to_owned();
        move |error| TlsError::Unreadable { path, error }
    };
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(key).map_err(unreadable(key))?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(TlsError::Shared { path: key.to_owned(), mode });
        }
    }
    let files =
        [std::fs::read(certificate).map_err(unreadable(certificate))?, std::fs::read(key).map_err(unreadable(key))?];
    let mut hasher = DefaultHasher::new();
    for file in &files {
        hasher.write_usize(file.len());
        hasher.write(file);
    }
    Ok((hasher.finish(), files))
}

fn load(certificate: &Path, key: &Path, [chain, private]: &[Vec<u8>; 2], hash: u64) -> Result<Current, TlsError> {
    let chain: Result<Vec<CertificateDer<'static>>, _> = CertificateDer::pem_slice_iter(chain).collect();
    let chain = chain.ok().filter(|chain| !chain.is_empty());
    let chain = chain.ok_or_else(|| TlsError::NoCertificate { path: certificate.to_owned() })?;
    let private = PrivateKeyDer::from_pem_slice(private).map_err(|_| TlsError::NoKey { path: key.to_owned() })?;
    let validity = chain.first().and_then(|first| Validity::of(first));
    let config = server_config(chain, private).map_err(|error| TlsError::Unusable {
        certificate: certificate.to_owned(),
        key: key.to_owned(),
        error,
    })?;
    Ok(Current { config: Arc::new(config), validity, hash })
}

/// Creates the configuration of handshakes. Fails if the key does not belong to the certificate.
fn server_config(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<ServerConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = [&rustls::version::TLS13, &rustls::version::TLS12];
    let builder = ServerConfig::builder_with_provider(provider).with_protocol_versions(&versions)?;
    let mut config = builder.with_no_client_auth().with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}
