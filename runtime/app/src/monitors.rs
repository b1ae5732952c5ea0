//! Monitors: measures and metrics that are evaluated on a schedule, their detections, and alerts.
//!
//! In: definitions of callers, and the worker's lease. Out: detections and alerts. A monitor runs with the current
//! rights of its owner, so policies and hooks apply. Detections and alerts carry the digest of the statement that
//! policies and hooks allowed the owner. Another caller sees them only if its own statement has the same digest. So
//! they never show rows or members that their reader may not see.
//!
//! A round has three steps. First, [`scoring`] finds the newest complete step with data, and scores the steps since the
//! last round. Then one transaction of the store writes the detections, the changed alerts ([`alerts`]), the messages
//! about these ([`messages`]) and the monitor's run. Last, [`delivery`] sends the messages. Repeating a round changes
//! nothing. Not here: the algorithms (components), the formats of messages (the adapter of channels).

mod acknowledge_link;
mod alerts;
mod channels;
mod check;
mod delivery;
mod error;
mod feeds;
mod follow;
mod listing;
mod merge;
mod messages;
mod root_cause;
mod scoring;
mod task;
mod views;

use std::sync::Arc;

use jiff::Timestamp;

pub use alerts::{AlertMove, RoundFacts, after_steps, escalated};
pub use channels::SeenChannel;
pub use delivery::{DeliveryTask, after_attempt};
pub use error::{MonitorError, NotExplained};
pub use feeds::FollowedAlerts;
pub use messages::{AlertEvent, Outbox, deliveries_of, message_kinds};
pub use root_cause::{DataCause, Moved, RootCause, RootSlice, SliceFilter};
pub use scoring::ScoredRange;
pub use task::MonitorTask;

use crate::anomaly::AnomalyService;
use crate::cron_schedule::{CronSchedule, ScheduleError};
use crate::domain::{Identity, Precondition, RequestContext, Scope};
use crate::jobs::{is_own, owner_of};
use crate::ports::channels::AlertChannels;
use crate::ports::clock::Clock;
use crate::ports::credentials::Credentials;
use crate::ports::deliveries::DeliveryRecords;
use crate::ports::detectors::DetectorList;
use crate::ports::monitors::{
    Alert, AlertsRevision, Monitor, MonitorAdmission, MonitorDefinition, MonitorQuota, MonitorRecords, MonitorRun,
    RunOutcome, StoredDetection,
};
use crate::ports::tokens::Randomness;
use crate::query::QueryService;
use crate::security::{AccessRecorder, AcknowledgeKey, ScopeError, current_rights};
use crate::shared_reader::SharedReader;
use channels::{TestLog, may_change, without_targets};
use check::check;
use feeds::AlertFeeds;
use views::ViewCache;

/// The largest number of monitors in a state database.
pub const MAX_MONITORS: u32 = 500;
/// The largest number of monitors of one owner who lacks the scope `admin`.
pub const MAX_MONITORS_OF_OWNER: u32 = 100;
/// The largest page of detections or alerts.
pub const MAX_LISTED: u32 = 1_000;

/// The ports and use cases that monitors need.
pub struct MonitorPorts {
    pub records: Arc<dyn MonitorRecords>,
    pub deliveries: Arc<dyn DeliveryRecords>,
    pub channels: Arc<dyn AlertChannels>,
    pub anomalies: Arc<AnomalyService>,
    pub queries: Arc<QueryService>,
    pub credentials: Arc<dyn Credentials>,
    pub access: Arc<AccessRecorder>,
    pub randomness: Arc<dyn Randomness>,
    pub clock: Arc<dyn Clock>,
    /// The key of links that acknowledge alerts.
    pub acknowledge_key: AcknowledgeKey,
}

/// The use cases of monitors.
pub struct MonitorService {
    ports: MonitorPorts,
    /// The reader of the state database that all followers of alerts share.
    reader: SharedReader<AlertsRevision>,
    views: ViewCache,
    feeds: AlertFeeds,
    tests: TestLog,
}

/// A detection, with the monitor that detected it.
#[derive(Debug, Clone, PartialEq)]
pub struct SeenDetection {
    pub detection: StoredDetection,
    pub monitor: Arc<Monitor>,
}

/// An alert, with the monitor that it belongs to.
#[derive(Debug, Clone, PartialEq)]
pub struct SeenAlert {
    pub alert: Alert,
    pub monitor: Arc<Monitor>,
}

