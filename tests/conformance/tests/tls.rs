//! Tests the server with TLS: requests of a client that trusts the certificate, and connections that must fail.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::fs::{self, Permissions};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion, version};
use tempfile::TempDir;
use terrane_conformance_tests::case::World;
use terrane_server::tls::{Tls, TlsError};
use terrane_server::{ServeSettings, bind, serve};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

const SERVER: [&[u8]; 2] =
    [include_bytes!("../keys/test_only_server.crt"), include_bytes!("../keys/test_only_server.key")];
const RENEWED: [&[u8]; 2] =
    [include_bytes!("../keys/test_only_renewed.crt"), include_bytes!("../keys/test_only_renewed.key")];
const PROBE: &[u8] = b"GET /health/live HTTP/1.1\r\nhost: localhost\r\n\r\n";

/// A certificate and a key in files.
struct Files(TempDir);

impl Files {
    fn with([certificate, key]: [&[u8]; 2]) -> Self {
        let files = Files(tempfile::tempdir().unwrap());
        files.write([certificate, key]);
        files
    }

    fn write(&self, [certificate, key]: [&[u8]; 2]) {
        fs::write(self.0.path().join("a.crt"), certificate).unwrap();
        fs::write(self.0.path().join("a.key"), key).unwrap();
        self.set_mode(0o600);
    }

    fn set_mode(&self, mode: u32) {
        fs::set_permissions(self.0.path().join("a.key"), Permissions::from_mode(mode)).unwrap();
    }

    fn read(&self) -> Result<Tls, TlsError> {
        Tls::read(&self.0.path().join("a.crt"), &self.0.path().join("a.key"))
    }
}

async fn start(tls: Tls, header_timeout: Duration) -> SocketAddr {
    let listener = bind(([127, 0, 0, 1], 0).into()).await.unwrap();
    let address = listener.local_addr().unwrap();
    let settings = ServeSettings { tls: Some(tls), header_timeout, ..ServeSettings::default() };
    let app = World::default().edge().app().clone();
    tokio::spawn(serve(listener, app, settings, std::future::pending()));
    address
}

/// Connects a client that trusts one certificate.
async fn connect(
    address: SocketAddr,
    trusted: &[u8],
    versions: &[&'static SupportedProtocolVersion],
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(trusted).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(versions).unwrap();
    let config = builder.with_root_certificates(roots).with_no_client_auth();
    let stream = TcpStream::connect(address).await?;
    TlsConnector::from(Arc::new(config)).connect(ServerName::try_from("localhost").unwrap(), stream).await
}

async fn probe(stream: &mut TlsStream<TcpStream>) -> String {
    stream.write_all(PROBE).await.unwrap();
    let mut bytes = vec![0; 4_096];
    let count = stream.read(&mut bytes).await.unwrap();
    String::from_utf8_lossy(&bytes[..count]).into_owned()
}

#[tokio::test]
async fn both_versions_are_spoken_and_browsers_get_strict_transport_security() {
    let address = start(Files::with(SERVER).read().unwrap(), Duration::from_secs(20)).await;
    for one in [&version::TLS12, &version::TLS13] {
        let mut stream = connect(address, SERVER[0], &[one]).await.unwrap();
        for _ in 0..2 {
            let answer = probe(&mut stream).await;
            assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
            assert!(answer.contains("strict-transport-security: max-age=31536000\r\n"), "{answer}");
        }
    }
    assert!(connect(address, RENEWED[0], &[&version::TLS13]).await.is_err(), "a client must know the certificate");
}

#[tokio::test]
async fn new_certificate_is_loaded_without_closing_connections() {
    let files = Files::with(SERVER);
    let tls = files.read().unwrap();
    let address = start(tls.clone(), Duration::from_secs(20)).await;
    let mut old = connect(address, SERVER[0], &[&version::TLS13]).await.unwrap();
    assert!(probe(&mut old).await.starts_with("HTTP/1.1 200"));
    assert!(!tls.renew().unwrap(), "nothing has changed");

    // A renewal writes two files. Between the two writes, the files do not belong together.
    files.write([RENEWED[0], SERVER[1]]);
    assert!(matches!(tls.renew().unwrap_err(), TlsError::Unusable { .. }));
    assert!(connect(address, SERVER[0], &[&version::TLS13]).await.is_ok(), "the old one stays");
    files.write(RENEWED);
    assert!(tls.renew().unwrap());
    let mut new = connect(address, RENEWED[0], &[&version::TLS13]).await.unwrap();
    assert!(probe(&mut new).await.starts_with("HTTP/1.1 200"));
    assert!(connect(address, SERVER[0], &[&version::TLS13]).await.is_err());
    assert!(probe(&mut old).await.starts_with("HTTP/1.1 200"), "a connection outlives its certificate");
}

#[tokio::test]
async fn plain_http_is_reported_and_closed() {
    let address = start(Files::with(SERVER).read().unwrap(), Duration::from_secs(20)).await;
    let mut plain = TcpStream::connect(address).await.unwrap();
    plain.write_all(PROBE).await.unwrap();
    let mut answer = String::new();
    plain.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("https://"), "{answer}");
    for noise in [&b"\x00\x01\x02"[..], b"\x16\x03\x01\xff\xff junk", b"\x16\x03\x01\x00\x05hello", b"\x80\x2e\x01"] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(noise).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
    }
    let mut stream = connect(address, SERVER[0], &[&version::TLS13]).await.unwrap();
    assert!(probe(&mut stream).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn unfinished_handshake_closes_the_connection() {
    let address = start(Files::with(SERVER).read().unwrap(), Duration::from_millis(100)).await;
    for begun in [&b""[..], b"\x16\x03\x01\x02\x00\x01\x00"] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(begun).await.unwrap();
        let closed = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut Vec::new())).await;
        assert!(closed.is_ok(), "{begun:?} kept its connection");
    }
    // A connection that completes its handshake and sends no request.
    let mut idle = connect(address, SERVER[0], &[&version::TLS13]).await.unwrap();
    let closed = tokio::time::timeout(Duration::from_secs(5), idle.read_to_end(&mut Vec::new())).await;
    assert!(closed.is_ok(), "an idle connection was kept");
}

#[test]
fn invalid_certificate_is_reported() {
    let said = |files: &Files| files.read().unwrap_err().to_string();
    for (pair, words) in [
        ([SERVER[0], RENEWED[1]], "cannot be used together"),
        ([SERVER[1], SERVER[1]], "a.crt contains no certificate"),
        ([SERVER[0], SERVER[0]], "a.key contains no private key"),
        ([&b""[..], SERVER[1]], "contains no certificate"),
        ([&SERVER[0][..200], SERVER[1]], "contains no certificate"),
        ([&b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"[..], SERVER[1]], "cannot be used"),
    ] {
        let message = said(&Files::with(pair));
        assert!(message.contains(words), "{message}");
        assert!(!message.contains("PRIVATE KEY"), "{message}");
    }
    let files = Files::with(SERVER);
    files.set_mode(0o640);
    assert!(said(&files).contains("can be read by others (mode 640)"), "{}", said(&files));
    fs::remove_file(files.0.path().join("a.key")).unwrap();
    assert!(said(&files).contains("cannot be read"), "{}", said(&files));
}
