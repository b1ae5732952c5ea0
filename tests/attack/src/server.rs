//! Runs the program in a separate process for each side.
//!
//! In: a project's files. Out: a running `terrane serve` on a loopback port, and the events of its log. Not here:
//! requests (`http`).

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value as Json;

use crate::caller::StateTemplate;
use crate::http::Client;

/// The time limit of a start, longer than any start takes on a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(120);
const START_TRIES: usize = 5;
/// The warning of a start that could not read the types of columns.
const UNDESCRIBED: &str = "warning[cube-not-asked]";
/// The first argument that makes the binary of the attack run as the program under attack.
pub const AS_PROGRAM: &str = "--as-program";

/// Files by their paths inside the project; a `.gz` is compressed when it is written.
pub type Files = BTreeMap<String, String>;

/// The files and programs that all servers of a run share.
#[derive(Debug)]
pub struct Stage {
    binary: PathBuf,
    folder: tempfile::TempDir,
    state: StateTemplate,
}

/// Settings of one server, as environment variables.
pub type Variables<'a> = &'a [(&'a str, &'a str)];

/// A running server. It is killed when it is dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    pub client: Client,
    log: Arc<Mutex<Vec<String>>>,
    folder: PathBuf,
}

impl Stage {
    /// Creates the stage. `binary` is the attack's own program, which can also serve.
    ///
    /// # Errors
    /// A folder cannot be created.
    pub fn new(binary: &Path) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let state = StateTemplate::create(&folder.path().join("state"))?;
        Ok(Stage { binary: binary.to_owned(), folder, state })
    }

    /// Starts the servers of two sides at once. On a busy machine, a server may fail to read the types of a cube's
    /// columns in time, which would be a difference between the sides. In this case both servers are restarted.
    ///
    /// # Errors
    /// A server does not start; the error quotes its output.
    pub fn serve_both(&self, sides: [&[&Files]; 2]) -> Result<[Server; 2]> {
        for _ in 0..START_TRIES {
            let servers = self.start_both(sides)?;
            if !servers.iter().any(Server::is_incomplete) {
                return Ok(servers);
            }
        }
        bail!("the warehouse did not describe all cubes in time")
    }

    fn start_both(&self, sides: [&[&Files]; 2]) -> Result<[Server; 2]> {
        let [left, right] = sides;
        let started = thread::scope(|scope| {
            let right = scope.spawn(|| self.serve("right", right));
            let left = self.serve("left", left);
            (left, right.join())
        });
        let (left, right) = started;
        Ok([left?, right.map_err(|_| anyhow::anyhow!("starting a server panicked"))??])
    }

    /// Starts servers over one project and one state database, each with variables of its own.
    ///
    /// # Errors
    /// A server does not start; the error quotes its output.
    pub fn serve_replicas(
        &self,
        prepare: impl Fn(&Path) -> Result<Files>,
        variables: &[Variables],
    ) -> Result<Vec<Server>> {
        for _ in 0..START_TRIES {
            let site = self.site("replicas")?;
            let files = prepare(&site.project)?;
            write_files(&site.project, &[&files])?;
            let servers: Vec<Server> =
                variables.iter().map(|variables| self.start(&site, variables)).collect::<Result<_>>()?;
            if !servers.iter().any(Server::is_incomplete) {
                return Ok(servers);
            }
        }
        bail!("the warehouse did not describe all cubes in time")
    }

    fn serve(&self, side: &str, files: &[&Files]) -> Result<Server> {
        let site = self.site(side)?;
        write_files(&site.project, files)?;
        self.start(&site, &[])
    }

    /// Creates an empty project and a state database.
    fn site(&self, name: &str) -> Result<Site> {
        let folder = self.folder.path().join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        // The last part of the path is the same on both sides, so that the name of the folder causes no difference.
        let project = folder.join("project");
        fs::create_dir_all(&project)?;
        let state_url = self.state.copy_to(&folder.join("state"))?;
        Ok(Site { folder, project, state_url })
    }

    fn start(&self, site: &Site, variables: Variables) -> Result<Server> {
        let mut command = Command::new(&self.binary);
        command.args([AS_PROGRAM, "serve", "--port", "0"]).arg(&site.project).current_dir(&site.project);
        command
            .env_clear()
            .env("SERVICE_STATE__URL", &site.state_url)
            .env("XDG_CACHE_HOME", self.folder.path().join("cache"));
        for (name, value) in [
            ("SERVICE_LOG_REQUESTS", "false"),
            ("SERVICE_LOG_QUERIES", "false"),
            ("SERVICE_WAREHOUSE__THREADS", "1"),
            ("SERVICE_WAREHOUSE__MAX_CONNECTIONS", "2"),
            ("SERVICE_SERVER__WORKERS", "1"),
            ("SERVICE_SERVER__HEADER_TIMEOUT_SECONDS", "600"),
        ] {
            command.env(name, value);
        }
        command.envs(variables.iter().copied());
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        Server::started(child, site.folder.clone())
    }
}

/// The folders of a server.
#[derive(Debug)]
struct Site {
    folder: PathBuf,
    project: PathBuf,
    state_url: String,
}

impl Server {
    fn started(mut child: Child, folder: PathBuf) -> Result<Server> {
        let stdout = child.stdout.take().context("no standard output")?;
        let stderr = child.stderr.take().context("no standard error")?;
        let log = Arc::new(Mutex::new(Vec::new()));
        let (address, started) = mpsc::channel();
        let lines = Arc::clone(&log);
        thread::spawn(move || follow(stdout, &lines, &address));
        let errors = Arc::clone(&log);
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                push(&errors, line);
            }
        });
        match started.recv_timeout(START_TIMEOUT) {
            Ok(address) => Ok(Server { child, client: Client::new(address), log, folder }),
            Err(_) => {
                let _ = child.kill();
                let _ = child.wait();
                let log = log.lock().map(|lines| lines.join("\n")).unwrap_or_default();
                bail!("the server did not start:\n{log}")
            }
        }
    }

    fn is_incomplete(&self) -> bool {
        self.log.lock().is_ok_and(|lines| lines.iter().any(|line| line.contains(UNDESCRIBED)))
    }

    /// Returns the log's lines since the last call, each cut off after 2,000 characters.
    pub fn take_log(&self) -> Vec<String> {
        self.log.lock().map(|mut lines| std::mem::take(&mut *lines)).unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Reads the address from the log record of the start and sends it to `address`. Collects the lines after this record.
fn follow(stdout: ChildStdout, log: &Mutex<Vec<String>>, address: &mpsc::Sender<SocketAddr>) {
    for line in BufReader::new(stdout).lines().map_while(Result::ok) {
        if let Ok(record) = serde_json::from_str::<Json>(&line)
            && record["event"] == "server_started"
            && let Some(Ok(found)) = record["address"].as_str().map(str::parse)
        {
            let _ = address.send(found);
        }
        push(log, line);
    }
}

fn push(log: &Mutex<Vec<String>>, line: String) {
    if let Ok(mut lines) = log.lock() {
        lines.push(line.chars().take(2_000).collect());
    }
}

fn write_files(project: &Path, files: &[&Files]) -> Result<()> {
    files.iter().flat_map(|files| files.iter()).try_for_each(|(name, text)| write_file(&project.join(name), text))
}

fn write_file(path: &Path, text: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    if path.extension().is_some_and(|extension| extension == "gz") {
        let mut encoder = GzEncoder::new(fs::File::create(path)?, Compression::fast());
        encoder.write_all(text.as_bytes())?;
        encoder.finish()?;
        return Ok(());
    }
    Ok(fs::write(path, text)?)
}
