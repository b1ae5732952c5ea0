//! One connection for many consecutive requests.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

/// A connection to a server. An answer without `content-length` is an error.
#[derive(Debug)]
pub(super) struct PersistentConnection {
    address: SocketAddr,
    stream: BufReader<TcpStream>,
}

impl PersistentConnection {
    pub(super) fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect_timeout(&address, Duration::from_secs(10))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        Ok(PersistentConnection { address, stream: BufReader::new(stream) })
    }

    /// Sends a body and returns the body of the answer.
    pub(super) fn post(&mut self, path: &str, body: &str) -> Result<String> {
        let (address, length) = (self.address, body.len());
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        );
        self.stream.get_mut().write_all(request.as_bytes())?;
        let (mut status, mut length) = (String::new(), None);
        self.stream.read_line(&mut status)?;
        loop {
            let mut line = String::new();
            ensure!(self.stream.read_line(&mut line)? > 0, "the connection ended in the head of an answer");
            match line.trim_end().split_once(':') {
                None => break,
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = Some(value.trim().parse::<usize>()?);
                }
                Some(_) => {}
            }
        }
        let mut body = vec![0; length.context("an answer without `content-length`")?];
        self.stream.read_exact(&mut body)?;
        let body = String::from_utf8(body)?;
        ensure!(status.contains(" 200 "), "{status}{body}");
        Ok(body)
    }
}
