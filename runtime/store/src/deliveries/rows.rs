//! Converts rows of deliveries and of channels.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use terrane_app::ports::channels::{AlertMessage, Channel, ChannelType, MessageAlert, MessageKind, MessageSubject};
use terrane_app::ports::deliveries::{Delivery, DeliveryState, Lane};
use terrane_app::ports::monitors::AlertState;
use terrane_app::ports::severity::FindingSeverity;
use terrane_app::ports::store::StoreError;

use crate::database::Row;
use crate::monitors::rows::{value_names, value_of};
use crate::row::{maybe_text, maybe_time, micros, odd, signed, text, time, unsigned};
use crate::statement::Statement;

pub(crate) const DELIVERIES: [&str; 14] = [
    "id",
    "monitor_id",
    "sequence",
    "kind",
    "channel",
    "target",
    "message",
    "created_at",
    "state",
    "due_at",
    "expires_at",
    "attempts",
    "last_error",
    "ended_at",
];
pub(crate) const DELIVERY_NUMBERS: [&str; 6] =
    ["sequence", "created_at", "due_at", "expires_at", "attempts", "ended_at"];
pub(crate) const LANES: [&str; 5] = ["channel", "target", "failures", "resumes_at", "disabled"];
pub(crate) const LANE_NUMBERS: [&str; 2] = ["failures", "resumes_at"];

const WRITE_DELIVERY: &str = "\
    INSERT INTO deliveries (id, monitor_id, sequence, kind, channel, target, message, created_at, state, due_at, \
    expires_at, attempts, last_error, ended_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) \
    ON CONFLICT (id) DO UPDATE SET message = excluded.message, state = excluded.state, due_at = excluded.due_at, \
    attempts = excluded.attempts, last_error = excluded.last_error, ended_at = excluded.ended_at";
const WRITE_LANE: &str = "\
    INSERT INTO channel_lanes (channel, target, failures, resumes_at, disabled) VALUES ($1, $2, $3, $4, $5) \
    ON CONFLICT (channel, target) DO UPDATE SET failures = excluded.failures, resumes_at = excluded.resumes_at, \
    disabled = excluded.disabled";

/// The JSON of a message in its column. Numbers are stored as text, so that they are read exactly as written.
#[derive(Serialize, Deserialize)]
struct MessageText {
    monitor: String,
    /// The name of the cube. It is empty, like the measure, if the message is about a metric.
    cube: String,
    measure: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    metric: Option<String>,
    granularity: String,
    #[serde(default)]
    owner: String,
    alerts: Vec<AlertText>,
    more: u32,
}

#[derive(Serialize, Deserialize)]
struct AlertText {
    id: String,
    state: String,
    severity: String,
    series: Vec<(String, Option<String>)>,
    first_step: i64,
    last_step: i64,
    value: Option<String>,
    expected: Option<String>,
}

impl From<&AlertMessage> for MessageText {
    fn from(message: &AlertMessage) -> Self {
        let subject = &message.subject;
        let (cube, measure, metric) = value_names(&subject.value);
        MessageText {
            monitor: subject.monitor.to_string(),
            cube: cube.to_owned(),
            measure: measure.to_owned(),
            metric: metric.map(str::to_owned),
            granularity: subject.granularity.as_str().to_owned(),
            owner: subject.owner.to_string(),
            alerts: message.alerts.iter().map(AlertText::from).collect(),
            more: message.more,
        }
    }
}

impl From<&MessageAlert> for AlertText {
    fn from(alert: &MessageAlert) -> Self {
        let part =
            |(name, value): &(Arc<str>, Option<Arc<str>>)| (name.to_string(), value.as_deref().map(str::to_owned));
        AlertText {
            id: alert.id.to_string(),
            state: alert.state.as_str().to_owned(),
            severity: alert.severity.as_str().to_owned(),
            series: alert.series.iter().map(part).collect(),
            first_step: alert.first_step_ms,
            last_step: alert.last_step_ms,
            value: alert.value.map(|number| number.to_string()),
            expected: alert.expected.map(|number| number.to_string()),
        }
    }
}

