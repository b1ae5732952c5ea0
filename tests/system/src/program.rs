//! Runs the program in its own process, with only the environment variables that a test sets.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

/// The time limit of a run, longer than any run takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(90);
const PAUSE: Duration = Duration::from_millis(20);

/// A call of the program.
#[derive(Debug)]
pub struct Program {
    command: Command,
    input: Option<String>,
}

/// The output and exit code of a run.
#[derive(Debug)]
pub struct Output {
    /// The exit code; `None` if a signal ended the program.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Output {
    /// Returns standard error with `[folder]` for the path of a folder, for snapshots.
    pub fn messages(&self, folder: &Path) -> String {
        self.stderr.replace(&*folder.to_string_lossy(), "[folder]")
    }
}

impl Program {
    /// Creates a run of the program. `binary` is `env!("CARGO_BIN_EXE_terrane-under-test")`, which only a test can
    /// name.
    pub fn new(binary: &str, arguments: &[&str], folder: &Path) -> Self {
        let mut command = Command::new(binary);
        command.args(arguments).arg(folder).env_clear().stdin(Stdio::null());
        // Without the cache, a repeated query runs in the warehouse. Tests of the cache enable it.
        command.env("SERVICE_CACHE__ENABLED", "false");
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

    /// Runs the program to its end.
    ///
    /// # Errors
    /// The program cannot be started, or does not end in time.
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

    /// Starts a server and waits until it reports its address.
    ///
    /// # Errors
    /// The server ended before it reported its address.
    pub fn serve(mut self) -> Result<Server> {
        let mut child = self.command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn()?;
        let mut log = BufReader::new(child.stdout.take().context("no standard output")?);
        let mut line = String::new();
        while log.read_line(&mut line)? > 0 {
            if let Ok(record) = serde_json::from_str::<serde_json::Value>(&line)
                && record["event"] == "server_started"
            {
                let address = record["address"].as_str().context("a start without an address")?.parse()?;
                let metrics_address = record["metrics_address"].as_str().and_then(|address| address.parse().ok());
                return Ok(Server { child, address, metrics_address, log });
            }
            line.clear();
        }
        bail!("the server ended before it began: {:?}", wait(&mut child)?)
    }
}

impl Program {
    /// Starts a server with the given output streams on a free port, and waits until it answers.
    ///
    /// # Errors
    /// The server ended, or does not answer in time.
    pub fn serve_unheard(mut self, stdout: Stdio, stderr: Stdio) -> Result<Unheard> {
        let port = crate::free_port()?;
        self.command.args(["--port", &port.to_string()]);
        let child = self.command.stdout(stdout).stderr(stderr).spawn()?;
        let mut server = Unheard { child, address: ([127, 0, 0, 1], port).into() };
        let mut waited = Duration::ZERO;
        while !crate::request(server.address, "GET", "/health/live", None).is_ok_and(|answer| answer.status == 200) {
            if let Some(status) = server.child.try_wait()? {
                bail!("the server ended before it began: {status}");
            }
            anyhow::ensure!(waited < LIMIT, "the server does not answer");
            thread::sleep(PAUSE);
            waited += PAUSE;
        }
        Ok(server)
    }
}

/// A running server whose output goes to the streams that the test has chosen.
#[derive(Debug)]
pub struct Unheard {
    pub child: Child,
    pub address: SocketAddr,
}

impl Unheard {
    /// Sends SIGTERM and waits for the exit code.
    ///
    /// # Errors
    /// The server does not end in time.
    pub fn terminate(mut self) -> Result<Option<i32>> {
        let killed = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status()?;
        anyhow::ensure!(killed.success(), "kill: {killed}");
        wait(&mut self.child)
    }
}

impl Drop for Unheard {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
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

/// A running server. It is killed when it is dropped, for example because a test ends early.
#[derive(Debug)]
pub struct Server {
    child: Child,
    pub address: SocketAddr,
    /// The address of the metrics, if they have a separate one.
    pub metrics_address: Option<SocketAddr>,
    log: BufReader<ChildStdout>,
}

impl Server {
    /// Returns the process id of the server.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Kills the server with SIGKILL, as a crash would end it.
    ///
    /// # Errors
    /// The server cannot be killed.
    pub fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Kills the server like [`Server::kill`], while other threads still use this value.
    ///
    /// # Errors
    /// The process cannot be killed.
    pub fn signal_kill(&self) -> Result<()> {
        let killed = Command::new("kill").args(["-KILL", &self.child.id().to_string()]).status()?;
        anyhow::ensure!(killed.success(), "kill: {killed}");
        Ok(())
    }

    /// Sends SIGTERM and waits. Returns the exit code and the lines that were logged after the start.
    ///
    /// # Errors
    /// The server does not end in time.
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
