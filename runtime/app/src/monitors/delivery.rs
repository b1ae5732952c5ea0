//! Attempts to deliver messages: the rules after an attempt, and the worker's task.
//!
//! In: deliveries that are due. Out: their states, and the states of channels. A message is sent at least once, and all
//! attempts carry the same id. A channel that fails is paused for 10 s. Each further failure doubles the pause, up to
//! an hour. If the receiver requests a pause, that pause is used, from a second to an hour, and from the fifth failure
//! in a row at least 10 s. A message that is not accepted within 24 hours has failed; it stays stored, and a caller can
//! send it again. A receiver that refuses all messages disables its channel. Messages to different channels are sent in
//! parallel, so that a slow channel does not delay the others.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use jiff::{SignedDuration, Timestamp};

use super::MonitorService;
use crate::ports::channels::SendError;
use crate::ports::deliveries::{DeliveryState, DueDelivery};
use crate::ports::leases::Lease;
use crate::ports::store::StoreError;
use crate::worker::{Progress, Schedule, Task, TaskError};

/// The name of the task and of its lease.
const DELIVERIES: &str = "deliveries";
/// The longest time until the task notices a new message.
const POLL: Duration = Duration::from_secs(2);
/// The largest number of attempts in one run of the task. Each attempt is for another channel.
const AT_ONCE: u32 = 32;
/// The time after which a message that is not accepted has failed.
pub(super) const LIFETIME: SignedDuration = SignedDuration::from_hours(24);
/// The time for which ended deliveries are stored.
const RETENTION: SignedDuration = SignedDuration::from_hours(30 * 24);
/// The pause of a channel between two messages.
pub(super) const PACE: SignedDuration = SignedDuration::from_secs(1);
const FIRST_PAUSE: Duration = Duration::from_secs(10);
/// The number of failures in a row up to which a receiver determines the pause, even a short one.
const OBEYED_FAILURES: u32 = 4;
/// The shortest pause that a receiver can request.
const MIN_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(3_600);
/// The largest random change of a pause, as a share of the pause.
const SPREAD: f64 = 0.2;

/// Returns the states of a delivery and of its channel after an attempt at the time `at`. The attempt was counted when
/// it began. `spread` is a random number from 0 to 1, which determines how the pause varies.
pub fn after_attempt(due: &DueDelivery, result: Result<(), SendError>, at: Timestamp, spread: f64) -> DueDelivery {
    let DueDelivery { mut delivery, mut lane } = due.clone();
    delivery.last_error = result.as_ref().err().map(|error| error.reason().into());
    let paused = |pause: Duration| at.saturating_add(pause).unwrap_or(at);
    let ended = match result {
        Ok(()) => Some(DeliveryState::Delivered),
        Err(SendError::Refused { .. }) => Some(DeliveryState::Failed),
        Err(SendError::Disabled { reason }) => {
            lane.disabled = Some(reason.into());
            Some(DeliveryState::Failed)
        }
        Err(SendError::Temporary { after, .. }) => {
            lane.failures += 1;
            let least = if lane.failures > OBEYED_FAILURES { FIRST_PAUSE } else { MIN_PAUSE };
            let requested = after.map(|after| after.clamp(least, MAX_PAUSE));
            let pause = requested.unwrap_or_else(|| pause(lane.failures, spread).min(MAX_PAUSE));
            lane.resumes_at = Some(paused(pause));
            delivery.due_at = paused(pause);
            (delivery.due_at > delivery.expires_at).then_some(DeliveryState::Failed)
        }
    };
    if let Some(state) = ended {
        (delivery.state, delivery.ended_at) = (state, Some(at));
    }
    if delivery.due_at <= at {
        (lane.failures, lane.resumes_at) = (0, at.saturating_add(PACE).ok());
    }
    DueDelivery { delivery, lane }
}

/// Returns a failed delivery to a channel whose receiver refuses all messages. No attempt is made.
fn refused(due: &DueDelivery, reason: &str, at: Timestamp) -> DueDelivery {
    let mut refused = due.clone();
    refused.delivery.state = DeliveryState::Failed;
    refused.delivery.ended_at = Some(at);
    refused.delivery.last_error = Some(format!("the channel is disabled: {reason}").into());
    refused
}

