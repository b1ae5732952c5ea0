//! Sends one HTTP request over a socket, without a library.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result};

/// A response with its unparsed head.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    /// Returns the body as JSON.
    ///
    /// # Errors
    /// The body is not JSON.
    pub fn json(&self) -> Result<serde_json::Value> {
        serde_json::from_str(&self.body).with_context(|| self.body.clone())
    }
}

/// Sends a request and reads to the end of the connection.
///
/// # Errors
/// The connection fails, the server does not answer in time, or the answer is not HTTP.
pub fn request(address: SocketAddr, method: &str, path: &str, body: Option<&str>) -> Result<Answer> {
    request_as(address, None, method, path, body)
}

/// Sends a request with a credential.
///
/// # Errors
/// The response is not complete.
pub fn request_as(
    address: SocketAddr,
    bearer: Option<&str>,
    method: &str,
    path: &str,
    body: Option<&str>,
) -> Result<Answer> {
    let authorization = bearer.map(|bearer| format!("Bearer {bearer}"));
    let headers: Vec<(&str, &str)> = authorization.iter().map(|value| ("Authorization", value.as_str())).collect();
    request_with(address, &headers, method, path, body)
}

/// Sends a request with any headers.
///
/// # Errors
/// The response is not complete.
pub fn request_with(
    address: SocketAddr,
    headers: &[(&str, &str)],
    method: &str,
    path: &str,
    body: Option<&str>,
) -> Result<Answer> {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(10))?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    let body = body.unwrap_or_default();
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
         {headers}Connection: close\r\n\r\n{body}"
    )?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let (head, body) = text.split_once("\r\n\r\n").context("an answer without an empty line")?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).context("an answer without a status")?;
    Ok(Answer { status, head: head.to_owned(), body: body.to_owned() })
}

/// Sends a query and returns the whole response, head and body, in the requested format.
///
/// # Errors
/// The connection fails, or the response is not complete in time.
pub fn download(address: SocketAddr, accept: &str, path: &str, body: &str) -> Result<Vec<u8>> {
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(10))?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nAccept: {accept}\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    Ok(bytes)
}
