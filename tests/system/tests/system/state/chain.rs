//! Tests that the audit chain has one end, that it only grows, and that every manipulation is found.

use futures_util::future::join_all;
use terrane_app::ports::audit::{AuditEntry, AuditFilter, AuditLog as _, ChainState};

use super::{Place, at, entry, on_both, records_of};

#[test]
fn records_can_only_be_appended() {
    on_both(|place| async move {
        let store = place.open().await;
        store.append(vec![entry("a"), entry("b")]).await.unwrap();
        store.append((0..1_200).map(|_| entry("c")).collect()).await.unwrap();
        assert_eq!(records_of(&store).await, 1_202);
        let statements: &[&'static str] = match place.engine {
            None => &["UPDATE audit_log SET actor = 'x'", "DELETE FROM audit_log"],
            Some(_) => &["UPDATE audit_log SET actor = 'x'", "DELETE FROM audit_log", "TRUNCATE audit_log"],
        };
        for statement in statements {
            let error = place.run(statement).await.unwrap_err().to_string();
            assert!(error.contains("append-only"), "{statement}: {error}");
        }
    });
}

#[test]
fn concurrent_servers_write_one_chain() {
    on_both(|place| async move {
        let stores = [place.open().await, place.open().await, place.open().await];
        let appends = (0..60).map(|number| {
            let store = stores[number % 3].clone();
            async move { store.append(vec![entry("a"), entry("b")]).await }
        });
        for outcome in join_all(appends).await {
            outcome.unwrap();
        }
        assert_eq!(records_of(&stores[0]).await, 120);
    });
}

#[test]
fn changes_outside_of_the_program_are_detected() {
    for (statement, at) in [
        ("UPDATE audit_log SET actor = 'x' WHERE sequence = 2", 2),
        ("UPDATE audit_log SET reason = '' WHERE sequence = 3", 3),
        ("UPDATE audit_log SET correlation_id = 'x' WHERE sequence = 1", 1),
        ("DELETE FROM audit_log WHERE sequence = 1", 1),
        ("DELETE FROM audit_log WHERE sequence = 2", 2),
        ("UPDATE audit_log SET sequence = 9 WHERE sequence = 3", 3),
    ] {
        let check = |place: Place| async move {
            let store = place.open().await;
            store.append(["a", "b", "c"].map(entry).to_vec()).await.unwrap();
            let disarm: &[&'static str] = match place.engine {
                None => &["DROP TRIGGER audit_log_is_not_changed", "DROP TRIGGER audit_log_is_not_shortened"],
                Some(_) => &["ALTER TABLE audit_log DISABLE TRIGGER USER"],
            };
            for disarm in disarm {
                place.run(disarm).await.unwrap();
            }
            place.run(statement).await.unwrap();
            let state = store.verify().await.unwrap();
            assert!(matches!(state, ChainState::Broken { sequence, .. } if sequence == at), "{statement}: {state:?}");
        };
        on_both_quickly(check);
    }
}

/// Runs each case on SQLite. Only the first case also runs on PostgreSQL, because a server for each would take long.
fn on_both_quickly<F: Future<Output = ()>>(check: impl Fn(Place) -> F) {
    static ONCE: std::sync::Once = std::sync::Once::new();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(check(Place::sqlite()));
    ONCE.call_once(|| {
        if let Some(place) = Place::postgres() {
            runtime.block_on(check(place));
        }
    });
}

#[test]
fn records_are_filtered_by_their_fields() {
    on_both(|place| async move {
        let store = place.open().await;
        let entries = (0..10).map(|number| AuditEntry {
            at: at(number),
            actor: if number % 2 == 0 { "ada".into() } else { "bob".into() },
            resource: format!("key:{number}").into(),
            correlation_id: Some(format!("id-{number}").into()),
            ..entry("key_created")
        });
        store.append(entries.collect()).await.unwrap();
        let found = async |filter: AuditFilter| -> Vec<u64> {
            let filter = AuditFilter { limit: 3, ..filter };
            store.records(&filter).await.unwrap().iter().map(|record| record.sequence).collect()
        };
        assert_eq!(found(AuditFilter::default()).await, [10, 9, 8]);
        assert_eq!(found(AuditFilter { before: Some(3), ..AuditFilter::default() }).await, [2, 1]);
        assert_eq!(found(AuditFilter { actor: Some("bob".into()), ..AuditFilter::default() }).await, [10, 8, 6]);
        let resource = Some("key:4' OR '1'='1".into());
        assert!(found(AuditFilter { resource, ..AuditFilter::default() }).await.is_empty());
        let since = AuditFilter { since: Some(at(2)), until: Some(at(4)), ..AuditFilter::default() };
        assert_eq!(found(since).await, [4, 3]);
        let record = &store.records(&AuditFilter { limit: 1, ..AuditFilter::default() }).await.unwrap()[0];
        assert_eq!((record.entry.at, record.entry.correlation_id.as_deref()), (at(9), Some("id-9")));
    });
}
