//! The program `terrane-spark-client`, which runs statements through the real connector.
//!
//! In: requests as JSON. Out: its answers. Deliberately absent: the connector, because this crate stays quick to build.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

/// The time that an answer may take beyond the time limit of its statement.
const GRACE: Duration = Duration::from_secs(30);

pub(super) struct Client {
    child: Child,
    requests: ChildStdin,
    answers: Receiver<Value>,
    sent: usize,
}

/// A statement with its time limit in seconds.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) sql: String,
    pub(super) seconds: f64,
    /// Counts the rows instead of returning them.
    pub(super) is_counted: bool,
    /// The time after which the client abandons the statement.
    pub(super) leave_after: Option<f64>,
}

impl Request {
    pub(super) fn new(sql: impl Into<String>) -> Self {
        Request { sql: sql.into(), seconds: 120.0, is_counted: false, leave_after: None }
    }
}

impl Client {
    pub(super) fn start(program: &Path, url: &str, connections: usize) -> Result<Self> {
        let mut command = Command::new(program);
        command.arg(url).arg(connections.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("starting {}", program.display()))?;
        let (requests, output) = (child.stdin.take().context("no input")?, child.stdout.take().context("no output")?);
        let (sender, answers) = channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let answer = serde_json::from_str(&line).unwrap_or_else(|error| json!({"error": error.to_string()}));
                if sender.send(answer).is_err() {
                    return;
                }
            }
        });
        Ok(Client { child, requests, answers, sent: 0 })
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a request and returns its number.
    pub(super) fn send(&mut self, request: &Request) -> Result<usize> {
        let mut body = json!({"id": self.sent, "sql": request.sql, "seconds": request.seconds});
        if request.is_counted {
            body["as"] = "count".into();
        }
        if let Some(seconds) = request.leave_after {
            body["leave_after"] = seconds.into();
        }
        writeln!(self.requests, "{body}")?;
        self.requests.flush()?;
        self.sent += 1;
        Ok(self.sent - 1)
    }

    /// Returns the next answer, whatever its request is. Calls `meanwhile` several times a second.
    pub(super) fn next(&mut self, limit: Duration, mut meanwhile: impl FnMut()) -> Result<Value> {
        let started = Instant::now();
        loop {
            match self.answers.recv_timeout(Duration::from_millis(100)) {
                Ok(answer) => return Ok(answer),
                Err(RecvTimeoutError::Timeout) if started.elapsed() < limit => meanwhile(),
                Err(error) => bail!("no answer of the client: {error}"),
            }
        }
    }

    /// Sends a request and returns its answer, which must be the only open one.
    pub(super) fn ask(&mut self, request: &Request) -> Result<Value> {
        self.send(request)?;
        self.next(Duration::from_secs_f64(request.seconds) + GRACE, || ())
    }

    /// Ends the program without a message to the server.
    pub(super) fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
