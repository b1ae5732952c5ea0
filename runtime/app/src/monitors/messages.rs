//! The messages about alerts, as plain functions.
//!
//! In: the changes of alerts in one transaction, the rules of their monitor, and the messages that wait for the end of
//! their grouping window. Out: the deliveries to write. The first message about new alerts waits for further alerts. If
//! a severity rises or an alert is escalated, the waiting message is sent at once. PagerDuty groups events itself, so
//! it gets one event for each alert without waiting. Not here: attempts (`delivery`), formats (the adapter of
//! channels), storage.

use jiff::{SignedDuration, Timestamp};

use super::delivery::LIFETIME;
use crate::ports::channels::{AlertMessage, Channel, ChannelType, MessageAlert, MessageKind, MessageSubject};
use crate::ports::deliveries::{Delivery, DeliveryState};
use crate::ports::monitors::{Alert, AlertConfig, AlertState, NewId};

/// The largest number of alerts that a message lists. A message states the number of further alerts.
const MAX_LISTED: usize = 50;
/// The order in which the messages of one transaction are written.
const ORDER: [MessageKind; 5] = [
    MessageKind::Triggered,
    MessageKind::Raised,
    MessageKind::Escalated,
    MessageKind::Acknowledged,
    MessageKind::Resolved,
];

/// A change of an alert that is reported to channels.
#[derive(Debug, Clone, PartialEq)]
pub struct AlertEvent {
    pub kind: MessageKind,
    pub alert: MessageAlert,
    /// The number of escalations after the change.
    pub escalations: u32,
}

/// The parts of one transaction that its messages need.
pub struct Outbox<'a> {
    pub subject: MessageSubject,
    pub rules: &'a AlertConfig,
    pub at: Timestamp,
    /// The sequence number of the monitor's next message.
    pub next_sequence: u64,
    /// The messages of the monitor that wait for the end of their grouping window.
    pub open: Vec<Delivery>,
}

/// Returns the kinds of messages about a change of an alert, in the order in which they are sent.
pub fn message_kinds(before: Option<&Alert>, after: &Alert) -> Vec<MessageKind> {
    let has_become = |state| after.state == state && before.is_none_or(|before| before.state != state);
    let mut kinds = Vec::new();
    match before {
        None => kinds.push(MessageKind::Triggered),
        Some(before) if before.severity < after.severity => kinds.push(MessageKind::Raised),
        Some(_) => {}
    }
    if before.is_some_and(|before| before.escalations < after.escalations) {
        kinds.push(MessageKind::Escalated);
    }
    let is_acknowledged = before.is_some_and(|before| before.acknowledged_at.is_none())
        && matches!(after.state, AlertState::Acknowledged | AlertState::Investigating);
    if is_acknowledged {
        kinds.push(MessageKind::Acknowledged);
    }
    if has_become(AlertState::Resolved) {
        kinds.push(MessageKind::Resolved);
    }
    kinds
}

/// Returns the deliveries that these events add or change.
pub fn deliveries_of(outbox: Outbox<'_>, events: &[AlertEvent], new_id: NewId<'_>) -> Vec<Delivery> {
    let mut plan = Plan { changed: vec![false; outbox.open.len()], outbox, added: Vec::new(), new_id };
    for kind in ORDER {
        for channel in plan.channels_of(kind) {
            let is_wanted = |event: &&AlertEvent| event.kind == kind && plan.is_receiver(&channel, event);
            let alerts: Vec<MessageAlert> = events.iter().filter(is_wanted).map(|event| event.alert.clone()).collect();
            plan.write(kind, &channel, alerts);
        }
    }
    let Plan { outbox, changed, added, .. } = plan;
    let open = outbox.open.into_iter().zip(changed).filter(|(_, is_changed)| *is_changed).map(|(delivery, _)| delivery);
    open.chain(added).collect()
}

struct Plan<'a> {
    outbox: Outbox<'a>,
    /// For each message of `outbox.open`, true if it was changed.
    changed: Vec<bool>,
    added: Vec<Delivery>,
    new_id: NewId<'a>,
}