impl AlertText {
    fn read(self) -> Result<MessageAlert, StoreError> {
        let number = |text: Option<String>| text.map(|text| text.parse().map_err(|_| odd("a number"))).transpose();
        let part = |(name, value): (String, Option<String>)| (name.into(), value.map(Arc::from));
        Ok(MessageAlert {
            id: self.id.into(),
            state: AlertState::named(&self.state).ok_or_else(|| odd("a state of an alert"))?,
            severity: FindingSeverity::named(&self.severity).ok_or_else(|| odd("a severity"))?,
            series: self.series.into_iter().map(part).collect(),
            first_step_ms: self.first_step,
            last_step_ms: self.last_step,
            value: number(self.value)?,
            expected: number(self.expected)?,
        })
    }
}

pub(super) fn write_delivery(delivery: &Delivery) -> Statement {
    let message = &delivery.message;
    Statement::new(WRITE_DELIVERY)
        .bind(&*message.id)
        .bind(&*message.subject.monitor_id)
        .bind(signed(delivery.sequence))
        .bind(message.kind.as_str())
        .bind(delivery.channel.kind.as_str())
        .bind(&*delivery.channel.target)
        .bind(&*serde_json::to_string(&MessageText::from(message)).unwrap_or_default())
        .bind(micros(message.at))
        .bind(delivery.state.as_str())
        .bind(micros(delivery.due_at))
        .bind(micros(delivery.expires_at))
        .bind(i64::from(delivery.attempts))
        .bind(delivery.last_error.as_deref())
        .bind(delivery.ended_at.map(micros))
}

pub(super) fn delivery(row: &Row) -> Result<Delivery, StoreError> {
    let stored: MessageText = serde_json::from_str(&row.text("message")?).map_err(|_| odd("a message"))?;
    let alerts: Result<Vec<_>, _> = stored.alerts.into_iter().map(AlertText::read).collect();
    let message = AlertMessage {
        id: text(row, "id")?,
        kind: MessageKind::named(&row.text("kind")?).ok_or_else(|| odd("a kind of message"))?,
        at: time(row.integer("created_at")?)?,
        subject: MessageSubject {
            monitor_id: text(row, "monitor_id")?,
            monitor: stored.monitor.into(),
            value: value_of(stored.cube, stored.measure, stored.metric),
            granularity: stored.granularity.parse().map_err(|_| odd("a granularity"))?,
            owner: stored.owner.into(),
        },
        alerts: alerts?,
        more: stored.more,
    };
    Ok(Delivery {
        message,
        channel: channel(row)?,
        sequence: unsigned(row, "sequence")?,
        state: DeliveryState::named(&row.text("state")?).ok_or_else(|| odd("a state of a delivery"))?,
        due_at: time(row.integer("due_at")?)?,
        expires_at: time(row.integer("expires_at")?)?,
        attempts: u32::try_from(row.integer("attempts")?).unwrap_or(u32::MAX),
        last_error: maybe_text(row, "last_error")?,
        ended_at: maybe_time(row.maybe_integer("ended_at")?)?,
    })
}

fn channel(row: &Row) -> Result<Channel, StoreError> {
    let kind = ChannelType::named(&row.text("channel")?).ok_or_else(|| odd("a type of channel"))?;
    Ok(Channel { kind, target: text(row, "target")? })
}

pub(super) fn write_lane(lane: &Lane) -> Statement {
    Statement::new(WRITE_LANE)
        .bind(lane.channel.kind.as_str())
        .bind(&*lane.channel.target)
        .bind(i64::from(lane.failures))
        .bind(lane.resumes_at.map(micros))
        .bind(lane.disabled.as_deref())
}

/// Reads the state of a channel. The columns are null if the channel has no stored state.
pub(super) fn lane(row: &Row) -> Result<Lane, StoreError> {
    let failures = row.maybe_integer("failures")?.unwrap_or_default();
    Ok(Lane {
        channel: channel(row)?,
        failures: u32::try_from(failures).unwrap_or(u32::MAX),
        resumes_at: maybe_time(row.maybe_integer("resumes_at")?)?,
        disabled: maybe_text(row, "disabled")?,
    })
}
