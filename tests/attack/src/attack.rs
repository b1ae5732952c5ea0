//! The attack loop: generates scenarios from seeds, sends many requests to both sides, and compares every pair of
//! answers.
//!
//! In: the number of cases, and the first seed. Out: counts, and a [`Case`] for each fault. A case is one request, or
//! one registration with the requests that would read it. It depends only on the scenario's seed and on its own number.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use anyhow::Result;
use serde_json::Value as Json;
use terrane_oracle_tests::generate::{Features, Generator, query};
use terrane_oracle_tests::oracle::Paths;
use terrane_oracle_tests::random::Random;

use crate::caller::Caller;
use crate::case::{self, Case};
use crate::compare::{Fault, fault, quoted};
use crate::http::{Answer, Request};
use crate::mistakes;
use crate::registration;
use crate::scenario::{CANARY, Constructs, ERROR, Sabotage, Scenario};
use crate::server::{Server, Stage};
use crate::surface::{SURFACES, listed_paths};

/// The number of cases of one scenario. It is large, because starting the two servers takes as long as many requests.
pub const CASES_PER_SCENARIO: usize = 100;
/// The largest number of faults of one scenario. Further ones most likely have the same cause.
const MAX_FAULTS_PER_SCENARIO: usize = 2;
/// DuckDB reports internal errors for some statements, whatever the rows are. The oracle's fuzz ignores them as well.
const ENGINE_FAILURES: &[&str] = &["INTERNAL Error", "database has been invalidated"];
const LOG_PAUSE: Duration = Duration::from_millis(10);
const LOG_TRIES: usize = 300;

#[derive(Debug, Clone, Copy)]
pub struct Run {
    /// The number of cases to run.
    pub cases: usize,
    /// The seed of the first scenario. Each further scenario has the next number as its seed.
    pub seed: u64,
    /// The number of the only case to run in each scenario.
    pub only: Option<usize>,
    pub constructs: Constructs,
    pub sabotage: Sabotage,
    /// The number of faults after which the run stops.
    pub max_faults: usize,
}

/// The counts of a run. They show whether the server refused everything, in which case the run proves nothing.
#[derive(Debug, Default)]
pub struct Report {
    pub scenarios: usize,
    /// The scenarios that the program refused to serve, each with the program's output.
    pub unserved: Vec<String>,
    pub cases: usize,
    pub requests: usize,
    /// The number of hidden rows, and the number of masked values that differ between the sides.
    pub differences: (usize, usize),
    pub statuses: BTreeMap<u16, usize>,
    /// The number of registrations by outcome: `accepted`, or the code of the refusal.
    pub registrations: BTreeMap<String, usize>,
    pub left_out: BTreeMap<&'static str, usize>,
    pub faults: Vec<Case>,
}

/// Runs the attack. `progress` is called after each scenario.
///
/// # Errors
/// The servers cannot run on this machine.
pub fn run(stage: &Stage, run: &Run, mut progress: impl FnMut(&Report)) -> Result<Report> {
    let mut report = Report::default();
    while report.cases < run.cases && report.faults.len() < run.max_faults {
        let seed = run.seed.wrapping_add(report.scenarios as u64);
        let scenario = Scenario::new(seed, run.constructs, run.sabotage);
        let count = CASES_PER_SCENARIO.min(run.cases - report.cases);
        attack(stage, run, (seed, &scenario), count, &mut report)?;
        report.scenarios += 1;
        progress(&report);
    }
    Ok(report)
}

fn attack(
    stage: &Stage,
    run: &Run,
    (seed, scenario): (u64, &Scenario),
    count: usize,
    report: &mut Report,
) -> Result<()> {
    let Scenario { files, left, right, .. } = scenario;
    let servers = match stage.serve_both([&[files, left], &[files, right]]) {
        Ok(servers) => servers,
        Err(error) => {
            report.cases += count;
            report.unserved.push(format!("seed {seed}: {error}"));
            return Ok(());
        }
    };
    let mut pair = Pair { servers };
    report.differences.0 += scenario.differences.0;
    report.differences.1 += scenario.differences.1;
    let paths = pair.listed_paths()?;
    let source = CaseSource { scenario, seen: Paths::new(&scenario.seen), whole: Paths::new(&scenario.whole), paths };
    let mut found = Vec::new();
    for index in 0..count {
        report.cases += 1;
        if run.only.is_some_and(|only| only != index) {
            continue;
        }
        let requests = source.requests(seed, index);
        if requests.len() > 1 && !run.constructs.registrations {
            continue;
        }
        match pair.check(&requests, report)? {
            Checked::Fine => {}
            Checked::EngineFailed => break,
            Checked::Faulty(finding) => {
                let mut case = Case::new(seed, index, scenario, finding);
                case::shrink_request(&mut pair, &mut case)?;
                found.push(case);
                if found.len() >= MAX_FAULTS_PER_SCENARIO {
                    break;
                }
            }
        }
    }
    drop(pair);
    for case in found {
        let case = case::shrink_project(stage, case);
        report.faults.push(case);
    }
    Ok(())
}

/// Generates the cases of one scenario.
struct CaseSource<'s> {
    scenario: &'s Scenario,
    seen: Paths<'s>,
    whole: Paths<'s>,
    /// The GET routes of the server's description.
    paths: Vec<String>,
}

