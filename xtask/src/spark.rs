//! `cargo xtask dialects --engine spark-cluster`: runs every suite of Spark on a real cluster, through Spark Connect.
//!
//! In: the number of random queries, and the choice of faults. Out: a report, and failure if an answer differs without a
//! named exception. The cluster runs on this machine and ends with the command, also after a failure or Ctrl-C.
//! Deliberately absent: a step of `cargo xtask test`, which runs the same suites on Sail.

mod client;
mod faults;
mod servers;
mod suites;

use std::fs;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};

use self::servers::Servers;
use self::suites::Suites;
use crate::command::is_installed;
use crate::context::{Context, shown};
use crate::{databases, python};

/// One line of the report.
struct ReportLine {
    is_passed: bool,
    text: String,
}

impl ReportLine {
    fn new(is_passed: bool, text: impl Into<String>) -> Self {
        let line = ReportLine { is_passed, text: text.into() };
        println!("{}  {}", if line.is_passed { "ok  " } else { "FAIL" }, line.text);
        line
    }
}

/// The choice of the parts to run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parts {
    /// The number of random queries.
    pub(crate) cases: usize,
    pub(crate) seed: u64,
    pub(crate) with_suites: bool,
    pub(crate) with_faults: bool,
}

pub(crate) fn run(context: &Context, parts: Parts) -> Result<ExitCode> {
    if !is_installed("java") {
        databases::prepare();
        ensure!(is_installed("java"), "Spark needs Java 17 or newer");
    }
    let is_stopped = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&is_stopped);
    ctrlc::set_handler(move || flag.store(true, Ordering::SeqCst)).context("listening for Ctrl-C")?;
    let requirements = context.root.join("xtask/spark-cluster/requirements.txt");
    let venv = context.target()?.join("tools/spark-cluster");
    let python = python::environment(context, &venv, &requirements, "Apache Spark, about 460 MB")?;
    let suites = Suites::build(context, Arc::clone(&is_stopped))?;
    let folder = context.target()?.join("spark-cluster");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    let started = Instant::now();
    let mut servers = Servers::start(&python, &folder)?;
    println!("ready a master, two workers and a Connect server after {} s", started.elapsed().as_secs());
    let lines = run_parts(&suites, &mut servers, parts);
    servers.stop()?;
    let lines = lines?;
    println!("\nSpark cluster, after {} s", started.elapsed().as_secs());
    for line in &lines {
        println!("  {} {}", if line.is_passed { "ok  " } else { "FAIL" }, line.text);
    }
    if lines.iter().all(|line| line.is_passed) {
        return Ok(ExitCode::SUCCESS);
    }
    println!("the logs are in {}", shown(context, &folder));
    Ok(ExitCode::FAILURE)
}

fn run_parts(suites: &Suites<'_>, servers: &mut Servers, parts: Parts) -> Result<Vec<ReportLine>> {
    let mut lines = Vec::new();
    if parts.with_suites {
        lines.push(suites.dialect(&servers.url())?);
        lines.push(suites.connector(&servers.url())?);
        lines.push(suites.queries(&servers.url())?);
        lines.push(suites.builds(&servers.url())?);
        lines.push(suites.random_queries(&servers.url(), parts.cases, parts.seed)?);
    }
    if parts.with_faults {
        lines.extend(faults::run(suites, servers)?);
    }
    Ok(lines)
}