/// A caller who changes the state of an alert.
#[derive(Clone, Copy)]
struct AlertActor<'a> {
    request: &'a RequestContext,
    /// The name that the alert shows for the caller.
    name: &'a Arc<str>,
    /// The value `link` in the audit log if the caller follows a link of a message; `None` if the request has a
    /// credential.
    via: Option<&'static str>,
}

impl MonitorService {
    pub fn new(ports: MonitorPorts) -> Self {
        MonitorService {
            ports,
            reader: SharedReader::default(),
            views: ViewCache::default(),
            feeds: AlertFeeds::default(),
            tests: TestLog::default(),
        }
    }

    /// Stores a monitor of the caller.
    ///
    /// # Errors
    /// The definition is invalid, the caller may not query the measure, or there are too many monitors.
    pub async fn create(
        &self,
        identity: &Identity,
        request: &RequestContext,
        definition: MonitorDefinition,
    ) -> Result<Monitor, MonitorError> {
        let (schedule, definition) = self.checked(request, definition).await?;
        let now = self.ports.clock.now();
        let monitor = Monitor {
            id: self.new_id(),
            view: Some(self.view(request, &definition).await?),
            owner: owner_of(identity),
            version: 1,
            created_at: now,
            updated_at: now,
            next_run_at: schedule.next(now).filter(|_| definition.is_enabled),
            last_run: None,
            judged_until_ms: None,
            definition,
        };
        let mut entry = self.ports.access.entry("monitor_created", request, resource(&monitor.id));
        entry.after = Some(check::details(&monitor.definition));
        let of_owner = (!request.scopes.hold(Scope::Admin)).then_some(MAX_MONITORS_OF_OWNER);
        let quota = MonitorQuota { total: MAX_MONITORS, of_owner };
        match self.ports.records.add_monitor(&monitor, quota, entry).await? {
            MonitorAdmission::Added => Ok(monitor),
            MonitorAdmission::OwnerFull => Err(MonitorError::TooManyOfOwner { most: MAX_MONITORS_OF_OWNER }),
            MonitorAdmission::Full => Err(MonitorError::TooMany),
        }
    }

    /// Returns one monitor that the caller may see.
    ///
    /// # Errors
    /// The monitor does not exist for the caller, or the state database cannot be read.
    pub async fn monitor(
        &self,
        identity: &Identity,
        request: &RequestContext,
        id: &str,
    ) -> Result<Monitor, MonitorError> {
        let mut monitor = self.ports.records.monitor(id).await?.ok_or(MonitorError::Unknown)?;
        self.complete(std::slice::from_mut(&mut monitor)).await;
        match self.is_visible(identity, &self.view_reader(request), &monitor).await {
            true => Ok(shown(monitor, identity, request)),
            false => Err(MonitorError::Unknown),
        }
    }

    /// Replaces the definition of a monitor. The caller becomes its owner. So a monitor never runs with rights that the
    /// author of its definition does not have.
    ///
    /// # Errors
    /// Returns the same errors as [`MonitorService::create`]. Also if the caller is not the owner and lacks `admin`, or
    /// if the monitor has a different version.
    pub async fn replace(
        &self,
        identity: &Identity,
        request: &RequestContext,
        id: &str,
        definition: MonitorDefinition,
        precondition: &Precondition,
    ) -> Result<Monitor, MonitorError> {
        let before = self.changeable(identity, request, id).await?;
        precondition.check(before.version, false)?;
        let (schedule, definition) = self.checked(request, definition).await?;
        let now = self.ports.clock.now();
        let is_same_series = before.definition.value == definition.value
            && before.definition.dimensions == definition.dimensions
            && before.definition.granularity == definition.granularity;
        let monitor = Monitor {
            view: Some(self.view(request, &definition).await?),
            owner: owner_of(identity),
            version: before.version + 1,
            updated_at: now,
            next_run_at: schedule.next(now).filter(|_| definition.is_enabled),
            judged_until_ms: before.judged_until_ms.filter(|_| is_same_series),
            definition,
            ..before.clone()
        };
        let mut entry = self.ports.access.entry("monitor_changed", request, resource(id));
        entry.before = Some(check::details(&before.definition));
        entry.after = Some(check::details(&monitor.definition));
        if self.ports.records.replace_monitor(&monitor, entry).await? {
            Ok(monitor)
        } else {
            Err(MonitorError::Contended)
        }
    }

