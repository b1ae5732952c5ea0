//! The port to monitors of measures and metrics, and to their detections and alerts.
//!
//! In: definitions, rounds of monitors, and moves of alerts. Out: the records. A round writes its detections and the
//! changes of alerts in one transaction. Not here: the rules of alerts (`monitors::alerts`), and the rights of readers.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use terrane_compiler::types::Granularity;

pub use super::alert_state::AlertState;
use super::audit::AuditEntry;
use super::channels::Channel;
use super::jobs::OwnerIdentity;
use super::leases::Lease;
use super::severity::FindingSeverity;
use super::store::StoreError;
use crate::domain::{SeriesKey, SeriesValue};

/// The definition of a monitor, as its owner set it.
#[derive(Debug, Clone, PartialEq)]
pub struct MonitorDefinition {
    pub name: Arc<str>,
    pub value: SeriesValue,
    pub detector: Arc<str>,
    /// The sensitivity; `None` for the detector's default.
    pub sensitivity: Option<f64>,
    /// The dimensions that distinguish series. Each combination of their values is one series.
    pub dimensions: Vec<Arc<str>>,
    /// The schedule, as a cron expression.
    pub schedule: Arc<str>,
    /// The IANA name of the zone in which the schedule is interpreted.
    pub timezone: Arc<str>,
    pub granularity: Granularity,
    /// The number of steps of history before the first evaluated step.
    pub training_size: u32,
    pub is_enabled: bool,
    pub alerts: AlertConfig,
}

/// The rules of a monitor's alerts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlertConfig {
    /// Detections below this severity cause no alert.
    pub min_severity: FindingSeverity,
    /// The number of normal steps after which an alert is resolved.
    pub resolve_after_steps: u32,
    /// The escalation rules, in ascending order of time.
    pub escalations: Vec<EscalationRule>,
    /// The channels that messages are sent to. This server lists every alert as well.
    pub channels: Vec<Channel>,
    /// The number of minutes for which the first message about new alerts waits for further alerts.
    pub grouping_minutes: u32,
}

/// A rule that escalates an alert that is not acknowledged in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EscalationRule {
    /// The number of minutes after the alert was triggered.
    pub after_minutes: u32,
    /// The channels to notify; empty to notify the channels of the monitor.
    pub notify: Vec<Channel>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Monitor {
    pub id: Arc<str>,
    pub definition: MonitorDefinition,
    /// The caller under whose policies the monitor runs.
    pub owner: OwnerIdentity,
    pub version: u64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// The time of the next run; `None` while the monitor is disabled.
    pub next_run_at: Option<Timestamp>,
    pub last_run: Option<MonitorRun>,
    /// The start of the newest evaluated step, in milliseconds since 1970-01-01T00:00:00.
    pub judged_until_ms: Option<i64>,
    /// The digest of the owner's view of the measure.
    pub view: Option<Arc<str>>,
}

/// The last round of a monitor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MonitorRun {
    pub at: Timestamp,
    pub outcome: RunOutcome,
    /// The reason why nothing was evaluated; `None` if steps were evaluated.
    pub message: Option<Arc<str>>,
}

/// The outcome of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunOutcome {
    Scored,
    /// The expected step has no data yet.
    NoData,
    Failed,
    /// The account of the owner is gone, or policies no longer allow the owner to query the measure.
    Paused,
}

impl RunOutcome {
    pub const ALL: [RunOutcome; 4] = [RunOutcome::Scored, RunOutcome::NoData, RunOutcome::Failed, RunOutcome::Paused];

    pub fn as_str(self) -> &'static str {
        match self {
            RunOutcome::Scored => "scored",
            RunOutcome::NoData => "no_data",
            RunOutcome::Failed => "failed",
            RunOutcome::Paused => "paused",
        }
    }

    /// Returns the value with this name; `None` if the name is unknown.
    pub fn named(word: &str) -> Option<Self> {
        RunOutcome::ALL.into_iter().find(|outcome| outcome.as_str() == word)
    }
}

/// One evaluated step of one series.
#[derive(Debug, Clone, PartialEq)]
pub struct ScoredStep {
    pub series: SeriesKey,
    /// The start of the step, in milliseconds since 1970-01-01T00:00:00.
    pub at_ms: i64,
    pub value: Option<f64>,
    pub expected: Option<f64>,
    pub lower_bound: Option<f64>,
    pub upper_bound: Option<f64>,
    pub raw: Option<f64>,
    /// The score from 0 to 1.
    pub score: f64,
    pub severity: FindingSeverity,
    pub is_anomalous: bool,
}

