//! A fake identity provider on a real socket of this machine. A test sets its answers, which may be invalid.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey};
use serde_json::{Value as Json, json};
use terrane_app::ports::clock::Clock;
use terrane_identity::{RefreshSettings, RemoteKeys};
use terrane_outgoing::{AllowList, Endpoint, OutgoingClient};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// The provider, with its answers by path. A path without an answer has the status 500.
#[derive(Clone)]
pub struct ProviderServer {
    pub address: SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    answers: BTreeMap<String, (u16, String)>,
    /// The received requests, each with head and body.
    asked: Vec<String>,
}

impl ProviderServer {
    /// Starts the provider on a free port.
    ///
    /// # Panics
    /// No port is free.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let server = ProviderServer { address, state: Arc::default() };
        let answering = server.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let answering = answering.clone();
                tokio::spawn(async move { answering.serve(stream).await });
            }
        });
        server
    }

    async fn serve(&self, mut stream: TcpStream) {
        let request = read(&mut stream).await;
        let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
        let (status, body) = {
            let mut state = self.state();
            state.asked.push(request);
            state.answers.get(&path).cloned().unwrap_or((500, String::new()))
        };
        let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n", body.len());
        let _ = stream.write_all((head + &body).as_bytes()).await;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the answer to all further requests for a path.
    pub fn answer(&self, path: &str, status: u16, body: &Json) {
        self.state().answers.insert(path.to_owned(), (status, body.to_string()));
    }

    /// Removes the answer for a path, so that further requests fail.
    pub fn fail(&self, path: &str) {
        self.state().answers.remove(path);
    }

    /// Returns the requests that were received for a path.
    pub fn asked(&self, path: &str) -> Vec<String> {
        let is_it = |request: &&String| request.split(' ').nth(1) == Some(path);
        self.state().asked.iter().filter(is_it).cloned().collect()
    }

    /// Returns a client that may send requests to the provider.
    ///
    /// # Panics
    /// The client cannot be created.
    pub fn outgoing(&self) -> OutgoingClient {
        OutgoingClient::new(AllowList::parse(["127.0.0.1"]).expect("an address"), None).expect("TLS")
    }

    /// Returns the endpoint of a path.
    ///
    /// # Panics
    /// The path does not form a URL.
    pub fn endpoint(&self, path: &str) -> Endpoint {
        self.outgoing().endpoint(&format!("http://{}{path}", self.address)).expect("a URL")
    }

    /// Returns the remote keys that the provider publishes at `/keys`.
    pub fn keys(&self, clock: Arc<SteppedClock>) -> RemoteKeys {
        RemoteKeys::new(self.outgoing(), self.endpoint("/keys"), clock, RefreshSettings::default())
    }
}

/// Reads a request: its head, and as much of the body as the head declares.
async fn read(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut piece = [0; 4_096];
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length =
                head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0_usize) {
                return text.into_owned();
            }
        }
        match stream.read(&mut piece).await {
            Ok(read) if read > 0 => bytes.extend_from_slice(&piece[..read]),
            _ => return String::from_utf8_lossy(&bytes).into_owned(),
        }
    }
}

/// A clock whose time is always noon of 14 February 2024. `elapsed` advances only if the test steps it.
#[derive(Default)]
pub struct SteppedClock(AtomicU64);

impl SteppedClock {
    pub fn step(&self, seconds: u64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }
}

impl Clock for SteppedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(1_707_912_000).expect("a time")
    }

    fn elapsed(&self) -> Duration {
        Duration::from_secs(self.0.load(Ordering::SeqCst))
    }
}

/// Returns the public half of an RSA key, as a provider publishes it.
///
/// # Panics
/// The key is not an RSA key.
pub fn public_jwk(private_pem: &[u8], kid: &str) -> Json {
    let key = EncodingKey::from_rsa_pem(private_pem).expect("an RSA key");
    let jwk = Jwk::from_encoding_key(&key, Algorithm::RS256).expect("a public key");
    let mut json = serde_json::to_value(jwk).expect("JSON");
    json["kid"] = json!(kid);
    json["use"] = json!("sig");
    json
}
