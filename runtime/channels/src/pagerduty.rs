//! Events of PagerDuty (events API, version 2). An event is about one alert, whose id is the key of the incident.

use serde_json::{Map, Value as Json, json};
use terrane_app::ports::channels::{AlertMessage, MessageAlert, MessageKind};
use terrane_app::ports::severity::FindingSeverity;

use crate::PagerDutySettings;
use crate::text::{Texts, step, title};
use crate::webhook::numbers;

/// The largest number of characters of a summary, by PagerDuty's limits.
const MAX_SUMMARY: usize = 1_024;
/// The key of the incident that all test messages share.
const TEST_KEY: &str = "terrane-channel-test";

/// Returns the JSON text of an event. Returns `None` for a message without an alert that is not a test.
pub(super) fn body(texts: &Texts, message: &AlertMessage, service: &PagerDutySettings) -> Option<String> {
    if message.kind == MessageKind::Test {
        let test = json!({"summary": title(message), "source": "terrane", "severity": "info"});
        return Some(event(service, "trigger", TEST_KEY, test).to_string());
    }
    let alert = message.alerts.first()?;
    let action = match message.kind {
        MessageKind::Acknowledged => "acknowledge",
        MessageKind::Resolved => "resolve",
        _ => "trigger",
    };
    let mut event = event(service, action, &alert.id, payload(message, alert, service.is_cleared));
    if texts.public_url.is_some() && action == "trigger" {
        let acknowledge = texts.acknowledge_link(message, alert);
        let acknowledge = acknowledge.map(|link| json!({"href": link, "text": "Acknowledge"}));
        let links = [json!({"href": texts.link(alert), "text": "Alert"})].into_iter().chain(acknowledge);
        event["links"] = links.collect();
    }
    Some(event.to_string())
}

fn event(service: &PagerDutySettings, action: &str, key: &str, payload: Json) -> Json {
    json!({
        "routing_key": service.routing_key,
        "event_action": action,
        "dedup_key": key,
        "client": "Terrane",
        "payload": payload,
    })
}

fn payload(message: &AlertMessage, alert: &MessageAlert, is_cleared: bool) -> Json {
    let (subject, granularity) = (&message.subject, message.subject.granularity);
    let summary: String = title(message).chars().take(MAX_SUMMARY).collect();
    let mut details = Map::from_iter([
        ("monitor_id".to_owned(), Json::from(&*subject.monitor_id)),
        ("first_step".to_owned(), step(alert.first_step_ms, granularity).into()),
        ("last_step".to_owned(), step(alert.last_step_ms, granularity).into()),
    ]);
    if is_cleared {
        details.extend(numbers(alert));
    }
    json!({
        "summary": summary,
        "source": &*subject.value.member(),
        "severity": severity(alert.severity),
        "timestamp": message.at.to_string(),
        "component": &**subject.value.cube().or(subject.value.metric()).unwrap_or(&subject.monitor),
        "group": &*subject.monitor,
        "class": "anomaly",
        "custom_details": details,
    })
}

fn severity(severity: FindingSeverity) -> &'static str {
    match severity {
        FindingSeverity::Critical => "critical",
        FindingSeverity::High => "error",
        FindingSeverity::Medium => "warning",
        FindingSeverity::Low | FindingSeverity::Info => "info",
    }
}
