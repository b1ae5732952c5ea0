//! Channels of alerts, and deliveries of messages.
//!
//! In: bodies and parameters, and the use case's records. Out: channels, filters, and JSON.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;
use terrane_app::monitors::SeenChannel;
use terrane_app::ports::channels::{Channel, ChannelType, MessageKind};
use terrane_app::ports::deliveries::{Delivery as Record, DeliveryFilter, DeliveryState};

use super::parameters::{DEFAULT_LIMIT, limit};
use crate::fields::{FieldError, Fields, Path};
use crate::{body, schema};

const CHANNEL: &[&str] = &["type", "target"];
const DELIVERIES: &[&str] = &["monitor_id", "status", "limit"];

/// A channel of alerts.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AlertChannel {
    #[schemars(with = "ChannelTypeName")]
    pub r#type: String,
    /// For `webhook` an https URL or the name of a configured webhook; for `slack` and `pagerduty` a configured name; for
    /// `email` an address; for `sms` a phone number. `in_app` has none.
    pub target: Option<String>,
}

/// The name of a type of channel.
#[derive(Debug)]
pub(super) struct ChannelTypeName;

impl JsonSchema for ChannelTypeName {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ChannelType".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schema::words(&ChannelType::ALL.map(ChannelType::as_str))
    }
}

/// The name of a delivery's state.
#[derive(Debug)]
pub(super) struct DeliveryStatusName;

impl JsonSchema for DeliveryStatusName {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "DeliveryStatus".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schema::words(&DeliveryState::ALL.map(DeliveryState::as_str))
    }
}

/// The name of a kind of message.
#[derive(Debug)]
pub(super) struct MessageKindName;

impl JsonSchema for MessageKindName {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "MessageKind".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schema::words(&MessageKind::ALL.map(MessageKind::as_str))
    }
}

/// A channel of alerts.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ChannelAnswer<'a> {
    #[schemars(with = "ChannelTypeName")]
    pub r#type: &'static str,
    /// Null for `in_app`, and for callers who may not change the monitor.
    pub target: Option<&'a str>,
}

/// A configured channel.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ConfiguredChannel<'a> {
    #[schemars(with = "ChannelTypeName")]
    pub r#type: &'static str,
    /// The target of monitors. Null for `email` and `sms`, whose targets are addresses.
    pub name: Option<&'a str>,
    /// True if messages contain numbers and the values of dimensions.
    pub cleared: bool,
    /// The number of failed attempts since the last message that was accepted.
    pub failures: u32,
    /// The time of the next attempt after a failure.
    pub resumes_at: Option<String>,
    /// The reason why the receiver refuses all messages.
    pub disabled: Option<&'a str>,
}

/// The configured channels.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Channels<'a> {
    pub channels: Vec<ConfiguredChannel<'a>>,
}

/// The result of a test.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ChannelTest {
    /// True if the receiver accepted the message.
    pub delivered: bool,
    /// The reason why it did not.
    pub message: Option<String>,
}

/// A message to one channel.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Delivery<'a> {
    pub id: &'a str,
    pub monitor_id: &'a str,
    #[schemars(with = "MessageKindName")]
    pub kind: &'static str,
    pub channel: ChannelAnswer<'a>,
    /// The ids of the alerts in the message.
    pub alerts: Vec<&'a str>,
    #[schemars(with = "DeliveryStatusName")]
    pub status: &'static str,
    pub attempts: u32,
    /// The reason why the last attempt failed.
    pub last_error: Option<&'a str>,
    #[schemars(schema_with = "schema::timestamp")]
    pub created_at: String,
    /// The time of the next attempt; null if it ended.
    pub next_attempt_at: Option<String>,
    /// The time at which it was delivered or failed.
    pub ended_at: Option<String>,
}

/// Deliveries, newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Deliveries<'a> {
    pub deliveries: Vec<Delivery<'a>>,
}