    /// Deletes a monitor with its detections and alerts.
    ///
    /// # Errors
    /// The caller is not the owner and lacks `admin`, or the monitor has a different version.
    pub async fn remove(
        &self,
        identity: &Identity,
        request: &RequestContext,
        id: &str,
        precondition: &Precondition,
    ) -> Result<(), MonitorError> {
        let monitor = self.changeable(identity, request, id).await?;
        precondition.check(monitor.version, false)?;
        let mut entry = self.ports.access.entry("monitor_deleted", request, resource(id));
        entry.before = Some(check::details(&monitor.definition));
        match self.ports.records.remove_monitor(id, monitor.version, entry).await? {
            true => Ok(()),
            false => Err(MonitorError::Contended),
        }
    }

    /// Runs a monitor now with the rights of its owner, over a range or over the steps since its last round.
    ///
    /// # Errors
    /// The caller is not the owner and lacks `admin`, or nothing could be evaluated.
    pub async fn run_now(
        &self,
        identity: &Identity,
        request: &RequestContext,
        id: &str,
        range: Option<ScoredRange>,
    ) -> Result<MonitorRun, MonitorError> {
        let monitor = self.changeable(identity, request, id).await?;
        if let Some(range) = &range {
            range.check(monitor.definition.granularity)?;
        }
        let round = self.round(&monitor, range.as_ref()).await?;
        let run = round.run.clone();
        let is_written = self.ports.records.write_round(&round, None, &|| self.new_id()).await?;
        if is_written { Ok(run) } else { Err(MonitorError::Unknown) }
    }

    /// Returns one detection that the caller may see.
    ///
    /// # Errors
    /// The detection does not exist for the caller, or the state database cannot be read.
    pub async fn detection(&self, request: &RequestContext, id: &str) -> Result<SeenDetection, MonitorError> {
        let detection = self.ports.records.detection(id).await?.ok_or(MonitorError::UnknownDetection)?;
        let monitor = self.ports.records.monitor(&detection.monitor_id).await?;
        let monitor = Arc::new(monitor.ok_or(MonitorError::UnknownDetection)?);
        match self.view_of(&self.view_reader(request), &monitor).await {
            Some(view) if view == detection.view => Ok(SeenDetection { detection, monitor }),
            _ => Err(MonitorError::UnknownDetection),
        }
    }

    /// Returns one alert that the caller may see.
    ///
    /// # Errors
    /// The alert does not exist for the caller, or the state database cannot be read.
    pub async fn alert(&self, request: &RequestContext, id: &str) -> Result<SeenAlert, MonitorError> {
        let alert = self.ports.records.alert(id).await?.ok_or(MonitorError::UnknownAlert)?;
        let monitor = self.ports.records.monitor(&alert.monitor_id).await?;
        let monitor = Arc::new(monitor.ok_or(MonitorError::UnknownAlert)?);
        match self.view_of(&self.view_reader(request), &monitor).await {
            Some(view) if view == alert.view => Ok(SeenAlert { alert, monitor }),
            _ => Err(MonitorError::UnknownAlert),
        }
    }

    /// Moves an alert that the caller may see to another state.
    ///
    /// # Errors
    /// The state of the alert does not allow the move, or the alert has a different version.
    pub async fn move_alert(
        &self,
        request: &RequestContext,
        id: &str,
        step: AlertMove,
        precondition: &Precondition,
    ) -> Result<SeenAlert, MonitorError> {
        let seen = self.alert(request, id).await?;
        precondition.check(seen.alert.version, false)?;
        self.write_move(seen, step, AlertActor { request, name: &request.caller.user_id, via: None }).await
    }

    async fn write_move(
        &self,
        seen: SeenAlert,
        step: AlertMove,
        mover: AlertActor<'_>,
    ) -> Result<SeenAlert, MonitorError> {
        let state = seen.alert.state;
        let moved = alerts::moved(&seen.alert, step, mover.name, self.ports.clock.now());
        let moved = moved.ok_or_else(|| {
            let allowed = AlertMove::ALL.into_iter().filter(|step| step.is_allowed_in(state)).collect();
            MonitorError::MoveNotAllowed { step, state, allowed }
        })?;
        let mut entry = self.ports.access.entry("alert_moved", mover.request, format!("alert:{}", moved.id));
        entry.before = Some(check::state_details(state, None));
        entry.after = Some(check::state_details(moved.state, mover.via));
        let now = self.ports.clock.now();
        match self.ports.records.replace_alert(&moved, now, entry, &|| self.new_id()).await? {
            true => Ok(SeenAlert { alert: moved, monitor: seen.monitor }),
            false => Err(MonitorError::Contended),
        }
    }

