//! Tests requests to local sockets whose responses violate the protocol or the limits.

use std::net::SocketAddr;
use std::sync::Mutex;

use async_trait::async_trait;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;

/// The timeout of requests in tests.
const PATIENCE: Duration = Duration::from_millis(400);

/// Starts a server that sends these pieces on each connection. An empty piece is a pause.
async fn server(pieces: Vec<Vec<u8>>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let pieces = pieces.clone();
            tokio::spawn(async move {
                let mut head = [0; 4_096];
                let _ = stream.read(&mut head).await;
                for piece in pieces {
                    if piece.is_empty() {
                        tokio::time::sleep(PATIENCE / 4).await;
                    }
                    if stream.write_all(&piece).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

fn response(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let mut all = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n{headers}\r\n", body.len()).into_bytes();
    all.extend_from_slice(body);
    all
}

fn client(allow: &[&str], lookup: Arc<dyn Lookup>) -> OutgoingClient {
    OutgoingClient::with_lookup(AllowList::parse(allow.iter().copied()).unwrap(), None, lookup, PATIENCE).unwrap()
}

async fn get(address: SocketAddr) -> Result<Vec<u8>, OutgoingError> {
    let client = client(&["127.0.0.1"], Arc::new(SystemLookup));
    let endpoint = client.endpoint(&format!("http://{address}/keys?secret=hush")).unwrap();
    client.get(&endpoint, None).await
}

#[tokio::test]
async fn content_types_are_ignored() {
    let address = server(vec![response("200 OK", "Content-Type: image/png\r\n", b"{}")]).await;
    assert_eq!(get(address).await.unwrap(), b"{}");
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let target = server(vec![response("200 OK", "", b"{\"reached\": true}")]).await;
    for status in ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"] {
        let redirect = format!("Location: http://{target}/\r\n");
        let address = server(vec![response(status, &redirect, b"")]).await;
        let error = get(address).await.unwrap_err();
        assert!(matches!(error, OutgoingError::Status { .. }), "{status}: {error}");
    }
}

#[tokio::test]
async fn slow_large_and_broken_responses_are_errors() {
    let large = vec![b'x'; MAX_BODY_BYTES + 1];
    let endless = vec![b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec()]
        .into_iter()
        .chain(std::iter::repeat_n([b"4000\r\n".as_slice(), &[b'x'; 0x4000], b"\r\n"].concat(), 1_000))
        .collect();
    let slow = std::iter::once(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n".to_vec())
        .chain((0..50).flat_map(|_| [Vec::new(), b"x".to_vec()]))
        .collect();
    let is_too_large = |error: &OutgoingError| matches!(error, OutgoingError::TooLarge { .. });
    let is_late = |error: &OutgoingError| matches!(error, OutgoingError::TimedOut { .. });
    let is_broken = |error: &OutgoingError| matches!(error, OutgoingError::Unreachable { .. });
    type Case<'a> = (&'a str, Vec<Vec<u8>>, &'a dyn Fn(&OutgoingError) -> bool);
    let cases: Vec<Case<'_>> = vec![
        ("announced", vec![response("200 OK", "", &large)], &is_too_large),
        ("endless", endless, &is_too_large),
        ("a byte at a time", slow, &is_late),
        ("silent", vec![Vec::new(); 20], &is_late),
        ("cut off", vec![b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc".to_vec()], &is_broken),
        ("no HTTP", vec![b"SSH-2.0-x\r\n".to_vec()], &is_broken),
        ("endless head", vec![b"HTTP/1.1 200 OK\r\n".to_vec(), b"a: b\r\n".repeat(200_000)], &is_broken),
    ];
    for (name, pieces, is_expected) in cases {
        let error = get(server(pieces).await).await.unwrap_err();
        assert!(is_expected(&error), "{name}: {error:?}");
        assert!(!error.to_string().contains("hush") && !error.to_string().contains("/keys"), "{error}");
    }
    let body = vec![b'x'; MAX_BODY_BYTES];
    assert_eq!(get(server(vec![response("200 OK", "", &body)]).await).await.unwrap().len(), MAX_BODY_BYTES);
}

#[tokio::test]
async fn closed_ports_are_unreachable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    assert!(matches!(get(address).await.unwrap_err(), OutgoingError::Unreachable { .. }));
}

/// A resolver that returns different addresses at each lookup.
struct Rebinding {
    answers: Mutex<Vec<Vec<SocketAddr>>>,
}

#[async_trait]
impl Lookup for Rebinding {
    async fn addresses(&self, _: &str) -> std::io::Result<Vec<SocketAddr>> {
        Ok(self.answers.lock().unwrap().pop().unwrap_or_default())
    }
}

#[tokio::test]
async fn connections_go_to_checked_addresses_only() {
    let inside = server(vec![response("200 OK", "", b"{}")]).await;
    let lookup = |answers: &[&[&str]]| {
        let answers = answers.iter().rev();
        let parse = |texts: &&[&str]| texts.iter().map(|text| SocketAddr::new(text.parse().unwrap(), 0)).collect();
        Arc::new(Rebinding { answers: Mutex::new(answers.map(parse).collect()) })
    };
    let url = format!("https://idp.example:{}/", inside.port());
    // The name resolves to this machine, to forbidden addresses, or to none.
    for answers in [&["127.0.0.1"][..], &["10.0.0.1", "::1"], &["169.254.169.254"], &["::ffff:127.0.0.1"], &[]] {
        let client = client(&[], lookup(&[answers]));
        let error = client.get(&client.endpoint(&url).unwrap(), None).await.unwrap_err();
        assert_eq!(error, OutgoingError::NotAllowed { host: "idp.example".to_owned() }, "{answers:?}");
    }
    // The first lookup returns an allowed address. A second lookup would not.
    let rebinding = lookup(&[&["127.0.0.1", "169.254.169.254"], &["127.0.0.1"]]);
    let client = client(&["idp.example"], rebinding.clone());
    let error = client.get(&client.endpoint(&url).unwrap(), None).await.unwrap_err();
    assert!(matches!(error, OutgoingError::Unreachable { .. }), "the server has no TLS: {error:?}");
    assert_eq!(rebinding.answers.lock().unwrap().len(), 1, "resolved once");
}

#[tokio::test]
async fn names_of_private_addresses_are_rejected_by_a_lookup() {
    struct Fixed(std::io::Result<Vec<&'static str>>);

    #[async_trait]
    impl Lookup for Fixed {
        async fn addresses(&self, _: &str) -> std::io::Result<Vec<SocketAddr>> {
            match &self.0 {
                Ok(found) => Ok(found.iter().map(|text| SocketAddr::new(text.parse().unwrap(), 0)).collect()),
                Err(error) => Err(std::io::Error::new(error.kind(), error.to_string())),
            }
        }
    }

    let look_up = async |allow: &[&str], found| {
        let client = client(allow, Arc::new(Fixed(found)));
        client.look_up(&client.endpoint("https://hooks.example/x").unwrap()).await
    };
    let refused = Err(OutgoingError::NotAllowed { host: "hooks.example".to_owned() });
    for address in ["127.0.0.1", "10.0.0.1", "192.168.1.1", "169.254.169.254", "::1", "::ffff:10.0.0.1", "fd00::1"] {
        assert_eq!(look_up(&[], Ok(vec![address])).await, refused, "{address}");
    }
    assert_eq!(look_up(&[], Ok(Vec::new())).await, refused);
    assert_eq!(look_up(&["10.0.0.0/8"], Ok(vec!["10.0.0.1"])).await, Ok(()));
    assert_eq!(look_up(&["hooks.example"], Ok(vec!["10.0.0.1"])).await, Ok(()));
    // A request uses the public address only.
    assert_eq!(look_up(&[], Ok(vec!["10.0.0.1", "93.184.216.34"])).await, Ok(()));
    let unknown = look_up(&[], Err(std::io::ErrorKind::NotFound.into())).await;
    assert!(matches!(unknown, Err(OutgoingError::Unreachable { .. })), "{unknown:?}");
}

#[tokio::test]
async fn http_is_allowed_for_listed_loopback_hosts_only() {
    let lookup: Arc<dyn Lookup> =
        Arc::new(Rebinding { answers: Mutex::new(vec![vec!["10.0.0.1:0".parse().unwrap()]]) });
    let client = client(&["localhost", "127.0.0.1", "10.0.0.0/8", "idp.internal"], lookup);
    for (url, expected) in [
        ("http://127.0.0.1:80/x", Ok(())),
        ("http://localhost/x", Ok(())),
        ("https://10.1.2.3/x", Ok(())),
        ("https://idp.example/x", Ok(())),
        ("http://10.1.2.3/x", Err("must be requested over https")),
        ("http://idp.internal/x", Err("must be requested over https")),
        ("http://idp.example/x", Err("must be requested over https")),
        ("https://127.0.0.2/x", Err("does not list")),
        // Other notations of 127.0.0.2.
        ("https://0x7f000002/x", Err("does not list")),
        ("https://2130706434/x", Err("does not list")),
        ("https://0177.0.0.2/x", Err("does not list")),
        ("https://[::ffff:127.0.0.2]/x", Err("does not list")),
        ("https://[::1]/x", Err("does not list")),
        ("https://169.254.169.254/latest/meta-data", Err("does not list")),
        ("https://0.0.0.0/x", Err("does not list")),
        ("https://user:pass@idp.example/x", Err("a user or a password")),
        ("ftp://idp.example/x", Err("invalid URL")),
        ("file:///etc/passwd", Err("invalid URL")),
        ("gopher://127.0.0.1/", Err("invalid URL")),
        ("idp.example", Err("invalid URL")),
    ] {
        match (client.endpoint(url), expected) {
            (Ok(_), Ok(())) => {}
            (Err(error), Err(words)) => assert!(error.to_string().contains(words), "{url}: {error}"),
            (found, expected) => panic!("{url}: {found:?}, expected {expected:?}"),
        }
    }
    let endpoint = client.endpoint("http://localhost:1/x").unwrap();
    let error = client.get(&endpoint, None).await.unwrap_err();
    assert!(
        matches!(error, OutgoingError::NotAllowed { .. }),
        "localhost resolves to loopback addresses only: {error:?}"
    );
}

/// The certificate of `idp.example`, valid for a hundred years, and its authority.
const AUTHORITY: &[u8] = include_bytes!("../test_only/authority.pem");
const CERTIFICATE: &[u8] = include_bytes!("../test_only/server.pem");
const KEY: &[u8] = include_bytes!("../test_only/server.key.pem");

async fn tls_server() -> SocketAddr {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(CERTIFICATE).map(Result::unwrap).collect();
    let key = rustls::pki_types::PrivateKeyDer::from_pem_slice(KEY).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(chain, key).unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            if let Ok(mut stream) = acceptor.accept(stream).await {
                let mut head = [0; 4_096];
                let _ = stream.read(&mut head).await;
                let _ = stream.write_all(&response("200 OK", "", b"{}")).await;
                let _ = stream.shutdown().await;
            }
        }
    });
    address
}

#[tokio::test]
async fn certificates_of_other_authorities_and_hosts_are_rejected() {
    let address = tls_server().await;
    let lookup = || Arc::new(Rebinding { answers: Mutex::new(vec![vec![SocketAddr::new(address.ip(), 0)]]) });
    let ask = async |host: &str, authority: Option<(&str, &[u8])>| {
        let allow_list = AllowList::parse([host]).unwrap();
        let client = OutgoingClient::with_lookup(allow_list, authority, lookup(), TIMEOUT).unwrap();
        let endpoint = client.endpoint(&format!("https://{host}:{}/keys", address.port())).unwrap();
        client.get(&endpoint, None).await
    };
    let known = Some(("ca.pem", AUTHORITY));
    assert_eq!(ask("idp.example", known).await.unwrap(), b"{}");
    for (host, authority) in [("idp.example", None), ("other.example", known)] {
        let error = ask(host, authority).await.unwrap_err();
        assert!(error.to_string().contains("certificate"), "{host}: {error}");
    }
}

#[test]
fn unreadable_authorities_are_rejected() {
    for text in [&b"not a certificate"[..], b"", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", KEY]
    {
        let error = OutgoingClient::new(AllowList::default(), Some(("ca.pem", text))).err();
        assert!(error.is_some_and(|error| error.to_string().contains("ca.pem")));
    }
}
