//! Sockets: accepts, limits, times out and closes connections; under TLS if there is a certificate.
//!
//! In: a bound listener and an [`App`]. Out: answers, until the shutdown future resolves. Then the server reports that
//! it is not ready, accepts the connections that wait, and closes the listener; requests in flight finish within a time
//! limit. A handler can upgrade its connection to another protocol; the connection counts until it is closed. HTTP/1.1
//! only: proxies use it, and hyper's detection of HTTP/2 waits for a client's first bytes without a timeout.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{HttpService, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::app::App;
use crate::edge::{Connection, Edge};
use crate::tls::Tls;
use drain::{Drain, DrainToken};
use progress::{ConnectionGuard, Progress};

mod drain;
mod handshake;
mod progress;

/// Bounds on connections.
#[derive(Debug, Clone)]
pub struct ServeSettings {
    pub max_connections: usize,
    /// The timeout for a request's head, and for an idle connection. For the first request it includes the TLS
    /// handshake.
    pub header_timeout: Duration,
    /// The longest time for which a client may stop reading its answer.
    pub write_timeout: Duration,
    /// The time for requests in flight after the shutdown.
    pub shutdown_timeout: Duration,
    /// The TLS configuration; `None` for plain HTTP.
    pub tls: Option<Tls>,
}

impl Default for ServeSettings {
    fn default() -> Self {
        ServeSettings {
            max_connections: 4_096,
            header_timeout: Duration::from_secs(20),
            write_timeout: Duration::from_secs(30),
            shutdown_timeout: Duration::from_secs(30),
            tls: None,
        }
    }
}

/// The number of connections beyond the limit, on which only probes are answered.
const SURPLUS_CONNECTIONS: usize = 32;
const SURPLUS_HEADER_TIMEOUT: Duration = Duration::from_secs(2);
/// The shortest timeout for a request's head, which applies after a slow handshake.
const MIN_HEADER_TIMEOUT: Duration = Duration::from_millis(100);
/// The largest size of a request's head, and the size of its buffer, in bytes.
const MAX_HEAD_BYTES: usize = 64 * 1_024;
/// The pause after an accept that failed because a resource was missing, like file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// The time without a new connection after which a draining server closes its listener.
const QUIET: Duration = Duration::from_millis(100);
/// The longest time for which a draining server accepts connections.
const LAST_CONNECTIONS: Duration = Duration::from_secs(1);

/// The reason why the server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("{address} is in use by another program; choose another port")]
    PortInUse { address: SocketAddr },
    #[error("this user may not listen on {address}; ports from 1024 on need no privileges")]
    NotAllowed { address: SocketAddr },
    #[error("{address} is not an address of this machine")]
    NotLocal { address: SocketAddr },
    #[error("cannot listen on {address}: {error}")]
    Bind { address: SocketAddr, error: io::Error },
}

/// Binds the address. Callers do this before slow work, so that a conflict is reported at once.
///
/// # Errors
/// [`ServeError`].
pub async fn bind(address: SocketAddr) -> Result<TcpListener, ServeError> {
    TcpListener::bind(address).await.map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => ServeError::PortInUse { address },
        io::ErrorKind::PermissionDenied => ServeError::NotAllowed { address },
        io::ErrorKind::AddrNotAvailable => ServeError::NotLocal { address },
        _ => ServeError::Bind { address, error },
    })
}

/// Serves until `shutdown` resolves and the requests in flight have finished or their time limit has passed. Returns
/// whether all of them finished.
pub async fn serve(
    listener: TcpListener,
    app: App,
    settings: ServeSettings,
    shutdown: impl Future<Output = ()>,
) -> bool {
    let server = Server::new(Edge::new(app.clone()), settings);
    let renewal = server.settings.tls.clone().map(|tls| tokio::spawn(tls.watch()));
    server.accept(&listener, shutdown).await;
    app.start_draining();
    server.accept_last(listener).await;
    if let Some(renewal) = renewal {
        renewal.abort();
    }
    let Server { drain, settings, .. } = server;
    tracing::info!(event = "server_draining", connections = drain.connections());
    tokio::time::timeout(settings.shutdown_timeout, drain.finish()).await.is_ok()
}

/// The number of connections for scrapes.
const MAX_METRICS_CONNECTIONS: usize = 16;

