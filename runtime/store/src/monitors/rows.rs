//! Converts rows of monitors, detections and alerts.

use std::sync::Arc;

use serde_json::Value as Json;
use terrane_app::domain::{SeriesKey, SeriesValue};
use terrane_app::ports::channels::{Channel, ChannelType};
use terrane_app::ports::jobs::OwnerIdentity;
use terrane_app::ports::monitors::{
    Alert, AlertConfig, AlertState, EscalationRule, Monitor, MonitorDefinition, MonitorRun, RunOutcome, ScoredStep,
    StoredDetection,
};
use terrane_app::ports::severity::FindingSeverity;
use terrane_app::ports::store::StoreError;
use terrane_compiler::SecurityContext;

use crate::database::Row;
use crate::row::{self, auth_method, maybe_text, maybe_time, micros, odd, signed, text, time, unsigned, words};
use crate::statement::{Bound, Statement};

pub(crate) const MONITORS: [&str; 32] = [
    "id",
    "name",
    "cube",
    "measure",
    "metric",
    "detector",
    "sensitivity",
    "dimensions",
    "schedule",
    "timezone",
    "granularity",
    "training_size",
    "is_enabled",
    "min_severity",
    "resolve_after_steps",
    "escalations",
    "channels",
    "grouping_minutes",
    "owner",
    "auth_method",
    "scopes",
    "credential",
    "tenant",
    "version",
    "created_at",
    "updated_at",
    "next_run_at",
    "last_run_at",
    "last_outcome",
    "last_message",
    "judged_until",
    "seen_as",
];
pub(crate) const MONITOR_NUMBERS: [&str; 10] = [
    "training_size",
    "is_enabled",
    "resolve_after_steps",
    "grouping_minutes",
    "version",
    "created_at",
    "updated_at",
    "next_run_at",
    "last_run_at",
    "judged_until",
];
pub(crate) const DETECTIONS: [&str; 14] = [
    "id",
    "monitor_id",
    "series",
    "step",
    "value",
    "expected",
    "lower_bound",
    "upper_bound",
    "raw",
    "score",
    "severity",
    "detector",
    "seen_as",
    "detected_at",
];
pub(crate) const DETECTION_NUMBERS: [&str; 3] = ["step", "severity", "detected_at"];
pub(crate) const ALERTS: [&str; 19] = [
    "id",
    "monitor_id",
    "series",
    "state",
    "severity",
    "first_step",
    "last_step",
    "judged_until",
    "detections",
    "normal_steps",
    "seen_as",
    "triggered_at",
    "acknowledged_at",
    "acknowledged_by",
    "resolved_at",
    "resolved_by",
    "escalations",
    "escalates_at",
    "version",
];
pub(crate) const ALERT_NUMBERS: [&str; 12] = [
    "severity",
    "first_step",
    "last_step",
    "judged_until",
    "detections",
    "normal_steps",
    "triggered_at",
    "acknowledged_at",
    "resolved_at",
    "escalations",
    "escalates_at",
    "version",
];

const WRITE_DETECTION: &str = "\
    INSERT INTO detections (id, monitor_id, series, step, value, expected, lower_bound, upper_bound, raw, score, \
    severity, detector, seen_as, detected_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) \
    ON CONFLICT (monitor_id, series, step, detector) DO UPDATE SET value = excluded.value, \
    expected = excluded.expected, lower_bound = excluded.lower_bound, upper_bound = excluded.upper_bound, \
    raw = excluded.raw, score = excluded.score, severity = excluded.severity, seen_as = excluded.seen_as";

const WRITE_ALERT: &str = "\
    INSERT INTO alerts (id, monitor_id, series, state, severity, first_step, last_step, judged_until, detections, \
    normal_steps, seen_as, triggered_at, acknowledged_at, acknowledged_by, resolved_at, resolved_by, escalations, \
    escalates_at, version) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, \
    $19) ON CONFLICT (id) DO UPDATE SET state = excluded.state, severity = excluded.severity, \
    last_step = excluded.last_step, judged_until = excluded.judged_until, detections = excluded.detections, \
    normal_steps = excluded.normal_steps, seen_as = excluded.seen_as, acknowledged_at = excluded.acknowledged_at, \
    acknowledged_by = excluded.acknowledged_by, resolved_at = excluded.resolved_at, \
    resolved_by = excluded.resolved_by, escalations = excluded.escalations, escalates_at = excluded.escalates_at, \
    version = excluded.version";

