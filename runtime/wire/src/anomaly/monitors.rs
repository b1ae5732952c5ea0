//! Monitors, detections and alerts.
//!
//! In: bodies and parameters, and the use case's records. Out: definitions, filters, and JSON. Steps are dates, or
//! timestamps if they are shorter than a day.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value as Json, json};
use terrane_app::anomaly::TRAINING_SIZE;
use terrane_app::domain::{SeriesKey, SeriesValue};
use terrane_app::monitors::{ScoredRange, SeenAlert, SeenDetection};
use terrane_app::ports::channels::{Channel, ChannelType};
use terrane_app::ports::monitors::{
    AlertConfig, AlertFilter, AlertState, DetectionFilter, EscalationRule, Monitor as Record, MonitorDefinition,
    MonitorRun as Run,
};
use terrane_app::ports::severity::FindingSeverity;
use terrane_compiler::types::Granularity;

use super::channels::{AlertChannel, ChannelAnswer, channel, channel_type};
use super::parameters::{DEFAULT_LIMIT, limit};
use super::{ValueNames, time};
use crate::fields::{FieldError, Fields, Path};
use crate::query::GranularityName;
use crate::{body, schema};

const MONITOR: &[&str] = &[
    "name",
    "cube_name",
    "measure_name",
    "metric_name",
    "detector_type",
    "sensitivity",
    "dimensions",
    "schedule",
    "timezone",
    "granularity",
    "training_size",
    "enabled",
    "alert_config",
];
const ALERTS: &[&str] =
    &["channels", "min_severity", "resolve_after_steps", "grouping_window_minutes", "escalation_rules"];
const RULE: &[&str] = &["after_minutes", "notify"];
const RANGE: &[&str] = &["from", "to"];
const DETECTIONS: &[&str] = &["monitor_id", "start_date", "end_date", "min_severity", "limit"];
const ALERT_LIST: &[&str] = &["monitor_id", "status", "min_severity", "limit"];
const DAY_MS: i64 = 86_400_000;

/// A monitor to store.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct MonitorRequest {
    pub name: String,
    /// The cube of `measure_name`.
    pub cube_name: Option<String>,
    /// A measure of the cube. A monitor has either a measure or a metric.
    pub measure_name: Option<String>,
    /// A metric.
    pub metric_name: Option<String>,
    /// `z_score`, `iqr`, `mad`, or another kind of `GET /api/v1/anomaly/detectors`. Default: `z_score`.
    pub detector_type: Option<String>,
    /// The sensitivity, greater than 0. Default: the detector's own.
    pub sensitivity: Option<f64>,
    /// One series for each combination of their values. At most 5. With a metric, names are `cube.dimension`.
    pub dimensions: Option<Vec<String>>,
    /// A cron expression of five fields.
    pub schedule: String,
    /// The IANA name of the zone of the schedule. Default: `UTC`.
    pub timezone: Option<String>,
    /// The length of a step. Default: `day`.
    pub granularity: Option<GranularityName>,
    /// The number of steps of history before the first evaluated step, 1–10000. Default: 100.
    pub training_size: Option<u32>,
    /// True to run the monitor. Default: true.
    pub enabled: Option<bool>,
    pub alert_config: Option<AlertRules>,
}

/// The rules of a monitor's alerts.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AlertRules {
    /// The channels that messages go to, at most 10. All alerts are listed by this server as well.
    pub channels: Option<Vec<AlertChannel>>,
    /// Detections below this severity cause no alert. Default: `LOW`.
    pub min_severity: Option<SeverityName>,
    /// The normal steps after which an alert is resolved, 1–1000. Default: 3.
    pub resolve_after_steps: Option<u32>,
    /// The minutes for which the first message about new alerts waits for others, 0–1440. Default: 0.
    pub grouping_window_minutes: Option<u32>,
    /// The escalation rules, at most 10, with ascending minutes.
    pub escalation_rules: Option<Vec<EscalationRequest>>,
}

