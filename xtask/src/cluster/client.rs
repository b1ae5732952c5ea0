//! An HTTP/1.1 client with connections that stay open, for the load.
//!
//! In: a port, a key, requests. Out: status and body. If a reused connection closes before the first byte of the
//! response, the client sends an idempotent request again on a new connection (RFC 9112, section 9.3.1). Not here:
//! retries of anything else, TLS.

use std::io::{self, BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

const CONNECT_LIMIT: Duration = Duration::from_secs(5);
const READ_LIMIT: Duration = Duration::from_secs(60);

/// The number of requests that one connection serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reuse {
    Never,
    Always,
}

pub(super) struct Client {
    port: u16,
    key: String,
    reuse: Reuse,
    stream: Option<BufReader<TcpStream>>,
    /// The number of requests that were sent again, because their reused connection was closed.
    pub(super) resent: u64,
}

pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: String,
}

impl Answer {
    /// Returns the body as JSON, or null.
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }
}

pub(super) struct Request<'a> {
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    /// Further lines of the head, each with its line end.
    pub(super) head: &'a str,
    pub(super) body: &'a str,
}

impl Client {
    pub(super) fn new(port: u16, key: &str, reuse: Reuse) -> Self {
        Client { port, key: key.to_owned(), reuse, stream: None, resent: 0 }
    }

    pub(super) fn get(&mut self, path: &str) -> io::Result<Answer> {
        self.send(&Request { method: "GET", path, head: "", body: "" })
    }

    pub(super) fn post(&mut self, path: &str, body: &Value) -> io::Result<Answer> {
        self.send(&Request { method: "POST", path, head: "", body: &body.to_string() })
    }

    pub(super) fn send(&mut self, request: &Request<'_>) -> io::Result<Answer> {
        if let Some(stream) = self.stream.take() {
            match self.exchange(stream, request) {
                Err(Failure::BeforeFirstByte(_)) => self.resent += 1,
                other => return other.map_err(Failure::into_error),
            }
        }
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let stream = TcpStream::connect_timeout(&address, CONNECT_LIMIT)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(READ_LIMIT))?;
        self.exchange(BufReader::new(stream), request).map_err(Failure::into_error)
    }

    fn exchange(&mut self, mut stream: BufReader<TcpStream>, request: &Request<'_>) -> Result<Answer, Failure> {
        let (message, mut line) = (self.message(request), String::new());
        stream.get_mut().write_all(message.as_bytes()).map_err(Failure::BeforeFirstByte)?;
        match stream.read_line(&mut line) {
            Ok(0) => return Err(Failure::BeforeFirstByte(ErrorKind::UnexpectedEof.into())),
            Err(error) if line.is_empty() => return Err(Failure::BeforeFirstByte(error)),
            read => read.map_err(Failure::Later)?,
        };
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| Failure::Later(io::Error::new(ErrorKind::InvalidData, line)))?;
        let head = Head::read(&mut stream).map_err(Failure::Later)?;
        let body = head.read_body(&mut stream).map_err(Failure::Later)?;
        if self.reuse == Reuse::Always && !head.is_last && head.length.is_some() {
            self.stream = Some(stream);
        }
        Ok(Answer { status, body })
    }

    fn message(&self, request: &Request<'_>) -> String {
        let Request { method, path, head, body } = request;
        let connection = if self.reuse == Reuse::Always { "keep-alive" } else { "close" };
        format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: Bearer {}\r\nConnection: {connection}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n{head}\r\n{body}",
            self.port,
            self.key,
            body.len()
        )
    }
}

enum Failure {
    /// The connection failed, and no byte of a response arrived.
    BeforeFirstByte(io::Error),
    Later(io::Error),
}

impl Failure {
    fn into_error(self) -> io::Error {
        match self {
            Failure::BeforeFirstByte(error) | Failure::Later(error) => error,
        }
    }
}

/// The parts of a response's head that decide where its body ends.
struct Head {
    length: Option<usize>,
    is_chunked: bool,
    is_last: bool,
}

impl Head {
    fn read(stream: &mut BufReader<TcpStream>) -> io::Result<Self> {
        let mut head = Head { length: None, is_chunked: false, is_last: false };
        loop {
            let line = read_line(stream)?.to_ascii_lowercase();
            match line.split_once(':').map(|(name, value)| (name, value.trim())) {
                Some(("content-length", value)) => head.length = value.parse().ok(),
                Some(("transfer-encoding", _)) => head.is_chunked = true,
                Some(("connection", value)) => head.is_last = value == "close",
                Some(_) => {}
                None => return Ok(head),
            }
        }
    }

    fn read_body(&self, stream: &mut BufReader<TcpStream>) -> io::Result<String> {
        let mut body = Vec::new();
        if self.is_chunked {
            loop {
                let length = usize::from_str_radix(&read_line(stream)?, 16);
                let length = length.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
                read_exactly(stream, length, &mut body)?;
                read_line(stream)?;
                if length == 0 {
                    break;
                }
            }
        } else if let Some(length) = self.length {
            read_exactly(stream, length, &mut body)?;
        } else {
            stream.read_to_end(&mut body)?;
        }
        String::from_utf8(body).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
    }
}

/// Returns a line without its end. A connection that ends before is an error.
fn read_line(stream: &mut BufReader<TcpStream>) -> io::Result<String> {
    let mut line = String::new();
    stream.read_line(&mut line)?;
    match line.strip_suffix("\r\n") {
        Some(line) => Ok(line.to_owned()),
        None => Err(ErrorKind::UnexpectedEof.into()),
    }
}

fn read_exactly(stream: &mut BufReader<TcpStream>, length: usize, body: &mut Vec<u8>) -> io::Result<()> {
    let start = body.len();
    body.resize(start + length, 0);
    stream.read_exact(&mut body[start..])
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// Serves connections one after the other. Each sends its responses, one per request, and is closed.
    fn serve(connections: Vec<Vec<&'static str>>) -> u16 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            for responses in connections {
                let mut stream = BufReader::new(listener.accept().unwrap().0);
                for response in responses {
                    while !read_line(&mut stream).unwrap().is_empty() {}
                    stream.get_mut().write_all(response.as_bytes()).unwrap();
                }
            }
        });
        port
    }

    const ONE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1";
    const CHUNKED: &str = "HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n";
    const CUT: &str = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n1";

    #[test]
    fn closed_connection_is_replaced_once() {
        let mut client = Client::new(serve(vec![vec![ONE, ONE], vec![ONE]]), "", Reuse::Always);
        for _ in 0..3 {
            assert_eq!(client.get("/").unwrap().body, "1");
        }
        assert_eq!(client.resent, 1);
    }

    #[test]
    fn incomplete_answer_is_an_error() {
        let mut client = Client::new(serve(vec![vec![ONE, CUT], vec![ONE]]), "", Reuse::Always);
        assert_eq!(client.get("/").unwrap().status, 200);
        assert!(client.get("/").is_err());
        assert_eq!(client.resent, 0);
    }

    #[test]
    fn chunks_are_joined() {
        let answer = Client::new(serve(vec![vec![CHUNKED]]), "", Reuse::Never).get("/").unwrap();
        assert_eq!((answer.status, answer.body.as_str()), (201, "abc"));
    }
}
