//! Checks definitions of monitors, and formats them for the audit log.

use std::collections::HashSet;
use std::sync::Arc;

use terrane_compiler::types::Value;

use super::error::MonitorError;
use crate::ports::audit::{Detail, Details};
use crate::ports::channels::Channel;
use crate::ports::monitors::{AlertState, EscalationRule, MonitorDefinition};

const MAX_NAME_CHARS: usize = 200;
const MAX_DIMENSIONS: usize = 5;
const MAX_TRAINING_SIZE: u32 = 10_000;
const MAX_RESOLVE_STEPS: u32 = 1_000;
const MAX_ESCALATIONS: usize = 10;
const MAX_CHANNELS: usize = 10;
/// The longest grouping window: a day.
const MAX_GROUPING_MINUTES: u32 = 24 * 60;
/// The longest time until an escalation: a week.
const MAX_ESCALATION_MINUTES: u32 = 7 * 24 * 60;

/// Checks those fields of a definition that can be checked without the project and without detectors.
pub(super) fn check(definition: &MonitorDefinition) -> Result<(), MonitorError> {
    let invalid = |field, problem: String| Err(MonitorError::Invalid { field, problem });
    let name = &definition.name;
    if name.trim().is_empty() || name.chars().count() > MAX_NAME_CHARS || name.chars().any(char::is_control) {
        return invalid("name", format!("must have 1 to {MAX_NAME_CHARS} characters without control characters"));
    }
    if definition.sensitivity.is_some_and(|sensitivity| !(sensitivity.is_finite() && sensitivity > 0.0)) {
        return invalid("sensitivity", "must be greater than 0".to_owned());
    }
    if !(1..=MAX_TRAINING_SIZE).contains(&definition.training_size) {
        return invalid("training_size", format!("must be from 1 to {MAX_TRAINING_SIZE}"));
    }
    let distinct: HashSet<_> = definition.dimensions.iter().map(|name| definition.value.dimension(name)).collect();
    if definition.dimensions.len() > MAX_DIMENSIONS || distinct.len() < definition.dimensions.len() {
        return invalid("dimensions", format!("must name at most {MAX_DIMENSIONS} dimensions, each once"));
    }
    let alerts = &definition.alerts;
    if !(1..=MAX_RESOLVE_STEPS).contains(&alerts.resolve_after_steps) {
        return invalid("alert_config.resolve_after_steps", format!("must be from 1 to {MAX_RESOLVE_STEPS}"));
    }
    let minutes: Vec<u32> = alerts.escalations.iter().map(|rule| rule.after_minutes).collect();
    let is_ascending = minutes.is_sorted_by(|one, other| one < other);
    if minutes.len() > MAX_ESCALATIONS
        || !is_ascending
        || minutes.iter().any(|minutes| !(1..=MAX_ESCALATION_MINUTES).contains(minutes))
    {
        let problem = format!(
            "must be at most {MAX_ESCALATIONS} rules whose `after_minutes` ascend from 1 to {MAX_ESCALATION_MINUTES}"
        );
        return invalid("alert_config.escalation_rules", problem);
    }
    if alerts.grouping_minutes > MAX_GROUPING_MINUTES {
        return invalid("alert_config.grouping_window_minutes", format!("must be from 0 to {MAX_GROUPING_MINUTES}"));
    }
    let has_too_many = |channels: &[Channel]| channels.len() > MAX_CHANNELS;
    if has_too_many(&alerts.channels) || alerts.escalations.iter().any(|rule| has_too_many(&rule.notify)) {
        return invalid("alert_config.channels", format!("must be at most {MAX_CHANNELS} channels"));
    }
    Ok(())
}

/// Returns the fields of a definition for the audit log.
pub(super) fn details(definition: &MonitorDefinition) -> Details {
    let text = |text: &str| Detail::Value(Value::Text(text.into()));
    let maybe = |name: Option<&Arc<str>>| name.map_or(Detail::Value(Value::Null), |name| text(name));
    let integer = |number: u32| Detail::Value(Value::Integer(i64::from(number)));
    let sensitivity = definition.sensitivity.map_or(Value::Null, Value::Float);
    Details::fields([
        ("name", text(&definition.name)),
        ("cube_name", maybe(definition.value.cube())),
        ("measure_name", maybe(definition.value.measure())),
        ("metric_name", maybe(definition.value.metric())),
        ("detector_type", text(&definition.detector)),
        ("sensitivity", Detail::Value(sensitivity)),
        ("dimensions", Detail::List(definition.dimensions.iter().map(|name| text(name)).collect())),
        ("schedule", text(&definition.schedule)),
        ("timezone", text(&definition.timezone)),
        ("granularity", text(definition.granularity.as_str())),
        ("training_size", integer(definition.training_size)),
        ("enabled", Detail::Value(Value::Boolean(definition.is_enabled))),
        ("min_severity", text(definition.alerts.min_severity.as_str())),
        ("resolve_after_steps", integer(definition.alerts.resolve_after_steps)),
        ("grouping_window_minutes", integer(definition.alerts.grouping_minutes)),
        ("channels", Detail::List(definition.alerts.channels.iter().map(channel_detail).collect())),
        ("escalation_rules", Detail::List(definition.alerts.escalations.iter().map(escalation_detail).collect())),
    ])
}

fn escalation_detail(rule: &EscalationRule) -> Detail {
    Detail::List(vec![
        Detail::Value(Value::Integer(i64::from(rule.after_minutes))),
        Detail::List(rule.notify.iter().map(channel_detail).collect()),
    ])
}

/// Returns the fields of a channel that was tested or enabled, for the audit log.
pub(super) fn channel_details(channel: &Channel) -> Details {
    Details::fields([("channel", channel_detail(channel))])
}

/// Returns a channel for the audit log. The path of a URL is left out, because it may be a secret.
fn channel_detail(channel: &Channel) -> Detail {
    let target = match channel.target.split_once("://") {
        Some((scheme, rest)) => format!("{scheme}://{}/…", rest.split(['/', '?', '#']).next().unwrap_or_default()),
        None => channel.target.to_string(),
    };
    Detail::Value(Value::Text(format!("{} {target}", channel.kind.as_str()).trim_end().into()))
}

/// Returns the state of an alert for the audit log.
pub(super) fn state_details(state: AlertState, via: Option<&str>) -> Details {
    let state = [("state", Detail::from(state.as_str()))];
    Details::fields(state.into_iter().chain(via.map(|via| ("via", Detail::from(via)))))
}
