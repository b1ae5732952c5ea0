//! The TLS handshake of a connection.
//!
//! In: a socket. Out: the stream under TLS, within the time for a head. A client that speaks plain HTTP gets an error;
//! its request is not read.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::progress::{ConnectionGuard, Progress};

const PLAIN_BODY: &str =
    r#"{"error":{"code":"INVALID_QUERY","message":"this port speaks HTTPS; write https:// instead of http://"}}"#;

/// The largest number of bytes of a plain request that are discarded.
const MAX_PLAIN_BYTES: u64 = 64 * 1_024;

pub(super) async fn secure(
    stream: TcpStream,
    config: Arc<ServerConfig>,
    timeout: Duration,
    write_timeout: Duration,
    guard: ConnectionGuard,
) -> io::Result<TlsStream<Progress<TcpStream>>> {
    let shake = async {
        let mut first = [0];
        // An HTTP method begins with an upper-case letter, a TLS handshake with the byte 22.
        if stream.peek(&mut first).await? == 1 && first[0].is_ascii_uppercase() {
            refuse_plain(stream).await?;
            return Err(io::Error::new(io::ErrorKind::InvalidData, "plain HTTP where TLS is spoken"));
        }
        TlsAcceptor::from(config).accept(Progress::new(stream, write_timeout, guard)).await
    };
    tokio::time::timeout(timeout, shake).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// Answers a plain request. The rest of the request is read and discarded, because a client may lose the answer if the
/// connection is closed with unread bytes.
async fn refuse_plain(mut stream: TcpStream) -> io::Result<()> {
    let length = PLAIN_BODY.len();
    let head = "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close";
    stream.write_all(format!("{head}\r\ncontent-length: {length}\r\n\r\n{PLAIN_BODY}").as_bytes()).await?;
    stream.shutdown().await?;
    tokio::io::copy(&mut stream.take(MAX_PLAIN_BYTES), &mut tokio::io::sink()).await?;
    Ok(())
}