    /// Explains a detection by the slices of the measure that moved, with the rights of the caller.
    ///
    /// # Errors
    /// The caller may not see the detection, or a query failed.
    pub async fn root_cause(
        &self,
        request: &RequestContext,
        detection_id: &str,
    ) -> Result<(SeenDetection, RootCause), MonitorError> {
        let seen = self.detection(request, detection_id).await?;
        let cause = root_cause::explain(&self.ports.queries, request, &seen).await?;
        Ok((seen, cause))
    }

    /// Returns the kinds of detectors.
    pub async fn detectors(&self) -> DetectorList {
        self.ports.anomalies.kinds().await
    }

    /// Returns a monitor that the caller may change.
    async fn changeable(
        &self,
        identity: &Identity,
        request: &RequestContext,
        id: &str,
    ) -> Result<Monitor, MonitorError> {
        let monitor = self.monitor(identity, request, id).await?;
        if is_own(&monitor.owner, identity) {
            return Ok(monitor);
        }
        match self.ports.access.require(request, Scope::Admin).await {
            Ok(()) => Ok(monitor),
            Err(ScopeError::Missing { .. }) => Err(MonitorError::NotOwner),
            Err(ScopeError::Store(error)) => Err(error.into()),
        }
    }

    /// Checks a definition. Returns its schedule, and the definition with the sensitivity that its rounds use.
    async fn checked(
        &self,
        request: &RequestContext,
        mut definition: MonitorDefinition,
    ) -> Result<(CronSchedule, MonitorDefinition), MonitorError> {
        check(&definition)?;
        let schedule = CronSchedule::parse(&definition.schedule, &definition.timezone)?;
        if schedule.next(self.ports.clock.now()).is_none() {
            return Err(ScheduleError::Never { text: definition.schedule.to_string() }.into());
        }
        self.check_channels(&definition).await?;
        let detector = self.ports.anomalies.detector(&definition.detector).await?;
        if definition.training_size < detector.min_points {
            let problem = format!("must be at least {} for the detector `{}`", detector.min_points, detector.kind);
            return Err(MonitorError::Invalid { field: "training_size", problem });
        }
        definition.sensitivity.get_or_insert(detector.default_sensitivity);
        self.view(request, &definition).await?;
        Ok((schedule, definition))
    }

    /// Sets the sensitivity of monitors that were stored without one to the default of their detector, which their rounds
    /// use.
    async fn complete(&self, monitors: &mut [Monitor]) {
        if monitors.iter().all(|monitor| monitor.definition.sensitivity.is_some()) {
            return;
        }
        let kinds = self.ports.anomalies.kinds().await.kinds;
        let incomplete = monitors.iter_mut().filter(|monitor| monitor.definition.sensitivity.is_none());
        for Monitor { definition, .. } in incomplete {
            let kind = kinds.iter().find(|kind| kind.kind == definition.detector);
            definition.sensitivity = kind.map(|kind| kind.default_sensitivity);
        }
    }

    /// Returns 128 random bits as a string.
    fn new_id(&self) -> Arc<str> {
        let mut random = [0; 16];
        self.ports.randomness.fill(&mut random);
        hex::encode(random).into()
    }

    /// Returns the context of a monitor's queries; `None` if the account of its owner is gone.
    async fn owner_context(&self, monitor: &Monitor) -> Result<Option<RequestContext>, MonitorError> {
        let now = self.ports.clock.now();
        let owner = current_rights(&*self.ports.credentials, &monitor.owner, now).await?;
        Ok(owner.map(|owner| RequestContext {
            caller: owner.caller,
            scopes: owner.scopes,
            tenant: owner.tenant,
            correlation_id: format!("monitor-{}", monitor.id).into(),
            ..RequestContext::default()
        }))
    }
}

/// Returns a monitor without the details that the caller may not see.
fn shown(monitor: Monitor, identity: &Identity, request: &RequestContext) -> Monitor {
    if may_change(&monitor, identity, request) { monitor } else { without_targets(monitor) }
}

fn resource(id: &str) -> String {
    format!("monitor:{id}")
}

fn run_of(at: Timestamp, outcome: RunOutcome, message: Option<String>) -> MonitorRun {
    MonitorRun { at, outcome, message: message.map(Into::into) }
}
