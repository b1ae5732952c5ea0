//! The port to channels: where messages about alerts are sent.
//!
//! In: a channel and a message. Out: acceptance by the receiver, or a [`SendError`] that says whether another attempt
//! can succeed. An adapter knows the formats and the secrets of the channels that the operator configured. Not here:
//! attempts and their order (`monitors::delivery`).

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use terrane_compiler::types::Granularity;

use super::alert_state::AlertState;
use super::severity::FindingSeverity;
use crate::domain::{SeriesKey, SeriesValue};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ChannelType {
    /// The list of alerts on this server, to which no messages are sent.
    InApp,
    Webhook,
    Slack,
    PagerDuty,
    Email,
    Sms,
}

impl ChannelType {
    pub const ALL: [ChannelType; 6] = [
        ChannelType::InApp,
        ChannelType::Webhook,
        ChannelType::Slack,
        ChannelType::PagerDuty,
        ChannelType::Email,
        ChannelType::Sms,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            ChannelType::InApp => "in_app",
            ChannelType::Webhook => "webhook",
            ChannelType::Slack => "slack",
            ChannelType::PagerDuty => "pagerduty",
            ChannelType::Email => "email",
            ChannelType::Sms => "sms",
        }
    }

    /// Returns the value with this name; `None` if the name is unknown.
    pub fn named(word: &str) -> Option<Self> {
        ChannelType::ALL.into_iter().find(|channel| channel.as_str() == word)
    }
}

/// A channel of a monitor.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Channel {
    pub kind: ChannelType,
    /// The name of a configured channel, a URL, an email address, or a phone number. Empty for `in_app`.
    pub target: Arc<str>,
}

/// A channel that the operator configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredChannel {
    pub kind: ChannelType,
    /// The configured name; `None` if the target is an address, as for `email` and `sms`.
    pub name: Option<Arc<str>>,
    /// True if messages to the receiver may contain values of measures and dimensions.
    pub is_cleared: bool,
}

/// The reason why a message was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageKind {
    Triggered,
    /// The severity rose.
    Raised,
    Escalated,
    Acknowledged,
    Resolved,
    /// A caller tests the channel.
    Test,
}

impl MessageKind {
    pub const ALL: [MessageKind; 6] = [
        MessageKind::Triggered,
        MessageKind::Raised,
        MessageKind::Escalated,
        MessageKind::Acknowledged,
        MessageKind::Resolved,
        MessageKind::Test,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            MessageKind::Triggered => "triggered",
            MessageKind::Raised => "raised",
            MessageKind::Escalated => "escalated",
            MessageKind::Acknowledged => "acknowledged",
            MessageKind::Resolved => "resolved",
            MessageKind::Test => "test",
        }
    }

    /// Returns the value with this name; `None` if the name is unknown.
    pub fn named(word: &str) -> Option<Self> {
        MessageKind::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// A message about alerts of one monitor. Its content is fixed before the first attempt, so that all attempts send the
/// same message.
#[derive(Debug, Clone, PartialEq)]
pub struct AlertMessage {
    /// The id by which the receiver can recognize repeated attempts.
    pub id: Arc<str>,
    pub kind: MessageKind,
    pub at: Timestamp,
    pub subject: MessageSubject,
    pub alerts: Vec<MessageAlert>,
    /// The number of further alerts that the message does not list.
    pub more: u32,
}

/// The monitor that a message is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageSubject {
    pub monitor_id: Arc<str>,
    pub monitor: Arc<str>,
    pub value: SeriesValue,
    pub granularity: Granularity,
    /// The digest of the monitor's owner (`OwnerIdentity::digest`), to whom the links of the message are issued.
    pub owner: Arc<str>,
}

/// An alert in a message, in its state when the message was written.
#[derive(Debug, Clone, PartialEq)]
pub struct MessageAlert {
    pub id: Arc<str>,
    pub state: AlertState,
    pub severity: FindingSeverity,
    pub series: SeriesKey,
    /// The first and the last anomalous step, in milliseconds since 1970-01-01T00:00:00.
    pub first_step_ms: i64,
    pub last_step_ms: i64,
    pub value: Option<f64>,
    pub expected: Option<f64>,
}

/// The reason why a channel of a monitor cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChannelError {
    /// No channel of the type is configured.
    #[error("no channel of the type `{}` is configured in `anomaly.channels`", kind.as_str())]
    NotConfigured { kind: ChannelType },
    #[error(
        "no {} channel named `{name}` is configured in `anomaly.channels`; configured: {}", kind.as_str(), known.join(", ")
    )]
    UnknownName { kind: ChannelType, name: Arc<str>, known: Vec<Arc<str>> },
    /// The address is invalid, or requests may not go to it.
    #[error("{problem}")]
    Target { problem: String },
}

/// The reason why a receiver did not accept a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SendError {
    /// Another attempt may succeed. `after` is the delay that the receiver requested.
    Temporary { reason: String, after: Option<Duration> },
    /// The receiver refuses this message.
    Refused { reason: String },
    /// The receiver refuses all messages.
    Disabled { reason: String },
}

impl SendError {
    pub fn reason(&self) -> &str {
        match self {
            SendError::Temporary { reason, .. } | SendError::Refused { reason } | SendError::Disabled { reason } => {
                reason
            }
        }
    }
}

/// Sends messages.
#[async_trait]
pub trait AlertChannels: Send + Sync {
    /// Returns the channels of the configuration.
    fn configured(&self) -> Vec<ConfiguredChannel>;

    /// Checks a channel without sending a request and without a lookup of its host name.
    ///
    /// # Errors
    /// No message to the channel can ever be accepted.
    fn check(&self, channel: &Channel) -> Result<(), ChannelError>;

    /// Checks a channel, and looks up the host name of a URL that a caller has chosen. Sends no request.
    ///
    /// # Errors
    /// No message to the channel can be accepted, or the host name has only addresses to which requests may not go.
    async fn check_address(&self, channel: &Channel) -> Result<(), ChannelError>;

    /// Sends a message. Returns when the receiver has accepted it.
    ///
    /// # Errors
    /// [`SendError`].
    async fn send(&self, channel: &Channel, message: &AlertMessage) -> Result<(), SendError>;
}
