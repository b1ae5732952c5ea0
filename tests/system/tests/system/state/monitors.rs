//! Tests monitors, rounds and alerts on both engines.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use terrane_app::ports::jobs::Maker;
use terrane_app::ports::leases::Leases as _;
use terrane_app::ports::monitors::{
    AlertConfig, AlertFilter, AlertState, DetectionFilter, EscalationRule, Monitor, MonitorDefinition,
    MonitorRecords as _, MonitorRound, MonitorRun, RunOutcome, ScoredStep,
};
use terrane_app::ports::severity::FindingSeverity;
use terrane_app::security::Scopes;
use terrane_compiler::types::Granularity;
use terrane_compiler::{AuthMethod, SecurityContext};

use super::{entry, on_both};

fn second(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn monitor(id: &str, version: u64) -> Monitor {
    let caller = SecurityContext {
        user_id: "ada".into(),
        roles: vec!["seller".into()],
        auth_method: AuthMethod::ApiKey,
        ..SecurityContext::default()
    };
    Monitor {
        id: id.into(),
        definition: MonitorDefinition {
            name: format!("monitor {id}").into(),
            cube: "orders".into(),
            measure: "count".into(),
            detector: "mad".into(),
            sensitivity: Some(0.1 + 0.2),
            dimensions: vec!["region".into()],
            schedule: "0 6 * * *".into(),
            timezone: "Europe/Berlin".into(),
            granularity: Granularity::Day,
            training_size: 50,
            is_enabled: true,
            alerts: AlertConfig {
                min_severity: FindingSeverity::Low,
                resolve_after_steps: 2,
                escalations: [1, 5].map(|after_minutes| EscalationRule { after_minutes, notify: Vec::new() }).to_vec(),
                channels: Vec::new(),
                grouping_minutes: 0,
            },
        },
        owner: Maker { caller, scopes: Scopes::READ, credential: "key:1".into(), tenant: Some("acme".into()) },
        version,
        created_at: second(1),
        updated_at: second(2),
        next_run_at: Some(second(100)),
        last_run: None,
        judged_until_ms: None,
        view: Some("view".into()),
    }
}

fn step(region: Option<&str>, day: i64, is_anomalous: bool) -> ScoredStep {
    ScoredStep {
        series: vec![("region".into(), region.map(Arc::from))],
        at_ms: day * 86_400_000,
        value: Some(1.5),
        expected: Some(1e300),
        lower_bound: None,
        upper_bound: Some(-0.1),
        raw: Some(3.25),
        score: 0.7,
        severity: FindingSeverity::High,
        is_anomalous,
    }
}

fn round(steps: Vec<ScoredStep>, next: i64) -> MonitorRound {
    MonitorRound {
        monitor_id: "m".into(),
        run: MonitorRun { at: second(200), outcome: RunOutcome::Scored, message: None },
        next_run_at: Some(second(next)),
        judged_until_ms: steps.iter().map(|step| step.at_ms).max(),
        steps,
        detector: "standard 1.0".into(),
        view: Some("view".into()),
        rules: monitor("m", 1).definition.alerts,
    }
}

#[test]
fn monitors_are_written_by_version() {
    on_both(|place| async move {
        let store = place.open().await;
        let first = monitor("m", 1);
        assert!(store.add_monitor(&first, 2, entry("add")).await.unwrap());
        assert_eq!(store.monitor("m").await.unwrap(), Some(first.clone()));
        assert!(store.add_monitor(&monitor("n", 1), 2, entry("add")).await.unwrap());
        assert!(!store.add_monitor(&monitor("o", 1), 2, entry("add")).await.unwrap());
        let second_version = Monitor { next_run_at: None, ..monitor("m", 2) };
        assert!(store.replace_monitor(&second_version, entry("change")).await.unwrap());
        assert!(!store.replace_monitor(&second_version, entry("change")).await.unwrap());
        assert_eq!(store.next_monitor_run().await.unwrap(), Some(second(100)));
        let due = store.due_monitors(second(100), 10).await.unwrap();
        assert_eq!(due.iter().map(|due| &*due.id).collect::<Vec<_>>(), ["n"]);
        assert!(!store.remove_monitor("m", 1, entry("remove")).await.unwrap());
        assert!(store.remove_monitor("m", 2, entry("remove")).await.unwrap());
        assert_eq!(store.monitors().await.unwrap().len(), 1);
    });
}

#[test]
fn rounds_write_detections_and_alerts_in_one_transaction() {
    on_both(|place| async move {
        let store = place.open().await;
        store.add_monitor(&monitor("m", 1), 2, entry("add")).await.unwrap();
        let number = AtomicU32::new(0);
        let new_id = || -> Arc<str> { format!("{:03}", number.fetch_add(1, Ordering::Relaxed)).into() };
        let all = DetectionFilter { limit: 10, ..DetectionFilter::default() };
        let any = AlertFilter { limit: 10, ..AlertFilter::default() };
        let steps = vec![step(Some("EU"), 1, true), step(Some("EU"), 2, false), step(None, 1, true)];
        for _ in 0..2 {
            assert!(store.write_round(&round(steps.clone(), 300), None, &new_id).await.unwrap());
        }
        let detections = store.detections("m", "view", &all).await.unwrap();
        assert_eq!(detections.iter().filter(|found| steps.contains(&found.step)).count(), 2, "{detections:?}");
        assert!(store.detections("m", "other view", &all).await.unwrap().is_empty());
        let alerts = store.alerts("m", "view", &any).await.unwrap();
        assert_eq!(alerts.iter().filter(|alert| alert.state == AlertState::Triggered).count(), 2, "{alerts:?}");
        let stored = store.monitor("m").await.unwrap().unwrap();
        assert_eq!((stored.judged_until_ms, stored.next_run_at), (Some(2 * 86_400_000), Some(second(300))));
        // An earlier range does not move the newest judged step back.
        store.write_round(&round(vec![step(Some("EU"), 0, false)], 300), None, &new_id).await.unwrap();
        assert_eq!(store.monitor("m").await.unwrap().unwrap().judged_until_ms, Some(2 * 86_400_000));
        // Alerts are escalated twice, and normal steps resolve them.
        let lease = store.acquire("monitors", "w1", Duration::from_secs(60)).await.unwrap().unwrap();
        for (at, escalated) in [(200 + 59, 0), (200 + 60, 2), (200 + 61, 0), (200 + 300, 2), (200 + 900, 0)] {
            assert_eq!(store.escalate_alerts(second(at), 10, &lease, &new_id).await.unwrap(), Some(escalated), "{at}");
        }
        let ends = vec![step(Some("EU"), 3, false), step(Some("EU"), 4, false), step(None, 2, true)];
        assert!(store.write_round(&round(ends, 400), Some(&lease), &new_id).await.unwrap());
        let resolved = AlertFilter { state: Some(AlertState::Resolved), ..any.clone() };
        let resolved = store.alerts("m", "view", &resolved).await.unwrap();
        assert_eq!(resolved.iter().map(|alert| (alert.escalations, alert.detections)).collect::<Vec<_>>(), [(2, 1)]);
        // A stale lease and an unknown monitor write nothing.
        store.release(&lease).await.unwrap();
        store.acquire("monitors", "w2", Duration::from_secs(60)).await.unwrap().unwrap();
        assert!(!store.write_round(&round(Vec::new(), 500), Some(&lease), &new_id).await.unwrap());
        assert_eq!(store.escalate_alerts(second(9_999), 10, &lease, &new_id).await.unwrap(), None);
        let unknown = MonitorRound { monitor_id: "x".into(), ..round(Vec::new(), 500) };
        assert!(!store.write_round(&unknown, None, &new_id).await.unwrap());
        // A moved alert is written by its version.
        let alert = store.alerts("m", "view", &any).await.unwrap().remove(0);
        let mut moved = alert.clone();
        moved.version += 1;
        assert!(store.replace_alert(&moved, second(9_999), entry("move"), &new_id).await.unwrap());
        assert!(!store.replace_alert(&moved, second(9_999), entry("move"), &new_id).await.unwrap());
        assert_eq!(store.alert(&alert.id).await.unwrap(), Some(moved));
        assert!(store.remove_monitor("m", 1, entry("remove")).await.unwrap());
        assert!(store.alerts("m", "view", &any).await.unwrap().is_empty());
        assert!(store.detections("m", "view", &all).await.unwrap().is_empty());
    });
}
