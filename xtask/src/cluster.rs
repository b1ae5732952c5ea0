//! `cargo xtask cluster`: runs three replicas behind a balancer, under a load and a script of faults.
//!
//! In: the duration and the warehouse. Out: a report, and failure if an answer was wrong, a request failed without a
//! fault that explains it, or a promise about replicas was broken. State is in PostgreSQL, the cache in Redis; all of
//! it runs on this machine and ends with the command. It is not a step of `cargo xtask test`, because a run takes
//! minutes.

mod balancer;
mod client;
mod faults;
mod load;
mod questions;
mod replicas;
mod report;
mod running;
mod services;
mod usage;
mod warehouse;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use self::balancer::Balancer;
use self::load::Load;
use self::questions::Question;
use self::replicas::Settings;
use self::report::Fault;
use self::running::{Cluster, READY_LIMIT};
use self::services::{Postgres, Redis};
use self::warehouse::{Program, Warehouse};
use crate::command::run_shown;
use crate::context::Context;

const REPLICAS: usize = 3;
/// The duration of the load before the first fault, in which the work of the servers is measured.
const STEADY: Duration = Duration::from_secs(20);
/// The pause between two faults.
const CALM: Duration = Duration::from_secs(3);
/// The largest number of violations that are printed.
const MAX_VIOLATIONS: usize = 20;

#[derive(clap::Args)]
pub(crate) struct ClusterArguments {
    /// The duration of the load. The script of faults runs once, and again as long as this time is not over.
    #[arg(long, default_value_t = 2)]
    minutes: u64,
    /// The number of clients. Half of them reuse their connections.
    #[arg(long, default_value_t = 8)]
    clients: usize,
    /// The warehouse of all replicas.
    #[arg(long, value_enum, default_value_t = warehouse::Kind::Postgres)]
    warehouse: warehouse::Kind,
    /// Use this program instead of building one.
    #[arg(long)]
    program: Option<PathBuf>,
}

pub(crate) fn run(context: &Context, arguments: &ClusterArguments) -> Result<ExitCode> {
    let program = match &arguments.program {
        Some(program) => {
            let path = program.canonicalize().with_context(|| program.display().to_string())?;
            Program { path, components: Vec::new() }
        }
        None => build(context)?,
    };
    // PostgreSQL, which may run as another user, must be able to enter the folder.
    let folder = tempfile::Builder::new().prefix("terrane-cluster-").permissions(readable()).tempdir()?;
    let violations = run_in(context, arguments, &program, folder.path())?;
    for violation in violations.iter().take(MAX_VIOLATIONS) {
        println!("  violated: {violation}");
    }
    println!(
        "verdict: {}",
        if violations.is_empty() { "every rule holds".to_owned() } else { format!("{} violations", violations.len()) }
    );
    if violations.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    println!("the logs are in {}", folder.keep().display());
    Ok(ExitCode::FAILURE)
}

fn readable() -> std::fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o755)
}

/// Builds the program as `cargo xtask demo` does.
fn build(context: &Context) -> Result<Program> {
    crate::set_up(context)?;
    println!("      building the server …");
    run_shown(context.cargo().args(["build", "--workspace", "--bin", "terrane"]))?;
    let path = context.target()?.join("debug/terrane");
    Ok(Program { path, components: vec![context.prepared.join("components")] })
}

/// Starts the cluster, runs the load with the faults, and returns the violations.
fn run_in(context: &Context, arguments: &ClusterArguments, program: &Program, folder: &Path) -> Result<Vec<String>> {
    let warehouse = Warehouse::start(context, arguments.warehouse, program, folder)?;
    let (state, redis) = (Postgres::start(&folder.join("state"))?, Redis::start(&folder.join("redis"))?);
    let settings = Settings {
        program: program.path.clone(),
        project: warehouse.project.clone(),
        logs: replicas::logs(folder)?,
        variables: variables(&state, &redis, &warehouse),
    };
    let (_, key) = settings.create_key("cluster")?;
    let questions = reference_answers(&settings, &key)?;
    let replicas = (0..REPLICAS).map(|number| settings.start(number, &[])).collect::<Result<Vec<_>>>()?;
    let balancer = Balancer::start(&replicas.iter().map(|replica| replica.port).collect::<Vec<_>>())?;
    let load = Load::new(balancer.port, &key, &questions);
    let (settings, balancer, clients) = (&settings, &balancer, arguments.clients);
    let key = key.clone();
    let cluster =
        Cluster { settings, replicas, balancer, state, redis, warehouse, load: &load, key, clients, round: 0 };
    cluster.wait_until_all_are_ready(READY_LIMIT)?;
    println!("ready: {REPLICAS} replicas, {} questions, {clients} clients", questions.len());
    let started = Instant::now();
    let (usage, mut faults) = run_under_load(cluster, Duration::from_secs(arguments.minutes * 60))?;
    Ok(print_report(&load, &usage, &mut faults, started.elapsed()))
}

