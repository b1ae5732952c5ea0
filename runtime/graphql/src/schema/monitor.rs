//! Monitors, detections and alerts.
//!
//! In: records of the use case. Out: the fields that REST sends, under names in GraphQL's convention.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_graphql::{Context, ID, SimpleObject};
use futures_util::StreamExt as _;
use futures_util::stream::Stream;
use terrane_app::monitors::{FollowedAlerts, MAX_LISTED, MonitorError, MonitorService};
use terrane_app::ports::monitors::{AlertFilter, AlertState, DetectionFilter};
use terrane_app::ports::severity::FindingSeverity;
use terrane_wire::anomaly as wire;
use terrane_wire::{Code, ErrorBody};

use super::alert_rules::AlertRules;
use super::alert_state::{AlertStatus, Severity};
use super::inputs;
use super::json::Json;
use super::request::{RequestParts, state};
use crate::failure::Failure;

/// The number of records if a field has no `limit`.
const DEFAULT_LIMIT: u32 = 100;

/// A measure or metric that is evaluated on a schedule.
#[derive(SimpleObject)]
pub(crate) struct Monitor {
    id: ID,
    name: String,
    /// Null for a metric.
    cube: Option<String>,
    /// Null for a metric.
    measure: Option<String>,
    /// Null for a measure.
    metric: Option<String>,
    detector: String,
    /// Null for the detector's own.
    sensitivity: Option<f64>,
    /// One series for each combination of their values.
    dimensions: Vec<String>,
    /// The schedule, as a cron expression.
    schedule: String,
    timezone: String,
    /// The length of a step, such as `day`.
    granularity: String,
    /// The number of steps of history before the first evaluated step.
    training_size: u32,
    enabled: bool,
    alert_config: AlertRules,
    /// The user under whose policies it runs.
    owner: String,
    /// Null if it is disabled or paused.
    next_run_at: Option<String>,
    /// `scored`, `no_data`, `failed` or `paused`; null before the first round.
    last_outcome: Option<String>,
    last_message: Option<String>,
    /// The time of the last round.
    last_run_at: Option<String>,
    /// The newest evaluated step.
    judged_until: Option<String>,
    created_at: String,
    updated_at: String,
    version: u64,
}

/// An anomalous step.
#[derive(SimpleObject)]
pub(crate) struct Detection {
    id: ID,
    monitor_id: ID,
    /// Null for a metric.
    cube: Option<String>,
    /// Null for a metric.
    measure: Option<String>,
    /// Null for a measure.
    metric: Option<String>,
    /// The values of the dimensions of the series.
    dimensions: Json,
    /// The start of the step.
    time: String,
    value: Option<f64>,
    expected: Option<f64>,
    lower_bound: Option<f64>,
    upper_bound: Option<f64>,
    /// The score from 0 to 1.
    score: f64,
    severity: Severity,
    detected_at: String,
}

/// The anomalous steps of one series until they are resolved.
#[derive(SimpleObject)]
pub(crate) struct Alert {
    id: ID,
    monitor_id: ID,
    monitor_name: String,
    /// Null for a metric.
    cube: Option<String>,
    /// Null for a metric.
    measure: Option<String>,
    /// Null for a measure.
    metric: Option<String>,
    /// The values of the dimensions of the series.
    dimensions: Json,
    status: AlertStatus,
    /// The largest severity of its detections.
    severity: Severity,
    /// The first anomalous step.
    first_step: String,
    /// The last anomalous step.
    last_step: String,
    /// The number of anomalous steps.
    detections: u64,
    triggered_at: String,
    acknowledged_at: Option<String>,
    acknowledged_by: Option<String>,
    resolved_at: Option<String>,
    /// The caller who resolved the alert. Null if it is not resolved, or if normal steps resolved it.
    resolved_by: Option<String>,
    version: u64,
}

/// Returns the monitors that the caller may see.
///
/// # Errors
/// Monitors are switched off.
pub(crate) async fn monitors(context: &Context<'_>) -> Result<Vec<Monitor>, Failure> {
    let state = state(context);
    let parts = &state.parts;
    let monitors = service(parts)?.monitors(&parts.context.identity(), &parts.context.request).await;
    let monitors = monitors.map_err(|error| refused(error, parts))?;
    let monitors: Vec<Monitor> = monitors.iter().map(|monitor| wire::Monitor::from(&**monitor).into()).collect();
    let items = |list: &str| monitors.iter().filter_map(|one| one.items(list)).reduce(|sum, items| sum + items);
    state.count(context, monitors.len(), &items)?;
    Ok(monitors)
}

