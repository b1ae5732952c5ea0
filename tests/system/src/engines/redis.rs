//! Redis in memory, as the shared tier of the result cache.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tempfile::TempDir;

use super::process::{Program, Server};
use super::{Missing, program};

const FOLDERS: &[&str] = &["/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"];

/// A running Redis server. Dropping it stops it.
#[derive(Debug)]
pub struct Redis(Server);

impl Redis {
    /// Returns the reason for which no server can be started on this machine.
    pub fn missing() -> Option<Missing> {
        ["redis-server", "redis-cli"].iter().find_map(|name| program(FOLDERS, name).err())
    }

    /// Starts a server.
    ///
    /// # Errors
    /// It does not start.
    pub fn start() -> Result<Self> {
        Server::start(TempDir::new()?, Program { start: command, probe, stop_at_once: "KILL" }).map(Redis)
    }

    /// Ends it without a word to its clients.
    ///
    /// # Errors
    /// It cannot be ended.
    pub fn kill(&mut self) -> Result<()> {
        self.0.kill()
    }

    /// Starts it again, empty, on the same port.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn restart(&mut self) -> Result<()> {
        self.0.restart()
    }

    /// Halts the process: its connections stay open, and nothing is answered.
    ///
    /// # Errors
    /// It cannot be halted.
    pub fn halt(&self) -> Result<()> {
        self.0.send_signal("STOP")
    }

    /// Continues a halted process.
    ///
    /// # Errors
    /// It cannot be continued.
    pub fn proceed(&self) -> Result<()> {
        self.0.send_signal("CONT")
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.0.port)
    }

    /// Sends a command of words without spaces, and returns the first line of its reply.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn send(&self, command: &str) -> Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.0.port))?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        stream.write_all(format!("{command}\r\n").as_bytes())?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).with_context(|| command.to_owned())?;
        Ok(line.trim_end().to_owned())
    }
}

fn path(name: &str) -> Result<std::path::PathBuf> {
    program(FOLDERS, name).map_err(|Missing(reason)| anyhow::anyhow!(reason))
}

fn command(folder: &Path, port: u16) -> Result<Command> {
    let mut command = Command::new(path("redis-server")?);
    command.args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--save", "", "--appendonly", "no"]);
    command.arg("--dir").arg(folder);
    Ok(command)
}

fn probe(_: &Path, port: u16) -> Result<Command> {
    let mut command = Command::new(path("redis-cli")?);
    command.args(["-p", &port.to_string(), "ping"]);
    Ok(command)
}
