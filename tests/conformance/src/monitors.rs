//! Monitors in memory, whose alerts follow the same rules as those of the state database. They send no messages to
//! channels; the system tests test messages.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use jiff::Timestamp;
use terrane_app::monitors::{RoundFacts, after_steps, escalated};
use terrane_app::ports::audit::AuditEntry;
use terrane_app::ports::channels::Channel;
use terrane_app::ports::deliveries::{Delivery, DeliveryFilter, DeliveryRecords, DueDelivery, Lane};
use terrane_app::ports::leases::Lease;
use terrane_app::ports::monitors::{
    Alert, AlertFilter, AlertsRevision, DetectionFilter, Monitor, MonitorAdmission, MonitorQuota, MonitorRecords,
    MonitorRound, NewId, StoredDetection,
};
use terrane_app::ports::store::StoreError;
use terrane_channels::{ChannelSettings, Channels, SlackSettings, WebhookSettings};
use terrane_outgoing::{AllowList, OutgoingClient};

use crate::fakes::FakeClock;

/// Monitors, detections and alerts of one world.
#[derive(Default)]
pub struct MemoryMonitors(Mutex<Records>);

#[derive(Default)]
struct Records {
    monitors: Vec<Monitor>,
    detections: Vec<StoredDetection>,
    alerts: Vec<Alert>,
}

impl MemoryMonitors {
    fn records(&self) -> MutexGuard<'_, Records> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Records {
    fn put(&mut self, alert: Alert) {
        self.alerts.retain(|known| known.id != alert.id);
        self.alerts.push(alert);
    }

    fn detect(&mut self, round: &MonitorRound, view: &std::sync::Arc<str>, new_id: NewId<'_>) {
        for step in &round.steps {
            self.detections.retain(|known| {
                known.monitor_id != round.monitor_id
                    || (&known.step.series, known.step.at_ms) != (&step.series, step.at_ms)
            });
            if step.is_anomalous {
                self.detections.push(StoredDetection {
                    id: new_id(),
                    monitor_id: round.monitor_id.clone(),
                    step: step.clone(),
                    detector: round.detector.clone(),
                    view: view.clone(),
                    detected_at: round.run.at,
                });
            }
        }
    }

    fn alarm(&mut self, round: &MonitorRound, view: &std::sync::Arc<str>, new_id: NewId<'_>) {
        let mut series: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for step in &round.steps {
            series.entry(&step.series).or_default().push(step);
        }
        let facts = RoundFacts { monitor_id: &round.monitor_id, view, rules: &round.rules, at: round.run.at };
        for (key, steps) in series {
            let own = |alert: &&Alert| alert.monitor_id == round.monitor_id && alert.series == *key;
            let open = self.alerts.iter().filter(own).find(|alert| alert.resolved_at.is_none()).cloned();
            let ended = self.alerts.iter().filter(own).filter(|alert| alert.resolved_at.is_some());
            let newest = ended.map(|alert| alert.judged_until_ms).max();
            for alert in after_steps(open, newest, &steps, facts, new_id) {
                self.put(alert);
            }
        }
    }
}

#[async_trait]
impl MonitorRecords for MemoryMonitors {
    async fn monitors(&self) -> Result<Vec<Monitor>, StoreError> {
        let mut monitors = self.records().monitors.clone();
        monitors.sort_by_key(|monitor| (monitor.definition.name.clone(), monitor.id.clone()));
        Ok(monitors)
    }

    async fn monitor(&self, id: &str) -> Result<Option<Monitor>, StoreError> {
        Ok(self.records().monitors.iter().find(|monitor| &*monitor.id == id).cloned())
    }

    async fn add_monitor(
        &self,
        monitor: &Monitor,
        quota: MonitorQuota,
        _: AuditEntry,
    ) -> Result<MonitorAdmission, StoreError> {
        let mut records = self.records();
        let admission = quota.admit(&monitor.owner, records.monitors.iter().map(|stored| &stored.owner));
        if admission == MonitorAdmission::Added {
            records.monitors.push(monitor.clone());
        }
        Ok(admission)
    }