fn variables(state: &Postgres, redis: &Redis, warehouse: &Warehouse) -> Vec<(&'static str, String)> {
    vec![
        ("SERVICE_STATE__URL", state.url()),
        ("SERVICE_CACHE__URL", redis.url()),
        // Without an invalidation, rows stay valid for longer than any run.
        ("SERVICE_CACHE__TTL_SECONDS", "86400".to_owned()),
        ("SERVICE_PRE_AGGREGATIONS__ENABLED", warehouse.has_preaggregations().to_string()),
        ("SERVICE_JOBS__MIN_FREE_DISK_MB", "0".to_owned()),
        ("SERVICE_JOBS__MAX_OPEN_PER_CALLER", "1000".to_owned()),
    ]
}

/// Computes the right answers by one server without a cache and without pre-aggregations.
fn reference_answers(settings: &Settings, key: &str) -> Result<Vec<Question>> {
    let variables = [("SERVICE_CACHE__ENABLED", "false"), ("SERVICE_PRE_AGGREGATIONS__ENABLED", "false")];
    let mut reference = settings.start(REPLICAS, &variables)?;
    let questions = questions::answer(&mut reference.client(key));
    reference.terminate()?;
    questions
}

/// Runs the script while the clients send requests, and returns after the last answer.
fn run_under_load(mut cluster: Cluster<'_>, duration: Duration) -> Result<(Vec<String>, Vec<Fault>)> {
    let load = cluster.load;
    thread::scope(|scope| {
        for number in 0..cluster.clients as u64 {
            scope.spawn(move || load.run_client(number));
        }
        let result = run_script(&mut cluster, duration);
        // Clients also end if the script fails.
        load.is_over.store(true, Ordering::Relaxed);
        result
    })
}

/// Runs the script of faults at least once, and repeats it until the time has passed. Returns lines with the work of
/// the servers before the first fault, and the faults.
fn run_script(cluster: &mut Cluster<'_>, duration: Duration) -> Result<(Vec<String>, Vec<Fault>)> {
    let started = Instant::now();
    // The first queries fill the caches.
    thread::sleep(CALM);
    let (count, before) = (cluster.load.count(), cluster.usage()?);
    thread::sleep(STEADY);
    let usage = cluster.usage()?.lines_since(&before, cluster.load.count() - count);
    let mut faults = Vec::new();
    while cluster.round == 0 || started.elapsed() < duration {
        for fault in faults::script(cluster.warehouse.postgres.is_some()) {
            let fault = fault(cluster)?;
            println!("      {} at {} s", fault.name, started.elapsed().as_secs());
            faults.push(fault);
            thread::sleep(CALM);
        }
        cluster.round += 1;
    }
    Ok((usage, faults))
}

/// Prints the report and returns the violations.
fn print_report(load: &Load<'_>, usage: &[String], faults: &mut [Fault], duration: Duration) -> Vec<String> {
    let samples = load.samples.lock().map(|samples| samples.clone()).unwrap_or_default();
    println!("\n{} requests in {} s", samples.len(), duration.as_secs());
    for line in report::lines(&samples) {
        println!("  {line}");
    }
    println!("  sent again on a new connection: {}", load.resent.load(Ordering::Relaxed));
    println!("for 1,000 requests, before the first fault:");
    for line in usage {
        println!("  {line}");
    }
    println!("faults:");
    for fault in faults.iter_mut() {
        let line = fault.evaluate(&samples);
        println!("  {} {line}", if fault.violations.is_empty() { "ok  " } else { "FAIL" });
    }
    let mut violations = report::calm_violations(&samples, faults);
    violations
        .extend(faults.iter().flat_map(|fault| fault.violations.iter().map(|rule| format!("{}: {rule}", fault.name))));
    violations
}