/// Returns the pause of a channel after a number of failures in a row.
fn pause(failures: u32, spread: f64) -> Duration {
    let doubled = FIRST_PAUSE.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(MAX_PAUSE);
    doubled.mul_f64(1.0 + SPREAD * (2.0 * spread.clamp(0.0, 1.0) - 1.0))
}

/// Sends messages.
pub struct DeliveryTask(Arc<MonitorService>);

impl DeliveryTask {
    pub fn new(service: Arc<MonitorService>) -> Self {
        DeliveryTask(service)
    }

    async fn pruned(&self, now: Timestamp) -> Result<Progress, TaskError> {
        if let Ok(before) = now.checked_sub(RETENTION) {
            self.0.ports.deliveries.prune_deliveries(before).await?;
        }
        Ok(Progress::Complete)
    }

    async fn attempt(&self, due: &DueDelivery) -> DueDelivery {
        let ports = &self.0.ports;
        if let Some(reason) = &due.lane.disabled {
            return refused(due, reason, ports.clock.now());
        }
        let result = ports.channels.send(&due.delivery.channel, &due.delivery.message).await;
        let mut random = [0; 4];
        ports.randomness.fill(&mut random);
        let spread = f64::from(u32::from_le_bytes(random)) / f64::from(u32::MAX);
        let after = after_attempt(due, result, ports.clock.now(), spread);
        log(&after);
        after
    }
}

fn log(after: &DueDelivery) {
    let DueDelivery { delivery, lane } = after;
    let (id, channel) = (&*delivery.message.id, delivery.channel.kind.as_str());
    let (attempts, monitor_id) = (delivery.attempts, &*delivery.message.subject.monitor_id);
    match (&delivery.last_error, delivery.state) {
        (None, _) => tracing::info!(event = "alert_delivered", delivery_id = id, monitor_id, channel, attempts),
        (Some(error), DeliveryState::Failed) => {
            let is_disabled = lane.disabled.is_some();
            tracing::error!(event = "alert_delivery_failed", delivery_id = id, monitor_id, channel, attempts,
                is_disabled, error_message = %error);
        }
        (Some(error), _) => {
            tracing::warn!(event = "alert_delivery_retried", delivery_id = id, monitor_id, channel, attempts,
                error_message = %error);
        }
    }
}

