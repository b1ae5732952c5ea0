//! Descriptions of the routes of anomalies.

use terrane_wire::anomaly::{
    Alert, AlertChannel, Alerts, ChannelTest, Channels, Deliveries, Delivery, Detections, Detectors, Monitor,
    MonitorRequest, MonitorRun, MonitorRunRequest, Monitors, RootCause,
};
use terrane_wire::{Code, schema};

use super::super::conditional::IF_MATCH_HEADER;
use crate::openapi::{Compression, Content, Doc, Parameter, ParameterKind, RequestBody, ResponseDoc};

const TAG: &str = "anomaly";
const MONITOR_ID: Parameter = Parameter::path("monitor_id", "the id of a monitor");
const ALERT_ID: Parameter = Parameter::path("alert_id", "the id of an alert");
const OF_MONITOR: Parameter = Parameter::query("monitor_id", ParameterKind::String, "the id of a monitor");
const MIN_SEVERITY: Parameter =
    Parameter::query("min_severity", ParameterKind::String, "`INFO`, `LOW`, `MEDIUM`, `HIGH` or `CRITICAL`");
const LIMIT: Parameter =
    Parameter::query("limit", ParameterKind::Within(1, 1000), "the maximum number of records; default 100");
const MONITOR: Content = Content::Json(schema::of::<Monitor<'static>>());
const ALERT_BODY: Content = Content::Json(schema::of::<Alert<'static>>());
const OF_DEFINITIONS: &[Code] = &[
    Code::InvalidQuery,
    Code::InvalidMeasure,
    Code::InvalidDimension,
    Code::Forbidden,
    Code::NotFound,
    Code::Conflict,
    Code::PreconditionFailed,
    Code::StateUnavailable,
];
const OF_QUERIES: &[Code] = &[
    Code::InvalidQuery,
    Code::InvalidMeasure,
    Code::InvalidDimension,
    Code::Forbidden,
    Code::GuardrailExceeded,
    Code::NotFound,
    Code::QueryTimeout,
    Code::Overloaded,
    Code::WarehouseError,
    Code::WarehouseUnavailable,
    Code::PluginFault,
    Code::StateUnavailable,
];
const OF_RECORDS: &[Code] = &[Code::InvalidQuery, Code::NotFound, Code::StateUnavailable];
const OF_MOVES: &[Code] = &[Code::NotFound, Code::Conflict, Code::PreconditionFailed, Code::StateUnavailable];

const fn described(status: u16, description: &'static str, content: &'static [Content]) -> ResponseDoc {
    ResponseDoc { status, description, content, compression: Compression::Accepted }
}

const TOKEN: Parameter = Parameter::query("token", ParameterKind::String, "the token in the link of the message");
const OF_LINKS: &[Code] = &[Code::InvalidQuery, Code::NotFound, Code::Gone, Code::StateUnavailable];

pub(super) static SHOW_LINK: Doc = Doc {
    id: "alert_of_link",
    tag: TAG,
    summary: "Show a page with a form that acknowledges the alert of a link; this request changes nothing",
    parameters: &[TOKEN],
    body: None,
    answers: &[described(200, "the page", &[Content::Text("text/html")])],
    errors: OF_LINKS,
    detail_errors: &[],
};

pub(super) static FOLLOW_LINK: Doc = Doc {
    id: "acknowledge_by_link",
    tag: TAG,
    summary: "Acknowledge the alert of a link; the token is the credential",
    parameters: &[TOKEN],
    body: None,
    answers: &[described(200, "the page with the new state", &[Content::Text("text/html")])],
    errors: &[Code::InvalidQuery, Code::NotFound, Code::Gone, Code::Conflict, Code::StateUnavailable],
    detail_errors: &[],
};

pub(super) static CREATE: Doc = Doc {
    id: "create_monitor",
    tag: TAG,
    summary: "Create a monitor that evaluates a measure or metric on a schedule, with the rights of the caller",
    parameters: &[],
    body: Some(RequestBody::required(schema::of::<MonitorRequest>())),
    answers: &[described(201, "the monitor", &[MONITOR])],
    errors: OF_DEFINITIONS,
    detail_errors: &[],
};

pub(super) static LIST: Doc = Doc {
    id: "monitors",
    tag: TAG,
    summary: "List the monitors of the caller, and those of other owners for measures of which the caller has the same view",
    parameters: &[],
    body: None,
    answers: &[described(200, "the monitors, by name", &[Content::Json(schema::of::<Monitors<'static>>())])],
    errors: &[Code::StateUnavailable],
    detail_errors: &[],
};

pub(super) static ONE: Doc = Doc {
    id: "monitor",
    tag: TAG,
    summary: "Read a monitor",
    parameters: &[MONITOR_ID],
    body: None,
    answers: &[described(200, "the monitor", &[MONITOR])],
    errors: &[Code::NotFound, Code::StateUnavailable],
    detail_errors: &[],
};

pub(super) static REPLACE: Doc = Doc {
    id: "replace_monitor",
    tag: TAG,
    summary: "Replace the definition of a monitor; the caller becomes its owner",
    parameters: &[MONITOR_ID, IF_MATCH_HEADER],
    body: Some(RequestBody::required(schema::of::<MonitorRequest>())),
    answers: &[described(200, "the monitor after the change", &[MONITOR])],
    errors: OF_DEFINITIONS,
    detail_errors: &[],
};

pub(super) static REMOVE: Doc = Doc {
    id: "delete_monitor",
    tag: TAG,
    summary: "Delete a monitor with its detections and alerts",
    parameters: &[MONITOR_ID, IF_MATCH_HEADER],
    body: None,
    answers: &[described(204, "the monitor is deleted", &[])],
    errors: &[Code::Forbidden, Code::NotFound, Code::Conflict, Code::PreconditionFailed, Code::StateUnavailable],
    detail_errors: &[],
};

pub(super) static RUN: Doc = Doc {
    id: "run_monitor",
    tag: TAG,
    summary: "Run a monitor now, over the steps since its last round or over a range",
    parameters: &[MONITOR_ID],
    body: Some(RequestBody::optional(schema::of::<MonitorRunRequest>())),
    answers: &[described(200, "the round", &[Content::Json(schema::of::<MonitorRun<'static>>())])],
    errors: &[Code::InvalidQuery, Code::Forbidden, Code::NotFound, Code::StateUnavailable],
    detail_errors: &[],
};

pub(super) static DETECTIONS: Doc = Doc {
    id: "detections",
    tag: TAG,
    summary: "List anomalous steps of measures of which the caller has the same view as the owner of the monitor",
    parameters: &[
        OF_MONITOR,
        Parameter::query("start_date", ParameterKind::String, "the first date of the range"),
        Parameter::query("end_date", ParameterKind::String, "the last date of the range"),
        MIN_SEVERITY,
        LIMIT,
    ],
    body: None,
    answers: &[described(
        200,
        "the detections, newest step first",
        &[Content::Json(schema::of::<Detections<'static>>())],
    )],
    errors: OF_RECORDS,
    detail_errors: &[],
};

pub(super) static ROOT_CAUSE: Doc = Doc {
    id: "root_cause",
    tag: TAG,
    summary: "Compute the slices of a measure that explain a detection, with the rights of the caller",
    parameters: &[Parameter::path("detection_id", "the id of a detection")],
    body: None,
    answers: &[described(200, "the root cause", &[Content::Json(schema::of::<RootCause<'static>>())])],
    errors: OF_QUERIES,
    detail_errors: &[],
};

pub(super) static ALERTS: Doc = Doc {
    id: "alerts",
    tag: TAG,
    summary: "List alerts about measures of which the caller has the same view as the owner of the monitor",
    parameters: &[
        OF_MONITOR,
        Parameter::query(
            "status",
            ParameterKind::String,
            "`TRIGGERED`, `ACKNOWLEDGED`, `INVESTIGATING`, `RESOLVED` or `ESCALATED`",
        ),
        MIN_SEVERITY,
        LIMIT,
    ],
    body: None,
    answers: &[described(200, "the alerts, newest first", &[Content::Json(schema::of::<Alerts<'static>>())])],
    errors: OF_RECORDS,
    detail_errors: &[],
};

pub(super) static ALERT: Doc = Doc {
    id: "alert",
    tag: TAG,
    summary: "Read an alert",
    parameters: &[ALERT_ID],
    body: None,
    answers: &[described(200, "the alert", &[ALERT_BODY])],
    errors: &[Code::NotFound, Code::StateUnavailable],
    detail_errors: &[],
};

const MOVED: &[ResponseDoc] = &[described(200, "the alert with its new status", &[ALERT_BODY])];

const fn of_move(id: &'static str, summary: &'static str) -> Doc {
    Doc {
        id,
        tag: TAG,
        summary,
        parameters: &[ALERT_ID, IF_MATCH_HEADER],
        body: None,
        answers: MOVED,
        errors: OF_MOVES,
        detail_errors: &[],
    }
}

pub(super) static ACKNOWLEDGE: Doc = of_move("acknowledge_alert", "Acknowledge an alert, which stops its escalation");
pub(super) static INVESTIGATE: Doc = of_move("investigate_alert", "Mark an alert as under investigation");
pub(super) static RESOLVE: Doc = of_move("resolve_alert", "Resolve an alert; later anomalous steps open a new one");

pub(super) static CHANNELS: Doc = Doc {
    id: "channels",
    tag: TAG,
    summary: "List the configured channels with their states",
    parameters: &[],
    body: None,
    answers: &[described(200, "the channels, by type", &[Content::Json(schema::of::<Channels<'static>>())])],
    errors: &[Code::StateUnavailable],
    detail_errors: &[],
};

pub(super) static TEST_CHANNEL: Doc = Doc {
    id: "test_channel",
    tag: TAG,
    summary: "Send a test message to a channel, at most one per second",
    parameters: &[],
    body: Some(RequestBody::required(schema::of::<AlertChannel>())),
    answers: &[described(200, "the result", &[Content::Json(schema::of::<ChannelTest>())])],
    errors: &[Code::InvalidQuery, Code::Conflict, Code::StateUnavailable],
    detail_errors: &[],
};

pub(super) static DELIVERIES: Doc = Doc {
    id: "deliveries",
    tag: TAG,
    summary: "List the messages of monitors that the caller may change",
    parameters: &[
        OF_MONITOR,
        Parameter::query("status", ParameterKind::String, "`waiting`, `delivered` or `failed`"),
        LIMIT,
    ],
    body: None,
    answers: &[described(200, "the messages, newest first", &[Content::Json(schema::of::<Deliveries<'static>>())])],
    errors: &[Code::InvalidQuery, Code::Forbidden, Code::NotFound, Code::StateUnavailable],
    detail_errors: &[],
};

pub(super) static REPLAY: Doc = Doc {
    id: "replay_delivery",
    tag: TAG,
    summary: "Send a failed message again",
    parameters: &[Parameter::path("delivery_id", "the id of a delivery")],
    body: None,
    answers: &[described(200, "the delivery", &[Content::Json(schema::of::<Delivery<'static>>())])],
    errors: &[Code::InvalidQuery, Code::NotFound, Code::Conflict, Code::StateUnavailable],
    detail_errors: &[],
};

pub(super) static DETECTORS: Doc = Doc {
    id: "detectors",
    tag: TAG,
    summary: "List the detectors of this server with the schemas of their settings",
    parameters: &[],
    body: None,
    answers: &[described(200, "the detectors, by kind", &[Content::Json(schema::of::<Detectors<'static>>())])],
    errors: &[],
    detail_errors: &[],
};
