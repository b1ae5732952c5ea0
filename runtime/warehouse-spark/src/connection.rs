//! One connection to a server, and the calls of its service.
//!
//! In: an address, then messages. Out: messages, or the [`Failure`] of the call. A broken connection is not reopened,
//! and each later call fails. Otherwise, a session could silently continue on another server. Not here: time limits,
//! which the callers set.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use prost::Message;
use tokio::net::TcpStream;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Request, Status, Streaming};
use tonic_prost::ProstCodec;

use crate::failure::{Failure, unavailable};
use crate::url::Address;

/// The largest size of a server's message, which is also Spark's own limit. Batches usually have 4 MiB.
const MAX_MESSAGE_BYTES: usize = 128 << 20;
/// The number of bytes that a server may send before the client reads them.
const WINDOW_BYTES: u32 = 4 << 20;
/// The interval of keep-alive pings, and the time limit of their answers.
const KEEP_ALIVE: Duration = Duration::from_secs(20);

/// The name of this client in the logs of servers.
pub(crate) const CLIENT_TYPE: &str = concat!("terrane/", env!("CARGO_PKG_VERSION"));

#[derive(Debug, Clone)]
pub(crate) struct Connection {
    channel: Channel,
    address: Arc<Address>,
}

impl Connection {
    /// Opens a connection, with TLS if the address requires it.
    ///
    /// # Errors
    /// `Unavailable` if no server can be reached, or if its certificate is invalid.
    pub(crate) async fn open(address: &Arc<Address>, root: Option<&Certificate>) -> Result<Self, Failure> {
        let failed = |error: tonic::transport::Error| Failure::from(Status::from_error(Box::new(error)));
        let scheme = if address.is_tls { "https" } else { "http" };
        let mut endpoint = Endpoint::from_shared(format!("{scheme}://{}:{}", address.host, address.port))
            .and_then(|endpoint| endpoint.user_agent(CLIENT_TYPE))
            .map_err(failed)?
            .http2_keep_alive_interval(KEEP_ALIVE)
            .keep_alive_timeout(KEEP_ALIVE)
            .keep_alive_while_idle(true)
            .initial_stream_window_size(WINDOW_BYTES)
            .initial_connection_window_size(WINDOW_BYTES);
        if address.is_tls {
            let tls = match root {
                Some(root) => ClientTlsConfig::new().ca_certificate(root.clone()),
                None => ClientTlsConfig::new().with_webpki_roots(),
            };
            endpoint = endpoint.tls_config(tls).map_err(failed)?;
        }
        let channel = connect_once(&endpoint, address).await.map_err(failed)?;
        Ok(Connection { channel, address: Arc::clone(address) })
    }

    /// Calls a method that returns one message.
    ///
    /// # Errors
    /// Returns the server's error, or `Unavailable` if the connection is broken.
    pub(crate) async fn call<Q, R>(&self, method: &'static str, request: Q) -> Result<R, Failure>
    where
        Q: Message + Send + Sync + 'static,
        R: Message + Default + Send + Sync + 'static,
    {
        let mut client = self.client().await?;
        let response = client.unary(self.request(request), path(method), ProstCodec::default()).await;
        Ok(response?.into_inner())
    }

    /// Calls a method that returns a stream of messages.
    ///
    /// # Errors
    /// Returns the same errors as [`call`](Connection::call).
    pub(crate) async fn stream<Q, R>(&self, method: &'static str, request: Q) -> Result<Streaming<R>, Failure>
    where
        Q: Message + Send + Sync + 'static,
        R: Message + Default + Send + Sync + 'static,
    {
        let mut client = self.client().await?;
        let response = client.server_streaming(self.request(request), path(method), ProstCodec::default()).await;
        Ok(response?.into_inner())
    }

    async fn client(&self) -> Result<Grpc<Channel>, Failure> {
        let mut client = Grpc::new(self.channel.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES);
        client.ready().await.map_err(|error| unavailable(error.to_string()))?;
        Ok(client)
    }

    fn request<Q>(&self, message: Q) -> Request<Q> {
        let mut request = Request::new(message);
        for (name, value) in &self.address.headers {
            request.metadata_mut().insert(name.clone(), value.clone());
        }
        request
    }
}

fn path(method: &'static str) -> PathAndQuery {
    PathAndQuery::from_static(method)
}

/// Connects a channel that never reconnects.
async fn connect_once(endpoint: &Endpoint, address: &Address) -> Result<Channel, tonic::transport::Error> {
    let host = address.host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let port = address.port;
    let is_used = AtomicBool::new(false);
    let connector = tower::service_fn(move |_| {
        let connecting = (!is_used.swap(true, Ordering::Relaxed)).then(|| TcpStream::connect((host.clone(), port)));
        async move {
            let closed = || io::Error::new(io::ErrorKind::NotConnected, "the connection is closed");
            let stream = connecting.ok_or_else(closed)?.await?;
            stream.set_nodelay(true)?;
            Ok::<_, io::Error>(TokioIo::new(stream))
        }
    });
    endpoint.connect_with_connector(connector).await
}
