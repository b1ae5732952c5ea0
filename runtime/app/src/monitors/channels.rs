//! Channels and deliveries for callers: checks, test messages, lists, and repeated delivery.
//!
//! In: a caller and its request. Out: records. Only the owner of a monitor and callers with `admin` see the deliveries
//! of the monitor, because these show targets. A test message is refused while its channel is paused, and has an audit
//! record.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::try_join_all;
use jiff::{SignedDuration, Timestamp};
use terrane_compiler::types::Granularity;

use super::delivery::{LIFETIME, PACE};
use super::error::MonitorError;
use super::{MonitorService, check};
use crate::domain::{Identity, RequestContext, Scope, SeriesValue, Surface};
use crate::jobs::is_own;
use crate::ports::channels::{
    AlertMessage, Channel, ChannelError, ChannelType, ConfiguredChannel, MessageKind, MessageSubject,
};
use crate::ports::deliveries::{Delivery, DeliveryFilter, Lane};
use crate::ports::monitors::{Monitor, MonitorDefinition};

/// The largest number of characters of a target.
const MAX_TARGET_CHARS: usize = 2_048;
/// The largest number of test messages of one caller within [`TEST_WINDOW`].
const MAX_TESTS: usize = 10;
const TEST_WINDOW: SignedDuration = SignedDuration::from_mins(1);

/// The message for callers who may not learn the reason.
const NOT_ACCEPTED: &str = "the receiver did not accept the message; the server's log has the reason";

/// The times of the test messages of each caller within [`TEST_WINDOW`], by user and tenant.
#[derive(Default)]
pub(super) struct TestLog(Mutex<HashMap<TestingCaller, Vec<Timestamp>>>);

type TestingCaller = (Arc<str>, Option<Arc<str>>);

impl TestLog {
    /// Counts a test message. Returns false if the caller has sent too many.
    fn admits(&self, caller: TestingCaller, now: Timestamp) -> bool {
        let mut tests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tests.retain(|_, times| {
            times.retain(|at| now.duration_since(*at) < TEST_WINDOW);
            !times.is_empty()
        });
        let times = tests.entry(caller).or_default();
        let is_admitted = times.len() < MAX_TESTS;
        if is_admitted {
            times.push(now);
        }
        is_admitted
    }
}

/// A configured channel with its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenChannel {
    pub channel: ConfiguredChannel,
    /// The state of the channel's deliveries; `None` if the last message was accepted, or no message was sent.
    pub lane: Option<Lane>,
}

impl MonitorService {
    /// Returns the configured channels, each with the state of its deliveries.
    ///
    /// # Errors
    /// The state database cannot be read.
    pub async fn channels(&self) -> Result<Vec<SeenChannel>, MonitorError> {
        let configured = self.ports.channels.configured();
        let named =
            |channel: &ConfiguredChannel| channel.name.clone().map(|target| Channel { kind: channel.kind, target });
        let named: Vec<Channel> = configured.iter().filter_map(named).collect();
        let lanes = self.ports.deliveries.lanes(&named).await?;
        let state = |channel: &ConfiguredChannel| {
            let name = channel.name.as_ref()?;
            let is_own = |lane: &&Lane| lane.channel.kind == channel.kind && lane.channel.target == *name;
            lanes.iter().find(is_own).cloned()
        };
        Ok(configured.into_iter().map(|channel| SeenChannel { lane: state(&channel), channel }).collect())
    }

