//! The wording of messages, which all formats share.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use terrane_app::ports::alert_state::AlertState;
use terrane_app::ports::channels::{AlertMessage, MessageAlert, MessageKind};
use terrane_app::ports::severity::FindingSeverity;
use terrane_app::security::AcknowledgeKey;
use terrane_compiler::types::Granularity;

/// The largest number of alerts that a message lists.
const MAX_LINES: usize = 20;

/// Writes the texts of messages, with links to this server.
pub(super) struct Texts {
    pub(super) public_url: Option<String>,
    pub(super) acknowledge_key: Option<AcknowledgeKey>,
}

impl Texts {
    pub(super) fn link(&self, alert: &MessageAlert) -> String {
        format!("{}/api/v1/anomaly/alerts/{}", self.base(), alert.id)
    }

    /// Returns the link to the page that acknowledges an alert; `None` if the alert is acknowledged or resolved.
    pub(super) fn acknowledge_link(&self, message: &AlertMessage, alert: &MessageAlert) -> Option<String> {
        let is_open = matches!(alert.state, AlertState::Triggered | AlertState::Escalated);
        let key = self.acknowledge_key.as_ref().filter(|_| is_open)?;
        let token = key.token(&alert.id, &message.subject.owner, message.at);
        Some(format!("{}/api/v1/anomaly/acknowledge?token={token}", self.base()))
    }

    fn base(&self) -> &str {
        self.public_url.as_deref().unwrap_or_default().trim_end_matches('/')
    }

    /// Returns one line for each listed alert, and a line with the number of the others.
    pub(super) fn lines(&self, message: &AlertMessage, is_cleared: bool) -> Vec<String> {
        let alerts = message.alerts.iter().take(MAX_LINES);
        let mut lines: Vec<String> = alerts.map(|alert| self.line(message, alert, is_cleared)).collect();
        let more = message.alerts.len().saturating_sub(MAX_LINES) + message.more as usize;
        if more > 0 {
            lines.push(format!("and {more} more"));
        }
        lines
    }

    fn line(&self, message: &AlertMessage, alert: &MessageAlert, is_cleared: bool) -> String {
        let granularity = message.subject.granularity;
        let (first, last) = (step(alert.first_step_ms, granularity), step(alert.last_step_ms, granularity));
        let steps = if first == last { first } else { format!("{first} to {last}") };
        let facts = if is_cleared { facts(alert) } else { String::new() };
        let line = format!("{} {} {steps}{facts}: {}", alert.state.as_str(), alert.severity.as_str(), self.link(alert));
        match self.acknowledge_link(message, alert) {
            Some(link) => format!("{line} (acknowledge: {link} )"),
            None => line,
        }
    }
}

/// Returns the line that summarizes a message: severity, member, event and monitor.
pub(super) fn title(message: &AlertMessage) -> String {
    let subject = &message.subject;
    let count = message.alerts.len() + message.more as usize;
    let what = match message.kind {
        MessageKind::Test => return "Test message: this channel works".to_owned(),
        MessageKind::Triggered if count == 1 => "anomaly".to_owned(),
        MessageKind::Triggered => format!("{count} anomalies"),
        MessageKind::Raised => "the severity rose".to_owned(),
        MessageKind::Escalated => "not acknowledged in time".to_owned(),
        MessageKind::Acknowledged => "acknowledged".to_owned(),
        MessageKind::Resolved => "resolved".to_owned(),
    };
    let value = subject.value.member();
    let text = format!("[{}] {value}: {what} ({})", severity(message).as_str(), subject.monitor);
    text.chars().filter(|c| !c.is_control()).collect()
}

/// Returns the largest severity of a message's alerts.
pub(super) fn severity(message: &AlertMessage) -> FindingSeverity {
    message.alerts.iter().map(|alert| alert.severity).max().unwrap_or(FindingSeverity::Info)
}

/// Returns the start of a step: a date, or a timestamp if steps are shorter than a day.
pub(super) fn step(at_ms: i64, granularity: Granularity) -> String {
    let Ok(at) = Timestamp::from_millisecond(at_ms) else { return String::new() };
    let at = at.to_zoned(TimeZone::UTC).datetime();
    match granularity {
        Granularity::Second | Granularity::Minute | Granularity::Hour => at.strftime("%Y-%m-%dT%H:%M:%S").to_string(),
        _ => at.date().to_string(),
    }
}

/// Returns the values of the dimensions and the numbers of an alert.
fn facts(alert: &MessageAlert) -> String {
    let mut facts: Vec<String> =
        alert.series.iter().map(|(name, value)| format!("{name} {}", value.as_deref().unwrap_or("null"))).collect();
    facts.extend(alert.value.map(|value| format!("value {value}")));
    facts.extend(alert.expected.map(|expected| format!("expected {expected}")));
    if facts.is_empty() { String::new() } else { format!(" ({})", facts.join(", ")) }
}
