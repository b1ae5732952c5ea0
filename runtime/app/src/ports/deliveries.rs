//! The port to deliveries: messages that wait to be sent to a channel, or that were sent.
//!
//! In: the results of attempts. Out: the messages that are due. A message is written in the same transaction as the
//! changes of its alerts (`MonitorRecords`). The messages of a monitor to one channel are sent in their order, and a
//! channel that fails is paused. Not here: the rules of order and pauses (`monitors::delivery`).

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;

use super::audit::AuditEntry;
use super::channels::{AlertMessage, Channel};
use super::leases::Lease;
use super::store::StoreError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryState {
    Waiting,
    Delivered,
    /// The delivery failed. It remains stored, and a caller can send it again.
    Failed,
}

impl DeliveryState {
    pub const ALL: [DeliveryState; 3] = [DeliveryState::Waiting, DeliveryState::Delivered, DeliveryState::Failed];

    pub fn as_str(self) -> &'static str {
        match self {
            DeliveryState::Waiting => "waiting",
            DeliveryState::Delivered => "delivered",
            DeliveryState::Failed => "failed",
        }
    }

    /// Returns the value with this name; `None` if the name is unknown.
    pub fn named(word: &str) -> Option<Self> {
        DeliveryState::ALL.into_iter().find(|state| state.as_str() == word)
    }
}

/// A message to one channel.
#[derive(Debug, Clone, PartialEq)]
pub struct Delivery {
    pub message: AlertMessage,
    pub channel: Channel,
    /// The number of the message among the messages of its monitor.
    pub sequence: u64,
    pub state: DeliveryState,
    /// The time of the next attempt.
    pub due_at: Timestamp,
    /// The time after which a message that was not accepted has failed.
    pub expires_at: Timestamp,
    /// The number of attempts that were begun.
    pub attempts: u32,
    /// The reason why the last attempt failed.
    pub last_error: Option<Arc<str>>,
    /// The time at which the message was delivered or failed.
    pub ended_at: Option<Timestamp>,
}

/// The state of a channel, for all monitors that use it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lane {
    pub channel: Channel,
    /// The number of failed attempts since the last success.
    pub failures: u32,
    /// The time before which nothing is sent to the channel.
    pub resumes_at: Option<Timestamp>,
    /// The reason why the receiver refuses all messages; `None` if it does not refuse them.
    pub disabled: Option<Arc<str>>,
}

/// A delivery whose attempt is due, with the state of its channel.
#[derive(Debug, Clone, PartialEq)]
pub struct DueDelivery {
    pub delivery: Delivery,
    pub lane: Lane,
}

/// A selection of deliveries, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeliveryFilter {
    pub state: Option<DeliveryState>,
    pub limit: u32,
}

/// Deliveries and the states of channels.
#[async_trait]
pub trait DeliveryRecords: Send + Sync {
    /// Returns the time of the next attempt.
    async fn next_delivery(&self) -> Result<Option<Timestamp>, StoreError>;
    /// Returns the deliveries that are due, oldest first. For each monitor and channel, only the first waiting delivery
    /// is due, and none while the channel is paused.
    async fn due_deliveries(&self, now: Timestamp, limit: u32) -> Result<Vec<DueDelivery>, StoreError>;
    /// Counts an attempt of each delivery. Returns the deliveries as they will be sent: from now on, changes of alerts
    /// do not change these messages. Returns `None` if the lease is stale.
    async fn claim_deliveries(
        &self,
        due: &[DueDelivery],
        lease: &Lease,
    ) -> Result<Option<Vec<DueDelivery>>, StoreError>;
    /// Writes the results of attempts. Returns false and writes nothing if the lease is stale.
    async fn write_attempts(&self, attempts: &[DueDelivery], lease: &Lease) -> Result<bool, StoreError>;
    /// Deletes the deliveries that ended before a time.
    async fn prune_deliveries(&self, before: Timestamp) -> Result<u64, StoreError>;

    async fn deliveries(&self, monitor_id: &str, filter: &DeliveryFilter) -> Result<Vec<Delivery>, StoreError>;
    async fn delivery(&self, id: &str) -> Result<Option<Delivery>, StoreError>;
    /// Schedules a failed delivery to be sent, and ends the pause of its channel. Returns false if the delivery has not
    /// failed.
    async fn replay_delivery(
        &self,
        id: &str,
        now: Timestamp,
        expires_at: Timestamp,
        entry: AuditEntry,
    ) -> Result<bool, StoreError>;

    /// Returns the state of each given channel whose last attempt failed, or whose receiver refuses all messages.
    async fn lanes(&self, channels: &[Channel]) -> Result<Vec<Lane>, StoreError>;
    /// Pauses a channel until a time, for a test message. Also deletes the states of channels whose pause has ended.
    /// Returns false if the channel is paused already.
    async fn take_lane(
        &self,
        channel: &Channel,
        now: Timestamp,
        until: Timestamp,
        entry: AuditEntry,
    ) -> Result<bool, StoreError>;
    /// Marks a channel as usable.
    async fn enable_lane(&self, channel: &Channel) -> Result<(), StoreError>;
}
