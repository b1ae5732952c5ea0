//! The servers of a Spark cluster: one master, two workers with an executor of two cores each, and a Connect server.
//!
//! In: the Python environment with Spark, and a folder. Out: running servers on free ports. They are stopped when their
//! value is dropped, and on Linux also when this process ends for any reason. Deliberately absent: statements.

use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::command::is_installed;
use crate::process::{Process, free_port, wait_until};

const WORKERS: usize = 2;
const READY_LIMIT: Duration = Duration::from_secs(180);
const STOP_LIMIT: Duration = Duration::from_secs(15);

/// The settings of the Connect server. With all heaps, the cluster stays below 6 GB.
const SETTINGS: [&str; 8] = [
    "spark.executor.memory=768m",
    "spark.executor.cores=2",
    "spark.cores.max=4",
    "spark.sql.shuffle.partitions=4",
    "spark.driver.host=127.0.0.1",
    "spark.connect.grpc.binding.address=127.0.0.1",
    // A client that ends without a message loses its statements after this time; the default is 5 minutes.
    "spark.connect.execute.manager.detachedTimeout=20s",
    "spark.ui.retainedJobs=200",
];

pub(super) struct Servers {
    /// Dropped before the workers, so that it ends before them.
    pub(super) connect: Process,
    pub(super) workers: Vec<Process>,
    _master: Process,
    spark: Spark,
    port: u16,
    /// The port of the REST interface that describes executors.
    pub(super) monitoring_port: u16,
}

/// The installed Spark, and the parts that all commands share.
struct Spark {
    home: PathBuf,
    folder: PathBuf,
    master: String,
}

impl Servers {
    pub(super) fn start(python: &Path, folder: &Path) -> Result<Self> {
        let master_port = free_port()?;
        let master = format!("spark://127.0.0.1:{master_port}");
        let spark = Spark { home: home(python)?, folder: folder.to_path_buf(), master };
        let mut command = spark.daemon("deploy.master.Master")?;
        command.args(["--host", "127.0.0.1", "--port", &master_port.to_string()]);
        let mut master = Process::start(command, &folder.join("master.log"))?;
        wait_for_port("the master", &mut master, master_port)?;
        let workers = (0..WORKERS).map(|number| spark.start_worker(number)).collect::<Result<_>>()?;
        let (port, monitoring_port) = (free_port()?, free_port()?);
        let connect = spark.start_connect(port, monitoring_port)?;
        Ok(Servers { connect, workers, _master: master, spark, port, monitoring_port })
    }

    pub(super) fn url(&self) -> String {
        format!("sc://127.0.0.1:{}", self.port)
    }

    /// Ends a worker and its executors without a message, as the loss of a machine does.
    pub(super) fn kill_worker(&mut self, number: usize) -> Result<()> {
        let id = self.workers[number].id().to_string();
        let executors = Command::new("ps").args(["-o", "pid=", "--ppid", &id]).output()?;
        self.workers[number].stop("KILL", STOP_LIMIT)?;
        for executor in String::from_utf8_lossy(&executors.stdout).split_whitespace() {
            Command::new("kill").args(["-KILL", executor]).status().context("sending a signal")?;
        }
        Ok(())
    }

    pub(super) fn restart_worker(&mut self, number: usize) -> Result<()> {
        self.workers[number] = self.spark.start_worker(number)?;
        Ok(())
    }

    /// Starts another Connect server on the same port. Its tables and sessions are lost.
    pub(super) fn restart_connect(&mut self) -> Result<()> {
        self.connect = self.spark.start_connect(self.port, self.monitoring_port)?;
        Ok(())
    }

    /// Ends all servers, the Connect server first.
    pub(super) fn stop(mut self) -> Result<()> {
        self.connect.stop("TERM", STOP_LIMIT)?;
        for worker in &mut self.workers {
            worker.stop("TERM", STOP_LIMIT)?;
        }
        Ok(())
    }
}

impl Spark {
    fn start_worker(&self, number: usize) -> Result<Process> {
        let work = self.folder.join(format!("worker-{number}"));
        let port = free_port()?;
        let mut command = self.daemon("deploy.worker.Worker")?;
        command.args(["--host", "127.0.0.1", "--port", &port.to_string()]);
        command.args(["--cores", "2", "--memory", "1g", "--work-dir"]).arg(work).arg(&self.master);
        let mut worker = Process::start(command, &self.folder.join(format!("worker-{number}.log")))?;
        wait_for_port("a worker", &mut worker, port)?;
        Ok(worker)
    }

    fn start_connect(&self, port: u16, monitoring_port: u16) -> Result<Process> {
        let mut command = self.program("spark-submit");
        command.args(["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]);
        command.args(["--master", &self.master, "--driver-memory", "2g"]);
        let ports = [
            format!("spark.connect.grpc.binding.port={port}"),
            format!("spark.ui.port={monitoring_port}"),
            format!("spark.sql.warehouse.dir={}", self.folder.join("tables").display()),
        ];
        for setting in SETTINGS.iter().copied().chain(ports.iter().map(String::as_str)) {
            command.args(["--conf", setting]);
        }
        let mut connect = Process::start(
            {
                command.arg("spark-internal");
                command
            },
            &self.folder.join("connect.log"),
        )?;
        wait_for_port("the Connect server", &mut connect, port)?;
        Ok(connect)
    }

    /// Returns the command of a server of the cluster, with a free port for its web interface.
    fn daemon(&self, class: &str) -> Result<Command> {
        let mut command = self.program("spark-class");
        // For the Connect server, this variable would limit the memory of the driver.
        command.env("SPARK_DAEMON_MEMORY", "256m");
        command.arg(format!("org.apache.spark.{class}")).args(["--webui-port", &free_port()?.to_string()]);
        Ok(command)
    }

    /// Returns a command for a script of Spark, which replaces itself by Java.
    fn program(&self, script: &str) -> Command {
        let path = self.home.join("bin").join(script);
        let mut command = match is_installed("setpriv") {
            true => {
                let mut command = Command::new("setpriv");
                command.args(["--pdeathsig", "KILL", "--"]).arg(path);
                command
            }
            false => Command::new(path),
        };
        command.env("SPARK_HOME", &self.home).env("SPARK_LOCAL_IP", "127.0.0.1").env_remove("SPARK_DAEMON_MEMORY");
        command.current_dir(&self.folder);
        command
    }
}

/// Returns the folder of Spark in a Python environment.
fn home(python: &Path) -> Result<PathBuf> {
    let libraries = python.parent().and_then(Path::parent).context("not an environment")?.join("lib");
    let versions = fs::read_dir(&libraries).with_context(|| libraries.display().to_string())?.flatten();
    let mut homes = versions.map(|version| version.path().join("site-packages/pyspark"));
    homes.find(|home| home.join("bin/spark-class").is_file()).context("the package pyspark has no servers")
}

fn wait_for_port(name: &str, process: &mut Process, port: u16) -> Result<()> {
    wait_until(&format!("{name} accepts connections"), READY_LIMIT, || {
        process.ensure_runs()?;
        Ok(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok())
    })?;
    Ok(())
}