#[async_trait]
impl Task for DeliveryTask {
    fn name(&self) -> &'static str {
        DELIVERIES
    }

    fn schedule(&self) -> Schedule {
        Schedule::DueTime { poll: POLL }
    }

    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        self.0.ports.deliveries.next_delivery().await
    }

    async fn run(&self, lease: &Lease) -> Result<Progress, TaskError> {
        let (records, now) = (&self.0.ports.deliveries, self.0.ports.clock.now());
        let mut due = records.due_deliveries(now, AT_ONCE).await?;
        let mut channels = Vec::new();
        due.retain(|due| {
            let is_first = !channels.contains(&due.delivery.channel);
            channels.push(due.delivery.channel.clone());
            is_first
        });
        if due.is_empty() {
            return self.pruned(now).await;
        }
        let claimed = records.claim_deliveries(&due, lease).await?.ok_or(TaskError::LeaseLost)?;
        let attempts = join_all(claimed.iter().map(|due| self.attempt(due))).await;
        match records.write_attempts(&attempts, lease).await? {
            true => Ok(Progress::Incomplete),
            false => Err(TaskError::LeaseLost),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

    use terrane_compiler::types::Granularity;

    use super::*;
    use crate::domain::SeriesValue;
    use crate::ports::channels::{AlertMessage, Channel, ChannelType, MessageKind, MessageSubject};
    use crate::ports::deliveries::{Delivery, Lane};

    const MIDDLE: f64 = 0.5;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn due() -> DueDelivery {
        let channel = Channel { kind: ChannelType::Webhook, target: "ops".into() };
        let subject = MessageSubject {
            monitor_id: "m".into(),
            monitor: "m".into(),
            value: SeriesValue::Measure { cube: "c".into(), measure: "x".into() },
            granularity: Granularity::Day,
            owner: "o".into(),
        };
        let message = AlertMessage {
            id: "1".into(),
            kind: MessageKind::Triggered,
            at: at(0),
            subject,
            alerts: Vec::new(),
            more: 0,
        };
        let delivery = Delivery {
            message,
            channel: channel.clone(),
            sequence: 0,
            state: DeliveryState::Waiting,
            due_at: at(0),
            expires_at: at(86_400),
            attempts: 0,
            last_error: None,
            ended_at: None,
        };
        DueDelivery { delivery, lane: Lane { channel, failures: 0, resumes_at: None, disabled: None } }
    }

    fn temporary(after: Option<u64>) -> Result<(), SendError> {
        Err(SendError::Temporary { reason: "busy".to_owned(), after: after.map(Duration::from_secs) })
    }

    #[test]
    fn retry_delays_double_up_to_an_hour_until_the_message_fails() {
        let (mut due, mut now, mut pauses) = (due(), at(0), Vec::new());
        while due.delivery.state == DeliveryState::Waiting {
            due = after_attempt(&due, temporary(None), now, MIDDLE);
            pauses.push(due.lane.resumes_at.unwrap().as_second() - now.as_second());
            now = due.lane.resumes_at.unwrap();
        }
        assert_eq!(pauses[..10], [10, 20, 40, 80, 160, 320, 640, 1_280, 2_560, 3_600]);
        assert_eq!((due.delivery.state, due.delivery.last_error.as_deref()), (DeliveryState::Failed, Some("busy")));
        assert!(now > due.delivery.expires_at);
        // Fewer than 12 pauses end within the first hour of failures, and each is followed by one attempt.
        assert!(
            pauses
                .iter()
                .scan(0, |sum, pause| {
                    *sum += pause;
                    Some(*sum)
                })
                .filter(|sum| *sum < 3_600)
                .count()
                < 12
        );
    }

    #[test]
    fn receivers_set_the_retry_delay_until_success() {
        for (requested, pause) in [(3, 3), (0, 1), (86_000, 3_600)] {
            let failed = after_attempt(&due(), temporary(Some(requested)), at(0), MIDDLE);
            assert_eq!(failed.lane.resumes_at, Some(at(pause)), "{requested}");
        }
        let (mut failed, mut now, mut pauses) = (due(), at(0), Vec::new());
        for _ in 0..6 {
            failed = after_attempt(&failed, temporary(Some(2)), now, MIDDLE);
            pauses.push(failed.delivery.due_at.as_second() - now.as_second());
            now = failed.delivery.due_at;
        }
        assert_eq!(pauses, [2, 2, 2, 2, 10, 10]);
        let failed = after_attempt(&due(), temporary(Some(120)), at(0), MIDDLE);
        assert_eq!((failed.lane.resumes_at, failed.lane.failures), (Some(at(120)), 1));
        let sent = after_attempt(&failed, Ok(()), at(120), MIDDLE);
        assert_eq!((sent.delivery.state, sent.delivery.ended_at), (DeliveryState::Delivered, Some(at(120))));
        assert_eq!((sent.lane.failures, sent.lane.resumes_at), (0, Some(at(121))));
    }

    #[test]
    fn rejections_fail_the_message_and_may_disable_the_channel() {
        let refused = after_attempt(&due(), Err(SendError::Refused { reason: "no".to_owned() }), at(0), MIDDLE);
        assert_eq!((refused.delivery.state, refused.lane.disabled), (DeliveryState::Failed, None));
        let disabled = after_attempt(&due(), Err(SendError::Disabled { reason: "gone".to_owned() }), at(0), MIDDLE);
        assert_eq!((disabled.delivery.state, disabled.lane.disabled.as_deref()), (DeliveryState::Failed, Some("gone")));
    }

    #[test]
    fn retry_delays_vary_by_a_fifth() {
        for (spread, pause) in [(0.0, 8), (1.0, 12)] {
            let failed = after_attempt(&due(), temporary(None), at(0), spread);
            assert_eq!(failed.lane.resumes_at, Some(at(pause)), "{spread}");
        }
    }
}