/// An alert that is not acknowledged is escalated.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields, extend("required" = json!(["after_minutes"])))]
pub struct EscalationRequest {
    /// The number of minutes after the alert was triggered, 1–10080.
    pub after_minutes: u32,
    /// A type, which stands for the monitor's channels of that type; a channel; or a list of these. Default: the
    /// monitor's channels.
    #[schemars(schema_with = "schema::any")]
    pub notify: Option<Json>,
}

/// The range of a run; both ends are inclusive.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct MonitorRunRequest {
    /// The first date or timestamp to evaluate. Default: the step after the last round.
    pub from: Option<String>,
    /// The last date or timestamp, inclusive. Default: the newest complete step with data.
    pub to: Option<String>,
}

/// The name of a severity.
#[derive(Debug)]
pub struct SeverityName;

impl JsonSchema for SeverityName {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Severity".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schema::words(&FindingSeverity::ALL.map(FindingSeverity::as_str))
    }
}

/// A monitor.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Monitor<'a> {
    pub id: &'a str,
    pub name: &'a str,
    #[serde(flatten)]
    pub names: ValueNames<'a>,
    pub detector_type: &'a str,
    /// Null for the detector's own.
    pub sensitivity: Option<f64>,
    pub dimensions: Vec<&'a str>,
    pub schedule: &'a str,
    pub timezone: &'a str,
    #[schemars(with = "GranularityName")]
    pub granularity: &'static str,
    pub training_size: u32,
    pub enabled: bool,
    pub alert_config: AlertRulesAnswer<'a>,
    /// The user under whose policies the monitor runs.
    pub owner: &'a str,
    /// The `ETag` without its quotes.
    pub version: u64,
    #[schemars(schema_with = "schema::timestamp")]
    pub created_at: String,
    #[schemars(schema_with = "schema::timestamp")]
    pub updated_at: String,
    /// Null if the monitor is disabled or paused.
    pub next_run_at: Option<String>,
    /// Null before the first round.
    pub last_run: Option<MonitorRun<'a>>,
    /// The newest evaluated step.
    pub judged_until: Option<String>,
}

/// The rules of a monitor's alerts.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AlertRulesAnswer<'a> {
    pub channels: Vec<ChannelAnswer<'a>>,
    #[schemars(with = "SeverityName")]
    pub min_severity: &'static str,
    pub resolve_after_steps: u32,
    pub grouping_window_minutes: u32,
    pub escalation_rules: Vec<EscalationAnswer<'a>>,
}

/// An escalation of alerts that are not acknowledged.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EscalationAnswer<'a> {
    pub after_minutes: u32,
    /// The channels to notify; empty for the monitor's channels.
    pub notify: Vec<ChannelAnswer<'a>>,
}

/// A round of a monitor.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MonitorRun<'a> {
    #[schemars(schema_with = "schema::timestamp")]
    pub at: String,
    /// `scored`, `no_data`, `failed` or `paused`.
    pub outcome: &'static str,
    /// The reason why nothing was evaluated.
    pub message: Option<&'a str>,
}

/// The monitors that a caller may see.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Monitors<'a> {
    pub monitors: Vec<Monitor<'a>>,
}

/// An anomalous step.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Detection<'a> {
    pub id: &'a str,
    pub monitor_id: &'a str,
    pub monitor_name: &'a str,
    #[serde(flatten)]
    pub names: ValueNames<'a>,
    /// The values of the dimensions of the series.
    pub dimensions: BTreeMap<&'a str, Option<&'a str>>,
    /// The start of the step.
    pub time: String,
    pub value: Option<f64>,
    pub expected: Option<f64>,
    pub lower_bound: Option<f64>,
    pub upper_bound: Option<f64>,
    pub raw: Option<f64>,
    /// The score from 0 to 1.
    pub score: f64,
    #[schemars(with = "SeverityName")]
    pub severity: &'static str,
    /// The component of the detector and its version.
    pub detector: &'a str,
    #[schemars(schema_with = "schema::timestamp")]
    pub detected_at: String,
}

/// Detections, newest step first.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Detections<'a> {
    pub detections: Vec<Detection<'a>>,
}

