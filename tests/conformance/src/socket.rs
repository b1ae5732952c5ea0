//! Runs the server on a real socket of the loopback interface, and sends it simple requests.

use std::net::SocketAddr;

use terrane_server::{App, ServeSettings, bind, serve};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::case::World;

pub const PROBE: &[u8] = b"GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n";

/// A running server. After `stop`, `task` returns whether all requests were finished.
#[derive(Debug)]
pub struct Server {
    pub address: SocketAddr,
    pub stop: oneshot::Sender<()>,
    pub task: JoinHandle<bool>,
}

/// Starts a server for a world.
///
/// # Panics
/// No port is free.
pub async fn start(world: &World, settings: ServeSettings) -> Server {
    start_app(world.edge().app().clone(), settings).await
}

/// Starts a server for an application.
///
/// # Panics
/// No port is free.
pub async fn start_app(app: App, settings: ServeSettings) -> Server {
    let listener = bind(([127, 0, 0, 1], 0).into()).await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let (stop, stopped) = oneshot::channel();
    let task = tokio::spawn(serve(listener, app, settings, async {
        let _ = stopped.await;
    }));
    Server { address, stop, task }
}

/// Connects to a server and sends bytes.
///
/// # Panics
/// The server accepts no connection.
pub async fn send(address: SocketAddr, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.write_all(bytes).await.expect("a server that reads");
    stream
}

/// Reads the head of the next answer, with the bytes that arrived together with it.
///
/// # Panics
/// The connection breaks.
pub async fn receive(stream: &mut TcpStream) -> String {
    let mut bytes = vec![0; 4_096];
    let count = stream.read(&mut bytes).await.expect("an answer or an end");
    String::from_utf8_lossy(&bytes[..count]).into_owned()
}
