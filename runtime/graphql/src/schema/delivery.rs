//! Deliveries of messages about alerts.
//!
//! In: records of the use case. Out: the fields that REST sends, under names in GraphQL's convention.

use async_graphql::{Context, Enum, ID, SimpleObject};
use terrane_app::ports::deliveries::{DeliveryFilter, DeliveryState};
use terrane_wire::anomaly as wire;

use super::monitor::{checked_limit, refused, service};
use super::request::state;
use crate::failure::Failure;

/// The state of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
pub(crate) enum DeliveryStatus {
    Waiting,
    Delivered,
    Failed,
}

/// A message to one channel.
#[derive(SimpleObject)]
pub(crate) struct Delivery {
    id: ID,
    monitor_id: ID,
    /// `triggered`, `raised`, `escalated`, `acknowledged` or `resolved`.
    kind: String,
    /// `webhook`, `slack`, `pagerduty`, `email` or `sms`.
    channel: String,
    target: String,
    /// The ids of the alerts in the message.
    alerts: Vec<ID>,
    status: DeliveryStatus,
    attempts: u32,
    /// The reason why the last attempt failed.
    last_error: Option<String>,
    created_at: String,
    /// Null if it was delivered, or failed.
    next_attempt_at: Option<String>,
    ended_at: Option<String>,
}

/// Returns the deliveries of the monitors that the caller may change, newest first.
///
/// # Errors
/// Monitors are switched off, the caller may not change the monitor, or the limit is invalid.
pub(crate) async fn deliveries(
    context: &Context<'_>,
    monitor_id: Option<ID>,
    status: Option<DeliveryStatus>,
    limit: Option<i64>,
) -> Result<Vec<Delivery>, Failure> {
    let state = state(context);
    let parts = &state.parts;
    let filter = DeliveryFilter { state: status.map(DeliveryState::from), limit: checked_limit(limit)? };
    let (identity, request) = (parts.context.identity(), &parts.context.request);
    let monitor_id = monitor_id.as_ref().map(|id| id.as_str());
    let found = service(parts)?.deliveries(&identity, request, monitor_id, &filter).await;
    let found = found.map_err(|error| refused(error, parts))?;
    state.count(context, found.len(), &|_| None)?;
    Ok(found.iter().map(|record| Delivery::from(wire::Delivery::from(record))).collect())
}

impl From<DeliveryStatus> for DeliveryState {
    fn from(status: DeliveryStatus) -> Self {
        match status {
            DeliveryStatus::Waiting => DeliveryState::Waiting,
            DeliveryStatus::Delivered => DeliveryState::Delivered,
            DeliveryStatus::Failed => DeliveryState::Failed,
        }
    }
}

impl From<wire::Delivery<'_>> for Delivery {
    fn from(delivery: wire::Delivery<'_>) -> Self {
        let all = [DeliveryStatus::Waiting, DeliveryStatus::Delivered, DeliveryStatus::Failed];
        let status = all.into_iter().find(|known| DeliveryState::from(*known).as_str() == delivery.status);
        Delivery {
            id: delivery.id.into(),
            monitor_id: delivery.monitor_id.into(),
            kind: delivery.kind.to_owned(),
            channel: delivery.channel.r#type.to_owned(),
            target: delivery.channel.target.unwrap_or_default().to_owned(),
            alerts: delivery.alerts.into_iter().map(ID::from).collect(),
            status: status.unwrap_or(DeliveryStatus::Waiting),
            attempts: delivery.attempts,
            last_error: delivery.last_error.map(str::to_owned),
            created_at: delivery.created_at,
            next_attempt_at: delivery.next_attempt_at,
            ended_at: delivery.ended_at,
        }
    }
}