/// An alert of one series of a monitor.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Alert<'a> {
    pub id: &'a str,
    pub monitor_id: &'a str,
    pub monitor_name: &'a str,
    #[serde(flatten)]
    pub names: ValueNames<'a>,
    /// The values of the dimensions of the series.
    pub dimensions: BTreeMap<&'a str, Option<&'a str>>,
    /// `TRIGGERED`, `ACKNOWLEDGED`, `INVESTIGATING`, `RESOLVED` or `ESCALATED`.
    pub status: &'static str,
    /// The largest severity of its detections.
    #[schemars(with = "SeverityName")]
    pub severity: &'static str,
    /// The first anomalous step.
    pub first_step: String,
    /// The last anomalous step.
    pub last_step: String,
    /// The number of anomalous steps.
    pub detections: u64,
    /// The normal steps since the last anomalous one.
    pub normal_steps: u32,
    #[schemars(schema_with = "schema::timestamp")]
    pub triggered_at: String,
    pub acknowledged_at: Option<String>,
    pub acknowledged_by: Option<&'a str>,
    pub resolved_at: Option<String>,
    /// The caller who resolved the alert. Null if it is not resolved, or if normal steps resolved it.
    pub resolved_by: Option<&'a str>,
    pub escalations: u32,
    /// The `ETag` without its quotes.
    pub version: u64,
}

/// Alerts, newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Alerts<'a> {
    pub alerts: Vec<Alert<'a>>,
}

/// Reads the body of a monitor.
///
/// # Errors
/// Names the field that is invalid.
pub fn monitor_from_wire(body: &[u8]) -> Result<MonitorDefinition, FieldError> {
    let value = body::parse(body)?;
    let path = Path::ROOT;
    let fields = Fields::new(&value, &path, "a monitor, which is a JSON object", MONITOR)?;
    let text = |name, expected| fields.required_string(name, expected).map(Into::into);
    let granularity = match fields.string("granularity", "a granularity")? {
        Some(name) => name.parse().map_err(|_| {
            let known = Granularity::ALL.map(Granularity::as_str).join(", ");
            path.field("granularity").invalid_value(name, format!("one of {known}"))
        })?,
        None => Granularity::Day,
    };
    Ok(MonitorDefinition {
        name: text("name", "a name")?,
        value: series_value(&fields, &path)?,
        detector: fields.string("detector_type", "a kind of detector")?.unwrap_or("z_score").into(),
        sensitivity: number(&fields, &path, "sensitivity")?,
        dimensions: fields.list("dimensions", "a list of names", name)?,
        schedule: text("schedule", "a cron expression")?,
        timezone: fields.string("timezone", "the name of a time zone")?.unwrap_or("UTC").into(),
        granularity,
        training_size: small(&fields, &path, "training_size")?.unwrap_or(TRAINING_SIZE),
        is_enabled: fields.boolean("enabled")?.unwrap_or(true),
        alerts: alert_rules(fields.get("alert_config"), &path.field("alert_config"))?,
    })
}

/// Reads the measure with its cube, or the metric.
fn series_value(fields: &Fields<'_>, path: &Path<'_>) -> Result<SeriesValue, FieldError> {
    let cube = fields.string("cube_name", "the name of a cube")?;
    let measure = fields.string("measure_name", "the name of a measure")?;
    let metric = fields.string("metric_name", "the name of a metric")?;
    match (cube, measure, metric) {
        (None, None, Some(metric)) => Ok(SeriesValue::Metric(metric.into())),
        (Some(_), None, Some(_)) => Err(path.both(["cube_name", "metric_name"])),
        (_, Some(_), Some(_)) => Err(path.both(["measure_name", "metric_name"])),
        (Some(cube), Some(measure), None) => Ok(SeriesValue::Measure { cube: cube.into(), measure: measure.into() }),
        (None, None, None) => Err(path.missing_both(["measure_name", "metric_name"])),
        (None, Some(_), None) => Err(path.missing("cube_name")),
        (Some(_), None, None) => Err(path.missing("measure_name")),
    }
}

fn name(value: &Json, path: &Path<'_>) -> Result<Arc<str>, FieldError> {
    match value {
        Json::String(name) => Ok(name.as_str().into()),
        other => Err(path.invalid_type(other, "a name")),
    }
}

