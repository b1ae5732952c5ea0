//! Tests asynchronous queries on real servers: jobs after servers were killed, the rate of submissions, and the memory
//! that a large result needs.
//!
//! In: the program, a state database, amounts. Out: a report for each test. The program `terrane-jobs` and the tests
//! call the same functions. Not here: starting the state database.

#![allow(clippy::disallowed_methods, reason = "what is measured here is time itself")]

pub mod kills;
pub mod memory;
pub mod submissions;

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::{Answer, Program, Scratch, Unheard, request_with};

const JOBS: &str = "/api/v1/query/async";
const PATIENCE: Duration = Duration::from_secs(300);

/// A project whose servers share a state database and a folder of results.
#[derive(Debug)]
pub struct World<'a> {
    binary: &'a str,
    state_url: String,
    project: Scratch,
}

impl<'a> World<'a> {
    /// Creates a project. `settings` are lines of `service_project.yml`, and `dimensions` are lines of the cube `t`.
    fn new(binary: &'a str, state_url: &str, settings: &str, dimensions: &str) -> Self {
        let settings = format!(
            "name: jobs\nsecurity: {{anonymous: {{scopes: [read]}}}}\n\
             jobs: {{max_open: 1000000, max_open_per_caller: 1000000, min_free_disk_mb: 0}}\n\
             log: {{requests: false, queries: false}}\n{settings}"
        );
        let cube = format!(
            "cubes:\n  - name: t\n    sql_table: t\n    measures:\n      - {{name: count, type: count}}\n    \
             dimensions:\n      - {{name: id, type: number, sql: id, primary_key: true}}\n{dimensions}"
        );
        let project = Scratch::empty().with("service_project.yml", &settings).with("cubes/t.yml", &cube);
        World { binary, state_url: state_url.to_owned(), project }
    }

    fn command(&self, call: &[&str]) -> Program {
        let program = Program::new(self.binary, call, self.project.path());
        program.variable("SERVICE_STATE__URL", &self.state_url)
    }

    fn log(&self) -> PathBuf {
        self.project.path().join("servers.log")
    }

    /// Starts a server that appends its log to the log of the other servers.
    fn serve(&self) -> Result<Unheard> {
        let log: File = OpenOptions::new().create(true).append(true).open(self.log())?;
        self.command(&["serve"]).serve_unheard(Stdio::from(log), Stdio::inherit())
    }

    /// Returns the jobs that `terrane jobs list` shows, at most 10,000.
    fn jobs(&self, arguments: &[&str]) -> Result<Vec<Value>> {
        let listed = self.command(&["jobs", "list"]).arguments(&["--json", "--limit", "10000"]).arguments(arguments);
        let output = listed.run()?;
        ensure!(output.code == Some(0), "{}", output.stderr);
        output.stdout.lines().map(|line| serde_json::from_str(line).context("a job")).collect()
    }

    /// Returns the number of files in the folder of results, including those that are being written.
    fn result_files(&self) -> Result<usize> {
        Ok(fs::read_dir(self.project.path().join(".terrane/jobs"))?.count())
    }
}

/// Submits a query with an idempotency key, and returns the id of the job.
fn submit(address: SocketAddr, key: &str, query: &Value) -> Result<String> {
    let headers = [("Idempotency-Key", key)];
    let answer = request_with(address, &headers, "POST", JOBS, Some(&query.to_string()))?;
    // If the job has ended, a repeated submission has the status 200.
    ensure!(matches!(answer.status, 200 | 202), "{}: {}", answer.status, answer.body);
    id(&answer)
}

fn id(answer: &Answer) -> Result<String> {
    Ok(answer.json()?["job_id"].as_str().context("no `job_id`")?.to_owned())
}

fn state(address: SocketAddr, id: &str) -> Result<Value> {
    let answer = crate::request(address, "GET", &format!("{JOBS}/{id}"), None)?;
    ensure!(answer.status == 200, "{id}: {}: {}", answer.status, answer.body);
    answer.json()
}

/// Reads a page of a result and calls `piece` for each received piece of its body. Returns the head.
fn read_result(
    address: SocketAddr,
    accept: &str,
    id: &str,
    page: &str,
    mut piece: impl FnMut(&[u8]),
) -> Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(10))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    // With HTTP/1.0, the body has no chunks and ends with the connection.
    write!(stream, "GET {JOBS}/{id}/result{page} HTTP/1.0\r\nHost: {address}\r\nAccept: {accept}\r\n\r\n")?;
    let (mut buffer, mut begun, mut head) = (vec![0; 64 * 1_024], Vec::new(), None);
    loop {
        let count = stream.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        let part = &buffer[..count];
        if head.is_some() {
            piece(part);
            continue;
        }
        begun.extend_from_slice(part);
        if let Some(end) = begun.windows(4).position(|four| four == b"\r\n\r\n") {
            head = Some(String::from_utf8(begun[..end].to_vec())?);
            piece(&begun[end + 4..]);
        }
    }
    let head = head.context("an answer without an empty line")?;
    ensure!(head.contains(" 200 "), "{id}: {head}");
    Ok(head)
}