impl Plan<'_> {
    /// Returns the channels to which messages of a kind are sent, each once.
    fn channels_of(&self, kind: MessageKind) -> Vec<Channel> {
        let rules = self.outbox.rules;
        let escalations = rules.escalations.iter().filter(|_| kind == MessageKind::Escalated);
        let mut channels: Vec<Channel> =
            rules.channels.iter().chain(escalations.flat_map(|rule| &rule.notify)).cloned().collect();
        channels.retain(|channel| match kind {
            MessageKind::Acknowledged => channel.kind == ChannelType::PagerDuty,
            _ => channel.kind != ChannelType::InApp,
        });
        channels.sort();
        channels.dedup();
        channels
    }

    fn is_receiver(&self, channel: &Channel, event: &AlertEvent) -> bool {
        let rules = self.outbox.rules;
        let rule = match event.kind {
            MessageKind::Escalated => rules.escalations.get(event.escalations.saturating_sub(1) as usize),
            _ => None,
        };
        match rule {
            Some(rule) if !rule.notify.is_empty() => rule.notify.contains(channel),
            _ => rules.channels.contains(channel),
        }
    }

    fn write(&mut self, kind: MessageKind, channel: &Channel, mut alerts: Vec<MessageAlert>) {
        if matches!(kind, MessageKind::Raised | MessageKind::Escalated) {
            alerts.retain(|alert| !self.send_at_once(channel, alert) || kind == MessageKind::Escalated);
        }
        if alerts.is_empty() {
            return;
        }
        if channel.kind == ChannelType::PagerDuty {
            for alert in alerts {
                self.add(kind, channel, vec![alert]);
            }
        } else if kind != MessageKind::Triggered || !self.join(channel, &alerts) {
            self.add(kind, channel, alerts);
        }
    }

    /// Updates the waiting message that lists an alert, and ends its grouping window. Returns false if no waiting
    /// message lists the alert.
    fn send_at_once(&mut self, channel: &Channel, alert: &MessageAlert) -> bool {
        for (delivery, is_changed) in self.outbox.open.iter_mut().zip(&mut self.changed) {
            let listed = delivery.message.alerts.iter_mut().find(|listed| listed.id == alert.id);
            if let Some(listed) = listed.filter(|_| delivery.channel == *channel) {
                listed.clone_from(alert);
                delivery.due_at = delivery.due_at.min(self.outbox.at);
                *is_changed = true;
                return true;
            }
        }
        false
    }

    /// Adds new alerts to the message whose grouping window is open. Returns false if the channel has no such message.
    fn join(&mut self, channel: &Channel, alerts: &[MessageAlert]) -> bool {
        let at = self.outbox.at;
        let mut open = self.outbox.open.iter_mut().zip(&mut self.changed);
        let Some((delivery, is_changed)) =
            open.find(|(delivery, _)| delivery.channel == *channel && delivery.due_at > at)
        else {
            return false;
        };
        let message = &mut delivery.message;
        let room = MAX_LISTED.saturating_sub(message.alerts.len());
        message.alerts.extend(alerts.iter().take(room).cloned());
        message.more += count(alerts.len().saturating_sub(room));
        *is_changed = true;
        true
    }

    fn add(&mut self, kind: MessageKind, channel: &Channel, mut alerts: Vec<MessageAlert>) {
        let at = self.outbox.at;
        let waits = kind == MessageKind::Triggered && channel.kind != ChannelType::PagerDuty;
        let minutes = if waits { self.outbox.rules.grouping_minutes } else { 0 };
        let due_at = at.saturating_add(SignedDuration::from_mins(i64::from(minutes))).unwrap_or(at);
        let more = count(alerts.len().saturating_sub(MAX_LISTED));
        alerts.truncate(MAX_LISTED);
        let subject = self.outbox.subject.clone();
        self.added.push(Delivery {
            message: AlertMessage { id: (self.new_id)(), kind, at, subject, alerts, more },
            channel: channel.clone(),
            sequence: self.outbox.next_sequence,
            state: DeliveryState::Waiting,
            due_at,
            expires_at: due_at.saturating_add(LIFETIME).unwrap_or(due_at),
            attempts: 0,
            last_error: None,
            ended_at: None,
        });
        self.outbox.next_sequence += 1;
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use terrane_compiler::types::Granularity;

    use super::*;
    use crate::domain::SeriesValue;
    use crate::ports::monitors::EscalationRule;
    use crate::ports::severity::FindingSeverity;

    fn channel(kind: ChannelType, target: &str) -> Channel {
        Channel { kind, target: target.into() }
    }

    fn slack() -> Channel {
        channel(ChannelType::Slack, "data")
    }

    fn pagerduty() -> Channel {
        channel(ChannelType::PagerDuty, "oncall")
    }

    fn mail() -> Channel {
        channel(ChannelType::Email, "boss@example.com")
    }

    fn rules(grouping_minutes: u32) -> AlertConfig {
        AlertConfig {
            min_severity: FindingSeverity::Low,
            resolve_after_steps: 1,
            escalations: vec![
                EscalationRule { after_minutes: 5, notify: vec![mail()] },
                EscalationRule { after_minutes: 10, notify: Vec::new() },
            ],
            channels: vec![channel(ChannelType::InApp, ""), slack(), pagerduty()],
            grouping_minutes,
        }
    }

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_second(minute * 60).unwrap()
    }

    fn event(kind: MessageKind, id: &str, severity: FindingSeverity, escalations: u32) -> AlertEvent {
        let alert = MessageAlert {
            id: id.into(),
            state: AlertState::Triggered,
            severity,
            series: Vec::new(),
            first_step_ms: 0,
            last_step_ms: 0,
            value: None,
            expected: None,
        };
        AlertEvent { kind, alert, escalations }
    }

    /// The stored deliveries of one monitor.
    struct Stored(Vec<Delivery>);

    impl Stored {
        fn apply(&mut self, minute: i64, rules: &AlertConfig, events: &[AlertEvent]) {
            static NEXT: AtomicU32 = AtomicU32::new(0);
            let new_id = || -> Arc<str> { NEXT.fetch_add(1, Ordering::Relaxed).to_string().into() };
            let is_open = |delivery: &&Delivery| delivery.message.kind == MessageKind::Triggered;
            let outbox = Outbox {
                subject: MessageSubject {
                    monitor_id: "m".into(),
                    monitor: "m".into(),
                    value: SeriesValue::Measure { cube: "c".into(), measure: "x".into() },
                    granularity: Granularity::Day,
                    owner: "o".into(),
                },
                rules,
                at: at(minute),
                next_sequence: self.0.len() as u64,
                open: self.0.iter().filter(is_open).cloned().collect(),
            };
            for delivery in deliveries_of(outbox, events, &new_id) {
                self.0.retain(|known| known.message.id != delivery.message.id);
                self.0.push(delivery);
            }
            self.0.sort_by_key(|delivery| delivery.sequence);
        }

        fn of(&self, channel: &Channel) -> Vec<(MessageKind, i64, Vec<&str>)> {
            let own = self.0.iter().filter(|delivery| delivery.channel == *channel);
            own.map(|delivery| {
                let alerts = delivery.message.alerts.iter().map(|alert| &*alert.id).collect();
                (delivery.message.kind, delivery.due_at.as_second() / 60, alerts)
            })
            .collect()
        }
    }

    const LOW: FindingSeverity = FindingSeverity::Low;
    const HIGH: FindingSeverity = FindingSeverity::High;

    #[test]
    fn new_alerts_wait_for_others_until_the_window_ends() {
        let (mut stored, rules) = (Stored(Vec::new()), rules(30));
        stored.apply(0, &rules, &[event(MessageKind::Triggered, "a", LOW, 0)]);
        stored.apply(10, &rules, &[event(MessageKind::Triggered, "b", LOW, 0)]);
        stored.apply(31, &rules, &[event(MessageKind::Triggered, "c", LOW, 0)]);
        use MessageKind::Triggered;
        assert_eq!(stored.of(&slack()), [(Triggered, 30, vec!["a", "b"]), (Triggered, 61, vec!["c"])]);
        // PagerDuty groups events itself.
        let events = [(Triggered, 0, vec!["a"]), (Triggered, 10, vec!["b"]), (Triggered, 31, vec!["c"])];
        assert_eq!(stored.of(&pagerduty()), events);
        assert!(stored.of(&mail()).is_empty());
    }

    #[test]
    fn higher_severity_ends_the_window_or_sends_another_message() {
        let (mut stored, rules) = (Stored(Vec::new()), rules(30));
        stored.apply(0, &rules, &[event(MessageKind::Triggered, "a", LOW, 0)]);
        stored.apply(10, &rules, &[event(MessageKind::Raised, "a", HIGH, 0)]);
        assert_eq!(stored.of(&slack()), [(MessageKind::Triggered, 10, vec!["a"])]);
        assert_eq!(stored.0.iter().find(|known| known.channel == slack()).unwrap().message.alerts[0].severity, HIGH);
        // An event of PagerDuty has no grouping window. If the severity rises before the event is sent, the event
        // changes.
        assert_eq!(stored.of(&pagerduty()), [(MessageKind::Triggered, 0, vec!["a"])]);
        stored.apply(20, &rules, &[event(MessageKind::Raised, "b", HIGH, 0)]);
        assert_eq!(stored.of(&slack())[1], (MessageKind::Raised, 20, vec!["b"]));
    }

    #[test]
    fn escalations_go_to_the_channels_of_their_rule() {
        let (mut stored, rules) = (Stored(Vec::new()), rules(0));
        stored.apply(5, &rules, &[event(MessageKind::Escalated, "a", LOW, 1)]);
        assert_eq!(stored.of(&mail()), [(MessageKind::Escalated, 5, vec!["a"])]);
        assert!(stored.of(&slack()).is_empty());
        stored.apply(10, &rules, &[event(MessageKind::Escalated, "a", LOW, 2)]);
        assert_eq!(stored.of(&mail()).len(), 1);
        assert_eq!(stored.of(&slack()), [(MessageKind::Escalated, 10, vec!["a"])]);
    }

    #[test]
    fn resolved_alerts_come_after_their_trigger_and_acknowledgements_go_to_pagerduty() {
        let (mut stored, rules) = (Stored(Vec::new()), rules(0));
        let events = [
            event(MessageKind::Resolved, "a", LOW, 0),
            event(MessageKind::Triggered, "a", LOW, 0),
            event(MessageKind::Triggered, "b", LOW, 0),
            event(MessageKind::Acknowledged, "b", LOW, 0),
        ];
        stored.apply(1, &rules, &events);
        let kinds = |channel: Channel| -> Vec<(MessageKind, usize)> {
            stored.of(&channel).into_iter().map(|(kind, _, alerts)| (kind, alerts.len())).collect()
        };
        use MessageKind::{Acknowledged, Resolved, Triggered};
        assert_eq!(kinds(slack()), [(Triggered, 2), (Resolved, 1)]);
        assert_eq!(kinds(pagerduty()), [(Triggered, 1), (Triggered, 1), (Acknowledged, 1), (Resolved, 1)]);
    }

    #[test]
    fn messages_list_a_bounded_number_of_alerts_and_count_the_others() {
        let (mut stored, rules) = (Stored(Vec::new()), rules(30));
        let many: Vec<AlertEvent> =
            (0..120).map(|number| event(MessageKind::Triggered, &number.to_string(), LOW, 0)).collect();
        stored.apply(0, &rules, &many[..70]);
        stored.apply(1, &rules, &many[70..]);
        let delivery = stored.0.iter().find(|known| known.channel == slack()).unwrap();
        assert_eq!((delivery.message.alerts.len(), delivery.message.more), (MAX_LISTED, 70));
    }
}
