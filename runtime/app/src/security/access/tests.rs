//! Tests that denials and authentications are counted in the metrics and written to the audit log, and that they fail
//! if they cannot be written.

use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use terrane_compiler::SecurityContext;

use super::*;
use crate::domain::{RequestTarget, Scope};
use crate::ports::audit::{AuditFilter, AuditLog, AuditRecord, ChainState};
use crate::ports::observer::{EndedQuery, Executed, Step, TaskOutcome};

#[derive(Default)]
struct FakeLog {
    entries: Mutex<Vec<AuditEntry>>,
    is_broken: bool,
}

#[async_trait]
impl AuditLog for FakeLog {
    async fn append(&self, entries: Vec<AuditEntry>) -> Result<(), StoreError> {
        if self.is_broken {
            return Err(StoreError { message: "down".to_owned() });
        }
        self.entries.lock().expect("a lock").extend(entries);
        Ok(())
    }
    async fn records(&self, _: &AuditFilter) -> Result<Vec<AuditRecord>, StoreError> {
        Ok(Vec::new())
    }
    async fn verify(&self) -> Result<ChainState, StoreError> {
        Ok(ChainState::Whole { records: 0, last_hash: "".into() })
    }
}

struct StoppedClock;

impl Clock for StoppedClock {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }
}

#[derive(Default)]
struct FakeObserver {
    reports: Mutex<Vec<String>>,
}

impl Observer for FakeObserver {
    fn compiled(&self, _: &Step<'_>) {}
    fn executed(&self, _: &Step<'_>, _: &Executed<'_>) {}
    fn query_ended(&self, _: &EndedQuery<'_>) {}
    fn authenticated(&self, method: &'static str) {
        self.reports.lock().expect("a lock").push(format!("authenticated by {method}"));
    }
    fn access_denied(&self, reason: &'static str) {
        self.reports.lock().expect("a lock").push(format!("denied: {reason}"));
    }
    fn task_started(&self, _: &'static str) {}
    fn task_ended(&self, _: &'static str, _: TaskOutcome, _: Duration) {}
}

fn request(auth_method: AuthMethod) -> RequestContext {
    let target = RequestTarget {
        action: "GET",
        resource: "/cubes/orders".into(),
        pattern: "/cubes/{name}",
        required: Some(Scope::Write),
    };
    let caller = SecurityContext { auth_method, ..SecurityContext::default() };
    RequestContext { caller, target, ..RequestContext::default() }
}

#[tokio::test(start_paused = true)]
async fn denial_of_an_identified_caller_is_written_at_once() {
    let (log, observer) = (Arc::new(FakeLog::default()), Arc::new(FakeObserver::default()));
    let audit_buffer = Arc::new(AuditBuffer::new(log.clone(), Arc::new(StoppedClock)));
    let access = AccessRecorder::new(audit_buffer, observer.clone(), Arc::new(StoppedClock));
    access.denied(&request(AuthMethod::Anonymous), MISSING_SCOPE).await.expect("a place in the batch");
    assert!(log.entries.lock().expect("a lock").is_empty(), "anonymous callers cause no write");
    access.denied(&request(AuthMethod::ApiKey), POLICY).await.expect("a record");
    let entries = log.entries.lock().expect("a lock").clone();
    let facts: Vec<_> = entries.iter().map(|e| (&*e.event, &*e.resource, e.reason.as_deref())).collect();
    let pattern = "GET /cubes/{name}";
    let expected = [("access_denied", pattern, Some(POLICY)), ("access_denied", pattern, Some(MISSING_SCOPE))];
    assert!(expected.iter().all(|fact| facts.contains(fact)) && facts.len() == 2, "{facts:?}");
    assert_eq!(*observer.reports.lock().expect("a lock"), ["denied: missing scope", "denied: policy"]);
}

#[tokio::test(start_paused = true)]
async fn decision_that_cannot_be_recorded_fails() {
    let log = Arc::new(FakeLog { is_broken: true, ..FakeLog::default() });
    let audit_buffer = Arc::new(AuditBuffer::new(log, Arc::new(StoppedClock)));
    let access = AccessRecorder::new(audit_buffer, Arc::new(FakeObserver::default()), Arc::new(StoppedClock));
    access.denied(&request(AuthMethod::Jwt), POLICY).await.expect_err("the log is broken");
}

#[tokio::test]
async fn only_operator_requests_are_served_without_an_audit_log() {
    let access = AccessRecorder::for_operator(Arc::new(FakeObserver::default()), Arc::new(StoppedClock));
    access.denied(&request(AuthMethod::Operator), POLICY).await.expect("the operator needs no record");
    for surface in [Surface::Rest, Surface::Graphql, Surface::SqlOnly] {
        let request = RequestContext { surface, ..request(AuthMethod::ApiKey) };
        access.denied(&request, POLICY).await.expect_err("no record");
        access.authenticated(&request, "key:1").await.expect_err("no record");
    }
}
