//! Runs servers as child processes, such as PostgreSQL, Redis, Spark, and the replicas of a cluster.
//!
//! In: a command and a file for its output. Out: a process that signals can stop, and that is killed when its value is
//! dropped. Not here: the commands.

use std::fs::{self, OpenOptions};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

pub(crate) const PAUSE: Duration = Duration::from_millis(20);

pub(crate) struct Process {
    child: Child,
    /// The file with the output of the process, which later starts append to.
    pub(crate) log: PathBuf,
}

impl Process {
    pub(crate) fn start(mut command: Command, log: &Path) -> Result<Self> {
        let output = OpenOptions::new().create(true).append(true).open(log)?;
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        let child = command.spawn().with_context(|| format!("starting {}", command.get_program().display()))?;
        Ok(Process { child, log: log.to_path_buf() })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Fails with the end of the log if the process has ended.
    pub(crate) fn ensure_runs(&mut self) -> Result<()> {
        let Some(status) = self.child.try_wait()? else { return Ok(()) };
        bail!("the process ended with {status}: {}", self.last_lines())
    }

    fn last_lines(&self) -> String {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(5)..].join("\n")
    }

    /// Sends a signal and waits for the end of the process, which is killed after the limit.
    pub(crate) fn stop(&mut self, signal: &str, limit: Duration) -> Result<ExitStatus> {
        if let Some(status) = self.child.try_wait()? {
            return Ok(status);
        }
        Command::new("kill")
            .args([&format!("-{signal}"), &self.id().to_string()])
            .status()
            .context("sending a signal")?;
        let started = Instant::now();
        while started.elapsed() < limit {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            thread::sleep(PAUSE);
        }
        self.child.kill()?;
        Ok(self.child.wait()?)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a port that no program listens on.
pub(crate) fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// Waits until a condition holds. Fails with its name after the limit. Returns the time that passed.
pub(crate) fn wait_until(name: &str, limit: Duration, mut is_met: impl FnMut() -> Result<bool>) -> Result<Duration> {
    let started = Instant::now();
    loop {
        if is_met()? {
            return Ok(started.elapsed());
        }
        ensure!(started.elapsed() < limit, "{name}: not within {} s", limit.as_secs());
        thread::sleep(PAUSE);
    }
}

/// Returns the standard output of a program that succeeds.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("starting {command:?}"))?;
    ensure!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

/// Returns the resident memory of a process.
pub(crate) fn resident_bytes(process: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let kibibytes =
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse::<u64>().ok());
    Ok(kibibytes.context("no VmRSS")? << 10)
}

/// Returns a command for a program that refuses to run as root. It runs as `user` if this program runs as root.
pub(crate) fn as_user(user: &str, program: &Path) -> Result<Command> {
    if !is_root()? {
        return Ok(Command::new(program));
    }
    let mut command = Command::new("setpriv");
    command.args([&format!("--reuid={user}"), &format!("--regid={user}"), "--clear-groups"]).arg(program);
    Ok(command)
}

/// Makes `user` the owner of a folder, if this program runs as root.
pub(crate) fn give_to(user: &str, folder: &Path) -> Result<()> {
    if is_root()? {
        let id = |kind: &str| -> Result<u32> { Ok(output(Command::new("id").args([kind, user]))?.trim().parse()?) };
        chown(folder, Some(id("-u")?), Some(id("-g")?))?;
    }
    Ok(())
}

fn is_root() -> Result<bool> {
    Ok(fs::metadata("/proc/self")?.uid() == 0)
}
