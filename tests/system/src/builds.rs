//! Kills servers at random moments while they build pre-aggregations and while rows change.
//!
//! In: rounds and replicas over a state database and rows. Out: numbers, and each violation of four promises. An
//! acknowledged build succeeds, or a later build replaces it. A table has the rows of one moment, which is never before
//! the moment of the previous table. After an acknowledged invalidation, no answer has older rows. No table remains
//! that is unknown to the state database. Not here: starting database servers.

#![allow(clippy::disallowed_methods, reason = "the moments of kills are real time")]

mod clients;
mod rows;

use std::collections::BTreeSet;
use std::fmt;
use std::net::SocketAddr;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use terrane_app::ports::preaggregations::{BuildState, PreaggregationState as _, RollupBuild};
use terrane_store::StateStore;

use crate::engines::Redis;
use crate::soak::random::Random;
use crate::{Program, Scratch, Unheard, request};
use clients::Clients;
pub use rows::Rows;

/// The time limit of the last builds. It is longer than the lease of a killed builder and the builds after it.
const DRAIN: Duration = Duration::from_secs(240);
const MAX_FAULTS: usize = 20;

/// The settings of a run: the number of rounds, the servers, and their databases.
#[derive(Debug)]
pub struct BuildKills<'a> {
    pub binary: &'a str,
    pub state_url: &'a str,
    pub rows: Rows<'a>,
    pub rounds: u64,
    /// The number of servers that share one state database.
    pub replicas: usize,
    pub seed: u64,
}

/// The counts and faults of a run.
#[derive(Debug, Default)]
pub struct BuildReport {
    pub rounds: u64,
    pub kills: u64,
    /// The number of acknowledged requests for builds. Several requests may lead to one build.
    pub requested: usize,
    pub builds: usize,
    pub published: u64,
    pub invalidations: usize,
    pub answers: usize,
    pub faults: Vec<String>,
    pub duration: Duration,
}

/// A project whose servers share a state database, rows and a result cache.
struct World<'a> {
    kills: &'a BuildKills<'a>,
    project: Scratch,
    key: String,
    /// The shared cache, which runs as long as the world. If it is `None`, each server has only its own cache.
    _redis: Option<Redis>,
}

impl BuildKills<'_> {
    /// Kills servers for the configured number of rounds, then waits for all builds and checks them.
    ///
    /// # Errors
    /// A server does not start, or does not answer at the end.
    pub fn run(&self) -> Result<BuildReport> {
        let world = World::new(self)?;
        let (mut random, started) = (Random::new(self.seed), Instant::now());
        let clients = Clients::new(&self.rows, world.project.path(), &world.key);
        let mut servers: Vec<Option<Unheard>> = (0..self.replicas).map(|_| None).collect();
        let mut report = BuildReport { rounds: self.rounds, ..BuildReport::default() };
        world.start_missing(&mut servers)?;
        wait_until_built(addresses(&servers)[0])?;
        for round in 0..self.rounds {
            world.start_missing(&mut servers)?;
            let addresses = addresses(&servers);
            addresses.iter().for_each(|address| clients.check_start(*address));
            let victim = random.below(servers.len() + 1);
            // A worker looks for builds once a second.
            let pause = Duration::from_millis(random.below(1_600) as u64);
            clients.while_running(round, &addresses, || {
                thread::sleep(pause);
                for (number, server) in servers.iter_mut().enumerate() {
                    // If the number is greater than that of the last server, all servers are killed.
                    if (number == victim || victim == self.replicas)
                        && let Some(mut killed) = server.take()
                    {
                        let _ = killed.child.kill();
                        let _ = killed.child.wait();
                        report.kills += 1;
                    }
                }
            });
        }
        world.start_missing(&mut servers)?;
        let address = addresses(&servers)[0];
        wait_until_built(address)?;
        report.published = status(address)?["generation"].as_u64().unwrap_or_default();
        for server in servers.into_iter().flatten() {
            server.terminate()?;
        }
        let observed = clients.observations();
        (report.requested, report.invalidations, report.answers) =
            (observed.requested, observed.invalidations, observed.answers);
        report.faults = observed.faults;
        let mut more = tokio::runtime::Runtime::new()?.block_on(world.check_state(&observed.builds))?;
        report.builds = observed.builds.len();
        report.faults.append(&mut more);
        report.faults.truncate(MAX_FAULTS);
        Ok(BuildReport { duration: started.elapsed(), ..report })
    }
}

