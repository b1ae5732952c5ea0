//! The suites that run on a server of Spark Connect: those of every engine, at the address of the cluster.
//!
//! In: the URL of a server. Out: a line of the report for each suite; details go to the terminal. Deliberately absent:
//! cases, which are in `sdk/src/conformance`, `tests/system/projects/engines` and `tests/oracle`.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use super::ReportLine;
use super::client::{Client, Request};
use crate::command::run_shown;
use crate::context::Context;

/// The name of this engine in the comparison of dialects.
const ENGINE: &str = "spark-cluster";
/// The environment variable with the address of a server for tests.
const ADDRESS: &str = "TERRANE_TEST_SPARK_URL";

pub(super) struct Suites<'c> {
    context: &'c Context,
    /// The folder of the built programs.
    programs: PathBuf,
    folder: PathBuf,
    is_stopped: Arc<AtomicBool>,
}

impl<'c> Suites<'c> {
    /// Builds the programs of the suites.
    pub(super) fn build(context: &'c Context, is_stopped: Arc<AtomicBool>) -> Result<Self> {
        let mut build = context.cargo();
        // The whole workspace selects the same features as the tests, so nothing is compiled twice.
        build.args(["build", "--workspace", "--bin", "terrane-fuzz", "--bin", "terrane-spark-client"]);
        run_shown(build.args(["--example", "dialects"]))?;
        let target = context.target()?;
        let folder = target.join("dialects").join(ENGINE);
        fs::create_dir_all(&folder)?;
        Ok(Suites { context, programs: target.join("debug"), folder, is_stopped })
    }

    pub(super) fn client(&self, url: &str, connections: usize) -> Result<Client> {
        Client::start(&self.programs.join("terrane-spark-client"), url, connections)
    }

    /// Fails after Ctrl-C.
    pub(super) fn ensure_wanted(&self) -> Result<()> {
        ensure!(!self.is_stopped.load(Ordering::SeqCst), "stopped by a signal");
        Ok(())
    }

    /// Runs the cases of the dialect, which include time zones.
    pub(super) fn dialect(&self, url: &str) -> Result<ReportLine> {
        let cases = self.output(self.comparison().args(["cases", ENGINE]))?;
        let cases: Vec<Value> = serde_json::from_slice(&cases.stdout).context("the cases of the dialect")?;
        let mut client = self.client(url, 1)?;
        let version = client.ask(&Request::new("SELECT split(version(), ' ')[0]"))?["rows"][0][0].clone();
        let mut answers = Vec::new();
        for case in &cases {
            self.ensure_wanted()?;
            let answer = client.ask(&Request::new(case["sql"].as_str().unwrap_or_default()))?;
            answers.push(answer);
        }
        let engine = format!("Spark {} (cluster)", version.as_str().unwrap_or("of an unknown version"));
        let answers = json!({"engine": engine, "answers": answers});
        fs::write(self.folder.join(format!("{ENGINE}.json")), answers.to_string())?;
        let compared = self.output(self.comparison().arg("compare").arg(&self.folder))?;
        let details = String::from_utf8_lossy(&compared.stderr);
        let summary = details.lines().last().unwrap_or_default().to_owned();
        if !compared.status.success() {
            eprint!("{details}");
        }
        Ok(ReportLine::new(compared.status.success(), format!("cases of the dialect: {summary}")))
    }

    /// Runs the tests of the connector.
    pub(super) fn connector(&self, url: &str) -> Result<ReportLine> {
        self.tests("tests of the connector", &["--workspace", "--test", "spark", "--", "--test-threads=1"], url)
    }

    /// Runs the queries that every engine answers as DuckDB does.
    pub(super) fn queries(&self, url: &str) -> Result<ReportLine> {
        let arguments = ["--workspace", "--test", "system", "--", "spark_results_equal_those_of_duckdb", "--nocapture"];
        self.tests("queries of the engines", &arguments, url)
    }

    /// Runs the tests that build models and pre-aggregations, and read them.
    pub(super) fn builds(&self, url: &str) -> Result<ReportLine> {
        let arguments = ["--workspace", "--test", "system", "--", "built_on_spark", "--test-threads=1"];
        self.tests("models and pre-aggregations", &arguments, url)
    }

    fn tests(&self, name: &str, arguments: &[&str], url: &str) -> Result<ReportLine> {
        let ran = self.output(self.context.cargo().arg("test").args(arguments).env(ADDRESS, url))?;
        let (stdout, stderr) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        if !ran.status.success() {
            eprint!("{stdout}{stderr}");
        }
        let counts = stderr.lines().find(|line| line.starts_with("spark: ")).or_else(|| {
            stdout.lines().find(|line| line.starts_with("test result: ") && !line.contains(" 0 passed; 0 failed"))
        });
        Ok(ReportLine::new(ran.status.success(), format!("{name}: {}", counts.unwrap_or("no test ran"))))
    }

    /// Compares random queries with the oracle.
    pub(super) fn random_queries(&self, url: &str, cases: usize, seed: u64) -> Result<ReportLine> {
        let started = Instant::now();
        let mut fuzz = Command::new(self.programs.join("terrane-fuzz"));
        fuzz.args(["--spark", url, "--cases", &cases.to_string(), "--seed", &seed.to_string()]);
        let ran = self.output(fuzz.args(["--differences", "50"]))?;
        let text = String::from_utf8_lossy(&ran.stdout);
        let count = |name: &str| text.lines().rev().find_map(|line| line.strip_prefix(name)).unwrap_or("?").trim();
        if !ran.status.success() {
            eprint!("{text}{}", String::from_utf8_lossy(&ran.stderr));
        }
        let (answered, differences) = (count("answered"), count("differences"));
        let seconds = started.elapsed().as_secs();
        let summary = format!("{cases} from seed {seed}: answered {answered}, differences {differences}, {seconds} s");
        Ok(ReportLine::new(ran.status.success(), format!("random queries: {summary}")))
    }

    /// Returns the command of the program that prints cases of dialects and compares answers.
    fn comparison(&self) -> Command {
        Command::new(self.programs.join("examples/dialects"))
    }

    /// Runs a program to its end, or until Ctrl-C.
    fn output(&self, command: &mut Command) -> Result<Output> {
        self.ensure_wanted()?;
        let (out, err) = (self.folder.join("stdout"), self.folder.join("stderr"));
        command.stdin(Stdio::null()).stdout(fs::File::create(&out)?).stderr(fs::File::create(&err)?);
        let mut child = command.spawn().with_context(|| format!("starting {command:?}"))?;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(Output { status, stdout: fs::read(&out)?, stderr: fs::read(&err)? });
            }
            if self.ensure_wanted().is_err() {
                child.kill()?;
                child.wait()?;
                bail!("stopped by a signal");
            }
            thread::sleep(Duration::from_millis(100));
        }
    }
}