/// Returns the position of a severity in ascending order, counted from 0.
pub(super) fn severity_rank(severity: FindingSeverity) -> i64 {
    FindingSeverity::ALL.iter().position(|known| *known == severity).map_or(0, |place| place as i64)
}

fn severity_of(rank: i64) -> Result<FindingSeverity, StoreError> {
    let place = usize::try_from(rank).ok();
    place.and_then(|place| FindingSeverity::ALL.get(place).copied()).ok_or_else(|| odd("a severity"))
}

pub(super) fn monitor_row(monitor: &Monitor) -> Vec<Bound> {
    let (definition, owner) = (&monitor.definition, &monitor.owner);
    let dimensions: Vec<&str> = definition.dimensions.iter().map(|name| &**name).collect();
    let run = monitor.last_run.as_ref();
    let (cube, measure, metric) = value_names(&definition.value);
    vec![
        (&*monitor.id).into(),
        (&*definition.name).into(),
        cube.into(),
        measure.into(),
        metric.into(),
        (&*definition.detector).into(),
        number_text(definition.sensitivity).as_deref().into(),
        (&*Json::from(dimensions).to_string()).into(),
        (&*definition.schedule).into(),
        (&*definition.timezone).into(),
        definition.granularity.as_str().into(),
        i64::from(definition.training_size).into(),
        i64::from(definition.is_enabled).into(),
        definition.alerts.min_severity.as_str().into(),
        i64::from(definition.alerts.resolve_after_steps).into(),
        (&*escalations_text(&definition.alerts.escalations)).into(),
        (&*channels_json(&definition.alerts.channels).to_string()).into(),
        i64::from(definition.alerts.grouping_minutes).into(),
        (&*row::caller_text(&owner.caller)).into(),
        owner.caller.auth_method.as_str().into(),
        (&*words(owner.scopes)).into(),
        (&*owner.credential).into(),
        owner.tenant.as_deref().into(),
        signed(monitor.version).into(),
        micros(monitor.created_at).into(),
        micros(monitor.updated_at).into(),
        monitor.next_run_at.map(micros).into(),
        run.map(|run| micros(run.at)).into(),
        run.map(|run| run.outcome.as_str()).into(),
        run.and_then(|run| run.message.as_deref()).into(),
        monitor.judged_until_ms.into(),
        monitor.view.as_deref().into(),
    ]
}

/// Returns the columns `cube`, `measure` and `metric` for the value of a series. For a metric, the first two are empty.
pub(crate) fn value_names(value: &SeriesValue) -> (&str, &str, Option<&str>) {
    match value {
        SeriesValue::Measure { cube, measure } => (cube, measure, None),
        SeriesValue::Metric(metric) => ("", "", Some(metric)),
    }
}

pub(crate) fn value_of(cube: String, measure: String, metric: Option<String>) -> SeriesValue {
    match metric {
        Some(metric) => SeriesValue::Metric(metric.into()),
        None => SeriesValue::Measure { cube: cube.into(), measure: measure.into() },
    }
}