    async fn replace_monitor(&self, monitor: &Monitor, _: AuditEntry) -> Result<bool, StoreError> {
        let mut records = self.records();
        let is_before = |known: &&mut Monitor| known.id == monitor.id && known.version + 1 == monitor.version;
        let found = records.monitors.iter_mut().find(is_before);
        Ok(found.map(|known| *known = monitor.clone()).is_some())
    }

    async fn remove_monitor(&self, id: &str, version: u64, _: AuditEntry) -> Result<bool, StoreError> {
        let mut records = self.records();
        let before = records.monitors.len();
        records.monitors.retain(|monitor| &*monitor.id != id || monitor.version != version);
        Ok(records.monitors.len() < before)
    }

    async fn next_monitor_run(&self) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.records().monitors.iter().filter_map(|monitor| monitor.next_run_at).min())
    }

    async fn due_monitors(&self, now: Timestamp, limit: u32) -> Result<Vec<Monitor>, StoreError> {
        let is_due = |monitor: &&Monitor| monitor.next_run_at.is_some_and(|at| at <= now);
        Ok(self.records().monitors.iter().filter(is_due).take(limit as usize).cloned().collect())
    }

    async fn write_round(
        &self,
        round: &MonitorRound,
        _: Option<&Lease>,
        new_id: NewId<'_>,
    ) -> Result<bool, StoreError> {
        let mut records = self.records();
        let Some(monitor) = records.monitors.iter_mut().find(|monitor| monitor.id == round.monitor_id) else {
            return Ok(false);
        };
        monitor.next_run_at = round.next_run_at;
        monitor.last_run = Some(round.run.clone());
        monitor.judged_until_ms = monitor.judged_until_ms.max(round.judged_until_ms);
        if let Some(view) = &round.view {
            monitor.view = Some(view.clone());
            records.detect(round, view, new_id);
            records.alarm(round, view, new_id);
        }
        Ok(true)
    }

    async fn escalate_alerts(
        &self,
        now: Timestamp,
        _: u32,
        _: &Lease,
        _: NewId<'_>,
    ) -> Result<Option<u64>, StoreError> {
        let mut records = self.records();
        let due: Vec<Alert> =
            records.alerts.iter().filter(|alert| alert.escalates_at.is_some_and(|at| at <= now)).cloned().collect();
        for alert in &due {
            let monitor = records.monitors.iter().find(|monitor| monitor.id == alert.monitor_id);
            if let Some(rules) = monitor.map(|monitor| monitor.definition.alerts.clone()) {
                records.put(escalated(alert, &rules));
            }
        }
        Ok(Some(due.len() as u64))
    }

    async fn detections(
        &self,
        monitor_id: &str,
        view: &str,
        filter: &DetectionFilter,
    ) -> Result<Vec<StoredDetection>, StoreError> {
        let is_wanted = |detection: &&StoredDetection| {
            let step = &detection.step;
            &*detection.monitor_id == monitor_id
                && &*detection.view == view
                && filter.from_ms.is_none_or(|from| step.at_ms >= from)
                && filter.before_ms.is_none_or(|before| step.at_ms < before)
                && filter.min_severity.is_none_or(|severity| step.severity >= severity)
                && filter.older_than.as_ref().is_none_or(|place| (step.at_ms, detection.id.clone()) < *place)
        };
        let mut found: Vec<_> = self.records().detections.iter().filter(is_wanted).cloned().collect();
        found.sort_by_key(|detection| std::cmp::Reverse((detection.step.at_ms, detection.id.clone())));
        found.truncate(filter.limit as usize);
        Ok(found)
    }

    async fn detection(&self, id: &str) -> Result<Option<StoredDetection>, StoreError> {
        Ok(self.records().detections.iter().find(|detection| &*detection.id == id).cloned())
    }

    async fn alerts(&self, monitor_id: &str, view: &str, filter: &AlertFilter) -> Result<Vec<Alert>, StoreError> {
        let is_wanted = |alert: &&Alert| {
            &*alert.monitor_id == monitor_id
                && &*alert.view == view
                && filter.state.is_none_or(|state| alert.state == state)
                && (!filter.is_open || alert.resolved_at.is_none())
                && filter.min_severity.is_none_or(|severity| alert.severity >= severity)
                && filter.older_than.as_ref().is_none_or(|place| (alert.triggered_at, alert.id.clone()) < *place)
        };
        let mut found: Vec<_> = self.records().alerts.iter().filter(is_wanted).cloned().collect();
        found.sort_by_key(|alert| std::cmp::Reverse((alert.triggered_at, alert.id.clone())));
        found.truncate(filter.limit as usize);
        Ok(found)
    }

    async fn alert(&self, id: &str) -> Result<Option<Alert>, StoreError> {
        Ok(self.records().alerts.iter().find(|alert| &*alert.id == id).cloned())
    }

    async fn alerts_revision(&self) -> Result<AlertsRevision, StoreError> {
        let records = self.records();
        let open: Vec<&Alert> = records.alerts.iter().filter(|alert| alert.resolved_at.is_none()).collect();
        let (count, versions) = (open.len() as u64, open.iter().map(|alert| alert.version).sum());
        let newest = records.alerts.iter().map(|alert| alert.triggered_at).max();
        let monitors = records.monitors.len() as u64;
        let monitors_changed = records.monitors.iter().map(|monitor| monitor.updated_at).max();
        Ok(AlertsRevision { open: count, versions, newest, monitors, monitors_changed })
    }

    async fn replace_alert(
        &self,
        alert: &Alert,
        _: Timestamp,
        _: AuditEntry,
        _: NewId<'_>,
    ) -> Result<bool, StoreError> {
        let mut records = self.records();
        let is_before = |known: &Alert| known.id == alert.id && known.version + 1 == alert.version;
        let is_found = records.alerts.iter().any(is_before);
        if is_found {
            records.put(alert.clone());
        }
        Ok(is_found)
    }
}

