//! Starts a server as a child process for tests.

use std::env;
use std::io::{self, BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

const PAUSE: Duration = Duration::from_millis(50);
const ATTEMPTS: usize = 1_200;

/// The server of a test: a child process, or a server that is already running.
pub(crate) enum Server {
    Child(Sail),
    /// The URL of a server that is already running.
    Other(String),
}

pub(crate) struct Sail {
    child: Child,
    program: PathBuf,
    folder: TempDir,
    port: u16,
}

impl Server {
    /// Starts or finds a server. Without one, reports the test as skipped and returns `None`.
    pub(crate) fn start() -> Option<Server> {
        match variable("TERRANE_TEST_SPARK_URL") {
            Some(url) => Some(Server::Other(url)),
            None => Sail::start().map(Server::Child),
        }
    }

    pub(crate) fn url(&self) -> String {
        match self {
            Server::Child(sail) => sail.url(),
            Server::Other(url) => url.clone(),
        }
    }
}

impl Sail {
    /// Starts Sail. If it is not installed, reports the test as skipped and returns `None`.
    pub(crate) fn start() -> Option<Sail> {
        // `cargo xtask setup` installs tools next to the folder for tests.
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../tools/spark-server/bin/sail");
        if !program.is_file() {
            let is_ci = variable("CI").is_some_and(|value| !matches!(value.as_str(), "" | "0" | "false"));
            assert!(!is_ci, "the cases of Spark Connect must run in CI: {} is missing", program.display());
            eprintln!("skipped: cases of Spark Connect: `cargo xtask setup` installs Sail with Python's pip");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let (child, port) = spawn(&program, folder.path(), 0);
        Some(Sail { child, program, folder, port })
    }

    pub(crate) fn url(&self) -> String {
        format!("sc://127.0.0.1:{}", self.port)
    }

    /// Kills the server without notifying its clients.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts the server again on the same port. All its state is lost.
    pub(crate) fn restart(&mut self) {
        self.child = spawn(&self.program, self.folder.path(), self.port).0;
    }

    /// Halts the process. Its connections stay open, but it answers nothing.
    pub(crate) fn halt(&self) {
        self.signal("STOP");
        // The threads of the process stop some moments after the signal.
        for _ in 0..ATTEMPTS {
            let ps = Command::new("ps").args(["-o", "state=", "-p", &self.child.id().to_string()]).output().unwrap();
            if ps.stdout.starts_with(b"T") {
                return;
            }
            thread::sleep(PAUSE);
        }
        panic!("the server was not halted");
    }

    /// Continues a halted process.
    pub(crate) fn proceed(&self) {
        self.signal("CONT");
    }

    fn signal(&self, name: &str) {
        let status = Command::new("kill").args([format!("-{name}"), self.child.id().to_string()]).status().unwrap();
        assert!(status.success());
    }
}

impl Drop for Sail {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts the program and waits until it listens. Returns the process and its port.
///
/// Port 0 means any free port. The port is read from the log of the program, because a port that the test chose could be
/// taken by another process before the program listens.
fn spawn(program: &Path, folder: &Path, port: u16) -> (Child, u16) {
    let mut command = Command::new(program);
    command.args(["spark", "server", "--ip", "127.0.0.1", "--port", &port.to_string()]).current_dir(folder);
    command.env("RUST_LOG", "warn,sail_cli=info").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap());
    let mut lines = String::new();
    while log.read_line(&mut lines).unwrap() > 0 {
        if let Some(address) = lines.lines().last().and_then(listening_address) {
            // The program would block if the rest of its log were not read.
            thread::spawn(move || io::copy(&mut log, &mut io::sink()));
            return (child, address.port());
        }
    }
    panic!("the server ended with {:?}:\n{lines}", child.wait());
}

/// Returns the address in a line of the log such as `Starting the Spark Connect server on 127.0.0.1:50051...`.
fn listening_address(line: &str) -> Option<SocketAddr> {
    line.split_once("Spark Connect server on ")?.1.trim_end_matches('.').parse().ok()
}

fn variable(name: &str) -> Option<String> {
    #[allow(clippy::disallowed_methods, reason = "tests are configured by their environment")]
    env::var(name).ok()
}