/// Returns one monitor that the caller may see.
///
/// # Errors
/// Monitors are switched off, or the monitor does not exist for the caller.
pub(crate) async fn monitor(context: &Context<'_>, id: &str) -> Result<Monitor, Failure> {
    let state = state(context);
    let parts = &state.parts;
    state.count_items(0)?;
    let monitor = service(parts)?.monitor(&parts.context.identity(), &parts.context.request, id).await;
    let monitor = Monitor::from(wire::Monitor::from(&monitor.map_err(|error| refused(error, parts))?));
    state.count(context, 1, &|list| monitor.items(list))?;
    Ok(monitor)
}

/// Returns one alert that the caller may see.
///
/// # Errors
/// Monitors are switched off, or the alert does not exist for the caller.
pub(crate) async fn alert(context: &Context<'_>, id: &str) -> Result<Alert, Failure> {
    let state = state(context);
    let parts = &state.parts;
    state.count_items(0)?;
    let seen = service(parts)?.alert(&parts.context.request, id).await.map_err(|error| refused(error, parts))?;
    Ok(Alert::from(wire::Alert::from(&seen)))
}

/// Returns the detections that the caller may see, newest step first.
///
/// # Errors
/// Monitors are switched off, the monitor is unknown, or a date or the limit is invalid.
pub(crate) async fn detections(
    context: &Context<'_>,
    monitor_id: Option<ID>,
    dates: [Option<String>; 2],
    min_severity: Option<Severity>,
    limit: Option<i64>,
) -> Result<Vec<Detection>, Failure> {
    let state = state(context);
    let parts = &state.parts;
    let [from_ms, before_ms] = wire::date_bounds(dates)?;
    let min_severity = min_severity.map(FindingSeverity::from);
    let filter = DetectionFilter {
        from_ms,
        before_ms,
        min_severity,
        limit: checked_limit(limit)?,
        ..DetectionFilter::default()
    };
    let (identity, request) = (parts.context.identity(), &parts.context.request);
    let seen = service(parts)?.detections(&identity, request, monitor_id.as_deref().map(String::as_str), &filter).await;
    let seen = seen.map_err(|error| refused(error, parts))?;
    state.count(context, seen.len(), &|_| None)?;
    Ok(seen.iter().map(|seen| Detection::from(wire::Detection::from(seen))).collect())
}

/// Returns the alerts that the caller may see, newest first.
///
/// # Errors
/// Monitors are switched off, the monitor is unknown, or the limit is invalid.
pub(crate) async fn alerts(
    context: &Context<'_>,
    monitor_id: Option<ID>,
    status: Option<AlertStatus>,
    min_severity: Option<Severity>,
    limit: Option<i64>,
) -> Result<Vec<Alert>, Failure> {
    let state = state(context);
    let filter = AlertFilter {
        state: status.map(AlertState::from),
        min_severity: min_severity.map(FindingSeverity::from),
        limit: checked_limit(limit)?,
        ..AlertFilter::default()
    };
    let alerts = listed(&state.parts, monitor_id.as_ref(), &filter).await?;
    state.count(context, alerts.len(), &|_| None)?;
    Ok(alerts)
}

/// Returns a stream of alerts: first the open ones that the caller may see, then each alert that is triggered or
/// changed.
///
/// # Errors
/// Monitors are switched off. Items of the stream are errors if the monitor is unknown or the state database cannot be
/// read.
pub(crate) fn followed_alerts(
    parts: Arc<RequestParts>,
    monitor_id: Option<ID>,
    min_severity: Option<Severity>,
) -> Result<impl Stream<Item = Result<Alert, Failure>> + Send + use<>, Failure> {
    let followed = FollowedAlerts {
        identity: parts.context.identity(),
        request: parts.context.request.clone(),
        monitor_id: monitor_id.map(|id| id.as_str().into()),
        min_severity: min_severity.map(FindingSeverity::from),
    };
    let alerts = shared_service(&parts)?.follow_alerts(followed);
    Ok(alerts.map(move |seen| match seen {
        Ok(seen) => Ok(Alert::from(wire::Alert::from(&seen))),
        Err(error) => Err(refused(error, &parts)),
    }))
}

async fn listed(parts: &RequestParts, monitor_id: Option<&ID>, filter: &AlertFilter) -> Result<Vec<Alert>, Failure> {
    let (identity, request) = (parts.context.identity(), &parts.context.request);
    let monitor_id = monitor_id.map(|id| id.as_str());
    let seen = service(parts)?.alerts(&identity, request, monitor_id, filter).await;
    let seen = seen.map_err(|error| refused(error, parts))?;
    Ok(seen.iter().map(|seen| Alert::from(wire::Alert::from(seen))).collect())
}