pub(crate) fn monitor(row: &Row) -> Result<Monitor, StoreError> {
    let small = |column| row.integer(column).map(|number| u32::try_from(number).unwrap_or(u32::MAX));
    let min_severity = FindingSeverity::named(&row.text("min_severity")?);
    let definition = MonitorDefinition {
        name: text(row, "name")?,
        value: value_of(row.text("cube")?, row.text("measure")?, row.maybe_text("metric")?),
        detector: text(row, "detector")?,
        sensitivity: number(row, "sensitivity")?,
        dimensions: list(row, "dimensions")?.into_iter().map(|name: String| name.into()).collect(),
        schedule: text(row, "schedule")?,
        timezone: text(row, "timezone")?,
        granularity: row.text("granularity")?.parse().map_err(|_| odd("a granularity"))?,
        training_size: small("training_size")?,
        is_enabled: row.integer("is_enabled")? != 0,
        alerts: AlertConfig {
            min_severity: min_severity.ok_or_else(|| odd("a severity"))?,
            resolve_after_steps: small("resolve_after_steps")?,
            escalations: escalations(row)?,
            channels: channels(&list(row, "channels")?)?,
            grouping_minutes: small("grouping_minutes")?,
        },
    };
    let caller = row::caller(&row.text("owner")?)?;
    let owner = OwnerIdentity {
        caller: SecurityContext { auth_method: auth_method(&row.text("auth_method")?)?, ..caller },
        scopes: row::scopes(&row.text("scopes")?),
        credential: text(row, "credential")?,
        tenant: maybe_text(row, "tenant")?,
    };
    let last_run = match maybe_time(row.maybe_integer("last_run_at")?)? {
        Some(at) => {
            let outcome = RunOutcome::named(&row.text("last_outcome")?).ok_or_else(|| odd("an outcome"))?;
            Some(MonitorRun { at, outcome, message: maybe_text(row, "last_message")? })
        }
        None => None,
    };
    Ok(Monitor {
        id: text(row, "id")?,
        definition,
        owner,
        version: unsigned(row, "version")?,
        created_at: time(row.integer("created_at")?)?,
        updated_at: time(row.integer("updated_at")?)?,
        next_run_at: maybe_time(row.maybe_integer("next_run_at")?)?,
        last_run,
        judged_until_ms: row.maybe_integer("judged_until")?,
        view: maybe_text(row, "seen_as")?,
    })
}

pub(super) fn write_detection(detection: &StoredDetection) -> Statement {
    let step = &detection.step;
    Statement::new(WRITE_DETECTION)
        .bind(&*detection.id)
        .bind(&*detection.monitor_id)
        .bind(&*series_text(&step.series))
        .bind(step.at_ms)
        .bind(number_text(step.value).as_deref())
        .bind(number_text(step.expected).as_deref())
        .bind(number_text(step.lower_bound).as_deref())
        .bind(number_text(step.upper_bound).as_deref())
        .bind(number_text(step.raw).as_deref())
        .bind(&*step.score.to_string())
        .bind(severity_rank(step.severity))
        .bind(&*detection.detector)
        .bind(&*detection.view)
        .bind(micros(detection.detected_at))
}

pub(crate) fn detection(row: &Row) -> Result<StoredDetection, StoreError> {
    Ok(StoredDetection {
        id: text(row, "id")?,
        monitor_id: text(row, "monitor_id")?,
        step: ScoredStep {
            series: series(&row.text("series")?)?,
            at_ms: row.integer("step")?,
            value: number(row, "value")?,
            expected: number(row, "expected")?,
            lower_bound: number(row, "lower_bound")?,
            upper_bound: number(row, "upper_bound")?,
            raw: number(row, "raw")?,
            score: number(row, "score")?.unwrap_or_default(),
            severity: severity_of(row.integer("severity")?)?,
            is_anomalous: true,
        },
        detector: text(row, "detector")?,
        view: text(row, "seen_as")?,
        detected_at: time(row.integer("detected_at")?)?,
    })
}

pub(super) fn write_alert(alert: &Alert) -> Statement {
    Statement::new(WRITE_ALERT)
        .bind(&*alert.id)
        .bind(&*alert.monitor_id)
        .bind(&*series_text(&alert.series))
        .bind(alert.state.as_str())
        .bind(severity_rank(alert.severity))
        .bind(alert.first_step_ms)
        .bind(alert.last_step_ms)
        .bind(alert.judged_until_ms)
        .bind(signed(alert.detections))
        .bind(i64::from(alert.normal_steps))
        .bind(&*alert.view)
        .bind(micros(alert.triggered_at))
        .bind(alert.acknowledged_at.map(micros))
        .bind(alert.acknowledged_by.as_deref())
        .bind(alert.resolved_at.map(micros))
        .bind(alert.resolved_by.as_deref())
        .bind(i64::from(alert.escalations))
        .bind(alert.escalates_at.map(micros))
        .bind(signed(alert.version))
}