    /// Sends a test message. Returns the reason if the receiver did not accept it. If the receiver accepted it, a
    /// channel that was disabled becomes usable again.
    ///
    /// # Errors
    /// The channel cannot be used, or is paused.
    pub async fn test_channel(
        &self,
        request: &RequestContext,
        channel: &Channel,
    ) -> Result<Option<String>, MonitorError> {
        self.check_channel("target", channel).await?;
        if channel.kind == ChannelType::InApp {
            return Ok(None);
        }
        let now = self.ports.clock.now();
        if !self.tests.admits((Arc::clone(&request.caller.user_id), request.tenant.clone()), now) {
            return Err(MonitorError::TooManyTests { most: MAX_TESTS });
        }
        let until = now.saturating_add(PACE).unwrap_or(now);
        let mut entry = self.ports.access.entry("channel_tested", request, "channels".to_owned());
        entry.after = Some(check::channel_details(channel));
        if !self.ports.deliveries.take_lane(channel, now, until, entry).await? {
            return Err(MonitorError::ChannelPaused);
        }
        if let Err(error) = self.ports.channels.send(channel, &test_message(self.new_id(), now)).await {
            tracing::info!(
                event = "channel_test_failed",
                channel = channel.kind.as_str(),
                error_message = error.reason()
            );
            let hides_reason = self.hides_reason(request, channel);
            return Ok(Some(if hides_reason { NOT_ACCEPTED.to_owned() } else { error.reason().to_owned() }));
        }
        self.ports.deliveries.enable_lane(channel).await?;
        Ok(None)
    }

    /// Returns the deliveries of the monitors that the caller may change, newest first.
    ///
    /// # Errors
    /// The filter names a monitor that the caller may not change, or the state database cannot be read.
    pub async fn deliveries(
        &self,
        identity: &Identity,
        request: &RequestContext,
        monitor_id: Option<&str>,
        filter: &DeliveryFilter,
    ) -> Result<Vec<Delivery>, MonitorError> {
        let monitors = match monitor_id {
            Some(id) => vec![self.changeable(identity, request, id).await?],
            None => self.ports.records.monitors().await?,
        };
        let mut found = Vec::new();
        for monitor in monitors.iter().filter(|monitor| may_change(monitor, identity, request)) {
            found.extend(self.ports.deliveries.deliveries(&monitor.id, filter).await?);
        }
        found.sort_by(|a, b| (b.message.at, b.sequence, &b.message.id).cmp(&(a.message.at, a.sequence, &a.message.id)));
        found.truncate(filter.limit as usize);
        Ok(found.into_iter().map(|delivery| self.without_reason(request, delivery)).collect())
    }

    /// Schedules a failed delivery to be sent at once.
    ///
    /// # Errors
    /// The caller may not change the delivery's monitor, the delivery does not exist, or it has not failed.
    pub async fn replay(
        &self,
        identity: &Identity,
        request: &RequestContext,
        id: &str,
    ) -> Result<Delivery, MonitorError> {
        let delivery = self.ports.deliveries.delivery(id).await?.ok_or(MonitorError::UnknownDelivery)?;
        let monitor = self.ports.records.monitor(&delivery.message.subject.monitor_id).await?;
        monitor.filter(|monitor| may_change(monitor, identity, request)).ok_or(MonitorError::UnknownDelivery)?;
        self.check_channel("target", &delivery.channel).await?;
        let now = self.ports.clock.now();
        let expires_at = now.saturating_add(LIFETIME).unwrap_or(now);
        let mut entry = self.ports.access.entry("delivery_replayed", request, format!("delivery:{id}"));
        entry.after = Some(check::channel_details(&delivery.channel));
        match self.ports.deliveries.replay_delivery(id, now, expires_at, entry).await? {
            true => {
                let delivery = self.ports.deliveries.delivery(id).await?.ok_or(MonitorError::UnknownDelivery)?;
                Ok(self.without_reason(request, delivery))
            }
            false => Err(MonitorError::NotFailed),
        }
    }

    /// Returns whether the caller may not learn why a receiver did not accept a message: the caller chose the URL, and
    /// lacks `admin`. The reasons would show which hosts and ports of the operator's networks exist.
    fn hides_reason(&self, request: &RequestContext, channel: &Channel) -> bool {
        let is_operator = request.surface == Surface::Internal || request.scopes.hold(Scope::Admin);
        let is_url = !matches!(channel.kind, ChannelType::Email | ChannelType::Sms | ChannelType::InApp);
        let is_configured =
            |own: &ConfiguredChannel| own.kind == channel.kind && own.name.as_ref() == Some(&channel.target);
        !is_operator && is_url && !self.ports.channels.configured().iter().any(is_configured)
    }

