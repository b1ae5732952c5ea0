//! Sockets: accept, bound, time out, stop; under TLS where there is a certificate.
//!
//! In: a bound listener and an [`App`]. Out: answers, until the shutdown future resolves; then the
//! server says it isn't ready, takes no more connections, and requests in flight finish within a
//! bound. HTTP/1.1 only: a proxy in front speaks it, and hyper's detection of HTTP/2 waits for a
//! client's first bytes without a timeout.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::app::App;
use crate::edge::{Connection, Edge};
use crate::tls::Tls;

mod handshake;
mod progress;

/// Bounds on connections.
#[derive(Debug, Clone)]
pub struct ServeSettings {
    pub max_connections: usize,
    /// How long a request's head may take, the first one's with its handshake, and a kept connection may
    /// be idle.
    pub header_timeout: Duration,
    /// How long a client may take no bytes of its answer.
    pub write_timeout: Duration,
    /// How long requests in flight may go on after the shutdown.
    pub shutdown_timeout: Duration,
    /// `None`: plain HTTP.
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

/// Connections beyond the bound that are still taken, so that probes are answered.
const SURPLUS_CONNECTIONS: usize = 32;
const SURPLUS_HEADER_TIMEOUT: Duration = Duration::from_secs(2);
/// What a slow handshake leaves of the time for a head.
const MIN_HEADER_TIMEOUT: Duration = Duration::from_millis(100);
/// The head of a request, and what is buffered of it.
const MAX_HEAD_BYTES: usize = 64 * 1_024;
/// After an accept that failed for want of something, like file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Why the server can't be started.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("{address} is in use by another program; choose another port")]
    PortInUse { address: SocketAddr },
    #[error("this user may not listen on {address}; ports from 1024 on need no rights")]
    NotAllowed { address: SocketAddr },
    #[error("{address} is no address of this machine")]
    NotLocal { address: SocketAddr },
    #[error("cannot listen on {address}: {error}")]
    Bind { address: SocketAddr, error: io::Error },
}

/// Takes the address, before anything slow is done.
///
/// # Errors
/// [`ServeError`] says why the address can't be had.
pub async fn bind(address: SocketAddr) -> Result<TcpListener, ServeError> {
    TcpListener::bind(address).await.map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => ServeError::PortInUse { address },
        io::ErrorKind::PermissionDenied => ServeError::NotAllowed { address },
        io::ErrorKind::AddrNotAvailable => ServeError::NotLocal { address },
        _ => ServeError::Bind { address, error },
    })
}

/// Serves until `shutdown` resolves and what is in flight is finished or out of time. True: all of it
/// was finished.
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
    drop(listener);
    if let Some(renewal) = renewal {
        renewal.abort();
    }
    let Server { graceful, settings, .. } = server;
    tracing::info!(event = "server_draining", connections = graceful.count());
    tokio::time::timeout(settings.shutdown_timeout, graceful.shutdown()).await.is_ok()
}

/// Few ask for metrics.
const MAX_METRICS_CONNECTIONS: usize = 16;

/// Answers scrapes on an address of their own, for as long as it is asked to run.
pub async fn serve_metrics(listener: TcpListener, app: App) {
    let settings = ServeSettings { max_connections: MAX_METRICS_CONNECTIONS, ..ServeSettings::default() };
    Server::new(Edge::of_metrics(app), settings).accept(&listener, std::future::pending()).await;
}

struct Server {
    edge: Edge,
    regular: Arc<Semaphore>,
    surplus: Arc<Semaphore>,
    graceful: GracefulShutdown,
    settings: ServeSettings,
}

impl Server {
    fn new(edge: Edge, settings: ServeSettings) -> Self {
        Server {
            edge,
            regular: Arc::new(Semaphore::new(settings.max_connections.max(1))),
            surplus: Arc::new(Semaphore::new(SURPLUS_CONNECTIONS)),
            graceful: GracefulShutdown::new(),
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

    /// Starts a task for the connection, or closes it where even the surplus is taken.
    fn take(&self, stream: TcpStream, peer: SocketAddr) {
        if let Ok(permit) = self.regular.clone().try_acquire_owned() {
            self.start(stream, peer, permit, false);
        } else if let Ok(permit) = self.surplus.clone().try_acquire_owned() {
            self.start(stream, peer, permit, true);
        } else {
            tracing::warn!(event = "connection_refused", client_ip = %peer.ip(), reason = "every connection is taken");
        }
    }

    fn start(&self, stream: TcpStream, peer: SocketAddr, permit: OwnedSemaphorePermit, is_surplus: bool) {
        // Without it small answers wait for the client's acknowledgement; failing costs only time.
        let _ = stream.set_nodelay(true);
        let tls = self.settings.tls.as_ref().map(Tls::config);
        let header_timeout = if is_surplus { SURPLUS_HEADER_TIMEOUT } else { self.settings.header_timeout };
        let write_timeout = self.settings.write_timeout;
        let conversation = Conversation {
            edge: self.edge.clone(),
            connection: Connection { peer: Some(peer.ip()), is_surplus, is_secure: tls.is_some() },
            header_timeout,
            // Counted from now on, so that a shutdown waits for it.
            watcher: self.graceful.watcher(),
        };
        tokio::spawn(async move {
            let ended = match tls {
                None => conversation.hold(progress::Progress::new(stream, write_timeout)).await,
                Some(config) => conversation.hold_secure(stream, config, write_timeout).await,
            };
            // What ends a connection early is the client's doing or a timeout, and was its own request's.
            if let Err(error) = ended {
                tracing::debug!(event = "connection_ended", client_ip = %peer.ip(), error_message = %error);
            }
            drop(permit);
        });
    }
}

/// One connection's requests.
struct Conversation {
    edge: Edge,
    connection: Connection,
    header_timeout: Duration,
    watcher: Watcher,
}

impl Conversation {
    async fn hold_secure(
        mut self,
        stream: TcpStream,
        config: Arc<rustls::ServerConfig>,
        write_timeout: Duration,
    ) -> Result<(), EndedEarly> {
        let clock = self.edge.app().ports.clock.clone();
        let began = clock.elapsed();
        let stream = handshake::secure(stream, config, self.header_timeout, write_timeout).await?;
        let spent = clock.elapsed().saturating_sub(began);
        self.header_timeout = self.header_timeout.saturating_sub(spent).max(MIN_HEADER_TIMEOUT);
        self.hold(stream).await
    }

    async fn hold<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(self, stream: S) -> Result<(), EndedEarly> {
        let Conversation { edge, connection, header_timeout, watcher } = self;
        let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
            let edge = edge.clone();
            async move { Ok::<_, std::convert::Infallible>(edge.call(connection, request.map(Body::new)).await) }
        });
        let held = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(header_timeout)
            .max_buf_size(MAX_HEAD_BYTES)
            .keep_alive(!connection.is_surplus)
            .serve_connection(TokioIo::new(stream), service);
        Ok(watcher.watch(held).await?)
    }
}

/// Why a connection ended before its client was done.
#[derive(Debug, thiserror::Error)]
enum EndedEarly {
    #[error(transparent)]
    Http(#[from] hyper::Error),
    #[error(transparent)]
    Handshake(#[from] io::Error),
}

/// The client went away between its arrival and our taking it.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
