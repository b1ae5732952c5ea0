//! The load: clients that send queries, GraphQL documents and jobs through the balancer, and compare every answer.
//!
//! In: questions with their correct answers. Out: a sample for each request. Half of the clients open a connection per
//! request, the others reuse theirs. Not here: rules about samples, which belong to the faults.

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::client::{Answer, Client, Request, Reuse};
use super::questions::{GRAPHQL, QUERY, Question, graphql_rows, rows};

const JOBS: &str = "/api/v1/query/async";
/// The pause of a client between two requests.
const PAUSE: Duration = Duration::from_millis(2);
/// The pause of a client after a failure.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(100);
/// The limit for a job from its submission to its end, with a second attempt after an expired lease.
const JOB_LIMIT: Duration = Duration::from_secs(90);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Query,
    /// A query that bypasses the cache and the pre-aggregations.
    Computed,
    GraphQl,
    /// A request of the life of a job: its submission, a poll, or its result.
    JobRequest,
    /// A job from its submission to its rows.
    Job,
}

#[derive(Debug, Clone)]
pub(super) enum Outcome {
    Right,
    /// An answer with an error: the status, and the code in its body.
    Refused(u16, String),
    /// No complete answer.
    Cut(String),
    Wrong(String),
}

#[derive(Debug, Clone)]
pub(super) struct Sample {
    /// The time at which the answer was complete.
    pub(super) at: Instant,
    pub(super) kind: Kind,
    pub(super) duration: Duration,
    pub(super) outcome: Outcome,
}

pub(super) struct Load<'a> {
    pub(super) port: u16,
    pub(super) key: &'a str,
    pub(super) questions: &'a [Question],
    pub(super) samples: Mutex<Vec<Sample>>,
    /// The number of requests that clients have sent again on a new connection.
    pub(super) resent: AtomicU64,
    pub(super) is_over: AtomicBool,
}

impl<'a> Load<'a> {
    /// Creates a load on the server at a port, with the secret of a key.
    pub(super) fn new(port: u16, key: &'a str, questions: &'a [Question]) -> Self {
        let (samples, resent, is_over) = (Mutex::default(), AtomicU64::new(0), AtomicBool::new(false));
        Load { port, key, questions, samples, resent, is_over }
    }

    /// Returns the number of samples until now.
    pub(super) fn count(&self) -> usize {
        self.samples.lock().map_or(0, |samples| samples.len())
    }

    /// Sends requests until the load test ends.
    pub(super) fn run_client(&self, number: u64) {
        let reuse = if number.is_multiple_of(2) { Reuse::Always } else { Reuse::Never };
        let mut client = Client::new(self.port, self.key, reuse);
        let mut random = Random(number + 1);
        for turn in 0_u64.. {
            if self.is_over.load(Ordering::Relaxed) {
                break;
            }
            let question = &self.questions[random.below(self.questions.len() as u64) as usize];
            let is_right = match random.below(20) {
                0 => self.run_job(&mut client, question, &format!("{number}-{turn}")),
                1 => self.compute(&mut client, question),
                2..=6 => self.ask_graphql(&mut client, question),
                _ => self.ask(&mut client, Kind::Query, question, &question.body),
            };
            thread::sleep(if is_right { PAUSE } else { PAUSE_AFTER_FAILURE });
        }
        self.resent.fetch_add(client.resent, Ordering::Relaxed);
    }

    fn ask(&self, client: &mut Client, kind: Kind, question: &Question, body: &Value) -> bool {
        let started = Instant::now();
        let outcome = compared(client.post(QUERY, body), rows, &question.rows);
        self.record(kind, started, outcome)
    }

    fn compute(&self, client: &mut Client, question: &Question) -> bool {
        let mut body = question.body.clone();
        body["cache"] = false.into();
        body["pre_aggregations"] = "off".into();
        self.ask(client, Kind::Computed, question, &body)
    }

    fn ask_graphql(&self, client: &mut Client, question: &Question) -> bool {
        let started = Instant::now();
        let outcome = compared(client.post(GRAPHQL, &question.document), graphql_rows, &question.rows);
        self.record(Kind::GraphQl, started, outcome)
    }

