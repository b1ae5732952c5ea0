//! A minimal client of `graphql-transport-ws` over a blocking socket.
//!
//! In: messages. Out: the server's messages, each as JSON. The client masks frames with zeros, so their payload is sent
//! unchanged. Not here: fragments and compression, which this server does not send.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value as Json, json};

const TEXT: u8 = 1;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// A socket after an accepted handshake.
#[derive(Debug)]
pub struct GraphQlSocket(TcpStream);

impl GraphQlSocket {
    /// Opens a socket.
    ///
    /// # Errors
    /// The server refuses the handshake, or does not answer.
    pub fn open(address: SocketAddr) -> Result<Self> {
        let (status, socket) = GraphQlSocket::handshake(address, &[])?;
        ensure!(status == 101, "the handshake was answered with {status}");
        Ok(socket)
    }

    /// Sends a handshake with headers, and returns the status of the answer.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn handshake(address: SocketAddr, headers: &[(&str, &str)]) -> Result<(u16, Self)> {
        let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(10))?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        write!(
            stream,
            "GET /graphql HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
             Sec-WebSocket-Protocol: graphql-transport-ws\r\n{headers}\r\n"
        )?;
        let mut head = Vec::new();
        // The head is read byte by byte, so that no frame after it is lost.
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte)?;
            head.extend_from_slice(&byte);
        }
        let head = String::from_utf8(head)?;
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        Ok((status.context("an answer without a status")?, GraphQlSocket(stream)))
    }

    /// Opens a socket and a session with an API key.
    ///
    /// # Errors
    /// The server refuses the key.
    pub fn acknowledged(address: SocketAddr, key: &str) -> Result<Self> {
        GraphQlSocket::opened(address, &json!({"authorization": format!("Bearer {key}")}))
    }

    /// Opens a socket and a session with a payload.
    ///
    /// # Errors
    /// The server refuses the session.
    pub fn opened(address: SocketAddr, payload: &Json) -> Result<Self> {
        let mut socket = GraphQlSocket::open(address)?;
        socket.send(&json!({"type": "connection_init", "payload": payload}))?;
        let answer = socket.receive()?;
        ensure!(answer == json!({"type": "connection_ack"}), "{answer}");
        Ok(socket)
    }

    /// Sends a message.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn send(&mut self, message: &Json) -> Result<()> {
        self.send_frame(TEXT, message.to_string().as_bytes())
    }

    /// Starts an operation.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn subscribe(&mut self, id: &str, query: &str) -> Result<()> {
        self.send(&json!({"type": "subscribe", "id": id, "payload": {"query": query}}))
    }

    /// Returns the next message, or `{"close": code}`.
    ///
    /// # Errors
    /// The connection ends without a close frame.
    pub fn receive(&mut self) -> Result<Json> {
        loop {
            let mut head = [0; 2];
            self.0.read_exact(&mut head)?;
            let length = match head[1] & 0x7f {
                126 => self.integer::<2>()?,
                127 => self.integer::<8>()?,
                short => u64::from(short),
            };
            let mut payload = vec![0; usize::try_from(length)?];
            self.0.read_exact(&mut payload)?;
            match (head[0] & 0x0f, payload.as_slice()) {
                (TEXT, text) => return Ok(serde_json::from_slice(text)?),
                (CLOSE, [high, low, ..]) => return Ok(json!({"close": u16::from_be_bytes([*high, *low])})),
                (PING, payload) => self.send_frame(PONG, payload)?,
                (PONG, _) => {}
                (opcode, _) => bail!("a frame of kind {opcode}"),
            }
        }
    }

    fn integer<const BYTES: usize>(&mut self) -> Result<u64> {
        let mut bytes = [0; BYTES];
        self.0.read_exact(&mut bytes)?;
        Ok(bytes.iter().fold(0, |number, byte| (number << 8) | u64::from(*byte)))
    }

    fn send_frame(&mut self, opcode: u8, payload: &[u8]) -> Result<()> {
        let mut frame = vec![0x80 | opcode];
        match payload.len() {
            length @ 0..126 => frame.push(0x80 | length as u8),
            length @ 126..65_536 => {
                frame.push(0x80 | 126);
                frame.extend_from_slice(&(length as u16).to_be_bytes());
            }
            length => {
                frame.push(0x80 | 127);
                frame.extend_from_slice(&(length as u64).to_be_bytes());
            }
        }
        frame.extend_from_slice(&[0; 4]);
        frame.extend_from_slice(payload);
        Ok(self.0.write_all(&frame)?)
    }
}