pub(super) fn channel(value: &Json, path: &Path<'_>) -> Result<Channel, FieldError> {
    let fields = Fields::new(value, path, "a channel, which is a JSON object", CHANNEL)?;
    let kind = channel_type(fields.required_string("type", "the type of a channel")?, &path.field("type"))?;
    let target = match kind {
        ChannelType::InApp => fields.string("target", "a target")?.map_or("", |_| ""),
        _ => fields.required_string("target", "a target")?.trim(),
    };
    Ok(Channel { kind, target: target.into() })
}

pub(super) fn channel_type(word: &str, path: &Path<'_>) -> Result<ChannelType, FieldError> {
    let known = || format!("one of {}", ChannelType::ALL.map(ChannelType::as_str).join(", "));
    ChannelType::named(word).ok_or_else(|| path.invalid_value(word, known()))
}

/// Reads the body of a test.
///
/// # Errors
/// Names the field that is invalid.
pub fn channel_from_wire(body: &[u8]) -> Result<Channel, FieldError> {
    channel(&body::parse(body)?, &Path::ROOT)
}

/// Reads `monitor_id`, `status` and `limit`.
///
/// # Errors
/// Names the parameter that is invalid.
pub fn deliveries_from_parameters(query: &str) -> Result<(Option<String>, DeliveryFilter), FieldError> {
    let (mut monitor_id, mut filter) = (None, DeliveryFilter { limit: DEFAULT_LIMIT, ..DeliveryFilter::default() });
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let path = Path::ROOT.field(&name);
        match &*name {
            "monitor_id" => monitor_id = Some(value.into_owned()),
            "status" => {
                let words = || format!("one of {}", DeliveryState::ALL.map(DeliveryState::as_str).join(", "));
                let state = DeliveryState::named(&value);
                filter.state = Some(state.ok_or_else(|| path.invalid_value(&value, words()))?);
            }
            "limit" => filter.limit = limit(&value, &path)?,
            // The caller's credential, which every route accepts.
            "api_key" => {}
            other => return Err(Path::ROOT.unknown_field(other, DELIVERIES)),
        }
    }
    Ok((monitor_id, filter))
}

impl<'a> From<&'a Channel> for ChannelAnswer<'a> {
    fn from(channel: &'a Channel) -> Self {
        ChannelAnswer {
            r#type: channel.kind.as_str(),
            target: Some(&*channel.target).filter(|target| !target.is_empty()),
        }
    }
}

impl<'a> From<&'a [SeenChannel]> for Channels<'a> {
    fn from(seen: &'a [SeenChannel]) -> Self {
        let channel = |seen: &'a SeenChannel| {
            let lane = seen.lane.as_ref();
            ConfiguredChannel {
                r#type: seen.channel.kind.as_str(),
                name: seen.channel.name.as_deref(),
                cleared: seen.channel.is_cleared,
                failures: lane.map_or(0, |lane| lane.failures),
                resumes_at: lane.and_then(|lane| lane.resumes_at).map(|at| at.to_string()),
                disabled: lane.and_then(|lane| lane.disabled.as_deref()),
            }
        };
        Channels { channels: seen.iter().map(channel).collect() }
    }
}

impl<'a> From<&'a Record> for Delivery<'a> {
    fn from(record: &'a Record) -> Self {
        let message = &record.message;
        let is_waiting = record.state == DeliveryState::Waiting;
        Delivery {
            id: &message.id,
            monitor_id: &message.subject.monitor_id,
            kind: message.kind.as_str(),
            channel: ChannelAnswer::from(&record.channel),
            alerts: message.alerts.iter().map(|alert| &*alert.id).collect(),
            status: record.state.as_str(),
            attempts: record.attempts,
            last_error: record.last_error.as_deref(),
            created_at: message.at.to_string(),
            next_attempt_at: is_waiting.then(|| record.due_at.to_string()),
            ended_at: record.ended_at.map(|at| at.to_string()),
        }
    }
}

impl<'a> From<&'a [Record]> for Deliveries<'a> {
    fn from(records: &'a [Record]) -> Self {
        Deliveries { deliveries: records.iter().map(Delivery::from).collect() }
    }
}