/// Answers requests for metrics on a separate address, until the future is dropped.
pub async fn serve_metrics(listener: TcpListener, app: App) {
    let settings = ServeSettings { max_connections: MAX_METRICS_CONNECTIONS, ..ServeSettings::default() };
    Server::new(Edge::of_metrics(app), settings).accept(&listener, std::future::pending()).await;
}

/// The place of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Regular,
    /// A connection beyond the limit, on which only probes are answered.
    Surplus,
}

struct Server {
    edge: Edge,
    regular: Arc<Semaphore>,
    surplus: Arc<Semaphore>,
    drain: Drain,
    settings: ServeSettings,
}

impl Server {
    fn new(edge: Edge, settings: ServeSettings) -> Self {
        Server {
            edge,
            regular: Arc::new(Semaphore::new(settings.max_connections.max(1))),
            surplus: Arc::new(Semaphore::new(SURPLUS_CONNECTIONS)),
            drain: Drain::new(),
            settings,
        }
    }

    async fn accept(&self, listener: &TcpListener, shutdown: impl Future<Output = ()>) {
        tokio::pin!(shutdown);
        loop {
            tokio::select! {
                biased;
                () = &mut shutdown => return,
                accepted = listener.accept() => match accepted {
                    Ok((stream, peer)) => self.take(stream, peer),
                    Err(error) if is_of_one_connection(&error) => {}
                    Err(error) => {
                        tracing::error!(event = "accept_failed", error_message = %error);
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
            }
        }
    }

    /// Accepts connections until none has arrived for [`QUIET`], at most for [`LAST_CONNECTIONS`], and closes the
    /// listener. Closing it resets the connections that wait to be accepted, so a balancer first gets time to notice
    /// that `/health/ready` fails, and to open no further connections.
    async fn accept_last(&self, listener: TcpListener) {
        let accepting = async {
            while let Ok(Ok((stream, peer))) = tokio::time::timeout(QUIET, listener.accept()).await {
                self.take(stream, peer);
            }
        };
        let _ = tokio::time::timeout(LAST_CONNECTIONS, accepting).await;
        // Clients without a balancer may still connect. Nothing is awaited between the last accept and the close.
        let Ok(listener) = listener.into_std() else { return };
        while let Ok((stream, peer)) = listener.accept() {
            if let Ok(stream) = stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream)) {
                self.take(stream, peer);
            }
        }
    }

    /// Starts a task for the connection, or closes it if even the surplus is taken.
    fn take(&self, stream: TcpStream, peer: SocketAddr) {
        if let Ok(permit) = self.regular.clone().try_acquire_owned() {
            self.start(stream, peer, permit, Place::Regular);
        } else if let Ok(permit) = self.surplus.clone().try_acquire_owned() {
            self.start(stream, peer, permit, Place::Surplus);
        } else {
            tracing::warn!(event = "connection_refused", client_ip = %peer.ip(), reason = "every connection is taken");
        }
    }

    fn start(&self, stream: TcpStream, peer: SocketAddr, permit: OwnedSemaphorePermit, place: Place) {
        // Without this option, small answers wait for the client's acknowledgement. If it cannot be set, they are only
        // slower.
        let _ = stream.set_nodelay(true);
        let tls = self.settings.tls.as_ref().map(Tls::config);
        let header_timeout = match place {
            Place::Regular => self.settings.header_timeout,
            Place::Surplus => SURPLUS_HEADER_TIMEOUT,
        };
        let write_timeout = self.settings.write_timeout;
        let conversation = Conversation {
            edge: self.edge.clone(),
            connection: Connection {
                peer: Some(peer.ip()),
                is_surplus: place == Place::Surplus,
                is_secure: tls.is_some(),
            },
            header_timeout,
            drain: self.drain.token(),
        };
        let guard = ConnectionGuard::new(permit, self.drain.token());
        tokio::spawn(async move {
            let ended = match tls {
                None => conversation.hold(Progress::new(stream, write_timeout, guard)).await,
                Some(config) => conversation.hold_secure(stream, config, write_timeout, guard).await,
            };
            // The client or a timeout ended the connection, which concerns only the connection's own request.
            if let Err(error) = ended {
                tracing::debug!(event = "connection_ended", client_ip = %peer.ip(), error_message = %error);
            }
        });
    }
}

