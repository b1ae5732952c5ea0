//! A TCP balancer: new connections go to the ready replicas in turn.
//!
//! In: the ports of the replicas, of which `/health/ready` is requested ten times a second. Out: one port. A replica
//! that refuses a connection is skipped, and if no replica is ready, all are tried. Not here: HTTP. A connection stays
//! with its replica, and nothing is sent a second time.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Result;

const HEALTH_PAUSE: Duration = Duration::from_millis(100);
const HEALTH_LIMIT: Duration = Duration::from_secs(2);
const CONNECT_LIMIT: Duration = Duration::from_secs(1);

pub(super) struct Balancer {
    pub(super) port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    replicas: Vec<Backend>,
    next: AtomicUsize,
    is_over: AtomicBool,
}

struct Backend {
    port: u16,
    is_ready: AtomicBool,
}

impl Balancer {
    pub(super) fn start(ports: &[u16]) -> Result<Self> {
        let replicas = ports.iter().map(|port| Backend { port: *port, is_ready: AtomicBool::new(false) }).collect();
        let shared = Arc::new(Shared { replicas, next: AtomicUsize::new(0), is_over: AtomicBool::new(false) });
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        for number in 0..ports.len() {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.watch(number));
        }
        let accepting = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if accepting.is_over.load(Ordering::Relaxed) {
                    return;
                }
                let shared = Arc::clone(&accepting);
                thread::spawn(move || shared.relay(&client));
            }
        });
        Ok(Balancer { port, shared })
    }

    /// Returns whether new connections go to a replica.
    pub(super) fn is_ready(&self, replica: usize) -> bool {
        self.shared.replicas[replica].is_ready.load(Ordering::Relaxed)
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts connections.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}

impl Shared {
    fn watch(&self, number: usize) {
        let Backend { port, is_ready } = &self.replicas[number];
        while !self.is_over.load(Ordering::Relaxed) {
            is_ready.store(probe(*port).unwrap_or(false), Ordering::Relaxed);
            thread::sleep(HEALTH_PAUSE);
        }
    }

    /// Copies bytes in both directions until one of the two sides closes its connection.
    fn relay(&self, client: &TcpStream) {
        let Some(server) = self.connect() else { return };
        let _ = client.set_nodelay(true);
        let _ = server.set_nodelay(true);
        thread::scope(|scope| {
            scope.spawn(|| {
                let _ = io::copy(&mut &*client, &mut &server);
                let _ = server.shutdown(Shutdown::Write);
            });
            let _ = io::copy(&mut &server, &mut &*client);
            let _ = client.shutdown(Shutdown::Both);
            let _ = server.shutdown(Shutdown::Both);
        });
    }

    /// Connects to the next ready replica, or, if none is ready or accepts connections, to any other one.
    fn connect(&self) -> Option<TcpStream> {
        let (count, first) = (self.replicas.len(), self.next.fetch_add(1, Ordering::Relaxed));
        let mut order: Vec<&Backend> = (0..count).map(|step| &self.replicas[(first + step) % count]).collect();
        // Sorting is stable, so ready replicas take turns.
        order.sort_by_key(|backend| !backend.is_ready.load(Ordering::Relaxed));
        order.into_iter().find_map(|backend| TcpStream::connect_timeout(&address(backend.port), CONNECT_LIMIT).ok())
    }
}

fn address(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// Returns whether `/health/ready` answers with 200.
pub(super) fn probe(port: u16) -> io::Result<bool> {
    let mut stream = TcpStream::connect_timeout(&address(port), CONNECT_LIMIT)?;
    stream.set_read_timeout(Some(HEALTH_LIMIT))?;
    stream.write_all(format!("GET /health/ready HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\n\r\n").as_bytes())?;
    let mut head = [0; 12];
    stream.read_exact(&mut head)?;
    // The rest is read, because closing earlier would reset the connection.
    let _ = io::copy(&mut stream, &mut io::sink());
    Ok(head.ends_with(b" 200"))
}

#[cfg(test)]
mod tests {
    use std::io::BufRead as _;
    use std::io::BufReader;

    use super::*;

    /// Answers each connection with the given status, and with the port as the body.
    fn serve(status: &'static str) -> u16 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let mut line = String::new();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                while reader.read_line(&mut line).unwrap() > 2 {
                    line.clear();
                }
                write!(stream, "HTTP/1.0 {status}\r\n\r\n{port}").unwrap();
            }
        });
        port
    }

    fn get(port: u16) -> String {
        crate::http::request(port, "GET", "/", None).unwrap().body
    }

    #[test]
    fn connections_go_to_ready_replicas_in_turn() {
        let (one, two, unready) = (serve("200 OK"), serve("200 OK"), serve("503 Service Unavailable"));
        let balancer = Balancer::start(&[one, unready, two]).unwrap();
        while !(balancer.is_ready(0) && balancer.is_ready(2)) {
            thread::yield_now();
        }
        let mut answers: Vec<String> = (0..6).map(|_| get(balancer.port)).collect();
        answers.sort();
        answers.dedup();
        let mut expected = vec![one.to_string(), two.to_string()];
        expected.sort();
        assert_eq!(answers, expected);
    }

    #[test]
    fn all_replicas_are_tried_if_none_is_ready() {
        let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let unready = serve("503 Service Unavailable");
        let balancer = Balancer::start(&[closed, unready]).unwrap();
        assert_eq!(get(balancer.port), unready.to_string());
        assert_eq!(get(balancer.port), unready.to_string());
    }
}