fn number(fields: &Fields<'_>, path: &Path<'_>, name: &'static str) -> Result<Option<f64>, FieldError> {
    match fields.get(name) {
        None => Ok(None),
        Some(Json::Number(number)) => Ok(number.as_f64()),
        Some(other) => Err(path.field(name).invalid_type(other, "a number")),
    }
}

fn small(fields: &Fields<'_>, path: &Path<'_>, name: &'static str) -> Result<Option<u32>, FieldError> {
    let Some(found) = fields.integer(name)? else { return Ok(None) };
    let number = u32::try_from(found).ok();
    number.map(Some).ok_or_else(|| path.field(name).invalid_value(&found.to_string(), "a smaller integer"))
}

fn alert_rules(value: Option<&Json>, path: &Path<'_>) -> Result<AlertConfig, FieldError> {
    let rules = AlertConfig {
        min_severity: FindingSeverity::Low,
        resolve_after_steps: 3,
        escalations: Vec::new(),
        channels: Vec::new(),
        grouping_minutes: 0,
    };
    let Some(value) = value else { return Ok(rules) };
    let fields = Fields::new(value, path, "the rules of alerts, which are a JSON object", ALERTS)?;
    let channels: Vec<Channel> = fields.list("channels", "a list of channels", channel)?;
    let min_severity = match fields.string("min_severity", "a severity")? {
        Some(word) => severity(word, &path.field("min_severity"))?,
        None => rules.min_severity,
    };
    Ok(AlertConfig {
        min_severity,
        resolve_after_steps: small(&fields, path, "resolve_after_steps")?.unwrap_or(rules.resolve_after_steps),
        escalations: fields
            .list("escalation_rules", "a list of rules", |value, path| escalation(value, path, &channels))?,
        grouping_minutes: small(&fields, path, "grouping_window_minutes")?.unwrap_or(rules.grouping_minutes),
        channels,
    })
}

fn escalation(value: &Json, path: &Path<'_>, channels: &[Channel]) -> Result<EscalationRule, FieldError> {
    let fields = Fields::new(value, path, "a rule, which is a JSON object", RULE)?;
    let after_minutes = small(&fields, path, "after_minutes")?.ok_or_else(|| path.missing("after_minutes"))?;
    let path = path.field("notify");
    let notify = match fields.get("notify") {
        None => Vec::new(),
        Some(Json::Array(_)) => {
            let lists = fields.list("notify", "a list of channels", |value, path| notified(value, path, channels))?;
            lists.concat()
        }
        Some(value) => notified(value, &path, channels)?,
    };
    Ok(EscalationRule { after_minutes, notify })
}

/// Reads a channel, or the name of a type, which stands for all channels of the monitor that have this type.
fn notified(value: &Json, path: &Path<'_>, channels: &[Channel]) -> Result<Vec<Channel>, FieldError> {
    let Json::String(word) = value else { return Ok(vec![channel(value, path)?]) };
    let kind = channel_type(word, path)?;
    if kind == ChannelType::InApp {
        return Ok(vec![Channel { kind, target: "".into() }]);
    }
    let notified: Vec<Channel> = channels.iter().filter(|channel| channel.kind == kind).cloned().collect();
    match notified.is_empty() {
        true => Err(path.invalid_value(word, "the type of a channel in `alert_config.channels`, or a channel")),
        false => Ok(notified),
    }
}

fn severity(word: &str, path: &Path<'_>) -> Result<FindingSeverity, FieldError> {
    let found = FindingSeverity::named(word);
    found.ok_or_else(|| {
        path.invalid_value(word, format!("one of {}", FindingSeverity::ALL.map(FindingSeverity::as_str).join(", ")))
    })
}

/// Reads the range of a run. An empty body returns `None`, which means the steps since the last round.
///
/// # Errors
/// Names the field that is invalid.
pub fn run_from_wire(body: &[u8]) -> Result<Option<ScoredRange>, FieldError> {
    if body.is_empty() {
        return Ok(None);
    }
    let value = body::parse(body)?;
    let path = Path::ROOT;
    let fields = Fields::new(&value, &path, "a range, which is a JSON object", RANGE)?;
    let text = |name| fields.string(name, "a date or timestamp").map(|text| text.map(Arc::from));
    let (from, to) = (text("from")?, text("to")?);
    Ok((from.is_some() || to.is_some()).then_some(ScoredRange { from, to }))
}

