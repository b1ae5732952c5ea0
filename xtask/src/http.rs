//! A minimal HTTP client for a server on this machine.
//!
//! In: a port, a method, a path, a body. Out: the status and the body. Requests use HTTP/1.0, so that a response ends
//! with the connection and has no chunks. Not here: TLS, redirects, other machines.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result};

const LIMIT: Duration = Duration::from_secs(30);

pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) body: String,
}

pub(crate) fn request(port: u16, method: &str, path: &str, body: Option<&str>) -> Result<Response> {
    let mut stream = TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), LIMIT)?;
    stream.set_read_timeout(Some(LIMIT))?;
    stream.set_write_timeout(Some(LIMIT))?;
    stream.write_all(message(port, method, path, body).as_bytes())?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    parse(&text)
}

fn message(port: u16, method: &str, path: &str, body: Option<&str>) -> String {
    let content = body.map_or_else(String::new, |body| {
        format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len())
    });
    format!("{method} {path} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\n{content}\r\n{}", body.unwrap_or_default())
}

fn parse(text: &str) -> Result<Response> {
    let (head, body) = text.split_once("\r\n\r\n").context("a response without an end of its headers")?;
    let status = head.split_whitespace().nth(1).context("a response without a status")?.parse()?;
    Ok(Response { status, body: body.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::{message, parse};

    #[test]
    fn request_states_the_length_of_its_body() {
        let expected =
            "POST /q HTTP/1.0\r\nHost: 127.0.0.1:80\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
        assert_eq!(message(80, "POST", "/q", Some("{}")), expected);
    }

    #[test]
    fn status_and_the_body_are_read() {
        let response = parse("HTTP/1.0 503 Service Unavailable\r\ncontent-length: 2\r\n\r\n{}").unwrap();
        assert_eq!((response.status, response.body.as_str()), (503, "{}"));
        assert!(parse("not HTTP").is_err());
    }
}
