//! The servers of the cluster: they share the project, the state, the cache and the folder of results of jobs.
//!
//! In: the addresses of the shared services. Out: processes that signals can stop, and requests to one of them. Not
//! here: choosing a replica for a request, which the balancer does.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::balancer::probe;
use super::client::{Client, Reuse};
use crate::process::{Process, free_port, output, wait_until};

const READY_LIMIT: Duration = Duration::from_secs(120);
/// The limit for the end of a replica after SIGTERM, longer than `server.shutdown_seconds`.
const STOP_LIMIT: Duration = Duration::from_secs(40);

pub(super) struct Settings {
    pub(super) program: PathBuf,
    pub(super) project: PathBuf,
    pub(super) logs: PathBuf,
    /// The environment of all replicas.
    pub(super) variables: Vec<(&'static str, String)>,
}

pub(super) struct Replica {
    pub(super) port: u16,
    log: PathBuf,
    process: Option<Process>,
}

impl Settings {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Creates an API key and returns its id and its secret.
    pub(super) fn create_key(&self, name: &str) -> Result<(String, String)> {
        let mut command = self.command();
        command.args(["auth", "create-key"]).arg(&self.project);
        command.args(["--json", "--name", name, "--scopes", "read,write,admin"]);
        let key: Value = serde_json::from_str(&output(&mut command)?)?;
        let text =
            |field: &str| key[field].as_str().map(str::to_owned).with_context(|| format!("a key without {field}"));
        Ok((text("id")?, text("key")?))
    }

    /// Starts a replica on a free port, with further variables.
    pub(super) fn start(&self, number: usize, variables: &[(&str, &str)]) -> Result<Replica> {
        let log = self.logs.join(format!("replica-{number}.log"));
        let mut replica = Replica { port: free_port()?, log, process: None };
        replica.resume(self, variables)?;
        Ok(replica)
    }
}

impl Replica {
    /// Starts the replica again on its port, and waits until it is ready.
    pub(super) fn resume(&mut self, settings: &Settings, variables: &[(&str, &str)]) -> Result<()> {
        let mut command = settings.command();
        command.arg("serve").arg(&settings.project).args(["--port", &self.port.to_string()]);
        command.envs(variables.iter().copied());
        let mut process = Process::start(command, &self.log)?;
        wait_until("a replica is ready", READY_LIMIT, || {
            process.ensure_runs()?;
            Ok(probe(self.port).unwrap_or(false))
        })?;
        self.process = Some(process);
        Ok(())
    }

    /// Sends SIGTERM and waits until the running requests are answered and the process ends.
    pub(super) fn terminate(&mut self) -> Result<ExitStatus> {
        self.process.take().context("the replica is not running")?.stop("TERM", STOP_LIMIT)
    }

    /// Kills the process, as a crash would end it.
    pub(super) fn kill(&mut self) -> Result<()> {
        let ended = self.process.take().context("the replica is not running")?.stop("KILL", STOP_LIMIT)?;
        anyhow::ensure!(ended.signal().is_some(), "the replica ended with {ended} before it was killed");
        Ok(())
    }

    pub(super) fn process_id(&self) -> Option<u32> {
        self.process.as_ref().map(Process::id)
    }

    pub(super) fn client(&self, key: &str) -> Client {
        Client::new(self.port, key, Reuse::Never)
    }

    /// Returns whether the log contains a mark.
    pub(super) fn has_logged(&self, mark: &str) -> bool {
        fs::read_to_string(&self.log).is_ok_and(|log| log.contains(mark))
    }

    /// Returns the number of times that the replica has acquired the lease of a background task.
    pub(super) fn acquisitions(&self, task: &str) -> usize {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        log.lines()
            .filter(|line| {
                line.contains(r#""event":"lease_acquired""#) && line.contains(&format!(r#""name":"{task}""#))
            })
            .count()
    }
}

/// Returns the folder of logs below a folder, and creates it.
pub(super) fn logs(folder: &Path) -> Result<PathBuf> {
    let logs = folder.join("logs");
    fs::create_dir_all(&logs)?;
    Ok(logs)
}
