//! Anomaly runs, the list of detectors, monitors with their detections and alerts, root causes, channels and
//! deliveries.

mod acknowledge_link;
mod channels;
mod monitors;
mod parameters;
mod root_cause;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;
use terrane_app::anomaly::{self, AnomalyRequest};
use terrane_app::domain::SeriesValue;
use terrane_app::ports::detectors::DetectorList;
use terrane_compiler::types::Granularity;

use crate::project::Audience;
use crate::query::GranularityName;
use crate::schema;

pub use acknowledge_link::{acknowledge_page, link_token_from_parameters};
pub use channels::{
    AlertChannel, ChannelAnswer, ChannelTest, Channels, ConfiguredChannel, Deliveries, Delivery, channel_from_wire,
    deliveries_from_parameters,
};
pub use monitors::{
    Alert, AlertRulesAnswer, Alerts, Detection, Detections, EscalationAnswer, Monitor, MonitorRequest, MonitorRun,
    MonitorRunRequest, Monitors, alerts_from_parameters, date_bounds, detections_from_parameters, monitor_from_wire,
    run_from_wire,
};
pub use parameters::no_fields_from_wire;
pub use root_cause::{DataCauseAnswer, LeftOut, RootCause, SliceAnswer};

/// The points of a measure or metric, each with its score.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AnomalyRun<'a> {
    #[serde(flatten)]
    names: ValueNames<'a>,
    detector_type: &'a str,
    detector: DetectorComponent<'a>,
    sensitivity: f64,
    training_size: u32,
    #[schemars(with = "GranularityName")]
    granularity: &'static str,
    time_dimension: &'a str,
    /// The values are at least as new as the data at this time.
    #[schemars(schema_with = "schema::timestamp")]
    as_of: String,
    series: Vec<Series<'a>>,
}

/// The values that are judged: a measure, or a metric.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct ValueNames<'a> {
    /// Null for a metric.
    pub cube_name: Option<&'a str>,
    /// Null for a metric.
    pub measure_name: Option<&'a str>,
    /// Null for a measure.
    pub metric_name: Option<&'a str>,
}

impl<'a> From<&'a SeriesValue> for ValueNames<'a> {
    fn from(value: &'a SeriesValue) -> Self {
        ValueNames {
            cube_name: value.cube().map(|name| &**name),
            measure_name: value.measure().map(|name| &**name),
            metric_name: value.metric().map(|name| &**name),
        }
    }
}

/// The component of a detector.
#[derive(Debug, Serialize, JsonSchema)]
struct DetectorComponent<'a> {
    component: &'a str,
    version: &'a str,
}

/// One series of a run.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "AnomalySeries")]
struct Series<'a> {
    /// The values of the dimensions.
    dimensions: BTreeMap<&'a str, Option<&'a str>>,
    history_points: usize,
    /// True if there was enough history.
    judged: bool,
    points: Vec<Point>,
}

/// One point of a series.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "AnomalyPoint")]
struct Point {
    time: String,
    value: Option<f64>,
    expected: Option<f64>,
    lower_bound: Option<f64>,
    upper_bound: Option<f64>,
    raw: Option<f64>,
    score: f64,
    severity: &'static str,
    anomalous: bool,
    /// False if more rows may follow: for the step that contains the current time, for the step in which the data
    /// ends early, and for later ones.
    complete: bool,
}

impl<'a> AnomalyRun<'a> {
    pub fn new(request: &'a AnomalyRequest, run: &'a anomaly::AnomalyRun) -> Self {
        AnomalyRun {
            names: ValueNames::from(&request.value),
            detector_type: &run.detector.kind,
            detector: DetectorComponent { component: &run.detector.component, version: &run.detector.version },
            sensitivity: run.sensitivity,
            training_size: request.training_size,
            granularity: run.granularity.as_str(),
            time_dimension: &run.time_dimension,
            as_of: run.as_of.to_string(),
            series: run.series.iter().map(|series| Series::new(series, run.granularity)).collect(),
        }
    }
}

impl<'a> Series<'a> {
    fn new(series: &'a anomaly::ScoredSeries, granularity: Granularity) -> Self {
        let point = |point: &anomaly::Point| Point {
            time: time(point.at_ms, granularity),
            value: point.value,
            expected: point.expected,
            lower_bound: point.lower_bound,
            upper_bound: point.upper_bound,
            raw: point.raw,
            score: point.score,
            severity: point.severity.as_str(),
            anomalous: point.is_anomalous,
            complete: point.is_complete,
        };
        Series {
            dimensions: series.dimensions.iter().map(|(name, value)| (&**name, value.as_deref())).collect(),
            history_points: series.history,
            judged: !series.points.is_empty(),
            points: series.points.iter().map(point).collect(),
        }
    }
}

/// Returns the start of a bucket: a date, or a timestamp if the granularity is finer than a day.
pub fn time(at_ms: i64, granularity: Granularity) -> String {
    let Ok(at) = jiff::Timestamp::from_millisecond(at_ms) else { return at_ms.to_string() };
    let at = jiff::tz::TimeZone::UTC.to_datetime(at);
    if granularity.is_sub_day() { at.to_string() } else { at.date().to_string() }
}

/// The detectors of a server.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Detectors<'a> {
    pub detectors: Vec<Detector<'a>>,
    pub faults: Vec<DetectorFault<'a>>,
}

/// A kind of detector.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Detector<'a> {
    pub kind: &'a str,
    pub display_name: &'a str,
    pub default_sensitivity: f64,
    pub min_points: u32,
    pub has_model: bool,
    /// The JSON Schema of the detector's settings.
    #[schemars(schema_with = "schema::any")]
    pub settings_schema: Json,
    pub component: &'a str,
    pub version: &'a str,
}

/// A component that cannot be used.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DetectorFault<'a> {
    pub component: &'a str,
    pub fault: String,
}

impl<'a> Detectors<'a> {
    /// Creates the answer for callers of the server. Only operators see the messages of faults, because these may name
    /// paths.
    pub fn for_audience(list: &'a DetectorList, audience: Audience) -> Self {
        Detectors::new(list, |message| audience.see(message).unwrap_or("not usable").to_owned())
    }

    /// Creates the answer. `mask` removes secrets from the messages of faults.
    pub fn new(list: &'a DetectorList, mask: impl Fn(&str) -> String) -> Self {
        let detectors = list.kinds.iter().map(|kind| Detector {
            kind: &kind.kind,
            display_name: &kind.display_name,
            default_sensitivity: kind.default_sensitivity,
            min_points: kind.min_points,
            has_model: kind.has_model,
            settings_schema: serde_json::from_str(&kind.settings_schema_json).unwrap_or_default(),
            component: &kind.component,
            version: &kind.version,
        });
        let faults = list
            .faults
            .iter()
            .map(|fault| DetectorFault { component: &fault.component, fault: mask(&fault.fault.to_string()) });
        Detectors { detectors: detectors.collect(), faults: faults.collect() }
    }
}
