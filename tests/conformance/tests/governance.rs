//! Tests the audit records of hooks, and that a finding of a hook blocks a step of certification.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use terrane_app::governance::ApprovalService;
use terrane_app::ports::audit::{AuditEntry, AuditFilter, AuditLog, AuditRecord, ChainState};
use terrane_app::ports::governance::{Artifact, MetadataChange, Transition};
use terrane_app::ports::store::StoreError;
use terrane_app::query::RequestContext;
use terrane_conformance_tests::case::{TestRequest, World, ask};
use terrane_conformance_tests::fakes::{FakeClock, SECRET};
use terrane_conformance_tests::hooks::{FakeHook, FakeHooks};
use terrane_conformance_tests::security::Security;
use terrane_json::details::encode;

/// An audit log that stores or refuses entries.
#[derive(Default)]
struct MemoryLog {
    entries: Mutex<Vec<AuditEntry>>,
    is_broken: bool,
}

#[async_trait]
impl AuditLog for MemoryLog {
    async fn append(&self, entries: Vec<AuditEntry>) -> Result<(), StoreError> {
        if self.is_broken {
            return Err(StoreError { message: SECRET.to_owned() });
        }
        self.entries.lock().unwrap().extend(entries);
        Ok(())
    }
    async fn records(&self, _: &AuditFilter) -> Result<Vec<AuditRecord>, StoreError> {
        Ok(Vec::new())
    }
    async fn verify(&self) -> Result<ChainState, StoreError> {
        Ok(ChainState::Whole { records: 0, last_hash: "".into() })
    }
}

fn hook(id: &str) -> FakeHook {
    FakeHook { id: id.to_owned(), ..FakeHook::default() }
}

/// Sends a query, and returns the status and the audit records.
async fn asked(hooks: Vec<FakeHook>) -> (u16, Vec<AuditEntry>) {
    let log = Arc::new(MemoryLog::default());
    let security = Security { audit: log.clone(), ..Security::of_anonymous() };
    let edge = World { hooks, ..World::default() }.edge_with(security);
    let request = serde_json::json!({
        "path": "/api/v1/query/sql", "method": "POST", "json": {"measures": ["orders.count"]}
    });
    let request: TestRequest = serde_json::from_value(request).unwrap();
    let status = ask(&edge, &request).await.status.as_u16();
    edge.app().services.audit_buffer.flush().await.unwrap();
    let entries = log.entries.lock().unwrap().clone();
    (status, entries)
}

fn only<'e>(entries: &'e [AuditEntry], event: &str) -> &'e AuditEntry {
    let mut of_event = entries.iter().filter(|entry| &*entry.event == event);
    let found = of_event.next().unwrap_or_else(|| panic!("no {event} in {entries:?}"));
    assert!(of_event.next().is_none(), "{entries:?}");
    found
}

#[tokio::test(start_paused = true)]
async fn denial_is_recorded_with_facts_that_the_caller_does_not_get() {
    let (status, entries) = asked(vec![FakeHook { denies: Some("no_region".to_owned()), ..hook("region") }]).await;
    assert_eq!(status, 403);
    let entry = only(&entries, "policy_denied");
    assert_eq!((&*entry.resource, entry.reason.as_deref()), ("plugin:region", Some("no_region")));
    assert!(encode(entry.after.as_ref().unwrap()).contains(SECRET));
    // A denial by a hook is recorded like every denial by a policy.
    assert_eq!(only(&entries, "access_denied").reason.as_deref(), Some("policy"));
}

#[tokio::test(start_paused = true)]
async fn failing_required_hook_is_audited() {
    let (status, entries) = asked(vec![FakeHook { faults: true, ..hook("region") }]).await;
    assert_eq!(status, 403);
    assert!(encode(only(&entries, "policy_unavailable").after.as_ref().unwrap()).contains(SECRET));
}

#[tokio::test(start_paused = true)]
async fn notes_of_hooks_are_audited_completely() {
    let noting = |id: &str, note: &str| FakeHook { notes: Some(note.to_owned()), ..hook(id) };
    let (status, entries) = asked(vec![noting("a", "first"), noting("a", "second")]).await;
    assert_eq!(status, 200);
    let notes: Vec<Arc<str>> = entries
        .iter()
        .filter(|entry| &*entry.event == "policy_audit")
        .filter_map(|entry| entry.after.as_ref().map(encode))
        .collect();
    assert_eq!(notes.len(), 2, "{notes:?}");
}

#[tokio::test(start_paused = true)]
async fn permit_that_cannot_be_audited_is_denied() {
    let broken = Arc::new(MemoryLog { is_broken: true, ..MemoryLog::default() });
    let security = Security { audit: broken, ..Security::of_anonymous() };
    let hooks = vec![FakeHook { denies: Some("no_region".to_owned()), ..hook("region") }];
    let edge = World { hooks, ..World::default() }.edge_with(security);
    let request = serde_json::json!({
        "path": "/api/v1/query/sql", "method": "POST", "json": {"measures": ["orders.count"]}
    });
    let request: TestRequest = serde_json::from_value(request).unwrap();
    assert_ne!(ask(&edge, &request).await.status.as_u16(), 200);
}

fn approvals(hooks: Vec<FakeHook>) -> ApprovalService {
    ApprovalService::new(Arc::new(FakeHooks(hooks)), Arc::new(FakeClock::default()), &jiff::tz::TimeZone::UTC)
}

fn orders() -> Artifact {
    Artifact { kind: "cube".to_owned(), id: "orders".to_owned(), ..Artifact::default() }
}

#[tokio::test]
async fn step_is_allowed_unless_a_hook_blocks_it() {
    let blocking = |id: &str| FakeHook { blocks: true, ..hook(id) };
    let monitored = FakeHook { is_monitored: true, ..blocking("watching") };
    let context = RequestContext::default();
    for (hooks, is_open, findings) in [
        (Vec::new(), true, 0),
        (vec![hook("a")], true, 1),
        (vec![hook("a"), blocking("b")], false, 2),
        (vec![monitored], true, 1),
        (vec![FakeHook { faults: true, ..hook("a") }], false, 0),
        (vec![FakeHook { faults: true, is_optional: true, ..hook("a") }], true, 0),
        (vec![FakeHook { faults: true, is_monitored: true, ..hook("a") }], true, 0),
    ] {
        let approvals = approvals(hooks.clone());
        let gate = approvals.certify(&context, &orders(), Transition::Certify, "").await;
        assert_eq!((gate.is_open(), gate.findings.len()), (is_open, findings), "{hooks:?}");
        for change in [
            MetadataChange::Added(orders()),
            MetadataChange::Changed { before: orders(), after: orders() },
            MetadataChange::Removed(orders()),
        ] {
            let gate = approvals.change(&context, &change).await;
            assert_eq!((gate.is_open(), gate.findings.len()), (is_open, findings), "{hooks:?}");
        }
    }
}