    /// Submits a job, waits for its end and reads its rows. A request without an answer is sent again; a repeated
    /// submission carries the same idempotency key.
    fn run_job(&self, client: &mut Client, question: &Question, key: &str) -> bool {
        let started = Instant::now();
        let outcome = self.follow_job(client, question, key, started);
        self.record(Kind::Job, started, outcome)
    }

    fn follow_job(&self, client: &mut Client, question: &Question, key: &str, started: Instant) -> Outcome {
        let (head, body) = (format!("Idempotency-Key: {key}\r\n"), question.body.to_string());
        let mut last = Outcome::Cut("no answer".to_owned());
        let mut poll: Option<String> = None;
        while started.elapsed() < JOB_LIMIT {
            let request = match &poll {
                Some(path) => Request { method: "GET", path, head: "", body: "" },
                None => Request { method: "POST", path: JOBS, head: &head, body: &body },
            };
            match self.request(client, &request, &[200, 202]).map(|answer| answer.json()) {
                Ok(job) => {
                    if let Some(outcome) = self.end_job(client, &job, question, started) {
                        return outcome;
                    }
                    poll = job["job_id"].as_str().map(|id| format!("{JOBS}/{id}?wait=5"));
                    last = Outcome::Wrong(format!("the job has not ended: {job}"));
                }
                Err(outcome) => {
                    last = outcome;
                    thread::sleep(PAUSE_AFTER_FAILURE);
                }
            }
        }
        last
    }

    /// Returns the outcome of a job that has ended.
    fn end_job(&self, client: &mut Client, job: &Value, question: &Question, started: Instant) -> Option<Outcome> {
        match job["status"].as_str() {
            Some("complete") => {
                let path = format!("{JOBS}/{}/result", job["job_id"].as_str().unwrap_or_default());
                Some(self.read_result(client, &path, question, started))
            }
            Some("pending" | "running") => None,
            _ => {
                let code = job["error"]["code"].as_str().unwrap_or_default();
                Some(Outcome::Refused(200, format!("job failed: {code}")))
            }
        }
    }

    fn read_result(&self, client: &mut Client, path: &str, question: &Question, started: Instant) -> Outcome {
        let request = Request { method: "GET", path, head: "", body: "" };
        loop {
            match self.request(client, &request, &[200]) {
                Ok(answer) => return compared(Ok(answer), rows, &question.rows),
                Err(outcome) if started.elapsed() > JOB_LIMIT => return outcome,
                Err(_) => thread::sleep(PAUSE_AFTER_FAILURE),
            }
        }
    }

    /// Sends a request of a job, and records it.
    fn request(&self, client: &mut Client, request: &Request<'_>, accepted: &[u16]) -> Result<Answer, Outcome> {
        let started = Instant::now();
        let result = client.send(request).map_err(|error| Outcome::Cut(error.to_string()));
        let result = result
            .and_then(|answer| if accepted.contains(&answer.status) { Ok(answer) } else { Err(refused(&answer)) });
        self.record(Kind::JobRequest, started, result.as_ref().err().cloned().unwrap_or(Outcome::Right));
        result
    }

    fn record(&self, kind: Kind, started: Instant, outcome: Outcome) -> bool {
        let is_right = matches!(outcome, Outcome::Right);
        let sample = Sample { at: Instant::now(), kind, duration: started.elapsed(), outcome };
        if let Ok(mut samples) = self.samples.lock() {
            samples.push(sample);
        }
        is_right
    }
}

fn refused(answer: &Answer) -> Outcome {
    let code = answer.json()["error"]["code"].as_str().unwrap_or("no code").to_owned();
    Outcome::Refused(answer.status, code)
}

fn compared(answer: io::Result<Answer>, rows: fn(Value) -> Option<Value>, expected: &Value) -> Outcome {
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => return Outcome::Cut(error.to_string()),
    };
    let body = answer.json();
    // GraphQL reports the errors of fields with status 200.
    if let Some(code) = body["errors"][0]["extensions"]["code"].as_str() {
        return Outcome::Refused(answer.status, code.to_owned());
    }
    if answer.status != 200 {
        return refused(&answer);
    }
    match rows(body) {
        Some(found) if found == *expected => Outcome::Right,
        found => Outcome::Wrong(format!("expected {expected}, found {}", found.unwrap_or_default())),
    }
}

/// A linear congruential generator with the constants of Knuth's MMIX.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}