impl<'a> World<'a> {
    fn new(kills: &'a BuildKills<'a>) -> Result<Self> {
        let redis = if Redis::missing().is_none() { Some(Redis::start()?) } else { None };
        let cache = redis.as_ref().map(|redis| format!("cache: {{url: \"{}\"}}\n", redis.url())).unwrap_or_default();
        let settings = format!(
            "name: kills\nsecurity: {{anonymous: {{scopes: [read]}}}}\npre_aggregations: {{enabled: true}}\n{cache}{}",
            kills.rows.settings()
        );
        let project =
            Scratch::empty().with("service_project.yml", &settings).with("cubes/events.yml", &kills.rows.cube());
        kills.rows.make(project.path())?;
        let mut world = World { kills, project, key: String::new(), _redis: redis };
        let made = world.command(&["auth", "create-key"]);
        let made = made.arguments(&["--name", "k", "--scopes", "read,write", "--json"]).run()?;
        ensure!(made.code == Some(0), "{}", made.stderr);
        let made: Value = serde_json::from_str(&made.stdout)?;
        world.key = made["key"].as_str().context("no key")?.to_owned();
        Ok(world)
    }

    fn command(&self, call: &[&str]) -> Program {
        let mut program = Program::new(self.kills.binary, call, self.project.path())
            .variable("SERVICE_CACHE__ENABLED", "true")
            .variable("SERVICE_LOG__REQUESTS", "false");
        for (name, value) in self.kills.rows.variables() {
            program = program.variable(&name, &value);
        }
        program.variable("SERVICE_STATE__URL", self.kills.state_url)
    }

    fn start_missing(&self, servers: &mut [Option<Unheard>]) -> Result<()> {
        for server in servers.iter_mut().filter(|server| server.is_none()) {
            *server = Some(self.command(&["serve"]).serve_unheard(Stdio::null(), Stdio::inherit())?);
        }
        Ok(())
    }

    /// Returns the faults of the state: acknowledged builds that did not succeed, and tables that the state
    /// database does not know.
    async fn check_state(&self, builds: &BTreeSet<String>) -> Result<Vec<String>> {
        // If no other builder is running, a builder drops the tables that killed builders left.
        let built = self.command(&["preagg", "build"]).run()?;
        ensure!(built.code == Some(0), "{}", built.stderr);
        let store = StateStore::open(self.kills.state_url, self.project.path()).await?;
        let mut faults = Vec::new();
        let mut ended: Vec<RollupBuild> = Vec::new();
        for id in builds {
            match store.build(id).await? {
                Some(build) => ended.push(build),
                None => faults.push(format!("build {id} is lost")),
            }
        }
        let is_good = |build: &&RollupBuild| build.state == BuildState::Success;
        let last = ended.iter().filter(is_good).max_by_key(|build| build.created_at).context("no build succeeded")?;
        let (target, last) = (last.target.to_string(), last.created_at);
        for build in &ended {
            // A killed build is not repeated if another build was already waiting.
            let is_replaced = build.error_code.as_deref() == Some("INTERRUPTED") && build.created_at < last;
            if build.state != BuildState::Success && !is_replaced {
                faults.push(format!("build {} ended as {build:?}", build.id));
            }
        }
        let known: BTreeSet<String> = store.tables(&target).await?.iter().map(ToString::to_string).collect();
        let found: BTreeSet<String> = self.kills.rows.tables(self.project.path())?.into_iter().collect();
        faults.extend(found.difference(&known).map(|table| format!("table {table} is an orphan")));
        faults.extend(known.difference(&found).map(|table| format!("table {table} is missing")));
        Ok(faults)
    }
}

fn addresses(servers: &[Option<Unheard>]) -> Vec<SocketAddr> {
    servers.iter().flatten().map(|server| server.address).collect()
}

/// Returns the status of the only pre-aggregation.
fn status(address: SocketAddr) -> Result<Value> {
    let answer = request(address, "GET", "/api/v1/preaggregations/status", None)?;
    ensure!(answer.status == 200, "{}: {}", answer.status, answer.body);
    Ok(answer.json()?["pre_aggregations"][0].clone())
}

/// Waits until a generation of tables exists and no build is pending or running.
fn wait_until_built(address: SocketAddr) -> Result<()> {
    let started = Instant::now();
    loop {
        let status = status(address)?;
        let is_open = matches!(status["build"]["status"].as_str(), Some("pending" | "running"));
        if status["state"] == "ready" && !is_open {
            return Ok(());
        }
        ensure!(started.elapsed() < DRAIN, "builds have not ended within {} s: {status:#}", DRAIN.as_secs());
        thread::sleep(Duration::from_millis(200));
    }
}

impl fmt::Display for BuildReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BuildReport { rounds, kills, requested, builds, published, invalidations, answers, .. } = self;
        writeln!(f, "{rounds} rounds with {kills} kills in {:.0} s", self.duration.as_secs_f64())?;
        writeln!(
            f,
            "{requested} requests of {builds} builds, {published} generations; {invalidations} acknowledged \
             invalidations; {answers} answers"
        )?;
        for fault in &self.faults {
            writeln!(f, "FAULT {fault}")?;
        }
        Ok(())
    }
}