impl CaseSource<'_> {
    fn requests(&self, seed: u64, index: usize) -> Vec<Request> {
        let mut random = Random::new(seed.wrapping_mul(0x9E37_79B9).wrapping_add(index as u64));
        let surface = *random.of(SURFACES);
        match random.below(100) {
            0..10 => registration::requests(self.scenario, &format!("attempt_{index}"), &mut random),
            10..18 => vec![surface.metadata(&mut random, &self.scenario.seen, &self.paths)],
            choice => {
                let mut body = match choice {
                    18..30 => mistakes::whole_cube(&self.scenario.seen, &mut random),
                    _ => self.query(&mut random),
                };
                if random.chance(12) {
                    mistakes::spoil(&mut body, &self.scenario.whole, &mut random);
                }
                vec![surface.query(&mut random, &body)]
            }
        }
    }

    /// Returns a query. Its filters compare with visible or with hidden values, because a caller may guess hidden ones.
    fn query(&self, random: &mut Random) -> Json {
        let mut generator = Generator { random: Random::new(random.draw()), features: Features::default() };
        match random.chance(60) {
            true => query(&mut generator, &self.scenario.seen, &self.seen),
            false => query(&mut generator, &self.scenario.whole, &self.whole),
        }
    }
}

/// The servers of both sides.
#[derive(Debug)]
pub struct Pair {
    pub servers: [Server; 2],
}

/// A fault with the requests that lead to it.
#[derive(Debug)]
pub struct Finding {
    pub fault: Fault,
    pub requests: Vec<Request>,
    pub answers: [String; 2],
    /// The last lines of the servers' logs, at most eight.
    pub log: Vec<String>,
}

enum Checked {
    Fine,
    /// The engine failed, so the scenario cannot continue.
    EngineFailed,
    Faulty(Finding),
}

impl Pair {
    fn listed_paths(&mut self) -> Result<Vec<String>> {
        let [left, _] = self.ask(&Request::get(Caller::Reader, "/openapi.json"))?;
        Ok(listed_paths(&serde_json::from_slice(&left.body)?))
    }

    /// Sends a request to both sides at once and returns both answers.
    ///
    /// # Errors
    /// A side does not answer.
    pub fn ask(&mut self, request: &Request) -> Result<[Answer; 2]> {
        let [left, right] = &mut self.servers;
        left.client.send(request)?;
        right.client.send(request)?;
        Ok([left.client.receive()?, right.client.receive()?])
    }

    /// Sends the requests of a case in turn, and returns the first fault.
    ///
    /// # Errors
    /// None in practice: a side that does not answer is a fault, not an error.
    pub fn first_fault(&mut self, requests: &[Request]) -> Result<Option<Finding>> {
        let mut ignored = Report::default();
        Ok(match self.check(requests, &mut ignored)? {
            Checked::Faulty(finding) => Some(finding),
            Checked::Fine | Checked::EngineFailed => None,
        })
    }

    fn check(&mut self, requests: &[Request], report: &mut Report) -> Result<Checked> {
        let is_registration = requests.len() > 1;
        let mut checked = Checked::Fine;
        for (index, request) in requests.iter().enumerate() {
            report.requests += 1;
            let answers = match self.ask(request) {
                Ok(answers) => answers,
                Err(error) => {
                    let fault = Fault::NoAnswer { message: error.to_string() };
                    return Ok(Checked::Faulty(self.finding(fault, &requests[..=index], None)));
                }
            };
            let [left, right] = &answers;
            *report.statuses.entry(left.status).or_default() += 1;
            if is_registration && index == 0 {
                *report.registrations.entry(outcome_of(left)).or_default() += 1;
            }
            if let (Some(fault), Checked::Fine) = (fault(request, left, right), &checked) {
                let finding = self.finding(fault, &requests[..=index], Some(&answers));
                checked = judged(finding, is_registration, report);
            }
            // If neither side registered the cube, no request can read it. Otherwise the last request deletes it.
            if is_registration && index == 0 && left.status != 201 && right.status != 201 {
                break;
            }
        }
        Ok(checked)
    }

    fn finding(&self, fault: Fault, requests: &[Request], answers: Option<&[Answer; 2]>) -> Finding {
        let is_failure = answers.is_none_or(|answers| answers.iter().any(|answer| answer.status >= 500));
        let mut log: Vec<String> = Vec::new();
        // The log record of a failure may be written after the answer.
        for _ in 0..LOG_TRIES {
            log.extend(self.servers.iter().flat_map(Server::take_log));
            if !is_failure || log.iter().any(|line| line.contains("query_failed")) {
                break;
            }
            thread::sleep(LOG_PAUSE);
        }
        let answers = answers.map(|[left, right]| [quoted(left), quoted(right)]).unwrap_or_default();
        let log = log.split_off(log.len().saturating_sub(8));
        Finding { fault, requests: requests.to_vec(), answers, log }
    }
}

/// Ignores two kinds of findings: failures of the engine itself, and errors that a registered expression of the
/// writer causes on visible rows.
fn judged(finding: Finding, is_registration: bool, report: &mut Report) -> Checked {
    let logs = |text: &&str| finding.log.iter().any(|line| line.contains(text));
    if ENGINE_FAILURES.iter().any(&logs) {
        *report.left_out.entry("failures inside DuckDB").or_default() += 1;
        return Checked::EngineFailed;
    }
    let is_own =
        is_registration && finding.fault == (Fault::ServerError { status: 502 }) && !logs(&CANARY) && !logs(&ERROR);
    if is_own {
        *report.left_out.entry("registered expressions that fail on visible rows").or_default() += 1;
        return Checked::Fine;
    }
    Checked::Faulty(finding)
}

/// Returns `accepted`, or the code of a refusal.
fn outcome_of(answer: &Answer) -> String {
    if answer.status == 201 {
        return "accepted".to_owned();
    }
    let body: Json = serde_json::from_slice(&answer.body).unwrap_or_default();
    format!("{} {}", answer.status, body["error"]["code"].as_str().unwrap_or("detail"))
}
