//! Tests guardrails of users and groups on both engines.

use std::time::Duration;

use terrane_app::ports::audit::{AuditEntry, AuditFilter, AuditLog as _};
use terrane_app::ports::guardrails::{GuardrailRecord, GuardrailRecords as _, GuardrailSubject, Guardrails};

use super::{at, on_both};

fn record(subject: GuardrailSubject, version: u64, limits: Option<Guardrails>) -> GuardrailRecord {
    GuardrailRecord { subject, limits, version, updated_by: "root".into(), updated_at: at(1) }
}

fn entry(event: &str) -> AuditEntry {
    AuditEntry { at: at(1), event: event.into(), count: 1, ..AuditEntry::default() }
}

#[test]
fn guardrails_are_versioned_and_read_after_a_change() {
    on_both(|place| async move {
        let store = place.open().await;
        let limits = Guardrails {
            max_execution: Some(Duration::from_micros(1_500_001)),
            max_rows_returned: Some(7),
            require_time_filter: true,
            require_partition_filter: true,
            max_cost_micros: Some(12_345_678),
            max_scan_bytes: Some(10_000_000_000),
            daily_budget_micros: Some(1),
            monthly_budget_micros: Some(2),
            alert_at_percent: Some(80),
        };
        let user = record(GuardrailSubject::User("a:da".into()), 1, Some(limits));
        let group = record(GuardrailSubject::Group("a:da".into()), 1, Some(Guardrails::default()));
        assert!(store.write_guardrails(0, user.clone(), entry("one")).await.unwrap());
        // This write expects an outdated version, so it is refused.
        assert!(!store.write_guardrails(0, group.clone(), entry("refused")).await.unwrap());
        assert!(store.write_guardrails(1, group.clone(), entry("two")).await.unwrap());
        assert_eq!(store.guardrails_since(0).await.unwrap(), [(1, user.clone()), (2, group.clone())]);
        let removed = record(user.subject.clone(), 2, None);
        assert!(store.write_guardrails(2, removed.clone(), entry("three")).await.unwrap());
        assert_eq!(store.guardrails_since(1).await.unwrap(), [(2, group), (3, removed)]);
        let audit = store.records(&AuditFilter { limit: 10, ..AuditFilter::default() }).await.unwrap();
        let events: Vec<_> = audit.iter().map(|record| record.entry.event.to_string()).collect();
        assert_eq!(events, ["three", "two", "one"]);
    });
}