/// Reads `monitor_id`, `start_date`, `end_date` (inclusive), `min_severity` and `limit`.
///
/// # Errors
/// Names the parameter that is invalid.
pub fn detections_from_parameters(query: &str) -> Result<(Option<String>, DetectionFilter), FieldError> {
    let (mut monitor_id, mut filter) = (None, DetectionFilter { limit: DEFAULT_LIMIT, ..DetectionFilter::default() });
    let mut end_date = String::new();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let path = Path::ROOT.field(&name);
        match &*name {
            "monitor_id" => monitor_id = Some(value.into_owned()),
            "start_date" => filter.from_ms = Some(date(&value, &path)?),
            "end_date" => {
                filter.before_ms = Some(date(&value, &path)?.saturating_add(DAY_MS));
                end_date = value.into_owned();
            }
            "min_severity" => filter.min_severity = Some(severity(&value, &path)?),
            "limit" => filter.limit = limit(&value, &path)?,
            // The caller's credential, which every route accepts.
            "api_key" => {}
            other => return Err(Path::ROOT.unknown_field(other, DETECTIONS)),
        }
    }
    if let (Some(from), Some(before)) = (filter.from_ms, filter.before_ms)
        && before <= from
    {
        return Err(Path::ROOT.field("end_date").invalid_value(&end_date, "a day on or after `start_date`"));
    }
    Ok((monitor_id, filter))
}

/// Reads `monitor_id`, `status`, `min_severity` and `limit`.
///
/// # Errors
/// Names the parameter that is invalid.
pub fn alerts_from_parameters(query: &str) -> Result<(Option<String>, AlertFilter), FieldError> {
    let (mut monitor_id, mut filter) = (None, AlertFilter { limit: DEFAULT_LIMIT, ..AlertFilter::default() });
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let path = Path::ROOT.field(&name);
        match &*name {
            "monitor_id" => monitor_id = Some(value.into_owned()),
            "status" => {
                let known = AlertState::named(&value.to_ascii_uppercase());
                let words = || format!("one of {}", AlertState::ALL.map(AlertState::as_str).join(", "));
                filter.state = Some(known.ok_or_else(|| path.invalid_value(&value, words()))?);
            }
            "min_severity" => filter.min_severity = Some(severity(&value, &path)?),
            "limit" => filter.limit = limit(&value, &path)?,
            // The caller's credential, which every route accepts.
            "api_key" => {}
            other => return Err(Path::ROOT.unknown_field(other, ALERT_LIST)),
        }
    }
    Ok((monitor_id, filter))
}

/// Reads the first and the last date of detections as times in milliseconds. Steps of the detections start at or after
/// the first time and before the second.
///
/// # Errors
/// Names the date that is invalid.
pub fn date_bounds([start, end]: [Option<String>; 2]) -> Result<[Option<i64>; 2], FieldError> {
    let read = |text: Option<String>, name| text.map(|text| date(&text, &Path::ROOT.field(name))).transpose();
    let end = read(end, "endDate")?.map(|start| start.saturating_add(DAY_MS));
    Ok([read(start, "startDate")?, end])
}

fn date(text: &str, path: &Path<'_>) -> Result<i64, FieldError> {
    let date = text.parse::<jiff::civil::Date>().ok().filter(|_| text.len() == 10);
    let start = date.and_then(|date| jiff::tz::TimeZone::UTC.to_timestamp(date.at(0, 0, 0, 0)).ok());
    start.map(|start| start.as_millisecond()).ok_or_else(|| path.invalid_value(text, "a date, like 2024-01-31,"))
}