/// An anomalous step.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredDetection {
    pub id: Arc<str>,
    pub monitor_id: Arc<str>,
    pub step: ScoredStep,
    /// The component of the detector and its version.
    pub detector: Arc<str>,
    /// The digest of the owner's view of the measure.
    pub view: Arc<str>,
    pub detected_at: Timestamp,
}

/// An alert about one series of a monitor. A series has at most one alert that is not resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct Alert {
    pub id: Arc<str>,
    pub monitor_id: Arc<str>,
    pub series: SeriesKey,
    pub state: AlertState,
    /// The highest severity of the alert's detections.
    pub severity: FindingSeverity,
    /// The first and the last anomalous step, in milliseconds since 1970-01-01T00:00:00.
    pub first_step_ms: i64,
    pub last_step_ms: i64,
    /// The start of the newest evaluated step, in milliseconds since 1970-01-01T00:00:00.
    pub judged_until_ms: i64,
    /// The number of anomalous steps.
    pub detections: u64,
    /// The number of normal steps since the last anomalous step.
    pub normal_steps: u32,
    /// The digest of the owner's view of the measure.
    pub view: Arc<str>,
    pub triggered_at: Timestamp,
    pub acknowledged_at: Option<Timestamp>,
    pub acknowledged_by: Option<Arc<str>>,
    pub resolved_at: Option<Timestamp>,
    /// The user who resolved the alert; `None` if normal steps resolved it.
    pub resolved_by: Option<Arc<str>>,
    /// The number of escalations.
    pub escalations: u32,
    /// The time of the next escalation.
    pub escalates_at: Option<Timestamp>,
    pub version: u64,
}

/// The result of one round of a monitor.
#[derive(Debug, Clone, PartialEq)]
pub struct MonitorRound {
    pub monitor_id: Arc<str>,
    pub run: MonitorRun,
    /// The time of the next run; `None` if the monitor does not run again by itself.
    pub next_run_at: Option<Timestamp>,
    /// The evaluated steps of all series, in ascending order of time within each series.
    pub steps: Vec<ScoredStep>,
    pub judged_until_ms: Option<i64>,
    /// The component of the detector and its version.
    pub detector: Arc<str>,
    /// The digest of the owner's view of the measure; `None` if nothing was evaluated.
    pub view: Option<Arc<str>>,
    pub rules: AlertConfig,
}

/// A selection of detections, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DetectionFilter {
    /// The start of the first selected step, in milliseconds since 1970-01-01T00:00:00.
    pub from_ms: Option<i64>,
    /// The start of the first step that is not selected, in milliseconds since 1970-01-01T00:00:00.
    pub before_ms: Option<i64>,
    pub min_severity: Option<FindingSeverity>,
    /// The step and the id of the last row of the previous page; `None` for the first page.
    pub older_than: Option<(i64, Arc<str>)>,
    pub limit: u32,
}

/// A selection of alerts, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AlertFilter {
    pub state: Option<AlertState>,
    /// Selects alerts that are not resolved.
    pub is_open: bool,
    pub min_severity: Option<FindingSeverity>,
    /// The time and the id of the last row of the previous page; `None` for the first page.
    pub older_than: Option<(Timestamp, Arc<str>)>,
    pub limit: u32,
}

/// A digest of all alerts and monitors. It changes when an alert is triggered, changes or is resolved, and when a
/// monitor is created, replaced or deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AlertsRevision {
    /// The number of alerts that are not resolved.
    pub open: u64,
    /// The sum of the versions of these alerts.
    pub versions: u64,
    /// The time at which the newest alert was triggered.
    pub newest: Option<Timestamp>,
    /// The number of monitors.
    pub monitors: u64,
    /// The time at which the newest definition of a monitor was written.
    pub monitors_changed: Option<Timestamp>,
}

/// The largest numbers of monitors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MonitorQuota {
    /// The limit for all owners together.
    pub total: u32,
    /// The limit for the owner of a new monitor; `None` if only the total is limited.
    pub of_owner: Option<u32>,
}

/// The outcome of adding a monitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MonitorAdmission {
    Added,
    /// The owner has as many monitors as one owner may have.
    OwnerFull,
    /// The state database contains the maximum number of monitors.
    Full,
}

