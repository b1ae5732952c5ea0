//! The program in a process of its own, with nothing of the environment but what a test gives it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

/// Longer than any run should take on a busy machine.
const LIMIT: Duration = Duration::from_secs(90);
const PAUSE: Duration = Duration::from_millis(20);

/// A call of the program.
#[derive(Debug)]
pub struct Program {
    command: Command,
    input: Option<String>,
}

/// What a run left behind.
#[derive(Debug)]
pub struct Output {
    /// `None` when a signal ended it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Program {
    /// `binary` is `env!("CARGO_BIN_EXE_terrane-under-test")`, which only a test can name.
    pub fn new(binary: &str, arguments: &[&str], folder: &Path) -> Self {
        let mut command = Command::new(binary);
        command.args(arguments).arg(folder).env_clear().stdin(Stdio::null());
        Program { command, input: None }
    }

    #[must_use]
    pub fn arguments(mut self, arguments: &[&str]) -> Self {
        self.command.args(arguments);
        self
    }

    #[must_use]
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    #[must_use]
    pub fn input(mut self, text: &str) -> Self {
        self.input = Some(text.to_owned());
        self.command.stdin(Stdio::piped());
        self
    }

    /// Runs to the end.
    ///
    /// # Errors
    /// It can't be started, or it did not end in time.
    pub fn run(mut self) -> Result<Output> {
        let mut child = self.command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        if let (Some(text), Some(mut stdin)) = (self.input, child.stdin.take()) {
            stdin.write_all(text.as_bytes())?;
        }
        let mut stdout = child.stdout.take().context("no standard output")?;
        let mut stderr = child.stderr.take().context("no standard error")?;
        let reading = thread::spawn(move || {
            let mut text = String::new();
            stdout.read_to_string(&mut text).map(|_| text)
        });
        let reading_errors = thread::spawn(move || {
            let mut text = String::new();
            stderr.read_to_string(&mut text).map(|_| text)
        });
        let code = wait(&mut child)?;
        let stdout = reading.join().map_err(|_| anyhow::anyhow!("reading broke off"))??;
        let stderr = reading_errors.join().map_err(|_| anyhow::anyhow!("reading broke off"))??;
        Ok(Output { code, stdout, stderr })
    }

    /// Starts a server and waits until it says where it listens.
    ///
    /// # Errors
    /// It ended before it said so.
    pub fn serve(mut self) -> Result<Server> {
        let mut child = self.command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn()?;
        let mut log = BufReader::new(child.stdout.take().context("no standard output")?);
        let mut line = String::new();
        while log.read_line(&mut line)? > 0 {
            if let Ok(record) = serde_json::from_str::<serde_json::Value>(&line)
                && record["event"] == "server_started"
            {
                let address = record["address"].as_str().context("a start without an address")?.parse()?;
                return Ok(Server { child, address, log });
            }
            line.clear();
        }
        bail!("the server ended before it began: {:?}", wait(&mut child)?)
    }
}

fn wait(child: &mut Child) -> Result<Option<i32>> {
    let mut waited = Duration::ZERO;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.code());
        }
        if waited > LIMIT {
            child.kill()?;
            bail!("the program did not end within {} s", LIMIT.as_secs());
        }
        thread::sleep(PAUSE);
        waited += PAUSE;
    }
}

/// A running server; it is killed when a test ends early.
#[derive(Debug)]
pub struct Server {
    child: Child,
    pub address: SocketAddr,
    log: BufReader<ChildStdout>,
}

impl Server {
    /// The number of its process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Sends SIGTERM and waits. The exit code, and what was logged after the start.
    ///
    /// # Errors
    /// It did not end in time.
    pub fn terminate(mut self) -> Result<(Option<i32>, String)> {
        let killed = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status()?;
        anyhow::ensure!(killed.success(), "kill: {killed}");
        let mut rest = String::new();
        self.log.read_to_string(&mut rest)?;
        Ok((wait(&mut self.child)?, rest))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