    fn without_reason(&self, request: &RequestContext, delivery: Delivery) -> Delivery {
        let hides_reason = delivery.last_error.is_some() && self.hides_reason(request, &delivery.channel);
        if hides_reason { Delivery { last_error: Some(NOT_ACCEPTED.into()), ..delivery } } else { delivery }
    }

    /// Checks that each channel of a definition is configured on this server, and that no host name of a URL belongs to a
    /// private network. Names are looked up at the same time, each once.
    pub(super) async fn check_channels(&self, definition: &MonitorDefinition) -> Result<(), MonitorError> {
        let alerts = &definition.alerts;
        let of_alerts = alerts.channels.iter().enumerate();
        let of_alerts = of_alerts.map(|(place, channel)| (format!("alert_config.channels[{place}].target"), channel));
        let of_rules = alerts.escalations.iter().enumerate().flat_map(|(place, rule)| {
            rule.notify.iter().map(move |channel| (format!("alert_config.escalation_rules[{place}].notify"), channel))
        });
        let mut seen = HashSet::new();
        let distinct = of_alerts.chain(of_rules).filter(|(_, channel)| seen.insert(*channel));
        let checks = distinct.map(|(field, channel)| async move { self.check_channel(&field, channel).await });
        try_join_all(checks).await.map(|_| ())
    }

    async fn check_channel(&self, field: &str, channel: &Channel) -> Result<(), MonitorError> {
        if channel.target.chars().count() > MAX_TARGET_CHARS {
            let problem = format!("must have at most {MAX_TARGET_CHARS} characters");
            return Err(MonitorError::Channel { field: field.to_owned(), error: ChannelError::Target { problem } });
        }
        if channel.kind == ChannelType::InApp {
            return Ok(());
        }
        let checked = self.ports.channels.check_address(channel).await;
        checked.map_err(|error| MonitorError::Channel { field: field.to_owned(), error })
    }
}

/// Returns a test message, which is not about a monitor.
fn test_message(id: Arc<str>, at: Timestamp) -> AlertMessage {
    let none = || Arc::from("");
    let subject = MessageSubject {
        monitor_id: none(),
        monitor: none(),
        value: SeriesValue::Measure { cube: none(), measure: none() },
        granularity: Granularity::Day,
        owner: none(),
    };
    AlertMessage { id, kind: MessageKind::Test, at, subject, alerts: Vec::new(), more: 0 }
}

/// Returns whether a caller owns a monitor or has `admin`.
pub(super) fn may_change(monitor: &Monitor, identity: &Identity, request: &RequestContext) -> bool {
    is_own(&monitor.owner, identity) || request.scopes.hold(Scope::Admin)
}

/// Removes the targets of channels, which may be secret.
pub(super) fn without_targets(mut monitor: Monitor) -> Monitor {
    let alerts = &mut monitor.definition.alerts;
    let notified = alerts.escalations.iter_mut().flat_map(|rule| &mut rule.notify);
    for channel in alerts.channels.iter_mut().chain(notified) {
        channel.target = Arc::from("");
    }
    monitor
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_messages_of_one_caller_are_limited() {
        let log = TestLog::default();
        let at = |second| Timestamp::from_second(second).expect("a time");
        let caller = |name: &str| -> TestingCaller { (name.into(), None) };
        for _ in 0..MAX_TESTS {
            assert!(log.admits(caller("ada"), at(0)));
        }
        assert!(!log.admits(caller("ada"), at(59)));
        assert!(log.admits(caller("bob"), at(59)));
        assert!(log.admits(caller("ada"), at(60)));
        assert_eq!(log.0.lock().expect("no panic").len(), 2);
    }
}