/// The requests of one connection.
struct Conversation {
    edge: Edge,
    connection: Connection,
    header_timeout: Duration,
    drain: DrainToken,
}

impl Conversation {
    async fn hold_secure(
        mut self,
        stream: TcpStream,
        config: Arc<rustls::ServerConfig>,
        write_timeout: Duration,
        guard: ConnectionGuard,
    ) -> Result<(), EndedEarly> {
        let clock = self.edge.app().services.clock.clone();
        let began = clock.elapsed();
        let stream = handshake::secure(stream, config, self.header_timeout, write_timeout, guard).await?;
        let spent = clock.elapsed().saturating_sub(began);
        self.header_timeout = self.header_timeout.saturating_sub(spent).max(MIN_HEADER_TIMEOUT);
        self.hold(stream).await
    }

    async fn hold<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(self, stream: S) -> Result<(), EndedEarly> {
        let Conversation { edge, connection, header_timeout, drain } = self;
        let service = service_fn(move |request: hyper::Request<Incoming>| {
            let edge = edge.clone();
            async move { Ok::<_, Infallible>(edge.call(connection, request.map(Body::new)).await) }
        });
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(header_timeout)
            .max_buf_size(MAX_HEAD_BYTES)
            .keep_alive(!connection.is_surplus);
        Ok(converse(&http, stream, service, drain).await?)
    }
}

/// Answers the requests of one connection until it is closed or upgraded, or the server stops.
async fn converse<S, F, B>(
    http: &http1::Builder,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    service: S,
    mut drain: DrainToken,
) -> hyper::Result<()>
where
    S: HttpService<Incoming, ResBody = B, Error = Infallible, Future = F>,
    F: Future<Output = Result<hyper::Response<B>, Infallible>>,
    B: HttpBody + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service).with_upgrades());
    tokio::select! {
        ended = connection.as_mut() => return ended,
        () = drain.signaled() => connection.as_mut().graceful_shutdown(),
    }
    connection.await
}

/// The reason why a connection ended early.
#[derive(Debug, thiserror::Error)]
enum EndedEarly {
    #[error(transparent)]
    Http(#[from] hyper::Error),
    #[error(transparent)]
    Handshake(#[from] io::Error),
}

/// Returns whether an error of `accept` concerns only one connection, because its client has gone.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;
    use axum::http::header::{CONNECTION, UPGRADE};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// Upgrades the connection, and sends back what it reads.
    async fn echo(request: hyper::Request<Incoming>) -> Result<hyper::Response<Body>, Infallible> {
        let upgrade = hyper::upgrade::on(request);
        tokio::spawn(async move {
            let stream = upgrade.await.expect("an upgraded connection");
            let (mut reader, mut writer) = tokio::io::split(TokioIo::new(stream));
            tokio::io::copy(&mut reader, &mut writer).await.expect("an echo");
        });
        let response = hyper::Response::builder().status(StatusCode::SWITCHING_PROTOCOLS);
        Ok(response.header(UPGRADE, "echo").header(CONNECTION, "upgrade").body(Body::empty()).expect("a response"))
    }

    #[tokio::test]
    async fn upgraded_connection_keeps_its_place_until_it_is_closed() {
        let (drain, places) = (Drain::new(), Arc::new(Semaphore::new(1)));
        let guard = ConnectionGuard::new(places.clone().acquire_owned().await.expect("a place"), drain.token());
        let (mut client, socket) = tokio::io::duplex(1_024);
        let stream = Progress::new(socket, Duration::from_secs(1), guard);
        let http = http1::Builder::new();
        let served = converse(&http, stream, service_fn(echo), drain.token());
        let request = b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n";
        let (ended, ()) = tokio::join!(served, async { client.write_all(request).await.expect("a request") });
        ended.expect("a connection that was upgraded");
        client.write_all(b"hello").await.expect("bytes after the upgrade");
        let mut answer = Vec::new();
        while !answer.ends_with(b"hello") {
            assert_ne!(client.read_buf(&mut answer).await.expect("an answer"), 0);
        }
        assert!(answer.starts_with(b"HTTP/1.1 101"));
        assert_eq!(places.available_permits(), 0);
        drop(client);
        drain.finish().await;
        assert_eq!(places.available_permits(), 1);
    }
}
