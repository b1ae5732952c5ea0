//! Starts Redis without persistence, as the shared tier of the result cache.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tempfile::TempDir;

use super::process::{Program, Server};
use super::{Missing, certificate, program};

const FOLDERS: &[&str] = &["/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"];

/// A running Redis server. Dropping it stops it.
#[derive(Debug)]
pub struct Redis {
    server: Server,
    is_tls: bool,
}

impl Redis {
    /// Returns the reason why no server can be started on this machine.
    pub fn missing() -> Option<Missing> {
        ["redis-server", "redis-cli"].iter().find_map(|name| program(FOLDERS, name).err())
    }

    /// Starts a server.
    ///
    /// # Errors
    /// The server does not start.
    pub fn start() -> Result<Self> {
        let server = Server::start(TempDir::new()?, Program { start: command, probe, stop_at_once: "KILL" })?;
        Ok(Redis { server, is_tls: false })
    }

    /// Returns the reason why no server with TLS can be started on this machine.
    pub fn missing_tls() -> Option<Missing> {
        Redis::missing().or_else(certificate::missing)
    }

    /// Starts a server that accepts only TLS, with a certificate of [`AUTHORITY`](super::AUTHORITY).
    ///
    /// # Errors
    /// The server does not start.
    pub fn start_tls() -> Result<Self> {
        let folder = TempDir::new()?;
        certificate::write(folder.path())?;
        let program = Program { start: tls_command, probe: tls_probe, stop_at_once: "KILL" };
        Ok(Redis { server: Server::start(folder, program)?, is_tls: true })
    }

    /// Returns the path of a file beside the server's certificate, such as the certificate of an authority.
    pub fn file(&self, name: &str) -> PathBuf {
        self.server.folder().join(name)
    }

    /// Ends the server without a message to its clients.
    ///
    /// # Errors
    /// The server cannot be ended.
    pub fn kill(&mut self) -> Result<()> {
        self.server.kill()
    }

    /// Starts the server again on the same port, without its data.
    ///
    /// # Errors
    /// The server cannot be started.
    pub fn restart(&mut self) -> Result<()> {
        self.server.restart()
    }

    /// Halts the process of the server. Its connections stay open, and it answers no request.
    ///
    /// # Errors
    /// The process cannot be halted.
    pub fn halt(&self) -> Result<()> {
        self.server.send_signal("STOP")
    }

    /// Continues the halted process.
    ///
    /// # Errors
    /// The process cannot be continued.
    pub fn proceed(&self) -> Result<()> {
        self.server.send_signal("CONT")
    }

    pub fn url(&self) -> String {
        format!("{}://127.0.0.1:{}/0", if self.is_tls { "rediss" } else { "redis" }, self.server.port)
    }

    /// Sends a command whose words contain no spaces. Returns the first line of the reply.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn send(&self, command: &str) -> Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.server.port))?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        stream.write_all(format!("{command}\r\n").as_bytes())?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).with_context(|| command.to_owned())?;
        Ok(line.trim_end().to_owned())
    }
}

fn path(name: &str) -> Result<PathBuf> {
    program(FOLDERS, name).map_err(|Missing(reason)| anyhow::anyhow!(reason))
}

fn command(folder: &Path, port: u16) -> Result<Command> {
    let mut command = in_memory(folder)?;
    command.args(["--port", &port.to_string()]);
    Ok(command)
}

fn tls_command(folder: &Path, port: u16) -> Result<Command> {
    let mut command = in_memory(folder)?;
    command.args(["--port", "0", "--tls-port", &port.to_string(), "--tls-auth-clients", "no"]);
    for (option, file) in [
        ("--tls-cert-file", certificate::CERTIFICATE),
        ("--tls-key-file", certificate::KEY),
        ("--tls-ca-cert-file", certificate::AUTHORITY),
    ] {
        command.arg(option).arg(folder.join(file));
    }
    Ok(command)
}

fn in_memory(folder: &Path) -> Result<Command> {
    let mut command = Command::new(path("redis-server")?);
    command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir"]).arg(folder);
    Ok(command)
}

fn probe(_: &Path, port: u16) -> Result<Command> {
    let mut command = Command::new(path("redis-cli")?);
    command.args(["-p", &port.to_string(), "ping"]);
    Ok(command)
}

fn tls_probe(folder: &Path, port: u16) -> Result<Command> {
    let mut command = Command::new(path("redis-cli")?);
    command.args(["-p", &port.to_string(), "--tls", "--cacert"]).arg(folder.join(certificate::AUTHORITY)).arg("ping");
    Ok(command)
}