impl<'a> From<&'a Record> for Monitor<'a> {
    fn from(record: &'a Record) -> Self {
        let definition = &record.definition;
        let rules = &definition.alerts;
        let channels = |channels: &'a [Channel]| channels.iter().map(ChannelAnswer::from).collect();
        let escalation = |rule: &'a EscalationRule| EscalationAnswer {
            after_minutes: rule.after_minutes,
            notify: channels(&rule.notify),
        };
        Monitor {
            id: &record.id,
            name: &definition.name,
            names: ValueNames::from(&definition.value),
            detector_type: &definition.detector,
            sensitivity: definition.sensitivity,
            dimensions: definition.dimensions.iter().map(|name| &**name).collect(),
            schedule: &definition.schedule,
            timezone: &definition.timezone,
            granularity: definition.granularity.as_str(),
            training_size: definition.training_size,
            enabled: definition.is_enabled,
            alert_config: AlertRulesAnswer {
                channels: channels(&rules.channels),
                min_severity: rules.min_severity.as_str(),
                resolve_after_steps: rules.resolve_after_steps,
                grouping_window_minutes: rules.grouping_minutes,
                escalation_rules: rules.escalations.iter().map(escalation).collect(),
            },
            owner: &record.owner.caller.user_id,
            version: record.version,
            created_at: record.created_at.to_string(),
            updated_at: record.updated_at.to_string(),
            next_run_at: record.next_run_at.map(|at| at.to_string()),
            last_run: record.last_run.as_ref().map(MonitorRun::from),
            judged_until: record.judged_until_ms.map(|at| time(at, definition.granularity)),
        }
    }
}

impl<'a> From<&'a Run> for MonitorRun<'a> {
    fn from(run: &'a Run) -> Self {
        MonitorRun { at: run.at.to_string(), outcome: run.outcome.as_str(), message: run.message.as_deref() }
    }
}

impl<'a> Monitors<'a> {
    pub fn new(records: &'a [Arc<Record>]) -> Self {
        Monitors { monitors: records.iter().map(|record| Monitor::from(&**record)).collect() }
    }
}

fn values(series: &SeriesKey) -> BTreeMap<&str, Option<&str>> {
    series.iter().map(|(name, value)| (&**name, value.as_deref())).collect()
}

impl<'a> From<&'a SeenDetection> for Detection<'a> {
    fn from(seen: &'a SeenDetection) -> Self {
        let (detection, definition) = (&seen.detection, &seen.monitor.definition);
        let step = &detection.step;
        Detection {
            id: &detection.id,
            monitor_id: &detection.monitor_id,
            monitor_name: &definition.name,
            names: ValueNames::from(&definition.value),
            dimensions: values(&step.series),
            time: time(step.at_ms, definition.granularity),
            value: step.value,
            expected: step.expected,
            lower_bound: step.lower_bound,
            upper_bound: step.upper_bound,
            raw: step.raw,
            score: step.score,
            severity: step.severity.as_str(),
            detector: &detection.detector,
            detected_at: detection.detected_at.to_string(),
        }
    }
}

impl<'a> From<&'a [SeenDetection]> for Detections<'a> {
    fn from(seen: &'a [SeenDetection]) -> Self {
        Detections { detections: seen.iter().map(Detection::from).collect() }
    }
}

impl<'a> From<&'a SeenAlert> for Alert<'a> {
    fn from(seen: &'a SeenAlert) -> Self {
        let (alert, definition) = (&seen.alert, &seen.monitor.definition);
        let text = |at: Option<jiff::Timestamp>| at.map(|at| at.to_string());
        Alert {
            id: &alert.id,
            monitor_id: &alert.monitor_id,
            monitor_name: &definition.name,
            names: ValueNames::from(&definition.value),
            dimensions: values(&alert.series),
            status: alert.state.as_str(),
            severity: alert.severity.as_str(),
            first_step: time(alert.first_step_ms, definition.granularity),
            last_step: time(alert.last_step_ms, definition.granularity),
            detections: alert.detections,
            normal_steps: alert.normal_steps,
            triggered_at: alert.triggered_at.to_string(),
            acknowledged_at: text(alert.acknowledged_at),
            acknowledged_by: alert.acknowledged_by.as_deref(),
            resolved_at: text(alert.resolved_at),
            resolved_by: alert.resolved_by.as_deref(),
            escalations: alert.escalations,
            version: alert.version,
        }
    }
}

impl<'a> From<&'a [SeenAlert]> for Alerts<'a> {
    fn from(seen: &'a [SeenAlert]) -> Self {
        Alerts { alerts: seen.iter().map(Alert::from).collect() }
    }
}
