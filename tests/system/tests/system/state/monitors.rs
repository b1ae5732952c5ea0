//! Tests monitors, rounds and alerts on both engines.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use terrane_app::domain::SeriesValue;
use terrane_app::monitors::after_attempt;
use terrane_app::ports::channels::{Channel, ChannelType, MessageKind, SendError};
use terrane_app::ports::deliveries::{DeliveryFilter, DeliveryRecords as _, DeliveryState, DueDelivery};
use terrane_app::ports::jobs::OwnerIdentity;
use terrane_app::ports::leases::Leases as _;
use terrane_app::ports::monitors::{
    Alert, AlertConfig, AlertFilter, AlertState, DetectionFilter, EscalationRule, Monitor, MonitorAdmission,
    MonitorDefinition, MonitorQuota, MonitorRecords as _, MonitorRound, MonitorRun, RunOutcome, ScoredStep,
};
use terrane_app::ports::severity::FindingSeverity;
use terrane_app::security::Scopes;
use terrane_compiler::types::Granularity;
use terrane_compiler::{AuthMethod, SecurityContext};

use super::{entry, on_both};

fn second(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// Returns a quota of monitors for all owners together.
fn quota(total: u32) -> MonitorQuota {
    MonitorQuota { total, of_owner: None }
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
            value: SeriesValue::Measure { cube: "orders".into(), measure: "count".into() },
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
        owner: OwnerIdentity { caller, scopes: Scopes::READ, credential: "key:1".into(), tenant: Some("acme".into()) },
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
        assert_eq!(store.add_monitor(&first, quota(2), entry("add")).await.unwrap(), MonitorAdmission::Added);
        assert_eq!(store.monitor("m").await.unwrap(), Some(first.clone()));
        assert_eq!(store.add_monitor(&monitor("n", 1), quota(2), entry("add")).await.unwrap(), MonitorAdmission::Added);
        assert_eq!(store.add_monitor(&monitor("o", 1), quota(2), entry("add")).await.unwrap(), MonitorAdmission::Full);
        let of_owner = MonitorQuota { total: 9, of_owner: Some(2) };
        let refused = store.add_monitor(&monitor("o", 1), of_owner, entry("add")).await.unwrap();
        assert_eq!(refused, MonitorAdmission::OwnerFull);
        let mut other = monitor("o", 1);
        other.owner.tenant = Some("other".into());
        assert_eq!(store.add_monitor(&other, of_owner, entry("add")).await.unwrap(), MonitorAdmission::Added);
        assert!(store.remove_monitor("o", 1, entry("remove")).await.unwrap());
        let mut second_version = Monitor { next_run_at: None, ..monitor("m", 2) };
        second_version.definition.value = SeriesValue::Metric("order_value".into());
        assert!(store.replace_monitor(&second_version, entry("change")).await.unwrap());
        assert_eq!(store.monitor("m").await.unwrap(), Some(second_version.clone()));
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
        store.add_monitor(&monitor("m", 1), quota(2), entry("add")).await.unwrap();
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
        // Several pages of one row have the same alerts as one page.
        let mut page = AlertFilter { limit: 1, ..any.clone() };
        for alert in &alerts {
            assert_eq!(store.alerts("m", "view", &page).await.unwrap(), std::slice::from_ref(alert));
            page.older_than = Some((alert.triggered_at, alert.id.clone()));
        }
        assert!(store.alerts("m", "view", &page).await.unwrap().is_empty());
        let mut page = DetectionFilter { limit: 1, ..all.clone() };
        for detection in &detections {
            assert_eq!(store.detections("m", "view", &page).await.unwrap(), std::slice::from_ref(detection));
            page.older_than = Some((detection.step.at_ms, detection.id.clone()));
        }
        assert!(store.detections("m", "view", &page).await.unwrap().is_empty());
        let revision = store.alerts_revision().await.unwrap();
        assert_eq!((revision.open, revision.monitors, revision.monitors_changed), (2, 1, Some(second(2))));
        let stored = store.monitor("m").await.unwrap().unwrap();
        assert_eq!((stored.judged_until_ms, stored.next_run_at), (Some(2 * 86_400_000), Some(second(300))));
        // A round over an earlier range does not move the newest evaluated step back.
        store.write_round(&round(vec![step(Some("EU"), 0, false)], 300), None, &new_id).await.unwrap();
        assert_eq!(store.monitor("m").await.unwrap().unwrap().judged_until_ms, Some(2 * 86_400_000));
        // Open alerts are escalated twice. Normal steps then resolve them.
        let lease = store.acquire("monitors", "w1", Duration::from_secs(60)).await.unwrap().unwrap();
        for (at, escalated) in [(200 + 59, 0), (200 + 60, 2), (200 + 61, 0), (200 + 300, 2), (200 + 900, 0)] {
            assert_eq!(store.escalate_alerts(second(at), 10, &lease, &new_id).await.unwrap(), Some(escalated), "{at}");
        }
        let ends = vec![step(Some("EU"), 3, false), step(Some("EU"), 4, false), step(None, 2, true)];
        assert!(store.write_round(&round(ends, 400), Some(&lease), &new_id).await.unwrap());
        let resolved = AlertFilter { state: Some(AlertState::Resolved), ..any.clone() };
        let resolved = store.alerts("m", "view", &resolved).await.unwrap();
        let open = AlertFilter { is_open: true, ..any.clone() };
        assert!(store.alerts("m", "view", &open).await.unwrap().iter().all(|alert| alert.resolved_at.is_none()));
        assert_eq!(resolved.iter().map(|alert| (alert.escalations, alert.detections)).collect::<Vec<_>>(), [(2, 1)]);
        // A round with a stale lease, or of an unknown monitor, writes nothing.
        store.release(&lease).await.unwrap();
        store.acquire("monitors", "w2", Duration::from_secs(60)).await.unwrap().unwrap();
        assert!(!store.write_round(&round(Vec::new(), 500), Some(&lease), &new_id).await.unwrap());
        assert_eq!(store.escalate_alerts(second(9_999), 10, &lease, &new_id).await.unwrap(), None);
        let unknown = MonitorRound { monitor_id: "x".into(), ..round(Vec::new(), 500) };
        assert!(!store.write_round(&unknown, None, &new_id).await.unwrap());
        // An alert is written only if its version has not changed.
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

fn channel(target: &str) -> Channel {
    Channel { kind: ChannelType::Webhook, target: target.into() }
}

/// Returns a monitor that sends its messages to two channels after ten minutes.
fn sending(id: &str) -> Monitor {
    let mut monitor = monitor(id, 1);
    let alerts = &mut monitor.definition.alerts;
    alerts.channels = vec![channel("a"), channel("b")];
    alerts.escalations = vec![EscalationRule { after_minutes: 20, notify: vec![channel("c")] }];
    alerts.grouping_minutes = 10;
    monitor
}

#[test]
fn messages_are_written_with_their_alerts_and_sent_in_order() {
    on_both(|place| async move {
        let store = place.open().await;
        assert_eq!(store.add_monitor(&sending("m"), quota(2), entry("add")).await.unwrap(), MonitorAdmission::Added);
        assert_eq!(store.monitor("m").await.unwrap(), Some(sending("m")));
        let number = AtomicU32::new(0);
        let new_id = || -> Arc<str> { format!("{:03}", number.fetch_add(1, Ordering::Relaxed)).into() };
        let all = DeliveryFilter { limit: 100, ..DeliveryFilter::default() };
        // The round is at second 200, so both channels wait until second 800. The second
        // round is before second 800, so its alerts join the waiting messages.
        store.write_round(&round(vec![step(Some("EU"), 1, true)], 300), None, &new_id).await.unwrap();
        store.write_round(&round(vec![step(Some("US"), 1, true)], 300), None, &new_id).await.unwrap();
        let waiting = store.deliveries("m", &all).await.unwrap();
        assert_eq!(waiting.len(), 2, "{waiting:?}");
        assert!(waiting.iter().all(|delivery| delivery.message.alerts.len() == 2 && delivery.due_at == second(800)));
        assert_eq!(waiting[0].message.alerts[0].expected, Some(1e300));
        assert_eq!(store.next_delivery().await.unwrap(), Some(second(800)));
        assert!(store.due_deliveries(second(799), 10).await.unwrap().is_empty());
        // Normal steps resolve the alerts. Messages about resolved alerts are sent after the first messages.
        let normal = |day| vec![step(Some("EU"), day, false), step(Some("US"), day, false)];
        store.write_round(&round([normal(2), normal(3)].concat(), 300), None, &new_id).await.unwrap();
        assert_eq!(store.deliveries("m", &all).await.unwrap().len(), 4);

        let lease = store.acquire("deliveries", "w1", Duration::from_secs(60)).await.unwrap().unwrap();
        let due = store.due_deliveries(second(900), 10).await.unwrap();
        assert_eq!(due.len(), 2, "the first message of each channel: {due:?}");
        let claimed = store.claim_deliveries(&due, &lease).await.unwrap().unwrap();
        assert!(claimed.iter().all(|claimed| claimed.delivery.attempts == 1));
        // One channel accepts its message. The other one pauses, and its second message waits for the first.
        let failed = Err(SendError::Temporary { reason: "busy".to_owned(), after: None });
        let results = [Ok(()), failed];
        let after: Vec<DueDelivery> = claimed
            .iter()
            .zip(results)
            .map(|(claimed, result)| after_attempt(claimed, result, second(900), 0.5))
            .collect();
        assert!(store.write_attempts(&after, &lease).await.unwrap());
        let due = store.due_deliveries(second(902), 10).await.unwrap();
        let channels = [channel("a"), channel("b"), channel("c"), channel("unused")];
        assert_eq!(due.iter().map(|due| due.delivery.message.kind).collect::<Vec<_>>(), [MessageKind::Resolved]);
        assert_eq!(store.lanes(&channels).await.unwrap().len(), 1);
        let due = store.due_deliveries(second(910), 10).await.unwrap();
        assert_eq!(due.len(), 2, "{due:?}");
        // A channel whose receiver is gone is disabled until one of its messages is sent again.
        let disabled = Err(SendError::Disabled { reason: "gone".to_owned() });
        let paused = due.iter().find(|due| due.lane.failures > 0).unwrap();
        let gone = after_attempt(paused, disabled, second(910), 0.5);
        assert!(store.write_attempts(&[gone], &lease).await.unwrap());
        let id = &paused.delivery.message.id;
        assert_eq!(store.delivery(id).await.unwrap().unwrap().state, DeliveryState::Failed);
        assert_eq!(store.lanes(&channels).await.unwrap()[0].disabled.as_deref(), Some("gone"));
        let replay = |at| store.replay_delivery(id, second(at), second(at + 10), entry("replay"));
        assert!(replay(1_000).await.unwrap());
        assert!(!replay(1_001).await.unwrap(), "it waits already");
        assert!(store.lanes(&channels).await.unwrap().is_empty());
        // A worker that has lost its lease writes nothing.
        store.release(&lease).await.unwrap();
        let newer = store.acquire("deliveries", "w2", Duration::from_secs(60)).await.unwrap();
        assert!(newer.is_some());
        assert!(store.claim_deliveries(&due, &lease).await.unwrap().is_none());
        assert!(!store.write_attempts(&due, &lease).await.unwrap());
        // The test of a channel takes the channel's turn.
        assert!(store.take_lane(&channel("t"), second(0), second(1), entry("test")).await.unwrap());
        assert!(!store.take_lane(&channel("t"), second(0), second(1), entry("test")).await.unwrap());
        assert!(store.take_lane(&channel("t"), second(1), second(2), entry("test")).await.unwrap());
        assert_eq!(store.prune_deliveries(second(901)).await.unwrap(), 1);
        // The lanes of tests are deleted after their pause has ended.
        for second_of_test in 10..20 {
            let tested = channel(&format!("t{second_of_test}"));
            let until = second(second_of_test + 1);
            assert!(store.take_lane(&tested, second(second_of_test), until, entry("test")).await.unwrap());
        }
        let paused = [10, 18, 19].map(|second_of_test| channel(&format!("t{second_of_test}")));
        let mut free = Vec::new();
        for channel in &paused {
            free.push(store.take_lane(channel, second(19), second(20), entry("test")).await.unwrap());
        }
        assert_eq!(free, [true, true, false]);
    });
}

#[test]
fn escalations_and_moves_write_messages() {
    on_both(|place| async move {
        let store = place.open().await;
        store.add_monitor(&sending("m"), quota(2), entry("add")).await.unwrap();
        let number = AtomicU32::new(0);
        let new_id = || -> Arc<str> { format!("{:03}", number.fetch_add(1, Ordering::Relaxed)).into() };
        let rules = sending("m").definition.alerts;
        let opened = MonitorRound { rules, ..round(vec![step(Some("EU"), 1, true)], 300) };
        store.write_round(&opened, None, &new_id).await.unwrap();
        let lease = store.acquire("monitors", "w1", Duration::from_secs(60)).await.unwrap().unwrap();
        assert_eq!(store.escalate_alerts(second(200 + 1_200), 10, &lease, &new_id).await.unwrap(), Some(1));
        let any = AlertFilter { limit: 10, ..AlertFilter::default() };
        let alert = store.alerts("m", "view", &any).await.unwrap().remove(0);
        let resolved = Alert {
            state: AlertState::Resolved,
            version: alert.version + 1,
            resolved_at: Some(second(2_000)),
            ..alert.clone()
        };
        assert!(store.replace_alert(&resolved, second(2_000), entry("move"), &new_id).await.unwrap());
        let all = DeliveryFilter { limit: 100, ..DeliveryFilter::default() };
        let mut written = store.deliveries("m", &all).await.unwrap();
        written.sort_by_key(|delivery| delivery.sequence);
        let shown: Vec<(MessageKind, &str)> =
            written.iter().map(|delivery| (delivery.message.kind, &*delivery.channel.target)).collect();
        use MessageKind::{Escalated, Resolved, Triggered};
        assert_eq!(shown, [(Triggered, "a"), (Triggered, "b"), (Escalated, "c"), (Resolved, "a"), (Resolved, "b")]);
        assert!(store.remove_monitor("m", 1, entry("remove")).await.unwrap());
        assert!(store.deliveries("m", &all).await.unwrap().is_empty());
    });
}
