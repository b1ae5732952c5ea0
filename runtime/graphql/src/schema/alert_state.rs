//! The severity of anomalies and the states of alerts.

use async_graphql::Enum;
use terrane_app::ports::monitors::AlertState;
use terrane_app::ports::severity::FindingSeverity;

/// The severity of an anomaly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
pub(crate) enum Severity {
    Info,
    Low,
    Medium,
    High,
    Critical,
}

/// The state of an alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
pub(crate) enum AlertStatus {
    Triggered,
    Acknowledged,
    Investigating,
    Resolved,
    Escalated,
}

impl From<Severity> for FindingSeverity {
    fn from(severity: Severity) -> Self {
        match severity {
            Severity::Info => FindingSeverity::Info,
            Severity::Low => FindingSeverity::Low,
            Severity::Medium => FindingSeverity::Medium,
            Severity::High => FindingSeverity::High,
            Severity::Critical => FindingSeverity::Critical,
        }
    }
}

impl Severity {
    pub(super) fn named(word: &str) -> Self {
        let all = [Severity::Info, Severity::Low, Severity::Medium, Severity::High, Severity::Critical];
        all.into_iter().find(|known| FindingSeverity::from(*known).as_str() == word).unwrap_or(Severity::Info)
    }
}

impl From<AlertStatus> for AlertState {
    fn from(status: AlertStatus) -> Self {
        match status {
            AlertStatus::Triggered => AlertState::Triggered,
            AlertStatus::Acknowledged => AlertState::Acknowledged,
            AlertStatus::Investigating => AlertState::Investigating,
            AlertStatus::Resolved => AlertState::Resolved,
            AlertStatus::Escalated => AlertState::Escalated,
        }
    }
}

impl AlertStatus {
    pub(super) fn named(word: &str) -> Self {
        let all = [
            AlertStatus::Triggered,
            AlertStatus::Acknowledged,
            AlertStatus::Investigating,
            AlertStatus::Resolved,
            AlertStatus::Escalated,
        ];
        all.into_iter().find(|known| AlertState::from(*known).as_str() == word).unwrap_or(AlertStatus::Triggered)
    }
}
