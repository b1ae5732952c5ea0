//! An HTTP client that keeps its connection, sends one request at a time and returns the bytes of each response.
//!
//! In: an address and requests. Out: status, headers and body. Not here: redirects, compression, TLS.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::caller::Caller;

/// The time limit of a request, longer than any answer takes on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(90);
const MAX_BODY: usize = 64 * 1024 * 1024;
/// The correlation id of all requests. It is constant, because answers that contain it must be equal on both servers.
const CORRELATION_ID: &str = "attack-0000000000000000";

/// A request of one of the callers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    pub caller: Caller,
    pub method: String,
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accept: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
}

impl Request {
    pub fn get(caller: Caller, path: &str) -> Self {
        Request { caller, method: "GET".to_owned(), path: path.to_owned(), accept: None, body: None }
    }

    pub fn post(caller: Caller, path: &str, body: String) -> Self {
        Request { caller, method: "POST".to_owned(), path: path.to_owned(), accept: None, body: Some(body) }
    }
}

/// An answer as a client reads it. Header names are in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// A connection to one server.
#[derive(Debug)]
pub struct Client {
    address: SocketAddr,
    connection: Option<BufReader<TcpStream>>,
}

impl Client {
    pub fn new(address: SocketAddr) -> Self {
        Client { address, connection: None }
    }

    /// Writes a request. [`Client::receive`] reads its answer.
    ///
    /// # Errors
    /// The server does not accept the request.
    pub fn send(&mut self, request: &Request) -> Result<()> {
        let text = wire_text(self.address, request);
        if let Some(connection) = &mut self.connection
            && !is_closed(connection)
            && connection.get_mut().write_all(text.as_bytes()).is_ok()
        {
            return Ok(());
        }
        let stream = TcpStream::connect_timeout(&self.address, TIMEOUT)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_nodelay(true)?;
        let connection = self.connection.insert(BufReader::new(stream));
        Ok(connection.get_mut().write_all(text.as_bytes())?)
    }

    /// Reads the answer to the last request.
    ///
    /// # Errors
    /// The connection breaks, or the received data is not HTTP.
    pub fn receive(&mut self) -> Result<Answer> {
        let mut connection = self.connection.take().context("no request was sent")?;
        let answer = read_answer(&mut connection)?;
        if answer.header("connection") != Some("close") {
            self.connection = Some(connection);
        }
        Ok(answer)
    }
}

fn wire_text(address: SocketAddr, request: &Request) -> String {
    let Request { caller, method, path, accept, body } = request;
    let accept = accept.as_deref().map(|accept| format!("Accept: {accept}\r\n")).unwrap_or_default();
    let body = body.as_deref().unwrap_or_default();
    let content = if body.is_empty() { "" } else { "Content-Type: application/json\r\n" };
    // `Host` has no port. The servers have different ports, so the harness itself would cause a difference.
    let host = address.ip();
    format!(
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {}\r\nX-Correlation-ID: {CORRELATION_ID}\r\n\
         {accept}{content}Content-Length: {}\r\n\r\n{body}",
        caller.key(),
        body.len()
    )
}

/// Returns whether the server ended an idle connection.
fn is_closed(connection: &mut BufReader<TcpStream>) -> bool {
    let stream = connection.get_ref();
    if stream.set_nonblocking(true).is_err() {
        return true;
    }
    let is_open = matches!(stream.peek(&mut [0]), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock);
    stream.set_nonblocking(false).is_err() || !is_open
}

fn read_answer(connection: &mut BufReader<TcpStream>) -> Result<Answer> {
    let first = line(connection)?;
    let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.with_context(|| format!("not a status line: {first}"))?;
    let mut headers = Vec::new();
    loop {
        let header = line(connection)?;
        if header.is_empty() {
            break;
        }
        let (name, value) = header.split_once(':').context("a header without a colon")?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut answer = Answer { status, headers, body: Vec::new() };
    answer.body = match (answer.header("transfer-encoding"), answer.header("content-length")) {
        (Some("chunked"), _) => chunks(connection)?,
        (_, Some(length)) => exactly(connection, length.parse()?)?,
        _ => Vec::new(),
    };
    Ok(answer)
}

fn chunks(connection: &mut BufReader<TcpStream>) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let length = usize::from_str_radix(line(connection)?.trim(), 16)?;
        ensure!(body.len() + length <= MAX_BODY, "the body is larger than {MAX_BODY} bytes");
        body.extend(exactly(connection, length)?);
        line(connection)?;
        if length == 0 {
            return Ok(body);
        }
    }
}

fn exactly(connection: &mut BufReader<TcpStream>, length: usize) -> Result<Vec<u8>> {
    ensure!(length <= MAX_BODY, "the body is larger than {MAX_BODY} bytes");
    let mut bytes = vec![0; length];
    connection.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn line(connection: &mut BufReader<TcpStream>) -> Result<String> {
    let mut line = String::new();
    ensure!(connection.read_line(&mut line)? > 0, "the connection ended");
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

/// Encodes a string as part of a query string.
pub fn percent_encoded(text: &str) -> String {
    text.bytes().fold(String::with_capacity(text.len()), |mut encoded, byte| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => encoded.push(char::from(byte)),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
        encoded
    })
}