impl MonitorQuota {
    /// Decides whether an owner may add a monitor. `owners` are the owners of all existing monitors.
    pub fn admit<'m>(
        self,
        owner: &OwnerIdentity,
        owners: impl IntoIterator<Item = &'m OwnerIdentity>,
    ) -> MonitorAdmission {
        let is_owner =
            |other: &OwnerIdentity| other.caller.user_id == owner.caller.user_id && other.tenant == owner.tenant;
        let (mut total, mut own) = (0_u32, 0_u32);
        for other in owners {
            total = total.saturating_add(1);
            own = own.saturating_add(u32::from(is_owner(other)));
        }
        match () {
            () if self.of_owner.is_some_and(|most| own >= most) => MonitorAdmission::OwnerFull,
            () if total >= self.total => MonitorAdmission::Full,
            () => MonitorAdmission::Added,
        }
    }
}

/// Creates the ids of detections, alerts and messages.
pub type NewId<'a> = &'a (dyn Fn() -> Arc<str> + Send + Sync);

/// Monitors, detections and alerts.
#[async_trait]
pub trait MonitorRecords: Send + Sync {
    /// Returns all monitors, by name and id.
    async fn monitors(&self) -> Result<Vec<Monitor>, StoreError>;
    async fn monitor(&self, id: &str) -> Result<Option<Monitor>, StoreError>;
    /// Stores a new monitor, unless a quota is reached.
    async fn add_monitor(
        &self,
        monitor: &Monitor,
        quota: MonitorQuota,
        entry: AuditEntry,
    ) -> Result<MonitorAdmission, StoreError>;
    /// Replaces the definition, owner and next run of the monitor, if the stored version is one less. Otherwise returns
    /// false.
    async fn replace_monitor(&self, monitor: &Monitor, entry: AuditEntry) -> Result<bool, StoreError>;
    /// Deletes a monitor with its detections and alerts, if it has this version. Otherwise returns false.
    async fn remove_monitor(&self, id: &str, version: u64, entry: AuditEntry) -> Result<bool, StoreError>;

    /// Returns the time of the next run or escalation; `None` if neither is scheduled.
    async fn next_monitor_run(&self) -> Result<Option<Timestamp>, StoreError>;
    /// Returns the enabled monitors whose next run is due, oldest first.
    async fn due_monitors(&self, now: Timestamp, limit: u32) -> Result<Vec<Monitor>, StoreError>;
    /// Writes a round: its detections, the changes of alerts with their messages, and the monitor's last run. The
    /// detections of steps that were evaluated before are replaced. Returns false and writes nothing if the monitor is
    /// gone, or if a lease is given and is stale.
    async fn write_round(
        &self,
        round: &MonitorRound,
        lease: Option<&Lease>,
        new_id: NewId<'_>,
    ) -> Result<bool, StoreError>;
    /// Escalates due alerts, at most `limit`. Returns their number; `None` if the lease is stale.
    async fn escalate_alerts(
        &self,
        now: Timestamp,
        limit: u32,
        lease: &Lease,
        new_id: NewId<'_>,
    ) -> Result<Option<u64>, StoreError>;

    /// Returns the detections of a monitor whose view has the digest `view`. The newest step comes first, then the
    /// highest id.
    async fn detections(
        &self,
        monitor_id: &str,
        view: &str,
        filter: &DetectionFilter,
    ) -> Result<Vec<StoredDetection>, StoreError>;
    async fn detection(&self, id: &str) -> Result<Option<StoredDetection>, StoreError>;
    /// Returns the alerts of a monitor whose view has the digest `view`. The newest alert comes first, then the highest
    /// id.
    async fn alerts(&self, monitor_id: &str, view: &str, filter: &AlertFilter) -> Result<Vec<Alert>, StoreError>;
    async fn alert(&self, id: &str) -> Result<Option<Alert>, StoreError>;
    async fn alerts_revision(&self) -> Result<AlertsRevision, StoreError>;
    /// Replaces an alert, if the stored version is one less. Otherwise returns false. `now` is the time of the change.
    async fn replace_alert(
        &self,
        alert: &Alert,
        now: Timestamp,
        entry: AuditEntry,
        new_id: NewId<'_>,
    ) -> Result<bool, StoreError>;
}
