//! Starts what the replicas share: PostgreSQL for the state and the warehouse, Redis for the cache.
//!
//! In: a folder. Out: servers that can be stopped and started again on the same port, with their data. Not here:
//! installing the packages, which `cargo xtask setup` does.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::process::{Process, as_user, free_port, give_to, output, wait_until};

const USER: &str = "postgres";
const START_LIMIT: Duration = Duration::from_secs(60);
const STOP_LIMIT: Duration = Duration::from_secs(20);
const FOLDERS: [&str; 3] = ["/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"];

pub(super) struct Postgres {
    folder: PathBuf,
    port: u16,
    process: Option<Process>,
}

impl Postgres {
    /// Creates a server with an empty database `terrane`.
    pub(super) fn start(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder)?;
        give_to(USER, folder)?;
        let mut initdb = as_user(USER, &postgres_tool("initdb")?)?;
        initdb.args(["--no-sync", "--username=terrane", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "-D"]);
        output(initdb.arg(folder.join("data")))?;
        let mut server = Postgres { folder: folder.to_path_buf(), port: free_port()?, process: None };
        server.resume()?;
        output(server.client("createdb")?.arg("terrane"))?;
        server.query("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")?;
        Ok(server)
    }

    /// Starts the server again.
    pub(super) fn resume(&mut self) -> Result<()> {
        let mut command = as_user(USER, &postgres_tool("postgres")?)?;
        command.arg("-D").arg(self.folder.join("data")).args(["-p", &self.port.to_string()]);
        command.args(["-c", "listen_addresses=127.0.0.1", "-c", "max_connections=200"]);
        command.args(["-c", "shared_preload_libraries=pg_stat_statements", "-c", "pg_stat_statements.track=all"]);
        command.args(["-c", &format!("unix_socket_directories={}", self.folder.display())]);
        let mut process = Process::start(command, &self.folder.with_extension("log"))?;
        wait_until("PostgreSQL accepts connections", START_LIMIT, || {
            process.ensure_runs()?;
            Ok(output(self.client("pg_isready")?.args(["-q", "-d", "postgres"])).is_ok())
        })?;
        self.process = Some(process);
        Ok(())
    }

    /// Stops the server with a fast shutdown, which ends the sessions of clients.
    pub(super) fn stop(&mut self) -> Result<()> {
        if let Some(mut process) = self.process.take() {
            process.stop("INT", STOP_LIMIT)?;
        }
        Ok(())
    }

    pub(super) fn url(&self) -> String {
        format!("postgres://terrane@127.0.0.1:{}/terrane", self.port)
    }

    /// Returns the rows of a statement, one per line, with `|` between columns.
    pub(super) fn query(&self, statement: &str) -> Result<String> {
        let mut psql = self.client("psql")?;
        psql.args(["-d", "terrane", "-qtA", "-v", "ON_ERROR_STOP=1", "-c", statement]);
        Ok(output(&mut psql)?.trim().to_owned())
    }

    fn client(&self, tool: &str) -> Result<Command> {
        let mut command = Command::new(postgres_tool(tool)?);
        command.args(["-h", "127.0.0.1", "-U", "terrane", "-p", &self.port.to_string()]);
        Ok(command)
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // Killing the first process would leave its children behind.
        let _ = self.stop();
    }
}

/// Returns the path of a program of PostgreSQL. Debian has a folder for each version.
fn postgres_tool(name: &str) -> Result<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = versions.map(|entry| entry.path().join("bin")).collect();
    folders.sort();
    folders.reverse();
    folders.extend(FOLDERS.map(PathBuf::from));
    program(&folders, name)
}

fn program(folders: &[PathBuf], name: &str) -> Result<PathBuf> {
    let found = folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file());
    found.with_context(|| format!("`{name}` is not installed\n  hint: Run `cargo xtask setup`."))
}

pub(super) struct Redis {
    folder: PathBuf,
    port: u16,
    process: Option<Process>,
}

impl Redis {
    pub(super) fn start(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let mut server = Redis { folder: folder.to_path_buf(), port: free_port()?, process: None };
        server.resume()?;
        Ok(server)
    }

    /// Starts the server again, without its data.
    pub(super) fn resume(&mut self) -> Result<()> {
        let mut command = Command::new(redis_tool("redis-server")?);
        command.args(["--bind", "127.0.0.1", "--port", &self.port.to_string(), "--save", "", "--appendonly", "no"]);
        command.arg("--dir").arg(&self.folder);
        let mut process = Process::start(command, &self.folder.with_extension("log"))?;
        wait_until("Redis accepts connections", START_LIMIT, || {
            process.ensure_runs()?;
            Ok(self.send(&["ping"]).is_ok())
        })?;
        self.process = Some(process);
        Ok(())
    }

    pub(super) fn stop(&mut self) -> Result<()> {
        if let Some(mut process) = self.process.take() {
            process.stop("TERM", STOP_LIMIT)?;
        }
        Ok(())
    }

    pub(super) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    /// Returns the reply to a command.
    pub(super) fn send(&self, words: &[&str]) -> Result<String> {
        output(Command::new(redis_tool("redis-cli")?).args(["-p", &self.port.to_string()]).args(words))
    }
}

fn redis_tool(name: &str) -> Result<PathBuf> {
    program(&FOLDERS.map(PathBuf::from), name)
}