pub(super) fn alert(row: &Row) -> Result<Alert, StoreError> {
    let small = |column| row.integer(column).map(|number| u32::try_from(number).unwrap_or(u32::MAX));
    Ok(Alert {
        id: text(row, "id")?,
        monitor_id: text(row, "monitor_id")?,
        series: series(&row.text("series")?)?,
        state: AlertState::named(&row.text("state")?).ok_or_else(|| odd("a state of an alert"))?,
        severity: severity_of(row.integer("severity")?)?,
        first_step_ms: row.integer("first_step")?,
        last_step_ms: row.integer("last_step")?,
        judged_until_ms: row.integer("judged_until")?,
        detections: unsigned(row, "detections")?,
        normal_steps: small("normal_steps")?,
        view: text(row, "seen_as")?,
        triggered_at: time(row.integer("triggered_at")?)?,
        acknowledged_at: maybe_time(row.maybe_integer("acknowledged_at")?)?,
        acknowledged_by: maybe_text(row, "acknowledged_by")?,
        resolved_at: maybe_time(row.maybe_integer("resolved_at")?)?,
        resolved_by: maybe_text(row, "resolved_by")?,
        escalations: small("escalations")?,
        escalates_at: maybe_time(row.maybe_integer("escalates_at")?)?,
        version: unsigned(row, "version")?,
    })
}

fn channels_json(channels: &[Channel]) -> Json {
    channels.iter().map(|channel| Json::from(vec![channel.kind.as_str(), &*channel.target])).collect()
}

fn channels(pairs: &[(String, String)]) -> Result<Vec<Channel>, StoreError> {
    let read = |(kind, target): &(String, String)| {
        let kind = ChannelType::named(kind).ok_or_else(|| odd("a type of channel"))?;
        Ok(Channel { kind, target: target.as_str().into() })
    };
    pairs.iter().map(read).collect()
}

/// Returns escalation rules as a JSON list. A rule without channels is a number of minutes.
fn escalations_text(rules: &[EscalationRule]) -> String {
    let text = |rule: &EscalationRule| match rule.notify.is_empty() {
        true => Json::from(rule.after_minutes),
        false => Json::from(vec![Json::from(rule.after_minutes), channels_json(&rule.notify)]),
    };
    rules.iter().map(text).collect::<Json>().to_string()
}

fn escalations(row: &Row) -> Result<Vec<EscalationRule>, StoreError> {
    let rule = |value: Json| match &value {
        Json::Number(_) => {
            let after_minutes = serde_json::from_value(value).map_err(|_| odd("minutes"))?;
            Ok(EscalationRule { after_minutes, notify: Vec::new() })
        }
        _ => {
            let (after_minutes, pairs): (u32, Vec<(String, String)>) =
                serde_json::from_value(value).map_err(|_| odd("a rule of escalation"))?;
            Ok(EscalationRule { after_minutes, notify: channels(&pairs)? })
        }
    };
    list::<Json>(row, "escalations")?.into_iter().map(rule).collect()
}

/// Returns the dimension values of a series as a JSON list of pairs of name and value.
pub(crate) fn series_text(series: &SeriesKey) -> String {
    let parts: Vec<(&str, Option<&str>)> = series.iter().map(|(name, value)| (&**name, value.as_deref())).collect();
    serde_json::to_string(&parts).unwrap_or_default()
}

fn series(text: &str) -> Result<SeriesKey, StoreError> {
    let parts: Vec<(String, Option<String>)> = serde_json::from_str(text).map_err(|_| odd("a series"))?;
    Ok(parts.into_iter().map(|(name, value)| (name.into(), value.map(Arc::from))).collect())
}

fn list<T: serde::de::DeserializeOwned>(row: &Row, column: &str) -> Result<Vec<T>, StoreError> {
    serde_json::from_str(&row.text(column)?).map_err(|_| odd("a list"))
}

/// Returns the shortest text that parses as the same number.
fn number_text(number: Option<f64>) -> Option<String> {
    number.map(|number| number.to_string())
}

fn number(row: &Row, column: &str) -> Result<Option<f64>, StoreError> {
    let text = row.maybe_text(column)?;
    text.map(|text| text.parse().map_err(|_| odd("a number"))).transpose()
}