#[async_trait]
impl DeliveryRecords for MemoryMonitors {
    async fn next_delivery(&self) -> Result<Option<Timestamp>, StoreError> {
        Ok(None)
    }

    async fn due_deliveries(&self, _: Timestamp, _: u32) -> Result<Vec<DueDelivery>, StoreError> {
        Ok(Vec::new())
    }

    async fn claim_deliveries(&self, _: &[DueDelivery], _: &Lease) -> Result<Option<Vec<DueDelivery>>, StoreError> {
        Ok(Some(Vec::new()))
    }

    async fn write_attempts(&self, _: &[DueDelivery], _: &Lease) -> Result<bool, StoreError> {
        Ok(true)
    }

    async fn prune_deliveries(&self, _: Timestamp) -> Result<u64, StoreError> {
        Ok(0)
    }

    async fn deliveries(&self, _: &str, _: &DeliveryFilter) -> Result<Vec<Delivery>, StoreError> {
        Ok(Vec::new())
    }

    async fn delivery(&self, _: &str) -> Result<Option<Delivery>, StoreError> {
        Ok(None)
    }

    async fn replay_delivery(&self, _: &str, _: Timestamp, _: Timestamp, _: AuditEntry) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn lanes(&self, _: &[Channel]) -> Result<Vec<Lane>, StoreError> {
        Ok(Vec::new())
    }

    async fn take_lane(&self, _: &Channel, _: Timestamp, _: Timestamp, _: AuditEntry) -> Result<bool, StoreError> {
        Ok(true)
    }

    async fn enable_lane(&self, _: &Channel) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Returns channels with one webhook and one Slack channel. Their hosts do not exist.
pub fn channels() -> Channels {
    let webhook = WebhookSettings {
        name: "ops".into(),
        url: "https://hooks.invalid/ops".to_owned(),
        secrets: Vec::new(),
        is_cleared: true,
    };
    let slack = SlackSettings {
        name: "data-alerts".into(),
        url: "https://slack.invalid/services/secret".to_owned(),
        is_cleared: false,
    };
    let settings = ChannelSettings { webhooks: vec![webhook], slack: vec![slack], ..ChannelSettings::default() };
    let outgoing = OutgoingClient::new(AllowList::default(), None).expect("a client");
    Channels::new(settings, outgoing, Arc::new(FakeClock::default()), None).expect("valid channels")
}
