//! Measures the effect of a hook that loops for some callers on other callers.
//!
//! In: a program, callers, a time. Out: the waiting times of callers whom the hook answers, first alone, then beside
//! callers for whom the hook loops until it is stopped. Each caller of the second kind has its own credential, so
//! that the circuit breaker of one caller never opens because of another caller. Not here: the acceptable ratio.

use std::fmt;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value as Json, json};

use super::load::{self, Crowd, LoadReport};
use crate::{Program, Scratch, path};

/// The project. Its tables have so many rows that a query takes some time.
const SETTINGS: &str = "name: looping
warehouse:
  type: duckdb
  init:
    - CREATE TABLE calm AS SELECT range AS id, range % 50 AS kind, range * 7 % 1000 AS amount FROM range(200000)
    - CREATE TABLE wild AS SELECT * FROM calm
";
const CUBES: &str = "cubes:
  - {name: calm, sql_table: calm, dimensions: [{name: kind, type: number, sql: kind}], measures: [{name: revenue, type: sum, sql: amount}]}
  - {name: wild, sql_table: wild, dimensions: [{name: kind, type: number, sql: kind}], measures: [{name: revenue, type: sum, sql: amount}]}
";
const CALM: &[&str] = &[r#"{"measures":["calm.revenue"],"dimensions":["calm.kind"]}"#];
const WILD: &[&str] = &[r#"{"measures":["wild.revenue"],"dimensions":["wild.kind"]}"#];

/// The pause between requests of callers for whom the hook loops. Only the hook then delays other callers.
const PAUSE: Duration = Duration::from_millis(100);

/// The numbers of callers, and the duration.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// The number of callers whom the hook answers.
    pub clients: usize,
    /// The number of callers for whom the hook loops.
    pub looping: usize,
    pub duration: Duration,
    /// True if the hook is required and enforced. Otherwise its decisions are only monitored.
    pub is_required: bool,
}

#[derive(Debug)]
pub struct LoopingReport {
    pub alone: LoadReport,
    pub beside: LoadReport,
    /// The report of the callers for whom the hook loops.
    pub looping: LoadReport,
}

/// Starts a server with a looping hook, and measures the callers.
///
/// # Errors
/// A file cannot be created, or the server cannot be started.
pub fn run(binary: &str, settings: Settings) -> Result<LoopingReport> {
    let component = path(".prepared/components/examples/policy-probe.wasm").canonicalize();
    let component = component.context("run `cargo xtask components` first")?;
    let (enforcement, mode) = if settings.is_required { ("required", "protect") } else { ("optional", "monitor") };
    let plugin = json!({
        "id": "policy-probe", "role": "governance", "source": component, "enforcement": enforcement, "mode": mode,
        "config": {"fault": "loop", "only_for": "wild"},
    });
    let project = Scratch::empty()
        .with("service_project.yml", &format!("{SETTINGS}plugins: [{plugin}]\n"))
        .with("cubes/two.yml", CUBES);
    let state = format!("sqlite://{}", project.path().join("state.db").display());
    let program = |call: &[&str]| Program::new(binary, call, project.path()).variable("SERVICE_STATE__URL", &state);
    let key = |name: &str| -> Result<String> {
        let made = program(&["auth", "create-key"]).arguments(&["--name", name, "--scopes", "read", "--json"]).run()?;
        let made: Json = serde_json::from_str(&made.stdout).with_context(|| made.stderr.clone())?;
        Ok(made["key"].as_str().context("no key")?.to_owned())
    };
    let calm = key("calm")?;
    let wild = (0..settings.looping).map(|number| key(&format!("wild-{number}"))).collect::<Result<Vec<_>>>()?;
    let server = program(&["serve"]).serve_unheard(Stdio::null(), Stdio::inherit())?;
    let (address, process) = (server.address, server.child.id());
    let ask = |bearer: &str, bodies, clients, pause| {
        load::run(address, process, Crowd { bearer, path: load::QUERIES, bodies, clients, pause }, settings.duration)
    };
    let others = || ask(&calm, CALM, settings.clients, Duration::ZERO);
    // The first queries create values that later queries reuse, so they are not measured.
    drop(others());
    let alone = others();
    let (beside, looping) = thread::scope(|scope| {
        let ask = &ask;
        let wild: Vec<_> = wild.iter().map(|key| scope.spawn(move || ask(key, WILD, 1, PAUSE))).collect();
        let beside = others();
        let mut looping = LoadReport::default();
        for report in wild.into_iter().filter_map(|asking| asking.join().ok()) {
            report.answers.into_iter().for_each(|(status, count)| *looping.answers.entry(status).or_default() += count);
            looping.waits.extend(report.waits);
        }
        looping.waits.sort_unstable();
        (beside, looping)
    });
    let code = server.terminate()?;
    anyhow::ensure!(code == Some(0), "the server ended with {code:?}");
    Ok(LoopingReport { alone, beside, looping })
}

impl LoopingReport {
    /// Returns the waiting time at a percentile beside the looping hook, divided by the waiting time without it.
    pub fn ratio(&self, hundredths: usize) -> f64 {
        let [beside, alone] = [&self.beside, &self.alone].map(|report| report.percentile(hundredths).as_secs_f64());
        beside / alone.max(1e-9)
    }
}

impl fmt::Display for LoopingReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "others       alone      beside the loop   ratio")?;
        for (name, hundredths) in [("p50", 50), ("p90", 90), ("p99", 99)] {
            let [alone, beside] =
                [&self.alone, &self.beside].map(|report| report.percentile(hundredths).as_secs_f64() * 1_000.0);
            writeln!(f, "{name:8} {alone:7.2} ms {beside:14.2} ms {:10.2}", self.ratio(hundredths))?;
        }
        writeln!(f, "others, alone: {:?}; beside: {:?}", self.alone.answers, self.beside.answers)?;
        writeln!(f, "those for whom it loops: {:?}", self.looping.answers)
    }
}
