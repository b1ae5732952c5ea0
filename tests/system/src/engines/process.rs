//! Runs a database server as a child process.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use tempfile::TempDir;

use crate::free_port;

const LIMIT: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(50);

/// The commands of a kind of server: start it for a folder and a port, probe it, and stop it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Program {
    pub(super) start: fn(&Path, u16) -> Result<Command>,
    /// Returns a command that succeeds if the server answers.
    pub(super) probe: fn(&Path, u16) -> Result<Command>,
    /// The signal that ends the server before it can answer or close its connections.
    pub(super) stop_at_once: &'static str,
}

/// A running server with its folder. Dropping it stops it.
#[derive(Debug)]
pub struct Server {
    program: Program,
    child: Child,
    folder: TempDir,
    pub port: u16,
}

impl Server {
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn start(folder: TempDir, program: Program) -> Result<Self> {
        let port = free_port()?;
        let child = spawn((program.start)(folder.path(), port)?, folder.path())?;
        let mut server = Server { program, child, folder, port };
        server.wait_until_ready()?;
        Ok(server)
    }

    /// Ends the server without a message to its clients.
    ///
    /// # Errors
    /// The server cannot be ended.
    pub fn kill(&mut self) -> Result<()> {
        signal(&self.child, self.program.stop_at_once)?;
        self.wait()
    }

    /// Sends a signal, such as `STOP` or `CONT`.
    ///
    /// # Errors
    /// The signal cannot be sent.
    pub(super) fn send_signal(&self, signal: &str) -> Result<()> {
        self::signal(&self.child, signal)
    }

    /// Starts the server again on the same port.
    ///
    /// # Errors
    /// The server cannot be started.
    pub fn restart(&mut self) -> Result<()> {
        self.child = spawn((self.program.start)(self.folder.path(), self.port)?, self.folder.path())?;
        self.wait_until_ready()
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let mut waited = Duration::ZERO;
        loop {
            let mut probe = (self.program.probe)(self.folder.path(), self.port)?;
            if probe.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()?.success() {
                return Ok(());
            }
            let ended = self.child.try_wait()?;
            if ended.is_some() || waited > LIMIT {
                let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
                bail!("the server did not start ({ended:?}):\n{log}");
            }
            thread::sleep(PAUSE);
            waited += PAUSE;
        }
    }

    fn wait(&mut self) -> Result<()> {
        let mut waited = Duration::ZERO;
        while self.child.try_wait()?.is_none() {
            if waited > LIMIT {
                self.child.kill()?;
            }
            thread::sleep(PAUSE);
            waited += PAUSE;
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.kill();
        }
    }
}

fn signal(child: &Child, name: &str) -> Result<()> {
    let status = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status()?;
    ensure!(status.success(), "kill: {status}");
    Ok(())
}

fn spawn(mut command: Command, folder: &Path) -> Result<Child> {
    let log = fs::File::create(folder.join("log"))?;
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    command.spawn().with_context(|| format!("{command:?}"))
}

/// Runs a program that sets up a server, and waits for its end.
pub(super) fn run(mut command: Command) -> Result<()> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("{command:?}"))?;
    ensure!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// Returns a command for a program. Database servers refuse to run as root, so the command runs as `user` for root.
pub(super) fn as_user(user: &str, program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args([&format!("--reuid={user}"), &format!("--regid={user}"), "--clear-groups"]).arg(program);
    command
}

/// Returns a temporary folder to which `user` may write.
pub(super) fn folder_of(user: &str) -> Result<TempDir> {
    let folder = tempfile::tempdir()?;
    give_to(user, folder.path())?;
    Ok(folder)
}

/// Makes `user` the owner of a file.
pub(super) fn give_to(user: &str, file: &Path) -> Result<()> {
    if is_root() {
        chown(file, Some(id("-u", user)?), Some(id("-g", user)?))?;
    }
    Ok(())
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

fn id(kind: &str, user: &str) -> Result<u32> {
    let output = Command::new("id").args([kind, user]).output()?;
    String::from_utf8(output.stdout)?.trim().parse().with_context(|| format!("unknown user {user}"))
}
