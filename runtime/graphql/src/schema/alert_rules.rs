//! The rules of a monitor's alerts.
//!
//! In: the rules as REST sends them. The targets of channels are null for callers who may not change the monitor.
//! Out: the same fields under names in GraphQL's convention.

use async_graphql::SimpleObject;
use terrane_wire::anomaly as wire;

use super::alert_state::Severity;

/// The rules of a monitor's alerts.
#[derive(SimpleObject)]
pub(crate) struct AlertRules {
    channels: Vec<AlertChannel>,
    /// Detections below this severity cause no alert.
    min_severity: Severity,
    /// The normal steps after which an alert is resolved.
    resolve_after_steps: u32,
    /// The minutes for which the first message about new alerts waits for others.
    grouping_window_minutes: u32,
    escalation_rules: Vec<EscalationRule>,
}

/// A channel of alerts.
#[derive(SimpleObject)]
pub(crate) struct AlertChannel {
    /// `webhook`, `slack`, `pagerduty`, `email`, `sms` or `in_app`.
    #[graphql(name = "type")]
    ty: String,
    /// Null for `in_app`, and for callers who may not change the monitor.
    target: Option<String>,
}

/// An escalation of alerts that are not acknowledged.
#[derive(SimpleObject)]
pub(crate) struct EscalationRule {
    /// The number of minutes after the alert was triggered.
    after_minutes: u32,
    /// The channels to notify; empty for the monitor's channels.
    notify: Vec<AlertChannel>,
}

impl AlertRules {
    /// Returns the number of items of a list below the rules.
    pub(super) fn items(&self, list: &str) -> Option<usize> {
        match list {
            "channels" => Some(self.channels.len()),
            "escalationRules" => Some(self.escalation_rules.len()),
            "notify" => Some(self.escalation_rules.iter().map(|rule| rule.notify.len()).sum()),
            _ => None,
        }
    }
}

impl From<wire::AlertRulesAnswer<'_>> for AlertRules {
    fn from(rules: wire::AlertRulesAnswer<'_>) -> Self {
        let escalation = |rule: wire::EscalationAnswer<'_>| EscalationRule {
            after_minutes: rule.after_minutes,
            notify: rule.notify.into_iter().map(AlertChannel::from).collect(),
        };
        AlertRules {
            channels: rules.channels.into_iter().map(AlertChannel::from).collect(),
            min_severity: Severity::named(rules.min_severity),
            resolve_after_steps: rules.resolve_after_steps,
            grouping_window_minutes: rules.grouping_window_minutes,
            escalation_rules: rules.escalation_rules.into_iter().map(escalation).collect(),
        }
    }
}

impl From<wire::ChannelAnswer<'_>> for AlertChannel {
    fn from(channel: wire::ChannelAnswer<'_>) -> Self {
        AlertChannel { ty: channel.r#type.to_owned(), target: channel.target.map(str::to_owned) }
    }
}