pub(super) fn service(parts: &RequestParts) -> Result<&MonitorService, Failure> {
    shared_service(parts).map(|service| &**service)
}

fn shared_service(parts: &RequestParts) -> Result<&Arc<MonitorService>, Failure> {
    let off = || ErrorBody::new(Code::NotFound, "monitors are switched off on this server").into();
    parts.server()?.monitors.as_ref().ok_or_else(off)
}

pub(super) fn refused(error: MonitorError, parts: &RequestParts) -> Failure {
    ErrorBody::from_monitor(error, parts.context.request.scopes).into()
}

pub(super) fn values(dimensions: &BTreeMap<&str, Option<&str>>) -> Json {
    Json::object(dimensions.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())))
}

pub(super) fn checked_limit(limit: Option<i64>) -> Result<u32, Failure> {
    inputs::checked_limit(limit, DEFAULT_LIMIT, MAX_LISTED)
}

impl Monitor {
    /// Returns the number of items of a list below the monitor.
    fn items(&self, list: &str) -> Option<usize> {
        match list {
            "dimensions" => Some(self.dimensions.len()),
            _ => self.alert_config.items(list),
        }
    }
}

impl From<wire::Monitor<'_>> for Monitor {
    fn from(monitor: wire::Monitor<'_>) -> Self {
        let run = monitor.last_run;
        Monitor {
            id: monitor.id.into(),
            name: monitor.name.to_owned(),
            cube: monitor.names.cube_name.map(str::to_owned),
            measure: monitor.names.measure_name.map(str::to_owned),
            metric: monitor.names.metric_name.map(str::to_owned),
            detector: monitor.detector_type.to_owned(),
            sensitivity: monitor.sensitivity,
            dimensions: monitor.dimensions.into_iter().map(str::to_owned).collect(),
            schedule: monitor.schedule.to_owned(),
            timezone: monitor.timezone.to_owned(),
            granularity: monitor.granularity.to_owned(),
            training_size: monitor.training_size,
            enabled: monitor.enabled,
            alert_config: monitor.alert_config.into(),
            owner: monitor.owner.to_owned(),
            next_run_at: monitor.next_run_at,
            last_outcome: run.as_ref().map(|run| run.outcome.to_owned()),
            last_message: run.as_ref().and_then(|run| run.message.map(str::to_owned)),
            last_run_at: run.map(|run| run.at),
            judged_until: monitor.judged_until,
            created_at: monitor.created_at,
            updated_at: monitor.updated_at,
            version: monitor.version,
        }
    }
}

impl From<wire::Detection<'_>> for Detection {
    fn from(detection: wire::Detection<'_>) -> Self {
        Detection {
            id: detection.id.into(),
            monitor_id: detection.monitor_id.into(),
            cube: detection.names.cube_name.map(str::to_owned),
            measure: detection.names.measure_name.map(str::to_owned),
            metric: detection.names.metric_name.map(str::to_owned),
            dimensions: values(&detection.dimensions),
            time: detection.time,
            value: detection.value,
            expected: detection.expected,
            lower_bound: detection.lower_bound,
            upper_bound: detection.upper_bound,
            score: detection.score,
            severity: Severity::named(detection.severity),
            detected_at: detection.detected_at,
        }
    }
}

impl From<wire::Alert<'_>> for Alert {
    fn from(alert: wire::Alert<'_>) -> Self {
        Alert {
            id: alert.id.into(),
            monitor_id: alert.monitor_id.into(),
            monitor_name: alert.monitor_name.to_owned(),
            cube: alert.names.cube_name.map(str::to_owned),
            measure: alert.names.measure_name.map(str::to_owned),
            metric: alert.names.metric_name.map(str::to_owned),
            dimensions: values(&alert.dimensions),
            status: AlertStatus::named(alert.status),
            severity: Severity::named(alert.severity),
            first_step: alert.first_step,
            last_step: alert.last_step,
            detections: alert.detections,
            triggered_at: alert.triggered_at,
            acknowledged_at: alert.acknowledged_at,
            acknowledged_by: alert.acknowledged_by.map(str::to_owned),
            resolved_at: alert.resolved_at,
            resolved_by: alert.resolved_by.map(str::to_owned),
            version: alert.version,
        }
    }
}
